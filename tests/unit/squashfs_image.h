/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests of squashfs: make images, open them, read what is in them. */
#ifndef TESTS_UNIT_SQUASHFS_IMAGE_H
#define TESTS_UNIT_SQUASHFS_IMAGE_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "formats/squashfs/private.h"
#include "test.h"

static char scratch[64] = "/tmp/source-squashfs-XXXXXX";

/* Run a command in the scratch directory; false: it failed. */
TEST_MAYBE __attribute__((format(printf, 1, 2))) static bool
shell(const char *fmt, ...)
{
	char command[4096];
	va_list ap;
	size_t n =
		(size_t)snprintf(command, sizeof command, "cd %s && ", scratch);

	va_start(ap, fmt);
	vsnprintf(command + n, sizeof command - n, fmt, ap);
	va_end(ap);
	return system(command) == 0;
}

TEST_MAYBE static const char *in_scratch(const char *name)
{
	static _Thread_local char path[4][4096];
	static _Thread_local unsigned turn;
	char *p = path[turn++ % 4];

	snprintf(p, sizeof path[0], "%s/%s", scratch, name);
	return p;
}

/* `n` bytes of which some compress and some do not. */
TEST_MAYBE static void write_content(const char *name, size_t n, unsigned noise)
{
	FILE *f = fopen(in_scratch(name), "w");

	CHECK(f);
	for (size_t i = 0; i < n; i++)
		putc((i / 512) % 8 < noise ? (int)(test_random() & 255)
					   : (int)(i / 700 + n) & 255,
		     f);
	CHECK_OK(fclose(f));
}

struct image {
	struct handles *handles;
	struct backing backing;
	struct squashfs_info info;
	struct members members;
	struct chunk_set *blocks;
};

TEST_MAYBE static int image_open_at(struct image *im, const char *path,
				    uint64_t offset, struct error *err)
{
	uint32_t file;
	int r;

	memset(im, 0, sizeof *im);
	CHECK_OK(handles_new(&im->handles, 8, 0, err));
	file = handles_add(im->handles, path);
	r = backing_file(&im->backing, im->handles, NULL, file, offset, err);
	if (r == 0)
		r = squashfs_members(&im->backing, NULL, &im->members,
				     &im->info, NULL, NULL, err);
	if (r == 0)
		r = squashfs_blocks_new(&im->blocks, &im->members, &im->backing,
					&im->info, err);
	return r;
}

/* Blocks that were decoded last: many small files are in one. */
#define LAST_BLOCKS 16
static struct last_block {
	const struct image *im;
	uint64_t i;
	struct buf *buf; /* NULL: none */
} last_blocks[LAST_BLOCKS];

TEST_MAYBE static void forget(struct last_block *last)
{
	if (last->buf)
		buf_unref(last->buf);
	last->buf = NULL;
}

TEST_MAYBE static void image_close(struct image *im)
{
	for (unsigned i = 0; i < LAST_BLOCKS; i++)
		forget(&last_blocks[i]);
	squashfs_blocks_free(im->blocks);
	members_free(&im->members);
	handles_free(im->handles);
}

/* The decoded bytes of block `i`, or an error. */
TEST_MAYBE static int block_bytes(const struct image *im, uint64_t i,
				  struct buf **out, struct error *err)
{
	struct chunk c;
	int r;

	CHECK_EQ_U(im->blocks->ops->index_page_of(im->blocks, i), UINT64_MAX);
	r = im->blocks->ops->locate(im->blocks, i, NULL, &c, err);
	if (r < 0)
		return r;
	if (c.state == CHUNK_FETCH)
		return im->blocks->ops->fetch(im->blocks, i, NULL, out, err);
	*out = buf_new(c.size ? c.size : 1, NULL);
	CHECK(*out);
	if (c.state == CHUNK_ABSENT)
		memset((*out)->data, 0, c.size);
	else
		r = handles_read(im->handles, c.file, c.pos, (*out)->data,
				 c.size, err);
	if (r < 0)
		buf_unref(*out);
	return r;
}

/* `n` bytes at `off` of block i, as member_files would have them. */
TEST_MAYBE static int piece_bytes(const struct image *im, uint64_t i,
				  size_t off, void *to, size_t n,
				  struct error *err)
{
	struct last_block *last = &last_blocks[i % LAST_BLOCKS];
	struct buf *b = last->buf;
	int r = 0;

	if (!b || last->im != im || last->i != i) {
		forget(last);
		r = block_bytes(im, i, &b, err);
		if (r < 0)
			return r;
		*last = (struct last_block){im, i, b};
	}
	if (off > b->size || n > b->size - off)
		r = error_set(err, -EIO, "beyond the block");
	else
		memcpy(to, b->data + off, n);
	return r;
}

/* Block k of record i, up to block_size bytes; how many, 0 at the end. */
TEST_MAYBE static ssize_t member_piece(const struct image *im, uint64_t i,
				       uint64_t k, void *to, struct error *err)
{
	const struct members *m = &im->members;
	const struct member_record *r = &m->at[i];
	const struct member_block *b;
	uint64_t at = k * m->block_size, where, mask = (1u << 20) - 1;
	size_t n;
	int e;

	if (r->kind == MEMBER_LINK)
		r = &m->at[r->data];
	if (at >= r->size)
		return 0;
	n = r->size - at < m->block_size ? (size_t)(r->size - at)
					 : m->block_size;
	switch (r->kind) {
	case MEMBER_RANGE:
		e = backing_read(&im->backing, r->data + at, to, n, err);
		return e < 0 ? e : (ssize_t)n;
	case MEMBER_FRAGMENT:
		where = r->data;
		break;
	default:
		CHECK_EQ_U(r->kind, MEMBER_BLOCKS);
		b = &m->blocks[r->data + k];
		where = b->flags & MEMBER_TAIL
				? b->pos
				: MEMBER_IN_BLOCK(r->data + k, 0);
	}
	e = piece_bytes(im, where >> 20, (size_t)(where & mask), to, n, err);
	return e < 0 ? e : (ssize_t)n;
}

/* The record of "a/b"; fails the test where there is none. */
TEST_MAYBE static uint64_t record_of(const struct image *im, const char *path)
{
	uint64_t at = 0;
	char name[300];

	while (*path) {
		size_t n = strcspn(path, "/");

		CHECK(n < sizeof name);
		memcpy(name, path, n);
		name[n] = '\0';
		if (members_find(&im->members, at, name, &at) < 0)
			test_fail(__FILE__, __LINE__, "there is no %s", path);
		path += n + (path[n] == '/');
	}
	return at;
}

/* Bytes of a file into memory, to change and write them back. */
TEST_MAYBE static unsigned char *slurp(const char *path, size_t *n)
{
	FILE *f = fopen(path, "r");
	unsigned char *p;

	CHECK(f);
	CHECK_OK(fseek(f, 0, SEEK_END));
	*n = (size_t)ftell(f);
	rewind(f);
	p = malloc(*n ? *n : 1);
	CHECK(p && fread(p, 1, *n, f) == *n);
	fclose(f);
	return p;
}
TEST_MAYBE static void spill(const char *path, const void *data, size_t n)
{
	FILE *f = fopen(path, "w");

	CHECK(f && fwrite(data, 1, n, f) == n && fclose(f) == 0);
}

#endif
