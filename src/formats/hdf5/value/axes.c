/* SPDX-License-Identifier: BSD-2-Clause */
/* Which axes count samples, where a file itself tells. */
/*
 * HyperSpy (.hspy): beside the dataset `data` there is a group `axis-N` for each
 * axis with an attribute `navigate`; navigation axes come first, and what is
 * left is one signal (hyperspy 1.7, rosettasciio: _hierarchical.py).
 * NeXus: the attribute `interpretation` of a dataset says how many of its last
 * axes belong together (NeXus manual, NXdata).
 */
#include <stdio.h>
#include <string.h>

#include "formats/hdf5/file/vlen.h"
#include "formats/hdf5/value/value.h"

bool hdf5_axes_text(hid_t object, const char *name, char *buf, size_t n)
{
	hid_t attr, type, space;
	char *text = NULL;
	bool ok = false;

	if (H5Aexists(object, name) <= 0)
		return false;
	attr = H5Aopen(object, name, H5P_DEFAULT);
	type = attr < 0 ? -1 : H5Aget_type(attr);
	space = attr < 0 ? -1 : H5Aget_space(attr);
	if (type >= 0 && space >= 0 && H5Tget_class(type) == H5T_STRING &&
	    H5Sget_simple_extent_npoints(space) == 1) {
		size_t size = H5Tget_size(type);

		buf[0] = '\0';
		if (H5Tis_variable_str(type) > 0) {
			hdf5_vlen_begin(attr, 1 << 20);
			ok = H5Aread(attr, type, &text) >= 0 && text;
			if (ok)
				snprintf(buf, n, "%s", text);
			hdf5_vlen_end();
		} else if (size < n) {
			ok = H5Aread(attr, type, buf) >= 0;
			buf[size] = '\0';
		}
	}
	if (space >= 0)
		H5Sclose(space);
	if (type >= 0)
		H5Tclose(type);
	if (attr >= 0)
		H5Aclose(attr);
	return ok;
}

static unsigned by_interpretation(hid_t dset, unsigned rank)
{
	static const struct {
		const char *word;
		unsigned axes;
	} words[] = {{"scalar", 0},     {"scaler", 0},    {"spectrum", 1},
		     {"vertex", 1},     {"image", 2},     {"rgb-image", 3},
		     {"rgba-image", 3}, {"hsl-image", 3}, {"hsla-image", 3},
		     {"cmyk-image", 3}};
	char text[64];

	if (!hdf5_axes_text(dset, "interpretation", text, sizeof text))
		return 0;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (!strcmp(text, words[i].word) && words[i].axes < rank)
			return rank - words[i].axes;
	return 0;
}

/* Return 1 for a navigation axis, 0 for an axis of the signal, -1 if there is no
 * such axis. */
static int navigates(hid_t group, unsigned axis)
{
	char name[32];
	hid_t attr;
	int value = 0;
	signed char flag = 0;

	snprintf(name, sizeof name, "axis-%u", axis);
	if (H5Lexists(group, name, H5P_DEFAULT) <= 0 ||
	    H5Oexists_by_name(group, name, H5P_DEFAULT) <= 0 ||
	    H5Aexists_by_name(group, name, "navigate", H5P_DEFAULT) <= 0)
		return -1;
	attr = H5Aopen_by_name(group, name, "navigate", H5P_DEFAULT,
			       H5P_DEFAULT);
	if (attr < 0)
		return -1;
	{
		hid_t type = H5Aget_type(attr), space = H5Aget_space(attr);
		H5T_class_t class = H5Tget_class(type);
		bool one = H5Sget_simple_extent_npoints(space) == 1;

		/* h5py's bool is an enum of one byte. */
		if (one && class == H5T_ENUM && H5Tget_size(type) == 1)
			value = H5Aread(attr, type, &flag) < 0 ? -1 : flag != 0;
		else if (one && class == H5T_INTEGER)
			value = H5Aread(attr, H5T_NATIVE_INT, &value) < 0
					? -1
					: value != 0;
		else
			value = -1;
		H5Tclose(type);
		H5Sclose(space);
	}
	H5Aclose(attr);
	return value;
}

static unsigned by_navigation(hid_t group, unsigned rank)
{
	unsigned n = 0;

	while (n < rank && navigates(group, n) == 1)
		n++;
	return n;
}

unsigned hdf5_axes_suggested(hid_t group, hid_t dset, unsigned rank)
{
	unsigned n = rank ? by_interpretation(dset, rank) : 0;

	return n || !rank || group < 0 ? n : by_navigation(group, rank);
}
