/* SPDX-License-Identifier: BSD-2-Clause */
/* Copy attributes, and references, which are addresses of objects. */

/*
 * A reference (tensors/refer.c) becomes one to the same object of the output: the list of
 * items knows where each object was, and H5Oget_info says where it is now.  The object
 * that is referred to has to exist already, so these values are written last.
 *
 * A reference to an object that is not in the output becomes null.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/number.h"
#include "formats/hdf5/file/driver.h"
#include "formats/hdf5/file/lost.h"
#include "formats/hdf5/file/vlen.h"
#include "tensors/merge/private.h"
#include "tensors/refer.h"

/* The most bytes of an attribute, or of a dataset of references, that are in memory at
 * once, and the most bytes that these point to. */
#define VALUES_MOST (UINT64_C(256) << 20)

struct referring {
	struct merge *m;
	uint32_t file; /* the file that the references were read from */
	struct refer refer;
};

static int attr_failed(const struct item *it, const char *what,
		       struct error *err)
{
	char why[256];

	hdf5_why(why, sizeof why);
	return error_set(err, -EIO, "%s: %s: %s", it->path, what, why);
}

/* ---- references ---------------------------------------------------------- */

static haddr_t find_item(void *ctx, haddr_t addr)
{
	struct referring *x = ctx;
	const struct item *it = merge_item_of(x->m, x->file, addr);
	H5O_info_t info;

	return it && H5Oget_info_by_name2(x->refer.to, it->path, &info,
					  H5O_INFO_BASIC, H5P_DEFAULT) >= 0
		       ? info.addr
		       : HADDR_UNDEF;
}

static void refer_begin(struct referring *x, struct merge *m,
			const struct item *it, hid_t from, hid_t to)
{
	x->m = m;
	x->file = it->file;
	x->refer = (struct refer){
		.from = from, .to = to, .find = find_item, .ctx = x};
}

static void say_lost(const struct referring *x, const struct item *it,
		     const char *name)
{
	if (x->refer.lost)
		log_warn("%s%s%s: %llu references lead to objects that are not "
			 "in the output, and are null in it",
			 it->path, name ? ": attribute " : "", name ? name : "",
			 (unsigned long long)x->refer.lost);
}

/* ---- attributes ---------------------------------------------------------- */

struct attributes {
	struct merge *m;
	const struct item *it;
	hid_t to;
	bool references;
	struct error *err;
};

static bool attr_copy_value(struct attributes *a, hid_t from, hid_t type,
			    hid_t space, hid_t to, const char *name)
{
	struct referring x;
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
		refer_begin(&x, a->m, a->it, from, a->to);
		refer_translate(&x.refer, type, data, (uint64_t)n);
		say_lost(&x, a->it, name);
	}
	ok = ok && H5Awrite(to, type, data) >= 0;
	hdf5_vlen_end();
	return ok;
}

static int attr_copy(struct attributes *a, hid_t from, const char *name)
{
	hid_t stored = H5Aget_type(from), space = H5Aget_space(from);
	hid_t type = stored < 0 ? stored : H5Tcopy(stored), to;
	hid_t acpl = H5Aget_create_plist(from);
	bool ok = type >= 0 && space >= 0 && acpl >= 0;

	if (ok && refer_is_in(type) == a->references) {
		to = H5Acreate2(a->to, name, type, space, acpl, H5P_DEFAULT);
		ok = to >= 0 && attr_copy_value(a, from, type, space, to, name);
		if (to >= 0)
			H5Aclose(to);
	}
	if (!ok)
		attr_failed(a->it, name, a->err);
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

static herr_t attr_copy_each(hid_t object, const char *name,
			     const H5A_info_t *info, void *ctx)
{
	struct attributes *a = ctx;
	hid_t from = H5Aopen(object, name, H5P_DEFAULT);
	int r;

	(void)info;
	r = from < 0 ? attr_failed(a->it, name, a->err)
		     : attr_copy(a, from, name);
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
	    H5Aiterate2(from, H5_INDEX_NAME, H5_ITER_INC, &at, attr_copy_each,
			&a) >= 0)
		return 0;
	return err->code
		       ? err->code
		       : attr_failed(it, "its attributes cannot be read", err);
}

/* ---- datasets of references ---------------------------------------------- */

int merge_references(struct merge *m, const struct item *it, hid_t from,
		     hid_t to, struct error *err)
{
	struct referring x;
	hid_t type = H5Dget_type(from), space = H5Dget_space(from);
	hssize_t n = space < 0 ? -1 : H5Sget_simple_extent_npoints(space);
	size_t size = type < 0 ? 0 : H5Tget_size(type);
	hid_t dxpl = hdf5_vlen_transfer();
	uint64_t bytes = 0;
	void *data = NULL;
	int r = 0;

	if (n < 0 || !size || mul_overflows((uint64_t)n, size, &bytes))
		r = attr_failed(it, "it cannot be read", err);
	else if (bytes > VALUES_MOST)
		r = error_set(err, -ENOTSUP,
			      "%s: its references need more than 256 MiB and "
			      "cannot be merged",
			      it->path);
	else if (!(data = calloc(1, max_u64(bytes, 1))))
		r = error_no_memory(err, "a dataset of references");
	hdf5_vlen_begin(from, VALUES_MOST);
	if (r == 0 && n > 0 &&
	    H5Dread(from, type, H5S_ALL, H5S_ALL, dxpl, data) < 0)
		r = attr_failed(it, "it cannot be read", err);
	if (r == 0 && n > 0) {
		refer_begin(&x, m, it, from, to);
		refer_translate(&x.refer, type, data, (uint64_t)n);
		say_lost(&x, it, NULL);
		if (H5Dwrite(to, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0)
			r = attr_failed(it, "it cannot be written", err);
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
