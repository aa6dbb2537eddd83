// cycle: what it takes to open, stat, map, touch, unmap and close a file.
//
//   cycle [-b] [-p] [-r ROUNDS] [-n COUNT] DIR | FILE...
//
//   -b         also by call: the median of each, in a second run
//   -p         touch every page, not only the first byte
//   -r ROUNDS  go through the files so often (default 1)
//   -n COUNT   of a directory, take batch-000000 and on, so many at most
//
//   cycle files= rounds= cycles= bytes= min_ns= p50_ns= p90_ns= p99_ns= mean_ns=
//   cycle calls p50_open_ns= p50_fstat_ns= p50_mmap_ns= p50_touch_ns= p50_munmap_ns= p50_close_ns=
#include <getopt.h>

#include "rankfs_test.h"

enum call { OPEN, FSTAT, MMAP, TOUCH, MUNMAP, CLOSE, CALLS };
static const char *const call_name[CALLS] = {"open", "fstat", "mmap", "touch", "munmap", "close"};

static struct list calls[CALLS];
static bool by_call, each_page;
static uint64_t bytes;

// mark notes the time of a call. Without -b the clock is not read.
static inline void mark(enum call c, uint64_t *since)
{
	if (!by_call)
		return;
	uint64_t now = now_ns();
	list_add(&calls[c], now - *since);
	*since = now_ns();
}

static uint64_t cycle(const char *path)
{
	static volatile unsigned char sink;
	struct stat st;
	uint64_t begin = now_ns(), since = begin;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		die("%s: %s", path, strerror(errno));
	mark(OPEN, &since);
	if (fstat(fd, &st) != 0)
		die("%s: %s", path, strerror(errno));
	mark(FSTAT, &since);
	size_t size = (size_t)st.st_size;
	if (size > 0) {
		const unsigned char *p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
		if (p == MAP_FAILED)
			die("%s: mmap: %s", path, strerror(errno));
		mark(MMAP, &since);
		for (size_t at = 0; at < (each_page ? size : 1); at += PAGE)
			sink = p[at];
		mark(TOUCH, &since);
		munmap((void *)p, size);
		mark(MUNMAP, &since);
	}
	close(fd);
	mark(CLOSE, &since);
	(void)sink;
	bytes += size;
	return now_ns() - begin;
}

// batches_of lists batch-000000 and on.
static char **batches_of(const char *directory, uint64_t count, size_t *n)
{
	char **paths = NULL, path[PATH_MAX];
	for (*n = 0; *n < count; ++*n) {
		batch_path(path, directory, *n);
		if (access(path, F_OK) != 0)
			break;
		if ((*n & (*n - 1)) == 0)
			paths = realloc(paths, (*n ? 2 * *n : 1) * sizeof *paths);
		paths[*n] = strdup(path);
	}
	return paths;
}

static struct list rounds_of(char **paths, size_t n, uint64_t rounds)
{
	struct list took = {0};
	for (uint64_t r = 0; r < rounds; r++)
		for (size_t i = 0; i < n; i++)
			list_add(&took, cycle(paths[i]));
	return took;
}

int main(int argc, char **argv)
{
	uint64_t rounds = 1, count = UINT64_MAX, total = 0;
	bool calls_too = false;
	struct stat st;
	for (int c; (c = getopt(argc, argv, "bpr:n:")) != -1;) {
		switch (c) {
		case 'b': calls_too = true; break;
		case 'p': each_page = true; break;
		case 'r': rounds = number(optarg); break;
		case 'n': count = number(optarg); break;
		default: exit(2);
		}
	}
	char **paths = argv + optind;
	size_t n = (size_t)(argc - optind);
	if (n == 0)
		usage("[-b] [-p] [-r ROUNDS] [-n COUNT] DIR | FILE...");
	if (stat(paths[0], &st) == 0 && S_ISDIR(st.st_mode))
		paths = batches_of(argv[optind], count, &n);
	if (n == 0 || rounds == 0)
		die("%s: no batches to open", argv[optind]);

	struct list took = rounds_of(paths, n, rounds);
	sort(took.v, took.n);
	for (size_t i = 0; i < took.n; i++)
		total += took.v[i];
	printf("cycle files=%zu rounds=%lu cycles=%zu bytes=%lu min_ns=%lu p50_ns=%lu p90_ns=%lu p99_ns=%lu mean_ns=%lu\n",
	       n, rounds, took.n, bytes, took.v[0], percentile(took.v, took.n, 50),
	       percentile(took.v, took.n, 90), percentile(took.v, took.n, 99), total / took.n);
	if (!calls_too)
		return 0;
	by_call = true;
	rounds_of(paths, n, rounds);
	printf("cycle calls");
	for (enum call c = 0; c < CALLS; c++) {
		sort(calls[c].v, calls[c].n);
		printf(" p50_%s_ns=%lu", call_name[c], percentile(calls[c].v, calls[c].n, 50));
	}
	printf("\n");
	return 0;
}
