// How ranks share a stage of the shuffle pool: one makes it, each has its own mount.
#ifndef RANKFS_STAGE_H
#define RANKFS_STAGE_H

#include <mpi.h>

#include "../../include/rankfs.h"
#include "rankfs_test.h"

// stage_make makes a stage with that spec, on rank 0. Afterwards it is on all nodes.
__attribute__((format(printf, 3, 4), unused)) static void stage_make(const char *stage, int rank, const char *format, ...)
{
	char path[PATH_MAX], spec[256];
	if (rank == 0) {
		va_list args;
		va_start(args, format);
		int n = vsnprintf(spec, sizeof spec, format, args);
		va_end(args);
		if (mkdir(stage, 0700) != 0 || rankfs_path(path, "%s/spec", stage))
			die("%s: %s", stage, strerror(errno));
		int fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd < 0 || write(fd, spec, (size_t)n) != n || close(fd) != 0)
			die("%s: %s: %s", path, spec, strerror(errno));
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

// stage_begin begins an attempt of a map.
static inline void stage_begin(struct rankfs_attempt *a, const char *stage, uint64_t map, uint64_t attempt, uint64_t parts)
{
	if (rankfs_begin(a, stage, map, attempt, parts))
		die("%s: attempt %lu of map %lu: %s", stage, attempt, map, strerror(errno));
}

// stage_part writes the next part of an attempt.
static inline void stage_part(struct rankfs_attempt *a, const void *data, size_t size)
{
	if (rankfs_write(a, data, size))
		die("%s: %s", a->path, strerror(errno));
	rankfs_end_part(a);
}

static inline void stage_commit(struct rankfs_attempt *a)
{
	if (rankfs_commit(a))
		die("%s: commit: %s", a->path, strerror(errno));
}

// stage_read waits for a part, of that many maps, and maps it.
static inline struct rankfs_batch stage_read(const char *stage, uint64_t part, uint64_t maps)
{
	struct rankfs_batch b;
	if (rankfs_part(&b, stage, part))
		die("%s: part %lu: %s", stage, part, strerror(errno));
	if (b.records != maps)
		die("%s: part %lu is of %zu maps, not of %lu", stage, part, b.records, maps);
	return b;
}

#endif
