// What a rank does with a batch, and how long it takes: the same code on both
// sides of every comparison.
#ifndef RANKFS_WORK_H
#define RANKFS_WORK_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define PAGE 4096

// die prints a message and ends the process.
__attribute__((noreturn, format(printf, 1, 2), unused)) static void die(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

// usage prints how the program is called and ends the process.
__attribute__((noreturn, unused)) static void usage(const char *text)
{
	fprintf(stderr, "use %s %s\n", program_invocation_short_name, text);
	exit(2);
}

static inline uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// number reads a decimal and ends the process if s is none.
static inline uint64_t number(const char *s)
{
	char *end;
	errno = 0;
	uint64_t n = strtoull(s, &end, 10);
	if (errno != 0 || end == s || *end != '\0' || *s == '-')
		die("%s is not a number", s);
	return n;
}

static inline void *allocate(size_t n)
{
	void *p = malloc(n ? n : 1);
	if (!p)
		die("%zu bytes: out of memory", n);
	return p;
}

// A buffer is private memory to copy batches to.
struct buffer {
	void *p;
	size_t size;
};

// buffer_grow makes it n bytes at least: huge pages, all of them faulted in,
// with some to spare for batches that differ a little.
static inline void buffer_grow(struct buffer *b, size_t n)
{
	if (n <= b->size)
		return;
	free(b->p);
	b->size = n + n / 8;
	if (posix_memalign(&b->p, 2 << 20, b->size) != 0)
		die("%zu bytes: out of memory", b->size);
	madvise(b->p, b->size, MADV_HUGEPAGE);
	memset(b->p, 1, b->size);
}

typedef uint64_t word __attribute__((aligned(1), may_alias));

// work_sum adds up all 8-byte words; the bytes that are left over count as one
// more word. Eight sums at a time keep the adders busy.
static inline uint64_t work_sum(const void *p, size_t n)
{
	const word *w = p;
	size_t words = n / 8, i = 0;
	uint64_t s[8] = {0}, last = 0;
	for (; i + 8 <= words; i += 8)
		for (int k = 0; k < 8; k++)
			s[k] += w[i + k];
	for (; i < words; i++)
		s[0] += w[i];
	memcpy(&last, w + words, n % 8);
	return s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7] + last;
}

// work_bytes adds up all bytes, so it does not matter where a record begins.
static inline uint64_t work_bytes(const void *p, size_t n)
{
	const unsigned char *bytes = p;
	uint64_t sum = 0;
	size_t i = 0;
#ifdef __SSE2__
	__m128i lanes[4] = {0};
	for (; i + 64 <= n; i += 64)
		for (int k = 0; k < 4; k++) {
			__m128i v = _mm_loadu_si128((const __m128i *)(bytes + i) + k);
			lanes[k] = _mm_add_epi64(lanes[k], _mm_sad_epu8(v, _mm_setzero_si128()));
		}
	for (int k = 0; k < 4; k++)
		sum += (uint64_t)lanes[k][0] + (uint64_t)lanes[k][1];
#endif
	for (; i < n; i++)
		sum += bytes[i];
	return sum;
}

// A mode says how a batch is consumed.
enum mode { COPY = 'c', COPY_SUM = 's', IN_PLACE = 'i' };

static inline const char *mode_name(enum mode m)
{
	return m == COPY ? "copy" : m == COPY_SUM ? "copy+sum" : "in-place";
}

// consume does to a batch what the mode says, and returns its sum. A mere copy
// returns its last byte, so that it cannot be left out.
static inline uint64_t consume(enum mode m, const void *batch, size_t n, struct buffer *copy)
{
	if (m == IN_PLACE)
		return work_sum(batch, n);
	if (n == 0)
		return 0;
	buffer_grow(copy, n);
	memcpy(copy->p, batch, n);
	return m == COPY_SUM ? work_sum(copy->p, n) : ((unsigned char *)copy->p)[n - 1];
}

static inline int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static inline void sort(uint64_t *v, size_t n)
{
	qsort(v, n, sizeof *v, by_value);
}

// percentile takes sorted values; the nearest rank, 0 if there are none.
static inline uint64_t percentile(const uint64_t *v, size_t n, double p)
{
	size_t rank = (size_t)(p / 100 * (double)n);
	return n == 0 ? 0 : v[rank < n ? rank : n - 1];
}

// A pair is one consumer process of several that start together.
struct pair {
	pid_t process;
	uint64_t cycles, bytes, sum;
	uint64_t begin, end;     // ns
	uint64_t p50, p90, p99;  // ns of a cycle
};

struct pairs {
	pthread_barrier_t start;
	struct pair each[];
};

// fork_pairs runs body in n processes. It calls wait_start once it is ready to
// go, and then fills its pair. The result is NULL if one of them failed.
static inline struct pairs *fork_pairs(int n, void (*body)(struct pairs *, int index, void *arg), void *arg)
{
	size_t size = sizeof(struct pairs) + (size_t)n * sizeof(struct pair);
	struct pairs *all = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	pthread_barrierattr_t shared;
	pthread_barrierattr_init(&shared);
	pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&all->start, &shared, (unsigned)n);
	for (int i = 0; i < n; i++) {
		pid_t child = fork();
		if (child < 0)
			die("fork: %s", strerror(errno));
		if (child == 0) {
			body(all, i, arg);
			exit(0);
		}
		all->each[i].process = child;
	}
	// One that fails would leave the others at the barrier: end them.
	int failed = 0;
	for (int left = n, status; left > 0; left--) {
		wait(&status);
		if (status == 0 || failed++)
			continue;
		for (int i = 0; i < n; i++)
			kill(all->each[i].process, SIGTERM);
	}
	return failed ? NULL : all;
}

// wait_start returns in all pairs at once.
static inline void wait_start(struct pairs *all)
{
	pthread_barrier_wait(&all->start);
}

// pair_done notes how long each cycle took.
static inline void pair_done(struct pair *p, uint64_t *took, uint64_t cycles)
{
	sort(took, cycles);
	p->cycles = cycles;
	p->p50 = percentile(took, cycles, 50);
	p->p90 = percentile(took, cycles, 90);
	p->p99 = percentile(took, cycles, 99);
}

// total_of is what all did together, from the first begin to the last end.
static inline struct pair total_of(const struct pairs *all, int n)
{
	struct pair t = {.begin = UINT64_MAX};
	for (int i = 0; i < n; i++) {
		const struct pair *p = &all->each[i];
		t.cycles += p->cycles;
		t.bytes += p->bytes;
		t.sum += p->sum;
		t.begin = p->begin < t.begin ? p->begin : t.begin;
		t.end = p->end > t.end ? p->end : t.end;
	}
	return t;
}

// print_pairs prints a line for each pair and one for all.
static inline void print_pairs(const char *what, enum mode m, const struct pairs *all, int n)
{
	for (int i = 0; i < n; i++) {
		const struct pair *p = &all->each[i];
		double seconds = (double)(p->end - p->begin) / 1e9;
		printf("%s pair=%d mode=%s cycles=%lu bytes=%lu seconds=%.6f GB/s=%.3f p50_us=%.1f p90_us=%.1f p99_us=%.1f sum=%016lx\n",
		       what, i, mode_name(m), p->cycles, p->bytes, seconds, (double)p->bytes / 1e9 / seconds,
		       (double)p->p50 / 1e3, (double)p->p90 / 1e3, (double)p->p99 / 1e3, p->sum);
	}
	struct pair t = total_of(all, n);
	double seconds = (double)(t.end - t.begin) / 1e9;
	printf("%s pairs=%d mode=%s cycles=%lu bytes=%lu seconds=%.6f GB/s=%.3f sum=%016lx\n", what, n,
	       mode_name(m), t.cycles, t.bytes, seconds, (double)t.bytes / 1e9 / seconds, t.sum);
}

#endif
