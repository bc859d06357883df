/* SPDX-License-Identifier: BSD-2-Clause */
/* Copy everything in an HDF5 file, except one dataset, to another file. */

/*
 * Three passes over the source:
 *
 *	1  groups, breadth first: each link as it is; each object where the first link to it is
 *	   met.  A further link to an object becomes a further link to its copy
 *	2  attributes of all objects
 *	3  elements of datasets that the library cannot copy as they are stored
 *
 * Attributes and elements may refer to any object, so they come when all objects exist.
 * A table of the addresses of objects in both files is used to translate references.
 *
 * The copy is in the oldest format that can hold it, so that programs that read the
 * source can read the copy.
 *
 * No single object stops the work: it is listed as lost, and the caller decides.  The
 * same passes without an output file only check, so that the caller knows before it
 * begins its work.
 */
#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "formats/hdf5/file/driver.h"
#include "tensors/rest_private.h"

/* The list of objects may take this share of the memory. */
#define LIST_SHARE 4
#define NAMED_MOST 8 /* names in a sentence */
#define LINK_VALUE_MOST 65536

/* ---- reporting ------------------------------------------------------------------ */

void rest_say(struct rest_said *s, const char *path, const char *why)
{
	size_t at = strlen(s->text), n = strlen(path);
	const char *from = n > 80 ? path + n - 80 : path;

	if (s->n++ < NAMED_MOST)
		snprintf(s->text + at, sizeof s->text - at, "%s'%s%s'%s%s%s",
			 at ? ", " : "", n > 80 ? "..." : "", from,
			 why ? " (" : "", why ? why : "", why ? ")" : "");
	else if (s->n == NAMED_MOST + 1)
		snprintf(s->text + at, sizeof s->text - at, ", ...");
}

void rest_say_why(struct rest_said *s, const char *path, const char *what)
{
	char why[256], all[400];

	hdf5_why(why, sizeof why);
	snprintf(all, sizeof all, "%s: %s", what, why);
	rest_say(s, path, all);
}

/* ---- objects that crash the library --------------------------------------------- */

bool rest_is_deadly(const struct rest *r, char what, const char *path)
{
	char key[REST_TRAIL];

	snprintf(key, sizeof key, "%c%s", what, path);
	for (unsigned i = 0; i < r->o->n_deadly; i++)
		if (!strcmp(r->o->deadly[i], key))
			return true;
	return false;
}

bool rest_begin(struct rest *r, char what, const char *path)
{
	if (rest_is_deadly(r, what, path)) {
		rest_say(&r->found->lost, path,
			 what == 'a' ? "its attributes are damaged: libhdf5 "
				       "crashes on them"
			 : what == 'l'
				 ? "its links are damaged: libhdf5 crashes on "
				   "them"
				 : "it is damaged: libhdf5 crashes on it");
		return false;
	}
	if (r->o->trail)
		snprintf(r->o->trail, REST_TRAIL, "%c%s", what, path);
	return true;
}

/* ---- the table of objects ------------------------------------------------ */

static int rest_compare_objects(const void *one, const void *two)
{
	const struct rest_object *a = one, *b = two;

	return a->from < b->from ? -1 : a->from > b->from;
}

struct rest_object *rest_find(const struct rest *r, haddr_t from)
{
	struct rest_object key = {.from = from};
	void *found = tfind(&key, (void *const *)&r->by_address,
			    rest_compare_objects);

	return found ? *(struct rest_object **)found : NULL;
}

haddr_t rest_find_address(void *ctx, haddr_t from)
{
	const struct rest_object *x = rest_find(ctx, from);

	return x ? x->to : HADDR_UNDEF;
}

static void object_free(struct rest_object *x)
{
	if (x->held >= 0)
		H5Tclose(x->held);
	free(x->path);
	free(x);
}

static void *too_many(struct rest *r)
{
	error_set(
		r->err, -ENOMEM,
		"%zu objects and more do not fit in the memory: raise --memory",
		r->objects.n);
	return NULL;
}

struct rest_object *rest_add(struct rest *r, hid_t from, hid_t to,
			     const char *path)
{
	struct rest_object *x = calloc(1, sizeof *x);
	H5O_info_t here, there;

	if (!x || !(x->path = strdup(path))) {
		free(x);
		return too_many(r);
	}
	x->held = H5I_INVALID_HID;
	if (H5Oget_info2(from, &here, H5O_INFO_BASIC) < 0)
		here.addr = HADDR_UNDEF;
	if (to < 0 || H5Oget_info2(to, &there, H5O_INFO_BASIC) < 0)
		there = here;
	x->from = here.addr;
	x->to = there.addr;
	x->type = there.type;
	r->bytes += sizeof *x + 4 * sizeof(void *) + strlen(path) + 48;
	if (r->bytes > r->o->memory / LIST_SHARE || !vec_push(&r->objects, x)) {
		object_free(x);
		return too_many(r);
	}
	/* The list owns it now. */
	if (!tsearch(x, &r->by_address, rest_compare_objects))
		return too_many(r);
	return x;
}

/* ---- links --------------------------------------------------------------- */

static char *rest_join_path(const char *group, const char *name)
{
	char *path;

	if (asprintf(&path, "%s/%s", strcmp(group, "/") ? group : "", name) < 0)
		return NULL;
	return path;
}

/* Make a further link to an object that is already in the copy. */
static void link_again(const struct rest_group *g, const char *name,
		       const char *path, struct rest_object *x, hid_t lcpl)
{
	hid_t id;

	if (rest_looks(g->r))
		return;
	id = x->held >= 0 ? x->held : H5Oopen_by_addr(g->to, x->to);
	if (id < 0 || H5Olink(id, g->to, name, lcpl, H5P_DEFAULT) < 0)
		rest_say_why(&g->r->found->lost, path,
			     "the link to it cannot be made");
	if (id >= 0)
		H5Oclose(id);
	x->held = H5I_INVALID_HID;
}

static void keep_hard(const struct rest_group *g, const char *name,
		      const char *path, haddr_t addr, hid_t lcpl)
{
	struct rest_object *x = rest_find(g->r, addr);
	hid_t from;

	if (x) {
		link_again(g, name, path, x, lcpl);
		return;
	}
	if (!rest_begin(g->r, 'o', path))
		return;
	from = H5Oopen(g->from, name, H5P_DEFAULT);
	if (from < 0) {
		rest_say_why(&g->r->found->lost, path, "it cannot be opened");
		return;
	}
	rest_make(g, name, from, lcpl);
	H5Oclose(from);
}

/* Report an external link that names its file by a relative path. */
static void note_external(const struct rest_group *g, const char *name,
			  const char *path, size_t size)
{
	cleanup_free char *value =
		size && size <= LINK_VALUE_MOST ? calloc(1, size + 1) : NULL;
	const char *file = NULL, *object;
	unsigned flags;

	if (value && H5Lget_val(g->from, name, value, size, H5P_DEFAULT) >= 0 &&
	    H5Lunpack_elink_val(value, size, &flags, &file, &object) >= 0 &&
	    *file != '/')
		rest_say(&g->r->found->abroad, path, file);
}

/* Copy a soft or external link unchanged.  Other kinds are lost. */
static void keep_link(const struct rest_group *g, const char *name,
		      const char *path, const H5L_info_t *info, hid_t lcpl)
{
	if (info->type == H5L_TYPE_EXTERNAL)
		note_external(g, name, path, info->u.val_size);
	if (info->type != H5L_TYPE_SOFT && info->type != H5L_TYPE_EXTERNAL)
		rest_say(&g->r->found->lost, path,
			 "a user-defined link, which only its own program "
			 "knows");
	else if (!rest_looks(g->r) &&
		 H5Lcopy(g->from, name, g->to, name, lcpl, H5P_DEFAULT) < 0)
		rest_say_why(&g->r->found->lost, path,
			     "the link cannot be made");
}

/* Does the new dataset replace this external link? */
static bool is_target(const struct rest *r, const H5L_info_t *info,
		      const char *path)
{
	const char *want = r->o->target_path;

	return r->o->target == HADDR_UNDEF && info->type == H5L_TYPE_EXTERNAL &&
	       !strcmp(path + 1, want + (*want == '/'));
}

static herr_t rest_each_link(hid_t group, const char *name,
			     const H5L_info_t *info, void *ctx)
{
	const struct rest_group *g = ctx;
	struct rest *r = g->r;
	hid_t lcpl = info->cset == H5T_CSET_UTF8 ? r->link_utf8 : r->link_ascii;
	cleanup_free char *path = rest_join_path(g->path, name);

	(void)group;
	if (!path)
		error_no_memory(r->err, "the path of an object");
	else if (*r->o->stop)
		error_set(r->err, -EINTR, "interrupted");
	else if (is_target(r, info, path))
		rest_make(g, name, H5I_INVALID_HID, lcpl);
	else if (info->type == H5L_TYPE_HARD)
		keep_hard(g, name, path, info->u.address, lcpl);
	else
		keep_link(g, name, path, info, lcpl);
	return r->err->code ? -1 : 0;
}

/* ---- passes -------------------------------------------------------------- */

/* The order in which to copy links, so that their creation order is kept. */
static H5_index_t link_order(hid_t group)
{
	hid_t plist = H5Gget_create_plist(group);
	unsigned flags = 0;

	if (plist >= 0) {
		H5Pget_link_creation_order(plist, &flags);
		H5Pclose(plist);
	}
	return flags & H5P_CRT_ORDER_TRACKED ? H5_INDEX_CRT_ORDER
					     : H5_INDEX_NAME;
}

typedef void rest_each(struct rest *r, struct rest_object *x, hid_t from,
		       hid_t to);

static void keep_links(struct rest *r, struct rest_object *x, hid_t from,
		       hid_t to)
{
	struct rest_group g = {r, x->path, from, to};
	hsize_t at = 0;

	if (H5Literate(from, link_order(from), H5_ITER_INC, &at, rest_each_link,
		       &g) < 0 &&
	    !r->err->code)
		rest_say_why(&r->found->lost, x->path,
			     "the members of the group cannot be listed");
}

static void keep_attributes(struct rest *r, struct rest_object *x, hid_t from,
			    hid_t to)
{
	rest_attributes(r, x->path, from, to);
}

static void keep_values(struct rest *r, struct rest_object *x, hid_t from,
			hid_t to)
{
	rest_values(r, x->path, from, to);
}

/* Open an object in both files and call `each` for it. */
static void rest_visit(struct rest *r, struct rest_object *x, rest_each *each)
{
	char what = each == keep_links        ? 'l'
		    : each == keep_attributes ? 'a'
					      : 'v';
	hid_t from = H5Oopen_by_addr(r->o->from, x->from);
	hid_t to = rest_looks(r) ? H5I_INVALID_HID
				 : H5Oopen_by_addr(r->o->to, x->to);

	if (from < 0 || (to < 0 && !rest_looks(r)))
		rest_say_why(&r->found->lost, x->path, "it cannot be opened");
	else if (rest_begin(r, what, x->path))
		each(r, x, from, to);
	if (from >= 0)
		H5Oclose(from);
	if (to >= 0)
		H5Oclose(to);
}

/* Call `each` for all objects that it is for.  The list grows while groups are
 * visited. */
static void rest_visit_all(struct rest *r, rest_each *each)
{
	for (size_t i = 0; i < r->objects.n && !r->err->code; i++) {
		struct rest_object *x = r->objects.at[i];

		if (*r->o->stop)
			error_set(r->err, -EINTR, "interrupted");
		else if (x->from == HADDR_UNDEF)
			continue; /* it is in another file */
		else if (each == keep_links    ? x->type == H5O_TYPE_GROUP
			 : each == keep_values ? x->values
					       : true)
			rest_visit(r, x, each);
	}
}

static void begin_at_root(struct rest *r)
{
	hid_t from = H5Gopen2(r->o->from, "/", H5P_DEFAULT);
	hid_t to = rest_looks(r) ? H5I_INVALID_HID
				 : H5Gopen2(r->o->to, "/", H5P_DEFAULT);

	if (from < 0 || (to < 0 && !rest_looks(r)))
		rest_say_why(&r->found->lost, "/", "it cannot be opened");
	else
		rest_add(r, from, to, "/");
	if (from >= 0)
		H5Gclose(from);
	if (to >= 0)
		H5Gclose(to);
}

static void rest_free_nothing(void *p)
{
	(void)p;
}

int hdf5_rest_copy(const struct rest_options *o, struct rest_found *out,
		   struct error *err)
{
	struct rest r = {.o = o, .found = out, .err = err};

	memset(out, 0, sizeof *out);
	err->code = 0;
	r.link_ascii = H5Pcreate(H5P_LINK_CREATE);
	r.link_utf8 = H5Pcreate(H5P_LINK_CREATE);
	if (r.link_ascii < 0 || r.link_utf8 < 0 ||
	    H5Pset_char_encoding(r.link_utf8, H5T_CSET_UTF8) < 0)
		error_set(err, -ENOMEM, "libhdf5 is out of memory");
	else
		begin_at_root(&r);
	rest_visit_all(&r, keep_links);
	rest_visit_all(&r, keep_attributes);
	if (!rest_looks(&r))
		rest_visit_all(&r, keep_values);
	tdestroy(r.by_address, rest_free_nothing);
	for (size_t i = 0; i < r.objects.n; i++)
		object_free(r.objects.at[i]);
	vec_free(&r.objects);
	H5Pclose(r.link_ascii);
	H5Pclose(r.link_utf8);
	return err->code;
}
