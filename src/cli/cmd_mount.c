/* SPDX-License-Identifier: BSD-2-Clause */
/* tensorfs mount: prepare, stage, open, mount, serve. */

/*
 * Whatever can fail does so before the fork, with its sentence on the terminal: the mount
 * point is checked first, because that is cheap, then the sources are opened, then the
 * kernel is asked for the mount.  The child serves.  The parent returns once the kernel's
 * first request has been answered, so that the mount can be read as soon as the command
 * ends.
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
	char **sources; /* n paths; one after staging */
	size_t n;
	char *point; /* malloc'ed */
	struct session *session;
	struct fuse_face *face;
	struct daemon daemon;
	struct stage_first first;
	int lock; /* of the mount point, held until it is mounted; -1: not held */
	bool ready;
};

/* Make the path of the FIFO absolute.  A path that is refused is forgotten, so that
 * nothing is written to it. */
static int check_notify_pipe(const struct command *c, struct settings *s)
{
	const char *given = s->notify_pipe;
	struct stat st;

	s->notify_pipe = NULL;
	if (!given)
		return 0;
	if (stat(given, &st) < 0 || !S_ISFIFO(st.st_mode))
		return cli_usage(c, "notify_pipe: '%s' is not a FIFO", given);
	s->notify_pipe = path_absolute(s, given);
	return s->notify_pipe ? 0 : CLI_MEMORY;
}

/* Lock the mount point and check that it is free: if several mounts start on one
 * directory at once, the first one wins and the others find it mounted. */
static int claim_point(struct mounting *m, const char *given)
{
	struct error err = {0};
	int r = mountpoint_check(m->c, given, m->s, m->sources, m->n, &m->point,
				 &err);

	if (r == 0 && strncmp(m->point, "/dev/fd/", 8) != 0) {
		m->lock = mountpoint_lock(m->c, m->point);
		free(steal_pointer(&m->point));
		r = mountpoint_check(m->c, given, m->s, m->sources, m->n,
				     &m->point, &err);
	}
	if (r == 0)
		return 0;
	cli_say(m->c, "%s", err.text);
	return CLI_MOUNT;
}

/* Settle the options, make paths absolute, claim the mount point.  Like all steps below,
 * return 0, or an exit code whose sentence has been printed. */
static int prepare_mount(struct mounting *m, const char *point)
{
	struct settings *s = m->s;
	int r;

	if (s->debug)
		s->foreground = true;
	if (!s->foreground && daemon_would_die()) {
		cli_say(m->c, "note: staying in the foreground, because this "
			      "command is all that its Slurm step runs, and a "
			      "daemon would end with the step");
		s->foreground = true;
	}
	serving_threads(s);
	signal(SIGPIPE, SIG_IGN);
	r = check_notify_pipe(m->c, s);
	if (r == 0)
		r = sources_prepare(m->c, s, m->sources, m->n);
	return r ? r : claim_point(m, point);
}

/* With --stage, copy the sources to shared memory, which the daemon holds until it ends,
 * and mount the copy instead. */
static int stage_sources(struct mounting *m)
{
	struct error err = {0};
	int r = stage_first(&m->first, m->c, m->s, m->sources, m->n, &err);

	if (r != CLI_DONE) {
		cli_say(m->c, "%s",
			stage_signal() ? "interrupted: nothing was left behind"
				       : err.text);
		stage_die_of_signal();
		return r;
	}
	if (m->first.active) {
		stage_first_settings(m->s);
		m->sources[0] = m->first.held.path;
		m->n = 1;
	}
	return 0;
}

/* Open the sources and ask the kernel for the mount. */
static int open_and_mount(struct mounting *m)
{
	struct error err = {0};
	int r = mount_open(m->s, m->sources, m->n, m->point, &m->session,
			   &m->face, &err);

	if (r != 0)
		cli_say(m->c, "%s", err.text);
	if (m->lock >= 0)
		close(m->lock);
	m->lock = -1;
	return r;
}

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

/* Start the threads and serve until the mount ends. */
static int mount_serve(struct mounting *m, struct error *err)
{
	int r = source_isolate(m->s->foreground, err);

	if (r == 0)
		r = session_start(m->session, err);
	if (r < 0)
		return r;
	return fuse_face_serve(m->face, on_ready, m, err);
}

/* Release everything; the process ends with exit code `r`. */
static void end_mount(struct mounting *m, int r)
{
	if (m->lock >= 0)
		close(m->lock);
	if (m->face)
		fuse_face_free(m->face);
	stage_first_release(&m->first);
	if (m->session)
		session_end(m->session, r);
	free(m->point);
}

static int stay_in_foreground(struct mounting *m)
{
	struct error err = {0};
	int r;

	if (chdir("/") < 0)
		cli_say(m->c, "cannot change to /: %s", strerror(errno));
	r = mount_serve(m, &err);
	if (r < 0)
		cli_say(m->c, "%s", err.text);
	return r == 0         ? CLI_DONE
	       : m->ready     ? CLI_INCOMPLETE
	       : r == -ENOMEM ? CLI_MEMORY
			      : CLI_MOUNT;
}

/* In the child: serve, tell the parent if that fails before the mount is ready, exit. */
static _Noreturn void serve_as_daemon(struct mounting *m)
{
	struct error err = {0};
	int r = mount_serve(m, &err);
	int code = r < 0 ? CLI_INCOMPLETE : CLI_DONE;

	if (r < 0 && m->ready)
		log_error("%s", err.text);
	if (!m->ready)
		daemon_fail(&m->daemon, r == -ENOMEM ? CLI_MEMORY : CLI_MOUNT,
			    r < 0 ? err.text : "unmounted before it was ready");
	end_mount(m, code);
	settings_free(m->s);
	_exit(code);
}

/* Fork the daemon and wait until it serves.  Returns only after a failure. */
static int mount_start_daemon(struct mounting *m)
{
	struct error err = {0};
	int r = daemon_fork(&m->daemon, &err);

	if (r < 0) {
		cli_say(m->c, "%s", err.text);
		return CLI_MOUNT;
	}
	if (r == 0)
		serve_as_daemon(m);
	r = daemon_wait(&m->daemon, CLI_MOUNT, &err);
	if (r == 0) {
		/* The mount belongs to the child: nothing here may end it. */
		fflush(NULL);
		_exit(CLI_DONE);
	}
	cli_say(m->c, "%s", err.text);
	return r;
}

int cmd_mount(const struct command *c, struct settings *s, int argc,
	      char **argv)
{
	struct mounting m = {.c = c,
			     .s = s,
			     .sources = argv,
			     .n = (size_t)argc - 1,
			     .daemon = {.fd = -1},
			     .lock = -1};
	int r = prepare_mount(&m, argv[argc - 1]);

	if (r == 0)
		r = stage_sources(&m);
	if (r == 0)
		r = open_and_mount(&m);
	if (r == 0)
		r = s->foreground ? stay_in_foreground(&m)
				  : mount_start_daemon(&m);
	end_mount(&m, r);
	if (r != 0 && s->notify_pipe && !m.ready)
		notify_failed(s->notify_pipe);
	return r;
}
