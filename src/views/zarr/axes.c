/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds arrays with siblings of other lengths, whose axes need names that tell the
 * length. */
#include <errno.h>
#include <string.h>

#include "base/vec.h"
#include "views/name.h"
#include "views/zarr/store.h"
#include "views/zarr/zarr.h"

struct walk {
	const struct tree *tree;
	vec(uint64_t) dirs; /* directories that are still to be visited */
};

static struct tensor *axes_array(const struct node *n)
{
	struct tensor *t = n->files ? tensor_of_files(n->files) : NULL;

	return t && view_is_numeric(t) && !t->only_dimension ? t : NULL;
}

/* Return 1 if axes of the same number differ in length among the arrays of a directory,
 * 0 if they do not, or -ENOMEM.  Its directories are added to w->dirs. */
static int axes_compare_lengths(struct walk *w, uint64_t dir)
{
	uint64_t length[RANK_MAX];
	char name[FILES_NAME_MAX + 1];
	unsigned known = 0;
	bool differ = false;
	struct node n;

	for (uint64_t i = 0;
	     tree_entry(w->tree, dir, i, &n, name, sizeof name) == 0; i++) {
		const struct tensor *t = axes_array(&n);

		if (n.type != S_IFDIR || n.node || n.graft)
			continue;
		if (!n.files || !tensor_of_files(n.files))
			if (!(n.files && zarr_store_are(n.files)) &&
			    !vec_push(&w->dirs, n.ino))
				return -ENOMEM;
		for (unsigned a = 0; t && a < t->rank; a++) {
			if (a == known)
				length[known++] = zarr_shape(t)[a];
			differ = differ || length[a] != zarr_shape(t)[a];
		}
	}
	return differ;
}

static void axes_mark_sized(const struct tree *tree, uint64_t dir)
{
	char name[FILES_NAME_MAX + 1];
	struct node n;

	for (uint64_t i = 0;
	     tree_entry(tree, dir, i, &n, name, sizeof name) == 0; i++) {
		struct tensor *t = n.node ? NULL : axes_array(&n);

		if (t)
			t->sized_axes = true;
	}
}

int zarr_name_axes(const struct tree *t)
{
	struct walk w = {.tree = t};
	int r = vec_push(&w.dirs, TREE_ROOT) ? 0 : -ENOMEM;

	while (r >= 0 && w.dirs.n) {
		uint64_t dir = w.dirs.at[--w.dirs.n];

		r = axes_compare_lengths(&w, dir);
		if (r > 0)
			axes_mark_sized(t, dir);
	}
	vec_free(&w.dirs);
	return r < 0 ? r : 0;
}
