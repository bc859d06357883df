/* SPDX-License-Identifier: BSD-2-Clause */
/* A directory of files that are pieces of chunks. */
/*
 * FILES files of SIZE bytes, PER of them in a chunk; a chunk that is BAD does not decode,
 * and every 50th file has LARGE bytes instead.
 */
#ifndef TESTS_UNIT_PIECES_FAKE_H
#define TESTS_UNIT_PIECES_FAKE_H

#include <errno.h>

#include "base/counters.h"
#include "fs/fs.h"
#include "test.h"

#define CHUNK (PER * SIZE)

/* What is in chunks: in each the same, but from another place on. */
#define SHIFT 977
#define PIECES ((FILES / PER) * SHIFT + CHUNK + LARGE)
static unsigned char pieces[PIECES];
static const unsigned char *bytes_of(uint64_t chunk, uint64_t at)
{
	return pieces + chunk * SHIFT + at;
}
static bool is_large(uint64_t file)
{
	return file % 50 == 49;
}

static _Atomic unsigned fetched, fetched_bad;
static int locate(const struct chunk_set *s, uint64_t index,
		  const struct buf *segment, struct chunk *out,
		  struct error *err)
{
	(void)s;
	(void)index;
	(void)segment;
	(void)err;
	memset(out, 0, sizeof *out);
	out->state = CHUNK_FETCH;
	out->size = out->stored = CHUNK;
	return 0;
}
static int fetch(struct chunk_set *s, uint64_t index, _Atomic uint64_t *gauge,
		 struct buf **out, struct error *err)
{
	struct buf *b;

	(void)s;
	atomic_fetch_add(&fetched, 1);
	if (index == BAD) {
		atomic_fetch_add(&fetched_bad, 1);
		return error_set(err, -ESTALE, "it changed");
	}
	b = buf_new(CHUNK + LARGE, gauge);
	CHECK(b);
	memcpy(b->data, bytes_of(index, 0), CHUNK + LARGE);
	*out = b;
	return 0;
}
static void describe(const struct chunk_set *s, uint64_t index, char *buf,
		     size_t n)
{
	(void)s;
	snprintf(buf, n, "chunk %llu", (unsigned long long)index);
}
static const struct chunk_set_ops set_ops = {.index_page_of =
						     chunk_text_index_page_of,
					     .locate = locate,
					     .fetch = fetch,
					     .describe = describe};
static struct chunk_set set = {.ops = &set_ops, .unit = CHUNK};

static uint64_t f_count(const struct files *f, uint64_t dir)
{
	(void)f;
	(void)dir;
	return FILES;
}
static uint64_t f_child(const struct files *f, uint64_t dir, uint64_t i,
			uint32_t *type)
{
	(void)f;
	(void)dir;
	*type = S_IFREG;
	return i + 1;
}
static int f_name(const struct files *f, uint64_t dir, uint64_t i, char *buf,
		  size_t n)
{
	(void)f;
	(void)dir;
	return snprintf(buf, n, "%06llu", (unsigned long long)i) < (int)n
		       ? 0
		       : -ENAMETOOLONG;
}
static int f_find(const struct files *f, uint64_t dir, const char *name,
		  uint64_t *node)
{
	(void)f;
	(void)dir;
	*node = strtoull(name, NULL, 10) + 1;
	return *node <= FILES ? 0 : -ENOENT;
}
static int f_parent(const struct files *f, uint64_t node, uint64_t *dir)
{
	(void)f;
	*dir = 0;
	return node <= FILES ? 0 : -ENOENT;
}
static bool f_slow(const struct files *f, uint64_t node)
{
	(void)f;
	(void)node;
	return false;
}
static int f_attr(struct files *f, uint64_t node, struct pinner *p,
		  struct attr *out, struct error *err)
{
	(void)f;
	(void)p;
	(void)err;
	if (node > FILES)
		return -ENOENT;
	*out = (struct attr){.mode = S_IFREG | 0444, .nlink = 1, .size = SIZE};
	if (node == 0)
		out->mode = S_IFDIR | 0555;
	else if (is_large(node - 1))
		out->size = LARGE;
	return 0;
}
static int f_map(const struct files *f, uint64_t node, uint64_t off,
		 struct plan *p, struct error *err)
{
	uint64_t i = node - 1;

	(void)f;
	(void)err;
	plan_chunk(p, &set, i / PER, i % PER * SIZE + off,
		   (is_large(i) ? LARGE : SIZE) - off);
	return 0;
}
static void f_free(struct files *f)
{
	(void)f;
}
static const struct files_ops ops = {.count = f_count,
				     .child = f_child,
				     .name = f_name,
				     .find = f_find,
				     .parent = f_parent,
				     .attr_is_slow = f_slow,
				     .attr = f_attr,
				     .map = f_map,
				     .free = f_free};
static struct files files = {&ops};

/* ---- a file system of it ---------------------------------------------------- */

static struct store *store;
static struct fs *fs;
static struct error err;
static uint64_t base; /* inode of file 0 */

static void pieces_setup(uint64_t cache_size)
{
	struct fs_options fo = {.version = "1", .config = "c"};
	struct store_options so = {.cache_size = cache_size};
	struct tree_builder *b = tree_builder_new();
	static struct handles *handles;
	static struct tree *tree;
	struct node n;

	for (uint64_t i = 0; i < PIECES; i++)
		pieces[i] =
			(unsigned char)(i * UINT64_C(0x9e3779b97f4a7c15) >> 56);
	set.id = chunk_set_new_id();
	CHECK_OK(handles_new(&handles, 0, 2, &err));
	so.handles = handles;
	CHECK_OK(store_new(&store, &so, &err));
	tree_set_files(b, tree_add_dir(b, 0, "data", 1000), &files);
	CHECK_OK(tree_finish(b, &tree, &err));
	tree_builder_free(b);
	CHECK_OK(fs_new(&fs, tree, store, &fo, &err));
	CHECK_OK(tree_walk(tree, "data/000000", &n, &err));
	base = n.ino;
}

#endif
