// sample_sort: ranks sort numbers that all of them have, over the shuffle pool alone, as
// tasks of which each may run twice.
//
//   run NRANKS sample_sort [-n NUMBERS] [-t] JOB...
//
//   -n  numbers of each task (10000)
//   -t  twice: each rank runs its own tasks, and as another attempt those of the next
//
// The job is a directory in which there are no stages yet; of several, the same by several
// mounts, ranks use one each in blocks. In the stage `sample` each task leaves some of its
// numbers in the one part, which says alike to all where parts shall begin. In the stage
// `sorted` it leaves its numbers by part, each part in order, and a reducer merges what the
// maps have for it. MPI only starts the ranks, and checks: the parts are in order, and have
// each number of each task once, and all of them of the attempt that has won. Rank 0 prints
//
//   sample_sort OK ranks= numbers= largest= attempts= sum=
//
// largest= is the largest part in per cent of an even share, attempts= how many tasks were
// won by their second attempt.
#include "stage.h"

// An item is a number, and which attempt of which task has it.
struct item {
	uint64_t key;
	uint32_t task, attempt;
};

enum { SAMPLES = 64 };

static int rank, ranks;
static uint64_t numbers = 10000;

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static int by_key(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	return (x->key > y->key) - (x->key < y->key);
}

// items are those of a task, in order: many small numbers, few large ones.
static struct item *items(uint64_t task, uint64_t attempt)
{
	struct item *all = allocate(numbers * sizeof *all);
	for (uint64_t i = 0; i < numbers; i++) {
		uint64_t r = mix(task << 32 | (i + 1));
		all[i] = (struct item){r >> r % 32, (uint32_t)task, (uint32_t)attempt};
	}
	qsort(all, numbers, sizeof *all, by_key);
	return all;
}

// sample leaves every so many-th number of a task, in one part, which needs no offsets.
static void sample(const char *stage, uint64_t task, uint64_t attempt)
{
	struct item *all = items(task, attempt);
	uint64_t some[SAMPLES];
	struct rankfs_attempt a;
	for (uint64_t i = 0; i < SAMPLES; i++)
		some[i] = all[(2 * i + 1) * numbers / (2 * SAMPLES)].key;
	stage_begin(&a, stage, task, attempt, 1);
	stage_part(&a, some, sizeof some);
	stage_commit(&a);
	free(all);
}

// split is where parts shall begin: of all samples every so many-th.
static void split(const char *stage, uint64_t *first)
{
	struct rankfs_batch b = stage_read(stage, 0, (uint64_t)ranks);
	size_t n = b.size / sizeof *first;
	uint64_t *all = allocate(b.size);
	memcpy(all, b.data, b.size);
	rankfs_unmap(&b);
	sort(all, n);
	first[0] = 0;
	for (int i = 1; i < ranks; i++)
		first[i] = all[n * (size_t)i / (size_t)ranks];
	free(all);
}

// divide leaves the numbers of a task by part.
static void divide(const char *stage, uint64_t task, uint64_t attempt, const uint64_t *first)
{
	struct item *all = items(task, attempt);
	struct rankfs_attempt a;
	uint64_t from = 0;
	stage_begin(&a, stage, task, attempt, (uint64_t)ranks);
	for (int part = 0; part < ranks; part++) {
		uint64_t to = from;
		while (to < numbers && (part == ranks - 1 || all[to].key < first[part + 1]))
			to++;
		stage_part(&a, all + from, (to - from) * sizeof *all);
		from = to;
	}
	stage_commit(&a);
	free(all);
}

// A result is what a reducer has: how many numbers of each task, and of which attempt.
struct result {
	uint64_t n, first, last, sum;
	uint64_t *of;      // numbers of each task
	uint64_t *attempt; // of each task, if there are any
};

// reduce merges a part: of what the maps have for it the smallest comes next.
static void reduce(const char *stage, struct result *r)
{
	struct rankfs_batch b = stage_read(stage, (uint64_t)rank, (uint64_t)ranks);
	size_t *at = allocate((size_t)ranks * sizeof *at);
	memset(at, 0, (size_t)ranks * sizeof *at);
	for (;;) {
		const struct item *next = NULL;
		int from = 0;
		for (int i = 0; i < ranks; i++) {
			const struct item *piece = (const void *)rankfs_record(&b, (size_t)i);
			if (at[i] < rankfs_record_size(&b, (size_t)i) / sizeof *piece && (!next || piece[at[i]].key < next->key)) {
				next = piece + at[i];
				from = i;
			}
		}
		if (!next)
			break;
		at[from]++;
		if (next->task != (uint32_t)from)
			die("a number of task %u is in map %d", next->task, from);
		if (r->n == 0)
			r->first = next->key;
		else if (next->key < r->last)
			die("part %d is not in order: %lu after %lu", rank, next->key, r->last);
		if (r->of[from] > 0 && r->attempt[from] != next->attempt)
			die("part %d has numbers of two attempts of task %d", rank, from);
		r->of[from]++;
		r->attempt[from] = next->attempt;
		r->last = next->key;
		r->sum += next->key;
		r->n++;
	}
	free(at);
	rankfs_unmap(&b);
}

// verdict holds the results of all ranks against each other and against the tasks.
static void verdict(const struct result *r)
{
	uint64_t mine[5] = {r->n, r->first, r->last, r->sum, 0}, n = 0, sum = 0, largest = 0, last = 0, late = 0;
	uint64_t *all = allocate((size_t)ranks * sizeof mine), *of = allocate((size_t)ranks * sizeof *of);
	uint64_t *least = allocate((size_t)ranks * sizeof *least), *most = allocate((size_t)ranks * sizeof *most);
	for (int i = 0; i < ranks; i++) {
		least[i] = r->of[i] ? r->attempt[i] : UINT64_MAX;
		most[i] = r->of[i] ? r->attempt[i] : 0;
	}
	struct item *own = items((uint64_t)rank, 0);
	for (uint64_t i = 0; i < numbers; i++)
		mine[4] += own[i].key;
	free(own);
	MPI_Gather(mine, 5, MPI_UINT64_T, all, 5, MPI_UINT64_T, 0, MPI_COMM_WORLD);
	MPI_Reduce(r->of, of, ranks, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Reduce(rank ? least : MPI_IN_PLACE, least, ranks, MPI_UINT64_T, MPI_MIN, 0, MPI_COMM_WORLD);
	MPI_Reduce(rank ? most : MPI_IN_PLACE, most, ranks, MPI_UINT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
	if (rank != 0)
		return;
	for (int i = 0; i < ranks; i++) {
		const uint64_t *one = all + 5 * i;
		if (one[0] > 0 && one[1] < last)
			die("part %d begins with %lu, one before it ends with %lu", i, one[1], last);
		last = one[0] > 0 ? one[2] : last;
		n += one[0];
		sum += one[3] - one[4];
		largest = one[0] > largest ? one[0] : largest;
		if (of[i] != numbers)
			die("of task %d there are %lu numbers of %lu", i, of[i], numbers);
		if (least[i] != most[i])
			die("task %d: some parts are of attempt %lu, some of %lu", i, least[i], most[i]);
		late += most[i];
	}
	if (sum != 0)
		die("the numbers are not those of the tasks");
	uint64_t total = 0;
	for (int i = 0; i < ranks; i++)
		total += all[5 * i + 3];
	printf("sample_sort OK ranks=%d numbers=%lu largest=%lu attempts=%lu sum=%016lx\n", ranks, n,
	       largest * 100 / numbers, late, total);
}

int main(int argc, char **argv)
{
	bool twice = false;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (int c; (c = getopt(argc, argv, "n:t")) != -1;) {
		switch (c) {
		case 'n': numbers = number(optarg); break;
		case 't': twice = true; break;
		default: exit(2);
		}
	}
	int paths = argc - optind;
	if (paths < 1 || numbers < SAMPLES)
		usage("[-n NUMBERS] [-t] JOB...");
	const char *job = argv[optind + rank * paths / ranks];
	char samples[PATH_MAX], sorted[PATH_MAX];
	if (rankfs_path(samples, "%s/sample", job) || rankfs_path(sorted, "%s/sorted", job))
		die("%s: %s", job, strerror(errno));
	stage_make(samples, rank, "maps=%d\n", ranks);
	stage_make(sorted, rank, "maps=%d parts=%d\n", ranks, ranks);
	uint64_t tasks[2] = {(uint64_t)rank, (uint64_t)(rank + 1) % (uint64_t)ranks};
	uint64_t *first = allocate((size_t)ranks * sizeof *first);
	for (uint64_t i = 0; i < 1 + (uint64_t)twice; i++)
		sample(samples, tasks[i], i);
	split(samples, first);
	for (uint64_t i = 0; i < 1 + (uint64_t)twice; i++)
		divide(sorted, tasks[i], i, first);
	struct result r = {.of = calloc((size_t)ranks, sizeof *r.of), .attempt = calloc((size_t)ranks, sizeof *r.attempt)};
	reduce(sorted, &r);
	verdict(&r);
	MPI_Finalize();
	return 0;
}
