// queue_work: ranks take the batches of a dataset as they come, by its queue
// files, and check that together they had every record once.
//
//   run NRANKS queue_work [-m] DATASETDIR...
//
//   -m   rank 0 is a master, as in mpiBLAST: it reads the queues of all others,
//        a line when its worker asks, and reads no batch itself
//
// Of several directories, the same dataset at several mounts, ranks use one each
// in blocks. Rank 0 prints one line:
//
//   queue_work OK ranks= batches= records= bytes= local= lost= sum=
//
// sum= is that of the XXH64 of all records; lost= counts batches that turned out
// to be another reader's.
#include <mpi.h>

#include "rankfs_test.h"

enum { ASK = 1, ANSWER };

// A share is what one rank has read, as sums that can be added up.
struct share {
	uint64_t batches, records, bytes, local, lost, sum;
};

// A line of a queue: where a batch is.
typedef char line[PATH_MAX + 64];

// next_line reads a line from a queue: its length, 0 at the end, below 0 if there
// is none for now. That the batch before was another's goes to lost.
static ssize_t next_line(int queue, line to, int *lost)
{
	for (;;) {
		ssize_t n = read(queue, to, sizeof(line) - 1);
		if (n < 0 && errno == ESTALE) {
			*lost = 1;
			continue;
		}
		if (n < 0 && errno != EAGAIN)
			die("read of a queue: %s", strerror(errno));
		to[n > 0 ? n : 0] = '\0';
		return n;
	}
}

// work reads the batch of a line. Its records count when it is finished.
static struct share work(line l)
{
	struct share s = {.batches = 1};
	char *path = l, *rest = strchr(l, ' ');
	unsigned long bytes = 0, records = 0;
	char where[16] = "";
	if (!rest || sscanf(rest, "%lu %lu %15s", &bytes, &records, where) != 3)
		die("a line that cannot be: %s", l);
	*rest = '\0';
	char *name = strrchr(path, '/');
	*name = '\0';
	struct batch b;
	text error = "";
	if (!batch_open(&b, path, number(name + strlen("/batch-")), error) || !batch_map(&b, error) || !batch_index(&b, error))
		die("%s: %s", path, error);
	if (b.size != bytes || b.records != records)
		die("%s: %zu bytes and %lu records, the queue says %lu and %lu", b.path, b.size, b.records, bytes, records);
	for (uint64_t i = 0; i < b.records; i++)
		s.sum += xxh64(b.data + b.idx[i], b.idx[i + 1] - b.idx[i]);
	s.records = records;
	s.bytes = bytes;
	s.local = strcmp(where, "local") == 0;
	batch_close(&b);
	return s;
}

static void add(struct share *to, const struct share *s)
{
	to->batches += s->batches;
	to->records += s->records;
	to->bytes += s->bytes;
	to->local += s->local;
	to->sum += s->sum;
}

static int open_queue(const char *dataset, int rank, int flags)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/rank-%d/queue", dataset, rank);
	int fd = open(path, O_RDONLY | O_CLOEXEC | flags);
	if (fd < 0)
		die("%s: %s", path, strerror(errno));
	return fd;
}

// by_itself reads the queue of its own rank.
static void by_itself(struct share *all, const char *dataset, int rank)
{
	int queue = open_queue(dataset, rank, 0);
	struct share last = {0};
	for (;;) {
		line l;
		int lost = 0;
		bool more = next_line(queue, l, &lost) > 0;
		all->lost += (uint64_t)lost;
		if (!lost)
			add(all, &last);
		if (!more)
			break;
		last = work(l);
	}
	close(queue);
}

// An order is what the master tells a worker: that its last batch was another's,
// and a line, empty when all is done.
struct order {
	int lost;
	line l;
};

// A client is a worker as the master knows it.
struct client {
	int queue;
	bool asked; // and was not answered yet
	int lost;
};

// answer gives a worker that has asked a line, unless there is none for now: then
// the other workers go first, whose batches may come back.
static bool answer(struct client *c, int worker)
{
	struct order o;
	memset(&o, 0, sizeof o);
	ssize_t n = next_line(c->queue, o.l, &c->lost);
	if (n < 0)
		return false;
	o.lost = c->lost;
	c->lost = 0;
	c->asked = false;
	MPI_Send(&o, sizeof o, MPI_BYTE, worker, ANSWER, MPI_COMM_WORLD);
	if (n == 0)
		close(c->queue);
	return n == 0;
}

static void master(const char *dataset, int ranks)
{
	struct client *clients = allocate((size_t)ranks * sizeof *clients);
	for (int i = 1; i < ranks; i++)
		clients[i] = (struct client){.queue = open_queue(dataset, i, O_NONBLOCK)};
	for (int left = ranks - 1; left > 0;) {
		MPI_Status who;
		int there;
		MPI_Iprobe(MPI_ANY_SOURCE, ASK, MPI_COMM_WORLD, &there, &who);
		if (there) {
			MPI_Recv(NULL, 0, MPI_CHAR, who.MPI_SOURCE, ASK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			clients[who.MPI_SOURCE].asked = true;
		} else {
			usleep(500);
		}
		for (int i = 1; i < ranks; i++)
			if (clients[i].asked)
				left -= answer(&clients[i], i);
	}
	free(clients);
}

static void worker(struct share *all)
{
	struct share last = {0};
	for (;;) {
		struct order o;
		MPI_Send(NULL, 0, MPI_CHAR, 0, ASK, MPI_COMM_WORLD);
		MPI_Recv(&o, sizeof o, MPI_BYTE, 0, ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (o.lost)
			all->lost++;
		else
			add(all, &last);
		if (o.l[0] == '\0')
			return;
		last = work(o.l);
	}
}

int main(int argc, char **argv)
{
	int rank, ranks, c;
	bool mastered = false;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	while ((c = getopt(argc, argv, "m")) != -1) {
		if (c != 'm')
			usage("[-m] DATASETDIR...");
		mastered = true;
	}
	int dirs = argc - optind;
	if (dirs < 1 || (mastered && ranks < 2))
		usage("[-m] DATASETDIR..., with -m by two ranks or more");
	const char *dataset = argv[optind + rank * dirs / ranks];
	struct share mine = {0}, all;
	if (!mastered)
		by_itself(&mine, dataset, rank);
	else if (rank == 0)
		master(dataset, ranks);
	else
		worker(&mine);
	MPI_Reduce(&mine, &all, sizeof mine / sizeof(uint64_t), MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("queue_work OK ranks=%d batches=%lu records=%lu bytes=%lu local=%lu lost=%lu sum=%016lx\n", ranks,
		       all.batches, all.records, all.bytes, all.local, all.lost, all.sum);
	MPI_Finalize();
	return 0;
}
