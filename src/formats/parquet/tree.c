/* SPDX-License-Identifier: BSD-2-Clause */
/* The schema of a Parquet file as a tree: of what the rows of nested columns consist. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "formats/parquet/schema.h"

#define DEPTH_MAX 64

static int tree_damaged(struct error *err)
{
	return error_set(err, -EBADMSG, "its schema is damaged");
}

int parquet_tree_add(struct parquet_meta *m, const char *name, size_t len,
		     int64_t repetition, uint32_t children, struct error *err)
{
	struct parquet_node *n;

	if (!(m->n_nodes & (m->n_nodes - 1))) {
		size_t room = m->n_nodes ? 2 * (size_t)m->n_nodes : 1;

		n = realloc(m->nodes, room * sizeof *n);
		if (!n)
			return error_no_memory(err, "the tree of the schema");
		m->nodes = n;
	}
	n = memset(&m->nodes[m->n_nodes], 0, sizeof *n);
	n->name = strndup(name, len);
	if (!n->name)
		return error_no_memory(err, "the name of a column");
	m->n_nodes++;
	n->children = children;
	n->repetition =
		repetition == 1 || repetition == 2 ? (uint8_t)repetition : 0;
	return 0;
}

static void finish_leaf(struct parquet_column *c, const struct parquet_node *n)
{
	c->max_levels = n->levels;
	c->max_repeats = n->repeats;
	if (!c->nested)
		return;
	c->levels = n->levels;
	c->optional = n->levels;
}

/* Set the levels of node *i and of all nodes in it, and number the leaves in order; *i
 * moves behind them. */
static int tree_finish_node(struct parquet_meta *m, uint32_t *i, uint32_t *leaf,
			    unsigned levels, unsigned repeats, unsigned depth,
			    struct error *err)
{
	struct parquet_node *n = &m->nodes[*i];
	int r = 0;

	++*i;
	n->levels = (uint8_t)(levels + (n->repetition != 0));
	n->repeats = (uint8_t)(repeats + (n->repetition == 2));
	n->leaf = *leaf;
	if (depth == DEPTH_MAX)
		return error_set(err, -ENOTSUP,
				 "its columns are nested more than %d deep",
				 DEPTH_MAX);
	if (!n->children) {
		if (*leaf == m->n)
			return tree_damaged(err);
		finish_leaf(&m->at[(*leaf)++], n);
	}
	for (uint32_t k = 0; r == 0 && k < n->children; k++)
		r = *i < m->n_nodes
			    ? tree_finish_node(m, i, leaf, n->levels,
					       n->repeats, depth + 1, err)
			    : tree_damaged(err);
	n->leaves = *leaf - n->leaf;
	n->next = *i;
	return r;
}

int parquet_tree_finish(struct parquet_meta *m, struct error *err)
{
	uint32_t i = 0, leaf = 0;
	int r = 0;

	while (r == 0 && i < m->n_nodes)
		r = tree_finish_node(m, &i, &leaf, 0, 0, 0, err);
	return r;
}

bool parquet_tree_is_item(const struct parquet_node *list,
			  const struct parquet_node *n)
{
	size_t len = strlen(list->name);

	return n->children != 1 || n->is_list || n->is_map ||
	       n[1].repetition == 2 || !strcmp(n->name, "array") ||
	       (!strncmp(n->name, list->name, len) &&
		!strcmp(n->name + len, "_tuple"));
}

const struct parquet_node *
parquet_tree_plain_list(const struct parquet_node *top,
			const struct parquet_node **repeated)
{
	const struct parquet_node *n = top;

	if (n->is_list && n->children == 1 && n->repetition != 2)
		n++;
	*repeated = n;
	if (n->repetition != 2)
		return NULL;
	if (n != top && !parquet_tree_is_item(top, n))
		n++;
	return n->children ? NULL : n;
}

void parquet_tree_free(struct parquet_meta *m)
{
	for (uint32_t i = 0; i < m->n_nodes; i++)
		free(m->nodes[i].name);
	free(m->nodes);
}
