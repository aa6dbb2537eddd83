// learn: four programs that go through their data again and again, as such jobs do
// in MPI: each rank maps its own batches, and all ranks meet at the end of a pass.
//
//   run NRANKS learn [-e EPOCHS] kmeans DATASET
//   run NRANKS learn [-e EPOCHS] lda DATASET
//   run NRANKS learn [-e EPOCHS] logreg TRAIN VALIDATION
//   run NRANKS learn [-e EPOCHS] knn RAWTEST RAWTRAIN TEST TRAIN
//
//   kmeans  Lloyd's clusters of points
//   lda     topics of documents, a point being how often each word is in one
//   logreg  a logistic regression by gradients, held against VALIDATION each epoch
//   knn     labels of points of TEST by their neighbours in TRAIN, other points in
//           each epoch; the raw sets are read once, for the weights of features
//
// A set is a directory of a dataset below a mount, or a file with the same records,
// which one rank reads without any mount: the reference. Records are what makedata
// points writes. EPOCHS is 6 unless told. Rank 0 prints one line:
//
//   learn job= ranks= epochs= records= bytes= seconds= first= later= right= result= sum=
//
// first= and later= are the seconds of the first epoch and, on the mean, of those
// after it. What ranks add up are integers, so neither the number of ranks nor the
// order of records makes a difference: result=, a hash of the model, and sum=, over
// the hashes of all records that were read, are the reference's or bytes were wrong.
// right= is the share of points that were found to be of the class they were made of.
#include <getopt.h>
#include <math.h>
#include <mpi.h>

#include "rankfs_test.h"

#define FEATURES 63
#define CLASSES 8
#define NEAREST 5 // neighbours that vote

struct point {
	float class;
	float x[FEATURES]; // small integers, none below zero
};

static struct {
	int rank, ranks, epochs;
	const char **sets;
	int epoch;
	uint64_t records, bytes, sum; // of all that this rank has read
	int64_t asked, right;         // points that were classed last, and well
} me = {.epochs = 6};

typedef void work(const struct point *p, size_t n);

static void take(const void *data, size_t size, const char *path, work *f)
{
	const struct point *p = data;
	size_t n = size / sizeof *p;
	if (size % sizeof *p != 0)
		die("%s: %zu bytes are no records of %zu", path, size, sizeof *p);
	for (size_t i = 0; i < n; i++)
		me.sum += xxh64(&p[i], sizeof *p);
	me.records += n;
	me.bytes += size;
	f(p, n);
}

static bool is_file(const char *path)
{
	struct stat st;
	if (stat(path, &st) != 0)
		die("%s: %s", path, strerror(errno));
	return S_ISREG(st.st_mode);
}

// read_file hands out a file that is read whole, as no rank of a mount does it.
static void read_file(const char *path, work *f)
{
	text error = "";
	struct stat st;
	if (me.ranks != 1)
		die("%s: one rank reads a file, not %d", path, me.ranks);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0)
		die("%s: %s", path, strerror(errno));
	void *data = allocate((size_t)st.st_size);
	if (!read_whole(fd, path, data, (size_t)st.st_size, error))
		die("%s", error);
	close(fd);
	take(data, (size_t)st.st_size, path, f);
	free(data);
}

// batch_of opens and maps a batch of this epoch; false if there is no such step.
static bool batch_of(struct batch *b, const char *set, int rank, uint64_t step)
{
	char directory[PATH_MAX];
	text error = "";
	if (snprintf(directory, sizeof directory, "%s@epoch=%d/rank-%d", set, me.epoch, rank) >= PATH_MAX)
		die("%s: path too long", set);
	bool there = batch_open(b, directory, step, error) && batch_map(b, error);
	if (error[0])
		die("%s", error);
	if (!there && step == 0)
		die("%s: no batch", directory);
	return there;
}

// pass hands out all records of a set that are this rank's.
static void pass(const char *set, work *f)
{
	struct batch b;
	if (is_file(set)) {
		read_file(set, f);
		return;
	}
	for (uint64_t step = 0; batch_of(&b, set, me.rank, step); step++) {
		take(b.data, b.size, b.path, f);
		batch_close(&b);
	}
}

static void add_up(int64_t *v, size_t n)
{
	MPI_Allreduce(MPI_IN_PLACE, v, (int)n, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
}

// begin_right forgets how points were classed, and end_right adds up what ranks say.
static void begin_right(void) { me.asked = me.right = 0; }

static void end_right(void)
{
	add_up(&me.asked, 1);
	add_up(&me.right, 1);
}

static void classed(const struct point *p, int as)
{
	me.asked++;
	me.right += as == (int)p->class;
}

// first_of_each gives the first point of each class, which the first records are.
static void first_of_each(const char *set, struct point first[CLASSES])
{
	size_t size = CLASSES * sizeof *first;
	struct batch b;
	if (me.rank == 0 && is_file(set)) {
		int fd = open(set, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || pread(fd, first, size, 0) != (ssize_t)size)
			die("%s: no %d records", set, CLASSES);
		close(fd);
	} else if (me.rank == 0) {
		batch_of(&b, set, 0, 0);
		if (b.size < size)
			die("%s: has fewer than %d records", b.path, CLASSES);
		memcpy(first, b.data, size);
		batch_close(&b);
	}
	MPI_Bcast(first, (int)size, MPI_BYTE, 0, MPI_COMM_WORLD);
}

// K-means. Centres are in columns, so that all of them are compared at once.
static struct {
	double centre[FEATURES][CLASSES];
	int64_t sum[FEATURES][CLASSES], count[CLASSES];
} means;

static void cluster(const struct point *p, size_t n)
{
	for (; n > 0; n--, p++) {
		double far[CLASSES] = {0};
		int best = 0;
		for (int i = 0; i < FEATURES; i++)
			for (int k = 0; k < CLASSES; k++)
				far[k] += (p->x[i] - means.centre[i][k]) * (p->x[i] - means.centre[i][k]);
		for (int k = 1; k < CLASSES; k++)
			best = far[k] < far[best] ? k : best;
		for (int i = 0; i < FEATURES; i++)
			means.sum[i][best] += (int64_t)p->x[i];
		means.count[best]++;
		classed(p, best);
	}
}

static uint64_t kmeans(void)
{
	struct point first[CLASSES];
	if (me.epoch == 0) {
		first_of_each(me.sets[0], first);
		for (int i = 0; i < FEATURES; i++)
			for (int k = 0; k < CLASSES; k++)
				means.centre[i][k] = first[k].x[i];
	}
	memset(means.sum, 0, sizeof means.sum);
	memset(means.count, 0, sizeof means.count);
	pass(me.sets[0], cluster);
	add_up(means.sum[0], FEATURES * CLASSES);
	add_up(means.count, CLASSES);
	for (int i = 0; i < FEATURES; i++)
		for (int k = 0; k < CLASSES; k++)
			if (means.count[k])
				means.centre[i][k] = (double)means.sum[i][k] / (double)means.count[k];
	return xxh64(&means, sizeof means);
}

// LDA by expectation and maximisation: what a document is about is looked for anew
// in each epoch, from no idea on, with the topics of the epoch before.
static struct {
	double word[FEATURES][CLASSES]; // how likely it is in each topic
	int64_t found[FEATURES][CLASSES];
} topics;

enum { ROUNDS = 2, UNIT = 1 << 20 };

static void read_documents(const struct point *p, size_t n)
{
	for (; n > 0; n--, p++) {
		double about[CLASSES], share[FEATURES][CLASSES];
		for (int k = 0; k < CLASSES; k++)
			about[k] = 1.0 / CLASSES;
		for (int round = 0; round < ROUNDS; round++) {
			double all = 0, next[CLASSES] = {0};
			for (int i = 0; i < FEATURES; i++) {
				double total = 0;
				for (int k = 0; k < CLASSES; k++)
					total += share[i][k] = topics.word[i][k] * about[k];
				for (int k = 0; k < CLASSES; k++)
					next[k] += share[i][k] *= p->x[i] / total;
				all += p->x[i];
			}
			for (int k = 0; k < CLASSES; k++)
				about[k] = all > 0 ? next[k] / all : about[k];
		}
		int most = 0;
		for (int k = 1; k < CLASSES; k++)
			most = about[k] > about[most] ? k : most;
		for (int i = 0; i < FEATURES; i++)
			for (int k = 0; k < CLASSES; k++)
				topics.found[i][k] += (int64_t)(share[i][k] * UNIT);
		classed(p, most);
	}
}

// set_topics makes likelihoods of how often words were found, and a bit more.
static void set_topics(void)
{
	for (int k = 0; k < CLASSES; k++) {
		double all = 0;
		for (int i = 0; i < FEATURES; i++)
			all += (double)topics.found[i][k] + UNIT;
		for (int i = 0; i < FEATURES; i++)
			topics.word[i][k] = ((double)topics.found[i][k] + UNIT) / all;
	}
}

static uint64_t lda(void)
{
	struct point first[CLASSES];
	if (me.epoch == 0) {
		first_of_each(me.sets[0], first);
		for (int i = 0; i < FEATURES; i++)
			for (int k = 0; k < CLASSES; k++)
				topics.found[i][k] = (int64_t)first[k].x[i] * UNIT;
		set_topics();
	}
	memset(topics.found, 0, sizeof topics.found);
	pass(me.sets[0], read_documents);
	add_up(topics.found[0], FEATURES * CLASSES);
	set_topics();
	return xxh64(&topics, sizeof topics);
}

// Logistic regression: is a point of the first half of the classes?
static struct {
	double weight[FEATURES + 1]; // the last is of no feature
	int64_t slope[FEATURES + 1], points;
} line;

static bool first_half(const struct point *p) { return p->class < CLASSES / 2; }
static double centred(float x) { return x / 16 - 1; }

static double likely(const struct point *p)
{
	double z = line.weight[FEATURES];
	for (int i = 0; i < FEATURES; i++)
		z += line.weight[i] * centred(p->x[i]);
	return 1 / (1 + exp(-z));
}

static void descend(const struct point *p, size_t n)
{
	line.points += (int64_t)n;
	for (; n > 0; n--, p++) {
		double off = first_half(p) - likely(p);
		for (int i = 0; i < FEATURES; i++)
			line.slope[i] += (int64_t)(off * centred(p->x[i]) * UNIT);
		line.slope[FEATURES] += (int64_t)(off * UNIT);
	}
}

static void validate(const struct point *p, size_t n)
{
	for (; n > 0; n--, p++) {
		me.asked++;
		me.right += (likely(p) > 0.5) == first_half(p);
	}
}

static uint64_t logreg(void)
{
	memset(line.slope, 0, sizeof line.slope);
	line.points = 0;
	pass(me.sets[0], descend);
	add_up(line.slope, FEATURES + 1);
	add_up(&line.points, 1);
	for (int i = 0; i <= FEATURES; i++)
		line.weight[i] += (double)line.slope[i] / UNIT / (double)line.points;
	pass(me.sets[1], validate);
	return xxh64(&line, sizeof line);
}

// Nearest neighbours. A neighbour is a number: how far it is, and its class.
static struct {
	float most[FEATURES]; // of each feature, in the raw sets
	struct point *query;  // of all ranks, the points of TEST that this epoch asks for
	uint64_t (*found)[NEAREST];
	size_t queries, room;
	uint64_t result;
} near;

static void weigh(const struct point *p, size_t n)
{
	for (; n > 0; n--, p++)
		for (int i = 0; i < FEATURES; i++)
			near.most[i] = p->x[i] > near.most[i] ? p->x[i] : near.most[i];
}

// gather takes one of some thousand points, others in each epoch, wherever they are.
static void gather(const struct point *p, size_t n)
{
	enum { ONE_OF = 1024 };
	for (; n > 0; n--, p++) {
		if (xxh64(p, sizeof *p) % ONE_OF != (uint64_t)me.epoch % ONE_OF)
			continue;
		if (near.queries == near.room) {
			near.room = 2 * near.room + 64;
			near.query = realloc(near.query, near.room * sizeof *p);
			if (!near.query)
				die("%zu points: out of memory", near.room);
		}
		near.query[near.queries++] = *p;
	}
}

// share_queries has all ranks know what each of them asks for.
static void share_queries(void)
{
	int own = (int)(near.queries * sizeof *near.query), size[me.ranks], from[me.ranks], all = 0;
	MPI_Allgather(&own, 1, MPI_INT, size, 1, MPI_INT, MPI_COMM_WORLD);
	for (int r = 0; r < me.ranks; all += size[r++])
		from[r] = all;
	struct point *every = allocate((size_t)all);
	MPI_Allgatherv(near.query, own, MPI_BYTE, every, size, from, MPI_BYTE, MPI_COMM_WORLD);
	free(near.query);
	near.query = every;
	near.queries = near.room = (size_t)all / sizeof *every;
	near.found = allocate(near.queries * sizeof *near.found);
	memset(near.found, 0xff, near.queries * sizeof *near.found);
}

static void keep_nearest(uint64_t found[NEAREST], uint64_t one)
{
	int at = NEAREST - 1;
	if (one >= found[at])
		return;
	for (; at > 0 && found[at - 1] > one; at--)
		found[at] = found[at - 1];
	found[at] = one;
}

static void compare(const struct point *p, size_t n)
{
	int32_t weight[FEATURES];
	for (int i = 0; i < FEATURES; i++)
		weight[i] = 64 / (1 + (int32_t)near.most[i]);
	for (; n > 0; n--, p++) {
		for (size_t q = 0; q < near.queries; q++) {
			int32_t far = 0;
			for (int i = 0; i < FEATURES; i++) {
				int32_t d = weight[i] * (int32_t)(p->x[i] - near.query[q].x[i]);
				far += d * d;
			}
			keep_nearest(near.found[q], (uint64_t)far << 8 | (uint64_t)p->class);
		}
	}
}

// vote puts together what ranks have found.
static void vote(void)
{
	size_t each = near.queries * NEAREST;
	uint64_t *all = allocate((size_t)me.ranks * each * sizeof *all);
	MPI_Allgather(near.found, (int)each, MPI_UINT64_T, all, (int)each, MPI_UINT64_T, MPI_COMM_WORLD);
	for (size_t q = 0; q < near.queries; q++) {
		uint64_t best[NEAREST];
		int votes[CLASSES] = {0}, most = 0;
		memset(best, 0xff, sizeof best);
		for (int r = 0; r < me.ranks; r++)
			for (int k = 0; k < NEAREST; k++)
				keep_nearest(best, all[(size_t)r * each + q * NEAREST + (size_t)k]);
		for (int k = 0; k < NEAREST; k++)
			votes[best[k] % CLASSES]++;
		for (int k = 1; k < CLASSES; k++)
			most = votes[k] > votes[most] ? k : most;
		near.result += xxh64(best, sizeof best) ^ xxh64(&near.query[q], sizeof near.query[q]);
		if (me.rank == 0)
			classed(&near.query[q], most);
	}
	free(all);
}

static uint64_t knn(void)
{
	if (me.epoch == 0) {
		pass(me.sets[0], weigh);
		pass(me.sets[1], weigh);
		MPI_Allreduce(MPI_IN_PLACE, near.most, FEATURES, MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD);
	}
	near.queries = 0;
	pass(me.sets[2], gather);
	share_queries();
	pass(me.sets[3], compare);
	vote();
	free(near.found);
	return near.result;
}

static const struct job {
	const char *name;
	int sets;
	uint64_t (*epoch)(void);
} jobs[] = {{"kmeans", 1, kmeans}, {"lda", 1, lda}, {"logreg", 2, logreg}, {"knn", 4, knn}};

static const struct job *job_of(const char *name)
{
	for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++)
		if (!strcmp(jobs[i].name, name))
			return &jobs[i];
	die("%s is none of kmeans, lda, logreg and knn", name);
}

// total_read adds up over all ranks what they have read.
static void total_read(void)
{
	uint64_t mine[3] = {me.records, me.bytes, me.sum}, all[3];
	MPI_Reduce(mine, all, 3, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	me.records = all[0];
	me.bytes = all[1];
	me.sum = all[2];
}

int main(int argc, char **argv)
{
	uint64_t result = 0;
	double first = 0, all = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &me.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &me.ranks);
	for (int c; (c = getopt(argc, argv, "e:")) != -1;) {
		if (c != 'e')
			exit(2);
		me.epochs = (int)number(optarg);
	}
	if (argc - optind < 2 || me.epochs < 1)
		usage("[-e EPOCHS] kmeans|lda|logreg|knn SET...");
	const struct job *job = job_of(argv[optind]);
	if (argc - optind - 1 != job->sets)
		die("%s goes through %d sets, not %d", job->name, job->sets, argc - optind - 1);
	me.sets = (const char **)argv + optind + 1;

	for (; me.epoch < me.epochs; me.epoch++) {
		MPI_Barrier(MPI_COMM_WORLD);
		uint64_t begin = now_ns();
		begin_right();
		result = job->epoch();
		end_right();
		double took = (double)(now_ns() - begin) / 1e9;
		first = me.epoch ? first : took;
		all += took;
	}
	total_read();
	if (me.rank == 0)
		printf("learn job=%s ranks=%d epochs=%d records=%lu bytes=%lu seconds=%.6f first=%.6f later=%.6f "
		       "right=%.4f result=%016lx sum=%016lx\n",
		       job->name, me.ranks, me.epochs, me.records, me.bytes, all, first,
		       me.epochs > 1 ? (all - first) / (me.epochs - 1) : 0,
		       me.asked ? (double)me.right / (double)me.asked : 0, result, me.sum);
	MPI_Finalize();
	return 0;
}
