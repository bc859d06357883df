/* SPDX-License-Identifier: BSD-2-Clause */
/* Copy the attributes of objects. */

/*
 * Attributes are copied in their creation order, where the object tracks it.  Values are
 * read into memory as they are stored, and references in them are translated.  An
 * attribute that cannot be read or written is left out alone.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/hdf5/file/lost.h"
#include "formats/hdf5/file/vlen.h"
#include "tensors/refer.h"
#include "tensors/rest_private.h"

/* Largest attribute, in bytes, with what its values point to. */
#define ATTRIBUTE_MOST (UINT64_C(64) << 20)
/* Larger attributes need another format.  An object header of the oldest format has room
 * for an attribute of 64 KiB, with its name and type. */
#define ATTRIBUTE_LARGE (UINT64_C(32) << 10)

struct copying {
	struct rest *r; /* NULL: only this object is copied */
	const char *path;
	hid_t from, to; /* to < 0: only check */
	struct rest_said *lost;
};

/* ---- one attribute --------------------------------------------------------------- */

static const char *const too_large = "it has more than 64 MiB";
static const char *const unreadable = "it cannot be read";
static const char *const unwritable = "it cannot be written";

static void rest_translate_values(const struct copying *c, hid_t type,
				  unsigned char *data, uint64_t n)
{
	struct refer x = {.from = c->from,
			  .to = c->to,
			  .find = rest_find_address,
			  .ctx = c->r};

	refer_translate(&x, type, data, n);
	if (x.lost)
		rest_say(&c->r->found->null, c->path, NULL);
}

/* Copy the values of an attribute.  Return NULL, or the reason why it failed. */
static const char *rest_copy_attribute_values(const struct copying *c,
					      hid_t from, hid_t to,
					      hid_t stored, hid_t space)
{
	hssize_t n = H5Sget_simple_extent_npoints(space);
	hid_t type = H5Tcopy(stored); /* a copy, which is not a named type */
	cleanup_free unsigned char *data = NULL;
	const char *why = NULL;
	uint64_t bytes;

	if (type < 0)
		return unreadable;
	if (n <= 0) /* a null space, or no elements */
		why = n < 0 ? unreadable : NULL;
	else if (mul_overflows((uint64_t)n, H5Tget_size(type), &bytes) ||
		 bytes > ATTRIBUTE_MOST)
		why = too_large;
	else if (!(data = calloc(1, bytes)))
		why = "there is no memory for it";
	if (data) {
		hdf5_vlen_begin(from, ATTRIBUTE_MOST);
		if (H5Aread(from, type, data) < 0)
			why = unreadable;
		if (!why && to >= 0 && refer_is_in(type))
			rest_translate_values(c, type, data, (uint64_t)n);
		if (!why && to >= 0 && H5Awrite(to, type, data) < 0)
			why = unwritable;
		hdf5_vlen_end();
	}
	H5Tclose(type);
	return why;
}

/* Can references of this type be translated?  Only those that all versions of the library
 * know. */
static bool can_refer(hid_t type)
{
	hid_t inner;
	bool can = true;

	switch (H5Tget_class(type)) {
	case H5T_REFERENCE:
		return H5Tequal(type, H5T_STD_REF_OBJ) > 0 ||
		       H5Tequal(type, H5T_STD_REF_DSETREG) > 0;
	case H5T_ARRAY:
	case H5T_VLEN:
		inner = H5Tget_super(type);
		can = inner >= 0 && can_refer(inner);
		if (inner >= 0)
			H5Tclose(inner);
		return can;
	case H5T_COMPOUND:
		for (int i = H5Tget_nmembers(type); i-- > 0 && can;) {
			inner = H5Tget_member_type(type, (unsigned)i);
			can = inner >= 0 && can_refer(inner);
			if (inner >= 0)
				H5Tclose(inner);
		}
		return can;
	default:
		return true;
	}
}

static const char *rest_copy_attribute(const struct copying *c, hid_t from,
				       const char *name)
{
	hid_t stored = H5Aget_type(from), space = H5Aget_space(from);
	hid_t acpl = H5Aget_create_plist(from), type = H5I_INVALID_HID;
	hid_t to = H5I_INVALID_HID;
	const char *why = NULL;

	if (stored < 0 || space < 0 || acpl < 0)
		why = unreadable;
	else if (!c->r && refer_is_in(stored))
		why = "it refers to other objects";
	else if (!can_refer(stored))
		why = "references of its kind cannot be copied";
	if (!why && c->to >= 0) {
		type = c->r ? rest_type(c->r, stored) : H5Tcopy(stored);
		if (type >= 0)
			to = H5Acreate2(c->to, name, type, space, acpl,
					H5P_DEFAULT);
		why = to < 0 ? "it cannot be made" : NULL;
	}
	if (!why)
		why = rest_copy_attribute_values(c, from, to, stored, space);
	if (to >= 0)
		H5Aclose(to);
	if (why && to >= 0)
		H5Adelete(c->to, name);
	if (type >= 0)
		H5Tclose(type);
	if (acpl >= 0)
		H5Pclose(acpl);
	if (stored >= 0)
		H5Tclose(stored);
	if (space >= 0)
		H5Sclose(space);
	return why;
}

/* ---- all attributes of an object ------------------------------------------------- */

static void rest_lose_attribute(const struct copying *c, const char *name,
				const char *why)
{
	cleanup_free char *shown = NULL;

	if (c->r && asprintf(&shown, "%s@%s", c->path, name) >= 0)
		rest_say(c->lost, shown, why);
	else
		rest_say(c->lost, name, why);
}

static herr_t rest_each_attribute(hid_t object, const char *name,
				  const H5A_info_t *info, void *ctx)
{
	struct copying *c = ctx;
	hid_t from = H5Aopen(object, name, H5P_DEFAULT);
	const char *why =
		from < 0 ? unreadable : rest_copy_attribute(c, from, name);

	(void)info;
	if (why)
		rest_lose_attribute(c, name, why);
	if (from >= 0)
		H5Aclose(from);
	return c->r && c->r->err->code ? -1 : 0;
}

/* Iterate in creation order if the object tracks it, otherwise by name. */
static H5_index_t rest_attribute_order(hid_t object)
{
	hid_t plist = H5Iget_type(object) == H5I_DATASET
			      ? hdf5_vlen_create_plist(object)
		      : H5Iget_type(object) == H5I_GROUP
			      ? H5Gget_create_plist(object)
			      : H5Tget_create_plist(object);
	unsigned order = 0;

	if (plist >= 0) {
		H5Pget_attr_creation_order(plist, &order);
		H5Pclose(plist);
	}
	return order & H5P_CRT_ORDER_TRACKED ? H5_INDEX_CRT_ORDER
					     : H5_INDEX_NAME;
}

static void rest_copy_attributes(struct copying *c)
{
	hsize_t at = 0;
	char why[256];

	if (hdf5_lost_rest(c->from, why, sizeof why) != HDF5_REST_NONE)
		rest_lose_attribute(c, "(all attributes)", why);
	else if (H5Aiterate2(c->from, rest_attribute_order(c->from),
			     H5_ITER_INC, &at, rest_each_attribute, c) < 0 &&
		 !(c->r && c->r->err->code))
		rest_lose_attribute(c, "(attributes)", "they cannot be listed");
}

void rest_attributes(struct rest *r, const char *path, hid_t from, hid_t to)
{
	rest_copy_attributes(
		&(struct copying){r, path, from, to, &r->found->lost});
}

void hdf5_rest_attributes(hid_t from, hid_t to, struct rest_said *lost)
{
	rest_copy_attributes(&(struct copying){NULL, "", from, to, lost});
}

static herr_t look_for_large(hid_t from, const char *name,
			     const H5A_info_t *info, void *ctx)
{
	(void)from, (void)name, (void)ctx;
	return info->data_size >= ATTRIBUTE_LARGE;
}

bool hdf5_rest_large_attribute(hid_t object)
{
	hsize_t at = 0;
	char why[256];

	return hdf5_lost_rest(object, why, sizeof why) == HDF5_REST_NONE &&
	       H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, &at,
			   look_for_large, NULL) > 0;
}
