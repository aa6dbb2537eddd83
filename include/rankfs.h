/* rankfs.h: a batch and its records, and the shuffle pool, in C.
 *
 * Nothing here is needed to use rankfs: a batch is a file, and so is what a map
 * task writes; this is what open, fstat, mmap, write and rename look like when
 * written once. Functions return 0, or -1 with errno set.
 *
 *     struct rankfs_batch b;
 *     if (rankfs_map(&b, "/mnt/rankfs/datasets/train/rank-3/batch-000017"))
 *             err(1, "batch");
 *     for (size_t i = 0; i < b.records; i++)
 *             use(rankfs_record(&b, i), rankfs_record_size(&b, i));
 *     rankfs_unmap(&b);
 */
#ifndef RANKFS_H
#define RANKFS_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct rankfs_batch {
	const unsigned char *data; /* NULL if the batch is empty */
	size_t size;
	const uint64_t *offsets; /* records + 1 of them, the last one is size */
	size_t records;
};

/* rankfs_map_open maps all of a file that is open. */
static inline int rankfs_map_open(int fd, const void **data, size_t *size)
{
	struct stat st;
	void *p;

	*data = NULL;
	*size = 0;
	if (fstat(fd, &st))
		return -1;
	if (st.st_size == 0)
		return 0;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return -1;
	*data = p;
	*size = (size_t)st.st_size;
	return 0;
}

/* rankfs_close closes a file, and leaves errno as it is. */
static inline void rankfs_close(int fd)
{
	int saved = errno;

	close(fd);
	errno = saved;
}

/* rankfs_map_file maps all of a file. An open of a batch waits until it is
 * complete; ESTALE means that the source has changed. */
static inline int rankfs_map_file(const char *path, const void **data, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), failed;

	*data = NULL;
	*size = 0;
	if (fd < 0)
		return -1;
	failed = rankfs_map_open(fd, data, size);
	rankfs_close(fd); /* the mapping stays */
	return failed;
}

static inline void rankfs_unmap(struct rankfs_batch *b)
{
	if (b->data)
		munmap((void *)(uintptr_t)b->data, b->size);
	if (b->offsets)
		munmap((void *)(uintptr_t)b->offsets, (b->records + 1) * sizeof *b->offsets);
	b->data = NULL;
	b->offsets = NULL;
	b->size = b->records = 0;
}

/* rankfs_path composes a path. */
static inline int rankfs_path(char path[PATH_MAX], const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(path, PATH_MAX, format, args);
	va_end(args);
	if (n >= 0 && n < PATH_MAX)
		return 0;
	errno = ENAMETOOLONG;
	return -1;
}

/* rankfs_map_both maps a file that is open, and the table of its records. If the file is
 * not what it was when the table is there, as of a part whose stage was reset, the table is
 * another file's: ESTALE. */
static inline int rankfs_map_both(struct rankfs_batch *b, int fd, const char *idx)
{
	const void *data, *table;
	size_t size, table_size;
	struct stat st;

	if (rankfs_map_open(fd, &data, &size))
		return -1;
	b->data = (const unsigned char *)data;
	b->size = size;
	if (rankfs_map_file(idx, &table, &table_size))
		return -1;
	b->offsets = (const uint64_t *)table;
	b->records = table_size / sizeof *b->offsets - (table_size != 0);
	if (fstat(fd, &st))
		return -1;
	if (table_size == 0 || b->offsets[b->records] != size) {
		errno = EPROTO;
		return -1;
	}
	return 0;
}

/* rankfs_map maps a batch and the table of its records. */
static inline int rankfs_map(struct rankfs_batch *b, const char *path)
{
	char idx[PATH_MAX];
	int fd, failed;

	b->data = NULL;
	b->offsets = NULL;
	b->size = b->records = 0;
	if (rankfs_path(idx, "%s.idx", path))
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	failed = rankfs_map_both(b, fd, idx);
	if (failed) {
		int saved = errno;
		rankfs_unmap(b);
		errno = saved;
	}
	rankfs_close(fd); /* the mappings stay */
	return failed;
}

static inline const unsigned char *rankfs_record(const struct rankfs_batch *b, size_t i)
{
	return b->data + b->offsets[i];
}

static inline size_t rankfs_record_size(const struct rankfs_batch *b, size_t i)
{
	return (size_t)(b->offsets[i + 1] - b->offsets[i]);
}

/* The shuffle pool: a map task writes an attempt, part after part, and commits it.
 *
 *     struct rankfs_attempt a;
 *     if (rankfs_begin(&a, "/mnt/rankfs/shuffle/job/stage", map, try, parts))
 *             err(1, "attempt");
 *     for (uint64_t part = 0; part < parts; part++) {
 *             if (rankfs_write(&a, piece[part], piece_size[part]))
 *                     err(1, "write");
 *             rankfs_end_part(&a);
 *     }
 *     if (rankfs_commit(&a))
 *             err(1, "commit");
 *
 * A reducer maps its part, whose records are the maps' pieces, in their order:
 *
 *     struct rankfs_batch b;
 *     if (rankfs_part(&b, "/mnt/rankfs/shuffle/job/stage", part))
 *             err(1, "part");
 */
struct rankfs_attempt {
	char stage[PATH_MAX];
	char path[PATH_MAX]; /* of the file: .map-MMMMMM.A in the stage */
	int dir;             /* the stage, by one of its lanes: no name above it is looked up again */
	int fd;              /* -1 once nothing more is written */
	unsigned long long map;
	uint64_t *offsets; /* parts + 1 of them, of which the ended parts' are known */
	uint64_t parts, ended;
	uint64_t size;
};

#ifdef O_PATH
#define RANKFS_O_DIR (O_PATH | O_DIRECTORY | O_CLOEXEC)
#else
#define RANKFS_O_DIR (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
#endif

/* rankfs_name is the attempt's name in the stage. */
static inline const char *rankfs_name(const struct rankfs_attempt *a)
{
	const char *slash = a->path, *p;

	for (p = a->path; *p; p++)
		if (*p == '/')
			slash = p + 1;
	return slash;
}

static inline void rankfs_leave(struct rankfs_attempt *a)
{
	if (a->fd >= 0)
		close(a->fd);
	if (a->dir >= 0)
		close(a->dir);
	a->fd = a->dir = -1;
	free(a->offsets);
	a->offsets = NULL;
}

/* rankfs_begin begins an attempt of a map. What one of the same number has written on
 * this host is gone. */
static inline int rankfs_begin(struct rankfs_attempt *a, const char *stage, uint64_t map, uint64_t attempt, uint64_t parts)
{
	char lane[PATH_MAX];
	int saved;

	a->fd = a->dir = -1;
	a->map = map;
	a->parts = parts;
	a->ended = a->size = 0;
	a->offsets = NULL;
	if (rankfs_path(a->stage, "%s", stage) ||
	    rankfs_path(a->path, "%s/.map-%06llu.%llu", stage, a->map, (unsigned long long)attempt))
		return -1;
	if (rankfs_path(lane, "%s/.lane-%02u", stage, (unsigned)(map % 64)))
		return -1;
	a->dir = open(lane, RANKFS_O_DIR);
	if (a->dir < 0 && errno == ENOENT) /* a release that has none */
		a->dir = open(a->stage, RANKFS_O_DIR);
	if (a->dir < 0)
		return -1;
	a->fd = openat(a->dir, rankfs_name(a), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (a->fd >= 0) {
		a->offsets = (uint64_t *)calloc((size_t)parts + 1, sizeof *a->offsets);
		if (a->offsets)
			return 0;
		unlinkat(a->dir, rankfs_name(a), 0);
		errno = ENOMEM;
	}
	saved = errno;
	rankfs_leave(a);
	errno = saved;
	return -1;
}

static inline int rankfs_write_all(int fd, const void *data, size_t size)
{
	const char *p = (const char *)data;

	while (size > 0) {
		ssize_t n = write(fd, p, size);
		if (n < 0 && errno != EINTR)
			return -1;
		if (n > 0) {
			p += n;
			size -= (size_t)n;
		}
	}
	return 0;
}

/* rankfs_write adds to the part at hand. It is a system call: give it 64 KiB or more. */
static inline int rankfs_write(struct rankfs_attempt *a, const void *data, size_t size)
{
	if (rankfs_write_all(a->fd, data, size))
		return -1;
	a->size += size;
	return 0;
}

/* rankfs_end_part ends the part at hand; what is written next is of the next one. */
static inline void rankfs_end_part(struct rankfs_attempt *a)
{
	if (a->ended < a->parts)
		a->offsets[++a->ended] = a->size;
}

/* rankfs_end writes where the parts begin, and closes the attempt. */
static inline int rankfs_end(struct rankfs_attempt *a)
{
	char idx[PATH_MAX];
	int fd, failed;

	while (a->ended < a->parts)
		rankfs_end_part(a);
	if (a->offsets[a->parts] != a->size) { /* something was written after the last part */
		errno = EINVAL;
		return -1;
	}
	if (rankfs_path(idx, "%s.idx", rankfs_name(a)))
		return -1;
	if (a->parts == 1) { /* which needs none, not even an older one */
		if (unlinkat(a->dir, idx, 0) && errno != ENOENT)
			return -1;
		fd = a->fd;
		a->fd = -1;
		return close(fd);
	}
	fd = openat(a->dir, idx, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return -1;
	failed = rankfs_write_all(fd, a->offsets, ((size_t)a->parts + 1) * sizeof *a->offsets);
	if (close(fd) || failed)
		return -1;
	fd = a->fd;
	a->fd = -1;
	return close(fd);
}

/* rankfs_commit makes an attempt the map, unless another was before it: then this one is
 * discarded, which is no error. With ETIMEDOUT it is not known yet what became of it: call
 * again to learn. After another error call again, or rankfs_discard. */
static inline int rankfs_commit(struct rankfs_attempt *a)
{
	char to[PATH_MAX];

	if (a->fd >= 0 && rankfs_end(a))
		return -1;
	if (rankfs_path(to, "map-%06llu", a->map) || renameat(a->dir, rankfs_name(a), a->dir, to))
		return -1;
	rankfs_leave(a);
	return 0;
}

/* rankfs_discard gives up an attempt that was not committed. */
static inline void rankfs_discard(struct rankfs_attempt *a)
{
	char idx[PATH_MAX];

	unlinkat(a->dir, rankfs_name(a), 0);
	if (!rankfs_path(idx, "%s.idx", rankfs_name(a)))
		unlinkat(a->dir, idx, 0);
	rankfs_leave(a);
}

/* rankfs_part maps a part, once all maps of the stage are committed: until then it waits.
 * Its records are what the maps have for it. */
static inline int rankfs_part(struct rankfs_batch *b, const char *stage, uint64_t part)
{
	char path[PATH_MAX];

	if (rankfs_path(path, "%s/part-%06llu", stage, (unsigned long long)part))
		return -1;
	return rankfs_map(b, path);
}

#endif
