// dli_local: each rank asks which chunks are local to it, and reads these and no
// other. C and C++ both, as include/dli.h is.
//
//   run NRANKS dli_local TABLE DATASET|-f FILE [NAME...]
//
// It asks the dataset TABLE, and reads the chunks from the dataset DATASET, or
// from the table's offsets of FILE, whose bytes are the dataset's. Rank r says
// that it is on the r-th host NAME, by turns; without names, where it is. For
// each rank there is a line
//
//   dli_local rank= chunks= records= bytes= sum= check= percent=
//
// sum adds up a hash of each chunk's bytes; check is in how many chunks the first
// and the last byte are on this host.
#include <mpi.h>

#include "../../include/dli.h"
#include "../../include/rankfs.h"

static void fail(const char *what, int err)
{
	fprintf(stderr, "dli_local: %s: %s\n", what, strerror(err));
	exit(1);
}

// hash_of is a hash of n bytes, eight at a time.
static uint64_t hash_of(const unsigned char *p, size_t n)
{
	const uint64_t prime = UINT64_C(0x9e3779b97f4a7c15);
	uint64_t h = n, word;
	size_t i;

	for (i = 0; i + 8 <= n; i += 8) {
		memcpy(&word, p + i, 8);
		h = (h ^ word) * prime;
	}
	if (i == n)
		return h;
	word = 0;
	memcpy(&word, p + i, n - i);
	return (h ^ word) * prime;
}

// read_at is the hash of a chunk's bytes in a file.
static uint64_t read_at(const char *path, const struct DLI_chunk *c)
{
	unsigned char *p = (unsigned char *)malloc(c->bytes + 1);
	size_t have = 0;
	uint64_t h;
	int fd = open(path, O_RDONLY);

	if (fd < 0 || !p)
		fail(path, errno);
	while (have < c->bytes) {
		ssize_t n = pread(fd, p + have, c->bytes - have, (off_t)(c->offset + have));
		if (n <= 0)
			fail(path, n ? errno : EPROTO);
		have += (size_t)n;
	}
	close(fd);
	h = hash_of(p, have);
	free(p);
	return h;
}

// map_of is the hash of a chunk's bytes as the mount serves them.
static uint64_t map_of(const char *dataset, const struct DLI_chunk *c)
{
	char path[4096];
	struct rankfs_batch b;
	uint64_t h;
	int err = DLI_chunk_path(dataset, c->number, path, sizeof path);

	if (err)
		fail(dataset, -err);
	if (rankfs_map(&b, path))
		fail(path, errno);
	if (b.size != c->bytes || b.records != c->records)
		fail(path, EPROTO);
	h = hash_of(b.data, b.size);
	rankfs_unmap(&b);
	return h;
}

static struct DLI_list *local_to(const char *table, const char *name)
{
	struct DLI_list *l;
	int need = DLI_map_process_chunks(table, name, NULL), err;

	if (need < 0)
		fail(table, -need);
	l = (struct DLI_list *)malloc((size_t)need);
	if (!l)
		fail(table, ENOMEM);
	l->size = (uint64_t)need;
	if ((err = DLI_map_process_chunks(table, name, l)) != 0)
		fail(table, -err);
	return l;
}

// ends_here counts the ends of a chunk that are on this host.
static int ends_here(const char *table, const struct DLI_chunk *c)
{
	size_t end[2];
	bool local = false;
	int n = 0, err;

	end[0] = (size_t)c->offset;
	end[1] = (size_t)(c->offset + c->bytes - 1);
	for (int i = 0; i < 2; i++) {
		if ((err = DLI_check_data(table, &end[i], &local)) != 0)
			fail(table, -err);
		n += local;
	}
	return n;
}

int main(int argc, char **argv)
{
	int rank, ranks, flat, here = 0, err;
	const char *name = NULL;
	struct DLI_list *mine;
	uint64_t records = 0, bytes = 0, sum = 0;
	double percent;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	flat = argc > 3 && strcmp(argv[2], "-f") == 0;
	if (argc < 3 + flat) {
		fprintf(stderr, "use dli_local TABLE DATASET|-f FILE [NAME...]\n");
		return 2;
	}
	if (argc > 3 + flat)
		name = argv[3 + flat + rank % (argc - 3 - flat)];
	mine = local_to(argv[1], name);
	for (uint64_t i = 0; i < mine->count; i++) {
		const struct DLI_chunk *c = &DLI_chunks(mine)[i];
		sum += flat ? read_at(argv[3], c) : map_of(argv[2], c);
		records += c->records;
		bytes += c->bytes;
		here += ends_here(argv[1], c);
	}
	if ((err = DLI_get_data_percentage(argv[1], name, &percent)) != 0)
		fail(argv[1], -err);
	for (int turn = 0; turn < ranks; turn++) {
		MPI_Barrier(MPI_COMM_WORLD);
		if (turn != rank)
			continue;
		printf("dli_local rank=%d chunks=%llu records=%llu bytes=%llu sum=%016llx check=%d percent=%.3f\n", rank,
		       (unsigned long long)mine->count, (unsigned long long)records, (unsigned long long)bytes,
		       (unsigned long long)sum, here, percent);
		fflush(stdout);
	}
	free(mine);
	MPI_Finalize();
	return 0;
}
