// How a program opens the batches of a dataset and checks what it finds.
#ifndef RANKFS_TEST_H
#define RANKFS_TEST_H

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "work.h"

// A text is the first error of a rank; empty if there is none.
typedef char text[PATH_MAX + 256];

// fail writes an error unless there is one already, and returns false.
__attribute__((format(printf, 2, 3), unused)) static bool fail(text error, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	if (error[0] == '\0')
		vsnprintf(error, sizeof(text), format, args);
	va_end(args);
	return false;
}

// A batch is an open, mapped batch file and, if it was asked for, its idx.
struct batch {
	char path[PATH_MAX];
	int fd;
	size_t size;
	const unsigned char *data; // NULL if empty: nothing can be mapped then
	uint64_t *idx;             // records + 1 offsets
	uint64_t records;
	uint64_t repeats; // how many of them, at the end, are there for a second time
};

static inline void batch_path(char path[PATH_MAX], const char *directory, uint64_t step)
{
	if (snprintf(path, PATH_MAX, "%s/batch-%06lu", directory, step) >= PATH_MAX)
		die("%s: path too long", directory);
}

// batch_open opens a file and learns its size. It returns false with no error
// if there is no such file, which is how a rank learns that the epoch is over.
static inline bool batch_open(struct batch *b, const char *directory, uint64_t step, text error)
{
	struct stat st;
	memset(b, 0, sizeof *b);
	batch_path(b->path, directory, step);
	b->fd = open(b->path, O_RDONLY | O_CLOEXEC);
	if (b->fd < 0 && errno == ENOENT)
		return false;
	if (b->fd < 0)
		return fail(error, "%s: open: %s", b->path, strerror(errno));
	if (fstat(b->fd, &st) != 0)
		return fail(error, "%s: fstat: %s", b->path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return fail(error, "%s: is not a regular file", b->path);
	b->size = (size_t)st.st_size;
	return true;
}

static inline bool batch_map(struct batch *b, text error)
{
	if (b->size == 0)
		return true;
	void *p = mmap(NULL, b->size, PROT_READ, MAP_SHARED, b->fd, 0);
	if (p == MAP_FAILED)
		return fail(error, "%s: mmap: %s", b->path, strerror(errno));
	b->data = p;
	return true;
}

static inline void batch_close(struct batch *b)
{
	if (b->data)
		munmap((void *)b->data, b->size);
	if (b->fd >= 0)
		close(b->fd);
	free(b->idx);
	memset(b, 0, sizeof *b);
	b->fd = -1;
}

// read_whole reads a file of a known size; a byte more or less is an error.
static inline bool read_whole(int fd, const char *path, void *to, size_t size, text error)
{
	size_t have = 0;
	char more;
	while (have < size) {
		ssize_t n = pread(fd, (char *)to + have, size - have, (off_t)have);
		if (n < 0)
			return fail(error, "%s: read at %zu: %s", path, have, strerror(errno));
		if (n == 0)
			return fail(error, "%s: %zu bytes read, st_size is %zu", path, have, size);
		have += (size_t)n;
	}
	if (pread(fd, &more, 1, (off_t)size) != 0)
		return fail(error, "%s: is longer than its st_size of %zu", path, size);
	return true;
}

// batch_index reads the idx and holds it against the size of the batch.
static inline bool batch_index(struct batch *b, text error)
{
	char path[PATH_MAX + 4];
	struct stat st;
	snprintf(path, sizeof path, "%s.idx", b->path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0)
		return fail(error, "%s: %s", path, strerror(errno));
	size_t size = (size_t)st.st_size;
	b->idx = allocate(size);
	bool ok = read_whole(fd, path, b->idx, size, error);
	close(fd);
	if (!ok)
		return false;
	if (size < 8 || size % 8 != 0)
		return fail(error, "%s: size %zu is not that of offsets of 8 bytes", path, size);
	b->records = size / 8 - 1;
	if (b->idx[0] != 0)
		return fail(error, "%s: first offset is %lu, not 0", path, b->idx[0]);
	for (uint64_t i = 0; i < b->records; i++)
		if (b->idx[i] > b->idx[i + 1])
			return fail(error, "%s: offset %lu goes back, from %lu to %lu", path, i + 1,
				   b->idx[i], b->idx[i + 1]);
	if (b->idx[b->records] != b->size)
		return fail(error, "%s: last offset is %lu, but the batch has %zu bytes", path,
			   b->idx[b->records], b->size);
	return true;
}

// batch_repeats learns from the extended attribute how many records repeat.
static inline bool batch_repeats(struct batch *b, text error)
{
	char value[32];
	ssize_t n = fgetxattr(b->fd, "user.rankfs.repeats", value, sizeof value - 1);
	if (n < 0)
		return errno == ENODATA || errno == ENOTSUP ||
		       fail(error, "%s: user.rankfs.repeats: %s", b->path, strerror(errno));
	value[n] = '\0';
	b->repeats = strtoull(value, NULL, 10);
	if (b->repeats > b->records)
		return fail(error, "%s: %lu repeats among %lu records", b->path, b->repeats, b->records);
	return true;
}

// The XXH64 of n bytes, as published, with seed 0.
static inline uint64_t xxh64(const void *data, size_t n)
{
	const uint64_t p1 = 0x9e3779b185ebca87u, p2 = 0xc2b2ae3d27d4eb4fu, p3 = 0x165667b19e3779f9u,
		       p4 = 0x85ebca77c2b2ae63u, p5 = 0x27d4eb2f165667c5u;
#define ROTATE(x, r) ((x) << (r) | (x) >> (64 - (r)))
#define ROUND(acc, w) (ROTATE((acc) + (w) * p2, 31) * p1)
	const unsigned char *p = data, *end = p + n;
	uint64_t h = p5;
	if (n >= 32) {
		uint64_t v[4] = {p1 + p2, p2, 0, -p1};
		for (; end - p >= 32; p += 32)
			for (int k = 0; k < 4; k++)
				v[k] = ROUND(v[k], ((const word *)p)[k]);
		h = ROTATE(v[0], 1) + ROTATE(v[1], 7) + ROTATE(v[2], 12) + ROTATE(v[3], 18);
		for (int k = 0; k < 4; k++)
			h = (h ^ ROUND(0, v[k])) * p1 + p4;
	}
	h += n;
	for (; end - p >= 8; p += 8) {
		h ^= ROUND(0, *(const word *)p);
		h = ROTATE(h, 27) * p1 + p4;
	}
	if (end - p >= 4) {
		uint32_t w;
		memcpy(&w, p, 4);
		h ^= w * p1;
		h = ROTATE(h, 23) * p2 + p3;
		p += 4;
	}
	for (; p < end; p++) {
		h ^= *p * p5;
		h = ROTATE(h, 11) * p1;
	}
#undef ROTATE
#undef ROUND
	h = (h ^ h >> 33) * p2;
	h = (h ^ h >> 29) * p3;
	return h ^ h >> 32;
}

// A list of numbers that grows.
struct list {
	uint64_t *v;
	size_t n, room;
};

static inline void list_add(struct list *l, uint64_t x)
{
	if (l->n == l->room) {
		l->room = l->room ? 2 * l->room : 4096;
		l->v = realloc(l->v, l->room * sizeof *l->v);
		if (!l->v)
			die("%zu numbers: out of memory", l->room);
	}
	l->v[l->n++] = x;
}

#endif
