// cycle_consume: seed_client's work on the batch files of a rank.
//
//   cycle_consume DIR CYCLES [-c|-s|-i] [-p PAIRS]
//
// In every cycle the next batch of DIR is opened, mapped, taken in, unmapped
// and closed; after the last one comes the first again.
//
//   -c, -s, -i  copy it out; copy it out and sum the copy; sum it in place
//   -p PAIRS    as many processes at once, process i on DIR/rank-i
//
// It prints what seed_client prints, a line for each process and one for all:
//
//   cycle_consume pair= mode= cycles= bytes= seconds= GB/s= p50_us= p90_us= p99_us= sum=
//   cycle_consume pairs= mode= cycles= bytes= seconds= GB/s= sum=
#include <getopt.h>

#include "rankfs_test.h"

static struct {
	const char *directory;
	uint64_t cycles;
	enum mode mode;
	int pairs; // 0: DIR itself is the rank's
} opt = {.mode = COPY};

// first_size is the size of the first batch; no other is looked at before its
// turn comes.
static size_t first_size(const char *directory)
{
	char path[PATH_MAX];
	struct stat st;
	batch_path(path, directory, 0);
	if (stat(path, &st) != 0)
		die("%s: %s", path, strerror(errno));
	return (size_t)st.st_size;
}

static void consumer(struct pairs *all, int index, void *unused)
{
	(void)unused;
	struct pair *me = &all->each[index];
	uint64_t *took = allocate(opt.cycles * sizeof *took), step = 0;
	char directory[PATH_MAX];
	text error = "";
	struct batch b;
	snprintf(directory, sizeof directory, opt.pairs ? "%s/rank-%d" : "%s", opt.directory, index);
	struct buffer copy = {0};
	buffer_grow(&copy, first_size(directory));
	memset(took, 0, opt.cycles * sizeof *took);
	wait_start(all);
	uint64_t since = me->begin = now_ns();
	for (uint64_t i = 0; i < opt.cycles; i++) {
		bool have = batch_open(&b, directory, step, error);
		if (!have && !error[0])
			have = batch_open(&b, directory, step = 0, error);
		if (!have || !batch_map(&b, error))
			die("%s", error[0] ? error : "no batches");
		me->sum += consume(opt.mode, b.data, b.size, &copy);
		me->bytes += b.size;
		batch_close(&b);
		step++;
		took[i] = now_ns() - since;
		since += took[i];
	}
	me->end = since;
	pair_done(me, took, opt.cycles);
}

int main(int argc, char **argv)
{
	for (int c; (c = getopt(argc, argv, "csip:")) != -1;) {
		switch (c) {
		case 'c':
		case 's':
		case 'i': opt.mode = (enum mode)c; break;
		case 'p': opt.pairs = (int)number(optarg); break;
		default: exit(2);
		}
	}
	if (argc - optind != 2)
		usage("DIR CYCLES [-c|-s|-i] [-p PAIRS]");
	opt.directory = argv[optind];
	opt.cycles = number(argv[optind + 1]);
	int n = opt.pairs ? opt.pairs : 1;
	struct pairs *all = fork_pairs(n, consumer, NULL);
	if (!all)
		return 1;
	print_pairs("cycle_consume", opt.mode, all, n);
	return 0;
}
