/* SPDX-License-Identifier: BSD-2-Clause */
/* Visit all samples of a text, one after another. */
#include "tensor/text_private.h"

int text_each(struct text *x, struct pinner *p,
	      int (*put)(void *ctx, const unsigned char *line, size_t len,
			 struct error *err),
	      void *ctx, struct error *err)
{
	uint64_t first, n;
	int r = 0;

	for (uint64_t segment = 0; segment < x->segments && r == 0; segment++) {
		struct span span;
		size_t off, len;

		text_segment_range(x, segment, &first, &n);
		r = text_pin(x, segment, p, &span, err);
		if (r < 0)
			return r;
		for (uint64_t i = 0; i < n && r == 0; i++) {
			r = lines_slice(span.buf, i, &off, &len);
			r = r < 0 ? lines_slice_error(span.buf, r, off, len,
						      err)
				  : put(ctx, span.buf->data + off, len, err);
		}
		p->unpin(p, &span);
	}
	return r;
}

/* Visit sizes that are known without reading the values. */
static int text_each_length(struct text *x, struct pinner *p,
			    int (*put)(void *ctx, uint64_t size,
				       struct error *err),
			    void *ctx, struct error *err)
{
	int r = 0;

	for (uint64_t i = 0; i < x->samples && r == 0; i++) {
		uint64_t size;

		r = text_sample_size(x, i, p, &size, err);
		if (r == 0)
			r = put(ctx, size, err);
	}
	return r;
}

struct sizing {
	int (*put)(void *ctx, uint64_t size, struct error *err);
	void *ctx;
};

static int text_put_length(void *ctx, const unsigned char *line, size_t len,
			   struct error *err)
{
	const struct sizing *s = ctx;

	(void)line;
	return s->put(s->ctx, len, err);
}

int text_each_size(struct text *x, struct pinner *p,
		   int (*put)(void *ctx, uint64_t size, struct error *err),
		   void *ctx, struct error *err)
{
	struct sizing s = {put, ctx};

	return x->style == LINES_NPY ||
			       (x->style >= LINES_NPY && x->t->ops->length)
		       ? text_each_length(x, p, put, ctx, err)
		       : text_each(x, p, text_put_length, &s, err);
}
