/* SPDX-License-Identifier: BSD-2-Clause */
/* verify: sources that check themselves, and sources inside of them. */
/*
 * A source inside another one is opened apart from the tree that it is in, for as long as
 * it is checked: an archive of a thousand archives needs the memory of one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/inside.h"
#include "app/report.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "base/system.h"
#include "verify/verify.h"

/* An archive can contain itself, so the depth is bounded. */
#define DEPTH_MAX 16
#define PATH_ROOM 8192

/* ---- what sources want of us --------------------------------------------- */

static struct verify *verify_of_check(struct source_check *c)
{
	return (struct verify *)c;
}

static void check_bad(struct source_check *c, const struct source_bad *bad)
{
	verify_list(verify_of_check(c), bad);
}

static void check_expect(struct source_check *c, uint64_t bytes)
{
	lock_scope(&verify_of_check(c)->lock);
	verify_of_check(c)->progress.total += bytes;
}

static void check_advance(struct source_check *c, uint64_t bytes)
{
	verify_advance(verify_of_check(c), bytes);
}

static void check_count(struct source_check *c, uint64_t chunks,
			uint64_t stored, uint64_t decoded)
{
	atomic_fetch_add(&verify_of_check(c)->chunks, chunks);
	atomic_fetch_add(&verify_of_check(c)->stored, stored);
	atomic_fetch_add(&verify_of_check(c)->decoded, decoded);
}

static void check_count_members(struct source_check *c, uint64_t n)
{
	atomic_fetch_add(&verify_of_check(c)->members, n);
}

static void check_left_out(struct source_check *c, const char *name, uint64_t n)
{
	verify_left_out(verify_of_check(c), name, n);
}

static void check_no_checksums(struct source_check *c)
{
	atomic_store(&verify_of_check(c)->unsummed, true);
}

static void check_enter(struct source_check *c, uint64_t bytes)
{
	gate_enter(&verify_of_check(c)->gate, bytes);
}

static void check_leave(struct source_check *c, uint64_t bytes)
{
	gate_leave(&verify_of_check(c)->gate, bytes);
}

void verify_source_init(struct verify *v)
{
	v->check = (struct source_check){
		.pool = v->pool,
		.threads = system_cores(),
		.prefix = "",
		.bad = check_bad,
		.expect = check_expect,
		.advance = check_advance,
		.count = check_count,
		.members = check_count_members,
		.left_out = check_left_out,
		.no_checksums = check_no_checksums,
		.enter = check_enter,
		.leave = check_leave,
	};
}

/* ---- sources ------------------------------------------------------------- */

static int verify_expect_bytes(void *ctx, struct tensor *t)
{
	struct verify *v = ctx;

	if (!t->why_not)
		check_expect(&v->check, t->bytes);
	return 0;
}

/* Check a source that is not open in the tree: open it for this. */
static int verify_apart(struct verify *v, struct graft *g, const char *path,
			const struct nest_inside *in, unsigned depth)
{
	struct error err = {0};
	struct source *source;
	struct tree *tree;
	struct node root;
	int r = nest_open_apart(g, &source, &tree, &err);

	if (r == -ENOMEM)
		return r;
	if (r == -ENOTSUP && !in->ops) {
		verify_skipped(v, path, err.text);
		return 0;
	}
	if (r < 0) {
		verify_bad(v, path, r, err.text);
		return 0;
	}
	r = tree_node(tree, TREE_ROOT, &root);
	if (r == 0)
		r = report_walk(tree, &root, verify_expect_bytes, v);
	if (r == 0)
		r = verify_tree(v, tree, source, &root, path, depth);
	tree_free(tree);
	source_close(source);
	return r;
}

static int verify_inside(struct verify *v, struct tree *tree, struct graft *g,
			 const struct node *n, const char *prefix,
			 unsigned depth)
{
	cleanup_free char *path = malloc(PATH_ROOM);
	struct nest_inside in;
	struct node top;
	size_t len = strlen(prefix);
	int r;

	if (!path)
		return -ENOMEM;
	if (len >= PATH_ROOM ||
	    tree_path(tree, n->ino, path + len, PATH_ROOM - len) < 0)
		return 0;
	memcpy(path, prefix, len);
	if (depth >= DEPTH_MAX) {
		verify_skipped(v, path, "archives are nested too deep");
		return 0;
	}
	nest_inside(g, &in);
	if (!in.source)
		return verify_apart(v, g, path, &in, depth + 1);
	if (tree_node(tree, n->ino, &top) < 0)
		return 0;
	r = report_walk(tree, &top, verify_expect_bytes, v);
	return r < 0 ? r
		     : verify_tree(v, tree, in.source, &top, path, depth + 1);
}

int verify_tree(struct verify *v, struct tree *tree, struct source *source,
		const struct node *top, const char *prefix, unsigned depth)
{
	const bool within = v->within;
	struct error err = {0};
	struct node n;
	struct graft *g;
	uint32_t i = 0;
	int r;

	v->prefix = prefix;
	v->check.covered = within;
	atomic_store(&v->unsummed, false);
	r = report_walk(tree, top, verify_tensor, v);
	if (top->files && tensor_of_files(top->files))
		source = NULL; /* the user asked for a tensor in it only */
	if (r == 0 && source && source->ops->verify) {
		v->check.prefix = prefix;
		r = source->ops->verify(source, top->node, &v->check, &err);
	} else if (r == 0 && source && !source->ops->about) {
		verify_directory(v, tree, top, 0);
	}
	pool_drain(v->pool);
	v->prefix = "";
	v->within = within || v->check.covered;
	v->no_checksums |= atomic_load(&v->unsummed) && !v->within;
	while (r == 0 && (g = inside_next(tree, top, &i, &n)))
		r = verify_inside(v, tree, g, &n, prefix, depth);
	v->within = within;
	return r;
}
