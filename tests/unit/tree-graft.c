/* SPDX-License-Identifier: BSD-2-Clause */
/* Grafts: opened at the first look, once; numbers; failures; nesting. */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "members/member_files.h"
#include "tree/graft.h"
#include "test.h"

static const char *const names[] = {"a.tar", "dir/b.tar", "plain"};

/* A tree over a table of `names`; the first two are grafts, `depth` deep. */
struct sprout {
	struct graft graft;
	struct members members;
	unsigned depth;
	bool made;
};
static _Atomic unsigned opened, failures_left;

static int sprout_open(struct graft *g, struct tree **out, struct error *err);
static void sprout_free(struct graft *g)
{
	struct sprout *s = (struct sprout *)g;

	if (s->made)
		members_free(&s->members);
	free(s);
}
static const struct graft_ops ops = {.open = sprout_open, .free = sprout_free};

static struct sprout *sprout_new(unsigned depth)
{
	struct sprout *s = calloc(1, sizeof *s);

	s->graft.ops = &ops;
	s->graft.attr.mode = S_IFDIR | 0555;
	s->graft.attr.nlink = 1;
	s->depth = depth;
	return s;
}

static void make(struct tree_builder *b, struct members *m, unsigned depth)
{
	struct members_builder *mb;
	struct files *f;

	CHECK_OK(members_builder_new(&mb, NULL, NULL));
	for (size_t i = 0; i < 3; i++) {
		struct member x = {.path = names[i],
				   .mode = S_IFREG | 0644,
				   .size = 1,
				   .kind = MEMBER_RANGE};

		CHECK(members_add(mb, &x, NULL) >= 0);
	}
	CHECK_OK(members_finish(mb, m, NULL));
	CHECK_OK(member_files_new(&f, m, NULL, 0, 0, NULL));
	tree_set_files(b, 0, f);
	for (uint64_t i = 1; i < m->n && depth; i++) {
		const char *name = member_name(m, &m->at[i]);

		if (strstr(name, ".tar"))
			CHECK_OK(tree_add_graft(b, 0, m->at[i].parent, i, name,
						&sprout_new(depth - 1)->graft));
	}
}

static int sprout_open(struct graft *g, struct tree **out, struct error *err)
{
	struct sprout *s = (struct sprout *)g;
	struct tree_builder *b = tree_builder_new();

	opened++;
	/* Only makes it likelier that others want it meanwhile. */
	usleep(1000);
	if (failures_left) {
		failures_left--;
		tree_builder_free(b);
		return error_set(err, -EBADMSG, "not today");
	}
	if (s->made)
		members_free(&s->members);
	make(b, &s->members, s->depth);
	s->made = true;
	CHECK_OK(tree_finish(b, out, err));
	tree_builder_free(b);
	return 0;
}

static struct tree *plant(struct members *m)
{
	struct tree_builder *b = tree_builder_new();
	struct tree *t;

	opened = 0;
	make(b, m, 2);
	CHECK_OK(tree_finish(b, &t, NULL));
	tree_builder_free(b);
	return t;
}

static void walk(const struct tree *t, const char *path, struct node *n)
{
	struct error err = {0, ""};
	int r = tree_walk(t, path, n, &err);

	CHECK_STR(err.text, "");
	CHECK_OK(r);
}

TEST(nothing_is_opened_by_listing)
{
	char name[FILES_NAME_MAX + 1];
	struct members m;
	struct tree *t = plant(&m);
	struct attr a;
	struct node n;

	CHECK_EQ_U(tree_entry_count(t, TREE_ROOT), 3);
	CHECK_OK(tree_entry(t, TREE_ROOT, 0, &n, name, sizeof name));
	CHECK_STR(name, "a.tar");
	CHECK_EQ_U(n.type, S_IFDIR);
	CHECK_OK(tree_attr(t, &n, NULL, &a, NULL));
	CHECK_EQ_U(a.mode, S_IFDIR | 0555);
	CHECK_EQ_U(opened, 0);
	CHECK_OK(tree_entry(t, TREE_ROOT, 2, &n, name, sizeof name));
	CHECK_EQ_U(n.type, S_IFREG);
	tree_free(t);
	members_free(&m);
}

TEST(paths_and_numbers_go_both_ways)
{
	static const char *const paths[] = {"/a.tar",
					    "/a.tar/plain",
					    "/dir/b.tar/dir/b.tar/a.tar",
					    "/dir/b.tar/a.tar/plain",
					    "/a.tar/dir/b.tar/plain",
					    NULL};
	struct members m;
	struct tree *t = plant(&m);
	uint64_t seen[8], parent;
	struct node n, again;
	char path[256];

	for (unsigned i = 0; paths[i]; i++) {
		walk(t, paths[i], &n);
		seen[i] = n.ino;
		for (unsigned k = 0; k < i; k++)
			CHECK(seen[k] != n.ino);
		CHECK_OK(tree_path(t, n.ino, path, sizeof path));
		CHECK_STR(path, paths[i]);
		CHECK_OK(tree_node(t, n.ino, &again));
		CHECK_EQ_U(again.type, n.type);
		CHECK_OK(tree_parent(t, n.ino, &parent));
		CHECK_OK(tree_path(t, parent, path, sizeof path));
	}
	for (uint32_t i = 0; i < tree_dirs(t); i++) {
		CHECK_OK(tree_node(t, tree_dir_ino(t, i), &n));
		CHECK_EQ_U(n.dir, i);
		CHECK_EQ_U(n.ino, tree_dir_ino(t, i));
	}
	CHECK_EQ_U(tree_dir_ino(t, 0), TREE_ROOT);
	CHECK_EQ_I(tree_node(t, UINT64_C(1) << 63 | UINT64_C(99) << 45 | 1, &n),
		   -ENOENT);
	CHECK_EQ_I(tree_node(t, UINT64_MAX, &n), -ENOENT);
	tree_free(t);
	members_free(&m);
}

static void *look(void *tree)
{
	struct node n;

	walk(tree, "/dir/b.tar/plain", &n);
	return NULL;
}

TEST(one_thread_opens)
{
	pthread_t threads[8];
	struct members m;
	struct tree *t = plant(&m);

	for (unsigned i = 0; i < 8; i++)
		CHECK_OK(pthread_create(&threads[i], NULL, look, t));
	for (unsigned i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ_U(opened, 1);
	tree_free(t);
	members_free(&m);
}

TEST(a_failure_is_said_and_tried_again)
{
	struct members m;
	struct tree *t = plant(&m);
	struct error err;
	struct node n, in;

	walk(t, "/a.tar", &n);
	failures_left = 1;
	CHECK_EQ_I(tree_lookup(t, n.ino, "plain", &in), -EBADMSG);
	CHECK_EQ_I(tree_graft_failure(t, n.ino, &err), -EBADMSG);
	CHECK_STR(err.text, "not today");
	CHECK_OK(tree_lookup(t, n.ino, "plain", &in));
	CHECK_EQ_I(tree_graft_failure(t, n.ino, &err), 0);
	CHECK_EQ_U(opened, 2);
	tree_free(t);
	members_free(&m);
}

int main(void)
{
	RUN(nothing_is_opened_by_listing);
	RUN(paths_and_numbers_go_both_ways);
	RUN(one_thread_opens);
	RUN(a_failure_is_said_and_tried_again);
	return test_done();
}
