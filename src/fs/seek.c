/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the data and the holes of a file are. */
/*
 * A hole is what is stored nowhere: zeros that a plan says, and holes of a source's own file
 * in what is served from it as it is.  What has to be decoded counts as data, also where it
 * turns out to be zeros.
 */
#include <errno.h>
#include <unistd.h>

#include "base/number.h"
#include "fs/fs_private.h"

static bool is_zeros(const struct fill *f)
{
	return f->width == 1 && !*(const unsigned char *)f->pattern;
}

static uint64_t before(struct fs *fs, const struct extent *x, int whence)
{
	uint64_t n = extent_bytes(x);
	bool hole = x->kind == EXTENT_FILL && is_zeros(&x->u.fill.of);

	if (x->kind == EXTENT_FILE)
		return handles_before(store_handles(fs->store), x->u.file.file,
				      x->u.file.pos, n, whence);
	return hole == (whence == SEEK_HOLE) ? 0 : n;
}

int fs_seek(struct fs *fs, uint64_t ino, uint64_t off, int whence,
	    uint64_t *out)
{
	struct error err = {0};
	struct attr a = {0};
	struct plan plan;
	struct node n;
	int r = tree_node(fs->tree, ino, &n);

	if (r < 0)
		return r;
	if (!S_ISREG(n.type) || !n.files ||
	    (whence != SEEK_DATA && whence != SEEK_HOLE))
		return -EINVAL;
	r = fs_attr(fs, &n, &a, &err);
	if (r < 0)
		return r == -ENOENT ? r : fs_report(fs, ino, r, &err);
	if (off >= a.size)
		return -ENXIO;
	/* Most files have none, and need not be gone through. */
	for (; a.hole && off < a.size; off += plan.have) {
		uint64_t at = off;

		r = reply_map(&n, off, a.size - off, &plan, &err);
		if (r < 0)
			return fs_report(fs, ino, r, &err);
		for (unsigned i = 0; i < plan.n; i++) {
			uint64_t found = before(fs, &plan.ext[i], whence);

			*out = at + found;
			at += extent_bytes(&plan.ext[i]);
			if (*out < at)
				return 0;
		}
	}
	if (a.hole && whence == SEEK_DATA)
		return -ENXIO;
	*out = a.hole || whence == SEEK_HOLE ? a.size : off;
	return 0;
}
