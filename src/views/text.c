/* SPDX-License-Identifier: BSD-2-Clause */
/* array.txt: a line for each value. */
#include "views/name.h"
#include "views/table.h"

#include "tensor/text.h"

static bool text_fits(struct tensor *t, unsigned axes)
{
	(void)axes;
	return view_is_text(t);
}

static int text_whole_size(const struct view *v, const uint64_t *at,
			   struct pinner *p, uint64_t *size, struct error *err)
{
	(void)at;
	return text_size(v->tensor->text, p, size, err);
}

static int text_whole_map(const struct view *v, const uint64_t *at,
			  uint64_t off, struct plan *plan, struct error *err)
{
	(void)at;
	return text_map(v->tensor->text, off, plan, err);
}

const struct view_ops view_text = {
	.name = "text",
	.summary = "array.txt, a line per string",
	.top = "array.txt",
	.fits = text_fits,
	.box_of = view_whole_box,
	.size = text_whole_size,
	.map = text_whole_map,
};
