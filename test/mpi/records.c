// records: what include/rankfs.h says of a batch, for a test to compare.
//
//   records BATCH
//
//   records n= bytes= sum=
#include "../../include/rankfs.h"

int main(int argc, char **argv)
{
	struct rankfs_batch b;
	uint64_t sum = 0, bytes = 0;

	if (argc != 2) {
		fprintf(stderr, "use records BATCH\n");
		return 2;
	}
	if (rankfs_map(&b, argv[1])) {
		perror(argv[1]);
		return 1;
	}
	for (size_t i = 0; i < b.records; i++) {
		const unsigned char *r = rankfs_record(&b, i);
		for (size_t k = 0; k < rankfs_record_size(&b, i); k++)
			sum += r[k];
		bytes += rankfs_record_size(&b, i);
	}
	printf("records n=%zu bytes=%llu sum=%llu\n", b.records, (unsigned long long)bytes, (unsigned long long)sum);
	rankfs_unmap(&b);
	return 0;
}
