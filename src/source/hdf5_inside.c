/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of other files in an HDF5 file that is a member of an archive. */
/*
 * Such a name means another member: beside the one that names it, as files would be
 * beside each other if the archive were extracted.  An absolute name is one of where
 * the archive was made, so its last two components and the last one are looked for
 * there, as on disk (hdf5_resolve.c).  Nothing leads out of the archive: ".." ends at
 * its root, and where there is no member there is no file.
 *
 * A member that is stored as it is becomes a piece of the archive's file.  One that is
 * compressed has to be copied to memory, which is only possible while the source is
 * opened: the processes that libhdf5 runs in later were forked then, and see no copy
 * that is made after.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/backing.h"
#include "base/cleanup.h"
#include "source/hdf5.h"
#include "source/stage.h"

/* In front of a path from the archive's root (hdf5_inside_name).  Whoever writes it
 * into a file means a member, as with any other name. */
#define FROM_ROOT "//member:"

void hdf5_inside_free(struct hdf5_source *s)
{
	for (size_t i = 0; i < s->inside.n; i++)
		free(s->inside.at[i].path);
	vec_free(&s->inside);
}

/* ---- which member a row is ----------------------------------------------- */

/* Note a row; takes the path.  -ENOMEM. */
static int note(struct hdf5_source *s, uint32_t file, char *path)
{
	const struct hdf5_inside is = {file, path};

	if (path && vec_push(&s->inside, is))
		return 0;
	free(path);
	return -ENOMEM;
}

/* Its path from the archive's root; NULL: it is none, or no memory (then *r). */
static const char *path_of(struct hdf5_source *s, uint32_t file, int *r)
{
	uint64_t pos, size;
	char *path = NULL;

	*r = 0;
	for (size_t i = 0; i < s->inside.n; i++)
		if (s->inside.at[i].file == file)
			return s->inside.at[i].path;
	if (file == s->file) {
		path = s->around->self(s->around);
		*r = note(s, file, path);
	} else if (handles_part(s->handles, file, &pos, &size)) {
		*r = s->around->path_at(s->around, pos, size, &path);
		*r = *r == -ENOENT ? 0 : *r < 0 ? *r : note(s, file, path);
	}
	return *r < 0 ? NULL : path;
}

char *hdf5_inside_name(struct hdf5_source *s, uint32_t file)
{
	const char *path;
	char *name;
	int r = 0;

	path = s->around ? path_of(s, file, &r) : NULL;
	if (r < 0)
		return NULL;
	if (!path)
		return strdup(handles_path(s->handles, file));
	return asprintf(&name, FROM_ROOT "%s", path) < 0 ? NULL : name;
}

/* ---- finding one --------------------------------------------------------- */

static int stage(struct hdf5_source *s, const struct backing *b,
		 const char *path, uint32_t *file, struct error *err)
{
	cleanup_free char *shown = NULL;
	struct source_args a = {.inside = b,
				.archive = s->around->archive,
				.handles = s->handles};
	struct error why = {0};

	if (source_isolated())
		return error_set(err, -ENOTSUP,
				 "%s: it is compressed in the archive, and was "
				 "not kept when that was opened: extract it",
				 path);
	a.path = shown = s->around->shown(s->around, path);
	if (!shown)
		return -ENOMEM;
	*file = source_staged(&a, &why);
	return *file == UINT32_MAX
		       ? error_set(err, why.code, "%s: %s", path, why.text)
		       : 0;
}

/* A member as a row.  -ENOENT: there is none. */
static int try_path(struct hdf5_source *s, const char *path, uint32_t *file,
		    struct error *err)
{
	cleanup_free char *is = NULL;
	struct backing b;
	int r = s->around->find(s->around, path, &b, &is);

	if (r < 0)
		return r;
	for (size_t i = 0; i < s->inside.n; i++)
		if (!strcmp(s->inside.at[i].path, is)) {
			*file = s->inside.at[i].file;
			return 0;
		}
	if (backing_is_plain(&b)) {
		*file = handles_add_part(s->handles, b.file, b.pos, b.size);
		r = *file == UINT32_MAX ? -ENOMEM : 0;
	} else {
		r = stage(s, &b, is, file, err);
	}
	return r < 0 ? r : note(s, *file, steal_pointer(&is));
}

/* DIR/NAME, `dir` being `len` bytes. */
static int try_beside(struct hdf5_source *s, const char *dir, size_t len,
		      const char *name, uint32_t *file, struct error *err)
{
	cleanup_free char *path = NULL;

	if (asprintf(&path, "%.*s/%s", (int)len, dir, name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	return try_path(s, path, file, err);
}

static const char *last_components(const char *name, unsigned n)
{
	const char *at = name + strlen(name);

	while (at > name && (at[-1] != '/' || --n > 0))
		at--;
	return at;
}

/* What says of a member that it is not there: below the archive's file, where the
 * system finds nothing either. */
static uint32_t missing(struct hdf5_source *s, const char *dir, size_t len,
			const char *name)
{
	cleanup_free char *path = NULL;

	if (asprintf(&path, "%s/.%.*s/%s", s->archive, (int)len, dir, name) <
	    0) {
		path = NULL;
		return UINT32_MAX;
	}
	return handles_add(s->handles, path);
}

int hdf5_inside_resolve(struct hdf5_source *s, uint32_t from, const char *name,
			uint32_t *file, struct error *err)
{
	int r;
	const char *path = path_of(s, from, &r), *slash;
	size_t len;

	if (r < 0)
		return r;
	if (!strncmp(name, FROM_ROOT, strlen(FROM_ROOT))) {
		name += strlen(FROM_ROOT);
		r = try_path(s, name, file, err);
		if (r == -ENOENT) {
			*file = missing(s, "", 0, name);
			r = 1;
		}
		return r;
	}
	path = path ? path : "";
	slash = strrchr(path, '/');
	len = slash ? (size_t)(slash - path) : 0;
	r = name[0] == '/' ? try_beside(s, path, len, last_components(name, 2),
					file, err)
			   : try_beside(s, path, len, name, file, err);
	if (r == -ENOENT && name[0] == '/')
		r = try_beside(s, path, len, last_components(name, 1), file,
			       err);
	if (r != -ENOENT)
		return r;
	*file = missing(s, path, len, name);
	return 1;
}
