/* SPDX-License-Identifier: BSD-2-Clause */
/* The file tensor.safetensors in directories that hold tensors. */

/*
 * Works for sources of all formats: once a tree is finished, each directory is searched
 * for tensors that are directly in it.  16 bytes are kept for each of these; the header
 * is made when the file is first looked up (views/bundle.c).
 */
#include "formats/bundles.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "views/bundle.h"
#include "views/view.h"

struct bundle_files {
	struct files files;
	/* NULL until the file is first needed. */
	struct bundle_found *_Atomic found;
	struct bundle_found *(*find)(void *ctx, struct error *err);
	void *ctx;
	int64_t mtime;
};

static struct bundle_files *bundle_files_of(const struct files *f)
{
	return (struct bundle_files *)(uintptr_t)f;
}

/* ---- the file ---------------------------------------------------------------------- */

static void found_free(struct bundle_found *x)
{
	if (!x)
		return;
	bundle_free(x->bundle);
	x->free(x);
}

/* Return the bundle, which is made at the first call; NULL with an error. */
static struct bundle *bundle_files_find(const struct files *f,
					struct error *err)
{
	struct bundle_files *x = bundle_files_of(f);
	struct bundle_found *found = atomic_load(&x->found), *none = NULL;

	if (!found) {
		found = x->find(x->ctx, err);
		if (!found)
			return NULL;
		if (!atomic_compare_exchange_strong(&x->found, &none, found)) {
			found_free(found);
			found = none;
		}
	}
	return found->bundle;
}

static uint64_t bf_count(const struct files *f, uint64_t dir)
{
	(void)f, (void)dir;
	return 0;
}

static uint64_t bf_child(const struct files *f, uint64_t dir, uint64_t i,
			 uint32_t *type)
{
	(void)f, (void)dir, (void)i;
	*type = S_IFREG;
	return 0;
}

static int bf_name(const struct files *f, uint64_t dir, uint64_t i, char *buf,
		   size_t n)
{
	(void)f, (void)dir, (void)i, (void)buf, (void)n;
	return -ENOENT;
}

static int bf_name_of(const struct files *f, uint64_t node, char *buf, size_t n)
{
	(void)f, (void)node;
	return snprintf(buf, n, "%s", BUNDLE_NAME) < (int)n ? 0 : -ENAMETOOLONG;
}

static int bf_find(const struct files *f, uint64_t dir, const char *name,
		   uint64_t *node)
{
	(void)f, (void)dir;
	*node = 0;
	return strcmp(name, BUNDLE_NAME) ? -ENOENT : 0;
}

static int bf_parent(const struct files *f, uint64_t node, uint64_t *dir)
{
	(void)f, (void)node;
	*dir = 0;
	return 0;
}

static bool bf_attr_is_slow(const struct files *f, uint64_t node)
{
	(void)node;
	return !atomic_load(&bundle_files_of(f)->found);
}

static int bf_attr(struct files *f, uint64_t node, struct pinner *p,
		   struct attr *out, struct error *err)
{
	struct bundle *b = bundle_files_find(f, err);

	(void)node, (void)p;
	if (!b)
		return err->code;
	out->mode = S_IFREG | 0444;
	out->nlink = 1;
	out->mtime = bundle_files_of(f)->mtime;
	return bundle_size(b, &out->size, err);
}

static int bf_prepare(struct files *f, uint64_t node, uint64_t off,
		      uint64_t len, struct error *err)
{
	struct bundle *b = bundle_files_find(f, err);

	(void)node;
	return b ? bundle_prepare(b, off, len, err) : err->code;
}

static int bf_map(const struct files *f, uint64_t node, uint64_t off,
		  struct plan *p, struct error *err)
{
	const struct bundle_found *x = atomic_load(&bundle_files_of(f)->found);

	(void)node;
	return x ? bundle_map(x->bundle, off, p, err)
		 : error_set(err, -EIO, BUNDLE_NAME " was not prepared");
}

static void bf_free(struct files *f)
{
	found_free(atomic_load(&bundle_files_of(f)->found));
	free(bundle_files_of(f)->ctx);
	free(f);
}

static const struct files_ops bundle_files_ops = {
	.count = bf_count,
	.child = bf_child,
	.name = bf_name,
	.name_of = bf_name_of,
	.find = bf_find,
	.parent = bf_parent,
	.attr_is_slow = bf_attr_is_slow,
	.attr = bf_attr,
	.prepare = bf_prepare,
	.map = bf_map,
	.free = bf_free,
};

bool bundle_files_are(const struct files *f)
{
	return f->ops == &bundle_files_ops;
}

struct files *bundle_files_late(struct bundle_found *(*find)(void *ctx,
							     struct error *err),
				void *ctx, int64_t mtime)
{
	struct bundle_files *x = calloc(1, sizeof *x);

	if (!x) {
		free(ctx);
		return NULL;
	}
	x->files.ops = &bundle_files_ops;
	x->find = find;
	x->ctx = ctx;
	x->mtime = mtime;
	return &x->files;
}

/* ---- directories ------------------------------------------------------------------- */

struct found {
	vec(struct tensor *) t;
	vec(const char *) names;
};

static bool bundle_look_into(const struct tree *t, uint32_t dir,
			     struct found *out)
{
	struct files *f;
	const char *name;

	out->t.n = out->names.n = 0;
	for (uint32_t i = 0; tree_dir_entry(t, dir, i, &f, &name); i++) {
		struct tensor *x = f ? tensor_of_files(f) : NULL;

		if (!x || !bundle_takes(x) || !bundle_takes_name(name))
			continue;
		if (!vec_push(&out->t, x) || !vec_push(&out->names, name))
			return false;
	}
	return true;
}

static void free_plain(struct bundle_found *x)
{
	free(x);
}

static bool bundle_add_to_dir(struct tree *t, uint32_t dir,
			      const struct found *in)
{
	struct files *f = bundle_files_late(NULL, NULL, in->t.at[0]->mtime);
	struct bundle_found *x = calloc(1, sizeof *x);

	if (x)
		x->bundle = bundle_new(in->t.at, in->names.at, in->t.n);
	if (!f || !x || !x->bundle) {
		free(f);
		free(x);
		return false;
	}
	x->free = free_plain;
	atomic_init(&bundle_files_of(f)->found, x);
	tree_add_extra(t, dir, f);
	return true;
}

int bundles_add(struct tree *t, struct error *err)
{
	struct found in = {VEC_EMPTY, VEC_EMPTY};
	bool ok = true;

	for (uint32_t i = 0; ok && i < tree_dirs(t); i++) {
		ok = bundle_look_into(t, i, &in);
		if (ok && in.t.n)
			ok = bundle_add_to_dir(t, i, &in);
	}
	vec_free(&in.t);
	vec_free(&in.names);
	return ok ? 0 : error_no_memory(err, "tensor.safetensors");
}
