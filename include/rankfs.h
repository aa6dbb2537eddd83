/* rankfs.h: a batch and its records, in C.
 *
 * Nothing here is needed to use rankfs: a batch is a file, and this is what
 * open, fstat and mmap look like when written once. Functions return 0, or -1
 * with errno set.
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
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct rankfs_batch {
	const unsigned char *data; /* NULL if the batch is empty */
	size_t size;
	const uint64_t *offsets; /* records + 1 of them, the last one is size */
	size_t records;
};

/* rankfs_map_file maps all of a file. An open of a batch waits until it is
 * complete; ESTALE means that the source has changed. */
static inline int rankfs_map_file(const char *path, const void **data, size_t *size)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC), saved;

	*data = NULL;
	*size = 0;
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && st.st_size > 0) {
		void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
		if (p != MAP_FAILED) {
			*data = p;
			*size = (size_t)st.st_size;
			st.st_size = 0;
		}
	}
	saved = errno;
	close(fd); /* the mapping stays */
	errno = saved;
	return *data || st.st_size == 0 ? 0 : -1;
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

/* rankfs_map maps a batch and the table of its records. */
static inline int rankfs_map(struct rankfs_batch *b, const char *path)
{
	char idx[PATH_MAX];
	const void *data, *table;
	size_t size, table_size;

	b->data = NULL;
	b->offsets = NULL;
	b->size = b->records = 0;
	if (snprintf(idx, sizeof idx, "%s.idx", path) >= (int)sizeof idx) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (rankfs_map_file(path, &data, &size))
		return -1;
	b->data = (const unsigned char *)data;
	b->size = size;
	if (rankfs_map_file(idx, &table, &table_size)) {
		int saved = errno;
		rankfs_unmap(b);
		errno = saved;
		return -1;
	}
	b->offsets = (const uint64_t *)table;
	b->records = table_size / sizeof *b->offsets - (table_size != 0);
	if (table_size == 0 || b->offsets[b->records] != size) {
		rankfs_unmap(b);
		errno = EPROTO;
		return -1;
	}
	return 0;
}

static inline const unsigned char *rankfs_record(const struct rankfs_batch *b, size_t i)
{
	return b->data + b->offsets[i];
}

static inline size_t rankfs_record_size(const struct rankfs_batch *b, size_t i)
{
	return (size_t)(b->offsets[i + 1] - b->offsets[i]);
}

#endif
