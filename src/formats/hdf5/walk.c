/* SPDX-License-Identifier: BSD-2-Clause */
/* The walk through HDF5 files' groups: what becomes which directory. */
/*
 * Each group and dataset is opened once, by name (the library's calls by index
 * are slow), and closed again.  Links that lead to a group we are inside of
 * become symlinks, so the tree is finite; other links are followed, into other
 * files, too: those we look for and open ourselves, for the library would also
 * look in the working directory.  What cannot be shown is listed all the same,
 * with the reason in its info.json; what is not there is a dangling symlink.
 */
#include "formats/hdf5/walk.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/vec.h"
#include "formats/hdf5/file/driver.h"
#include "formats/hdf5/file/find.h"
#include "formats/hdf5/group.h"
#include "formats/hdf5/merged.h"
#include "views/classes.h"

/* One link of a group. */
struct link {
	char *name;
	H5L_type_t type;
	struct tensor *tensor; /* the tensor that it became, or NULL */
};
struct links {
	vec(struct link) v;
};

/* The target of a link: an object in an open group or file. */
struct target {
	hid_t from;         /* an open group or file */
	const char *name;   /* of the object, from there */
	uint32_t file;      /* the file that has the object */
	const char *object; /* path in that file, owned by the source */
};

/* ---- what was met --------------------------------------------------------- */

int hdf5_walk_note(struct walk *w, const struct hdf5_item *item)
{
	return vec_push(&w->s->items, *item)
		       ? 0
		       : error_no_memory(w->err, "the table of objects");
}

int hdf5_walk_note_link(struct walk *w, const struct group *in,
			const char *name, const char *target)
{
	struct hdf5_item item = {.kind = target ? HDF5_ITEM_LINK
						: HDF5_ITEM_LOST};
	cleanup_free char *path = NULL;

	if (asprintf(&path, "%s/%s", in->path, name) < 0) {
		path = NULL;
		return error_no_memory(w->err, "the path of a link");
	}
	item.name = intern_text(&w->s->intern, path);
	item.target = target ? intern_text(&w->s->intern, target) : NULL;
	return item.name && (!target || item.target)
		       ? hdf5_walk_note(w, &item)
		       : error_no_memory(w->err, "the path of a link");
}

static int note_group(struct walk *w, const struct group *g)
{
	struct hdf5_item item = {.kind = HDF5_ITEM_GROUP, .file = g->file};

	item.name = intern_text(&w->s->intern, g->path);
	item.object = *g->object ? g->object : "/";
	return item.name ? hdf5_walk_note(w, &item)
			 : error_no_memory(w->err, "the path of a group");
}

/* Make a symlink of a link to the group `up` levels above. */
static int note_cycle(struct walk *w, const struct group *in, const char *name,
		      unsigned up)
{
	cleanup_free char *path = strdup(in->path);
	int r;

	if (!path)
		return error_no_memory(w->err, "the target of a symlink");
	for (unsigned i = 0; i < up && strrchr(path, '/'); i++)
		*strrchr(path, '/') = '\0';
	r = hdf5_walk_note_link(w, in, name, *path ? path : "/");
	return r < 0 ? r : hdf5_walk_add_cycle(w, in->dir, name, up);
}

/* ---- groups -------------------------------------------------------------- */

/* List a group that is nested too deep; the rest of the file is still shown. */
static int list_too_deep(struct walk *w, const struct group *in,
			 const char *name, const char *path)
{
	char why[160];

	snprintf(why, sizeof why,
		 "groups nested deeper than %d are not shown; the option "
		 "dataset=PATH of this group mounts it by itself",
		 DEPTH_MAX);
	log_warn("%s: group %s: %s", w->s->path, path, why);
	return hdf5_publish_listed(w, in, name, -ENOTSUP, why);
}

/* Open a group, make its directory and walk its members. */
static int enter_group(struct walk *w, const struct group *in, const char *name,
		       const struct target *t, const char *path, haddr_t addr)
{
	struct group g = {-1, t->file, t->object, path, 0, NULL};
	int r;

	if (w->depth == DEPTH_MAX)
		return list_too_deep(w, in, name, path);
	g.id = H5Gopen2(t->from, t->name, H5P_DEFAULT);
	if (g.id < 0) {
		log_warn("%s: group %s cannot be opened", w->s->path, path);
		return hdf5_publish_listed(w, in, name, -EIO,
					   "the group cannot be opened");
	}
	g.dir = tree_add_dir(w->b, in->dir, name, w->s->mtime);
	if (g.dir == UINT32_MAX) {
		H5Gclose(g.id);
		return error_no_memory(w->err, "a group's directory");
	}
	w->level[w->depth++] = (struct level){t->file, addr, g.dir};
	r = hdf5_walk_group(w, &g);
	w->depth--;
	H5Gclose(g.id);
	return r;
}

static int walk_linked_group(struct walk *w, const struct group *in,
			     const char *name, const struct target *t,
			     haddr_t addr)
{
	cleanup_free char *path = NULL;
	const char *before;
	int r;

	for (unsigned i = 0; i < w->depth; i++)
		if (w->level[i].addr == addr && w->level[i].file == t->file)
			return note_cycle(w, in, name, w->depth - 1 - i);
	if (asprintf(&path, "%s/%s", in->path, name) < 0) {
		path = NULL;
		return error_no_memory(w->err, "the path of a group");
	}
	r = hdf5_walk_visit(w, t->file, addr, path, &before);
	if (r < 0)
		return r;
	if (before && ++w->revisits > REVISITS_MAX) {
		r = hdf5_walk_note_link(w, in, name, before);
		return r < 0 ? r
			     : hdf5_walk_add_revisit(w, in->dir, name, before);
	}
	return enter_group(w, in, name, t, path, addr);
}

/* ---- objects ------------------------------------------------------------- */

static int walk_dataset(struct walk *w, const struct group *in,
			struct link *link, const struct target *t)
{
	struct hdf5_place at = {w->s, t->file, t->object};
	hid_t dset = H5Dopen2(t->from, t->name, H5P_DEFAULT);
	char why[256], text[320];
	int r;

	if (dset < 0) {
		hdf5_why(why, sizeof why);
		snprintf(text, sizeof text, "the dataset cannot be opened: %s",
			 why);
		return hdf5_publish_listed(w, in, link->name, -EIO, text);
	}
	r = hdf5_publish_dataset(w, in, link->name, dset, &at, &link->tensor);
	H5Dclose(dset);
	return r;
}

/* Publish the object that a link leads to. Return -ENOENT if there is none. */
static int walk_object(struct walk *w, const struct group *in,
		       struct link *link, const struct target *t)
{
	H5O_info_t info;

	if (H5Oget_info_by_name2(t->from, t->name, &info, H5O_INFO_BASIC,
				 H5P_DEFAULT) < 0)
		return -ENOENT;
	if (info.type == H5O_TYPE_GROUP)
		return walk_linked_group(w, in, link->name, t, info.addr);
	if (info.type == H5O_TYPE_DATASET)
		return walk_dataset(w, in, link, t);
	return 0; /* a named type has no data */
}

/* Does error `r` mean that the target is missing, or that links form a cycle? */
static bool is_nowhere(int r)
{
	return r == -ENOENT || r == -ENODATA || r == -ELOOP;
}

/* Publish the object that a path leads to, through links into other files. If one of
 * these cannot be opened, only this link is listed with the reason. */
static int walk_target_path(struct walk *w, const struct group *in,
			    struct link *link, hid_t file, uint32_t number,
			    const char *path)
{
	struct hdf5_place at = {w->s, number, NULL};
	struct target t = {-1, NULL, number, NULL};
	hid_t object = -1;
	struct error why = {0}, *err = w->err;
	int r;

	w->err = &why;
	r = hdf5_find_object(w->s, file, path, &at, &object, w->err);
	w->err = err;
	if (r == -ENOMEM)
		return error_no_memory(w->err, "the path of an object");
	if (r < 0)
		return is_nowhere(r) ? r
				     : hdf5_publish_listed(w, in, link->name, r,
							   why.text);
	t.from = H5Iget_file_id(object);
	t.file = at.file;
	t.object = at.object;
	t.name = *at.object ? at.object : "/";
	r = t.from < 0 ? -ENOENT : walk_object(w, in, link, &t);
	if (t.from >= 0)
		H5Fclose(t.from);
	H5Oclose(object);
	return r;
}

static int walk_local_link(struct walk *w, const struct group *in,
			   struct link *link)
{
	struct target t = {in->id, link->name, in->file, NULL};
	cleanup_free char *object = NULL;
	hid_t file;
	int r;

	if (asprintf(&object, "%s/%s", in->object, link->name) < 0) {
		object = NULL;
		return error_no_memory(w->err, "the path of an object");
	}
	t.object = intern_text(&w->s->intern, object);
	if (!t.object)
		return error_no_memory(w->err, "the path of an object");
	r = walk_object(w, in, link, &t);
	if (r != -ENOENT)
		return r;
	if (link->type != H5L_TYPE_SOFT)
		return hdf5_publish_listed(w, in, link->name, -EIO,
					   "the object cannot be read");
	/* libhdf5 does not follow a soft link through external links. */
	file = H5Iget_file_id(in->id);
	r = file < 0 ? -ENOENT
		     : walk_target_path(w, in, link, file, in->file, object);
	if (file >= 0)
		H5Fclose(file);
	return is_nowhere(r) ? hdf5_walk_add_dangling(w, in, link->name) : r;
}

/* ---- external links ------------------------------------------------------ */

static int walk_other_file(struct walk *w, const struct group *in,
			   struct link *link, uint32_t file, const char *object)
{
	struct error why = {0};
	hid_t id;
	int r;

	r = hdf5_open(w->s->handles, file, &id, &why);
	if (r == -ENODATA)
		return hdf5_walk_add_missing(w, in, link->name,
					     handles_path(w->s->handles, file),
					     "");
	if (r < 0)
		return hdf5_publish_listed(w, in, link->name, why.code,
					   why.text);
	r = walk_target_path(w, in, link, id, file, object);
	H5Fclose(id);
	if (!is_nowhere(r))
		return r;
	return hdf5_walk_add_missing(w, in, link->name,
				     handles_path(w->s->handles, file), object);
}

static int walk_external_link(struct walk *w, const struct group *in,
			      struct link *link)
{
	cleanup_free char *object = NULL;
	uint32_t file;
	int r = hdf5_find_external(w->s, in->id, in->file, link->name, &file,
				   &object, w->err);

	if (r == -EIO)
		return hdf5_publish_listed(w, in, link->name, -EIO,
					   "the external link cannot be read");
	return r < 0 ? r : walk_other_file(w, in, link, file, object);
}

static int walk_link(struct walk *w, const struct group *in, struct link *link)
{
	w->objects++;
	hdf5_trial_beat();
	switch (link->type) {
	case H5L_TYPE_HARD:
	case H5L_TYPE_SOFT:
		return walk_local_link(w, in, link);
	case H5L_TYPE_EXTERNAL:
		return walk_external_link(w, in, link);
	default:
		return hdf5_publish_listed(
			w, in, link->name, -ENOTSUP,
			"links of its kind are not supported");
	}
}

/* ---- one group ----------------------------------------------------------- */

/* Rows of numbers and of strings of fixed length may have flags. */
static bool may_have_flags(const struct tensor *t)
{
	return !t->why_not &&
	       (dtype_is_binary(&t->dtype) ||
		(t->dtype.kind == DTYPE_STRING && !t->dtype.vlen));
}

/* The dataset `flags` (skerch) has a row for each row of those siblings that have as
 * many rows. */
static void connect_flags(struct links *l)
{
	struct tensor *flags = NULL;

	for (size_t i = 0; i < l->v.n; i++)
		if (l->v.at[i].tensor && !strcmp(l->v.at[i].name, "flags"))
			flags = l->v.at[i].tensor;
	if (!flags || flags->why_not || flags->dtype.kind != DTYPE_STRING ||
	    flags->rank != 1)
		return;
	for (size_t i = 0; i < l->v.n; i++) {
		struct tensor *t = l->v.at[i].tensor;

		if (t && t != flags && may_have_flags(t) && t->rank &&
		    t->shape[0] == flags->shape[0])
			t->flags = flags;
	}
}

static herr_t collect_link(hid_t group, const char *name,
			   const H5L_info_t *info, void *ctx)
{
	struct links *l = ctx;
	struct link link = {strdup(name), info->type, NULL};

	(void)group;
	if (link.name && vec_push(&l->v, link))
		return 0;
	free(link.name);
	return -1;
}

/* List that members are missing; their names cannot be read. */
static int list_lost(struct walk *w, const struct group *g)
{
	static const char why[] = "the members of its group cannot all be read";

	log_warn("%s: group %s: %s", w->s->path, *g->path ? g->path : "/", why);
	return hdf5_publish_listed(w, g, "(unreadable)", -EIO, why);
}

/* List that the rest of a group is not shown, because the file has too many objects. */
static int list_rest(struct walk *w, const struct group *g)
{
	char why[160];

	snprintf(why, sizeof why,
		 "the file has more than %u objects; the option dataset=PATH "
		 "of a group mounts that group by itself",
		 OBJECTS_MAX);
	log_warn("%s: group %s is not listed to its end: %s", w->s->path,
		 *g->path ? g->path : "/", why);
	return hdf5_publish_listed(w, g, "(not listed)", -ENOTSUP, why);
}

/* Make an entry of each member. */
static int walk_links(struct walk *w, const struct group *g, struct links *l)
{
	int r = 0;

	for (size_t i = 0; i < l->v.n && !r; i++) {
		if (w->objects >= OBJECTS_MAX)
			return list_rest(w, g);
		r = walk_link(w, g, &l->v.at[i]);
	}
	return r;
}

/* The root has merged.h5 unless a member has that name. */
static bool has_merged(const struct walk *w, const struct group *g)
{
	return w->depth == 1 &&
	       H5Lexists(g->id, HDF5_MERGED_NAME, H5P_DEFAULT) == 0;
}

/* Find possible labels before the datasets that they may belong to are published. */
static int look_for_labels(struct walk *w, const struct group *g,
			   const struct links *l, struct group_labels *labels)
{
	int r = 0;

	for (size_t i = 0; i < l->v.n && !r; i++)
		if (l->v.at[i].type != H5L_TYPE_EXTERNAL &&
		    classes_is_name(l->v.at[i].name))
			r = hdf5_labels_look(w, g, l->v.at[i].name, labels);
	return r;
}

int hdf5_walk_group(struct walk *w, const struct group *group)
{
	struct group_labels labels = {0};
	struct group with = *group, *g = &with;
	struct links l = {VEC_EMPTY};
	struct files *f;
	hsize_t at = 0;
	bool all;
	int r = 0;

	r = note_group(w, g);
	if (r < 0)
		return r;
	f = hdf5_group_files_new(w->s, g->file, *g->object ? g->object : "/",
				 w->s->mtime, has_merged(w, g));
	if (!f)
		return error_no_memory(w->err, "a group's directory");
	tree_set_files(w->b, g->dir, f);
	all = H5Literate(g->id, H5_INDEX_NAME, H5_ITER_NATIVE, &at,
			 collect_link, &l) >= 0;
	with.labels = &labels;
	r = look_for_labels(w, g, &l, &labels);
	if (!r)
		r = walk_links(w, g, &l);
	if (!all && !r)
		r = list_lost(w, g);
	connect_flags(&l);
	for (size_t i = 0; i < l.v.n; i++)
		free(l.v.at[i].name);
	vec_free(&l.v);
	return r;
}
