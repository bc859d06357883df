/* SPDX-License-Identifier: BSD-2-Clause */
/* squashfs: libsquashfuse runs in a child process, which sends the member table
 * through a pipe. */
/*
 * libsquashfuse trusts what it reads: it checks neither indexes against the length
 * of tables nor positions in a block against its end.  On a damaged image it may
 * crash, read for hours, or allocate all memory.  So it runs in a child process
 * with a limit of memory, which sends
 *
 *	BEAT     the number of members found so far, larger than the last one
 *	FAIL     an error code and a sentence
 *	TABLE    the sections of the member table, their sizes first
 *
 * The parent kills the child if it sends nothing for a minute, and checks all it
 * receives.  The parent may have other threads, so the child uses nothing that
 * takes a lock (no log, no handles), except malloc, whose locks glibc resets in a
 * fork.
 */
#include "formats/squashfs/private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "base/system.h"

#define SILENCE_MS 60000
#define GROWTH_MIN (UINT64_C(256) << 20)

enum { BEAT, FAIL, TABLE };
struct message {
	uint32_t what;
	int32_t n;      /* FAIL: error code; TABLE: number of sections */
	uint64_t value; /* BEAT: number of members; FAIL: bytes of text */
};
struct section {
	uint64_t id, size; /* the bytes are followed by padding to 8 */
};

static uint64_t padded_section(uint64_t size)
{
	return (size + 7) & ~UINT64_C(7);
}

/* ---- the child ----------------------------------------------------------- */

/* Write all bytes, or end the child: if the parent does not read any more, there is
 * nothing left to do. */
static void write_to_pipe(int fd, const void *data, size_t n)
{
	const char *at = data;

	while (n > 0) {
		ssize_t done = write(fd, at, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			_exit(1);
		at += done;
		n -= (size_t)done;
	}
}

static void send_beat(void *ctx, uint64_t n)
{
	const struct message m = {BEAT, 0, n};

	write_to_pipe(*(const int *)ctx, &m, sizeof m);
}

static _Noreturn void send_failure(int fd, const struct error *err)
{
	const struct message m = {FAIL, err->code, strlen(err->text)};

	write_to_pipe(fd, &m, sizeof m);
	write_to_pipe(fd, err->text, (size_t)m.value);
	_exit(0);
}

static void send_table(int fd, const struct members *table)
{
	static const char zeros[8];
	struct index_section s[MEMBERS_SECTIONS];
	unsigned n = members_sections(table, s);
	const struct message m = {TABLE, (int32_t)n, 0};

	write_to_pipe(fd, &m, sizeof m);
	for (unsigned i = 0; i < n; i++) {
		const struct section head = {s[i].id, s[i].size};

		write_to_pipe(fd, &head, sizeof head);
	}
	for (unsigned i = 0; i < n; i++) {
		write_to_pipe(fd, s[i].data, s[i].size);
		write_to_pipe(fd, zeros, padded_section(s[i].size) - s[i].size);
	}
}

static uint64_t child_memory_limit(void)
{
	return max_u64(GROWTH_MIN, system_memory() / 2);
}

static _Noreturn void walk_in_child(int fd, const struct squashfs_image *im,
				    const struct squashfs_info *info,
				    const struct members_options *o)
{
	const struct rlimit none = {0, 0};
	struct members_builder *b;
	struct members table;
	struct error err = {0};
	int r;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_CORE, &none);
	system_limit_growth(child_memory_limit());
	r = members_builder_new(&b, o, &err);
	if (r < 0)
		send_failure(fd, &err);
	r = squashfs_walk(im->fd, im->offset, info, b, send_beat, &fd, &err);
	if (r < 0)
		send_failure(fd, &err);
	r = members_finish(b, &table, &err);
	if (r < 0)
		send_failure(fd, &err);
	send_table(fd, &table);
	_exit(0);
}

/* ---- the parent ---------------------------------------------------------- */

struct listening {
	int fd;
	squashfs_beat *so_far;
	void *ctx;
	bool silent; /* nothing came for SILENCE_MS */
};

/* Read exactly n bytes.  Return 0, or -EPIPE if the child has ended or is silent
 * for too long. */
static int read_from_pipe(struct listening *l, void *data, size_t n)
{
	char *at = data;

	while (n > 0) {
		struct pollfd p = {l->fd, POLLIN, 0};
		int ready = poll(&p, 1, SILENCE_MS);
		ssize_t got;

		l->silent = ready == 0;
		if (ready == 0)
			return -EPIPE;
		got = ready < 0 ? -1 : read(l->fd, at, n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return -EPIPE;
		at += got;
		n -= (size_t)got;
	}
	return 0;
}

static int receive_failure(struct listening *l, const struct message *m,
			   struct error *err)
{
	struct error e = {0};

	if (m->n >= 0 || m->value >= sizeof e.text ||
	    read_from_pipe(l, e.text, (size_t)m->value) < 0)
		return -EPIPE;
	return error_set(err, m->n, "%s", e.text);
}

/* Receive the sections into one piece of memory, *own. */
static int receive_sections(struct listening *l, struct index_section *s,
			    unsigned n, void **own, struct error *err)
{
	uint64_t total = 0, at = 0;

	for (unsigned i = 0; i < n; i++) {
		struct section head;

		if (read_from_pipe(l, &head, sizeof head) < 0)
			return -EPIPE;
		if (head.size > child_memory_limit() || head.id > UINT32_MAX)
			return error_set(err, -EBADMSG,
					 "its list of members is damaged");
		s[i] = (struct index_section){(uint32_t)head.id, NULL,
					      head.size, NULL};
		total += padded_section(head.size);
	}
	*own = malloc(total ? total : 1);
	if (!*own)
		return error_set(
			err, -ENOMEM,
			"out of memory for its list of members, %llu bytes",
			(unsigned long long)total);
	for (unsigned i = 0; i < n; i++) {
		s[i].data = (char *)*own + at;
		at += padded_section(s[i].size);
	}
	return read_from_pipe(l, *own, total);
}

static int receive_table(struct listening *l, const struct message *m,
			 struct members *out, struct error *err)
{
	struct index_section s[MEMBERS_SECTIONS];
	cleanup_free void *own = NULL;
	int r;

	if (m->n < 1 || m->n > MEMBERS_SECTIONS)
		return -EPIPE;
	r = receive_sections(l, s, (unsigned)m->n, &own, err);
	if (r == 0)
		r = members_of_sections(out, s, (unsigned)m->n, own, err);
	if (r == 0)
		own = NULL; /* now owned by the table */
	return r;
}

/* Handle messages until the last one.  -EPIPE, without a sentence: the child gave
 * no answer. */
static int receive_messages(struct listening *l, struct members *out,
			    struct error *err)
{
	struct message m;

	for (;;) {
		if (read_from_pipe(l, &m, sizeof m) < 0)
			return -EPIPE;
		switch (m.what) {
		case BEAT:
			if (l->so_far)
				l->so_far(l->ctx, m.value);
			break;
		case FAIL:
			return receive_failure(l, &m, err);
		case TABLE:
			return receive_table(l, &m, out, err);
		default:
			return -EPIPE;
		}
	}
}

/* Set the error for a child that gave no answer. */
static int explain_silence(const struct listening *l, int status,
			   struct error *err)
{
	if (l->silent)
		return error_set(err, -EBADMSG,
				 "it is damaged: its metadata cannot be read "
				 "(libsquashfuse does not finish)");
	return error_set(err, -EBADMSG,
			 "it is damaged: its metadata cannot be read "
			 "(libsquashfuse crashes on them: %s)",
			 WIFSIGNALED(status) ? strsignal(WTERMSIG(status))
					     : "it ended");
}

int squashfs_walk_in_child(const struct squashfs_image *im,
			   const struct squashfs_info *info,
			   const struct members_options *o, struct members *out,
			   squashfs_beat *so_far, void *ctx, struct error *err)
{
	struct listening l = {.so_far = so_far, .ctx = ctx};
	int pipes[2], status = 0, r;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return error_errno(err, -errno, "cannot make a pipe");
	pid = fork();
	if (pid == 0) {
		close(pipes[0]);
		walk_in_child(pipes[1], im, info, o);
	}
	close(pipes[1]);
	if (pid < 0) {
		r = error_errno(err, -errno, "cannot fork");
		close(pipes[0]);
		return r;
	}
	l.fd = pipes[0];
	r = receive_messages(&l, out, err);
	close(pipes[0]);
	if (l.silent || r != -EPIPE)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return r == -EPIPE ? explain_silence(&l, status, err) : r;
}
