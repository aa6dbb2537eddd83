// walk: one walk of a cursor over an LMDB database, the least that a reader does
// which finds the records one by one.
//
//   walk [-n] PATH
//
//   -n  do not touch the values, only the pages of the tree
//
//   walk entries= bytes= seconds= entries/s= sum=
#include <getopt.h>
#include <stdbool.h>

#include "database.h"

int main(int argc, char **argv)
{
	bool touch = true;
	for (int c; (c = getopt(argc, argv, "n")) != -1;) {
		if (c != 'n')
			exit(2);
		touch = false;
	}
	if (argc - optind != 1)
		usage("[-n] PATH");
	uint64_t begin = now_ns(), entries = 0, bytes = 0, sum = 0;
	struct database d = database_open(argv[optind]);
	MDB_cursor *c = database_cursor(&d);
	MDB_val key, value;
	int rc;
	while ((rc = mdb_cursor_get(c, &key, &value, MDB_NEXT)) == MDB_SUCCESS) {
		entries++;
		bytes += value.mv_size;
		if (touch && value.mv_size)
			sum += *(unsigned char *)value.mv_data;
	}
	if (rc != MDB_NOTFOUND)
		must(rc, argv[optind]);
	mdb_cursor_close(c);
	database_close(&d);
	double seconds = (double)(now_ns() - begin) / 1e9;
	printf("walk entries=%lu bytes=%lu seconds=%.6f entries/s=%.0f sum=%016lx\n", entries, bytes, seconds,
	       (double)entries / seconds, sum);
	return 0;
}
