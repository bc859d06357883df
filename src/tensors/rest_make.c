/* SPDX-License-Identifier: BSD-2-Clause */
/* Copy objects: groups, named types, datasets. */

/*
 * Datasets are copied by H5Ocopy, which copies chunks as they are stored, leaves virtual
 * datasets virtual, and leaves raw data in other files there.  Two kinds of datasets are
 * instead created empty and filled in the last pass: those with references, which H5Ocopy
 * does not translate inside other types, and those with strings and sequences, which only
 * our code reads (formats/hdf5/file/vlen.c).
 *
 * H5Ocopy makes a new copy of a named type for each dataset of that type, unless it is
 * given the path of one to use: the type gets a temporary name for that time.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "base/parse.h"
#include "formats/hdf5/file/driver.h"
#include "formats/hdf5/file/vlen.h"
#include "tensors/build.h"
#include "tensors/refer.h"
#include "tensors/rest_private.h"

#define TYPE_NAME ".tensorfs-named-type"
/* A copied chunk is in memory as it is stored and decoded, at most; a chunk may take this
 * share. */
#define CHUNK_SHARE 4
#define FILL_MOST (UINT64_C(1) << 20)

/* ---- properties ---------------------------------------------------------- */

static void copy_attribute_order(hid_t object, hid_t from, hid_t to)
{
	unsigned order = 0, compact, dense;

	H5Pget_attr_creation_order(from, &order);
	if (!order && object >= 0 && hdf5_rest_large_attribute(object))
		order = H5P_CRT_ORDER_TRACKED;
	H5Pset_attr_creation_order(to, order);
	if (H5Pget_attr_phase_change(from, &compact, &dense) >= 0)
		H5Pset_attr_phase_change(to, compact, dense);
}

/* Copy properties one by one, because the whole list would include where the old group
 * keeps its links. */
static void copy_group_plist(hid_t object, hid_t from, hid_t to)
{
	unsigned a, b;

	if (H5Pget_link_creation_order(from, &a) >= 0)
		H5Pset_link_creation_order(to, a);
	if (H5Pget_link_phase_change(from, &a, &b) >= 0)
		H5Pset_link_phase_change(to, a, b);
	/* Equal input must give equal files. */
	H5Pset_obj_track_times(to, false);
	copy_attribute_order(object, from, to);
}

hid_t hdf5_rest_file_plist(hid_t from, uint64_t *user_block)
{
	hid_t old = H5Fget_create_plist(from);
	hid_t to = H5Pcreate(H5P_FILE_CREATE);
	hid_t root = H5Gopen2(from, "/", H5P_DEFAULT);
	hid_t group = root < 0 ? root : H5Gget_create_plist(root);
	hsize_t n = 0;

	if (old >= 0 && to >= 0 && H5Pget_userblock(old, &n) >= 0 && n > 0 &&
	    H5Pset_userblock(to, n) < 0)
		n = UINT64_MAX; /* not a possible length of a user block */
	*user_block = n;
	if (group >= 0 && to >= 0)
		copy_group_plist(root, group, to);
	if (group >= 0)
		H5Pclose(group);
	if (root >= 0)
		H5Gclose(root);
	if (old >= 0)
		H5Pclose(old);
	return to;
}

/* Copy the comment of an object, which some programs set; netCDF and others do not. */
static void copy_comment(hid_t from, hid_t to)
{
	ssize_t n = H5Oget_comment(from, NULL, 0);
	cleanup_free char *text =
		n > 0 && n < 65536 ? calloc(1, (size_t)n + 1) : NULL;

	if (text && H5Oget_comment(from, text, (size_t)n + 1) > 0)
		H5Oset_comment(to, text);
}

/* ---- groups and types ---------------------------------------------------- */

static hid_t rest_make_group(const struct rest_group *g, const char *name,
			     hid_t from, hid_t lcpl)
{
	hid_t old = H5Gget_create_plist(from), to = H5I_INVALID_HID;
	hid_t gcpl = H5Pcreate(H5P_GROUP_CREATE);

	if (old >= 0 && gcpl >= 0) {
		copy_group_plist(from, old, gcpl);
		to = H5Gcreate2(g->to, name, lcpl, gcpl, H5P_DEFAULT);
	}
	if (to >= 0)
		copy_comment(from, to);
	if (old >= 0)
		H5Pclose(old);
	if (gcpl >= 0)
		H5Pclose(gcpl);
	return to;
}

/* Copy a named type, without a name if `name` is NULL.  Return it open, or a negative
 * number. */
static hid_t rest_commit_type(struct rest *r, hid_t group, const char *name,
			      hid_t from, hid_t lcpl)
{
	hid_t old = H5Tget_create_plist(from), to = H5Tcopy(from);
	hid_t tcpl = H5Pcreate(H5P_DATATYPE_CREATE);
	bool ok = old >= 0 && tcpl >= 0 && to >= 0;

	if (ok) {
		copy_attribute_order(from, old, tcpl);
		H5Pset_obj_track_times(tcpl, false);
		ok = name ? H5Tcommit2(group, name, to, lcpl, tcpl,
				       H5P_DEFAULT) >= 0
			  : H5Tcommit_anon(r->o->to, to, tcpl, H5P_DEFAULT) >=
				     0;
	}
	if (ok)
		copy_comment(from, to);
	if (!ok && to >= 0) {
		H5Tclose(to);
		to = H5I_INVALID_HID;
	}
	if (old >= 0)
		H5Pclose(old);
	if (tcpl >= 0)
		H5Pclose(tcpl);
	return to;
}

hid_t rest_type(struct rest *r, hid_t type)
{
	struct rest_object *x;
	H5O_info_t info;
	hid_t to;

	if (rest_looks(r) || H5Tcommitted(type) <= 0)
		return H5Tcopy(type);
	if (H5Oget_info2(type, &info, H5O_INFO_BASIC) < 0)
		return H5I_INVALID_HID;
	x = rest_find(r, info.addr);
	if (!x) { /* no link to it was met yet, and maybe none will be */
		to = rest_commit_type(r, H5I_INVALID_HID, NULL, type,
				      H5P_DEFAULT);
		x = to < 0 ? NULL : rest_add(r, type, to, "(a named type)");
		if (!x) {
			if (to >= 0)
				H5Tclose(to);
			return H5I_INVALID_HID;
		}
		x->held = to;
	}
	return H5Oopen_by_addr(r->o->to, x->to);
}

/* ---- datasets ------------------------------------------------------------ */

static H5O_mcdt_search_ret_t stop_search(void *ctx)
{
	(void)ctx;
	return H5O_MCDT_SEARCH_STOP;
}

/* Make H5Ocopy use the named type that is already in the copy.  Return 1 if a temporary
 * link to it was made, which the caller deletes; 0 if the type is not named; -1 on
 * failure. */
static int merge_type(struct rest *r, hid_t from, hid_t ocpypl)
{
	hid_t type = H5Dget_type(from), to;
	int linked = -1;

	if (type < 0)
		return -1;
	if (H5Tcommitted(type) <= 0) {
		H5Tclose(type);
		return H5Pset_copy_object(ocpypl, H5O_COPY_WITHOUT_ATTR_FLAG) <
				       0
			       ? -1
			       : 0;
	}
	to = rest_type(r, type);
	if (to >= 0 &&
	    H5Olink(to, r->o->to, TYPE_NAME, H5P_DEFAULT, H5P_DEFAULT) >= 0) {
		linked = 1;
		if (H5Padd_merge_committed_dtype_path(ocpypl, "/" TYPE_NAME) <
			    0 ||
		    H5Pset_mcdt_search_cb(ocpypl, stop_search, NULL) < 0 ||
		    H5Pset_copy_object(
			    ocpypl,
			    H5O_COPY_WITHOUT_ATTR_FLAG |
				    H5O_COPY_MERGE_COMMITTED_DTYPE_FLAG) < 0) {
			H5Ldelete(r->o->to, TYPE_NAME, H5P_DEFAULT);
			linked = -1;
		}
	}
	if (to >= 0)
		H5Tclose(to);
	H5Tclose(type);
	return linked;
}

/* Copy a dataset as it is stored. */
static hid_t copy_dataset(const struct rest_group *g, const char *name,
			  hid_t from, hid_t lcpl)
{
	hid_t ocpypl = H5Pcreate(H5P_OBJECT_COPY), to = H5I_INVALID_HID;
	hid_t dcpl = hdf5_vlen_create_plist(from);
	int linked = ocpypl < 0 ? -1 : merge_type(g->r, from, ocpypl);
	struct error ignored = {0};
	int nameless = dcpl < 0 ? -1 : build_filters_nameless(dcpl, &ignored);

	if (linked >= 0 && nameless >= 0 &&
	    H5Ocopy(from, ".", g->to, name, ocpypl, lcpl) >= 0)
		to = H5Dopen2(g->to, name, H5P_DEFAULT);
	if (linked > 0)
		H5Ldelete(g->r->o->to, TYPE_NAME, H5P_DEFAULT);
	if (to >= 0 && nameless == 0 && H5Oflush(to) < 0) {
		H5Dclose(to);
		to = H5I_INVALID_HID;
	}
	if (nameless == 0)
		hdf5_filters_register(&ignored);
	if (dcpl >= 0)
		H5Pclose(dcpl);
	if (ocpypl >= 0)
		H5Pclose(ocpypl);
	return to;
}

/* Copy a fill value of variable length, which the property list does not include. */
static bool copy_fill(hid_t from, hid_t type, hid_t dcpl)
{
	cleanup_free void *fill = calloc(1, max_u64(H5Tget_size(type), 1));
	H5D_fill_value_t defined = H5D_FILL_VALUE_DEFAULT;
	hid_t read;
	bool ok;

	H5Pfill_value_defined(dcpl, &defined);
	if (defined != H5D_FILL_VALUE_USER_DEFINED || !refer_points(type))
		return true;
	hdf5_vlen_begin(from, FILL_MOST);
	read = hdf5_vlen_fill_plist(from);
	ok = fill && read >= 0 && H5Pget_fill_value(read, type, fill) >= 0 &&
	     H5Pset_fill_value(dcpl, type, fill) >= 0;
	hdf5_vlen_end();
	if (read >= 0)
		H5Pclose(read);
	return ok;
}

/* Create a dataset with the same properties and no elements. */
static hid_t make_empty(const struct rest_group *g, const char *name,
			hid_t from, hid_t lcpl)
{
	hid_t stored = H5Dget_type(from), space = H5Dget_space(from);
	hid_t dcpl = hdf5_vlen_create_plist(from), to = H5I_INVALID_HID;
	hid_t type = stored < 0 ? stored : rest_type(g->r, stored);
	hid_t memory = H5I_INVALID_HID;

	if (type >= 0 && space >= 0 && dcpl >= 0) {
		copy_attribute_order(from, dcpl, dcpl);
		H5Pset_obj_track_times(dcpl, false);
		memory = H5Tcopy(stored);
		if (memory >= 0 && copy_fill(from, memory, dcpl))
			to = H5Dcreate2(g->to, name, type, space, lcpl, dcpl,
					H5P_DEFAULT);
	}
	if (memory >= 0)
		H5Tclose(memory);
	if (to >= 0)
		copy_comment(from, to);
	if (type >= 0)
		H5Tclose(type);
	if (stored >= 0)
		H5Tclose(stored);
	if (space >= 0)
		H5Sclose(space);
	if (dcpl >= 0)
		H5Pclose(dcpl);
	return to;
}

/* Report the first relative name of another file that the dataset takes its data from. */
static void note_files(struct rest *r, const char *path, hid_t dcpl)
{
	size_t n = 0;
	ssize_t len = 0;
	char name[512] = "";
	hsize_t size;
	off_t pos;

	if (H5Pget_layout(dcpl) == H5D_VIRTUAL &&
	    H5Pget_virtual_count(dcpl, &n) >= 0)
		for (size_t i = 0; i < n; i++) {
			len = H5Pget_virtual_filename(dcpl, i, name,
						      sizeof name);
			if (len > 0 && *name != '/' && strcmp(name, "."))
				break;
			len = 0;
		}
	else if (H5Pget_external_count(dcpl) > 0 &&
		 H5Pget_external(dcpl, 0, sizeof name - 1, name, &pos, &size) >=
			 0)
		len = *name != '/';
	if (len > 0)
		rest_say(&r->found->abroad, path, name);
}

/* Are the chunks too large to be copied in the memory allowed?  If so, report that. */
static bool is_too_large(struct rest *r, const char *path, hid_t type,
			 hid_t dcpl)
{
	hsize_t chunk[H5S_MAX_RANK];
	uint64_t bytes = H5Tget_size(type), most = r->o->memory / CHUNK_SHARE;
	int rank = H5Pget_layout(dcpl) == H5D_CHUNKED
			   ? H5Pget_chunk(dcpl, H5S_MAX_RANK, chunk)
			   : 0;
	char text[32], why[160];

	for (int i = 0; i < rank; i++)
		if (mul_overflows(bytes, chunk[i], &bytes))
			bytes = UINT64_MAX / (CHUNK_SHARE + 1);
	if (bytes <= most)
		return false;
	format_size(bytes, text, sizeof text);
	snprintf(why, sizeof why, "a chunk of it takes %s: give --memory=%lluM",
		 text, (unsigned long long)(bytes * CHUNK_SHARE >> 20) + 1);
	rest_say(&r->found->lost, path, why);
	return true;
}

/* Must the dataset be filled in the last pass?  Set *lost if it cannot be copied at all,
 * which is reported. */
static bool rest_check_dataset(struct rest *r, const char *path, hid_t from,
			       bool *lost)
{
	hid_t type = H5Dget_type(from), dcpl = hdf5_vlen_create_plist(from);
	bool by_hand = false, readable = type >= 0 && dcpl >= 0;
	const char *reason;
	char why[320];

	*lost = !readable;
	if (!readable)
		rest_say_why(&r->found->lost, path, "it cannot be read");
	if (readable)
		note_files(r, path, dcpl);
	/* The elements of a virtual dataset are in other datasets. */
	if (readable && H5Pget_layout(dcpl) != H5D_VIRTUAL)
		by_hand = refer_points(type) || refer_is_in(type);
	if (readable)
		*lost = is_too_large(r, path, type, dcpl);
	if (by_hand && !*lost && rest_is_deadly(r, 'v', path))
		*lost = !rest_begin(r, 'v', path);
	if (by_hand && !*lost) {
		reason = rest_values_check(r, path, from, why, sizeof why);
		*lost = reason;
		if (reason)
			rest_say(&r->found->lost, path, reason);
	}
	if (type >= 0)
		H5Tclose(type);
	if (dcpl >= 0)
		H5Pclose(dcpl);
	return by_hand;
}

/* ---- any object ---------------------------------------------------------- */

static void rest_make_target(const struct rest_group *g, const char *name,
			     hid_t from, const char *path)
{
	struct rest *r = g->r;
	hid_t to = H5I_INVALID_HID, named = H5I_INVALID_HID, type;
	struct rest_object *x;

	if (!rest_looks(r) && from >= 0) {
		type = H5Dget_type(from);
		if (type >= 0 && H5Tcommitted(type) > 0)
			named = rest_type(r, type);
		if (type >= 0)
			H5Tclose(type);
	}
	if (!rest_looks(r) && !r->err->code &&
	    r->o->make(r->o->ctx, g->to, name, named, &to, r->err) < 0)
		to = H5I_INVALID_HID;
	if (to >= 0 && from >= 0)
		copy_comment(from, to);
	if (named >= 0)
		H5Tclose(named);
	x = r->err->code ? NULL : rest_add(r, from, to, path);
	if (x)
		x->target = r->found->placed = true;
	if (to >= 0)
		H5Dclose(to);
}

static hid_t rest_make_dataset(const struct rest_group *g, const char *name,
			       hid_t from, hid_t lcpl, bool by_hand)
{
	return by_hand ? make_empty(g, name, from, lcpl)
		       : copy_dataset(g, name, from, lcpl);
}

static void make_other(const struct rest_group *g, const char *name, hid_t from,
		       const char *path, H5O_type_t type, hid_t lcpl)
{
	struct rest *r = g->r;
	bool lost = false, by_hand = false;
	struct rest_object *x;
	hid_t to = H5I_INVALID_HID;

	if (type == H5O_TYPE_DATASET)
		by_hand = rest_check_dataset(r, path, from, &lost);
	if (lost)
		return;
	if (!rest_looks(r)) {
		to = type == H5O_TYPE_GROUP
			     ? rest_make_group(g, name, from, lcpl)
		     : type == H5O_TYPE_DATASET
			     ? rest_make_dataset(g, name, from, lcpl, by_hand)
			     : rest_commit_type(r, g->to, name, from, lcpl);
		if (to < 0 && !r->err->code)
			rest_say_why(&r->found->lost, path,
				     "it cannot be copied");
		if (to < 0)
			return;
	}
	x = rest_add(r, from, to, path);
	if (x) {
		x->values = by_hand;
		r->found->datasets += type == H5O_TYPE_DATASET;
	}
	if (to >= 0)
		H5Oclose(to);
}

void rest_make(const struct rest_group *g, const char *name, hid_t from,
	       hid_t lcpl)
{
	cleanup_free char *path = NULL;
	H5O_info_t info;

	if (asprintf(&path, "%s/%s", strcmp(g->path, "/") ? g->path : "",
		     name) < 0) {
		path = NULL;
		error_no_memory(g->r->err, "the path of an object");
	} else if (from < 0) {
		rest_make_target(g, name, from, path);
	} else if (H5Oget_info2(from, &info, H5O_INFO_BASIC) < 0) {
		rest_say_why(&g->r->found->lost, path, "it cannot be read");
	} else if (info.addr == g->r->o->target) {
		rest_make_target(g, name, from, path);
	} else {
		make_other(g, name, from, path, info.type, lcpl);
	}
}
