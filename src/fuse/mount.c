/* SPDX-License-Identifier: BSD-2-Clause */
/* Mounts over FUSE, and explains failures. */
/*
 * Mounting and serving are two steps because a daemon forks between them: every refusal
 * comes before the fork, on the user's terminal, with a sentence that says what to do.
 *
 * The common reasons are checked first.  libfuse and fusermount3 print the other
 * reasons.  So while they mount, standard error goes to a file in memory, and its
 * contents become part of our sentence.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "fuse/private.h"
#include "fuse/uring.h"

static void log_libfuse(enum fuse_log_level level, const char *fmt, va_list ap)
{
	char line[512];
	size_t n;

	vsnprintf(line, sizeof line, fmt, ap);
	n = strlen(line);
	while (n && line[n - 1] == '\n')
		line[--n] = '\0';
	if (level <= FUSE_LOG_WARNING)
		log_warn("libfuse: %s", line);
	else
		log_debug(DEBUG_FUSE, "%s", line);
}

/* ---- refusing a mount in words ------------------------------------------ */

bool fuse_face_on_fd(const char *mountpoint)
{
	return !strncmp(mountpoint, "/dev/fd/", 8);
}

/* Return whether the program could mount.  It has to become root by its mode or a
 * capability, which the process (no_new_privs), the file system (nosuid) or a user
 * namespace may prevent. */
static bool is_privileged(const char *file)
{
	struct statvfs fs;
	struct stat st;

	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ||
	    statvfs(file, &fs) < 0 || fs.f_flag & ST_NOSUID ||
	    stat(file, &st) < 0)
		return false;
	return (st.st_mode & S_ISUID && st.st_uid == 0) ||
	       getxattr(file, "security.capability", NULL, 0) > 0;
}

/* Return whether there is a fusermount3 where libfuse looks for it.  *privileged is set
 * if one of them may mount. */
static bool have_fusermount(bool *privileged)
{
	static const char usual[] = "/usr/bin/fusermount3";
	cleanup_free char *path = NULL;
	const char *env = getenv("PATH");
	char file[4096], *dir, *save = NULL;
	bool found = access(usual, X_OK) == 0;

	*privileged = found && is_privileged(usual);
	path = strdup(env ? env : "/usr/local/bin:/bin");
	for (dir = path ? strtok_r(path, ":", &save) : NULL;
	     dir && !*privileged; dir = strtok_r(NULL, ":", &save)) {
		snprintf(file, sizeof file, "%s/fusermount3", dir);
		if (access(file, X_OK) < 0)
			continue;
		found = true;
		*privileged = is_privileged(file);
	}
	return found;
}

/* Return whether this process has CAP_SYS_ADMIN, which mount(2) demands.  Root may lack
 * it (in a container), and a user may have it (in a user namespace). */
static bool have_capability(void)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	return syscall(SYS_capget, &head, data) == 0 &&
	       data[0].effective & (1u << CAP_SYS_ADMIN);
}

/* fusermount3 needs the name of the user, which a user of a container may lack. */
bool fuse_face_may_mount(void)
{
	bool privileged;

	if (have_capability())
		return true;
	return geteuid() != 0 && have_fusermount(&privileged) && privileged &&
	       getpwuid(geteuid());
}

/* Return whether /etc/fuse.conf lets users give allow_other. */
static bool others_allowed(void)
{
	cleanup_fclose FILE *conf = fopen("/etc/fuse.conf", "re");
	char line[256], word[32];

	while (conf && fgets(line, sizeof line, conf))
		if (sscanf(line, " %31[a-z_]", word) == 1 &&
		    !strcmp(word, "user_allow_other"))
			return true;
	return false;
}

static int check_system(const struct fuse_face_options *o, struct error *err)
{
	bool privileged;

	if (access("/dev/fuse", F_OK) < 0)
		return error_set(
			err, -ENODEV,
			"there is no /dev/fuse: load the module (modprobe "
			"fuse), or let the container have the device "
			"(--device /dev/fuse)");
	if (geteuid() == 0)
		return 0;
	if (access("/dev/fuse", R_OK | W_OK) < 0)
		return error_set(err, -EACCES,
				 "you may not open /dev/fuse: root has to set "
				 "its mode to 0666");
	if (have_capability())
		return 0;
	if (!have_fusermount(&privileged))
		return error_set(err, -EPERM,
				 "fusermount3 is not installed, and only root "
				 "can mount without it: install the package "
				 "fuse3, or use 'tensorfs run --private'");
	if ((o->allow_other || o->allow_root) && !others_allowed())
		return error_set(
			err, -EPERM,
			"allow_other is not permitted here: root has to put "
			"the line user_allow_other into /etc/fuse.conf");
	return 0;
}

/* Get the mount point's absolute path, because the daemon changes its directory. */
static int check_mountpoint(const char *path, char **out, struct error *err)
{
	cleanup_free char *full = realpath(path, NULL);
	struct stat st;
	int e = 0;

	if (!full || stat(full, &st) < 0)
		e = errno;
	if (e == ENOTCONN || e == ECONNABORTED)
		return error_set(err, -e,
				 "%s: the mount of a daemon that died is in "
				 "the way: remove it with tensorfs umount %s",
				 path, path);
	if (e == ENOENT)
		return error_set(err, -e,
				 "%s: there is no such directory to mount on; "
				 "make it first: mkdir %s",
				 path, path);
	if (e)
		return error_errno(err, -e, "mount point %s", path);
	if (!S_ISDIR(st.st_mode))
		return error_set(
			err, -ENOTDIR,
			"%s is not a directory, and cannot be a mount point",
			path);
	*out = steal_pointer(&full);
	return 0;
}

/* ---- mounting ----------------------------------------------------------- */

static bool add_option(char **opts, const char *fmt, const char *value)
{
	cleanup_free char *opt = NULL;

	if (asprintf(&opt, fmt, value) < 0)
		return false;
	return fuse_opt_add_opt_escaped(opts, opt) == 0;
}

static void refuse_uring(void)
{
	if (!uring_is_wanted(fuse_version(), getenv(URING_VARIABLE)))
		return;
	log_warn(URING_VARIABLE
		 " is ignored: with io_uring, quick requests would wait "
		 "behind chunks that are being decoded");
	unsetenv(URING_VARIABLE);
}

static int session_new(struct fuse_face *f, const struct fuse_face_options *o,
		       struct error *err)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	cleanup_free char *opts = NULL;
	bool ok;

	refuse_uring();
	ok = add_option(&opts, "%s", "ro") &&
	     add_option(&opts, "%s", "nosuid") &&
	     add_option(&opts, "%s", "nodev") &&
	     add_option(&opts, "subtype=%s", "tensorfs") &&
	     add_option(&opts, "fsname=%s", o->fsname ? o->fsname : "tensorfs");
	if (ok && o->check_modes)
		ok = add_option(&opts, "%s", "default_permissions");
	if (ok && o->allow_other)
		ok = add_option(&opts, "%s", "allow_other");
	else if (ok && o->allow_root)
		ok = add_option(&opts, "%s", "allow_root");
	if (ok && o->debug)
		ok = add_option(&opts, "%s", "debug");
	if (ok)
		ok = add_option(&opts, "%s", "max_read=1048576");
	if (ok)
		ok = fuse_opt_add_arg(&args, "tensorfs") == 0 &&
		     fuse_opt_add_arg(&args, "-o") == 0 &&
		     fuse_opt_add_arg(&args, opts) == 0;
	if (ok)
		f->session = fuse_session_new(&args, &fuse_face_ops,
					      sizeof fuse_face_ops, f);
	fuse_opt_free_args(&args);
	if (!f->session && !ok)
		return error_no_memory(err, "the options of the mount");
	if (!f->session)
		return error_set(err, -EINVAL,
				 "libfuse does not accept the options");
	return 0;
}

/* Read what was printed to the file, as one line. */
static void read_complaint(int fd, char *buf, size_t n)
{
	ssize_t len = pread(fd, buf, n - 1, 0);
	char *p;

	buf[len > 0 ? len : 0] = '\0';
	for (p = buf; *p; p++)
		if (*p == '\n')
			*p = p[1] ? ' ' : '\0';
}

/* Call fuse_session_mount, with what it prints in `said`.  Return 0 or -errno. */
static int mount_quietly(struct fuse_face *f, char *said, size_t n)
{
	cleanup_close int memory = memfd_create("mount", MFD_CLOEXEC);
	cleanup_close int saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	bool capture = !f->debug && memory >= 0 && saved >= 0;
	int r, e;

	said[0] = '\0';
	if (capture) {
		fflush(stderr);
		capture = dup2(memory, STDERR_FILENO) >= 0;
	}
	errno = 0;
	r = fuse_session_mount(f->session, f->mountpoint);
	e = errno;
	if (capture) {
		fflush(stderr);
		dup2(saved, STDERR_FILENO);
		read_complaint(memory, said, n);
	}
	return r == 0 ? 0 : -(e ? e : EPERM);
}

/* Return the device that a path is on as the kernel has it cached; 0 if there is nothing
 * at the path. */
static dev_t device_at(const char *path)
{
	struct statx st;

	if (statx(AT_FDCWD, path,
		  AT_STATX_DONT_SYNC | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0,
		  &st) < 0)
		return 0;
	return makedev(st.stx_dev_major, st.stx_dev_minor);
}

int fuse_face_mount(struct fuse_face **out, const struct fuse_face_options *o,
		    struct fs *fs, struct error *err)
{
	struct fuse_face *f = calloc(1, sizeof *f);
	char said[256];
	int r;

	*out = NULL;
	if (!f)
		return error_no_memory(err, "the mount");
	f->fs = fs;
	f->threads = o->threads ? o->threads : 1;
	f->timeout = o->timeout;
	f->prefetch = o->prefetch;
	f->order = o->order;
	f->debug = o->debug;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->wake, NULL);
	if (fuse_face_on_fd(o->mountpoint)) {
		f->mountpoint = strdup(o->mountpoint);
		r = f->mountpoint ? 0
				  : error_no_memory(
					    err, "the path of the mount point");
	} else {
		r = check_system(o, err);
		if (r == 0)
			r = check_mountpoint(o->mountpoint, &f->mountpoint,
					     err);
	}
	if (r == 0)
		r = session_new(f, o, err);
	if (r == 0) {
		r = mount_quietly(f, said, sizeof said);
		f->mounted = r == 0;
		if (r == 0)
			f->device = device_at(f->mountpoint);
		if (r < 0 && said[0])
			error_set(err, r, "cannot mount on %s: %s%s",
				  o->mountpoint, said,
				  geteuid() == 0 || fuse_face_may_mount()
					  ? ""
					  : "; 'tensorfs run --private' needs "
					    "no fusermount3");
		else if (r < 0)
			error_errno(err, r, "cannot mount on %s",
				    o->mountpoint);
	}
	if (r < 0) {
		fuse_face_free(f);
		return r;
	}
	if (!f->debug)
		fuse_set_log_func(log_libfuse);
	*out = f;
	return 0;
}

bool fuse_face_is_there(const struct fuse_face *f)
{
	if (fuse_face_on_fd(f->mountpoint))
		return false;
	return !f->device || device_at(f->mountpoint) == f->device;
}

/* Return whether the kernel has ended the connection: no mount of it is left. */
static bool is_over(const struct fuse_face *f)
{
	struct pollfd p = {.fd = fuse_session_fd(f->session)};

	return poll(&p, 1, 0) == 1 && (p.revents & POLLERR);
}

/* libfuse unmounts whatever is at the path unless it finds that the connection is over;
 * after a lazy umount that may be a later mount. */
void fuse_face_unmount(struct fuse_face *f)
{
	bool there = f->mounted && !is_over(f) && fuse_face_find(f);

	/* libfuse has only the original path. */
	if (there && f->moved)
		fuse_unmount_path(f->mountpoint, true);
	else if (there || (f->mounted && is_over(f)))
		fuse_session_unmount(f->session);
	f->mounted = false;
}

void fuse_face_free(struct fuse_face *f)
{
	if (!f)
		return;
	fuse_face_unmount(f);
	if (f->session)
		fuse_session_destroy(f->session);
	pthread_mutex_destroy(&f->lock);
	pthread_cond_destroy(&f->wake);
	free(f->mountpoint);
	free(f->listing);
	free(f);
}
