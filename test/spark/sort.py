"""PySpark's sort of records of 100 bytes by the 10 with which each begins: IN OUT PARTS. What
is said to have taken so many seconds is from the first read to the last byte of a part."""
import sys
import time

from pyspark import SparkContext

source, out, parts = sys.argv[1], sys.argv[2], int(sys.argv[3])


def write(part, records):
    with open(f"{out}/part-{part:06d}", "wb", 1 << 20) as f:
        for key, rest in records:
            f.write(key + rest)
    return ()


spark = SparkContext()
began = time.monotonic()
records = spark.binaryRecords(source, 100).map(lambda record: (record[:10], record[10:]))
records.sortByKey(numPartitions=parts).mapPartitionsWithIndex(write).count()
print(f"sort.py: seconds={time.monotonic() - began:.3f}")
spark.stop()
