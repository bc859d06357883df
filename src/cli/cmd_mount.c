/* SPDX-License-Identifier: BSD-2-Clause */
/* tensorfs mount: check, open, mount, fork, serve. */

/*
 * What can fail, fails before the fork and on the terminal: the mount point is
 * looked at first (cheap), then the sources are opened, then the kernel is
 * asked for the mount.  The child serves; the parent returns when the kernel's
 * first request has been answered, so that whoever waited for `mount` can read
 * at once.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/cli.h"
#include "app/daemon.h"
#include "app/mountpoint.h"
#include "app/serving.h"
#include "app/stage_first.h"
#include "base/cleanup.h"
#include "base/log.h"

struct mounting {
	const struct command *c;
	struct settings *s;
	struct session *session;
	struct fuse_face *face;
	struct daemon daemon;
	struct stage_first first;
	int lock; /* of the mount point, until it is mounted; -1: none */
	bool ready;
};

static void on_ready(void *ctx)
{
	struct mounting *m = ctx;

	m->ready = true;
	if (m->s->notify_pipe)
		notify_ready(m->s->notify_pipe);
	if (m->s->foreground)
		notify_service_manager();
	daemon_ready(&m->daemon);
}

/* Threads start here: in the child, or in the foreground. */
static int serve(struct mounting *m, struct error *err)
{
	int r = source_isolate(m->s->foreground, err);

	if (r == 0)
		r = session_start(m->session, err);
	if (r < 0)
		return r;
	return fuse_face_serve(m->face, on_ready, m, err);
}

static int serve_foreground(struct mounting *m)
{
	struct error err = {0};
	int r;

	if (chdir("/") < 0)
		cli_say(m->c, "cannot change to /: %s", strerror(errno));
	r = serve(m, &err);
	if (r < 0)
		cli_say(m->c, "%s", err.text);
	return r == 0         ? CLI_DONE
	       : m->ready     ? CLI_INCOMPLETE
	       : r == -ENOMEM ? CLI_MEMORY
			      : CLI_MOUNT;
}

static int serve_background(struct mounting *m)
{
	struct error err = {0};
	int r = daemon_fork(&m->daemon, &err);

	if (r < 0) {
		cli_say(m->c, "%s", err.text);
		return CLI_MOUNT;
	}
	if (r == 0) {
		r = serve(m, &err);
		if (r < 0 && m->ready)
			log_error("%s", err.text);
		if (!m->ready)
			daemon_fail(&m->daemon,
				    r == -ENOMEM ? CLI_MEMORY : CLI_MOUNT,
				    r < 0 ? err.text
					  : "unmounted before it was ready");
		fuse_face_free(m->face);
		stage_first_release(&m->first);
		session_end(m->session, r < 0 ? CLI_INCOMPLETE : CLI_DONE);
		settings_free(m->s);
		_exit(r < 0 ? CLI_INCOMPLETE : CLI_DONE);
	}
	r = daemon_wait(&m->daemon, CLI_MOUNT, &err);
	if (r == 0) {
		/* The mount is the child's now: nothing here may end it. */
		fflush(NULL);
		_exit(CLI_DONE);
	}
	cli_say(m->c, "%s", err.text);
	return r;
}

static int mount_and_serve(struct mounting *m, char *const *paths, size_t n,
			   const char *point)
{
	struct error err = {0};
	int r = mount_open(m->s, paths, n, point, &m->session, &m->face, &err);

	if (m->lock >= 0)
		close(m->lock);
	m->lock = -1;
	if (r != 0) {
		cli_say(m->c, "%s", err.text);
		return r;
	}
	r = m->s->foreground ? serve_foreground(m) : serve_background(m);
	fuse_face_free(m->face);
	stage_first_release(&m->first);
	session_end(m->session, r);
	return r;
}

/* With --stage from shared memory, which the daemon holds until it ends. */
static int stage_and_serve(struct mounting *m, char **paths, size_t n,
			   const char *point)
{
	struct error err = {0};
	int r = stage_first(&m->first, m->c, m->s, paths, n, &err);

	if (r != CLI_DONE) {
		cli_say(m->c, "%s",
			stage_signal() ? "interrupted: nothing was left behind"
				       : err.text);
		stage_die_of_signal();
		return r;
	}
	if (m->first.active) {
		stage_first_settings(m->s);
		paths[0] = m->first.held.path;
		n = 1;
	}
	r = mount_and_serve(m, paths, n, point);
	stage_first_release(&m->first);
	return r;
}

static int check_notify_pipe(const struct command *c, struct settings *s)
{
	struct stat st;

	if (!s->notify_pipe)
		return 0;
	if (stat(s->notify_pipe, &st) < 0 || !S_ISFIFO(st.st_mode))
		return cli_usage(c, "notify_pipe: '%s' is not a FIFO",
				 s->notify_pipe);
	s->notify_pipe = path_absolute(s, s->notify_pipe);
	return s->notify_pipe ? 0 : CLI_MEMORY;
}

/* Lock the mount point and look whether it is free: of several mounts that start on one
 * directory at once, the first one wins and the others find it mounted. */
static int claim_point(struct mounting *m, char **argv, size_t n, char **point)
{
	struct error err = {0};
	int r = mountpoint_check(m->c, argv[n], m->s, argv, n, point, &err);

	if (r == 0 && strncmp(*point, "/dev/fd/", 8) != 0) {
		m->lock = mountpoint_lock(m->c, *point);
		free(steal_pointer(point));
		r = mountpoint_check(m->c, argv[n], m->s, argv, n, point, &err);
	}
	if (r == 0)
		return 0;
	cli_say(m->c, "%s", err.text);
	return CLI_MOUNT;
}

int cmd_mount(const struct command *c, struct settings *s, int argc,
	      char **argv)
{
	struct mounting m = {.c = c, .s = s, .daemon = {.fd = -1}, .lock = -1};
	cleanup_free char *point = NULL;
	size_t n = (size_t)argc - 1;
	int r;

	if (s->debug)
		s->foreground = true;
	if (!s->foreground && daemon_would_die()) {
		cli_say(c, "note: staying in the foreground, because this "
			   "command is all that its Slurm step runs, and a "
			   "daemon would end with the step");
		s->foreground = true;
	}
	serving_threads(s);
	signal(SIGPIPE, SIG_IGN);
	r = check_notify_pipe(c, s);
	if (r != 0)
		return r;
	r = sources_prepare(c, s, argv, n);
	if (r == 0)
		r = claim_point(&m, argv, n, &point);
	if (r == 0)
		r = stage_and_serve(&m, argv, n, point);
	if (r != 0 && s->notify_pipe && !m.ready)
		notify_failed(s->notify_pipe);
	return r;
}
