/* SPDX-License-Identifier: BSD-2-Clause */
/* Trees: one more file of a directory. */
#include <errno.h>

#include "tree/tree.h"
#include "test.h"

static unsigned alive;

static struct tree *finish(struct tree_builder *b)
{
	struct error err = {0, ""};
	struct tree *t = NULL;

	CHECK_OK(tree_finish(b, &t, &err));
	tree_builder_free(b);
	return t;
}

static int extra_find(const struct files *f, uint64_t dir, const char *name,
		      uint64_t *node)
{
	(void)f, (void)dir;
	*node = 0;
	return strcmp(name, "extra") ? -ENOENT : 0;
}

static int extra_parent(const struct files *f, uint64_t node, uint64_t *dir)
{
	(void)f, (void)node;
	*dir = 0;
	return 0;
}

static int extra_name_of(const struct files *f, uint64_t node, char *buf,
			 size_t n)
{
	(void)f, (void)node;
	snprintf(buf, n, "extra");
	return 0;
}

static int extra_attr(struct files *f, uint64_t node, struct pinner *p,
		      struct attr *out, struct error *err)
{
	(void)f, (void)node, (void)p, (void)err;
	*out = (struct attr){.size = 7, .mode = S_IFREG | 0444, .nlink = 1};
	return 0;
}

static void extra_free(struct files *f)
{
	(void)f;
	alive--;
}

static const struct files_ops extra_ops = {
	.find = extra_find,
	.parent = extra_parent,
	.name_of = extra_name_of,
	.attr = extra_attr,
	.free = extra_free,
};

static void is_extra(struct tree *t, uint64_t dir, const char *path)
{
	char buf[64];
	struct node n, again;
	struct attr a;
	uint64_t up;

	CHECK_OK(tree_lookup(t, dir, "extra", &n));
	CHECK_EQ_U(n.type, S_IFREG);
	CHECK_OK(tree_attr(t, &n, NULL, &a, NULL));
	CHECK_EQ_U(a.size, 7);
	CHECK_OK(tree_node(t, n.ino, &again));
	CHECK_EQ_U(again.type, S_IFREG);
	CHECK(again.files == n.files);
	CHECK_OK(tree_parent(t, n.ino, &up));
	CHECK_EQ_U(up, dir);
	CHECK_OK(tree_path(t, n.ino, buf, sizeof buf));
	CHECK_STR(buf, path);
	CHECK_OK(tree_hold(t, n.ino, 1));
}

TEST(one_more_file_is_found_and_not_listed)
{
	static struct files extra[3] = {
		{&extra_ops}, {&extra_ops}, {&extra_ops}};
	struct tree_builder *b = tree_builder_new();
	uint32_t dirs[3];
	struct files *files;
	const char *name;
	struct node n;
	struct tree *t;

	alive = 3;
	for (unsigned i = 0; i < 3; i++)
		dirs[i] = tree_add_dir(b, 0, (char[]){(char)('a' + i), 0}, 0);
	tree_add_dir(b, dirs[2], "extra", 0);
	tree_set_extra(b, dirs[1], &extra[0]);
	tree_set_extra(b, dirs[2], &extra[1]);
	t = finish(b);
	tree_add_extra(t, 0, &extra[2]);
	is_extra(t, TREE_ROOT, "/extra");
	CHECK_EQ_U(tree_entry_count(t, TREE_ROOT), 3);
	CHECK(tree_dir_entry(t, 0, 2, &files, &name) && !files);
	CHECK_STR(name, "c");
	CHECK(!tree_dir_entry(t, 0, 3, &files, &name));
	CHECK_OK(tree_lookup(t, TREE_ROOT, "a", &n));
	CHECK_EQ_I(tree_lookup(t, n.ino, "extra", &n), -ENOENT);
	CHECK_OK(tree_lookup(t, TREE_ROOT, "b", &n));
	is_extra(t, n.ino, "/b/extra");
	CHECK_EQ_I(tree_lookup(t, n.ino, "extr", &n), -ENOENT);
	CHECK_OK(tree_lookup(t, TREE_ROOT, "c", &n));
	CHECK_OK(tree_lookup(t, n.ino, "extra", &n));
	CHECK_EQ_U(n.type, S_IFDIR); /* what is there is found */
	tree_free(t);
	CHECK_EQ_U(alive, 0);
}

int main(void)
{
	RUN(one_more_file_is_found_and_not_listed);
	return test_done();
}
