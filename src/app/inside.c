/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds and opens sources that lie inside other sources. */
#include "app/inside.h"

#include <errno.h>

#include "formats/bundles.h"
#include "views/members/member_views.h"

struct source *inside_source(const struct session *s, const struct node *n)
{
	struct nest_inside in;
	struct graft *g;

	for (uint32_t i = 0; (g = tree_graft(s->tree, i)); i++)
		if (g == n->graft || atomic_load(&g->tree) == n->tree) {
			nest_inside(g, &in);
			return in.source;
		}
	return s->n_sources == 1 ? s->sources[0] : NULL;
}

int inside_enter(const struct tree *t, struct node *n, struct error *err)
{
	int r;

	if (n->files && (member_views_is_view(n->files, n->node) ||
			 bundle_files_are(n->files)))
		return error_set(err, -ENOTSUP,
				 "this is a view: it is computed from the "
				 "files of the source, and is not stored");
	if (!n->graft || atomic_load(&n->graft->tree))
		return 0;
	r = tree_graft_open(t, n->graft, err);
	return r < 0 ? r : tree_node(t, n->ino, n);
}

static bool is_below_node(const struct tree *t, const struct node *top,
			  uint64_t ino)
{
	uint64_t up;

	if (top->dir == 0 && top->node == 0)
		return true; /* the whole tree is below its root */
	while (ino != top->ino) {
		if (tree_parent(t, ino, &up) < 0 || up == ino)
			return false;
		ino = up;
	}
	return true;
}

struct graft *inside_next(const struct tree *t, const struct node *top,
			  uint32_t *i, struct node *out)
{
	struct graft *g;
	struct node dir;

	while ((g = tree_graft(t, (*i)++)))
		if (tree_node(t, g->parent, &dir) == 0 &&
		    dir.tree == top->tree && is_below_node(t, top, dir.ino) &&
		    tree_lookup(t, dir.ino, g->name, out) == 0)
			return g;
	return NULL;
}
