/* SPDX-License-Identifier: BSD-2-Clause */
/* The view info.json: the description of the tensor. */
#include <string.h>

#include "views/table.h"

static bool info_fits(struct tensor *t, unsigned axes)
{
	(void)t;
	(void)axes;
	return true;
}

static char *info_document(const struct view *v, const uint64_t *at,
			   size_t *len, struct error *err)
{
	char *text = tensor_info_text(v->tensor, err);

	(void)at;
	*len = text ? strlen(text) : 0;
	return text;
}

const struct view_ops view_info = {
	.top = "info.json",
	.fits = info_fits,
	.document = info_document,
};
