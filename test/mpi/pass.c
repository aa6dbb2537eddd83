// pass: how fast a file goes by through a fresh mapping.
//
//   pass [-t] [-r PASSES] FILE
//
//   -t  touch a byte of every 4 KiB page, instead of summing all bytes
//
// A line for each pass, which is a fresh open, mmap, sum, munmap and close:
//
//   pass n= bytes= seconds= GB/s= sum=
#include <getopt.h>

#include "rankfs_test.h"

static uint64_t touch(const unsigned char *p, size_t n)
{
	uint64_t sum = 0;
	for (size_t at = 0; at < n; at += PAGE)
		sum += p[at];
	return sum;
}

static void pass(const char *path, uint64_t i, bool pages)
{
	struct stat st;
	uint64_t begin = now_ns();
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0)
		die("%s: %s", path, strerror(errno));
	size_t size = (size_t)st.st_size;
	if (size == 0)
		die("%s: is empty", path);
	const unsigned char *p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		die("%s: mmap: %s", path, strerror(errno));
	uint64_t sum = pages ? touch(p, size) : work_sum(p, size);
	munmap((void *)p, size);
	close(fd);
	double seconds = (double)(now_ns() - begin) / 1e9;
	printf("pass n=%lu bytes=%zu seconds=%.6f GB/s=%.3f sum=%016lx\n", i, size, seconds,
	       (double)size / 1e9 / seconds, sum);
}

int main(int argc, char **argv)
{
	uint64_t passes = 1;
	bool pages = false;
	for (int c; (c = getopt(argc, argv, "tr:")) != -1;) {
		switch (c) {
		case 't': pages = true; break;
		case 'r': passes = number(optarg); break;
		default: exit(2);
		}
	}
	if (argc - optind != 1)
		usage("[-t] [-r PASSES] FILE");
	for (uint64_t i = 0; i < passes; i++)
		pass(argv[optind], i, pages);
	return 0;
}
