/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes in array.h5 and merged.h5. */

/*
 * References are addresses in another file, so attributes that have any are left out
 * (those of dimension scales do).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/hdf5/file/lost.h"
#include "formats/hdf5/export/monolith.h"
#include "formats/hdf5/file/vlen.h"

struct attributes {
	struct making *m;
	const char *path;
	hid_t to;
};

/* Copy a value. Return 0, 1 if it cannot be read (a note tells why), or -errno. */
static int copy_value(struct attributes *a, hid_t from, hid_t type,
		      const char *name, uint64_t bytes, hid_t to)
{
	cleanup_free void *data = calloc(1, max_u64(bytes, 1));
	struct error said = {0};
	char why[256];
	int r = 0;

	if (!data)
		return error_no_memory(a->m->err, "an attribute");
	hdf5_vlen_begin(from, MONOLITH_ATTRIBUTE_MAX);
	if (H5Aread(from, type, data) < 0) {
		hdf5_why(why, sizeof why);
		r = hdf5_vlen_failed(&said);
		monolith_note(a->m, a->path, "attribute %s: %s", name,
			      r < 0 ? said.text : why);
		r = r == -ENOMEM ? error_no_memory(a->m->err, "an attribute")
				 : 1;
	} else if (H5Awrite(to, type, data) < 0) {
		r = monolith_failed(a->m, a->path, name);
	}
	hdf5_vlen_end();
	return r;
}

static int create_attribute(struct attributes *a, hid_t from, const char *name,
			    hid_t type, hid_t space)
{
	hssize_t n = H5Sget_simple_extent_npoints(space);
	hid_t acpl = H5Aget_create_plist(from), to;
	uint64_t bytes = 0;
	int r = 0;

	if (mul_overflows(n > 0 ? (uint64_t)n : 0, H5Tget_size(type), &bytes) ||
	    bytes > MONOLITH_ATTRIBUTE_MAX) {
		monolith_note(a->m, a->path, "attribute %s: too long", name);
		H5Pclose(acpl);
		return 0;
	}
	to = H5Acreate2(a->to, name, type, space, acpl, H5P_DEFAULT);
	if (acpl >= 0)
		H5Pclose(acpl);
	if (to < 0)
		return monolith_failed(a->m, a->path, name);
	if (n > 0) /* a null dataspace has no value */
		r = copy_value(a, from, type, name, bytes, to);
	H5Aclose(to);
	if (r == 1)
		r = H5Adelete(a->to, name) < 0
			    ? monolith_failed(a->m, a->path, name)
			    : 0;
	return r;
}

static int copy_attribute(struct attributes *a, hid_t from, const char *name)
{
	hid_t stored = H5Aget_type(from), space = H5Aget_space(from);
	hid_t type = stored < 0 ? stored : H5Tcopy(stored);
	int r = 0;

	if (type < 0 || space < 0)
		monolith_note(a->m, a->path, "attribute %s: it cannot be read",
			      name);
	else if (H5Tdetect_class(type, H5T_REFERENCE) != 0)
		monolith_note(a->m, a->path,
			      "attribute %s: references lead nowhere here",
			      name);
	else
		r = create_attribute(a, from, name, type, space);
	if (space >= 0)
		H5Sclose(space);
	if (type >= 0)
		H5Tclose(type);
	if (stored >= 0)
		H5Tclose(stored);
	return r;
}

static herr_t copy_next_attribute(hid_t object, const char *name,
				  const H5A_info_t *info, void *ctx)
{
	struct attributes *a = ctx;
	hid_t from = H5Aopen(object, name, H5P_DEFAULT);
	int r = 0;

	(void)info;
	if (from < 0) {
		monolith_note(a->m, a->path, "attribute %s: it cannot be read",
			      name);
		return 0;
	}
	r = copy_attribute(a, from, name);
	H5Aclose(from);
	return r < 0 ? -1 : 0;
}

int monolith_attributes(struct making *m, const char *path, hid_t from,
			hid_t to)
{
	struct attributes a = {m, path, to};
	hsize_t at = 0;
	enum hdf5_rest rest;
	char why[256];

	rest = hdf5_lost_rest(from, why, sizeof why);
	if (rest != HDF5_REST_ALL)
		H5Aiterate2(from, H5_INDEX_NAME,
			    rest == HDF5_REST_SOME ? H5_ITER_NATIVE
						   : H5_ITER_INC,
			    &at, copy_next_attribute, &a);
	if (m->err->code || rest == HDF5_REST_NONE)
		return m->err->code;
	monolith_note(m, path, "its attributes cannot all be read: %s", why);
	return 0;
}
