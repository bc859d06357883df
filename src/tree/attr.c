/* SPDX-License-Identifier: BSD-2-Clause */
/* A finished tree: attributes, and what is added before it is served. */
#include <string.h>

#include "tree/tree_internal.h"

static const char *tree_text_at(const struct tree *t, uint32_t offset)
{
	return offset == TREE_NO_TEXT ? NULL : t->text + offset;
}

const char *tree_stored_name(const struct tree *t, const struct node *n)
{
	(void)t;
	return n->node == 0 && !n->graft
		       ? tree_text_at(n->tree, n->tree->dir[n->dir].stored)
		       : NULL;
}

/* ---- attributes --------------------------------------------------------- */

int tree_attr(const struct tree *t, const struct node *n, struct pinner *p,
	      struct attr *out, struct error *err)
{
	const struct dir *d = &n->tree->dir[n->dir];
	int r;

	(void)t;
	memset(out, 0, sizeof *out);
	if (n->graft) { /* the same whether it is open or not */
		*out = n->graft->attr;
		return 0;
	}
	if (n->files) {
		r = n->files->ops->attr(n->files, n->node, p, out, err);
		if (r == 0 && n->node == 0)
			out->size += d->count;
		return r;
	}
	out->mtime = d->mtime;
	if (tree_is_link(d)) {
		out->size = strlen(n->tree->text + d->target);
		out->mode = S_IFLNK | 0777;
		out->nlink = 1;
	} else {
		out->size = d->count;
		out->mode = S_IFDIR | 0555;
		out->nlink = 1;
	}
	return 0;
}

const char *tree_link_target(const struct tree *t, const struct node *n)
{
	(void)t;
	if (n->graft)
		return NULL;
	if (n->node == 0)
		return tree_text_at(n->tree, n->tree->dir[n->dir].target);
	return n->files->ops->link ? n->files->ops->link(n->files, n->node)
				   : NULL;
}

void tree_usage(const struct tree *t, uint64_t *dirs, uint64_t *bytes)
{
	*dirs = t->n - t->dir[0].hidden;
	*bytes = sizeof *t + t->n * sizeof *t->dir + t->text_size;
}

/* ---- before it is served ------------------------------------------------ */

uint32_t tree_dirs(const struct tree *t)
{
	return t->n;
}

bool tree_dir_entry(const struct tree *t, uint32_t dir, uint32_t i,
		    struct files **files, const char **name)
{
	char usable[FILES_NAME_MAX + 1];
	const struct dir *d;

	if (i >= t->dir[dir].count)
		return false;
	d = &t->dir[t->dir[dir].first + i];
	*files = d->files;
	*name = t->text + d->name;
	if (d->stored != TREE_NO_TEXT) {
		tree_escape(t->text + d->stored, usable);
		if (!strcmp(usable, *name))
			*name = t->text + d->stored;
	}
	return true;
}

void tree_add_extra(struct tree *t, uint32_t dir, struct files *f)
{
	struct files *old = t->dir[dir].extra;

	if (old)
		old->ops->free(old);
	t->dir[dir].extra = f;
}
