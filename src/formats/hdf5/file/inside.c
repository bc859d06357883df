/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of other files in an HDF5 file that is a member of an archive. */
/*
 * Such a name means another member: one beside the member that has the name, as if the
 * archive were extracted.  An absolute name is a path on the machine where the archive
 * was made, so its last two components, then its last one, are looked for beside that
 * member, as on disk (formats/hdf5/file/resolve.c).  No name leads out of the archive: a
 * ".." in its root leads to no member, and files outside are not looked for here.
 *
 * One run of bytes may be several members: hard links, symlinks, equal files of a
 * squashfs image.  Names in it are relative to the member that led to it, so each of
 * these members has a row of its own in the table of files; the row's tag is the member's
 * number.
 *
 * A member that is stored uncompressed becomes a piece of the archive's file.  A
 * compressed one has to be copied to memory, which is only possible while the source is
 * opened: the processes in which libhdf5 runs later were forked then, and do not see
 * copies made afterwards.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "formats/hdf5/file/resolve.h"
#include "formats/stage.h"
#include "stream/backing.h"

/* Precedes a path from the archive's root (hdf5_inside_name).  A file may contain such
 * a name itself; it means a member, as any other name does. */
#define FROM_ROOT "//member:"

/* ---- which member a row is ----------------------------------------------- */

static bool inside_member_of(const struct hdf5_source *s, uint32_t file,
			     uint64_t *member)
{
	const struct source_kept *kept = s->around->kept;

	*member = s->around->self;
	if (file == s->file || handles_tag(s->handles, file, member))
		return true;
	for (size_t i = kept->v.n; i-- > 0;)
		if (kept->v.at[i].file == file) {
			*member = kept->v.at[i].member;
			return true;
		}
	return false;
}

uint32_t hdf5_inside_kept(const struct hdf5_source *s, uint64_t member)
{
	const struct source_kept *kept = s->around->kept;

	for (size_t i = kept->v.n; i-- > 0;)
		if (kept->v.at[i].member == member)
			return kept->v.at[i].file;
	return UINT32_MAX;
}

int hdf5_inside_keep(struct hdf5_source *s, uint64_t member, uint32_t file)
{
	const struct source_kept_member one = {member, file};

	return vec_push(&s->around->kept->v, one) ? 0 : -ENOMEM;
}

char *hdf5_inside_name(struct hdf5_source *s, uint32_t file)
{
	cleanup_free char *path = NULL;
	uint64_t member;
	char *name;

	if (!s->around || !inside_member_of(s, file, &member))
		return strdup(handles_path(s->handles, file));
	path = s->around->path(s->around, member, false);
	return path && asprintf(&name, FROM_ROOT "%s", path) >= 0 ? name : NULL;
}

/* ---- finding one --------------------------------------------------------- */

/* Copy a compressed member to memory, and set *file to its row. */
static int inside_stage(struct hdf5_source *s, const struct backing *b,
			const char *path, uint32_t *file, struct error *err)
{
	cleanup_free char *shown = s->around->shown(s->around, path);
	struct source_args a = {.path = shown,
				.inside = b,
				.archive = s->around->archive,
				.handles = s->handles};
	struct error why = {0};

	if (!shown)
		return -ENOMEM;
	if (source_isolated())
		return error_set(err, -ENOTSUP,
				 "%s: it is compressed in the archive, and was "
				 "not copied to memory when the archive was "
				 "opened: extract it",
				 path);
	*file = source_staged(&a, &why);
	return *file == UINT32_MAX
		       ? error_set(err, why.code, "%s: %s", path, why.text)
		       : 0;
}

static int inside_stage_once(struct hdf5_source *s, const struct backing *b,
			     uint64_t member, uint32_t *file, struct error *err)
{
	cleanup_free char *path = NULL;
	int r;

	*file = hdf5_inside_kept(s, member);
	if (*file != UINT32_MAX)
		return 0;
	path = s->around->path(s->around, member, false);
	r = path ? inside_stage(s, b, path, file, err) : -ENOMEM;
	return r < 0 ? r : hdf5_inside_keep(s, member, *file);
}

/* Set *file to the row of the member at `path`.  -ENOENT: there is no such member. */
static int inside_try_path(struct hdf5_source *s, const char *path,
			   uint32_t *file, struct error *err)
{
	uint64_t member;
	struct backing b;
	int r = s->around->find(s->around, path, &b, &member);

	if (r < 0)
		return r;
	if (member == s->around->self)
		*file = s->file;
	else if (backing_is_plain(&b))
		*file = handles_add_tagged(s->handles, b.file, b.pos, b.size,
					   member);
	else
		return inside_stage_once(s, &b, member, file, err);
	return *file == UINT32_MAX ? -ENOMEM : 0;
}

/* inside_try_path for DIR/NAME; `dir` has `len` bytes. */
static int inside_try_beside(struct hdf5_source *s, const char *dir, size_t len,
			     const char *name, uint32_t *file,
			     struct error *err)
{
	cleanup_free char *path = NULL;

	if (asprintf(&path, "%.*s/%s", (int)len, dir, name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	return inside_try_path(s, path, file, err);
}

static size_t directory_length(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) : 0;
}

/* Look for `name` beside the member at `path`.  -ENOENT: there is no such member. */
static int inside_try_name(struct hdf5_source *s, const char *path,
			   const char *name, uint32_t *file, struct error *err)
{
	size_t len = directory_length(path);
	int r;

	if (name[0] != '/')
		return inside_try_beside(s, path, len, name, file, err);
	r = inside_try_beside(s, path, len, hdf5_last_components(name, 2), file,
			      err);
	return r == -ENOENT ? inside_try_beside(s, path, len,
						hdf5_last_components(name, 1),
						file, err)
			    : r;
}

/* Add a row for a member that does not exist: its path is below the archive's file,
 * where the system finds nothing either.  Return UINT32_MAX if out of memory. */
static uint32_t inside_add_missing(struct hdf5_source *s, const char *dir,
				   size_t len, const char *name)
{
	cleanup_free char *path = NULL;

	if (asprintf(&path, "%s/.%.*s/%s", s->archive, (int)len, dir, name) <
	    0) {
		path = NULL;
		return UINT32_MAX;
	}
	return handles_add(s->handles, path);
}

/* Look as on disk: beside the member as it is named, then beside the member that a
 * symlink leads to.  Return 1 if there is no such member. */
static int inside_resolve_from(struct hdf5_source *s, uint64_t from,
			       const char *name, uint32_t *file,
			       struct error *err)
{
	cleanup_free char *path = s->around->path(s->around, from, false);
	cleanup_free char *real = s->around->path(s->around, from, true);
	int r;

	if (!path || !real)
		return -ENOMEM;
	r = inside_try_name(s, path, name, file, err);
	if (r == -ENOENT && strcmp(path, real) != 0)
		r = inside_try_name(s, real, name, file, err);
	if (r != -ENOENT)
		return r;
	*file = inside_add_missing(s, path, directory_length(path), name);
	return 1;
}

int hdf5_inside_resolve(struct hdf5_source *s, uint32_t from, const char *name,
			uint32_t *file, struct error *err)
{
	uint64_t member;
	int r;

	if (!strncmp(name, FROM_ROOT, strlen(FROM_ROOT))) {
		name += strlen(FROM_ROOT);
		r = inside_try_path(s, name, file, err);
		if (r == -ENOENT) {
			*file = inside_add_missing(s, "", 0, name);
			r = 1;
		}
		return r;
	}
	/* A file that prefix= found outside is not a member: names in it are relative
	 * to the root. */
	if (!inside_member_of(s, from, &member))
		member = 0;
	return inside_resolve_from(s, member, name, file, err);
}
