// dli_static: a program of the DL-MPI kind that divides its work beforehand. All
// ranks say where they are; rank 0 gives each in turn a chunk that is local to
// it, or any if it has none left; then each reads what it was given.
//
//   run NRANKS dli_static [-p NAMES] [-t TABLE] DATASET
//
//   -p NAMES  say that ranks are on these hosts, by turns
//   -t TABLE  learn which host has which chunk from this dataset, or a copy of its table
//
//   dli_static ranks= busy= chunks= local= records= bytes= sum=
//
// busy is how many ranks had something to read, local how many chunks were
// read where they are, sum that of the XXH64 of all records.
#include "chunks.h"

int main(int argc, char **argv)
{
	struct job j = job_begin(argc, argv);
	struct board b = {0};
	struct tally t = {0};
	host_name mine, *all = allocate((size_t)j.ranks * sizeof *all);
	uint64_t *owners = NULL, chunks = 0;

	job_host(&j, mine);
	MPI_Gather(mine, sizeof mine, MPI_CHAR, all, sizeof mine, MPI_CHAR, 0, MPI_COMM_WORLD);
	if (j.rank == 0) {
		board_make(&b, j.table, all, j.ranks);
		chunks = b.map->chunks;
	}
	MPI_Bcast(&chunks, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
	owners = allocate(chunks * sizeof *owners);
	if (j.rank == 0)
		for (uint64_t i = 0; i < chunks; i++)
			owners[board_take(&b, (int)(i % (uint64_t)j.ranks))] = i % (uint64_t)j.ranks;
	MPI_Bcast(owners, (int)chunks, MPI_UINT64_T, 0, MPI_COMM_WORLD);
	for (uint64_t i = 0; i < chunks; i++)
		if (owners[i] == (uint64_t)j.rank)
			tally_chunk(&t, j.dataset, i);
	report("dli_static", &j, &b, &t);
	MPI_Finalize();
	return 0;
}
