// How the programs that divide a dataset by where its chunks are do it: which host
// each rank is on, which chunks are taken, and what was read.
#ifndef RANKFS_CHUNKS_H
#define RANKFS_CHUNKS_H

#include <getopt.h>
#include <mpi.h>

#include "../../include/dli.h"
#include "../../include/rankfs.h"
#include "rankfs_test.h"

#define NO_CHUNK UINT64_MAX

typedef char host_name[MPI_MAX_PROCESSOR_NAME];

// What the command line says.
struct job {
	int rank, ranks;
	char *names; // of the hosts that ranks say they are on, with commas between them
	const char *table;   // the dataset whose table says which host has which chunk
	const char *dataset; // the one that is read
};

// job_begin reads [-p NAMES] [-t TABLE] DATASET.
static inline struct job job_begin(int argc, char **argv)
{
	struct job j = {0};
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &j.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &j.ranks);
	for (int c; (c = getopt(argc, argv, "p:t:")) != -1;) {
		switch (c) {
		case 'p': j.names = optarg; break;
		case 't': j.table = optarg; break;
		default: exit(2);
		}
	}
	if (argc - optind != 1)
		usage("[-p NAMES] [-t TABLE] DATASET");
	j.dataset = argv[optind];
	if (!j.table)
		j.table = j.dataset;
	return j;
}

// job_host is where this rank is: by turns one of the names, if there are some.
static inline void job_host(const struct job *j, host_name host)
{
	int length, n = 1, mine;
	char *p = j->names;
	MPI_Get_processor_name(host, &length);
	if (!p)
		return;
	for (const char *q = p; *q; q++)
		n += *q == ',';
	for (mine = j->rank % n; mine > 0; mine--)
		p += strcspn(p, ",") + 1;
	snprintf(host, sizeof(host_name), "%.*s", (int)strcspn(p, ","), p);
}

// A board is what rank 0 knows: which chunks are local to which rank, and which
// chunks are taken.
struct board {
	struct DLI_map *map;
	struct DLI_list **local; // by rank
	uint64_t *next; // of a rank's list, what may not be taken yet
	bool *taken;
	uint64_t first; // that may not be taken yet
	uint64_t count, at_home; // chunks given away; to a rank where they are
};

// board_make asks for the map of all ranks' hosts: of all of them at once, so
// that it does not matter if replicas move meanwhile.
static inline void board_make(struct board *b, const char *table, host_name *hosts, int ranks)
{
	char **names = allocate(((size_t)ranks + 1) * sizeof *names);
	int need, err;
	for (int r = 0; r < ranks; r++)
		names[r] = hosts[r];
	names[ranks] = NULL;
	memset(b, 0, sizeof *b);
	do {
		free(b->map);
		if ((need = DLI_map_chunks_process(table, names, NULL)) < 0)
			die("%s: %s", table, strerror(-need));
		b->map = allocate((size_t)need);
		b->map->size = (uint64_t)need;
		err = DLI_map_chunks_process(table, names, b->map);
	} while (err == -ERANGE); // replicas have moved
	if (err)
		die("%s: %s", table, strerror(-err));
	b->local = allocate((size_t)ranks * sizeof *b->local);
	b->next = allocate((size_t)ranks * sizeof *b->next);
	b->taken = allocate(b->map->chunks * sizeof *b->taken);
	memset(b->next, 0, (size_t)ranks * sizeof *b->next);
	memset(b->taken, 0, b->map->chunks * sizeof *b->taken);
	struct DLI_list *l = DLI_first_list(b->map);
	for (int r = 0; r < ranks; r++, l = DLI_next_list(l))
		b->local[r] = l;
	free(names);
}

// board_take gives a rank a chunk that is local to it, or else any that is left.
static inline uint64_t board_take(struct board *b, int rank)
{
	struct DLI_list *l = b->local[rank];
	uint64_t chunk = NO_CHUNK, *i = &b->next[rank];
	while (*i < l->count && b->taken[DLI_chunks(l)[*i].number])
		++*i;
	if (*i < l->count) {
		chunk = DLI_chunks(l)[*i].number;
		b->at_home++;
	}
	while (b->first < b->map->chunks && b->taken[b->first])
		b->first++;
	if (chunk == NO_CHUNK && b->first < b->map->chunks)
		chunk = b->first;
	if (chunk != NO_CHUNK) {
		b->taken[chunk] = true;
		b->count++;
	}
	return chunk;
}

// What a rank has read. The sum is that of the checksums of all records: the
// same for the same records in any order.
struct tally {
	uint64_t records, bytes, sum;
};

// tally_chunk reads a chunk.
static inline void tally_chunk(struct tally *t, const char *dataset, uint64_t chunk)
{
	char path[PATH_MAX];
	struct rankfs_batch b;
	int err = DLI_chunk_path(dataset, chunk, path, sizeof path);
	if (err)
		die("%s: %s", dataset, strerror(-err));
	if (rankfs_map(&b, path))
		die("%s: %s", path, strerror(errno));
	for (size_t i = 0; i < b.records; i++)
		t->sum += xxh64(rankfs_record(&b, i), rankfs_record_size(&b, i));
	t->records += b.records;
	t->bytes += b.size;
	rankfs_unmap(&b);
}

// report prints on rank 0 what all have read.
static inline void report(const char *what, const struct job *j, const struct board *b, const struct tally *mine)
{
	uint64_t one[4] = {mine->records, mine->bytes, mine->sum, mine->records > 0}, all[4];
	MPI_Reduce(one, all, 4, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	if (j->rank == 0)
		printf("%s ranks=%d busy=%lu chunks=%lu local=%lu records=%lu bytes=%lu sum=%016lx\n", what,
		       j->ranks, all[3], b->count, b->at_home, all[0], all[1], all[2]);
}

#endif
