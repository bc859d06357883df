/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes, and references, which are addresses of objects. */

/*
 * A reference to an object is its address in the file, so it has to become that of the
 * same object in the output: the list of items knows where each was, H5Oget_info says
 * where it is.  Values are gone through as their type says, for references may be in
 * sequences and structures (dimension scales have both).  What an object refers to has to
 * be there already, so these values are written last.
 *
 * What leads to nothing that was taken along becomes null.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/number.h"
#include "pack/hdf5_merge_private.h"
#include "source/hdf5_lost.h"
#include "source/hdf5_vlen.h"

/* Bytes of an attribute, or of a dataset of references, that are in memory at once; and
 * of what they point to. */
#define VALUES_MOST (UINT64_C(256) << 20)

struct referring {
	struct merge *m;
	uint32_t file; /* that the references are of */
	hid_t from, to;
	uint64_t lost;
};

static int failed(const struct item *it, const char *what, struct error *err)
{
	char why[256];

	hdf5_why(why, sizeof why);
	return error_set(err, -EIO, "%s: %s: %s", it->path, what, why);
}

/* ---- references ---------------------------------------------------------- */

bool merge_type_refers(hid_t type)
{
	return H5Tdetect_class(type, H5T_REFERENCE) > 0;
}

/* The address of the same object in the output; 0: there is none. */
static void translate_object(struct referring *x, void *data)
{
	const struct item *it;
	hobj_ref_t ref;
	H5O_info_t info;

	memcpy(&ref, data, sizeof ref);
	if (!ref)
		return;
	it = merge_item_of(x->m, x->file, ref);
	if (it && H5Oget_info_by_name2(x->to, it->path, &info, H5O_INFO_BASIC,
				       H5P_DEFAULT) >= 0) {
		ref = info.addr;
	} else {
		ref = 0;
		x->lost++;
	}
	memcpy(data, &ref, sizeof ref);
}

/* The same elements of the same dataset. */
static void translate_region(struct referring *x, void *data)
{
	static const hdset_reg_ref_t null;
	hdset_reg_ref_t ref, out;
	const struct item *it = NULL;
	hid_t object, space;
	H5O_info_t info;

	memcpy(&ref, data, sizeof ref);
	memset(data, 0, sizeof ref);
	if (!memcmp(&ref, &null, sizeof ref))
		return;
	object =
		H5Rdereference2(x->from, H5P_DEFAULT, H5R_DATASET_REGION, &ref);
	space = H5Rget_region(x->from, H5R_DATASET_REGION, &ref);
	if (object >= 0 && H5Oget_info2(object, &info, H5O_INFO_BASIC) >= 0)
		it = merge_item_of(x->m, x->file, info.addr);
	if (it && space >= 0 &&
	    H5Rcreate(&out, x->to, it->path, H5R_DATASET_REGION, space) >= 0)
		memcpy(data, &out, sizeof out);
	else
		x->lost++;
	if (object >= 0)
		H5Oclose(object);
	if (space >= 0)
		H5Sclose(space);
}

static void translate(struct referring *x, hid_t type, unsigned char *data,
		      uint64_t n);

static void translate_members(struct referring *x, hid_t type,
			      unsigned char *data)
{
	int n = H5Tget_nmembers(type);

	for (int i = 0; i < n; i++) {
		hid_t member = H5Tget_member_type(type, (unsigned)i);

		if (member >= 0 && merge_type_refers(member))
			translate(
				x, member,
				data + H5Tget_member_offset(type, (unsigned)i),
				1);
		if (member >= 0)
			H5Tclose(member);
	}
}

static void translate_one(struct referring *x, hid_t type, hid_t inner,
			  unsigned char *data, uint64_t inside)
{
	hvl_t list;

	switch (H5Tget_class(type)) {
	case H5T_REFERENCE:
		if (H5Tequal(type, H5T_STD_REF_OBJ) > 0) {
			translate_object(x, data);
		} else if (H5Tequal(type, H5T_STD_REF_DSETREG) > 0) {
			translate_region(x, data);
		} else {
			memset(data, 0, H5Tget_size(type));
			x->lost++;
		}
		break;
	case H5T_COMPOUND:
		translate_members(x, type, data);
		break;
	case H5T_ARRAY:
		translate(x, inner, data, inside);
		break;
	case H5T_VLEN:
		memcpy(&list, data, sizeof list);
		translate(x, inner, list.p, list.len);
		break;
	default:
		break;
	}
}

/* `n` elements in memory. */
static void translate(struct referring *x, hid_t type, unsigned char *data,
		      uint64_t n)
{
	size_t size = H5Tget_size(type);
	H5T_class_t class = H5Tget_class(type);
	hid_t inner = class == H5T_ARRAY || class == H5T_VLEN
			      ? H5Tget_super(type)
			      : H5I_INVALID_HID;
	uint64_t inside = class == H5T_ARRAY && inner >= 0
				  ? size / max_u64(H5Tget_size(inner), 1)
				  : 0;

	for (uint64_t i = 0; i < n; i++)
		translate_one(x, type, inner, data + i * size, inside);
	if (inner >= 0)
		H5Tclose(inner);
}

static void say_lost(const struct referring *x, const struct item *it,
		     const char *name)
{
	if (x->lost)
		log_warn("%s%s%s: references to what is not in the output, "
			 "and null in it: %llu",
			 it->path, name ? ": attribute " : "", name ? name : "",
			 (unsigned long long)x->lost);
}

/* ---- attributes ---------------------------------------------------------- */

struct attributes {
	struct merge *m;
	const struct item *it;
	hid_t to;
	bool references;
	struct error *err;
};

static bool copy_value(struct attributes *a, hid_t from, hid_t type,
		       hid_t space, hid_t to, const char *name)
{
	struct referring x = {
		.m = a->m, .file = a->it->file, .from = from, .to = a->to};
	hssize_t n = H5Sget_simple_extent_npoints(space);
	size_t size = H5Tget_size(type);
	cleanup_free unsigned char *data =
		calloc((size_t)(n > 0 ? n : 1), size ? size : 1);
	bool ok = data != NULL;

	if (n <= 0) /* a null dataspace has no value */
		return ok;
	hdf5_vlen_begin(from, VALUES_MOST);
	ok = ok && H5Aread(from, type, data) >= 0;
	if (ok && a->references) {
		translate(&x, type, data, (uint64_t)n);
		say_lost(&x, a->it, name);
	}
	ok = ok && H5Awrite(to, type, data) >= 0;
	hdf5_vlen_end();
	return ok;
}

static int copy_attribute(struct attributes *a, hid_t from, const char *name)
{
	hid_t stored = H5Aget_type(from), space = H5Aget_space(from);
	hid_t type = stored < 0 ? stored : H5Tcopy(stored), to;
	hid_t acpl = H5Aget_create_plist(from);
	bool ok = type >= 0 && space >= 0 && acpl >= 0;

	if (ok && merge_type_refers(type) == a->references) {
		to = H5Acreate2(a->to, name, type, space, acpl, H5P_DEFAULT);
		ok = to >= 0 && copy_value(a, from, type, space, to, name);
		if (to >= 0)
			H5Aclose(to);
	}
	if (!ok)
		failed(a->it, name, a->err);
	if (acpl >= 0)
		H5Pclose(acpl);
	if (space >= 0)
		H5Sclose(space);
	if (type >= 0)
		H5Tclose(type);
	if (stored >= 0)
		H5Tclose(stored);
	return ok ? 0 : a->err->code;
}

static herr_t each_attribute(hid_t object, const char *name,
			     const H5A_info_t *info, void *ctx)
{
	struct attributes *a = ctx;
	hid_t from = H5Aopen(object, name, H5P_DEFAULT);
	int r;

	(void)info;
	r = from < 0 ? failed(a->it, name, a->err)
		     : copy_attribute(a, from, name);
	if (from >= 0)
		H5Aclose(from);
	return r < 0 ? -1 : 0;
}

int merge_attributes(struct merge *m, const struct item *it, hid_t from,
		     hid_t to, bool references, struct error *err)
{
	struct attributes a = {m, it, to, references, err};
	hsize_t at = 0;
	char why[256];

	err->code = 0;
	if (hdf5_lost_rest(from, why, sizeof why) == HDF5_REST_NONE &&
	    H5Aiterate2(from, H5_INDEX_NAME, H5_ITER_INC, &at, each_attribute,
			&a) >= 0)
		return 0;
	return err->code ? err->code
			 : failed(it, "its attributes cannot be read", err);
}

/* ---- datasets of references ---------------------------------------------- */

int merge_references(struct merge *m, const struct item *it, hid_t from,
		     hid_t to, struct error *err)
{
	struct referring x = {.m = m, .file = it->file, .from = from, .to = to};
	hid_t type = H5Dget_type(from), space = H5Dget_space(from);
	hssize_t n = space < 0 ? -1 : H5Sget_simple_extent_npoints(space);
	size_t size = type < 0 ? 0 : H5Tget_size(type);
	hid_t dxpl = hdf5_vlen_transfer();
	uint64_t bytes = 0;
	void *data = NULL;
	int r = 0;

	if (n < 0 || !size || mul_overflows((uint64_t)n, size, &bytes))
		r = failed(it, "it cannot be read", err);
	else if (bytes > VALUES_MOST)
		r = error_set(err, -ENOTSUP, "%s: too many references",
			      it->path);
	else if (!(data = calloc(1, max_u64(bytes, 1))))
		r = merge_no_memory(err);
	hdf5_vlen_begin(from, VALUES_MOST);
	if (r == 0 && n > 0 &&
	    H5Dread(from, type, H5S_ALL, H5S_ALL, dxpl, data) < 0)
		r = failed(it, "it cannot be read", err);
	if (r == 0 && n > 0) {
		translate(&x, type, data, (uint64_t)n);
		say_lost(&x, it, NULL);
		if (H5Dwrite(to, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0)
			r = failed(it, "it cannot be written", err);
	}
	hdf5_vlen_end();
	free(data);
	if (dxpl >= 0)
		H5Pclose(dxpl);
	if (type >= 0)
		H5Tclose(type);
	if (space >= 0)
		H5Sclose(space);
	return r;
}
