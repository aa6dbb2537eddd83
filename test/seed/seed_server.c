// seed_server: the supplier of the paper "Spark as Data Supplier for MPI Deep
// Learning Processes", section 4.1, written in C to be compared with: no JVM, no
// garbage, all batches in memory before the clock starts.
//
//   seed_server MAPS PIPES BYTES CYCLES [-m MIB]
//
// It makes the mapped files and pipes that the two lists name, a thread for
// each pair, and answers CYCLES requests of each with a batch of BYTES; later
// ones with status 1, end of data. A pair ends when its client says so, and its
// pipe is removed. Clients may be started before it is ready: they wait for the
// pipe to appear.
//
//   -m MIB  private memory for the batches of a pair, which are given out round
//           and round (default 512): more than the processor's caches hold
//
//   seed_server ready pairs=         once all memory is in place
//   seed_server pair= cycles= bytes= copy_seconds= copy_GB/s= sum=
//
// sum is that of all batches given out: what a client with -s or -i must get.
#include <getopt.h>

#include "pipes.h"

static size_t batch_bytes;
static uint64_t cycles;
static pthread_barrier_t ready;

struct supply {
	pthread_t thread;
	char *pipe, *map_path;
	unsigned char *map;
	struct buffer source; // batches, one behind the other
	size_t batches;
	uint64_t *sums; // of each
	uint64_t served, sum, copy_ns;
};

// create_map makes the mapped file, and takes away a pipe that was left over: a
// client that finds the pipe finds all else in place.
static void create_map(struct supply *s)
{
	struct stat st;
	if (lstat(s->pipe, &st) == 0 && S_ISFIFO(st.st_mode))
		unlink(s->pipe);
	int fd = open(s->map_path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || ftruncate(fd, (off_t)batch_bytes) != 0)
		die("%s: %s", s->map_path, strerror(errno));
	s->map = mmap(NULL, batch_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (s->map == MAP_FAILED)
		die("%s: mmap: %s", s->map_path, strerror(errno));
	close(fd);
	memset(s->map, 0, batch_bytes);
}

static void make_batches(struct supply *s, int pair, size_t memory)
{
	uint64_t x = 0x9e3779b97f4a7c15u * (uint64_t)(pair + 1);
	s->batches = memory / batch_bytes < 2 ? 2 : memory / batch_bytes;
	if (s->batches > cycles)
		s->batches = cycles ? cycles : 1;
	buffer_grow(&s->source, s->batches * batch_bytes);
	for (size_t i = 0; i + 8 <= s->batches * batch_bytes; i += 8) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memcpy((char *)s->source.p + i, &x, 8);
	}
	s->sums = malloc(s->batches * sizeof *s->sums);
	for (size_t k = 0; k < s->batches; k++)
		s->sums[k] = work_sum((char *)s->source.p + k * batch_bytes, batch_bytes);
}

// answer writes the next batch, if there is one, and its notification.
static void answer(struct supply *s, const struct request *r)
{
	struct notification n = {.sequence = r->sequence, .status = STATUS_END};
	if (s->served < cycles) {
		size_t k = s->served++ % s->batches;
		uint64_t begin = now_ns();
		memcpy(s->map, (char *)s->source.p + k * batch_bytes, batch_bytes);
		s->copy_ns += now_ns() - begin;
		s->sum += s->sums[k];
		n.total = batch_bytes;
		n.sizes[6] = batch_bytes < UINT32_MAX ? (uint32_t)batch_bytes : UINT32_MAX;
		n.status = STATUS_OK;
	}
	send_message(s->pipe, &n, sizeof n);
}

static void *supply(void *arg)
{
	struct supply *s = arg;
	struct request r;
	pthread_barrier_wait(&ready);
	for (;;) {
		receive(s->pipe, &r, sizeof r);
		if (r.sequence == CLOSE_PAIR)
			return NULL;
		answer(s, &r);
	}
}

int main(int argc, char **argv)
{
	size_t memory = 512u << 20;
	for (int c; (c = getopt(argc, argv, "m:")) != -1;) {
		if (c != 'm')
			exit(2);
		memory = number(optarg) << 20;
	}
	if (argc - optind != 4)
		usage("MAPS PIPES BYTES CYCLES [-m MIB]");
	const char *maps = argv[optind], *pipes = argv[optind + 1];
	batch_bytes = number(argv[optind + 2]);
	cycles = number(argv[optind + 3]);
	if (batch_bytes == 0)
		die("BYTES must not be 0");

	int n = 0;
	while (line_of(maps, n) && line_of(pipes, n))
		n++;
	if (n == 0 || line_of(maps, n) || line_of(pipes, n))
		die("%s and %s must have as many lines, one at least", maps, pipes);
	struct supply *all = calloc((size_t)n, sizeof *all);
	pthread_barrier_init(&ready, NULL, (unsigned)n + 1);
	for (int i = 0; i < n; i++) {
		all[i].map_path = line_of(maps, i);
		all[i].pipe = line_of(pipes, i);
		create_map(&all[i]);
		make_batches(&all[i], i, memory);
		pthread_create(&all[i].thread, NULL, supply, &all[i]);
	}
	for (int i = 0; i < n; i++)
		if (mkfifo(all[i].pipe, 0644) != 0)
			die("%s: %s", all[i].pipe, strerror(errno));
	printf("seed_server ready pairs=%d\n", n);
	fflush(stdout);
	pthread_barrier_wait(&ready);
	for (int i = 0; i < n; i++) {
		struct supply *s = &all[i];
		pthread_join(s->thread, NULL);
		unlink(s->pipe);
		uint64_t bytes = s->served * batch_bytes;
		printf("seed_server pair=%d cycles=%lu bytes=%lu copy_seconds=%.6f copy_GB/s=%.3f sum=%016lx\n", i,
		       s->served, bytes, (double)s->copy_ns / 1e9, (double)bytes / (double)s->copy_ns, s->sum);
	}
	return 0;
}
