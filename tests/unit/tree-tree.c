/* SPDX-License-Identifier: BSD-2-Clause */
/* Trees: numbering, lookup, listing, equal names, walks; against lists. */
#include <errno.h>

#include "tree/tree.h"
#include "test.h"

static struct tree *finish(struct tree_builder *b)
{
	struct error err = {0, ""};
	struct tree *t = NULL;
	int r = tree_finish(b, &t, &err);

	CHECK_STR(err.text, "");
	CHECK_OK(r);
	tree_builder_free(b);
	return t;
}

/* ---- a fake provider: computed directories, nested ---------------------- */

/*
 * Node 0 holds COLS directories "d000" (nodes 1 .. COLS); directory c holds
 * ROWS files "f000" (nodes COLS + 1 + c * ROWS + r), the last one of them slow.
 */
#define COLS 30
#define ROWS 100
#define NODES (1 + COLS + COLS * ROWS)
static unsigned fakes_alive;

static uint64_t fake_count(const struct files *f, uint64_t dir)
{
	(void)f;
	return dir == 0 ? COLS : ROWS;
}

static uint64_t fake_child(const struct files *f, uint64_t dir, uint64_t i,
			   uint32_t *type)
{
	(void)f;
	*type = dir == 0 ? S_IFDIR : S_IFREG;
	return dir == 0 ? 1 + i : 1 + COLS + (dir - 1) * ROWS + i;
}

static int fake_name(const struct files *f, uint64_t dir, uint64_t i, char *buf,
		     size_t n)
{
	(void)f;
	snprintf(buf, n, "%c%03u", dir ? 'f' : 'd', (unsigned)i);
	return 0;
}

static int fake_find(const struct files *f, uint64_t dir, const char *name,
		     uint64_t *node)
{
	char want[8];
	uint32_t type;
	uint64_t i;

	for (i = 0; i < fake_count(f, dir); i++) {
		fake_name(f, dir, i, want, sizeof want);
		if (!strcmp(name, want)) {
			*node = fake_child(f, dir, i, &type);
			return 0;
		}
	}
	return -ENOENT;
}

static int fake_parent(const struct files *f, uint64_t node, uint64_t *dir)
{
	(void)f;
	if (node >= NODES)
		return -ENOENT;
	*dir = node <= COLS ? 0 : 1 + (node - 1 - COLS) / ROWS;
	return 0;
}

static bool fake_is_slow(const struct files *f, uint64_t node)
{
	(void)f;
	return node == NODES - 1;
}

static int fake_attr(struct files *f, uint64_t node, struct pinner *p,
		     struct attr *out, struct error *err)
{
	(void)p;
	(void)err;
	CHECK(!fake_is_slow(f, node));
	out->mode = node <= COLS ? S_IFDIR | 0555 : S_IFREG | 0444;
	out->size = node;
	out->nlink = 1;
	out->mtime = 42;
	return 0;
}

static void fake_free(struct files *f)
{
	free(f);
	fakes_alive--;
}

static const struct files_ops fake_ops = {
	.count = fake_count,
	.child = fake_child,
	.name = fake_name,
	.find = fake_find,
	.parent = fake_parent,
	.attr_is_slow = fake_is_slow,
	.attr = fake_attr,
	.free = fake_free,
};

static struct files *fake_new(void)
{
	struct files *f = malloc(sizeof *f);

	CHECK(f);
	f->ops = &fake_ops;
	fakes_alive++;
	return f;
}

/* ---- what holds in every tree ------------------------------------------- */

static void same_node(const struct node *a, const struct node *b)
{
	CHECK_EQ_U(a->ino, b->ino);
	CHECK_EQ_U(a->type, b->type);
	CHECK_EQ_U(a->node, b->node);
	CHECK_EQ_U(a->dir, b->dir);
	CHECK(a->files == b->files);
}

/* Lists a directory and all below; counts the nodes, itself included. */
static uint64_t check_below(const struct tree *t, uint64_t dir)
{
	uint64_t n = tree_entry_count(t, dir), i, seen = 1, up;
	char name[FILES_NAME_MAX + 1], before[FILES_NAME_MAX + 1] = "";
	struct node x, y;

	for (i = 0; i < n; i++) {
		CHECK_OK(tree_entry(t, dir, i, &x, name, sizeof name));
		CHECK(*name && !strchr(name, '/'));
		CHECK(strcmp(name, ".") && strcmp(name, ".."));
		CHECK(strcmp(before, name) < 0);
		strcpy(before, name);
		CHECK_OK(tree_lookup(t, dir, name, &y));
		same_node(&x, &y);
		CHECK_OK(tree_node(t, x.ino, &y));
		same_node(&x, &y);
		CHECK_OK(tree_parent(t, x.ino, &up));
		CHECK_EQ_U(up, dir);
		seen += x.type == S_IFDIR ? check_below(t, x.ino) : 1;
	}
	CHECK_EQ_I(tree_entry(t, dir, n, &x, name, sizeof name), -ENOENT);
	CHECK_EQ_I(tree_entry(t, dir, UINT64_MAX, &x, name, sizeof name),
		   -ENOENT);
	CHECK_EQ_I(tree_lookup(t, dir, "no such name", &x), -ENOENT);
	return seen;
}

static void path_is(const struct tree *t, const char *path, const char *want)
{
	struct error err = {0, ""};
	struct node n;
	char buf[512];

	CHECK_OK(tree_walk(t, path, &n, &err));
	CHECK_OK(tree_path(t, n.ino, buf, sizeof buf));
	CHECK_STR(buf, want);
}

static void no_path(const struct tree *t, const char *path, int code,
		    const char *text)
{
	struct error err = {0, ""};
	struct node n;

	CHECK_EQ_I(tree_walk(t, path, &n, &err), code);
	CHECK_EQ_I(err.code, code);
	CHECK_STR(err.text, text);
}

/* ---- tests -------------------------------------------------------------- */

TEST(an_empty_tree_is_a_root)
{
	struct tree *t = finish(tree_builder_new());
	struct node n;
	struct attr a;
	uint64_t up, dirs, bytes;

	CHECK_EQ_U(check_below(t, TREE_ROOT), 1);
	CHECK_OK(tree_node(t, TREE_ROOT, &n));
	CHECK_OK(tree_attr(t, &n, NULL, &a, NULL));
	CHECK_EQ_U(a.mode, S_IFDIR | 0555);
	CHECK_EQ_U(a.nlink, 1);
	CHECK_OK(tree_parent(t, TREE_ROOT, &up));
	CHECK_EQ_U(up, TREE_ROOT);
	CHECK_EQ_I(tree_node(t, 0, &n), -ENOENT);
	CHECK_EQ_I(tree_node(t, 2, &n), -ENOENT);
	CHECK_EQ_I(tree_node(t, UINT64_C(1) << 40 | 1, &n), -ENOENT);
	CHECK_EQ_I(tree_node(t, UINT64_MAX, &n), -ENOENT);
	path_is(t, "", "/");
	path_is(t, "//", "/");
	path_is(t, "/../.", "/");
	tree_usage(t, &dirs, &bytes);
	CHECK_EQ_U(dirs, 1);
	tree_free(t);
}

TEST(attributes)
{
	struct tree_builder *b = tree_builder_new();
	struct attr a;
	struct node n;
	struct tree *t;
	uint32_t d;

	d = tree_add_dir(b, 0, "d", 100);
	tree_add_dir(b, d, "sub", 7);
	tree_add_link(b, d, "link", "sub", 8);
	tree_add_dir(b, 0, "e", 99);
	t = finish(b);
	CHECK_OK(tree_walk(t, "d", &n, NULL));
	CHECK_OK(tree_attr(t, &n, NULL, &a, NULL));
	CHECK_EQ_U(a.nlink, 1);
	CHECK_EQ_I(a.mtime, 100);
	CHECK_OK(tree_lookup(t, n.ino, "link", &n));
	CHECK_EQ_U(n.type, S_IFLNK);
	CHECK_STR(tree_link_target(t, &n), "sub");
	CHECK_OK(tree_attr(t, &n, NULL, &a, NULL));
	CHECK_EQ_U(a.size, 3);
	CHECK_EQ_U(a.mode, S_IFLNK | 0777);
	CHECK_EQ_I(tree_lookup(t, n.ino, "x", &n), -ENOTDIR);
	CHECK_OK(tree_node(t, TREE_ROOT, &n));
	CHECK_OK(tree_attr(t, &n, NULL, &a, NULL));
	CHECK_EQ_I(a.mtime, 100);
	CHECK(!tree_link_target(t, &n));
	tree_free(t);
}

/* Directories are numbered by level, then by name, however they were added. */
TEST(numbers_depend_on_names_alone)
{
	struct tree_builder *b = tree_builder_new();
	struct tree *t, *u;
	char buf[64], other[64];
	uint32_t x, y, i;

	y = tree_add_dir(b, 0, "y", 0);
	tree_add_dir(b, y, "b", 0);
	x = tree_add_dir(b, 0, "x", 0);
	tree_add_dir(b, y, "a", 0);
	tree_add_dir(b, x, "c", 0);
	t = finish(b);
	b = tree_builder_new();
	x = tree_add_dir(b, 0, "x", 0);
	y = tree_add_dir(b, 0, "y", 0);
	tree_add_dir(b, y, "a", 0);
	tree_add_dir(b, x, "c", 0);
	tree_add_dir(b, y, "b", 0);
	u = finish(b);
	for (i = 0; i < 6; i++) {
		uint64_t ino = (uint64_t)i << 40 | 1;
		static const char *const want[] = {"/",    "/x",   "/y",
						   "/x/c", "/y/a", "/y/b"};

		CHECK_OK(tree_path(t, ino, buf, sizeof buf));
		CHECK_OK(tree_path(u, ino, other, sizeof other));
		CHECK_STR(buf, want[i]);
		CHECK_STR(other, want[i]);
	}
	tree_free(t);
	tree_free(u);
}

TEST(random_trees_equal_a_list)
{
	static struct {
		uint32_t parent, number;
		char name[16], path[400];
		bool link;
	} list[400];
	unsigned round, seed = 7;

	for (round = 0; round < 60; round++) {
		unsigned n = 1 + (unsigned)rand_r(&seed) % 399, i, j, kids;
		struct tree_builder *b = tree_builder_new();
		struct tree *t;

		memset(list, 0, sizeof list);
		for (i = 1; i < n; i++) {
			do { /* mostly shallow, never below a link */
				j = (unsigned)rand_r(&seed) % i;
				if (strlen(list[j].path) > 300)
					j = 0;
			} while (list[j].link);
			list[i].parent = j;
			snprintf(list[i].name, sizeof list[i].name, "%x-%u",
				 (unsigned)rand_r(&seed) % 1000, i);
			snprintf(list[i].path, sizeof list[i].path, "%.300s/%s",
				 list[j].path, list[i].name);
			list[i].link = rand_r(&seed) % 5 == 0;
			list[i].number =
				list[i].link
					? tree_add_link(b, list[j].number,
							list[i].name, "x", i)
					: tree_add_dir(b, list[j].number,
						       list[i].name, i);
			CHECK(list[i].number != UINT32_MAX);
		}
		t = finish(b);
		CHECK_EQ_U(check_below(t, TREE_ROOT), n);
		for (i = 0; i < n; i++) {
			char path[400];
			struct node node;
			struct attr a;

			if (list[i].link)
				continue;
			CHECK_OK(tree_walk(t, list[i].path, &node, NULL));
			CHECK_OK(tree_path(t, node.ino, path, sizeof path));
			CHECK_STR(path, i ? list[i].path : "/");
			for (kids = 0, j = 1; j < n; j++)
				kids += list[j].parent == i;
			CHECK_EQ_U(tree_entry_count(t, node.ino), kids);
			CHECK_OK(tree_attr(t, &node, NULL, &a, NULL));
			if (i)
				CHECK_EQ_I(a.mtime, i);
		}
		tree_free(t);
	}
}

TEST(files_answer_for_themselves)
{
	struct tree_builder *b = tree_builder_new();
	struct tree *t;
	struct node n;
	struct attr a;
	char name[16];
	uint32_t d;

	tree_add_dir(b, 0, "a", 0);
	d = tree_add_dir(b, 0, "data", 0);
	tree_set_files(b, d, fake_new());
	t = finish(b);
	CHECK_EQ_U(check_below(t, TREE_ROOT), 2 + NODES);
	path_is(t, "data/d029/f099", "/data/d029/f099");
	path_is(t, "data/d003/../d004/f000", "/data/d004/f000");
	CHECK_OK(tree_walk(t, "data/d000/f001", &n, NULL));
	CHECK_EQ_U(n.type, S_IFREG);
	CHECK_OK(tree_attr(t, &n, NULL, &a, NULL));
	CHECK_EQ_U(a.size, n.node);
	CHECK(!tree_attr_is_slow(&n));
	CHECK_EQ_I(tree_lookup(t, n.ino, "x", &n), -ENOTDIR);
	CHECK_OK(tree_walk(t, "data/d029/f099", &n, NULL));
	CHECK(tree_attr_is_slow(&n));
	CHECK_OK(tree_lookup(t, (n.ino >> 40 << 40) | 1, "..", &n));
	CHECK_EQ_U(n.ino, TREE_ROOT);
	CHECK_EQ_I(tree_node(t, UINT64_C(2) << 40 | (NODES + 1), &n), -ENOENT);
	CHECK_EQ_I(tree_node(t, UINT64_C(3) << 40 | 1, &n), -ENOENT);
	CHECK_EQ_I(tree_node(t, UINT64_C(2) << 40, &n), -ENOENT);
	CHECK_OK(tree_walk(t, "data/d001", &n, NULL));
	CHECK_OK(tree_entry(t, n.ino, 77, &n, name, sizeof name));
	CHECK_STR(name, "f077");
	no_path(t, "data/d000/f001/x", -ENOTDIR,
		"/data/d000/f001 is not a directory");
	no_path(t, "data/d000/f001/", -ENOTDIR,
		"/data/d000/f001 is not a directory");
	no_path(t, "data/d099/x", -ENOENT, "there is no 'd099' in /data");
	tree_free(t);
	CHECK_EQ_U(fakes_alive, 0);
}

TEST(the_root_may_be_files)
{
	struct tree_builder *b = tree_builder_new();
	struct tree *t;

	tree_set_files(b, 0, fake_new());
	t = finish(b);
	CHECK_EQ_U(check_below(t, TREE_ROOT), NODES);
	path_is(t, "d001/f002", "/d001/f002");
	tree_free(t);
}

/* Sub-directories and links beside files: one listing, nothing hides. */
TEST(files_and_directories_together)
{
	static const char *const want[] = {"a",      "d000",   "d001", "d001~2",
					   "d001~3", "d001~4", "d002", "d002x",
					   "d003",   "d004",   "d005", "d005~2",
					   "d005~3", "d006",   "d007"};
	struct tree_builder *b = tree_builder_new();
	char name[FILES_NAME_MAX + 1];
	struct node n;
	struct attr a;
	struct tree *t;
	uint32_t d, sub, i;

	d = tree_add_dir(b, 0, "data", 0);
	sub = tree_add_dir(b, d, "z", 7);
	tree_add_dir(b, sub, "below", 0);
	tree_add_dir(b, d, "d001", 0);
	tree_add_dir(b, d, "d001~3", 0);
	tree_set_files(b, d, fake_new());
	tree_add_dir(b, d, "d001", 0);
	tree_add_link(b, d, "d005", "z/below", 0);
	tree_add_dir(b, d, "a", 0);
	tree_add_dir(b, d, "d002x", 0);
	tree_add_dir(b, d, "d005~2", 0);
	t = finish(b);
	CHECK_EQ_U(check_below(t, TREE_ROOT), 1 + NODES + 9);
	CHECK_OK(tree_walk(t, "data", &n, NULL));
	CHECK_EQ_U(n.ino, UINT64_C(1) << 40 | 1);
	CHECK_EQ_U(tree_entry_count(t, n.ino), COLS + 8);
	CHECK_OK(tree_attr(t, &n, NULL, &a, NULL));
	CHECK_EQ_U(a.nlink, 1);
	CHECK_EQ_U(a.size, 8);
	CHECK_EQ_I(a.mtime, 42);
	for (i = 0; i < sizeof want / sizeof *want; i++) {
		CHECK_OK(tree_entry(t, UINT64_C(1) << 40 | 1, i, &n, name,
				    sizeof name));
		CHECK_STR(name, want[i]);
	}
	/* What `files` have keeps its name. */
	CHECK_OK(tree_walk(t, "data/d001", &n, NULL));
	CHECK_EQ_U(n.node, 2);
	CHECK_OK(tree_walk(t, "data/d001~2", &n, NULL));
	CHECK_STR(tree_stored_name(t, &n), "d001");
	path_is(t, "data/z/below/../../d005~3", "/data/z/below");
	path_is(t, "data/d005/../z", "/data/z");
	no_path(t, "data/z/d001", -ENOENT, "there is no 'd001' in /data/z");
	no_path(t, "data/d001/z", -ENOENT, "there is no 'z' in /data/d001");
	tree_free(t);
	CHECK_EQ_U(fakes_alive, 0);
}

static uint64_t none_count(const struct files *f, uint64_t dir)
{
	(void)f;
	CHECK_EQ_U(dir, 0);
	return 0;
}
static int none_find(const struct files *f, uint64_t dir, const char *name,
		     uint64_t *node)
{
	(void)f;
	(void)dir;
	(void)name;
	(void)node;
	return -ENOENT;
}

static int none_parent(const struct files *f, uint64_t node, uint64_t *dir)
{
	(void)f;
	(void)node;
	(void)dir;
	return -ENOENT;
}

/* A group whose files are there only for what they know. */
TEST(files_may_be_empty)
{
	static const struct files_ops none_ops = {.count = none_count,
						  .find = none_find,
						  .parent = none_parent,
						  .attr = fake_attr,
						  .free = fake_free};
	struct tree_builder *b = tree_builder_new();
	struct files *f = fake_new(), *g = fake_new();
	struct tree *t;
	struct node n;
	struct attr a;

	f->ops = g->ops = &none_ops;
	tree_set_files(b, 0, f);
	tree_set_files(b, tree_add_dir(b, 0, "empty", 0), g);
	tree_add_dir(b, 0, "x", 0);
	tree_add_link(b, 0, "l", "x", 0);
	t = finish(b);
	CHECK_EQ_U(check_below(t, TREE_ROOT), 4);
	CHECK_OK(tree_node(t, TREE_ROOT, &n));
	CHECK(n.files == f);
	CHECK_OK(tree_attr(t, &n, NULL, &a, NULL));
	CHECK_EQ_U(a.nlink, 1);
	CHECK_EQ_U(a.size, 3);
	CHECK_OK(tree_walk(t, "empty", &n, NULL));
	CHECK_EQ_I(tree_lookup(t, n.ino, "x", &n), -ENOENT);
	CHECK_EQ_I(tree_node(t, UINT64_C(1) << 40 | 2, &n), -ENOENT);
	tree_free(t);
	CHECK_EQ_U(fakes_alive, 0);
}

/* A merged listing of random names equals one that is sorted; resuming at any
 * entry of a long one takes no time. */
TEST(many_directories_beside_files)
{
	enum { N = 100000 };
	struct tree_builder *b = tree_builder_new();
	char name[FILES_NAME_MAX + 1], before[FILES_NAME_MAX + 1] = "";
	uint64_t own = 0, n, i, root = TREE_ROOT, dirs, bytes;
	unsigned seed = 5;
	struct tree *t;
	struct node at;

	tree_set_files(b, 0, fake_new());
	for (i = 0; i < N; i++) {
		snprintf(name, sizeof name, "%c%03x%04x",
			 "cde"[rand_r(&seed) % 3], (unsigned)rand_r(&seed) % 40,
			 (unsigned)(i * UINT64_C(7919) % N));
		tree_add_dir(b, 0, name, 0);
	}
	t = finish(b);
	n = tree_entry_count(t, root);
	CHECK_EQ_U(n, N + COLS);
	for (i = 0; i < n; i++) {
		CHECK_OK(tree_entry(t, root, i, &at, name, sizeof name));
		CHECK(strcmp(before, name) < 0);
		strcpy(before, name);
		own += at.node == 0;
	}
	CHECK_EQ_U(own, N);
	for (i = 0; i < N; i++)
		CHECK_OK(tree_entry(t, root, (i * 7919 + 3) % n, &at, name,
				    sizeof name));
	tree_usage(t, &dirs, &bytes);
	CHECK_EQ_U(dirs, N + 1);
	CHECK(bytes < dirs * 72);
	tree_free(t);
}

TEST(misuse_is_an_error)
{
	struct tree_builder *b = tree_builder_new();
	struct error err;
	struct tree *t;
	uint32_t d, l;

	l = tree_add_link(b, 0, "l", "x", 0);
	CHECK_EQ_U(tree_add_dir(b, l, "e", 0), UINT32_MAX);
	CHECK_EQ_U(tree_add_dir(b, 99, "e", 0), UINT32_MAX);
	tree_set_files(b, UINT32_MAX, fake_new());
	tree_set_files(b, l, fake_new());
	CHECK_EQ_I(tree_finish(b, &t, &err), -EINVAL);
	tree_builder_free(b);

	b = tree_builder_new();
	d = tree_add_dir(b, 0, "d", 0);
	tree_set_files(b, d, fake_new());
	tree_set_files(b, d, fake_new());
	tree_builder_free(b); /* never finished */
	tree_builder_free(NULL);
	tree_free(NULL);
	CHECK_EQ_U(fakes_alive, 0);
}

TEST(stored_names_are_kept)
{
	struct tree_builder *b = tree_builder_new();
	char name[FILES_NAME_MAX + 1];
	struct tree *t;
	struct node n;

	tree_add_dir(b, 0, "a/b", 0);
	tree_add_dir(b, 0, "plain", 0);
	tree_add_dir(b, 0, "", 0);
	t = finish(b);
	CHECK_OK(tree_entry(t, TREE_ROOT, 0, &n, name, sizeof name));
	CHECK_STR(name, "%00");
	CHECK_STR(tree_stored_name(t, &n), "");
	CHECK_OK(tree_entry(t, TREE_ROOT, 1, &n, name, sizeof name));
	CHECK_STR(name, "a%2Fb");
	CHECK_STR(tree_stored_name(t, &n), "a/b");
	CHECK_EQ_I(tree_entry(t, TREE_ROOT, 1, &n, name, 5), -ENAMETOOLONG);
	CHECK_OK(tree_entry(t, TREE_ROOT, 2, &n, name, sizeof name));
	CHECK(!tree_stored_name(t, &n));
	tree_free(t);
}

TEST(equal_names_are_numbered)
{
	static const char *const add[] = {"x", "a/b", "x~2", "x", "x~2",
					  "x", "x~4", "%",   "x", "a%2Fb"};
	static const char *const want[] = {"%",   "a%2Fb", "a%2Fb~2", "x",
					   "x~2", "x~2~2", "x~3",     "x~4",
					   "x~5", "x~6"};
	struct tree_builder *b = tree_builder_new();
	char name[FILES_NAME_MAX + 1];
	struct attr a;
	struct node n;
	struct tree *t;
	unsigned i;

	for (i = 0; i < 10; i++)
		tree_add_dir(b, 0, add[i], i);
	t = finish(b);
	CHECK_EQ_U(check_below(t, TREE_ROOT), 11);
	for (i = 0; i < 10; i++) {
		CHECK_OK(tree_entry(t, TREE_ROOT, i, &n, name, sizeof name));
		CHECK_STR(name, want[i]);
	}
	/* The first one kept its name, the second stored "x" is x~3. */
	CHECK_OK(tree_lookup(t, TREE_ROOT, "x", &n));
	CHECK_OK(tree_attr(t, &n, NULL, &a, NULL));
	CHECK_EQ_I(a.mtime, 0);
	CHECK(!tree_stored_name(t, &n));
	CHECK_OK(tree_lookup(t, TREE_ROOT, "x~3", &n));
	CHECK_OK(tree_attr(t, &n, NULL, &a, NULL));
	CHECK_EQ_I(a.mtime, 3);
	CHECK_STR(tree_stored_name(t, &n), "x");
	CHECK_OK(tree_lookup(t, TREE_ROOT, "a%2Fb~2", &n));
	CHECK_STR(tree_stored_name(t, &n), "a%2Fb");
	tree_free(t);
}

TEST(equal_long_names_are_numbered)
{
	struct tree_builder *b = tree_builder_new();
	char name[FILES_NAME_MAX + 1];
	struct tree *t;
	unsigned i;

	memset(name, 'l', 255);
	name[255] = '\0';
	for (i = 0; i < 50; i++)
		tree_add_dir(b, 0, name, 0);
	name[254] = 'k';
	for (i = 0; i < 50; i++)
		tree_add_dir(b, 0, name, 0);
	t = finish(b);
	CHECK_EQ_U(check_below(t, TREE_ROOT), 101);
	tree_free(t);
}

TEST(links_are_followed)
{
	struct tree_builder *b = tree_builder_new();
	struct tree *t;
	uint32_t d, e;

	d = tree_add_dir(b, 0, "d", 0);
	e = tree_add_dir(b, d, "e", 0);
	tree_set_files(b, tree_add_dir(b, e, "t", 0), fake_new());
	tree_add_link(b, e, "up", "..", 0);
	tree_add_link(b, e, "abs", "/d/e/t", 0);
	tree_add_link(b, 0, "file", "d/e/abs/d001/f001", 0);
	tree_add_link(b, 0, "loop", "./loop", 0);
	tree_add_link(b, 0, "dangling", "d/nothing", 0);
	tree_add_link(b, 0, "out", "../../etc/psw", 0);
	t = finish(b);
	path_is(t, "d/e/up/e/up/e/up/e/t", "/d/e/t");
	path_is(t, "d/e/abs/d002", "/d/e/t/d002");
	path_is(t, "file", "/d/e/t/d001/f001");
	no_path(t, "file/", -ENOTDIR, "/d/e/t/d001/f001 is not a directory");
	no_path(t, "loop", -ELOOP,
		"'loop' in /: Too many levels of symbolic links");
	no_path(t, "dangling/x", -ENOENT,
		"'dangling' in / is a symlink to d/nothing, which is missing");
	no_path(t, "out", -ENOENT,
		"'out' in / is a symlink to ../../etc/psw, which is missing");
	tree_free(t);
}

TEST(long_components_and_deep_trees)
{
	struct tree_builder *b = tree_builder_new();
	char *path = malloc(200001), small[8];
	struct error err;
	uint32_t d = 0, i;
	struct tree *t;
	struct node n;

	CHECK(path);
	for (i = 0; i < 100000; i++)
		d = tree_add_dir(b, d, "x", 0);
	t = finish(b);
	for (i = 0; i < 100000; i++)
		memcpy(path + 2 * i, "/x", 3);
	CHECK_OK(tree_walk(t, path, &n, NULL));
	CHECK_EQ_U(n.dir, 100000);
	CHECK_EQ_I(tree_path(t, n.ino, small, sizeof small), -ENAMETOOLONG);
	CHECK_OK(tree_path(t, n.ino, path, 200001));
	CHECK_EQ_U(strlen(path), 200000);
	CHECK_EQ_I(tree_lookup(t, n.ino, "x", &n), -ENOENT);
	memset(path, 'x', 300);
	path[300] = '\0';
	CHECK_EQ_I(tree_walk(t, path, &n, &err), -ENAMETOOLONG);
	CHECK_EQ_I(tree_path(t, TREE_ROOT, small, 1), -ENAMETOOLONG);
	CHECK_OK(tree_path(t, TREE_ROOT, small, 2));
	CHECK_STR(small, "/");
	tree_free(t);
	free(path);
}

/* Shuffled names and many equal ones; a quadratic step would take minutes. */
TEST(many_directories)
{
	enum { N = 200000 };
	struct tree_builder *b = tree_builder_new();
	uint64_t dirs, bytes;
	struct tree *t;
	struct node n;
	char name[32];
	unsigned i;

	for (i = 0; i < N; i++) {
		snprintf(name, sizeof name, "name-%06u",
			 (unsigned)(i * UINT64_C(7919) % N));
		CHECK_EQ_U(tree_add_dir(b, 0, name, 0), i + 1);
	}
	for (i = 0; i < N; i++)
		CHECK(tree_add_dir(b, 1 + i % 7, "same", 0) != UINT32_MAX);
	t = finish(b);
	for (i = 0; i < N; i += 97) {
		snprintf(name, sizeof name, "name-%06u", i);
		CHECK_OK(tree_lookup(t, TREE_ROOT, name, &n));
		CHECK_EQ_U(n.dir, i + 1);
	}
	tree_usage(t, &dirs, &bytes);
	CHECK_EQ_U(dirs, 2 * N + 1);
	CHECK(bytes < dirs * 70);
	tree_free(t);
}

int main(void)
{
	RUN(an_empty_tree_is_a_root);
	RUN(attributes);
	RUN(numbers_depend_on_names_alone);
	RUN(random_trees_equal_a_list);
	RUN(files_answer_for_themselves);
	RUN(the_root_may_be_files);
	RUN(files_and_directories_together);
	RUN(files_may_be_empty);
	RUN(many_directories_beside_files);
	RUN(misuse_is_an_error);
	RUN(stored_names_are_kept);
	RUN(equal_names_are_numbered);
	RUN(equal_long_names_are_numbered);
	RUN(links_are_followed);
	RUN(long_components_and_deep_trees);
	RUN(many_directories);
	return test_done();
}
