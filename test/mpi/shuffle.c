// shuffle: processes write maps and read parts, by the shuffle pool or by plain files, as
// a program would that has no pool.
//
//   shuffle [-p P] [-m MAPS] [-r PARTS] [-b BYTES] [-w BYTES] [-s] [-t] [-f FIRST] write|read|both STAGE
//   shuffle [-p P] [-m MAPS] [-r PARTS] [-b BYTES] [-w BYTES] [-s] [-t] [-f FIRST] [-x] plain-write|plain-read|plain DIR
//
//   -p  processes, which divide maps and parts (2)
//   -m  maps (64), and -f the number of the first one (0)
//   -r  parts (1)
//   -b  bytes of a map (1 MiB)
//   -w  bytes of a write (1 MiB)
//   -s  by stdio, which writes 4 KiB at a time, as it takes them in pieces of 100 bytes
//   -t  maps are text, of a few thousand words
//   -x  plain: the XXH3 of each file, before it gets its name
//
// A stage is there already; a directory too. Plain files are a data file for each map and,
// of several parts, one of its offsets, renamed when they are whole, and a part is read by a pread of each
// data file. Readers sum the bytes. A line on stdout, with the time from the first write or
// open to the last rename or byte, how long a map took from its create to its rename, and
// the longest time that one took, or one part:
//
//   shuffle mode= maps= parts= bytes= seconds= GB/s= maps/s= p50_ns= p99_ns= longest_ns= sum=
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "../../include/rankfs.h"
#include "rankfs_test.h"
#include "record.h"

static int processes = 2;
static uint64_t maps = 64, first, parts = 1, bytes = 1 << 20, chunk = 1 << 20;
static bool by_stdio, as_text, hashed, plain, writes, reads;
static const char *dir;
static uint64_t *took; // by map, and then by part
static unsigned char *content;

// cut is where a part begins in a map.
static uint64_t cut(uint64_t part)
{
	return part * bytes / parts / 8 * 8 + (part == parts ? bytes % 8 : 0);
}

// fill writes the content of a map to a file.
static void fill(int fd, const char *path)
{
	if (!by_stdio) {
		for (uint64_t at = 0, n; at < bytes; at += n) {
			n = bytes - at < chunk ? bytes - at : chunk;
			if (rankfs_write_all(fd, content + at, n))
				die("%s: %s", path, strerror(errno));
		}
		return;
	}
	FILE *f = fdopen(dup(fd), "w");
	if (!f)
		die("%s: %s", path, strerror(errno));
	setvbuf(f, NULL, _IOFBF, 4096);
	for (uint64_t at = 0, n; at < bytes; at += n) {
		n = bytes - at < 100 ? bytes - at : 100;
		if (fwrite(content + at, 1, n, f) != n)
			die("%s: %s", path, strerror(errno));
	}
	if (fclose(f) != 0)
		die("%s: %s", path, strerror(errno));
}

static void commit_map(uint64_t map)
{
	struct rankfs_attempt a;
	if (rankfs_begin(&a, dir, map, 0, parts))
		die("%s: map %lu: %s", dir, map, strerror(errno));
	fill(a.fd, a.path);
	for (a.ended = 1; a.ended <= parts; a.ended++)
		a.offsets[a.ended] = cut(a.ended);
	a.ended = parts;
	a.size = bytes;
	if (rankfs_commit(&a))
		die("%s: commit: %s", a.path, strerror(errno));
}

// file_of is the path of a plain map.
static void file_of(char path[PATH_MAX], uint64_t map, const char *end)
{
	if (rankfs_path(path, "%s/map-%06llu%s", dir, (unsigned long long)map, end))
		die("%s: %s", dir, strerror(errno));
}

static int create(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		die("%s: %s", path, strerror(errno));
	return fd;
}

static void hash(int fd, const char *path)
{
	if (bytes == 0)
		return;
	void *p = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		die("%s: mmap: %s", path, strerror(errno));
	volatile uint64_t sum = XXH3_64bits(p, bytes); // so that it is not left out
	(void)sum;
	munmap(p, bytes);
}

static void write_plain(uint64_t map)
{
	char data[PATH_MAX], idx[PATH_MAX], to[PATH_MAX];
	uint64_t *offsets = allocate((parts + 1) * sizeof *offsets);
	file_of(data, map, ".new");
	file_of(idx, map, ".idx");
	file_of(to, map, "");
	for (uint64_t p = 0; p <= parts; p++)
		offsets[p] = cut(p);
	int fd = create(data);
	fill(fd, data);
	if (hashed)
		hash(fd, data);
	close(fd);
	if (parts > 1) {
		fd = create(idx);
		if (rankfs_write_all(fd, offsets, (parts + 1) * sizeof *offsets))
			die("%s: %s", idx, strerror(errno));
		close(fd);
	}
	if (rename(data, to))
		die("%s: %s", data, strerror(errno));
	free(offsets);
}

static void read_part(struct pair *me, uint64_t part)
{
	struct rankfs_batch b;
	if (rankfs_part(&b, dir, part))
		die("%s: part %lu: %s", dir, part, strerror(errno));
	if (b.records != maps)
		die("%s: part %lu is of %zu maps", dir, part, b.records);
	me->sum += work_bytes(b.data, b.size);
	me->bytes += b.size;
	rankfs_unmap(&b);
}

static void read_all(int fd, void *to, size_t size, uint64_t off, const char *path)
{
	char *p = to;
	while (size > 0) {
		ssize_t n = pread(fd, p, size, (off_t)off);
		if (n <= 0)
			die("%s: read at %lu: %s", path, off, n < 0 ? strerror(errno) : "it is too short");
		p += n;
		off += (uint64_t)n;
		size -= (size_t)n;
	}
}

static void read_plain(struct pair *me, struct buffer *piece, uint64_t part)
{
	for (uint64_t map = first; map < first + maps; map++) {
		char path[PATH_MAX];
		uint64_t at[2] = {0, bytes};
		int fd;
		if (parts > 1) {
			file_of(path, map, ".idx");
			fd = open(path, O_RDONLY | O_CLOEXEC);
			if (fd < 0)
				die("%s: %s", path, strerror(errno));
			read_all(fd, at, sizeof at, part * sizeof *at, path);
			close(fd);
		}
		if (at[1] == at[0])
			continue;
		buffer_grow(piece, at[1] - at[0]);
		file_of(path, map, "");
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			die("%s: %s", path, strerror(errno));
		read_all(fd, piece->p, at[1] - at[0], at[0], path);
		close(fd);
		me->sum += work_bytes(piece->p, at[1] - at[0]);
		me->bytes += at[1] - at[0];
	}
}

static void work(struct pairs *all, int index, void *unused)
{
	(void)unused;
	struct pair *me = &all->each[index];
	struct buffer piece = {0};
	if (plain && reads)
		buffer_grow(&piece, bytes / parts + 8);
	wait_start(all);
	me->begin = now_ns();
	for (uint64_t i = (uint64_t)index; writes && i < maps; i += (uint64_t)processes) {
		uint64_t begin = now_ns();
		if (plain)
			write_plain(first + i);
		else
			commit_map(first + i);
		took[i] = now_ns() - begin;
		me->cycles++;
		me->bytes += reads ? 0 : bytes;
	}
	if (writes && reads && plain)
		wait_start(all); // a part of the pool waits by itself
	for (uint64_t i = (uint64_t)index; reads && i < parts; i += (uint64_t)processes) {
		uint64_t begin = now_ns();
		if (plain)
			read_plain(me, &piece, i);
		else
			read_part(me, i);
		took[maps + i] = now_ns() - begin;
	}
	me->end = now_ns();
}

// fill_text fills a map with lines of words, of which some are frequent.
static void fill_text(unsigned char *p)
{
	for (uint64_t i = 0, at = 0; at < bytes; i++) {
		uint64_t r = mix(i), word = (r & 4095) * (r >> 12 & 4095) >> 12;
		for (uint64_t k = 0; k < 2 + mix(word) % 9 && at < bytes; k++)
			p[at++] = 'a' + mix(word << 4 | k) % 26;
		if (at < bytes)
			p[at++] = i % 12 ? ' ' : '\n';
	}
}

int main(int argc, char **argv)
{
	const char *options = "[-p P] [-m MAPS] [-f FIRST] [-r PARTS] [-b BYTES] [-w BYTES] [-s] [-t] [-x] "
			   "write|read|both|plain-write|plain-read|plain DIR";
	for (int c; (c = getopt(argc, argv, "p:m:f:r:b:w:stx")) != -1;) {
		switch (c) {
		case 'p': processes = (int)number(optarg); break;
		case 'm': maps = number(optarg); break;
		case 'f': first = number(optarg); break;
		case 'r': parts = number(optarg); break;
		case 'b': bytes = number(optarg); break;
		case 'w': chunk = number(optarg); break;
		case 's': by_stdio = true; break;
		case 't': as_text = true; break;
		case 'x': hashed = true; break;
		default: exit(2);
		}
	}
	if (argc - optind != 2 || processes < 1 || maps == 0 || parts == 0 || chunk == 0)
		usage(options);
	const char *mode = argv[optind];
	dir = argv[optind + 1];
	plain = strncmp(mode, "plain", 5) == 0;
	writes = !strcmp(mode, "write") || !strcmp(mode, "both") || !strcmp(mode, "plain-write") || !strcmp(mode, "plain");
	reads = !strcmp(mode, "read") || !strcmp(mode, "both") || !strcmp(mode, "plain-read") || !strcmp(mode, "plain");
	if ((!writes && !reads) || (hashed && !plain))
		usage(options);
	took = mmap(NULL, (maps + parts) * sizeof *took, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (took == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	struct buffer all_content = {0};
	buffer_grow(&all_content, bytes + 8);
	content = all_content.p;
	if (as_text)
		fill_text(all_content.p);
	for (uint64_t i = 0; !as_text && i < bytes / 8; i++)
		((uint64_t *)all_content.p)[i] = (i + 1) * 0x9e3779b97f4a7c15u;
	struct pairs *all = fork_pairs(processes, work, NULL);
	if (!all)
		return 1;
	struct pair t = total_of(all, processes);
	double seconds = (double)(t.end - t.begin) / 1e9;
	uint64_t longest = 0;
	for (uint64_t i = 0; i < maps + parts; i++)
		longest = took[i] > longest ? took[i] : longest;
	sort(took, maps);
	printf("shuffle mode=%s maps=%lu parts=%lu bytes=%lu seconds=%.6f GB/s=%.3f maps/s=%.1f p50_ns=%lu p99_ns=%lu "
	       "longest_ns=%lu sum=%016lx\n", mode, maps, parts, t.bytes, seconds, (double)t.bytes / 1e9 / seconds,
	       (double)maps / seconds, percentile(took, maps, 50), percentile(took, maps, 99), longest, t.sum);
	return 0;
}
