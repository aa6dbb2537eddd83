// The named pipe and the mapped file of a pair, as both sides use them.
#ifndef RANKFS_PIPES_H
#define RANKFS_PIPES_H

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "protocol.h"
#include "work.h"

// line_of reads line i of a list of paths; NULL if it has fewer.
static inline char *line_of(const char *list, int i)
{
	char line[PATH_MAX], *found = NULL;
	FILE *f = fopen(list, "r");
	if (!f)
		die("%s: %s", list, strerror(errno));
	while (!found && fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = '\0';
		if (line[0] != '\0' && i-- == 0)
			found = strdup(line);
	}
	fclose(f);
	return found;
}

// receive opens the pipe, reads one message and closes the pipe.
static inline void receive(const char *pipe, void *message, size_t size)
{
	int fd = open(pipe, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		die("%s: %s", pipe, strerror(errno));
	ssize_t n = read(fd, message, size);
	if (n < 0)
		die("%s: %s", pipe, strerror(errno));
	if ((size_t)n != size)
		die("%s: the other side ended: %zd bytes of %zu", pipe, n, size);
	close(fd);
}

// send_message opens the pipe, writes one message and closes the pipe.
static inline void send_message(const char *pipe, const void *message, size_t size)
{
	int fd = open(pipe, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		die("%s: %s", pipe, strerror(errno));
	if (write(fd, message, size) != (ssize_t)size)
		die("%s: %s", pipe, strerror(errno));
	close(fd);
}

#endif
