import java.io.BufferedOutputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.Serializable;
import java.util.Arrays;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.SparkConf;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import scala.Tuple2;

/**
 * TeraSort: records of 100 bytes are sorted by the 10 with which each begins. Its arguments are
 * IN OUT PARTS, and "killed" if an executor shall be as soon as all maps are there: then what it
 * says, how many seconds it took and how many maps ran, is of what comes after that.
 */
public class Tera {
  private static final int RECORD = 100;
  private static final int KEY = 10;

  private static class Bytes implements Comparator<byte[]>, Serializable {
    @Override
    public int compare(byte[] a, byte[] b) {
      return Arrays.compareUnsigned(a, b);
    }
  }

  /** Kills a process when a stage of maps is complete. */
  private static class Killer extends Jobs.Counts {
    private final ProcessHandle executor;
    private volatile long at; // of the virtual machine's clock

    Killer(long pid) {
      executor = ProcessHandle.of(pid).orElseThrow();
    }

    @Override
    public void onStageCompleted(SparkListenerStageCompleted stage) {
      if (at == 0 && stage.stageInfo().shuffleDepId().isDefined()) {
        maps.set(0);
        at = System.nanoTime();
        executor.destroyForcibly();
      }
    }
  }

  public static void main(String[] args) throws Exception {
    String out = args[1];
    int parts = Integer.parseInt(args[2]);
    try (JavaSparkContext spark = new JavaSparkContext(new SparkConf())) {
      long pid = spark.parallelize(List.of(0), 1).map(i -> ProcessHandle.current().pid()).first();
      Jobs.Counts counts = args.length > 3 ? new Killer(pid) : new Jobs.Counts();
      spark.sc().addSparkListener(counts);
      long began = System.nanoTime();
      spark.binaryRecords(args[0], RECORD)
          .mapToPair(record -> new Tuple2<>(Arrays.copyOf(record, KEY), Arrays.copyOfRange(record, KEY, RECORD)))
          .sortByKey(new Bytes(), true, parts)
          .foreachPartition(records -> write(out, records));
      long ended = System.nanoTime();
      spark.sc().listenerBus().waitUntilEmpty();
      if (counts instanceof Killer killer) {
        if (counts.removed.get() == 0) {
          throw new IllegalStateException("no executor was lost");
        }
        began = killer.at;
      }
      System.out.printf("Tera: seconds=%.3f maps=%d%n", (ended - began) / 1e9, counts.maps.get());
    }
  }

  private static void write(String out, Iterator<Tuple2<byte[], byte[]>> records) throws IOException {
    String part = String.format("%s/part-%06d", out, TaskContext.getPartitionId());
    try (OutputStream file = new BufferedOutputStream(new FileOutputStream(part), 1 << 20)) {
      while (records.hasNext()) {
        Tuple2<byte[], byte[]> record = records.next();
        file.write(record._1());
        file.write(record._2());
      }
    }
  }
}
