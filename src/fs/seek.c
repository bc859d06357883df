/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds data and holes of a file, for lseek(2) with SEEK_DATA and SEEK_HOLE. */
/*
 * A hole is a range of zeros that is stored nowhere: a fill of zeros in a plan, or a hole
 * of a source file in bytes that are served from it unchanged.  Bytes that have to be
 * decoded count as data, even if they turn out to be zeros.
 */
#include <errno.h>
#include <unistd.h>

#include "base/number.h"
#include "fs/fs_private.h"

static bool is_zeros(const struct fill *f)
{
	return f->width == 1 && !*(const unsigned char *)f->pattern;
}

/* Return how many bytes of the extent precede the first data, or hole, in it. */
static uint64_t seek_in_extent(struct fs *fs, const struct extent *x,
			       int whence)
{
	uint64_t n = extent_bytes(x);
	bool hole = x->kind == EXTENT_FILL && is_zeros(&x->u.fill.of);

	if (x->kind == EXTENT_FILE)
		return handles_length_before(store_handles(fs->store),
					     x->u.file.file, x->u.file.pos, n,
					     whence);
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
	/* Most files have no hole, and their extents need not be looked at. */
	for (; a.hole && off < a.size; off += plan.have) {
		uint64_t at = off;

		r = reply_map(&n, off, a.size - off, &plan, &err);
		if (r < 0)
			return fs_report(fs, ino, r, &err);
		for (unsigned i = 0; i < plan.n; i++) {
			uint64_t found =
				seek_in_extent(fs, &plan.ext[i], whence);

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
