// dli_names: what of a dataset is on the host of a name, by each way to ask.
//
//   dli_names DATASET [NAME]
//
// Without a name it is this host.
#include "../../include/dli.h"

static void *answer(int need)
{
	uint64_t *p = need > 0 ? (uint64_t *)calloc(1, (size_t)need) : NULL;

	if (!p) {
		fprintf(stderr, "dli_names: %d\n", need);
		exit(1);
	}
	*p = (uint64_t)need;
	return p;
}

int main(int argc, char **argv)
{
	char *name = argc > 2 ? argv[2] : NULL, *processes[2] = {NULL, NULL};
	const char *dataset = argc > 1 ? argv[1] : "";
	struct utsname here;
	struct DLI_list *list;
	struct DLI_map *map;
	double bytes = 0, chunks = 0;
	int number = 0;

	if (uname(&here) != 0)
		return 1;
	processes[0] = name ? name : here.nodename;
	list = (struct DLI_list *)answer(DLI_map_process_chunks(dataset, name, NULL));
	map = (struct DLI_map *)answer(DLI_map_chunks_process(dataset, processes, NULL));
	if (DLI_map_process_chunks(dataset, name, list) || DLI_map_chunks_process(dataset, processes, map) ||
	    DLI_get_total_chunks(dataset, name, &number) || (uint64_t)number != list->count ||
	    DLI_get_data_percentage(dataset, name, &bytes) || DLI_get_chunk_percentage(dataset, name, &chunks)) {
		fprintf(stderr, "dli_names: the calls differ\n");
		return 1;
	}
	printf("%llu of %llu, %.3f %.3f, %llu\n", (unsigned long long)list->count, (unsigned long long)map->chunks, bytes,
	       chunks, (unsigned long long)DLI_first_list(map)->count);
	free(list);
	free(map);
	return 0;
}
