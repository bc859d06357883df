/* SPDX-License-Identifier: BSD-2-Clause */
/* Grafts: numbering them, and opening each once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "tree/tree_internal.h"

/*
 * A graft is opened by the first thread that looks into it; other threads that want it
 * meanwhile wait for that thread.  The lock is not held while the graft opens.  The new
 * tree is published by one store, so looking into an open graft takes no lock.
 */

#define NODE_BITS 40
#define GRAFT_FLAG (UINT64_C(1) << 63)
#define GRAFT_SHIFT 45
#define GRAFT_DIR_SHIFT 32
#define GRAFT_DIR_MAX (1u << (GRAFT_SHIFT - GRAFT_DIR_SHIFT))

uint64_t tree_ino(const struct tree *t, uint32_t dir, uint64_t node)
{
	if (node >= FILES_NODE_MAX)
		return 0;
	if (t->number == 0)
		return (uint64_t)dir << NODE_BITS | (node + 1);
	if (dir >= GRAFT_DIR_MAX || node >= UINT32_MAX)
		return 0;
	return GRAFT_FLAG | (uint64_t)(t->number - 1) << GRAFT_SHIFT |
	       (uint64_t)dir << GRAFT_DIR_SHIFT | (node + 1);
}

uint64_t tree_dir_ino(const struct tree *t, uint32_t dir)
{
	return tree_ino(t, dir, 0);
}

struct graft *tree_graft(const struct tree *t, uint32_t i)
{
	struct graft **block;

	if (i >= GRAFTS_MAX || !t->forest)
		return NULL;
	block = atomic_load(&t->forest->block[i / GRAFTS_BLOCK]);
	return block ? block[i % GRAFTS_BLOCK] : NULL;
}

struct graft *tree_ino_graft(const struct tree *t, uint64_t ino, uint32_t *dir,
			     uint64_t *node)
{
	if (!(ino & GRAFT_FLAG)) {
		*dir = (uint32_t)(ino >> NODE_BITS);
		*node = (ino & ((UINT64_C(1) << NODE_BITS) - 1)) - 1;
		return NULL;
	}
	*dir = (uint32_t)(ino >> GRAFT_DIR_SHIFT) & (GRAFT_DIR_MAX - 1);
	*node = (ino & UINT32_MAX) - 1;
	return tree_graft(t, (uint32_t)(ino >> GRAFT_SHIFT) & (GRAFTS_MAX - 1));
}

static int compare_grafts(const void *a, const void *b)
{
	const struct tree_graft *x = a, *y = b;

	if (x->dir != y->dir)
		return x->dir < y->dir ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

struct graft *tree_graft_at(const struct tree *t, uint32_t dir, uint64_t node)
{
	const struct tree_graft key = {.dir = dir, .node = node};
	const struct tree_graft *found;

	if (!t->n_grafts)
		return NULL;
	found = bsearch(&key, t->graft, t->n_grafts, sizeof key,
			compare_grafts);
	return found ? found->graft : NULL;
}

/* ---- numbering ----------------------------------------------------------- */

/* Make room for one more graft.  Returns 0, -EOVERFLOW or -ENOMEM. */
static int forest_grow(struct forest *f)
{
	struct graft **block;

	if (f->n >= GRAFTS_MAX)
		return -EOVERFLOW;
	if (atomic_load(&f->block[f->n / GRAFTS_BLOCK]))
		return 0;
	block = calloc(GRAFTS_BLOCK, sizeof *block);
	if (!block)
		return -ENOMEM;
	atomic_store(&f->block[f->n / GRAFTS_BLOCK], block);
	return 0;
}

/* Give every graft of `t` the next number of `f`, or none of them after a failure. */
static int forest_number_grafts(struct forest *f, struct tree *t)
{
	const uint32_t before = f->n;

	for (uint32_t i = 0; i < t->n_grafts; i++) {
		struct graft *g = t->graft[i].graft;
		int r = forest_grow(f);

		if (r < 0) {
			for (; f->n > before; f->n--)
				f->block[(f->n - 1) / GRAFTS_BLOCK]
					[(f->n - 1) % GRAFTS_BLOCK] = NULL;
			return r;
		}
		g->number = f->n;
		g->parent =
			tree_ino(t, t->graft[i].parent_dir, t->graft[i].parent);
		f->block[f->n / GRAFTS_BLOCK][f->n % GRAFTS_BLOCK] = g;
		f->n++;
	}
	return 0;
}

int tree_forest_new(struct tree *t)
{
	struct forest *f;

	/* No two grafts have the same node, so numbers depend on the order alone. */
	if (t->n_grafts)
		qsort(t->graft, t->n_grafts, sizeof *t->graft, compare_grafts);
	f = calloc(1, sizeof *f);
	if (!f)
		return -ENOMEM;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->opened, NULL);
	t->forest = f;
	return forest_number_grafts(f, t);
}

static void forest_destroy(struct forest *f)
{
	for (uint32_t i = 0; i < GRAFTS_MAX / GRAFTS_BLOCK; i++)
		free(atomic_load(&f->block[i]));
	pthread_mutex_destroy(&f->lock);
	pthread_cond_destroy(&f->opened);
	free(f);
}

static void graft_free(struct graft *g)
{
	struct tree *sub = atomic_load(&g->tree);

	if (sub) {
		sub->forest = NULL;
		tree_free(sub);
	}
	free(g->name);
	g->ops->free(g);
}

void tree_forest_free(struct tree *t)
{
	for (uint32_t i = 0; i < t->n_grafts; i++)
		graft_free(t->graft[i].graft);
	free(t->graft);
	if (t->forest)
		forest_destroy(t->forest);
}

/* ---- opening ------------------------------------------------------------- */

/* Make a finished tree part of the forest. */
static int graft_attach(struct forest *f, struct graft *g, struct tree *sub,
			struct error *err)
{
	struct forest *own = sub->forest;
	int r;

	if (sub->n > GRAFT_DIR_MAX)
		return error_set(err, -EOVERFLOW,
				 "it has more than %u directories, which is "
				 "too many for an archive inside an archive",
				 GRAFT_DIR_MAX);
	sub->number = g->number + 1;
	pthread_mutex_lock(&f->lock);
	r = forest_number_grafts(f, sub);
	pthread_mutex_unlock(&f->lock);
	if (r < 0)
		return error_set(
			err, r,
			"there are more than %u archives inside other archives",
			GRAFTS_MAX);
	forest_destroy(own);
	sub->forest = f;
	return 0;
}

static int graft_open_unlocked(struct forest *f, struct graft *g,
			       struct error *err)
{
	struct tree *sub = NULL;
	int r = g->ops->open(g, &sub, err);

	if (r == 0)
		r = graft_attach(f, g, sub, err);
	if (r < 0)
		tree_free(sub);
	else
		atomic_store(&g->tree, sub);
	return r;
}

int tree_graft_open(const struct tree *t, struct graft *g, struct error *err)
{
	struct forest *f = t->forest;
	struct error why = {0};
	int r;

	if (atomic_load(&g->tree))
		return 0;
	pthread_mutex_lock(&f->lock);
	while (g->opening)
		pthread_cond_wait(&f->opened, &f->lock);
	if (atomic_load(&g->tree)) {
		pthread_mutex_unlock(&f->lock);
		return 0;
	}
	g->opening = true;
	pthread_mutex_unlock(&f->lock);

	r = graft_open_unlocked(f, g, &why);

	pthread_mutex_lock(&f->lock);
	g->opening = false;
	g->failure = why;
	pthread_cond_broadcast(&f->opened);
	pthread_mutex_unlock(&f->lock);
	if (r < 0 && err)
		*err = why;
	return r;
}

int tree_graft_failure(const struct tree *t, uint64_t ino, struct error *err)
{
	struct graft *g;
	uint64_t node;
	uint32_t dir;

	g = tree_ino_graft(t, ino, &dir, &node);
	if (!g)
		return 0;
	lock_scope(&t->forest->lock);
	if (!g->failure.code || atomic_load(&g->tree))
		return 0;
	*err = g->failure;
	return err->code;
}
