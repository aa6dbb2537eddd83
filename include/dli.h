/* dli.h: which chunks of a dataset are where, for programs written for DL-MPI.
 *
 * The calls of the DL-MPI paper on top of the file "chunks" that rankfs has in
 * each dataset's directory. Header only, C99 or C++; dli(3) is the manual.
 *
 *     int need = DLI_map_process_chunks("/mnt/rankfs/datasets/train", NULL, NULL);
 *     if (need < 0)
 *             errx(1, "train: %s", strerror(-need));
 *     struct DLI_list *mine = malloc(need);
 *     mine->size = need;
 *     int err = DLI_map_process_chunks("/mnt/rankfs/datasets/train", NULL, mine);
 *     for (uint64_t i = 0; !err && i < mine->count; i++)
 *             work_on(DLI_chunks(mine)[i].number);
 *
 * A dataset is the path of its directory in a mount, any view of it. A process
 * is the name of the host that it runs on; NULL is this host. Which of the hosts
 * in a table that is, the mount says: HDFS may know a.b.c as a. Of a table that is
 * copied from a mount, hosts are what is written exactly as they are.
 *
 * Functions return 0, or a negative errno: -ENOENT if there is no such dataset,
 * -EPROTO if its table is damaged, -EINVAL if an argument can never be right.
 * Nothing is kept between calls; any number of threads may call at once.
 */
#ifndef DLI_H
#define DLI_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <unistd.h>

/* What the calls write to a buffer. It is the caller's, aligned for a uint64_t,
 * and begins with its own size in bytes. Afterwards size is what the answer
 * takes; if the buffer is smaller the call returns -ERANGE, and nothing
 * else in the buffer means anything. Without a buffer a call returns that size,
 * or -EOVERFLOW if it is no int. Hosts change, so ask again after -ERANGE. */

struct DLI_chunk {
	uint64_t number; /* from 0 on, in the dataset's order */
	uint64_t offset; /* of its first byte, all records one after another */
	uint64_t bytes;
	uint64_t first; /* its first record */
	uint64_t records;
};

struct DLI_list { /* the chunks of a process; they follow it */
	uint64_t size;
	uint64_t count;
};

struct DLI_map { /* a list for each process, in their order; they follow it */
	uint64_t size;
	uint64_t count;
	uint64_t chunks, bytes, records; /* of the whole dataset */
	char dataset[256]; /* the name of its directory */
};

struct DLI_maps { /* a map for each dataset of a directory; they follow it */
	uint64_t size;
	uint64_t count;
};

static inline struct DLI_chunk *DLI_chunks(struct DLI_list *l)
{
	return (struct DLI_chunk *)(void *)(l + 1);
}

static inline struct DLI_list *DLI_first_list(struct DLI_map *m)
{
	return (struct DLI_list *)(void *)(m + 1);
}

static inline struct DLI_list *DLI_next_list(struct DLI_list *l)
{
	return (struct DLI_list *)(void *)((char *)l + l->size);
}

static inline struct DLI_map *DLI_first_map(struct DLI_maps *m)
{
	return (struct DLI_map *)(void *)(m + 1);
}

static inline struct DLI_map *DLI_next_map(struct DLI_map *m)
{
	return (struct DLI_map *)(void *)((char *)m + m->size);
}

/* The table. Its first line is "chunk of N" and more titles; then there is a
 * line for each chunk, with five numbers and its hosts. All lines are equally
 * long, so the file's size says whether it is whole. */

enum { DLI_TEXT = 64 << 10 }; /* bytes to read at once: one request to rankfs */

struct dli_table {
	int file;
	uint64_t chunks;
	size_t width; /* of a line, with its newline */
	char *text;   /* that many lines of it, for the chunks from `from` on */
	uint64_t from, lines;
	struct DLI_chunk next; /* where the next one must begin */
};

struct dli_row {
	struct DLI_chunk chunk;
	const char *hosts; /* with commas between them */
	size_t length;
};

/* dli_errno is why a system call failed: below 0, as compilers cannot know of errno. */
static inline int dli_errno(void)
{
	return errno > 0 ? -errno : -EIO;
}

/* dli_number reads a decimal that a blank ends, and moves on. */
static inline int dli_number(const char **at, const char *end, uint64_t *n)
{
	const char *p = *at;

	while (p < end && *p == ' ')
		p++;
	if (p == end || *p < '0' || *p > '9')
		return -EPROTO;
	for (*n = 0; p < end && *p >= '0' && *p <= '9'; p++) {
		uint64_t digit = (uint64_t)(*p - '0');
		if (*n > (~(uint64_t)0 - digit) / 10)
			return -EPROTO;
		*n = *n * 10 + digit;
	}
	*at = p;
	return p < end && *p == ' ' ? 0 : -EPROTO;
}

/* dli_row_of reads the line of a chunk. */
static inline int dli_row_of(const struct dli_table *t, uint64_t number, struct dli_row *r)
{
	const char *p = t->text + (size_t)(number - t->from) * t->width;
	const char *end = p + t->width - 1;
	struct DLI_chunk *c = &r->chunk;

	if (*end != '\n' || dli_number(&p, end, &c->number) || dli_number(&p, end, &c->offset) ||
	    dli_number(&p, end, &c->bytes) || dli_number(&p, end, &c->first) ||
	    dli_number(&p, end, &c->records))
		return -EPROTO;
	if (c->number != number || c->bytes > ~(uint64_t)0 - c->offset ||
	    c->records > ~(uint64_t)0 - c->first)
		return -EPROTO;
	while (p < end && *p == ' ')
		p++;
	for (r->hosts = p; p < end && *p > ' ' && *p < 0x7f; p++)
		;
	r->length = (size_t)(p - r->hosts);
	while (p < end && *p == ' ')
		p++;
	return p == end && r->length > 0 ? 0 : -EPROTO;
}

/* dli_read reads n bytes, or up to the end of the file. */
static inline int dli_read(int file, char *to, size_t n, size_t *have)
{
	for (*have = 0; *have < n;) {
		ssize_t got = read(file, to + *have, n - *have);
		if (got < 0 && errno != EINTR)
			return dli_errno();
		if (got == 0)
			break;
		if (got > 0)
			*have += (size_t)got;
	}
	return 0;
}

/* dli_load reads the lines of chunks from a number on, whole ones: each is then
 * as it was at one moment, though hosts change. */
static inline int dli_load(struct dli_table *t, uint64_t from, uint64_t most)
{
	uint64_t fit = DLI_TEXT / t->width, left = t->chunks - from;
	uint64_t n = most < fit ? most : fit;
	size_t have;
	int err;

	n = n < left ? n : left;
	t->lines = 0;
	if (lseek(t->file, (off_t)((from + 1) * t->width), SEEK_SET) < 0)
		return dli_errno();
	err = dli_read(t->file, t->text, (size_t)n * t->width, &have);
	if (err)
		return err;
	if (have != n * t->width)
		return -EPROTO;
	t->from = from;
	t->lines = n;
	return 0;
}

/* dli_at reads the line of one chunk alone. */
static inline int dli_at(struct dli_table *t, uint64_t number, struct dli_row *r)
{
	int err = dli_load(t, number, 1);

	return err ? err : dli_row_of(t, number, r);
}

/* dli_next reads the line of the next chunk: 1, or 0 after the last one. */
static inline int dli_next(struct dli_table *t, struct dli_row *r)
{
	struct DLI_chunk *next = &t->next;
	int err = 0;

	if (next->number == t->chunks)
		return 0;
	if (next->number - t->from >= t->lines)
		err = dli_load(t, next->number, ~(uint64_t)0);
	if (!err)
		err = dli_row_of(t, next->number, r);
	if (err)
		return err;
	if (r->chunk.offset != next->offset || r->chunk.first != next->first)
		return -EPROTO;
	next->number++;
	next->offset += r->chunk.bytes;
	next->first += r->chunk.records;
	return 1;
}

static inline void dli_close(struct dli_table *t)
{
	close(t->file);
	free(t->text);
}

/* dli_title reads the first line, and holds the size of the file to it. */
static inline int dli_title(struct dli_table *t)
{
	static const char begin[] = "chunk of ";
	struct stat st;
	size_t have;
	int err = dli_read(t->file, t->text, DLI_TEXT, &have);
	const char *p = t->text, *end;

	if (err)
		return err;
	end = (const char *)memchr(p, '\n', have);
	if (!end || (size_t)(end - p) < sizeof begin || memcmp(p, begin, sizeof begin - 1) != 0)
		return -EPROTO;
	t->width = (size_t)(end - p) + 1;
	p += sizeof begin - 1;
	if (dli_number(&p, end, &t->chunks))
		return -EPROTO;
	if (fstat(t->file, &st) != 0)
		return dli_errno();
	if (st.st_size <= 0 || (uint64_t)st.st_size % t->width != 0 ||
	    (uint64_t)st.st_size / t->width - 1 != t->chunks)
		return -EPROTO;
	return 0;
}

/* dli_join is "directory/name", to be freed; NULL if there is no memory. */
static inline char *dli_join(const char *directory, const char *name)
{
	size_t a = strlen(directory), b = strlen(name);
	char *path = (char *)malloc(a + b + 2);

	if (!path)
		return NULL;
	memcpy(path, directory, a);
	path[a] = '/';
	memcpy(path + a + 1, name, b + 1);
	return path;
}

static inline int dli_open(struct dli_table *t, const char *dataset)
{
	struct stat st;
	char *path;
	int err = 0, flags = O_RDONLY | O_NONBLOCK; /* not to wait for what is a pipe */

#ifdef O_CLOEXEC
	flags |= O_CLOEXEC;
#endif
	memset(t, 0, sizeof *t);
	if (!dataset || !*dataset)
		return -EINVAL;
	path = dli_join(dataset, "chunks");
	t->text = (char *)malloc(DLI_TEXT);
	if (!path || !t->text)
		err = -ENOMEM;
	else if ((t->file = open(path, flags)) < 0)
		err = dli_errno();
	free(path);
	if (err) {
		free(t->text);
		return err;
	}
	if (fstat(t->file, &st) != 0)
		err = dli_errno();
	else if (!S_ISREG(st.st_mode))
		err = -EPROTO;
	else
		err = dli_title(t);
	if (err)
		dli_close(t);
	return err;
}

/* dli_process finds out what a process is called. */
static inline int dli_process(const char **process, struct utsname *here)
{
	if (!*process) {
		if (uname(here) != 0)
			return dli_errno();
		*process = here->nodename;
	}
	return **process ? 0 : -EINVAL;
}

/* dli_host is the next of the chunk's hosts, NULL after the last one. */
static inline const char *dli_host(const struct dli_row *r, size_t *at, size_t *length)
{
	const char *host = r->hosts + *at, *comma;

	if (*at > r->length || (r->length == 1 && *r->hosts == '-')) /* its hosts are not known */
		return NULL;
	comma = (const char *)memchr(host, ',', r->length - *at);
	*length = comma ? (size_t)(comma - host) : r->length - *at;
	*at += *length + 1;
	return host;
}

/* dli_called asks the mount which hosts in the table have a process: a text to be freed,
 * with commas between them. Where no mount answers, as for a table that is a copy, it is
 * the process's own name. */
static inline int dli_called(const struct dli_table *t, const char *process, char **hosts)
{
	static const char prefix[] = "user.rankfs.host.";
	char name[256]; /* what an attribute's name takes */
	size_t n = strlen(process), room = n + sizeof name;
	ssize_t got = -1;

	*hosts = NULL;
	errno = ENODATA;
	while (sizeof prefix + n <= sizeof name) {
		memcpy(name, prefix, sizeof prefix);
		memcpy(name + sizeof prefix - 1, process, n + 1);
		if (!(*hosts = (char *)malloc(room + 1)))
			return -ENOMEM;
		got = fgetxattr(t->file, name, *hosts, room);
		if (got >= 0 || errno != ERANGE || room >= DLI_TEXT)
			break;
		free(*hosts);
		room *= 4;
	}
	if (got < 0 && (errno == ENODATA || errno == ENOTSUP)) {
		if (!*hosts && !(*hosts = (char *)malloc(n + 1)))
			return -ENOMEM;
		got = strchr(process, ',') ? 0 : (ssize_t)n; /* no host is called so */
		memcpy(*hosts, process, (size_t)got);
	}
	if (got < 0) {
		int err = dli_errno();
		free(*hosts);
		*hosts = NULL;
		return err;
	}
	(*hosts)[got] = 0;
	return 0;
}

/* dli_holds reports whether one of these hosts has the chunk. */
static inline bool dli_holds(const struct dli_row *r, const char *hosts)
{
	size_t at = 0, n, m;
	const char *host, *one;

	while ((host = dli_host(r, &at, &n)))
		for (one = hosts; *one; one += m + (one[m] == ',')) {
			m = strcspn(one, ",");
			if (n > 0 && n == m && memcmp(host, one, n) == 0)
				return true;
		}
	return false;
}

/* dli_open_for is dli_open, and asks which hosts a process is on. */
static inline int dli_open_for(struct dli_table *t, const char *dataset, const char *process, char **hosts)
{
	int err = dli_open(t, dataset);

	if (err)
		return err;
	err = dli_called(t, process, hosts);
	if (err)
		dli_close(t);
	return err;
}

/* dli_room checks a buffer and learns its size, which is 0 if there is none. */
static inline int dli_room(const void *buffer, uint64_t *room)
{
	*room = 0;
	if ((uintptr_t)buffer % sizeof *room != 0)
		return -EINVAL;
	if (buffer)
		memcpy(room, buffer, sizeof *room);
	return 0;
}

/* dli_answer returns the size of an answer, or writes it to the buffer. */
static inline int dli_answer(void *buffer, uint64_t room, uint64_t need)
{
	if (!buffer)
		return need <= INT_MAX ? (int)need : -EOVERFLOW;
	memcpy(buffer, &need, sizeof need);
	return need <= room ? 0 : -ERANGE;
}

/* DLI_map_process_chunks finds the chunks that are local to a process: a struct
 * DLI_list, in the order of the dataset. */
static inline int DLI_map_process_chunks(const char *dataset, const char *process, void *list)
{
	struct DLI_list *to = (struct DLI_list *)list;
	struct dli_table t;
	struct dli_row r;
	struct utsname here;
	uint64_t room, need = sizeof *to, count = 0;
	char *hosts;
	int err = dli_room(list, &room);

	if (!err)
		err = dli_process(&process, &here);
	if (!err)
		err = dli_open_for(&t, dataset, process, &hosts);
	if (err)
		return err;
	while ((err = dli_next(&t, &r)) > 0) {
		if (!dli_holds(&r, hosts))
			continue;
		need += sizeof r.chunk;
		if (need <= room)
			DLI_chunks(to)[count] = r.chunk;
		count++;
	}
	free(hosts);
	dli_close(&t);
	if (err)
		return err;
	if (room >= sizeof *to)
		to->count = count;
	return dli_answer(list, room, need);
}

/* The hosts of several processes in a table, in the order of their names. */
struct dli_name {
	const char *text;
	size_t length;
	size_t process;
};

static inline int dli_compare(const void *a, const void *b)
{
	const struct dli_name *x = (const struct dli_name *)a, *y = (const struct dli_name *)b;

	if (x->length != y->length)
		return x->length < y->length ? -1 : 1;
	return memcmp(x->text, y->text, x->length);
}

/* The chunks found for several processes: pairs, in the order of the dataset. */
struct dli_pair {
	size_t process;
	struct DLI_chunk chunk;
};

struct dli_pairs {
	struct dli_pair *pair;
	size_t count, room;
	size_t processes, names, name_room;
	char *const *process;
	char **hosts; /* of each process */
	struct dli_name *name;
	uint64_t *each; /* chunks of each process; later, where its list is */
	uint64_t *last; /* the number after that of the chunk found last for each */
};

static inline int dli_pairs_init(struct dli_pairs *p, char *const *processes)
{
	memset(p, 0, sizeof *p);
	if (!processes)
		return -EINVAL;
	for (; processes[p->processes]; p->processes++)
		if (!*processes[p->processes])
			return -EINVAL;
	p->process = processes;
	p->each = (uint64_t *)calloc(p->processes + 1, sizeof *p->each);
	p->last = (uint64_t *)calloc(p->processes + 1, sizeof *p->last);
	p->hosts = (char **)calloc(p->processes + 1, sizeof *p->hosts);
	return p->each && p->last && p->hosts ? 0 : -ENOMEM;
}

/* dli_pairs_forget forgets the hosts of one table. */
static inline void dli_pairs_forget(struct dli_pairs *p)
{
	for (size_t i = 0; p->hosts && i < p->processes; i++) {
		free(p->hosts[i]);
		p->hosts[i] = NULL;
	}
	p->names = 0;
}

static inline void dli_pairs_free(struct dli_pairs *p)
{
	dli_pairs_forget(p);
	free(p->hosts);
	free(p->pair);
	free(p->name);
	free(p->each);
	free(p->last);
}

/* dli_pairs_name adds a host of a process. */
static inline int dli_pairs_name(struct dli_pairs *p, const char *text, size_t length, size_t process)
{
	if (p->names == p->name_room) {
		size_t more = p->name_room ? 2 * p->name_room : 64;
		void *grown = more > ((size_t)-1) / sizeof *p->name
				      ? NULL
				      : realloc(p->name, more * sizeof *p->name);
		if (!grown)
			return -ENOMEM;
		p->name = (struct dli_name *)grown;
		p->name_room = more;
	}
	p->name[p->names].text = text;
	p->name[p->names].length = length;
	p->name[p->names++].process = process;
	return 0;
}

/* dli_pairs_ask asks which hosts in a table the processes are on. */
static inline int dli_pairs_ask(struct dli_pairs *p, const struct dli_table *t)
{
	dli_pairs_forget(p);
	for (size_t i = 0; i < p->processes; i++) {
		int err = dli_called(t, p->process[i], &p->hosts[i]);
		size_t n;
		if (err)
			return err;
		for (const char *one = p->hosts[i]; *one; one += n + (one[n] == ',')) {
			n = strcspn(one, ",");
			if (n > 0 && dli_pairs_name(p, one, n, i))
				return -ENOMEM;
		}
	}
	if (p->names)
		qsort(p->name, p->names, sizeof *p->name, dli_compare);
	return 0;
}

/* dli_pairs_add adds a chunk for a process, unless it was the last one added. */
static inline int dli_pairs_add(struct dli_pairs *p, size_t process, const struct DLI_chunk *c)
{
	if (p->last[process] == c->number + 1)
		return 0;
	if (p->count == p->room) {
		size_t more = p->room ? 2 * p->room : 256;
		void *grown = more > ((size_t)-1) / sizeof *p->pair
				      ? NULL
				      : realloc(p->pair, more * sizeof *p->pair);
		if (!grown)
			return -ENOMEM;
		p->pair = (struct dli_pair *)grown;
		p->room = more;
	}
	p->pair[p->count].process = process;
	p->pair[p->count++].chunk = *c;
	p->each[process]++;
	p->last[process] = c->number + 1;
	return 0;
}

/* dli_pairs_match adds a chunk for all processes that are on one of its hosts. */
static inline int dli_pairs_match(struct dli_pairs *p, const struct dli_row *r)
{
	struct dli_name host = {NULL, 0, 0};
	size_t at = 0;
	int err = 0;

	while (!err && (host.text = dli_host(r, &at, &host.length))) {
		size_t low = 0, high = p->names;
		while (low < high) {
			size_t middle = low + (high - low) / 2;
			if (dli_compare(&p->name[middle], &host) < 0)
				low = middle + 1;
			else
				high = middle;
		}
		for (; !err && low < p->names && dli_compare(&p->name[low], &host) == 0; low++)
			err = dli_pairs_add(p, p->name[low].process, &r->chunk);
	}
	return err;
}

/* dli_pairs_find reads a table, and adds up the whole dataset in total. */
static inline int dli_pairs_find(struct dli_pairs *p, const char *dataset, struct DLI_chunk *total)
{
	struct dli_table t;
	struct dli_row r;
	int err = dli_open(&t, dataset), more = 0;

	if (err)
		return err;
	p->count = 0;
	memset(p->each, 0, p->processes * sizeof *p->each);
	memset(p->last, 0, p->processes * sizeof *p->last);
	err = dli_pairs_ask(p, &t);
	while (!err && (more = dli_next(&t, &r)) > 0)
		err = dli_pairs_match(p, &r);
	*total = t.next;
	dli_close(&t);
	return err ? err : more;
}

/* dli_pairs_write writes the lists. */
static inline void dli_pairs_write(struct dli_pairs *p, struct DLI_map *map)
{
	struct DLI_list *l = DLI_first_list(map);

	for (size_t i = 0; i < p->processes; i++, l = DLI_next_list(l)) {
		l->size = sizeof *l + p->each[i] * sizeof(struct DLI_chunk);
		l->count = 0;
		p->each[i] = (uint64_t)((char *)l - (char *)map);
	}
	for (size_t i = 0; i < p->count; i++) {
		l = (struct DLI_list *)(void *)((char *)map + p->each[p->pair[i].process]);
		DLI_chunks(l)[l->count++] = p->pair[i].chunk;
	}
}

/* dli_map makes the map of one dataset, if it fits into room bytes. */
static inline int dli_map(const char *dataset, struct dli_pairs *p, struct DLI_map *map, uint64_t room,
			  uint64_t *need)
{
	struct DLI_chunk total;
	const char *name, *end;
	int err = dli_pairs_find(p, dataset, &total);

	if (err)
		return err;
	for (end = dataset + strlen(dataset); end > dataset + 1 && end[-1] == '/'; end--)
		;
	for (name = end; name > dataset && name[-1] != '/'; name--)
		;
	if ((size_t)(end - name) >= sizeof map->dataset)
		return -ENAMETOOLONG;
	*need = sizeof *map + p->processes * sizeof(struct DLI_list) +
		p->count * sizeof(struct DLI_chunk);
	if (*need > room)
		return 0;
	map->size = *need;
	map->count = p->processes;
	map->chunks = total.number;
	map->bytes = total.offset;
	map->records = total.first;
	memset(map->dataset, 0, sizeof map->dataset);
	memcpy(map->dataset, name, (size_t)(end - name));
	dli_pairs_write(p, map);
	return 0;
}

/* DLI_map_chunks_process finds the chunks that are local to each of several
 * processes, whose names end with a NULL: a struct DLI_map. */
static inline int DLI_map_chunks_process(const char *dataset, char *const *processes, void *map)
{
	struct dli_pairs p;
	uint64_t room, need = 0;
	int err = dli_room(map, &room);

	if (err)
		return err;
	err = dli_pairs_init(&p, processes);
	if (!err)
		err = dli_map(dataset, &p, (struct DLI_map *)map, room, &need);
	dli_pairs_free(&p);
	return err ? err : dli_answer(map, room, need);
}

/* dli_entry makes the map of a directory's entry, if that is a dataset: 1, or 0
 * if it is none. */
static inline int dli_entry(const char *directory, const char *name, struct dli_pairs *p,
			    struct DLI_maps *to, uint64_t room, uint64_t *need)
{
	struct DLI_map *map = NULL;
	uint64_t one;
	char *path;
	int err;

	if (name[0] == '.')
		return 0;
	if (*need < room)
		map = (struct DLI_map *)(void *)((char *)to + *need);
	path = dli_join(directory, name);
	err = path ? dli_map(path, p, map, map ? room - *need : 0, &one) : -ENOMEM;
	free(path);
	if (err)
		return err == -ENOENT || err == -ENOTDIR ? 0 : err;
	*need += one;
	return 1;
}

/* DLI_map_Dprocess_Dchunks does that for every dataset in a directory: a struct
 * DLI_maps. Entries that are no datasets are passed over. */
static inline int DLI_map_Dprocess_Dchunks(const char *directory, char *const *processes, void *maps)
{
	struct DLI_maps *to = (struct DLI_maps *)maps;
	struct dli_pairs p;
	struct dirent *e;
	uint64_t room, need = sizeof *to, count = 0;
	DIR *d = NULL;
	int err = dli_room(maps, &room);

	if (err)
		return err;
	err = dli_pairs_init(&p, processes);
	if (!err && !(directory && *directory))
		err = -EINVAL;
	if (!err && !(d = opendir(directory)))
		err = dli_errno();
	while (err >= 0) {
		errno = 0;
		if (!(e = readdir(d))) {
			err = errno ? dli_errno() : 0;
			break;
		}
		err = dli_entry(directory, e->d_name, &p, to, room, &need);
		count += err > 0;
	}
	if (d)
		closedir(d);
	dli_pairs_free(&p);
	if (err)
		return err;
	if (room >= sizeof *to)
		to->count = count;
	return dli_answer(maps, room, need);
}

/* What of a dataset is local to a process. */
struct dli_tally {
	uint64_t chunks, bytes; /* that are */
	uint64_t all_chunks, all_bytes;
};

static inline int dli_count(const char *dataset, const char *process, struct dli_tally *sum)
{
	struct dli_table t;
	struct dli_row r;
	struct utsname here;
	char *hosts;
	int err = dli_process(&process, &here);

	memset(sum, 0, sizeof *sum);
	if (!err)
		err = dli_open_for(&t, dataset, process, &hosts);
	if (err)
		return err;
	while ((err = dli_next(&t, &r)) > 0) {
		if (!dli_holds(&r, hosts))
			continue;
		sum->chunks++;
		sum->bytes += r.chunk.bytes;
	}
	sum->all_chunks = t.next.number;
	sum->all_bytes = t.next.offset;
	free(hosts);
	dli_close(&t);
	return err;
}

static inline double dli_percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* DLI_get_total_chunks counts the chunks that are local to a process. After an
 * error the number is 0, as are the results of the calls below. */
static inline int DLI_get_total_chunks(const char *dataset, const char *process, int *number)
{
	struct dli_tally sum;
	int err;

	if (!number)
		return -EINVAL;
	*number = 0;
	err = dli_count(dataset, process, &sum);
	if (!err && sum.chunks > INT_MAX)
		err = -EOVERFLOW;
	if (!err)
		*number = (int)sum.chunks;
	return err;
}

/* DLI_get_data_percentage says how many bytes of a hundred are local to a
 * process; DLI_get_chunk_percentage how many chunks. Of nothing it is 0. */
static inline int DLI_get_data_percentage(const char *dataset, const char *process, double *percentage)
{
	struct dli_tally sum;
	int err;

	if (!percentage)
		return -EINVAL;
	*percentage = 0;
	err = dli_count(dataset, process, &sum);
	if (!err)
		*percentage = dli_percent(sum.bytes, sum.all_bytes);
	return err;
}

static inline int DLI_get_chunk_percentage(const char *dataset, const char *process, double *percentage)
{
	struct dli_tally sum;
	int err;

	if (!percentage)
		return -EINVAL;
	*percentage = 0;
	err = dli_count(dataset, process, &sum);
	if (!err)
		*percentage = dli_percent(sum.chunks, sum.all_chunks);
	return err;
}

/* DLI_check_data says whether a byte of a dataset is local to this host. Beyond
 * the last byte is -ENXIO. It reads a line for each halving of the table. */
static inline int DLI_check_data(const char *dataset, const size_t *offset, bool *local)
{
	struct dli_table t;
	struct dli_row r;
	struct utsname here;
	const char *process = NULL;
	char *hosts;
	uint64_t low = 0, high;
	int err;

	if (!offset || !local)
		return -EINVAL;
	*local = false;
	err = dli_process(&process, &here);
	if (!err)
		err = dli_open_for(&t, dataset, process, &hosts);
	if (err)
		return err;
	for (high = t.chunks; !err && low < high;) { /* low: the first that begins behind it */
		uint64_t middle = low + (high - low) / 2;
		err = dli_at(&t, middle, &r);
		if (!err && r.chunk.offset <= *offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (!err)
		err = low == 0 ? -ENXIO : dli_at(&t, low - 1, &r);
	if (!err && *offset - r.chunk.offset >= r.chunk.bytes)
		err = -ENXIO;
	if (!err)
		*local = dli_holds(&r, hosts);
	free(hosts);
	dli_close(&t);
	return err;
}

/* The paper's text has another name for it than its table. */
static inline int DLI_data_check(const char *dataset, const size_t *offset, bool *local)
{
	return DLI_check_data(dataset, offset, local);
}

/* DLI_chunk_path makes the path of the file that holds the records of a chunk,
 * one after another; its records begin where the same path with .idx says.
 * -ERANGE if it does not fit into size bytes. */
static inline int DLI_chunk_path(const char *dataset, uint64_t chunk, char *path, size_t size)
{
	size_t end, name, n;
	int wrote;

	if (!dataset || !*dataset || !path)
		return -EINVAL;
	for (end = strlen(dataset); end > 1 && dataset[end - 1] == '/'; end--)
		;
	for (name = end; name > 0 && dataset[name - 1] != '/'; name--)
		;
	for (n = name; n < end && dataset[n] != '@'; n++) /* of another view */
		;
	if (n > INT_MAX)
		return -ENAMETOOLONG;
	wrote = snprintf(path, size,
			 "%.*s@batch=chunk,ranks=1,order=none,tail=keep,assign=strict/rank-0/batch-%06llu",
			 (int)n, dataset, (unsigned long long)chunk);
	return wrote >= 0 && (size_t)wrote < size ? 0 : -ERANGE;
}

#endif
