/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of other files in an HDF5 file: which file they mean. */
/*
 * libhdf5 also looks in the working directory, so that what it reads depends on where a
 * program was started.  This code never does.  Instead, an absolute name whose file does
 * not exist is looked for by its last two components beside the file that has the name:
 * so result files with absolute names can be moved together with the directory of their
 * parts.
 *
 * In a member of an archive, names mean other members (formats/hdf5/file/inside.c).
 */
#include "formats/hdf5/file/resolve.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

struct search {
	char *dir;      /* directory of the file that has the name */
	char *real_dir; /* `dir` behind symlinks; NULL: equal to `dir` */
	const char *name, *last, *last_two;
	char *first, *found; /* the first place tried, and the file's */
	bool failed;         /* out of memory */
	bool inside;         /* the name is in a member of an archive */
};

static char *resolve_directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return strdup(".");
	return slash == path ? strdup("/")
			     : strndup(path, (size_t)(slash - path));
}

/* Does a name have a component ".."? */
static bool goes_up(const char *name)
{
	for (size_t n; *name; name += n + (name[n] == '/')) {
		n = strcspn(name, "/");
		if (n == 2 && name[0] == '.' && name[1] == '.')
			return true;
	}
	return false;
}

/* Try DIR/NAME; `dir` has `len` bytes.  Return true if the search is over, because the
 * file exists or memory is exhausted. */
static bool try_place(struct search *x, const char *dir, size_t len,
		      const char *name)
{
	char *path;

	/* The contents of an archive must not decide where files outside of it are
	 * looked for. */
	if (x->inside && goes_up(name))
		return false;
	if (asprintf(&path, "%.*s%s%s", (int)len, dir, len ? "/" : "", name) <
	    0) {
		x->failed = true;
		return true;
	}
	if (access(path, F_OK) == 0) {
		x->found = path;
		return true;
	}
	if (!x->first)
		x->first = path;
	else
		free(path);
	return false;
}

static bool try_dir(struct search *x, const char *dir, size_t len)
{
	if (x->name[0] != '/')
		return try_place(x, dir, len, x->name);
	return try_place(x, dir, len, x->last_two) ||
	       try_place(x, dir, len, x->last);
}

/* Try the directories of a list with ':' between them; "${ORIGIN}" stands for x->dir. */
static bool try_prefixes(struct search *x, const char *list)
{
	static const char origin[] = "${ORIGIN}";
	const size_t n = sizeof origin - 1;

	while (list && *list) {
		size_t len = strcspn(list, ":");
		char *dir = NULL;
		bool done;

		if (len >= n && !strncmp(list, origin, n)) {
			if (asprintf(&dir, "%s%.*s", x->dir, (int)(len - n),
				     list + n) < 0)
				dir = NULL;
		} else {
			dir = strndup(list, len);
		}
		/* Passing over a place could find another file of that name. */
		if (!dir)
			return x->failed = true;
		/* A relative prefix would depend on the working directory. */
		done = dir[0] == '/' && try_dir(x, dir, strlen(dir));
		free(dir);
		if (done)
			return true;
		list += len + (list[len] == ':');
	}
	return false;
}

static bool search_all(struct search *x, const struct hdf5_source *s,
		       enum hdf5_prefix kind)
{
	static const char *const variable[] = {
		[HDF5_PREFIX_VDS] = "HDF5_VDS_PREFIX",
		[HDF5_PREFIX_LINK] = "HDF5_EXT_PREFIX",
		[HDF5_PREFIX_RAW] = "HDF5_EXTFILE_PREFIX",
	};
	bool absolute = x->name[0] == '/';

	/* If only one place is possible, take it without a look: there may be ten
	 * thousand parts. */
	if (!absolute && !s->prefix && !getenv(variable[kind]) && !x->real_dir)
		return asprintf(&x->first, "%s/%s", x->dir, x->name) < 0
			       ? (x->first = NULL, x->failed = true)
			       : true;
	if (absolute && try_place(x, "", 0, x->name))
		return true;
	if (!absolute && try_dir(x, x->dir, strlen(x->dir)))
		return true;
	if (try_prefixes(x, s->prefix) ||
	    try_prefixes(x, getenv(variable[kind])))
		return true;
	if (absolute && try_dir(x, x->dir, strlen(x->dir)))
		return true;
	return x->real_dir && try_dir(x, x->real_dir, strlen(x->real_dir));
}

/* If `path` is a symlink, set x->real_dir (malloc'ed) to the directory of the file that it
 * leads to. */
static void find_real_directory(struct search *x, const struct hdf5_source *s,
				uint32_t from, const char *path)
{
	char real[PATH_MAX];

	if (from == s->file ? !s->real_dir
			    : !realpath(path, real) || !strcmp(real, path))
		return;
	x->real_dir = from == s->file ? strdup(s->real_dir)
				      : resolve_directory_of(real);
	x->failed |= !x->real_dir;
}

const char *hdf5_last_components(const char *name, unsigned n)
{
	const char *at = name + strlen(name);

	while (at > name && (at[-1] != '/' || --n > 0))
		at--;
	return at;
}

static int resolve_on_disk(struct hdf5_source *s, uint32_t from,
			   const char *name, enum hdf5_prefix kind,
			   uint32_t *file, struct error *err)
{
	const char *path = handles_path(s->handles, from);
	struct search x = {
		.dir = resolve_directory_of(path),
		.name = name,
		.last = hdf5_last_components(name, 1),
		.last_two = hdf5_last_components(name, 2),
	};

	find_real_directory(&x, s, from, path);
	x.failed |= !x.dir;
	if (!x.failed)
		search_all(&x, s, kind);
	*file = x.failed ? UINT32_MAX
			 : handles_add(s->handles, x.found ? x.found : x.first);
	free(x.dir);
	free(x.real_dir);
	free(x.first);
	free(x.found);
	return *file == UINT32_MAX
		       ? error_no_memory(err, "the path of another file")
		       : 0;
}

/* Resolve a name in a member of an archive: to another member, or else to a file on
 * disk in a directory of prefix=. */
static int resolve_inside(struct hdf5_source *s, uint32_t from,
			  const char *name, uint32_t *file, struct error *err)
{
	struct search x = {
		.dir = strdup(s->dir), /* "${ORIGIN}": the archive's */
		.inside = true,
		.name = name,
		.last = hdf5_last_components(name, 1),
		.last_two = hdf5_last_components(name, 2),
	};
	int r = x.dir ? hdf5_inside_resolve(s, from, name, file, err) : -ENOMEM;

	if (r == 1) {
		try_prefixes(&x, s->prefix);
		if (x.found)
			*file = handles_add(s->handles, x.found);
		r = x.failed || *file == UINT32_MAX ? -ENOMEM : 0;
	}
	free(x.dir);
	free(x.first);
	free(x.found);
	return r == -ENOMEM ? error_no_memory(err, "the path of another file")
			    : r;
}

int hdf5_resolve(struct hdf5_source *s, uint32_t from, const char *name,
		 enum hdf5_prefix kind, uint32_t *file, struct error *err)
{
	if (!strcmp(name, ".")) {
		*file = from;
		return 0;
	}
	return s->around ? resolve_inside(s, from, name, file, err)
			 : resolve_on_disk(s, from, name, kind, file, err);
}
