/* SPDX-License-Identifier: BSD-2-Clause */
/* array.npy and array.bin: the whole tensor. */
#include "views/name.h"
#include "views/table.h"

static bool array_fits(struct tensor *t, unsigned axes)
{
	(void)axes;
	return view_is_numeric(t);
}

static bool bin_fits(struct tensor *t, unsigned axes)
{
	(void)axes;
	/* An empty tensor has no array.bin, because an empty file cannot be mapped. */
	return view_is_numeric(t) && t->bytes > 0;
}

const struct view_ops view_array = {
	.name = "array",
	.summary = "array.npy, the whole tensor",
	.top = "array.npy",
	.fits = array_fits,
	.box_of = view_whole_box,
	.npy = true,
};
const struct view_ops view_bin = {
	.name = "bin",
	.summary = "array.bin, the whole tensor without a header",
	.top = "array.bin",
	.fits = bin_fits,
	.box_of = view_whole_box,
};
