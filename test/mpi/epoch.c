// epoch: processes read a whole dataset, from a mount or by LMDB's own calls.
//
//   epoch [-p P] mount DATASETDIR           batches of rank-0 to rank-P-1, in place
//   epoch [-p P] cursor LMDBPATH            a P-th of the entries each, by cursor
//   epoch [-p P] keys LMDBPATH KEYFILE      a P-th of KEYFILE each, by mdb_get
//
// KEYFILE has a key a line, as makedata -keys writes them, in the order to be
// read (shuf KEYFILE). What LMDB gives is copied to a buffer and then summed, as
// loaders do; databases are opened, and the cursors' first keys looked up,
// before the clock starts. P is 2 unless told.
//
//   epoch mode= processes= records= bytes= seconds= GB/s= sum=
//
// The sum is over all bytes as numbers, so it is the same in every mode. A
// mount's records are not counted (0): it is read in batches.
#include <getopt.h>

#include "database.h"
#include "rankfs_test.h"

static const char *path, *key_file;
static int processes = 2;

struct key {
	char *text;
	size_t size;
};

// The keys of this process, or of all.
struct keys {
	struct key *v;
	size_t n;
};

static void take(struct pair *me, const void *p, size_t n)
{
	me->sum += work_bytes(p, n);
	me->bytes += n;
}

static void take_copy(struct pair *me, struct buffer *copy, MDB_val *value)
{
	buffer_grow(copy, value->mv_size);
	memcpy(copy->p, value->mv_data, value->mv_size);
	take(me, copy->p, value->mv_size);
	me->cycles++;
}

static void read_mount(struct pairs *all, int index, void *unused)
{
	(void)unused;
	struct pair *me = &all->each[index];
	char directory[PATH_MAX];
	text error = "";
	struct batch b;
	snprintf(directory, sizeof directory, "%s/rank-%d", path, index);
	if (access(directory, F_OK) != 0)
		die("%s: %s", directory, strerror(errno));
	wait_start(all);
	me->begin = now_ns();
	for (uint64_t step = 0; batch_open(&b, directory, step, error); step++) {
		if (!batch_map(&b, error))
			break;
		take(me, b.data, b.size);
		batch_close(&b);
	}
	me->end = now_ns();
	if (error[0])
		die("%s", error);
}

// seek moves a cursor over the first entries. Only leaves are touched.
static void seek(MDB_cursor *c, size_t entries, MDB_val *key, MDB_val *value)
{
	must(mdb_cursor_get(c, key, value, MDB_FIRST), path);
	for (; entries > 0; entries--)
		must(mdb_cursor_get(c, key, value, MDB_NEXT), path);
}

static void read_cursor(struct pairs *all, int index, void *unused)
{
	(void)unused;
	struct pair *me = &all->each[index];
	struct buffer copy = {0};
	struct database d = database_open(path);
	size_t first = d.entries * (size_t)index / (size_t)processes;
	size_t last = d.entries * (size_t)(index + 1) / (size_t)processes;
	MDB_cursor *c = database_cursor(&d);
	MDB_val key, value;
	if (first < last)
		seek(c, first, &key, &value);
	buffer_grow(&copy, 1 << 20);
	wait_start(all);
	me->begin = now_ns();
	for (size_t i = first; i < last; i++) {
		take_copy(me, &copy, &value);
		if (i + 1 < last)
			must(mdb_cursor_get(c, &key, &value, MDB_NEXT), path);
	}
	me->end = now_ns();
	mdb_cursor_close(c);
	database_close(&d);
}

static void read_keys(struct pairs *all, int index, void *arg)
{
	const struct keys *keys = arg;
	struct pair *me = &all->each[index];
	struct buffer copy = {0};
	struct database d = database_open(path);
	size_t first = keys->n * (size_t)index / (size_t)processes;
	size_t last = keys->n * (size_t)(index + 1) / (size_t)processes;
	buffer_grow(&copy, 1 << 20);
	wait_start(all);
	me->begin = now_ns();
	for (size_t i = first; i < last; i++) {
		MDB_val key = {keys->v[i].size, keys->v[i].text}, value;
		must(mdb_get(d.txn, d.dbi, &key, &value), keys->v[i].text);
		take_copy(me, &copy, &value);
	}
	me->end = now_ns();
	database_close(&d);
}

static struct keys load_keys(const char *file)
{
	struct keys keys = {0};
	char *line = NULL;
	size_t room = 0, have = 0;
	ssize_t n;
	FILE *f = fopen(file, "r");
	if (!f)
		die("%s: %s", file, strerror(errno));
	while ((n = getline(&line, &room, f)) > 0) {
		if (line[n - 1] == '\n')
			line[--n] = '\0';
		if (keys.n == have) {
			have = have ? 2 * have : 4096;
			keys.v = realloc(keys.v, have * sizeof *keys.v);
			if (!keys.v)
				die("%s: out of memory", file);
		}
		keys.v[keys.n++] = (struct key){strdup(line), (size_t)n};
	}
	free(line);
	fclose(f);
	return keys;
}

int main(int argc, char **argv)
{
	const char *text = "[-p P] mount DATASETDIR | cursor LMDBPATH | keys LMDBPATH KEYFILE";
	struct keys keys = {0};
	for (int c; (c = getopt(argc, argv, "p:")) != -1;) {
		if (c != 'p')
			exit(2);
		processes = (int)number(optarg);
	}
	if (argc - optind < 2 || processes < 1)
		usage(text);
	const char *mode = argv[optind];
	path = argv[optind + 1];
	key_file = argv[optind + 2];
	void (*body)(struct pairs *, int, void *) = NULL;
	if (!strcmp(mode, "mount") && !key_file)
		body = read_mount;
	if (!strcmp(mode, "cursor") && !key_file)
		body = read_cursor;
	if (!strcmp(mode, "keys") && key_file)
		body = read_keys;
	if (!body)
		usage(text);
	if (body == read_keys)
		keys = load_keys(key_file);
	struct pairs *all = fork_pairs(processes, body, &keys);
	if (!all)
		return 1;
	struct pair t = total_of(all, processes);
	double seconds = (double)(t.end - t.begin) / 1e9;
	printf("epoch mode=%s processes=%d records=%lu bytes=%lu seconds=%.6f GB/s=%.3f sum=%lu\n", mode,
	       processes, t.cycles, t.bytes, seconds, (double)t.bytes / 1e9 / seconds, t.sum);
	return 0;
}
