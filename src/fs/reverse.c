/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows of files whose numbers are served in reversed byte order (files.reversed). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fs/fs_private.h"

bool reverse_around(const struct node *n, uint64_t off, size_t len,
		    struct reversal *out)
{
	const struct files_ops *ops = n->files->ops;
	uint64_t from = 0, end = off + len, after;
	unsigned width =
		ops->reversed ? ops->reversed(n->files, n->node, &from) : 0;

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
		   const struct reversal *x, void *to, struct error *err)
{
	unsigned char *p = (unsigned char *)to + x->first;
	unsigned char *end = (unsigned char *)to + x->len;
	int r = gather_stored(fs, n, x->off, to, x->len, err);

	for (; r == 0 && p < end; p += x->width)
		for (unsigned i = 0; i < x->width / 2; i++) {
			unsigned char c = p[i];

			p[i] = p[x->width - 1 - i];
			p[x->width - 1 - i] = c;
		}
	return r;
}

int gather_window(struct fs *fs, const struct node *n, uint64_t off, void *to,
		  size_t len, struct error *err)
{
	cleanup_free unsigned char *wide = NULL;
	struct reversal x;
	int r;

	if (!reverse_around(n, off, len, &x))
		return gather_stored(fs, n, off, to, len, err);
	if (x.len == len)
		return reverse_gather(fs, n, &x, to, err);
	wide = malloc(x.len);
	if (!wide)
		return error_no_memory(err, "numbers in the other byte order");
	r = reverse_gather(fs, n, &x, wide, err);
	if (r == 0)
		memcpy(to, wide + x.lead, len);
	return r;
}
