/* SPDX-License-Identifier: BSD-2-Clause */
/* The HDF5 source: open a file, walk it, close it. */
#include "formats/hdf5/walk.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/system.h"
#include "base/vec.h"
#include "formats/hdf5/file/driver.h"
#include "formats/hdf5/file/find.h"
#include "formats/hdf5/file/members.h"
#include "formats/hdf5/file/resolve.h"
#include "formats/hdf5/file/super.h"
#include "formats/stage.h"
#include "stream/backing.h"
#include "views/classes.h"

/* ---- the file ------------------------------------------------------------ */

/* Certainty of a probe if a user block comes first; less than 100, because the first
 * member of a tar may be an HDF5 file. */
#define BEHIND 70

/* The signature at 0, 512, 1024, 2048, ...: HDF5 file format, section II.A. */
static int hdf5_probe(const unsigned char *head, size_t n, const char *path)
{
	static const unsigned char magic[8] = {0x89, 'H',  'D',  'F',
					       '\r', '\n', 0x1a, '\n'};

	(void)path;
	for (size_t at = 0; at + sizeof magic <= n; at = at ? 2 * at : 512)
		if (!memcmp(head + at, magic, sizeof magic))
			return at ? BEHIND : 100;
	return 0;
}

/* Look for the superblock at every power of two that the bytes of a probe do not reach. */
bool hdf5_is_behind(const struct backing *b)
{
	unsigned char magic[8];

	for (uint64_t at = 512; at <= b->size && sizeof magic <= b->size - at;
	     at *= 2)
		if (at + sizeof magic > SOURCE_HEAD &&
		    backing_read(b, at, magic, sizeof magic, NULL) == 0 &&
		    hdf5_probe(magic, sizeof magic, NULL) == 100)
			return true;
	return false;
}

static void hdf5_close(struct source *source)
{
	struct hdf5_source *s = (struct hdf5_source *)source;

	if (!s)
		return;
	vec_free(&s->items);
	for (size_t i = 0; i < s->labels.n; i++)
		classes_free(s->labels.at[i]);
	vec_free(&s->labels);
	intern_free(&s->intern);
	free(s->archive);
	free(s->format);
	free(s->path);
	free(s->dir);
	free(s->real_dir);
	free(s->prefix);
	free(s);
}

static char *directory_of_file(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return strdup(".");
	return slash == path ? strdup("/")
			     : strndup(path, (size_t)(slash - path));
}

/* Refuse a member of an archive that is one of several files of the family or multi
 * driver: the others cannot be found there. */
static int refuse_members(const struct backing *b, struct error *err)
{
	cleanup_free unsigned char *head = malloc(HDF5_SUPER_HEAD);
	size_t n =
		b->size < HDF5_SUPER_HEAD ? (size_t)b->size : HDF5_SUPER_HEAD;
	const char *driver;
	int r = head ? backing_read(b, 0, head, n, err)
		     : error_no_memory(err, "the file's superblock");

	driver = r ? NULL : hdf5_members_driver(head, n);
	if (r || !driver)
		return r;
	return error_set(err, -ENOTSUP,
			 "it is one of several files that the HDF5 driver '%s' "
			 "divided one HDF5 file into: extract them all, and "
			 "mount one of them",
			 driver);
}

/* Copy the member to memory, unless another member that refers to it has done so.
 * Return its number, UINT32_MAX on errors. */
static uint32_t stage_self(struct hdf5_source *s, const struct source_args *a,
			   struct error *err)
{
	uint32_t file = UINT32_MAX;

	if (s->around)
		file = hdf5_inside_kept(s, s->around->self);
	if (file != UINT32_MAX)
		return file;
	file = source_staged(a, err);
	if (file != UINT32_MAX && s->around &&
	    hdf5_inside_keep(s, s->around->self, file) < 0)
		file = UINT32_MAX;
	return file;
}

/* Set the paths of a member of an archive. It lies in the archive's directory, and
 * is a part of the archive's file or a copy. */
static int inside_paths(struct hdf5_source *s, const struct source_args *a,
			struct error *err)
{
	const struct backing *b = a->inside;
	const char *outer = handles_path(a->handles, b->file);
	int r;

	s->mtime = a->like->mtime;
	s->size = b->size;
	s->around = a->around;
	s->archive = strdup(outer);
	s->dir = directory_of_file(outer);
	r = refuse_members(b, err);
	if (r < 0)
		return r;
	s->file = backing_is_plain(b) ? handles_add_part(a->handles, b->file,
							 b->pos, b->size)
				      : stage_self(s, a, err);
	if (s->file == UINT32_MAX && err->code)
		return err->code;
	s->path = s->file == UINT32_MAX
			  ? NULL
			  : strdup(handles_path(a->handles, s->file));
	return s->path && s->dir && s->archive
		       ? 0
		       : error_no_memory(err, "the paths of the HDF5 file");
}

/* Return an absolute path (malloc'ed) without following symlinks; NULL on errors. */
static char *absolute(const char *path)
{
	cleanup_free char *cwd = NULL;
	char *out;

	if (path[0] == '/')
		return strdup(path);
	cwd = realpath(".", NULL);
	return cwd && asprintf(&out, "%s/%s", cwd, path) >= 0 ? out : NULL;
}

/* Set the directories that names in the file are relative to. `path` is a file on
 * disk. */
static int set_dirs(struct hdf5_source *s, const char *path, struct error *err)
{
	cleanup_free char *real = realpath(path, NULL);

	if (!real)
		return error_errno(err, -errno, "%s", path);
	s->dir = s->path ? directory_of_file(s->path) : NULL;
	s->real_dir = directory_of_file(real);
	if (!s->dir || !s->real_dir)
		return error_no_memory(err, "the paths of the HDF5 file");
	if (!strcmp(s->dir, s->real_dir)) {
		free(s->real_dir);
		s->real_dir = NULL;
	}
	return 0;
}

/* Set the paths of an HDF5 file that consists of several files on disk. */
static int members_paths(struct hdf5_source *s, const struct source_args *a,
			 const struct hdf5_members *x, struct error *err)
{
	int r;

	s->mtime = x->mtime;
	for (size_t i = 0; i < x->list.n; i++)
		s->size += x->list.at[i].is;
	r = hdf5_members_add(x, a->handles, &s->file, err);
	if (r < 0)
		return r;
	if (asprintf(&s->format, "HDF5 (%zu files of the driver '%s')",
		     x->list.n, x->driver) < 0) {
		s->format = NULL;
		return error_no_memory(err, "the name of the format");
	}
	s->path = strdup(handles_path(a->handles, s->file));
	return set_dirs(s, x->list.at[0].path, err);
}

static int source_paths(struct hdf5_source *s, const struct source_args *a,
			struct error *err)
{
	cleanup_free char *path = absolute(a->path);
	struct hdf5_members members;
	struct stat st;
	int r = path ? hdf5_members_find(path, &members, err)
		     : error_no_memory(err, "the paths of the HDF5 file");

	if (r < 0)
		return r;
	if (r == 0) {
		r = members_paths(s, a, &members, err);
		hdf5_members_free(&members);
		return r;
	}
	if (stat(a->path, &st) < 0)
		return error_errno(err, -errno, "%s", a->path);
	s->mtime = st.st_mtime;
	s->size = (uint64_t)st.st_size;
	s->path = steal_pointer(&path);
	r = set_dirs(s, a->path, err);
	if (r < 0)
		return r;
	s->file = handles_add(a->handles, s->path);
	return s->file == UINT32_MAX
		       ? error_no_memory(err, "the path of the HDF5 file")
		       : 0;
}

/* Set the paths of a directory; the walk makes the file that joins its files. */
static int joined_paths(struct hdf5_source *s, const struct source_args *a,
			struct error *err)
{
	struct stat st;

	s->path = realpath(a->path, NULL);
	if (!s->path || stat(s->path, &st) < 0)
		return error_errno(err, -errno, "%s", a->path);
	s->mtime = st.st_mtime;
	s->file = UINT32_MAX;
	s->dir = strdup(s->path);
	return s->dir ? 0 : error_no_memory(err, "the path of the directory");
}

/* Publish the root: the file's root group, or the object that dataset= names. */
static int walk_root(struct walk *w, hid_t file, const char *name, uint32_t dir)
{
	struct hdf5_place at = {w->s, w->s->file, NULL};
	struct group g = {-1, w->s->file, "", "", dir, NULL};
	H5O_info_t info;
	char why[256];
	int r = 0;

	if (name &&
	    (r = hdf5_find_object(w->s, file, name, &at, &g.id, w->err)) < 0)
		return r;
	if (!name)
		g.id = H5Gopen2(file, "/", H5P_DEFAULT);
	if (g.id < 0 || H5Oget_info2(g.id, &info, H5O_INFO_BASIC) < 0) {
		hdf5_why(why, sizeof why);
		r = error_set(w->err, -EBADMSG, "'%s' cannot be read: %s",
			      name ? name : "/", why);
	} else {
		g.file = at.file;
		g.object = at.object ? at.object : "";
		w->level[w->depth++] = (struct level){g.file, info.addr, dir};
		if (info.type == H5O_TYPE_GROUP)
			r = hdf5_walk_group(w, &g);
		else if (info.type == H5O_TYPE_DATASET)
			r = hdf5_publish_dataset(w, NULL, NULL, g.id, &at,
						 NULL);
		else
			r = error_set(w->err, -ENOTSUP,
				      "'%s' is neither a dataset nor a group",
				      name);
	}
	if (g.id >= 0)
		H5Oclose(g.id);
	return r;
}

int hdf5_walk_file(struct hdf5_source *s, const struct source_args *a,
		   struct error *err)
{
	const bool nested = a->archive && a->archive->depth;
	struct walk *w = calloc(1, sizeof *w);
	uint64_t limit;
	hid_t file;
	int r;

	if (!w)
		return error_no_memory(err, "the walk through the file");
	/* A damaged number may ask for any amount. */
	limit = system_limit_growth(system_memory() / 2);
	*w = (struct walk){.s = s, .b = a->tree, .err = err};
	hdf5_lock();
	r = hdf5_open(s->handles, s->file, &file, err);
	if (!r) {
		r = hdf5_labels_given(w, file, nested);
		if (!r)
			r = walk_root(w, file, a->dataset, a->dir);
		if (!r)
			r = hdf5_labels_check(w, nested);
		if (!r)
			r = hdf5_dimensions_set(w);
		H5Fclose(file);
	}
	hdf5_walk_warn_missing(w);
	/* Ten thousand mappings take the library 170 MB, which it and malloc
	 * would keep. */
	H5garbage_collect();
	hdf5_unlock();
	hdf5_walk_forget(w);
	free(w);
	malloc_trim(0);
	system_limit_restore(limit);
	return r;
}

static int hdf5_source_open(const struct source_args *a, struct source **out,
			    struct error *err)
{
	hdf5_walk *walk = a->joined ? hdf5_concat_walk : hdf5_walk_file;
	struct hdf5_source *s;
	int r = hdf5_init(err);

	*out = NULL;
	if (r < 0)
		return r;
	s = calloc(1, sizeof *s);
	if (!s)
		return error_no_memory(err, "the HDF5 file");
	s->source.ops = &source_hdf5;
	s->handles = a->handles;
	s->views = a->views;
	s->pinner = a->pinner;
	intern_init(&s->intern);
	r = a->inside   ? inside_paths(s, a, err)
	    : a->joined ? joined_paths(s, a, err)
			: source_paths(s, a, err);
	if (!r && a->prefix && !(s->prefix = strdup(a->prefix)))
		r = error_no_memory(err,
				    "the prefix of paths of virtual sources");
	if (!r)
		r = hdf5_trial(walk, s, a, err);
	if (!r)
		r = walk(s, a, err);
	if (r < 0) {
		if (!strstr(err->text, a->path))
			error_prefix(err, "%s: ", a->path);
		hdf5_close(&s->source);
		return r;
	}
	*out = &s->source;
	return 0;
}

static void hdf5_usage(const struct source *source, uint64_t *bytes,
		       uint64_t *inodes)
{
	*bytes = ((const struct hdf5_source *)source)->size;
	*inodes = 0;
}

static const char *hdf5_format(const struct source *source)
{
	const struct hdf5_source *s = (const struct hdf5_source *)source;

	return s->format ? s->format : "HDF5";
}

/* A zip that stores an HDF5 file is more certain (zip_source_probe_beyond). */
static int hdf5_probe_beyond(const struct backing *b)
{
	return hdf5_is_behind(b) ? 50 : 0;
}

struct hdf5_source *hdf5_source_of(struct source *s)
{
	return s->ops == &source_hdf5 ? (struct hdf5_source *)s : NULL;
}

const struct source_ops source_hdf5 = {
	.flags = SOURCE_HAS_DATASETS | SOURCE_HAS_LABELS | SOURCE_NAMES_FILES |
		 SOURCE_JOINS,
	.probe_beyond = hdf5_probe_beyond,
	.is_files = hdf5_members_named_by,
	.name = "hdf5",
	.summary = "HDF5 files, distributed tensors (virtual datasets)",
	.probe = hdf5_probe,
	.open = hdf5_source_open,
	.format = hdf5_format,
	.usage = hdf5_usage,
	.close = hdf5_close,
};
