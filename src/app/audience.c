/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides which files of a mount other users may read. */
#include "app/audience.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "extent/guard.h"

/* Environment variables of libhdf5 that have the effect of prefix=
 * (formats/hdf5/file/resolve.c). */
static const char *const prefix_variables[] = {
	"HDF5_VDS_PREFIX", "HDF5_EXT_PREFIX", "HDF5_EXTFILE_PREFIX"};

/* Allow the directory that holds `path`. */
static bool add_parent(struct handles *h, const char *path)
{
	cleanup_free char *dir = strdup(path);
	char *slash = dir ? strrchr(dir, '/') : NULL;

	if (!dir)
		return false;
	if (!slash)
		return handles_confine(h, ".");
	slash[slash == dir] = '\0';
	return handles_confine(h, dir);
}

/* Allow the tree of a source.  A directory is its own tree.  A file has two: the directory
 * that holds its name, and the directory of the file itself, which differ when it is a
 * symlink. */
static bool add_source(struct handles *h, const char *path)
{
	cleanup_free char *real = realpath(path, NULL);
	struct stat st;

	/* `path` may be a pattern of files.  If it is missing, opening it reports that. */
	if (!real || stat(real, &st) < 0)
		return errno != ENOMEM && add_parent(h, path);
	if (S_ISDIR(st.st_mode))
		return handles_confine(h, real);
	return add_parent(h, path) && add_parent(h, real);
}

/* Allow the directories of a list separated by ':'; "${ORIGIN}" is the directory of a
 * source. */
static bool add_prefixes(struct handles *h, const char *list,
			 char *const *paths, size_t n)
{
	static const char origin[] = "${ORIGIN}";
	const size_t skip = sizeof origin - 1;
	bool ok = true;

	while (ok && list && *list) {
		size_t len = strcspn(list, ":");
		cleanup_free char *dir = strndup(list, len);

		ok = dir != NULL;
		for (size_t i = 0; ok && i < n && !strncmp(dir, origin, skip);
		     i++) {
			cleanup_free char *full = NULL;
			const char *slash = strrchr(paths[i], '/');
			int up = slash ? (int)(slash - paths[i]) : 0;

			ok = asprintf(&full, "%.*s/%s", up, paths[i],
				      dir + skip) >= 0;
			if (!ok)
				full = NULL;
			ok = ok && handles_confine(h, full);
		}
		if (ok && *dir == '/')
			ok = handles_confine(h, dir);
		list += len + (list[len] == ':');
	}
	return ok;
}

int audience_limit(struct handles *h, char *const *paths, size_t n,
		   const struct settings *set, struct error *err)
{
	bool ok = true;

	if (!set->allow_other)
		return 0;
	handles_watch(h);
	if (geteuid() != 0)
		return 0;
	for (size_t i = 0; ok && i < n; i++)
		ok = add_source(h, paths[i]);
	if (ok)
		ok = add_prefixes(h, set->prefix, paths, n);
	for (size_t i = 0;
	     ok && i < sizeof prefix_variables / sizeof *prefix_variables; i++)
		ok = add_prefixes(h, getenv(prefix_variables[i]), paths, n);
	return ok ? 0
		  : error_no_memory(
			    err, "the directories that other users may read");
}

/* Return whether every user may read the source.  Without allow_other only its own mode
 * counts, because copies of files get that mode. */
static bool source_is_public(const char *path, const struct settings *set)
{
	cleanup_free char *real = realpath(path, NULL);
	struct stat st;

	if (!real || stat(real, &st) < 0)
		return false;
	return set->allow_other ? guard_is_public(real, &st)
				: (st.st_mode & S_IROTH) != 0;
}

bool audience_owner_only(struct handles *h, char *const *paths, size_t n,
			 const struct settings *set)
{
	const char *labels = set->views.labels;
	const char *private_file = NULL;

	for (size_t i = 0; i < n && !private_file; i++)
		if (!source_is_public(paths[i], set))
			private_file = paths[i];
	if (!private_file && set->allow_other && labels &&
	    access(labels, F_OK) == 0 && !source_is_public(labels, set))
		private_file = labels;
	if (!private_file && set->allow_other)
		private_file = handles_private(h);
	if (set->allow_other && private_file)
		log_warn(
			"%s is not readable by all users: the files of the "
			"mount get mode 0400 (owner only), despite allow_other",
			private_file);
	else if (set->allow_other)
		handles_refuse_private(h);
	return private_file != NULL;
}
