// blobs: puts and gets of values by their keys, by the shuffle pool, or by the messages of
// a pool of memory whose proxy keeps its records in Redis, as seed 001 has it.
//
//   blobs [-n KEYS] [-b BYTES] pool JOB/blob
//   blobs [-n KEYS] [-b BYTES] redis PORT
//
// One client puts all values (1000 of 64 KiB), each in two places, and then gets them all
// and sums them. In the pool a put is a file that is written and renamed, a get one that is
// mapped. By messages a put takes nine, between processes that are connected by TCP:
//
//   1 client to proxy    where shall this key go?
//   2 proxy to client    to these nodes; it enters the key into Redis, as pending
//   3 client to node     the value
//   4 node to client     it is here
//   5 node to proxy      the key is here; in Redis it becomes valid on this node
//   6 proxy to node      these are the others
//   7 node to other      the value
//   8 other to proxy     it is here; in Redis it becomes valid there, too
//   9 proxy to client    there are as many as there must be
//
// and a get four: client to proxy, which looks into Redis, and back; client to node, and
// the value. A proxy has one thread for its messages and one that changes the records, each
// a GET and a SET of a text in JSON. Nodes keep values in memory of their own. The Redis of
// that port is to be empty. A line on stdout:
//
//   blobs mode= keys= bytes= seconds= put+get/s= sum=
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "../../include/rankfs.h"
#include "rankfs_test.h"

static uint64_t keys = 1000, bytes = 64 << 10;

static void value_of(uint64_t *to, uint64_t key)
{
	for (uint64_t i = 0; i < bytes / 8; i++)
		to[i] = (key << 32 | (i + 1)) * 0x9e3779b97f4a7c15u;
}

// A client puts and gets.
struct client {
	void (*put)(void *with, uint64_t key, const void *value);
	uint64_t (*get)(void *with, uint64_t key); // the sum
	void *with;
};

// By the pool.

static void pool_name(char path[PATH_MAX], const char *dir, const char *before, uint64_t key)
{
	if (rankfs_path(path, "%s/%skey-%lu", dir, before, key))
		die("%s: %s", dir, strerror(errno));
}

static void pool_put(void *dir, uint64_t key, const void *value)
{
	char path[PATH_MAX], to[PATH_MAX];
	pool_name(path, dir, ".", key);
	pool_name(to, dir, "", key);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || rankfs_write_all(fd, value, bytes) || close(fd) || rename(path, to))
		die("%s: %s", path, strerror(errno));
}

static uint64_t pool_get(void *dir, uint64_t key)
{
	char path[PATH_MAX];
	const void *p;
	size_t size;
	pool_name(path, dir, "", key);
	if (rankfs_map_file(path, &p, &size))
		die("%s: %s", path, strerror(errno));
	if (size != bytes)
		die("%s has %zu bytes", path, size);
	uint64_t sum = work_sum(p, size);
	munmap((void *)(uintptr_t)p, size);
	return sum;
}

// By messages.

enum type { HOSTS = 1, HOSTS_ARE, PUT, PUT_DONE, HAS, OTHERS, PUT_TOO, COPIED, ENOUGH, WHERE, WHERE_IS, GET, GOT };

struct message {
	uint64_t type, key, node, size; // of what follows it
};

static void send_all(int fd, const void *p, size_t n)
{
	for (const char *at = p; n > 0;) {
		ssize_t k = send(fd, at, n, MSG_NOSIGNAL);
		if (k <= 0)
			die("send: %s", strerror(errno));
		at += k;
		n -= (size_t)k;
	}
}

// receive returns false at the end of a connection.
static bool receive(int fd, void *p, size_t n)
{
	for (char *at = p; n > 0;) {
		ssize_t k = recv(fd, at, n, MSG_WAITALL);
		if (k < 0)
			die("recv: %s", strerror(errno));
		if (k == 0)
			return false;
		at += k;
		n -= (size_t)k;
	}
	return true;
}

static void tell(int fd, enum type type, uint64_t key, uint64_t node, const void *value)
{
	struct message m = {type, key, node, value ? bytes : 0};
	if (value)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_CORK, &(int){1}, sizeof(int));
	send_all(fd, &m, sizeof m);
	if (!value)
		return;
	send_all(fd, value, bytes);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_CORK, &(int){0}, sizeof(int));
}

static struct message expect(int fd, enum type type)
{
	struct message m;
	if (!receive(fd, &m, sizeof m) || m.type != type)
		die("message of type %lu, not %d", m.type, type);
	return m;
}

// connected are both ends of a connection by TCP.
static void connected(int ends[2])
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof at;
	int l = socket(AF_INET, SOCK_STREAM, 0);
	if (l < 0 || bind(l, (void *)&at, sizeof at) || listen(l, 1) || getsockname(l, (void *)&at, &size))
		die("listen: %s", strerror(errno));
	ends[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (ends[0] < 0 || connect(ends[0], (void *)&at, sizeof at) || (ends[1] = accept(l, NULL, NULL)) < 0)
		die("connect: %s", strerror(errno));
	for (int i = 0; i < 2; i++)
		setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	close(l);
}

static int redis_port;

struct redis {
	FILE *in, *out;
};

static struct redis redis_open(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)redis_port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, (void *)&at, sizeof at))
		die("redis: connect: %s", strerror(errno));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	struct redis r = {fdopen(fd, "r"), fdopen(dup(fd), "w")};
	if (!r.in || !r.out)
		die("redis: %s", strerror(errno));
	return r;
}

static void redis_line(struct redis *r, char line[512])
{
	if (!fgets(line, 512, r->in) || line[0] == '-')
		die("redis: %s", line);
}

static void redis_set(struct redis *r, uint64_t key, const char *text)
{
	char name[32], line[512];
	int n = snprintf(name, sizeof name, "%lu", key);
	fprintf(r->out, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%zu\r\n%s\r\n", n, name, strlen(text), text);
	fflush(r->out);
	redis_line(r, line);
}

static void redis_get(struct redis *r, uint64_t key, char text[512])
{
	char name[32], line[512];
	int n = snprintf(name, sizeof name, "%lu", key);
	fprintf(r->out, "*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n", n, name);
	fflush(r->out);
	redis_line(r, line);
	if (atoi(line + 1) <= 0)
		die("redis: key %lu: %s", key, line);
	redis_line(r, text);
}

// record is what Redis has of a key: on which nodes it is valid.
static void record(struct redis *r, uint64_t key, const bool valid[2])
{
	char text[512];
	snprintf(text, sizeof text, "{\"data\":[{\"node\":\"127.0.0.1\",\"size\":\"%lu\",\"status\":\"%s\"},{\"node\":\"127.0.0.2\",\"size\":\"%lu\",\"status\":\"%s\"}]}",
		 bytes, valid[0] ? "VALID" : "PENDING", bytes, valid[1] ? "VALID" : "PENDING");
	redis_set(r, key, text);
}

static void valid_on(struct redis *r, uint64_t key, bool valid[2])
{
	char text[512];
	redis_get(r, key, text);
	const char *second = strstr(text, "127.0.0.2");
	if (!second)
		die("redis: key %lu: %s", key, text);
	const char *first = strstr(text, "\"VALID\"");
	valid[0] = first && first < second;
	valid[1] = strstr(second, "\"VALID\"") != NULL;
}

// updates are those of records, in their order, that a thread of the proxy makes.
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct { uint64_t key, node; } *v;
	size_t first, n;
} updates = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void *update(void *unused)
{
	struct redis r = redis_open();
	for (;;) {
		pthread_mutex_lock(&updates.lock);
		while (updates.first == updates.n)
			pthread_cond_wait(&updates.changed, &updates.lock);
		uint64_t key = updates.v[updates.first].key, node = updates.v[updates.first].node;
		pthread_mutex_unlock(&updates.lock);
		bool valid[2];
		valid_on(&r, key, valid);
		valid[node] = true;
		record(&r, key, valid);
		pthread_mutex_lock(&updates.lock);
		updates.first++;
		pthread_cond_broadcast(&updates.changed);
		pthread_mutex_unlock(&updates.lock);
	}
	return unused;
}

static void update_later(uint64_t key, uint64_t node)
{
	pthread_mutex_lock(&updates.lock);
	updates.v[updates.n].key = key;
	updates.v[updates.n++].node = node;
	pthread_cond_broadcast(&updates.changed);
	pthread_mutex_unlock(&updates.lock);
}

// updated waits until no update is left. A proxy that does not finds a key pending, and the
// client would ask again a second later.
static void updated(void)
{
	pthread_mutex_lock(&updates.lock);
	while (updates.first < updates.n)
		pthread_cond_wait(&updates.changed, &updates.lock);
	pthread_mutex_unlock(&updates.lock);
}

static void proxy(int client, const int nodes[2])
{
	struct redis r = redis_open();
	pthread_t thread;
	updates.v = allocate(2 * keys * sizeof *updates.v);
	if (pthread_create(&thread, NULL, update, NULL))
		die("thread: %s", strerror(errno));
	struct pollfd from[3] = {{.fd = client, .events = POLLIN}, {.fd = nodes[0], .events = POLLIN}, {.fd = nodes[1], .events = POLLIN}};
	for (;;) {
		if (poll(from, 3, -1) < 0)
			die("poll: %s", strerror(errno));
		for (int i = 0; i < 3; i++) {
			struct message m;
			bool valid[2] = {false, false};
			if (!(from[i].revents & (POLLIN | POLLHUP)))
				continue;
			if (!receive(from[i].fd, &m, sizeof m))
				exit(0);
			switch ((enum type)m.type) {
			case HOSTS:
				tell(client, HOSTS_ARE, m.key, m.key % 2, NULL);
				record(&r, m.key, valid);
				break;
			case HAS:
				update_later(m.key, m.node);
				tell(nodes[m.node], OTHERS, m.key, 1 - m.node, NULL);
				break;
			case COPIED:
				update_later(m.key, m.node);
				tell(client, ENOUGH, m.key, 0, NULL);
				break;
			case WHERE:
				updated();
				valid_on(&r, m.key, valid);
				tell(client, WHERE_IS, m.key, valid[0] ? 0 : 1, NULL);
				break;
			default:
				die("proxy: message of type %lu", m.type);
			}
		}
	}
}

static void node(uint64_t number, int client, int to_proxy, int other)
{
	void **store = calloc(keys, sizeof *store);
	struct pollfd from[3] = {{.fd = client, .events = POLLIN}, {.fd = to_proxy, .events = POLLIN}, {.fd = other, .events = POLLIN}};
	for (;;) {
		if (poll(from, 3, -1) < 0)
			die("poll: %s", strerror(errno));
		for (int i = 0; i < 3; i++) {
			struct message m;
			if (!(from[i].revents & (POLLIN | POLLHUP)))
				continue;
			if (!receive(from[i].fd, &m, sizeof m))
				exit(0);
			if (m.type == PUT || m.type == PUT_TOO) {
				store[m.key] = allocate(bytes);
				if (!receive(from[i].fd, store[m.key], bytes))
					exit(0);
			}
			switch ((enum type)m.type) {
			case PUT:
				tell(client, PUT_DONE, m.key, number, NULL);
				tell(to_proxy, HAS, m.key, number, NULL);
				break;
			case OTHERS:
				tell(other, PUT_TOO, m.key, number, store[m.key]);
				break;
			case PUT_TOO:
				tell(to_proxy, COPIED, m.key, number, NULL);
				break;
			case GET:
				tell(client, GOT, m.key, number, store[m.key]);
				break;
			default:
				die("node: message of type %lu", m.type);
			}
		}
	}
}

struct wires {
	int proxy, nodes[2];
	void *value;
};

static void redis_put(void *with, uint64_t key, const void *value)
{
	struct wires *w = with;
	tell(w->proxy, HOSTS, key, 0, NULL);
	uint64_t on = expect(w->proxy, HOSTS_ARE).node;
	tell(w->nodes[on], PUT, key, on, value);
	expect(w->nodes[on], PUT_DONE);
	expect(w->proxy, ENOUGH);
}

static uint64_t redis_get_value(void *with, uint64_t key)
{
	struct wires *w = with;
	tell(w->proxy, WHERE, key, 0, NULL);
	uint64_t on = expect(w->proxy, WHERE_IS).node;
	tell(w->nodes[on], GET, key, on, NULL);
	expect(w->nodes[on], GOT);
	if (!receive(w->nodes[on], w->value, bytes))
		die("a node is gone");
	return work_sum(w->value, bytes);
}

// processes starts a proxy and two nodes, which end with the client.
static struct wires *processes(void)
{
	static struct wires w;
	int to_proxy[2], to_node[2][2], node_proxy[2][2], between[2];
	connected(to_proxy);
	connected(between);
	for (int i = 0; i < 2; i++) {
		connected(to_node[i]);
		connected(node_proxy[i]);
	}
	int all[] = {to_proxy[0], to_proxy[1], between[0], between[1], to_node[0][0], to_node[0][1], to_node[1][0], to_node[1][1],
		     node_proxy[0][0], node_proxy[0][1], node_proxy[1][0], node_proxy[1][1]};
	for (int i = 0; i < 3; i++) {
		pid_t child = fork();
		if (child < 0)
			die("fork: %s", strerror(errno));
		if (child > 0)
			continue;
		int mine[3] = {to_proxy[1], node_proxy[0][1], node_proxy[1][1]};
		if (i > 0)
			memcpy(mine, (int[]){to_node[i - 1][1], node_proxy[i - 1][0], between[i - 1]}, sizeof mine);
		for (size_t k = 0; k < sizeof all / sizeof *all; k++)
			if (all[k] != mine[0] && all[k] != mine[1] && all[k] != mine[2])
				close(all[k]);
		if (i == 0)
			proxy(mine[0], mine + 1);
		else
			node((uint64_t)i - 1, mine[0], mine[1], mine[2]);
		exit(0);
	}
	w = (struct wires){to_proxy[0], {to_node[0][0], to_node[1][0]}, allocate(bytes)};
	for (size_t k = 0; k < sizeof all / sizeof *all; k++)
		if (all[k] != w.proxy && all[k] != w.nodes[0] && all[k] != w.nodes[1])
			close(all[k]);
	return &w;
}

int main(int argc, char **argv)
{
	for (int c; (c = getopt(argc, argv, "n:b:")) != -1;) {
		switch (c) {
		case 'n': keys = number(optarg); break;
		case 'b': bytes = number(optarg) / 8 * 8; break;
		default: exit(2);
		}
	}
	if (argc - optind != 2 || bytes == 0 || keys == 0)
		usage("[-n KEYS] [-b BYTES] pool JOB/blob | redis PORT");
	const char *mode = argv[optind];
	struct client c = {pool_put, pool_get, argv[optind + 1]};
	if (!strcmp(mode, "redis")) {
		redis_port = (int)number(argv[optind + 1]);
		c = (struct client){redis_put, redis_get_value, processes()};
	} else if (strcmp(mode, "pool") != 0) {
		usage("[-n KEYS] [-b BYTES] pool JOB/blob | redis PORT");
	}
	uint64_t *value = allocate(bytes), sum = 0, begin = now_ns();
	for (uint64_t key = 0; key < keys; key++) {
		value_of(value, key);
		c.put(c.with, key, value);
	}
	for (uint64_t key = 0; key < keys; key++)
		sum += c.get(c.with, key);
	double seconds = (double)(now_ns() - begin) / 1e9;
	printf("blobs mode=%s keys=%lu bytes=%lu seconds=%.6f put+get/s=%.1f sum=%016lx\n", mode, keys, bytes, seconds,
	       (double)keys / seconds, sum);
	return 0;
}
