/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides which files may be shown to users other than the one who mounted. */
/*
 * The daemon reads with the permissions of the user who mounted.  With allow_other it
 * hands out what it read to users who may lack those permissions.  Which files it reads
 * is decided by the files that it shows: an HDF5 file names others in links, in
 * mappings of virtual datasets and as raw files; directories have symlinks.
 *
 * Two rules keep the mount from showing more than the file system would:
 *
 *   - A file that is not public is never shown to all users.  What is known when the
 *     mount is made decides the mode of all files (0400 or 0444); a private file
 *     that turns up later in a mount of 0444 is refused.
 *   - Where root mounts, a file must lie in the directory tree of a source or of
 *     prefix=: files such as those in /proc show to every reader what the kernel
 *     means for the process that reads them.
 *
 * Both rules are applied to the open descriptor, through the path that the kernel has
 * for it.  A name that is checked first and opened later may be replaced in between.
 */
#include "extent/guard.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "extent/file.h"

/* The permission that all users need on a file, and on a directory on the way to it: a
 * bit of each of the mode's three digits. */
#define READ 4u
#define PASS 1u

/* A POSIX access control list as Linux stores it (linux/posix_acl_xattr.h): a version,
 * then entries of a tag, a permission and an id.  Numbers are in bytes. */
#define ACL_NAME "system.posix_acl_access"
#define ACL_VERSION 2
#define ACL_HEAD 4
#define ACL_ENTRY 8
#define ACL_OWNER 0x01
#define ACL_MASK 0x10
/* A file with a longer list counts as private, whatever the list says. */
#define ACL_BYTES_MAX 4096

void guard_free(struct guard *g)
{
	for (size_t i = 0; i < g->trees.n; i++)
		free(g->trees.at[i]);
	vec_free(&g->trees);
	free(g->private_file);
	g->private_file = NULL;
}

bool guard_add_tree(struct guard *g, const char *dir)
{
	char *real = realpath(dir, NULL);

	if (!real)
		return errno != ENOMEM;
	if (vec_push(&g->trees, real))
		return true;
	free(real);
	return false;
}

/* Return true if an access control list takes `bit` from a user or group that the mode
 * does not name.  The mask need not be looked at: it is the group's digit of the mode. */
static bool is_denied_by_acl(const char *path, unsigned bit)
{
	uint8_t acl[ACL_BYTES_MAX];
	ssize_t n = getxattr(path, ACL_NAME, acl, sizeof acl);

	if (n < 0)
		return errno != ENODATA && errno != EOPNOTSUPP;
	if (n < ACL_HEAD || (n - ACL_HEAD) % ACL_ENTRY != 0 ||
	    load_le32(acl) != ACL_VERSION)
		return true;
	for (ssize_t i = ACL_HEAD; i < n; i += ACL_ENTRY) {
		unsigned tag = load_le16(acl + i);

		if (tag != ACL_OWNER && tag != ACL_MASK &&
		    !(load_le16(acl + i + 2) & bit))
			return true;
	}
	return false;
}

/* Return true if the group, all others, and everyone whom a list names have `bit`. */
static bool everybody_has(unsigned bit, const char *path, mode_t mode)
{
	const mode_t both = bit << 3 | bit;

	return (mode & both) == both && !is_denied_by_acl(path, bit);
}

bool guard_is_public(const char *real, const struct stat *st)
{
	cleanup_free char *dir = strdup(real);
	struct stat up;
	char *slash;

	if (!dir || !everybody_has(READ, real, st->st_mode))
		return false;
	while ((slash = strrchr(dir, '/'))) {
		slash[slash == dir] = '\0'; /* "/x" becomes "/" */
		if (stat(dir, &up) < 0 || !everybody_has(PASS, dir, up.st_mode))
			return false;
		if (slash == dir)
			return true;
	}
	return false;
}

/* Write the path that the kernel has for an open file.  Returns false if no path leads
 * to that file now. */
static bool guard_real_path(int fd, const struct stat *st, char out[PATH_MAX])
{
	char link[32];
	struct stat now;
	ssize_t n;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	n = readlink(link, out, PATH_MAX - 1);
	if (n <= 0 || out[0] != '/')
		return false;
	out[n] = '\0';
	return stat(out, &now) == 0 && now.st_dev == st->st_dev &&
	       now.st_ino == st->st_ino;
}

/* Return true if `path` is below directory `tree`.  The root directory has only the
 * files directly in it, not the whole system. */
static bool guard_is_below(const char *path, const char *tree)
{
	size_t n = strlen(tree);

	if (n == 1)
		return strrchr(path, '/') == path;
	return !strncmp(path, tree, n) && path[n] == '/';
}

static bool guard_is_in_a_tree(const struct guard *g, const char *path)
{
	for (size_t i = 0; i < g->trees.n; i++)
		if (guard_is_below(path, g->trees.at[i]))
			return true;
	return !g->trees.n;
}

int guard_check(struct guard *g, int fd, const struct stat *st,
		const char *path, struct error *err)
{
	char real[PATH_MAX];
	bool known;

	if (!g->trees.n && !g->watches && !g->refuses_private)
		return 0;
	known = guard_real_path(fd, st, real);
	if (g->trees.n && !(known && guard_is_in_a_tree(g, real)))
		return error_set(
			err, -EIO,
			"%s is outside of the source's directory, and this is "
			"a mount by root for other users; if they may see the "
			"file, mount with -o prefix=DIRECTORY",
			file_shown(path));
	if (known && guard_is_public(real, st))
		return 0;
	if (g->refuses_private)
		return error_set(
			err, -EIO,
			"%s is not readable by all users, but this mount is: "
			"mount without allow_other, or change the mode of the "
			"file and of the directories above it",
			file_shown(path));
	if (g->watches && !g->private_file)
		g->private_file = strdup(path);
	return g->watches && !g->private_file
		       ? error_no_memory(
				 err, "the name of a file that is not public")
		       : 0;
}
