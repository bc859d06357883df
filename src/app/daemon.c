/* SPDX-License-Identifier: BSD-2-Clause */
/* Forks into the background; the parent's exit status tells whether the mount succeeded. */

/*
 *	parent                      child
 *	  fork ---------------------> setsid, chdir /, stdio, syslog
 *	  read pipe                   start threads, serve
 *	    "\0"          <---------- ready: first request answered
 *	    status, text  <---------- failed
 *	    end of file   <---------- died
 *
 * The kernel closes the pipe when the child dies in any way, so the parent
 * never waits for ever.
 *
 * Under Slurm a daemon may not survive in the background.  A step ends when its tasks
 * have exited.  Then Slurm kills the other processes in its cgroup, whatever session
 * they are in.  Where Slurm does not track by cgroups (proctrack/linuxproc, pgid) it
 * forgets them instead, and they outlive the job.  So the first process of a task must
 * not fork and exit.  SLURM_TASK_PID is the id of that process.  It may also be a batch
 * script or a shell that runs further commands; then it differs from our own id.
 */
#include "app/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"

static void redirect_to_null(int first, int last)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return;
	for (int i = first; i <= last; i++)
		dup2(fd, i);
	if (fd > STDERR_FILENO)
		close(fd);
}

static int become_daemon(void)
{
	if (setsid() < 0 || chdir("/") < 0)
		return -errno;
	redirect_to_null(STDIN_FILENO, STDOUT_FILENO);
	log_to_syslog("tensorfs");
	return 0;
}

int daemon_fork(struct daemon *d, struct error *err)
{
	int pipes[2];
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return error_errno(err, -errno, "cannot make a pipe");
	pid = fork();
	if (pid < 0) {
		int r = error_errno(err, -errno, "cannot fork");

		close(pipes[0]);
		close(pipes[1]);
		return r;
	}
	d->pid = (int)pid;
	if (pid > 0) {
		close(pipes[1]);
		d->fd = pipes[0];
		return 1;
	}
	close(pipes[0]);
	d->fd = pipes[1];
	if (become_daemon() < 0) {
		daemon_fail(
			d, 1,
			"cannot start a session of its own or change to '/'");
		_exit(1);
	}
	return 0;
}

bool daemon_would_die(void)
{
	const char *task = getenv("SLURM_TASK_PID");

	return getenv("SLURM_JOB_ID") && task && atol(task) == (long)getpid();
}

static void report_to_parent(struct daemon *d, const char *data, size_t n)
{
	while (n > 0) {
		ssize_t w = write(d->fd, data, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			break;
		data += w;
		n -= (size_t)w;
	}
	close(d->fd);
	d->fd = -1;
}

void daemon_ready(struct daemon *d)
{
	if (d->fd < 0)
		return;
	if (!d->keep_stderr)
		redirect_to_null(STDERR_FILENO, STDERR_FILENO);
	report_to_parent(d, "", 1);
}

void daemon_fail(struct daemon *d, int status, const char *sentence)
{
	char text[sizeof((struct error *)NULL)->text + 1];
	size_t n = strnlen(sentence, sizeof text - 1);

	if (d->fd < 0)
		return;
	text[0] = (char)status;
	memcpy(text + 1, sentence, n);
	report_to_parent(d, text, n + 1);
}

int daemon_wait(struct daemon *d, int status_of_death, struct error *err)
{
	char text[sizeof err->text + 1];
	size_t have = 0;
	int status;

	while (have < sizeof text - 1) {
		ssize_t n = read(d->fd, text + have, sizeof text - 1 - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		have += (size_t)n;
		if (text[0] == 0)
			break;
	}
	close(d->fd);
	d->fd = -1;
	text[have] = '\0';
	if (have > 0 && text[0] == 0)
		return 0;
	while (waitpid(d->pid, &status, 0) < 0 && errno == EINTR)
		;
	if (have > 0) {
		error_set(err, -EIO, "%s", text + 1);
		return text[0];
	}
	if (WIFSIGNALED(status))
		error_set(err, -EIO,
			  "the daemon died of signal %d (%s) before the mount "
			  "was ready",
			  WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		error_set(err, -EIO,
			  "the daemon ended before the mount was ready; see "
			  "the system log, or try --foreground");
	return status_of_death;
}

static void write_letter(int fd, char letter)
{
	while (write(fd, &letter, 1) < 0 && errno == EINTR)
		;
	close(fd);
}

static void *notify_thread(void *arg)
{
	cleanup_free char *fifo = arg;
	int fd = open(fifo, O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		write_letter(fd, 's');
	else
		log_warn("notify_pipe '%s': %s", fifo, strerror(errno));
	return NULL;
}

void notify_ready(const char *fifo)
{
	char *copy = strdup(fifo);
	pthread_t thread;

	if (!copy || pthread_create(&thread, NULL, notify_thread, copy)) {
		log_warn("notify_pipe '%s': out of memory", fifo);
		free(copy);
		return;
	}
	pthread_detach(thread);
}

/* Speaks the protocol of sd_notify(3), which is one datagram.  An '@' at the start of the
 * address stands for the NUL of an abstract socket. */
void notify_service_manager(void)
{
	static const char ready[] = "READY=1";
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	size_t n = path ? strlen(path) : 0;
	cleanup_close int fd = -1;

	if (n < 2 || n >= sizeof to.sun_path ||
	    (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(to.sun_path, path, n);
	if (path[0] == '@')
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 ||
	    sendto(fd, ready, sizeof ready - 1, MSG_NOSIGNAL,
		   (struct sockaddr *)&to,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) < 0)
		log_warn("cannot notify the service manager at '%s': %s", path,
			 strerror(errno));
}

void notify_failed(const char *fifo)
{
	const struct timespec pause = {0, 50000000};

	for (int i = 0; i < 40; i++) {
		int fd = open(fifo, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

		if (fd >= 0) {
			write_letter(fd, 'f');
			return;
		}
		if (errno != ENXIO && errno != EINTR)
			return;
		nanosleep(&pause, NULL);
	}
}
