/* SPDX-License-Identifier: BSD-2-Clause */
/* References to objects of a file, translated to the same objects of its copy. */

/*
 * A reference to an object is its address in the file, so it must become the address of
 * the same object in the copy.  Values are traversed according to their type, because
 * references may be inside sequences and structures (dimension scales have both).
 */
#include "tensors/refer.h"

#include <string.h>

#include "base/number.h"

/* Does a value consist of more than the bytes of its element? */
bool refer_points(hid_t type)
{
	H5T_class_t class = H5Tget_class(type);
	bool points = class == H5T_VLEN ||
		      (class == H5T_STRING && H5Tis_variable_str(type) > 0);
	int n = class == H5T_COMPOUND ? H5Tget_nmembers(type) : 0;
	hid_t inner;

	for (int i = 0; i < n && !points; i++) {
		inner = H5Tget_member_type(type, (unsigned)i);
		points = inner < 0 || refer_points(inner);
		if (inner >= 0)
			H5Tclose(inner);
	}
	if (class == H5T_ARRAY) {
		inner = H5Tget_super(type);
		points = inner < 0 || refer_points(inner);
		if (inner >= 0)
			H5Tclose(inner);
	}
	return points;
}

bool refer_is_in(hid_t type)
{
	return H5Tdetect_class(type, H5T_REFERENCE) > 0;
}

/* Translate an object reference; it becomes 0 if the object is not in the copy. */
static void translate_object(struct refer *x, void *data)
{
	hobj_ref_t ref;
	haddr_t addr;

	memcpy(&ref, data, sizeof ref);
	if (!ref)
		return;
	addr = x->find(x->ctx, ref);
	ref = addr == HADDR_UNDEF ? 0 : addr;
	x->lost += !ref;
	memcpy(data, &ref, sizeof ref);
}

/* Translate a region reference; it becomes null if the dataset is not in the copy. */
static void translate_region(struct refer *x, void *data)
{
	static const hdset_reg_ref_t null;
	hdset_reg_ref_t ref, out;
	haddr_t addr = HADDR_UNDEF;
	hid_t object, space, to = H5I_INVALID_HID;
	H5O_info_t info;

	memcpy(&ref, data, sizeof ref);
	memset(data, 0, sizeof ref);
	if (!memcmp(&ref, &null, sizeof ref))
		return;
	object =
		H5Rdereference2(x->from, H5P_DEFAULT, H5R_DATASET_REGION, &ref);
	space = H5Rget_region(x->from, H5R_DATASET_REGION, &ref);
	if (object >= 0 && H5Oget_info2(object, &info, H5O_INFO_BASIC) >= 0)
		addr = x->find(x->ctx, info.addr);
	if (addr != HADDR_UNDEF)
		to = H5Oopen_by_addr(x->to, addr);
	if (to >= 0 && space >= 0 &&
	    H5Rcreate(&out, to, ".", H5R_DATASET_REGION, space) >= 0)
		memcpy(data, &out, sizeof out);
	else
		x->lost++;
	if (to >= 0)
		H5Oclose(to);
	if (object >= 0)
		H5Oclose(object);
	if (space >= 0)
		H5Sclose(space);
}

static void translate_members(struct refer *x, hid_t type, unsigned char *data)
{
	int n = H5Tget_nmembers(type);

	for (int i = 0; i < n; i++) {
		hid_t member = H5Tget_member_type(type, (unsigned)i);

		if (member >= 0 && refer_is_in(member))
			refer_translate(
				x, member,
				data + H5Tget_member_offset(type, (unsigned)i),
				1);
		if (member >= 0)
			H5Tclose(member);
	}
}

static void translate_one(struct refer *x, hid_t type, hid_t inner,
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
		refer_translate(x, inner, data, inside);
		break;
	case H5T_VLEN:
		memcpy(&list, data, sizeof list);
		refer_translate(x, inner, list.p, list.len);
		break;
	default:
		break;
	}
}

/* Translate `n` elements in memory. */
void refer_translate(struct refer *x, hid_t type, unsigned char *data,
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
