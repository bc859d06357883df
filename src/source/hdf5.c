/* SPDX-License-Identifier: BSD-2-Clause */
/* HDF5 files: groups are directories, datasets are tensors. */
/*
 * The walk opens each group and dataset once, by name (the library's calls by
 * index are slow), and closes the file behind itself.  Links that lead to a
 * group we are inside of become symlinks, so the tree is finite; other links
 * are followed.  What cannot be shown is listed all the same, with the reason
 * in its info.json.
 */
#include "source/hdf5_walk.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/vec.h"
#include "source/hdf5_worker.h"

/* One link of a group. */
struct link {
	char *name;
	H5L_type_t type;
	struct hdf5_tensor *tensor; /* when it became one */
};
struct links {
	vec(struct link) v;
};

/* ---- one object ---------------------------------------------------------- */

static int publish(struct walk *w, uint32_t dir, const char *name,
		   struct hdf5_tensor *t)
{
	uint32_t at = tree_add_dir(w->b, dir, name, w->s->mtime);
	struct files *f;
	int r;

	if (at == UINT32_MAX) {
		tensor_free(&t->t);
		return hdf5_walk_no_memory(w);
	}
	r = tensor_files_new(&f, &t->t, &w->s->views, w->err);
	if (r < 0)
		return r;
	tree_set_files(w->b, at, f);
	return 0;
}

/* Something that is listed, with why it is not shown. */
static struct hdf5_tensor *listed(struct walk *w, const char *path,
				  const char *why)
{
	return hdf5_tensor_new(w->s, -1, path, why);
}

static struct hdf5_tensor *read_dataset(struct walk *w, hid_t group,
					const char *name, const char *path)
{
	hid_t dset = H5Dopen2(group, name, H5P_DEFAULT);
	struct hdf5_tensor *t;
	char why[256], text[320];

	if (dset >= 0) {
		t = hdf5_tensor_new(w->s, dset, path, NULL);
		H5Dclose(dset);
		return t;
	}
	hdf5_why(why, sizeof why);
	snprintf(text, sizeof text, "the dataset cannot be opened: %s", why);
	return listed(w, path, text);
}

static int walk_group(struct walk *w, hid_t group, const char *path,
		      uint32_t dir);

static int read_group(struct walk *w, hid_t group, const char *name,
		      const char *path, uint32_t dir, haddr_t addr)
{
	const char *before;
	struct level *level;
	uint32_t at;
	hid_t child;
	int r;

	for (unsigned i = 0; i < w->depth; i++)
		if (w->level[i].addr == addr)
			return hdf5_walk_add_cycle(w, dir, name,
						   w->depth - 1 - i);
	r = hdf5_walk_visit(w, addr, path, &before);
	if (r < 0)
		return r;
	if (before && ++w->revisits > REVISITS_MAX)
		return hdf5_walk_add_revisit(w, dir, name, before);
	if (w->depth == DEPTH_MAX)
		return error_set(w->err, -ENOTSUP,
				 "groups are nested deeper than %d", DEPTH_MAX);
	at = tree_add_dir(w->b, dir, name, w->s->mtime);
	if (at == UINT32_MAX)
		return hdf5_walk_no_memory(w);
	child = H5Gopen2(group, name, H5P_DEFAULT);
	if (child < 0) {
		log_warn("%s: group %s cannot be opened", w->s->path, path);
		return 0;
	}
	level = &w->level[w->depth++];
	level->addr = addr;
	level->dir = at;
	r = walk_group(w, child, path, at);
	w->depth--;
	H5Gclose(child);
	return r;
}

/* ---- links --------------------------------------------------------------- */

static struct hdf5_tensor *external_link(struct walk *w, hid_t group,
					 const char *name, const char *path)
{
	char value[2 * PATH_MAX], why[2 * PATH_MAX + 64];
	const char *file = "?", *object = "?";
	unsigned flags;
	H5L_info_t info;

	if (H5Lget_info(group, name, &info, H5P_DEFAULT) >= 0 &&
	    info.u.val_size <= sizeof value &&
	    H5Lget_val(group, name, value, sizeof value, H5P_DEFAULT) >= 0)
		H5Lunpack_elink_val(value, info.u.val_size, &flags, &file,
				    &object);
	snprintf(why, sizeof why,
		 "it is an external link to %s in %s: not supported", object,
		 file);
	return listed(w, path, why);
}

static int read_object(struct walk *w, hid_t group, struct link *link,
		       const char *path, uint32_t dir)
{
	H5O_info_t info;

	if (H5Oget_info_by_name2(group, link->name, &info, H5O_INFO_BASIC,
				 H5P_DEFAULT) < 0) {
		if (link->type == H5L_TYPE_SOFT)
			return hdf5_walk_add_dangling(w, group, link->name,
						      dir);
		link->tensor = listed(w, path, "the object cannot be read");
		return link->tensor ? 0 : hdf5_walk_no_memory(w);
	}
	if (info.type == H5O_TYPE_GROUP)
		return read_group(w, group, link->name, path, dir, info.addr);
	if (info.type == H5O_TYPE_DATASET) {
		link->tensor = read_dataset(w, group, link->name, path);
		return link->tensor ? 0 : hdf5_walk_no_memory(w);
	}
	return 0; /* a named type has no data */
}

static int read_link(struct walk *w, hid_t group, struct link *link,
		     const char *parent, uint32_t dir)
{
	cleanup_free char *path = NULL;

	if (++w->objects > OBJECTS_MAX)
		return error_set(w->err, -ENOTSUP, "more than %u objects",
				 OBJECTS_MAX);
	hdf5_trial_beat();
	if (asprintf(&path, "%s/%s", parent, link->name) < 0) {
		path = NULL;
		return hdf5_walk_no_memory(w);
	}
	if (link->type == H5L_TYPE_HARD || link->type == H5L_TYPE_SOFT)
		return read_object(w, group, link, path, dir);
	link->tensor = link->type == H5L_TYPE_EXTERNAL
			       ? external_link(w, group, link->name, path)
			       : listed(w, path,
					"links of its kind are not "
					"supported");
	return link->tensor ? 0 : hdf5_walk_no_memory(w);
}

/* ---- one group ----------------------------------------------------------- */

/* Rows of `flags` belong to its siblings of as many rows (skerch). */
static void connect_flags(struct links *l)
{
	struct tensor *flags = NULL;

	for (size_t i = 0; i < l->v.n; i++)
		if (l->v.at[i].tensor && !strcmp(l->v.at[i].name, "flags"))
			flags = &l->v.at[i].tensor->t;
	if (!flags || flags->why_not || flags->dtype.kind != DTYPE_STRING ||
	    flags->rank != 1)
		return;
	for (size_t i = 0; i < l->v.n; i++) {
		struct hdf5_tensor *h = l->v.at[i].tensor;

		if (h && !h->t.why_not && h->t.dtype.kind < DTYPE_STRING &&
		    h->t.rank && h->t.shape[0] == flags->shape[0])
			h->t.flags = flags;
	}
}

static herr_t collect(hid_t group, const char *name, const H5L_info_t *info,
		      void *ctx)
{
	struct links *l = ctx;
	struct link link = {strdup(name), info->type, NULL};

	(void)group;
	if (link.name && vec_push(&l->v, link))
		return 0;
	free(link.name);
	return -1;
}

static int walk_group(struct walk *w, hid_t group, const char *path,
		      uint32_t dir)
{
	struct links l = {VEC_EMPTY};
	hsize_t at = 0;
	int r = 0;

	if (H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, &at, collect, &l) <
	    0)
		log_warn("%s: the members of group %s cannot all be read",
			 w->s->path, *path ? path : "/");
	for (size_t i = 0; i < l.v.n && !r; i++)
		r = read_link(w, group, &l.v.at[i], path, dir);
	connect_flags(&l);
	for (size_t i = 0; i < l.v.n; i++) {
		struct link *link = &l.v.at[i];

		if (link->tensor && !r)
			r = publish(w, dir, link->name, link->tensor);
		else if (link->tensor)
			tensor_free(&link->tensor->t);
		free(link->name);
	}
	vec_free(&l.v);
	return r;
}

/* ---- the file ------------------------------------------------------------ */

/* The signature at 0, 512, 1024, 2048, ...: HDF5 file format, section II.A. */
static int hdf5_probe(const unsigned char *head, size_t n, const char *path)
{
	static const unsigned char magic[8] = {0x89, 'H',  'D',  'F',
					       '\r', '\n', 0x1a, '\n'};

	(void)path;
	for (size_t at = 0; at + sizeof magic <= n; at = at ? 2 * at : 512)
		if (!memcmp(head + at, magic, sizeof magic))
			return 100;
	return 0;
}

static void hdf5_close(struct source *source)
{
	struct hdf5_source *s = (struct hdf5_source *)source;

	if (!s)
		return;
	hdf5_isolate_stop();
	intern_free(&s->intern);
	free(s->path);
	free(s->dir);
	free(s->real_dir);
	free(s);
}

static char *directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return strdup(".");
	return slash == path ? strdup("/")
			     : strndup(path, (size_t)(slash - path));
}

static int source_paths(struct hdf5_source *s, const struct source_args *a,
			struct error *err)
{
	cleanup_free char *real = realpath(a->path, NULL);
	cleanup_free char *cwd = NULL;
	struct stat st;

	if (!real || stat(real, &st) < 0)
		return error_errno(err, -errno, "%s", a->path);
	s->mtime = st.st_mtime;
	s->size = (uint64_t)st.st_size;
	if (a->path[0] == '/') {
		s->path = strdup(a->path);
	} else {
		cwd = realpath(".", NULL);
		if (!cwd || asprintf(&s->path, "%s/%s", cwd, a->path) < 0)
			s->path = NULL;
	}
	s->dir = s->path ? directory_of(s->path) : NULL;
	s->real_dir = directory_of(real);
	if (!s->dir || !s->real_dir)
		return error_set(err, -ENOMEM, "out of memory");
	if (!strcmp(s->dir, s->real_dir)) {
		free(s->real_dir);
		s->real_dir = NULL;
	}
	s->file = handles_add(a->handles, s->path);
	return s->file == UINT32_MAX ? error_set(err, -ENOMEM, "out of memory")
				     : 0;
}

static int walk_file(struct hdf5_source *s, const struct source_args *a,
		     struct error *err)
{
	struct walk *w = calloc(1, sizeof *w);
	H5O_info_t info;
	hid_t root;
	int r;

	if (!w)
		return error_set(err, -ENOMEM, "out of memory");
	*w = (struct walk){.s = s, .b = a->tree, .err = err};
	hdf5_lock();
	r = hdf5_open(s->handles, s->file, &w->file, err);
	if (!r) {
		root = H5Gopen2(w->file, "/", H5P_DEFAULT);
		if (root < 0 || H5Oget_info2(root, &info, H5O_INFO_BASIC) < 0) {
			r = error_set(err, -EBADMSG,
				      "the root group cannot be read");
		} else {
			w->level[w->depth++] =
				(struct level){info.addr, a->dir};
			r = walk_group(w, root, "", a->dir);
		}
		if (root >= 0)
			H5Gclose(root);
		H5Fclose(w->file);
	}
	/* Ten thousand mappings take the library 170 MB, which it and malloc
	 * would keep. */
	H5garbage_collect();
	hdf5_unlock();
	hdf5_walk_forget(w);
	free(w);
	malloc_trim(0);
	return r;
}

static int hdf5_source_open(const struct source_args *a, struct source **out,
			    struct error *err)
{
	struct hdf5_source *s;
	int r = hdf5_init(err);

	*out = NULL;
	if (r < 0)
		return r;
	s = calloc(1, sizeof *s);
	if (!s)
		return error_set(err, -ENOMEM, "out of memory");
	s->source.ops = &source_hdf5;
	s->handles = a->handles;
	s->views = a->views;
	intern_init(&s->intern);
	r = source_paths(s, a, err);
	if (!r)
		r = hdf5_trial(walk_file, s, a, err);
	if (!r)
		r = walk_file(s, a, err);
	if (r < 0) {
		if (!strstr(err->text, a->path))
			error_prefix(err, "%s: ", a->path);
		hdf5_close(&s->source);
		return r;
	}
	*out = &s->source;
	return 0;
}

const struct source_ops source_hdf5 = {
	.name = "hdf5",
	.summary = "HDF5 files, distributed tensors (virtual datasets)",
	.probe = hdf5_probe,
	.open = hdf5_source_open,
	.close = hdf5_close,
};
