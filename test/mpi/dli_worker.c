// dli_worker: a program of the DL-MPI kind with a master, as mpiBLAST is. Rank 0
// hands out numbers of chunks to the others, one for each request: a chunk that is
// local to the rank that asks, or any if it has none left.
//
//   run NRANKS dli_worker [-p NAMES] [-t TABLE] DATASET
//
// Options and output are those of dli_static. The master reads nothing.
#include "chunks.h"

enum { ASK = 1, ANSWER };

static void master(struct board *b, const struct job *j, host_name *hosts)
{
	board_make(b, j->table, hosts, j->ranks);
	for (int left = j->ranks - 1; left > 0;) {
		MPI_Status who;
		MPI_Recv(NULL, 0, MPI_CHAR, MPI_ANY_SOURCE, ASK, MPI_COMM_WORLD, &who);
		uint64_t chunk = board_take(b, who.MPI_SOURCE);
		left -= chunk == NO_CHUNK;
		MPI_Send(&chunk, 1, MPI_UINT64_T, who.MPI_SOURCE, ANSWER, MPI_COMM_WORLD);
	}
}

static void worker(struct tally *t, const struct job *j)
{
	for (uint64_t chunk;;) {
		MPI_Send(NULL, 0, MPI_CHAR, 0, ASK, MPI_COMM_WORLD);
		MPI_Recv(&chunk, 1, MPI_UINT64_T, 0, ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (chunk == NO_CHUNK)
			return;
		tally_chunk(t, j->dataset, chunk);
	}
}

int main(int argc, char **argv)
{
	struct job j = job_begin(argc, argv);
	struct board b = {0};
	struct tally t = {0};
	host_name mine, *all = allocate((size_t)j.ranks * sizeof *all);

	if (j.ranks < 2)
		usage("it with two ranks or more");
	job_host(&j, mine);
	MPI_Gather(mine, sizeof mine, MPI_CHAR, all, sizeof mine, MPI_CHAR, 0, MPI_COMM_WORLD);
	if (j.rank == 0)
		master(&b, &j, all);
	else
		worker(&t, &j);
	report("dli_worker", &j, &b, &t);
	MPI_Finalize();
	return 0;
}
