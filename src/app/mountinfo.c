/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the kernel's table of mounts, and unmounts. */
#include "app/mountinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/vec.h"

/* Unmounting a mount that is in use is tried BUSY_TRIES times, BUSY_PAUSE_NS nanoseconds
 * apart. */
#define BUSY_TRIES 10
#define BUSY_PAUSE_NS (5 * 1000 * 1000)

static void entry_free(struct mount_entry *m)
{
	free(m->point);
	free(m->type);
	free(m->source);
	free(m->options);
}

void mounts_free(struct mount_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		entry_free(&l->at[i]);
	vec_free(l);
}

/* Parse a line like "36 35 98:0 /root /point opts shared:1 - type source options"
 * (proc_pid_mountinfo(5)).  Return -EINVAL for any other line, which the caller skips. */
static int parse_mount_line(char *line, struct mount_entry *out)
{
	char *field[5], *rest, *save = NULL;
	char *word = strtok_r(line, " \n", &save);
	unsigned n = 0;

	for (; word && n < 5; word = strtok_r(NULL, " \n", &save))
		field[n++] = word;
	while (word && strcmp(word, "-"))
		word = strtok_r(NULL, " \n", &save);
	if (n < 5 || !word)
		return -EINVAL;
	word = strtok_r(NULL, " \n", &save);
	out->type = word ? strdup(word) : NULL;
	word = strtok_r(NULL, " \n", &save);
	out->source = word ? strdup(word) : NULL;
	rest = strtok_r(NULL, "\n", &save);
	out->id = atoi(field[0]);
	out->options = strdup(rest ? rest : "");
	out->point = strdup(field[4]);
	if (!out->type || !out->source || !out->options || !out->point) {
		entry_free(out);
		return word ? -ENOMEM : -EINVAL;
	}
	parse_mount_field(out->point);
	parse_mount_field(out->source);
	parse_mount_field(out->type);
	return 0;
}

int mounts_read(struct mount_list *out, const char *file, struct error *err)
{
	const char *path = file ? file : "/proc/self/mountinfo";
	cleanup_fclose FILE *f = fopen(path, "re");
	cleanup_free char *line = NULL;
	size_t room = 0;

	memset(out, 0, sizeof *out);
	if (!f)
		return error_errno(err, -errno, "%s", path);
	while (getline(&line, &room, f) >= 0) {
		struct mount_entry m = {-1, NULL, NULL, NULL, NULL};
		int r = parse_mount_line(line, &m);

		if (r == -EINVAL)
			continue;
		if (r < 0 || !vec_push(out, m)) {
			if (r == 0)
				entry_free(&m);
			mounts_free(out);
			return error_no_memory(err, "the table of mounts");
		}
	}
	return 0;
}

/* Return the id of the mount that a path lies on, or -1.  With O_PATH the kernel does not
 * ask the file system, so its daemon may be dead.  Opening it as a directory makes autofs
 * mount it. */
static int mount_id(const char *path)
{
	cleanup_close int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	cleanup_fclose FILE *f = NULL;
	char name[64], line[64];
	int id;

	if (fd < 0)
		return -1;
	snprintf(name, sizeof name, "/proc/self/fdinfo/%d", fd);
	f = fopen(name, "re");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "mnt_id: %d", &id) == 1)
			return id;
	return -1;
}

static const struct mount_entry *mounts_by_id(const struct mount_list *l,
					      int id)
{
	for (size_t i = l->n; i-- > 0;)
		if (id >= 0 && l->at[i].id == id)
			return &l->at[i];
	return NULL;
}

const struct mount_entry *mounts_holding(const struct mount_list *l,
					 const char *path)
{
	return mounts_by_id(l, mount_id(path));
}

/* Searches by id, because several mounts can have one path, and some of them may be
 * covered. */
const struct mount_entry *mounts_find(const struct mount_list *l,
				      const char *point)
{
	const struct mount_entry *m = mounts_holding(l, point);

	if (m)
		return strcmp(m->point, point) ? NULL : m;
	for (size_t i = l->n; i-- > 0;)
		if (!strcmp(l->at[i].point, point))
			return &l->at[i];
	return NULL;
}

bool mount_is_ours(const struct mount_entry *m)
{
	return !strcmp(m->type, MOUNT_TYPE);
}

static long option_number(const struct mount_entry *m, const char *name)
{
	const char *p = m->options;
	size_t n = strlen(name);

	while (p) {
		if (!strncmp(p, name, n))
			return strtol(p + n, NULL, 10);
		p = strchr(p, ',');
		p = p ? p + 1 : NULL;
	}
	return -1;
}

long mount_user(const struct mount_entry *m)
{
	return option_number(m, "user_id=");
}

long mount_group(const struct mount_entry *m)
{
	return option_number(m, "group_id=");
}

bool mount_has_died(int code)
{
	return code == ENOTCONN || code == ECONNABORTED;
}

char *mount_point_path(const char *path)
{
	char *whole = realpath(path, NULL);
	cleanup_free char *copy = NULL;
	cleanup_free char *parent = NULL;
	char *slash, *joined;
	size_t n;

	if (whole || !mount_has_died(errno))
		return whole;
	copy = strdup(path);
	if (!copy)
		return NULL;
	for (n = strlen(copy); n > 1 && copy[n - 1] == '/'; n--)
		copy[n - 1] = '\0';
	slash = strrchr(copy, '/');
	if (slash)
		*slash = '\0';
	parent = realpath(!slash ? "." : slash == copy ? "/" : copy, NULL);
	if (!parent)
		return NULL;
	if (asprintf(&joined, "%s/%s", strcmp(parent, "/") ? parent : "",
		     slash ? slash + 1 : copy) < 0)
		return NULL;
	return joined;
}

/* Try the path where libfuse looks first when it mounts, then PATH. */
static _Noreturn void exec_fusermount(const char *point, bool lazy)
{
	static const char usual[] = "/usr/bin/fusermount3";
	const char *const argv[] = {"fusermount3", lazy ? "-uz" : "-u", "--",
				    point, NULL};

	setenv("LC_ALL", "C", 1);
	execv(usual, (char *const *)argv);
	execvp(argv[0], (char *const *)argv);
	_exit(127);
}

/* Run fusermount3.  `said` is set to the first line of its output.  Return its exit
 * status, or -errno. */
static int run_fusermount(const char *point, bool lazy, char *said, size_t n)
{
	int pipes[2], status;
	ssize_t got;
	size_t have = 0;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		if (dup2(pipes[1], STDERR_FILENO) < 0)
			_exit(127);
		exec_fusermount(point, lazy);
	}
	close(pipes[1]);
	if (pid < 0) {
		close(pipes[0]);
		return -EAGAIN;
	}
	while (have < n - 1 &&
	       ((got = read(pipes[0], said + have, n - 1 - have)) > 0 ||
		(got < 0 && errno == EINTR)))
		have += got > 0 ? (size_t)got : 0;
	close(pipes[0]);
	said[have] = '\0';
	said[strcspn(said, "\n")] = '\0';
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (WIFSIGNALED(status))
		snprintf(said, n, "fusermount3 was killed by signal %d",
			 WTERMSIG(status));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int fail_busy(const char *point, struct error *err)
{
	return error_set(
		err, -EBUSY,
		"'%s' is in use ('fuser -vm %s' lists the processes); leave "
		"it first, or detach it with --lazy",
		point, point);
}

static int detach_once(const char *point, bool lazy, struct error *err)
{
	char said[256];
	int r;

	if (umount2(point, UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0)
		return 0;
	if (errno == EBUSY)
		return fail_busy(point, err);
	if (errno != EPERM)
		return error_errno(err, -errno, "cannot unmount '%s'", point);
	r = run_fusermount(point, lazy, said, sizeof said);
	if (r == 0)
		return 0;
	if (r == 127)
		return error_set(err, -EPERM,
				 "cannot unmount '%s': fusermount3 is not "
				 "installed, and only root can do without it",
				 point);
	if (r < 0)
		return error_errno(err, r, "cannot run fusermount3");
	if (strstr(said, "busy"))
		return fail_busy(point, err);
	return error_set(err, -EPERM, "cannot unmount '%s': %s", point, said);
}

/* Repeats a busy unmount, because the process that reads files ahead (readahead.c) has a
 * file open for 10 us at a time. */
int mount_detach(const char *point, bool lazy, struct error *err)
{
	const struct timespec pause = {.tv_nsec = BUSY_PAUSE_NS};
	int r = detach_once(point, lazy, err);

	for (int i = 1; i < BUSY_TRIES && r == -EBUSY; i++) {
		nanosleep(&pause, NULL);
		r = detach_once(point, lazy, err);
	}
	return r;
}
