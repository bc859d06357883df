/* SPDX-License-Identifier: BSD-2-Clause */
/* List everything that is in the main file, or that its links lead to. */

/*
 * The walk makes a list of what the output will have, in an order in which it can be
 * made.  An external link becomes the object that it leads to.  An object that is met
 * again, under another name or through another file's name, becomes another name (a hard
 * link) of the first; so cycles end.
 */
#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "formats/hdf5/file/driver.h"
#include "formats/hdf5/file/find.h"
#include "formats/hdf5/file/vlen.h"
#include "formats/hdf5/walk.h"
#include "tensors/merge/private.h"

struct look {
	struct merge *m;
	struct walk *w; /* to follow paths through links */
	unsigned depth;
	/* character set of the name of the link that is followed */
	H5T_cset_t cset;
	struct error *err;
};
struct link {
	char *name;
	H5L_type_t type;
	H5T_cset_t cset;
};
struct links {
	vec(struct link) v;
};
/* An open group. */
struct place {
	hid_t id;
	uint32_t file;
	const char *object, *path;
};

static int look_group(struct look *x, const struct place *g);

static int look_failed(struct look *x, const char *path, const char *what)
{
	char why[256];

	hdf5_why(why, sizeof why);
	return error_set(x->err, -EIO, "%s: %s: %s", path, what, why);
}

static char *look_join_path(const char *group, const char *name)
{
	char *path;

	if (asprintf(&path, "%s/%s", strcmp(group, "/") ? group : "", name) < 0)
		return NULL;
	return path;
}

/* ---- what was met -------------------------------------------------------- */

/* Order items by identity.  Items move while the list grows, so the tree has copies of
 * them. */
static int item_compare(const void *one, const void *two)
{
	const struct item *a = one, *b = two;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	if (a->ino != b->ino)
		return a->ino < b->ino ? -1 : 1;
	return a->dev < b->dev ? -1 : a->dev > b->dev;
}

static void item_identify(struct merge *m, uint32_t file, haddr_t addr,
			  struct item *out)
{
	struct identity id = {0};
	const char *path;

	/* The file is open, so its identity is known. */
	handles_known(m->handles, file, &path, &id);
	out->dev = id.dev;
	out->ino = id.ino;
	out->addr = addr;
}

const struct item *merge_item_of(struct merge *m, uint32_t file, haddr_t addr)
{
	struct item key = {.addr = addr};
	void *found;

	item_identify(m, file, addr, &key);
	found = tfind(&key, &m->seen, item_compare);
	return found ? *(struct item **)found : NULL;
}

/* Append an item.  Takes ownership of it->path and it->target, also on failure. */
static int look_add_item(struct look *x, struct item *it)
{
	struct merge *m = x->m;
	struct item *copy;
	bool many = m->items.n >= OBJECTS_MAX;

	it->cset = x->cset;
	if (!it->path || many || !vec_push(&m->items, *it)) {
		int r = it->path && many
				? error_set(x->err, -E2BIG,
					    "%s: it has more than %u objects",
					    m->o.main, OBJECTS_MAX)
				: error_no_memory(x->err,
						  "the list of objects");

		free(it->path);
		free(it->target);
		return r;
	}
	if (it->kind == ITEM_SAME || it->kind == ITEM_SOFT)
		return 0;
	copy = malloc(sizeof *copy);
	if (!copy)
		return error_no_memory(x->err, "the list of objects");
	*copy = *it;
	if (!tsearch(copy, &m->seen, item_compare)) {
		free(copy);
		return error_no_memory(x->err, "the list of objects");
	}
	return 0;
}

/* ---- objects ------------------------------------------------------------- */

/* Set *kind to ITEM_STREAM if the dataset takes its data from other files or datasets,
 * else to ITEM_KEPT. */
static int dataset_kind(struct look *x, hid_t dset, const char *path,
			enum item_kind *kind)
{
	hid_t dcpl = hdf5_vlen_create_plist(dset);
	int layout = dcpl < 0 ? -1 : (int)H5Pget_layout(dcpl);
	int external = dcpl < 0 ? -1 : H5Pget_external_count(dcpl);

	if (dcpl >= 0)
		H5Pclose(dcpl);
	if (layout < 0 || external < 0)
		return look_failed(x, path, "its layout cannot be read");
	/* plan.c changes STREAM to VALUES where the type needs it. */
	*kind = layout == H5D_VIRTUAL || external > 0 ? ITEM_STREAM : ITEM_KEPT;
	return 0;
}

static int look_at_object(struct look *x, hid_t id, uint32_t file,
			  const char *object, const char *path)
{
	struct item it = {.file = file, .object = object};
	const struct item *before;
	H5O_info_t info;
	int r = 0;

	if (H5Oget_info2(id, &info, H5O_INFO_BASIC) < 0)
		return look_failed(x, path, "it cannot be read");
	item_identify(x->m, file, info.addr, &it);
	it.path = strdup(path);
	before = merge_item_of(x->m, file, info.addr);
	if (before) {
		it.kind = ITEM_SAME;
		it.target = strdup(before->path);
		if (it.target)
			return look_add_item(x, &it);
		free(it.path);
		return error_no_memory(x->err, "the path of an object");
	}
	if (info.type == H5O_TYPE_DATASET)
		r = dataset_kind(x, id, path, &it.kind);
	else
		it.kind = info.type == H5O_TYPE_GROUP ? ITEM_GROUP : ITEM_TYPE;
	if (r < 0) {
		free(it.path);
		return r;
	}
	r = look_add_item(x, &it);
	if (r < 0 || it.kind != ITEM_GROUP)
		return r;
	return look_group(x, &(struct place){id, file, object, path});
}

/* ---- links --------------------------------------------------------------- */

static int look_hard(struct look *x, const struct place *g, const char *name,
		     const char *path)
{
	cleanup_free char *object = look_join_path(g->object, name);
	const char *kept =
		object ? intern_text(&x->m->s->intern, object) : NULL;
	hid_t id;
	int r;

	if (!kept)
		return error_no_memory(x->err, "the path of an object");
	id = H5Oopen(g->id, name, H5P_DEFAULT);
	if (id < 0)
		return look_failed(x, path, "it cannot be opened");
	r = look_at_object(x, id, g->file, kept, path);
	H5Oclose(id);
	return r;
}

static int look_soft(struct look *x, const struct place *g, const char *name,
		     const char *path)
{
	struct item it = {.kind = ITEM_SOFT, .file = g->file};
	H5L_info_t info;

	if (H5Lget_info(g->id, name, &info, H5P_DEFAULT) < 0 ||
	    info.u.val_size > 65536)
		return look_failed(x, path, "the link cannot be read");
	it.target = calloc(1, info.u.val_size + 1);
	if (!it.target)
		return error_no_memory(x->err, "the target of a link");
	if (H5Lget_val(g->id, name, it.target, info.u.val_size, H5P_DEFAULT) <
	    0) {
		free(it.target);
		return look_failed(x, path, "the link cannot be read");
	}
	it.path = strdup(path);
	return look_add_item(x, &it);
}

/* Set *at to the object to which a path in another file leads, following links of all
 * kinds. */
static int look_resolve_link(struct look *x, uint32_t file, const char *object,
			     struct hdf5_place *at)
{
	hid_t first, id = H5I_INVALID_HID, last;
	int r = hdf5_open(x->m->handles, file, &first, x->err);

	if (r < 0)
		return r;
	*at = (struct hdf5_place){x->m->s, file, NULL};
	r = hdf5_find_object(x->w->s, first, object, at, &id, x->w->err);
	last = r == 0 ? H5Iget_file_id(id) : H5I_INVALID_HID;
	if (last >= 0) {
		H5Oclose(id);
		H5Fclose(last);
		if (last != first)
			H5Fclose(last); /* the walk had opened it */
	}
	H5Fclose(first);
	return r;
}

static int look_external(struct look *x, const struct place *g,
			 const char *name, const char *path)
{
	cleanup_free char *object = NULL;
	struct hdf5_place at;
	uint32_t file;
	hid_t f, id;
	int r = hdf5_find_external(x->w->s, g->id, g->file, name, &file,
				   &object, x->w->err);

	if (r == -EIO)
		return error_set(x->err, r,
				 "%s: the external link cannot be read", path);
	if (r == 0)
		r = look_resolve_link(x, file, object, &at);
	if (r == 0)
		r = hdf5_open(x->m->handles, at.file, &f, x->err);
	if (r < 0) {
		error_prefix(x->err, "%s: ", path);
		return r;
	}
	id = H5Oopen(f, *at.object ? at.object : "/", H5P_DEFAULT);
	r = id < 0 ? look_failed(x, path, "it cannot be opened")
		   : look_at_object(x, id, at.file,
				    *at.object ? at.object : "/", path);
	if (id >= 0)
		H5Oclose(id);
	H5Fclose(f);
	return r;
}

static int look_follow_link(struct look *x, const struct place *g,
			    const struct link *l)
{
	cleanup_free char *path = look_join_path(g->path, l->name);

	if (!path)
		return error_no_memory(x->err, "the path of an object");
	if (*x->m->o.stop)
		return error_set(x->err, -EINTR, "interrupted");
	x->cset = l->cset;
	switch (l->type) {
	case H5L_TYPE_HARD:
		return look_hard(x, g, l->name, path);
	case H5L_TYPE_SOFT:
		return look_soft(x, g, l->name, path);
	case H5L_TYPE_EXTERNAL:
		return look_external(x, g, l->name, path);
	default:
		return error_set(x->err, -ENOTSUP,
				 "%s: this kind of link cannot be copied",
				 path);
	}
}

static herr_t look_collect_link(hid_t group, const char *name,
				const H5L_info_t *info, void *ctx)
{
	struct links *l = ctx;
	struct link link = {strdup(name), info->type, info->cset};

	(void)group;
	if (link.name && vec_push(&l->v, link))
		return 0;
	free(link.name);
	return -1;
}

/* Links are copied in the order in which they were made, where the group records it. */
static H5_index_t look_link_order(hid_t group)
{
	hid_t plist = H5Gget_create_plist(group);
	unsigned flags = 0;

	if (plist >= 0) {
		H5Pget_link_creation_order(plist, &flags);
		H5Pclose(plist);
	}
	return flags & H5P_CRT_ORDER_INDEXED ? H5_INDEX_CRT_ORDER
					     : H5_INDEX_NAME;
}

static int look_group(struct look *x, const struct place *g)
{
	struct links l = {VEC_EMPTY};
	hsize_t at = 0;
	int r = 0;

	if (x->depth == DEPTH_MAX)
		return error_set(x->err, -ELOOP,
				 "%s: groups are nested more than %d deep",
				 g->path, DEPTH_MAX);
	x->depth++;
	if (H5Literate(g->id, look_link_order(g->id), H5_ITER_INC, &at,
		       look_collect_link, &l) < 0)
		r = look_failed(x, g->path, "the group cannot be read");
	for (size_t i = 0; i < l.v.n && r == 0; i++)
		r = look_follow_link(x, g, &l.v.at[i]);
	for (size_t i = 0; i < l.v.n; i++)
		free(l.v.at[i].name);
	vec_free(&l.v);
	x->depth--;
	return r;
}

/* Refuse a main file that is several files: one of them would be replaced, and the others
 * would stay behind. */
static int refuse_joined(const struct merge *m, struct error *err)
{
	return error_set(err, -ENOTSUP,
			 "%s is one HDF5 file that a driver of HDF5 has split "
			 "into several: make one file of it first (a family: "
			 "h5repart -family_to_sec2)",
			 handles_name(m->handles, m->s->file));
}

int merge_look(struct merge *m, struct error *err)
{
	struct look x = {.m = m, .err = err};
	hid_t file, root;
	int r;

	if (handles_is_joined(m->handles, m->s->file))
		return refuse_joined(m, err);
	x.w = calloc(1, sizeof *x.w);
	if (!x.w)
		return error_no_memory(err, "the list of objects");
	x.w->s = m->s;
	x.w->err = err;
	hdf5_lock();
	r = hdf5_open(m->handles, m->s->file, &file, err);
	if (r == 0) {
		root = H5Gopen2(file, "/", H5P_DEFAULT);
		r = root < 0 ? look_failed(&x, "/", "it cannot be opened")
			     : look_at_object(&x, root, m->s->file, "/", "/");
		H5Fclose(file);
	}
	hdf5_unlock();
	free(x.w);
	return r;
}
