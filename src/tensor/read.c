/* SPDX-License-Identifier: BSD-2-Clause */
/* Read elements into memory, for code whose names and sizes of files depend on them. */
#include "tensor/read.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Copy the `n` bytes of a pinned span. */
static int span_copy(const struct tensor *t, const struct span *s,
		     unsigned char *to, size_t n, struct error *err)
{
	const unsigned char *pattern = s->fill.pattern;
	ssize_t got;

	if (s->kind == SPAN_MEM) {
		memcpy(to, s->mem, n);
		return 0;
	}
	for (size_t i = 0; s->kind == SPAN_FILL && i < n; i++)
		to[i] = pattern ? pattern[(s->phase + i) % s->fill.width] : 0;
	if (s->kind == SPAN_FILL)
		return 0;
	for (size_t have = 0; have < n; have += (size_t)got) {
		do
			got = pread(s->handle.fd, to + have, n - have,
				    (off_t)(s->handle.base + s->pos + have));
		while (got < 0 && errno == EINTR);
		if (got <= 0)
			return error_set(
				err, -EIO, "%s cannot be read: %s",
				handles_name(t->handles, s->handle.file),
				got < 0 ? strerror(errno) : "truncated?");
	}
	return handles_check(t->handles, &s->handle, err);
}

int tensor_read(struct tensor *t, const struct box *b, uint64_t off, void *to,
		size_t n, struct pinner *p, struct error *err)
{
	int r = tensor_prepare_box(t, b, off, n, err);

	for (size_t have = 0; have < n && r == 0;) {
		struct plan plan;

		plan_init(&plan, n - have);
		r = tensor_map_box(t, b, off + have, &plan, err);
		if (r == 0 && !plan.n)
			r = error_set(err, -EIO, "%s: an element has no bytes",
				      t->name);
		for (unsigned i = 0; i < plan.n && r == 0; i++) {
			struct span span;

			r = p->pin(p, &plan.ext[i], &span, err);
			if (r < 0)
				break;
			r = span_copy(t, &span, (unsigned char *)to + have,
				      plan.ext[i].len, err);
			p->unpin(p, &span);
			have += plan.ext[i].len;
		}
	}
	return r < 0 ? r : 0;
}
