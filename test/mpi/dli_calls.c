// dli_calls: what the calls of include/dli.h say, for a test to compare. C and
// C++ both.
//
//   dli_calls PROCESSES OFFSETS PATH...
//
// PROCESSES and OFFSETS have commas between them; the process - is this host. A
// PATH that ends in a slash is a directory of datasets, any other a dataset. All
// that is said of it stands in one line. Every call that fills a buffer is also
// made with buffers of other sizes; the status is 1 if it does not keep to them.
#include "../../include/dli.h"

#define MOST 64

static char *process[MOST + 1]; // names; the map calls take them as they are
static size_t processes;
static size_t offset[MOST];
static size_t offsets;

static void fail(const char *path, const char *what, int got)
{
	printf("\n");
	fprintf(stderr, "dli_calls: %s: %s: %d\n", path, what, got);
	exit(1);
}

typedef int (*filler)(const char *path, size_t i, void *buffer);

static int list_of(const char *path, size_t i, void *buffer)
{
	return DLI_map_process_chunks(path, strcmp(process[i], "-") ? process[i] : NULL, buffer);
}

static int map_of(const char *path, size_t i, void *buffer)
{
	(void)i;
	return DLI_map_chunks_process(path, process, buffer);
}

static int maps_of(const char *path, size_t i, void *buffer)
{
	(void)i;
	return DLI_map_Dprocess_Dchunks(path, process, buffer);
}

static uint64_t *room(size_t size)
{
	uint64_t *p = (uint64_t *)malloc(size);

	if (!p) {
		fprintf(stderr, "dli_calls: out of memory\n");
		exit(1);
	}
	*p = size;
	return p;
}

// fill makes a call with the room that it asks for, or returns NULL after an
// error. With less it must ask for that much; a sanitizer sees what is written.
static void *fill(filler f, const char *path, size_t i)
{
	int need = f(path, i, NULL), got;
	uint64_t *p;

	if (need < 0) {
		size_t small[] = {8, 400};
		for (size_t k = 0; k < 2; k++) {
			p = room(small[k]);
			if ((got = f(path, i, p)) != need || *p != small[k])
				fail(path, "another error, or the size is gone", got);
			free(p);
		}
		printf(" error %d", -need);
		return NULL;
	}
	if (need < 16 || need % 8 != 0)
		fail(path, "an odd size", need);
	for (size_t less = 8; less < (size_t)need; less += less < 400 ? 8 : less) {
		p = room(less);
		if ((got = f(path, i, p)) != -ERANGE || *p != (uint64_t)need)
			fail(path, "with less room than it wants", got);
		free(p);
	}
	p = room((size_t)need + 8);
	if ((got = f(path, i, (char *)p + 4)) != -EINVAL)
		fail(path, "a buffer that is not aligned", got);
	if ((got = f(path, i, p)) != 0 || *p != (uint64_t)need)
		fail(path, "with more room than it wants", got);
	free(p);
	p = room((size_t)need);
	if ((got = f(path, i, p)) != 0 || *p != (uint64_t)need)
		fail(path, "with the room that it wants", got);
	return p;
}

static void print_list(struct DLI_list *l)
{
	for (uint64_t i = 0; i < l->count; i++) {
		struct DLI_chunk *c = &DLI_chunks(l)[i];
		printf(" %llu:%llu+%llu:%llu+%llu", (unsigned long long)c->number,
		       (unsigned long long)c->offset, (unsigned long long)c->bytes,
		       (unsigned long long)c->first, (unsigned long long)c->records);
	}
}

static void print_map(struct DLI_map *m)
{
	struct DLI_list *l = DLI_first_list(m);

	printf(" %s %llu,%llu,%llu {", m->dataset, (unsigned long long)m->chunks,
	       (unsigned long long)m->bytes, (unsigned long long)m->records);
	for (uint64_t i = 0; i < m->count; i++, l = DLI_next_list(l)) {
		printf(" (");
		print_list(l);
		printf(" )");
	}
	printf(" }");
	if ((char *)l != (char *)DLI_next_map(m))
		fail(m->dataset, "lists that do not come to the map's size", 0);
}

static void say_process(const char *path, size_t i)
{
	const char *name = strcmp(process[i], "-") ? process[i] : NULL;
	struct DLI_list *l;
	int number = 0, err;
	double bytes = 0, chunks = 0;

	printf(" list");
	l = (struct DLI_list *)fill(list_of, path, i);
	if (l)
		print_list(l);
	if ((err = DLI_get_total_chunks(path, name, &number)) != 0)
		printf(" total error %d", -err);
	else if (!l || l->count != (uint64_t)number)
		fail(path, "another number of chunks than the list has", number);
	free(l);
	if ((err = DLI_get_data_percentage(path, name, &bytes)) == 0)
		err = DLI_get_chunk_percentage(path, name, &chunks);
	if (err)
		printf(" percent error %d;", -err);
	else
		printf(" percent %.3f %.3f;", bytes, chunks);
}

static void say(const char *path)
{
	void *p;

	printf("%s:", path);
	if (path[strlen(path) - 1] == '/') {
		if ((p = fill(maps_of, path, 0)) != NULL) {
			struct DLI_map *m = DLI_first_map((struct DLI_maps *)p);
			for (uint64_t i = 0; i < ((struct DLI_maps *)p)->count; i++, m = DLI_next_map(m))
				print_map(m);
			free(p);
		}
		printf("\n");
		return;
	}
	for (size_t i = 0; i < processes; i++)
		say_process(path, i);
	for (size_t i = 0; i < offsets; i++) {
		bool local = false, again = true;
		int err = DLI_check_data(path, &offset[i], &local);
		if (DLI_data_check(path, &offset[i], &again) != err || (!err && again != local))
			fail(path, "DLI_data_check and DLI_check_data differ", err);
		if (err)
			printf(" at error %d;", -err);
		else
			printf(" at %s;", local ? "here" : "elsewhere");
	}
	printf(" map");
	if ((p = fill(map_of, path, 0)) != NULL)
		print_map((struct DLI_map *)p);
	free(p);
	printf("\n");
}

// refusals are the calls that can never be right.
static void refusals(const char *path)
{
	char small[4], empty[] = "";
	volatile size_t little = sizeof small; // the compiler would see that it is too little
	char *unnamed[] = {empty, NULL};
	int number, want = -EINVAL;
	double percent;
	bool local;
	size_t at = 0;

	if (DLI_map_process_chunks(NULL, NULL, NULL) != want || DLI_map_process_chunks("", NULL, NULL) != want ||
	    DLI_map_process_chunks(path, "", NULL) != want || DLI_map_chunks_process(path, NULL, NULL) != want ||
	    DLI_map_chunks_process(path, unnamed, NULL) != want || DLI_map_chunks_process(NULL, unnamed + 1, NULL) != want ||
	    DLI_map_Dprocess_Dchunks(NULL, unnamed + 1, NULL) != want || DLI_map_Dprocess_Dchunks("", unnamed + 1, NULL) != want ||
	    DLI_map_Dprocess_Dchunks(path, NULL, NULL) != want || DLI_get_total_chunks(path, NULL, NULL) != want ||
	    DLI_get_total_chunks(path, "", &number) != want || DLI_get_total_chunks(NULL, NULL, &number) != want ||
	    DLI_get_data_percentage(path, NULL, NULL) != want || DLI_get_data_percentage("", NULL, &percent) != want ||
	    DLI_get_chunk_percentage(path, NULL, NULL) != want || DLI_check_data(path, NULL, &local) != want ||
	    DLI_check_data(path, &at, NULL) != want || DLI_check_data(NULL, &at, &local) != want ||
	    DLI_chunk_path(NULL, 0, small, little) != want || DLI_chunk_path(path, 0, NULL, 0) != want)
		fail(path, "a call that can never be right is not refused", 0);
	if (DLI_chunk_path(path, 0, small, little) != -ERANGE || DLI_chunk_path(path, 0, small, little - 4) != -ERANGE)
		fail(path, "the path of a chunk fits into less than it has", 0);
}

int main(int argc, char **argv)
{
	if (argc < 4) {
		fprintf(stderr, "use dli_calls PROCESSES OFFSETS PATH...\n");
		return 2;
	}
	for (char *p = strtok(argv[1], ","); p && processes < MOST; p = strtok(NULL, ","))
		process[processes++] = p;
	for (char *p = strtok(argv[2], ","); p && offsets < MOST; p = strtok(NULL, ","))
		offset[offsets++] = strtoul(p, NULL, 10);
	refusals(argv[3]);
	for (int i = 3; i < argc; i++)
		say(argv[i]);
	return 0;
}
