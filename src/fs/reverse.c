/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows of files whose numbers are served in reversed byte order (files.reversed). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fs/fs_private.h"

bool reverse_around(const struct file_window *w, uint64_t off,
		    struct reversal *out)
{
	uint64_t from = w->reversed_from, end = off + w->len, after;
	unsigned width = w->reversed;

	if (width < 2 || end <= from)
		return false;
	*out = (struct reversal){.off = off, .width = width};
	if (off > from)
		out->off -= (off - from) % width;
	else
		out->first = (size_t)(from - off);
	after = (end - from) % width;
	out->len = (size_t)(end + (after ? width - after : 0) - out->off);
	out->lead = (size_t)(off - out->off);
	return true;
}

int reverse_gather(struct fs *fs, const struct node *n,
		   const struct reversal *x, struct window *w, void *to,
		   struct error *err)
{
	unsigned char *p = (unsigned char *)to + x->first;
	unsigned char *end = (unsigned char *)to + x->len;
	int r;

	w->of.len = x->len;
	w->planned = false;
	r = gather_stored(fs, n, x->off, w, to, err);
	for (; r == 0 && p < end; p += x->width)
		for (unsigned i = 0; i < x->width / 2; i++) {
			unsigned char c = p[i];

			p[i] = p[x->width - 1 - i];
			p[x->width - 1 - i] = c;
		}
	return r;
}

int gather_window(struct fs *fs, const struct node *n, uint64_t off,
		  struct window *w, void *to, struct error *err)
{
	cleanup_free unsigned char *wide = NULL;
	size_t len = (size_t)w->of.len;
	struct reversal x;
	int r;

	if (!reverse_around(&w->of, off, &x))
		return gather_stored(fs, n, off, w, to, err);
	if (x.len == len)
		return reverse_gather(fs, n, &x, w, to, err);
	wide = malloc(x.len);
	if (!wide)
		return error_no_memory(err, "numbers in the other byte order");
	r = reverse_gather(fs, n, &x, w, wide, err);
	if (r == 0)
		memcpy(to, wide + x.lead, len);
	return r;
}
