// seed_client: the MPI side of the paper's data supply cycle (protocol.h), for
// seed_server or `rankfs supply`.
//
//   seed_client MAPS PIPES INDEX CYCLES [-c|-s|-i] [-p PAIRS]
//
// It uses line INDEX of both lists, and asks for batch after batch until it has
// taken CYCLES of them or the data are at their end.
//
//   -c, -s, -i  copy it out; copy it out and sum the copy; sum it in place
//   -p PAIRS    as many processes at once, from line INDEX on, which begin
//               together
//
// The clock starts when all have mapped their file. It stops after the last
// batch of each. The pair is then closed.
//
//   seed_client pair= mode= cycles= bytes= seconds= GB/s= p50_us= p90_us= p99_us= sum=
//   seed_client pairs= mode= cycles= bytes= seconds= GB/s= sum=
#include <getopt.h>

#include "pipes.h"

static struct {
	const char *maps, *pipes;
	int index, pairs;
	uint64_t cycles;
	enum mode mode;
} opt = {.mode = COPY, .pairs = 1};

struct map {
	const char *path;
	const unsigned char *p;
	size_t size;
};

// map_file maps the whole file, again if the supplier made it longer.
static void map_file(struct map *m)
{
	struct stat st;
	int fd = open(m->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0)
		die("%s: %s", m->path, strerror(errno));
	if (m->p)
		munmap((void *)m->p, m->size);
	m->p = NULL;
	m->size = (size_t)st.st_size;
	if (m->size > 0) {
		m->p = mmap(NULL, m->size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
		if (m->p == MAP_FAILED)
			die("%s: mmap: %s", m->path, strerror(errno));
	}
	close(fd);
}

// wait_for_pipe gives a supplier that was started together with us its time.
static void wait_for_pipe(const char *pipe)
{
	for (int i = 0; access(pipe, F_OK) != 0; i++) {
		if (i == 6000)
			die("%s: %s", pipe, strerror(errno));
		usleep(10000);
	}
}

// ask makes one request and returns its answer, checked against the mapping.
static struct notification ask(const char *pipe, struct map *m, uint64_t sequence)
{
	struct request r = {sequence};
	struct notification n;
	send_message(pipe, &r, sizeof r);
	receive(pipe, &n, sizeof n);
	if (n.sequence != sequence || n.status > STATUS_END)
		die("%s: batch %lu: answer to %lu has status %u", pipe, sequence, n.sequence, n.status);
	if (n.status == STATUS_OK && (n.offset > m->size || n.total > m->size - n.offset))
		map_file(m);
	if (n.status == STATUS_OK && (n.offset > m->size || n.total > m->size - n.offset))
		die("%s: batch %lu: %lu bytes at %lu, but the mapped file has %zu", pipe, sequence, n.total,
		    n.offset, m->size);
	return n;
}

static void client(struct pairs *all, int index, void *unused)
{
	(void)unused;
	struct pair *me = &all->each[index];
	const char *pipe = line_of(opt.pipes, opt.index + index);
	struct map m = {.path = line_of(opt.maps, opt.index + index)};
	struct buffer copy = {0};
	uint64_t *took = calloc(opt.cycles, sizeof *took), i = 0;
	if (!pipe || !m.path)
		die("%s, %s: no line %d", opt.maps, opt.pipes, opt.index + index);
	wait_for_pipe(pipe);
	map_file(&m);
	buffer_grow(&copy, m.size);
	memset(took, 0, opt.cycles * sizeof *took);
	wait_start(all);
	uint64_t since = me->begin = now_ns();
	for (; i < opt.cycles; i++) {
		struct notification n = ask(pipe, &m, i);
		if (n.status == STATUS_END)
			break;
		me->sum += consume(opt.mode, m.p + n.offset, n.total, &copy);
		me->bytes += n.total;
		took[i] = now_ns() - since;
		since += took[i];
	}
	me->end = since;
	pair_done(me, took, i);
	struct request close_pair = {CLOSE_PAIR};
	send_message(pipe, &close_pair, sizeof close_pair);
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
	if (argc - optind != 4 || opt.pairs < 1)
		usage("MAPS PIPES INDEX CYCLES [-c|-s|-i] [-p PAIRS]");
	opt.maps = argv[optind];
	opt.pipes = argv[optind + 1];
	opt.index = (int)number(argv[optind + 2]);
	opt.cycles = number(argv[optind + 3]);
	struct pairs *all = fork_pairs(opt.pairs, client, NULL);
	if (!all)
		return 1;
	print_pairs("seed_client", opt.mode, all, opt.pairs);
	return 0;
}
