// consume: the loop of a training job. In every step each rank opens its next
// batch, maps it, takes it in, and all ranks meet in an MPI_Allreduce.
//
//   run NRANKS consume [-i] [-k STEP] [-n STEPS] [-s MS] DATASETDIR...
//
//   -i       sum the batch in place, instead of copying it out and then summing
//   -k STEP  begin with this step
//   -n N     end after so many steps, if the epoch is not over before
//   -s MS    sleep so long in every step, as if to compute
//
// Several directories are shared out as map_verify does. Rank 0 prints one line
// for the job and one for each part of a step, over the steps of all ranks:
//
//   consume ranks= steps= mode= bytes= seconds= GB/s= sum=
//   consume part=PART mean_us= p50_us= p90_us= p99_us= max_us=
//
// PART is open (open and fstat: where a supplier that is late makes the rank
// wait), map, take (faults, copy, sum), wait (for the other ranks) or step.
#include <getopt.h>
#include <mpi.h>

#include "rankfs_test.h"

enum part { OPEN, MAP, TAKE, WAIT, STEP, PARTS };
static const char *const part_name[PARTS] = {"open", "map", "take", "wait", "step"};

static struct {
	enum mode mode;
	uint64_t first, steps, sleep_ms;
} opt = {COPY_SUM, 0, UINT64_MAX, 0};

static struct {
	struct list took[PARTS]; // ns, a number a step
	uint64_t bytes, sum, steps;
	struct buffer copy;
} me;

static void mark(enum part p, uint64_t *since)
{
	uint64_t now = now_ns();
	list_add(&me.took[p], now - *since);
	*since = now;
}

// take takes in this rank's batch of a step; false if there is none.
static bool take(const char *directory, uint64_t step, uint64_t *since, uint64_t *sum)
{
	text error = "";
	struct batch b;
	if (!batch_open(&b, directory, step, error)) {
		if (error[0])
			die("%s", error);
		return false;
	}
	mark(OPEN, since);
	if (!batch_map(&b, error))
		die("%s", error);
	mark(MAP, since);
	*sum = consume(opt.mode, b.data, b.size, &me.copy);
	mark(TAKE, since);
	me.bytes += b.size;
	batch_close(&b);
	return true;
}

// take_step is one step of all ranks; false after the last one.
static bool take_step(const char *directory, uint64_t step, int ranks)
{
	uint64_t begin = now_ns(), since = begin, mine[2] = {0}, all[2]; // sum, and ranks with a batch
	mine[1] = take(directory, step, &since, &mine[0]);
	if (mine[1] && opt.sleep_ms)
		usleep((useconds_t)opt.sleep_ms * 1000);
	since = now_ns();
	MPI_Allreduce(mine, all, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	if (all[1] == 0)
		return false;
	if (!mine[1])
		die("%s: no step %lu, though %lu of %d ranks have it", directory, step, all[1], ranks);
	mark(WAIT, &since);
	mark(STEP, &begin);
	me.sum += all[0];
	me.steps++;
	return true;
}

static void report_part(enum part p, int rank, int ranks)
{
	int n = (int)me.took[p].n;
	uint64_t *all = allocate((size_t)n * (size_t)ranks * sizeof *all), total = 0;
	MPI_Gather(me.took[p].v, n, MPI_UINT64_T, all, n, MPI_UINT64_T, 0, MPI_COMM_WORLD);
	if (rank == 0) {
		size_t count = (size_t)n * (size_t)ranks;
		sort(all, count);
		for (size_t i = 0; i < count; i++)
			total += all[i];
		printf("consume part=%s mean_us=%.1f p50_us=%.1f p90_us=%.1f p99_us=%.1f max_us=%.1f\n",
		       part_name[p], (double)total / 1e3 / (double)(count ? count : 1),
		       (double)percentile(all, count, 50) / 1e3, (double)percentile(all, count, 90) / 1e3,
		       (double)percentile(all, count, 99) / 1e3, (double)percentile(all, count, 100) / 1e3);
	}
	free(all);
}

int main(int argc, char **argv)
{
	int rank, ranks;
	char directory[PATH_MAX];
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (int c; (c = getopt(argc, argv, "ik:n:s:")) != -1;) {
		switch (c) {
		case 'i': opt.mode = IN_PLACE; break;
		case 'k': opt.first = number(optarg); break;
		case 'n': opt.steps = number(optarg); break;
		case 's': opt.sleep_ms = number(optarg); break;
		default: exit(2);
		}
	}
	int places = argc - optind;
	if (places < 1)
		usage("[-i] [-k STEP] [-n STEPS] [-s MS] DATASETDIR...");
	snprintf(directory, sizeof directory, "%s/rank-%d",
		 argv[optind + (int)((long)rank * places / ranks)], rank);

	MPI_Barrier(MPI_COMM_WORLD);
	uint64_t begin = now_ns(), bytes;
	while (me.steps < opt.steps && take_step(directory, opt.first + me.steps, ranks))
		;
	MPI_Barrier(MPI_COMM_WORLD);
	double seconds = (double)(now_ns() - begin) / 1e9;
	if (me.steps == 0)
		die("%s: no step %lu", directory, opt.first);
	MPI_Reduce(&me.bytes, &bytes, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("consume ranks=%d steps=%lu mode=%s bytes=%lu seconds=%.6f GB/s=%.3f sum=%016lx\n",
		       ranks, me.steps, mode_name(opt.mode), bytes, seconds, (double)bytes / 1e9 / seconds, me.sum);
	for (enum part p = 0; p < PARTS; p++)
		report_part(p, rank, ranks);
	MPI_Finalize();
	return 0;
}
