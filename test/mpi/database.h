// An LMDB database, opened for reading alone.
#ifndef RANKFS_DATABASE_H
#define RANKFS_DATABASE_H

#include <lmdb.h>
#include <sys/stat.h>

#include "work.h"

static inline void must(int rc, const char *what)
{
	if (rc != MDB_SUCCESS)
		die("%s: %s", what, mdb_strerror(rc));
}

struct database {
	MDB_env *env;
	MDB_txn *txn;
	MDB_dbi dbi;
	size_t entries;
};

// database_open takes a directory or a file. No process may write to it meanwhile.
static inline struct database database_open(const char *path)
{
	struct database d;
	struct stat st;
	MDB_stat stats;
	unsigned file = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? MDB_NOSUBDIR : 0;
	must(mdb_env_create(&d.env), path);
	must(mdb_env_open(d.env, path, MDB_RDONLY | MDB_NOLOCK | file, 0), path);
	must(mdb_txn_begin(d.env, NULL, MDB_RDONLY, &d.txn), path);
	must(mdb_dbi_open(d.txn, NULL, 0, &d.dbi), path);
	must(mdb_stat(d.txn, d.dbi, &stats), path);
	d.entries = stats.ms_entries;
	return d;
}

static inline void database_close(struct database *d)
{
	mdb_txn_abort(d->txn);
	mdb_env_close(d->env);
}

static inline MDB_cursor *database_cursor(struct database *d)
{
	MDB_cursor *c;
	must(mdb_cursor_open(d->txn, d->dbi, &c), "cursor");
	return c;
}

#endif
