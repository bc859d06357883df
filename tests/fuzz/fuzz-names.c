/* SPDX-License-Identifier: BSD-2-Clause */
/* Names to nodes: whatever is found must have exactly the name asked for. */
/*
 * The first three bytes choose the tensor (rank, shape, sample axes), the rest
 * is a path that is walked component by component; sizes, texts with
 * suffixes and permission bits are parsed from the same bytes.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/parse.h"
#include "fuzz.h"
#include "views/view.h"
#include "tree/tree.h"

static void fail(void)
{
	abort();
}

static void no_free(struct tensor *t)
{
	free(t);
}
static const struct tensor_ops ops = {.free = no_free};

static struct files *make(const uint8_t *choice)
{
	struct tensor *t = calloc(1, sizeof *t);
	struct layout *l = calloc(1, sizeof *l);
	struct grid *g;
	static uint64_t shape[RANK_MAX];
	uint64_t chunk[RANK_MAX];
	struct view_options o;
	struct files *f;

	t->ops = &ops;
	t->dtype = t->stored = (struct dtype){.kind = DTYPE_INT, .size = 4};
	t->name = strdup("/data");
	t->rank = 1 + choice[0] % 4;
	t->elements = 1;
	t->shape = shape;
	for (unsigned i = 0; i < t->rank; i++) {
		shape[i] = 1 + (uint64_t)choice[1] * (i ? 1 : 9001) % 70001;
		t->elements *= shape[i];
		chunk[i] = 1 + choice[2] % 7;
	}
	t->bytes = t->elements * 4;
	t->parts = calloc(1, sizeof *t->parts);
	t->nparts = 1;
	g = calloc(1, sizeof *g);
	if (grid_init(g, t->rank, t->shape, chunk, 4) < 0)
		fail();
	l->kind = LAYOUT_CHUNKED;
	l->grid = g;
	atomic_init(&t->parts[0].layout, l);
	view_options_default(&o);
	for (unsigned i = 0; view_table[i];
	     i++) /* whatever is there is listed */
		o.views |= UINT64_C(1) << i;
	o.sample_axes_given = true;
	o.sample_axes = 1 + choice[0] / 4 % 4;
	if (tensor_files_new(&f, t, &o, NULL) < 0)
		fail();
	return f;
}

/* Is it the directory of a view that finds entries which it does not list: slices, and
 * epochs beyond the first ones? */
static bool has_no_listing(const char *name)
{
	for (unsigned i = 0; view_table[i]; i++)
		if (view_table[i]->name && !strcmp(view_table[i]->name, name))
			return view_table[i]->lookup_only ||
			       view_table[i]->dirs;
	return false;
}

/* Is it an unlisted view?  No entry of the tensor's directory is called so. */
static bool is_unlisted(struct files *f, const char *name)
{
	char have[FILES_NAME_MAX + 1];
	uint64_t n = f->ops->count(f, 0);

	for (uint64_t i = 0; i < n; i++)
		if (f->ops->name(f, 0, i, have, sizeof have) < 0 ||
		    !strcmp(have, name))
			return false;
	return true;
}

/* Found: entry number i of its directory must be called that, and its parent
 * must be where it was found. */
static void check_found(struct files *f, uint64_t dir, const char *name,
			uint64_t node)
{
	char again[FILES_NAME_MAX + 1];
	uint64_t n = f->ops->count(f, dir), lo = 0, up;
	uint32_t type;

	if (f->ops->parent(f, node, &up) < 0 || up != dir)
		fail();
	/* Node numbers ascend with the entries. */
	while (n - lo > 1) {
		uint64_t mid = lo + (n - lo) / 2;

		if (f->ops->child(f, dir, mid, &type) <= node)
			lo = mid;
		else
			n = mid;
	}
	if (f->ops->child(f, dir, lo, &type) != node ||
	    f->ops->name(f, dir, lo, again, sizeof again) < 0 ||
	    strcmp(again, name))
		fail();
}

static void walk(struct files *f, char *path)
{
	uint64_t dir = 0, node;
	char *save = NULL;
	bool listed = true;

	for (char *name = strtok_r(path, "/", &save); name;
	     name = strtok_r(NULL, "/", &save)) {
		struct attr a;

		if (f->ops->find(f, dir, name, &node) < 0)
			return;
		if (listed && !(dir == 0 && is_unlisted(f, name)))
			check_found(f, dir, name, node);
		listed = listed && !(dir == 0 && has_no_listing(name));
		if (!f->ops->attr_is_slow(f, node) &&
		    f->ops->attr(f, node, NULL, &a, NULL) < 0)
			fail();
		dir = node;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[512], escaped[FILES_NAME_MAX + 1];
	const struct grid *g;
	struct files *f;
	uint64_t value;
	unsigned mode;

	if (size < 3)
		return 0;
	f = make(data);
	g = atomic_load(&tensor_of_files(f)->parts[0].layout)->grid;
	size = size - 3 < sizeof text - 1 ? size - 3 : sizeof text - 1;
	memcpy(text, data + 3, size);
	text[size] = 0;
	(void)parse_size(text, 1 << 20, &value, NULL);
	(void)parse_count(text, 1, 99, &value, NULL);
	(void)parse_mode(text, &mode, NULL);
	(void)tree_escape(text, escaped);
	if (strlen(escaped) > FILES_NAME_MAX || strchr(escaped, '/') ||
	    !*escaped || !strcmp(escaped, ".") || !strcmp(escaped, ".."))
		fail();
	walk(f, text);
	f->ops->free(f);
	free((void *)(uintptr_t)g);
	return 0;
}
