/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole small files for callers that guess: failures are not logged or counted. */
#include <errno.h>

#include "base/number.h"
#include "readahead/whole.h"
#include "store/thread.h"

/* A file with more extents is not a small one. */
#define LOOKS 1024

int whole_find(struct fs *fs, uint64_t ino, struct whole *out)
{
	struct error err = {0};
	struct attr a = {0};
	int r = tree_node(fs->tree, ino, &out->node);

	if (r < 0)
		return r;
	if (!S_ISREG(out->node.type) || !out->node.files ||
	    tree_attr_is_slow(&out->node))
		return -EINVAL;
	r = fs_attr(fs, &out->node, &a, &err);
	if (r < 0)
		return r;
	out->ino = ino;
	out->size = a.size;
	out->first = out->last = (struct whole_chunk){NULL, 0};
	return 0;
}

bool whole_is_sibling(const struct whole *a, const struct whole *b)
{
	const struct files *f = a->node.files;
	uint64_t x, y;

	return f == b->node.files && a->node.node && b->node.node &&
	       f->ops->parent(f, a->node.node, &x) == 0 &&
	       f->ops->parent(f, b->node.node, &y) == 0 && x == y;
}

static int whole_prepare(const struct whole *w, struct error *err)
{
	const struct files_ops *ops = w->node.files->ops;

	return ops->prepare ? ops->prepare(w->node.files, w->node.node, 0,
					   w->size, err)
			    : 0;
}

bool whole_end(const struct whole *w, struct whole_chunk *out)
{
	struct error err = {0};
	struct plan plan;

	*out = (struct whole_chunk){NULL, 0};
	if (whole_prepare(w, &err) < 0)
		return false;
	if (reply_map(&w->node, w->size - 1, 1, &plan, &err) == 0 &&
	    plan.ext[0].kind == EXTENT_CHUNK) {
		out->set = plan.ext[0].u.chunk.set;
		out->index = plan.ext[0].u.chunk.index;
	}
	return true;
}

bool whole_want(struct fs *fs, const struct whole *w, uint64_t *ahead)
{
	struct extent e = {.kind = EXTENT_CHUNK, .len = 1};
	struct whole_chunk x;
	uint64_t bytes;

	if (!whole_end(w, &x) || !x.set)
		return true;
	e.u.chunk.set = (struct chunk_set *)(uintptr_t)x.set;
	e.u.chunk.index = x.index;
	e.u.chunk.slice = EXTENT_WHOLE;
	if (!store_want(fs->store, &e, *ahead, &bytes))
		return false;
	*ahead += bytes;
	return true;
}

static bool whole_chunk_is_same(const struct whole_chunk *a,
				const struct whole_chunk *b)
{
	return a->set == b->set && a->index == b->index;
}

bool whole_shares(const struct whole *a, const struct whole *b)
{
	return whole_chunk_is_same(&a->first, &b->first) ||
	       whole_chunk_is_same(&a->first, &b->last) ||
	       whole_chunk_is_same(&a->last, &b->first) ||
	       whole_chunk_is_same(&a->last, &b->last);
}

bool whole_is_decoded(struct fs *fs, struct whole *w)
{
	struct cache *cache = store_cache(fs->store);
	struct whole_chunk x = {NULL, 0};
	uint64_t have = 0;
	struct error err = {0};
	unsigned looks = 0;
	struct plan plan;

	while (have < w->size) {
		if (reply_map(&w->node, have, w->size - have, &plan, &err) < 0)
			return false;
		for (unsigned i = 0; i < plan.n; i++) {
			const struct extent *e = &plan.ext[i];

			if (e->kind == EXTENT_FILE || ++looks > LOOKS)
				return false;
			if (e->kind != EXTENT_CHUNK ||
			    (e->u.chunk.set == x.set &&
			     e->u.chunk.index == x.index))
				continue;
			if (!cache_has(cache, e->u.chunk.set->id,
				       e->u.chunk.index))
				return false;
			x.set = e->u.chunk.set;
			x.index = e->u.chunk.index;
			if (!w->first.set)
				w->first = x;
		}
		have += plan.have;
	}
	w->last = x;
	return x.set != NULL;
}

int whole_read(struct fs *fs, const struct whole *w, struct reply *out)
{
	struct error err = {0};
	struct window all;
	int r = whole_prepare(w, &err);

	if (r < 0)
		return r;
	window_init(&all, &w->node, w->size);
	return reply_collect(fs, &w->node, 0, &all, out, &err);
}

bool whole_decode(struct fs *fs, const struct whole *w)
{
	bool decodes = store_thread.decodes;
	struct reply reply;
	int r;

	/* The flag stays set until the reply is released, for its bytes are counted
	 * then. */
	store_thread.decodes = true;
	r = whole_read(fs, w, &reply);
	if (r == 0)
		fs_release(fs, &reply);
	store_thread.decodes = decodes;
	return r == 0;
}
