// exchange: every rank has something for every other, and all get it: by the shuffle
// pool, or by MPI_Alltoallv.
//
//   run NRANKS exchange [-v] [-c COPIES] [-s BYTES] pool STAGE...
//   run NRANKS exchange [-v] [-s BYTES] mpi
//
//   -v  look at each word, instead of summing them
//   -c  copies of each map (1)
//   -s  bytes that each rank sends, to all together (1 MiB)
//
// The stage is made, and must not be there. Of several paths, the same stage by several
// mounts, ranks use one each in blocks. The clock runs from the first write to the last
// byte that was read; what is sent is in memory before. Rank 0 prints one line:
//
//   exchange OK mode= ranks= bytes= seconds= sum=
//
// sum= is the same for both modes.
#include "stage.h"

static int rank, ranks;
static bool verify;

// word is what stands somewhere in what a rank sends to another.
static uint64_t word_of(uint64_t from, uint64_t to, uint64_t i)
{
	return (from << 48 | to << 32 | i) * 0x9e3779b97f4a7c15u;
}

// take is what a rank does with what another has sent it.
static uint64_t take(const void *p, uint64_t from, size_t size)
{
	const word *w = p;
	for (uint64_t i = 0; verify && i < size / 8; i++)
		if (w[i] != word_of(from, (uint64_t)rank, i))
			die("word %lu of rank %lu for rank %d is %016lx", i, from, rank, w[i]);
	return work_sum(p, size);
}

static uint64_t by_pool(const char *stage, const uint64_t *out, size_t each)
{
	struct rankfs_attempt a;
	uint64_t sum = 0;
	stage_begin(&a, stage, (uint64_t)rank, 0, (uint64_t)ranks);
	for (int to = 0; to < ranks; to++)
		stage_part(&a, out + (size_t)to * each / 8, each);
	stage_commit(&a);
	struct rankfs_batch b = stage_read(stage, (uint64_t)rank, (uint64_t)ranks);
	for (int from = 0; from < ranks; from++) {
		if (rankfs_record_size(&b, (size_t)from) != each)
			die("%zu bytes of rank %d, not %zu", rankfs_record_size(&b, (size_t)from), from, each);
		sum += take(rankfs_record(&b, (size_t)from), (uint64_t)from, each);
	}
	rankfs_unmap(&b);
	return sum;
}

static uint64_t by_mpi(const uint64_t *out, uint64_t *in, size_t each)
{
	int *counts = allocate((size_t)ranks * sizeof *counts), *places = allocate((size_t)ranks * sizeof *places);
	uint64_t sum = 0;
	for (int i = 0; i < ranks; i++) {
		counts[i] = (int)(each / 8);
		places[i] = i * counts[i];
	}
	MPI_Alltoallv(out, counts, places, MPI_UINT64_T, in, counts, places, MPI_UINT64_T, MPI_COMM_WORLD);
	for (int from = 0; from < ranks; from++)
		sum += take(in + (size_t)places[from], (uint64_t)from, each);
	free(counts);
	free(places);
	return sum;
}

int main(int argc, char **argv)
{
	const char *text = "[-v] [-c COPIES] [-s BYTES] pool STAGE... | mpi";
	uint64_t copies = 1, bytes = 1 << 20, sum, all;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (int c; (c = getopt(argc, argv, "vc:s:")) != -1;) {
		switch (c) {
		case 'v': verify = true; break;
		case 'c': copies = number(optarg); break;
		case 's': bytes = number(optarg); break;
		default: exit(2);
		}
	}
	int paths = argc - optind - 1;
	bool pool = paths > 0 && !strcmp(argv[optind], "pool");
	if (!pool && (paths != 0 || strcmp(argv[optind], "mpi") != 0))
		usage(text);
	size_t each = bytes / (uint64_t)ranks / 8 * 8;
	struct buffer out = {0}, in = {0};
	buffer_grow(&out, each * (size_t)ranks);
	for (int to = 0; to < ranks; to++)
		for (uint64_t i = 0; i < each / 8; i++)
			((uint64_t *)out.p)[(size_t)to * each / 8 + i] = word_of((uint64_t)rank, (uint64_t)to, i);
	const char *stage = pool ? argv[optind + 1 + rank * paths / ranks] : NULL;
	if (pool)
		stage_make(stage, rank, "maps=%d parts=%d copies=%lu\n", ranks, ranks, copies);
	else
		buffer_grow(&in, each * (size_t)ranks);
	MPI_Barrier(MPI_COMM_WORLD);
	uint64_t begin = now_ns();
	sum = pool ? by_pool(stage, out.p, each) : by_mpi(out.p, in.p, each);
	MPI_Barrier(MPI_COMM_WORLD);
	double seconds = (double)(now_ns() - begin) / 1e9;
	MPI_Reduce(&sum, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("exchange OK mode=%s ranks=%d bytes=%lu seconds=%.6f sum=%016lx\n", pool ? "pool" : "mpi", ranks,
		       (uint64_t)each * (uint64_t)ranks * (uint64_t)ranks, seconds, all);
	MPI_Finalize();
	return 0;
}
