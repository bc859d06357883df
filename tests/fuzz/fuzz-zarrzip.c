/* SPDX-License-Identifier: BSD-2-Clause */
/* A whole Zarr store in a zip: members, documents, chunks. */
/*
 * The input is a zip, or (first byte not 'P') its members: a byte of length and a name, two
 * of length and data, again and again.  Those are put into a zip with the right checksums, so
 * that what is said in documents gets past them.
 *
 * Every array that is shown has the elements that its shape promises, or an error that says
 * why not.
 */
#include <libdeflate.h>

#include "base/bytes.h"
#include "fuzz_stream.h"
#include "formats/archive/archive.h"
#include "formats/bundles.h"
#include "tensor/read.h"

#define CHUNK_MOST (UINT64_C(1) << 20)
#define ARRAYS_MOST 8
#define MEMBERS_MOST 24

/* ---- a zip -------------------------------------------------------------------- */

struct made {
	unsigned char *at;
	size_t n;
};

static void put(struct made *m, const void *data, size_t n)
{
	if (n)
		memcpy(m->at + m->n, data, n);
	m->n += n;
}

static void store_le16(unsigned char *to, uint16_t v)
{
	to[0] = (unsigned char)v;
	to[1] = (unsigned char)(v >> 8);
}

/* What both headers of a member have, from "version needed" on. */
static void put_fields(struct made *m, const uint8_t *data, size_t n,
		       size_t name)
{
	unsigned char f[26] = {20};

	store_le32(f + 10, libdeflate_crc32(0, data, n));
	store_le32(f + 14, (uint32_t)n);
	store_le32(f + 18, (uint32_t)n);
	store_le16(f + 22, (uint16_t)name);
	put(m, f, sizeof f);
}

static void put_end(struct made *m, const struct made *directory, unsigned n)
{
	unsigned char end[22] = "PK\5\6";

	store_le16(end + 8, (uint16_t)n);
	store_le16(end + 10, (uint16_t)n);
	store_le32(end + 12, (uint32_t)directory->n);
	store_le32(end + 16, (uint32_t)m->n);
	put(m, directory->at, directory->n);
	put(m, end, sizeof end);
}

/* malloc'ed. */
static struct made zip_of(const uint8_t *data, size_t size)
{
	static const unsigned char zeros[14];
	size_t room = 2 * size + MEMBERS_MOST * 100 + 100;
	struct made m = {malloc(room), 0}, d = {malloc(room), 0};
	struct fuzz_input in = {data, size};
	unsigned n = 0;

	while (in.size && n < MEMBERS_MOST) {
		uint32_t at = (uint32_t)m.n;
		size_t name = fuzz_u8(&in), len;
		const uint8_t *called = in.data;
		unsigned char where[4];

		name = name < in.size ? name : in.size;
		in.data += name;
		in.size -= name;
		len = fuzz_u16(&in);
		len = len < in.size ? len : in.size;
		put(&m, "PK\3\4", 4);
		put_fields(&m, in.data, len, name);
		put(&m, called, name);
		put(&m, in.data, len);
		put(&d, "PK\1\2\24\0", 6);
		put_fields(&d, in.data, len, name);
		put(&d, zeros, 10);
		store_le32(where, at);
		put(&d, where, 4);
		put(&d, called, name);
		in.data += len;
		in.size -= len;
		n++;
	}
	put_end(&m, &d, n);
	free(d.at);
	return m;
}

/* ---- bytes that stand still ------------------------------------------------------ */

struct pinning {
	struct pinner pinner; /* first member */
	struct handles *handles;
};
static _Atomic uint64_t gauge;

static int pin_chunk(struct handles *h, const struct extent *x,
		     struct span *out, struct error *err)
{
	struct chunk_set *set = x->u.chunk.set;
	uint64_t i = x->u.chunk.index,
		 segment = set->ops->index_page_of(set, i);
	struct buf *places = NULL;
	struct chunk c;
	int r = 0;

	if (segment != UINT64_MAX)
		r = set->ops->load_index_page(set, segment, &gauge, &places,
					      err);
	if (r == 0)
		r = set->ops->locate(set, i, places, &c, err);
	buf_unref(places);
	if (r < 0)
		return r;
	if (c.size > CHUNK_MOST)
		return error_set(err, -ENOMEM, "too large for here");
	FUZZ_CHECK(c.state == CHUNK_FETCH || c.state == CHUNK_STORED ||
		   c.state == CHUNK_ABSENT);
	if (c.state == CHUNK_ABSENT) {
		out->kind = SPAN_FILL;
		return 0;
	}
	if (c.state == CHUNK_FETCH) {
		r = set->ops->fetch(set, i, &gauge, &out->buf, err);
	} else {
		out->buf = buf_new(c.size, &gauge);
		FUZZ_CHECK(out->buf);
		r = chunk_load(h, &c, out->buf->data, err);
	}
	if (r < 0)
		return r;
	FUZZ_CHECK(x->u.chunk.skip + x->len <= out->buf->size);
	out->kind = SPAN_MEM;
	out->mem = out->buf->data + x->u.chunk.skip;
	return 0;
}

static int pin(struct pinner *p, const struct extent *x, struct span *out,
	       struct error *err)
{
	struct handles *h = ((struct pinning *)p)->handles;

	*out = (struct span){.len = x->len};
	switch (x->kind) {
	case EXTENT_MEM:
		out->kind = SPAN_MEM;
		out->mem = x->u.mem.data;
		return 0;
	case EXTENT_FILL:
		out->kind = SPAN_FILL;
		return 0;
	case EXTENT_FILE:
		out->kind = SPAN_FD;
		out->pos = x->u.file.pos;
		return handles_get(h, x->u.file.file, &out->handle, err);
	default:
		return pin_chunk(h, x, out, err);
	}
}

static void unpin(struct pinner *p, struct span *s)
{
	if (s->kind == SPAN_FD)
		handles_put(((struct pinning *)p)->handles, &s->handle);
	buf_unref(s->buf);
}

/* ---- arrays ---------------------------------------------------------------------- */

static void check_window(struct tensor *t, const struct box *b, uint64_t off,
			 uint64_t n, struct pinner *p)
{
	static unsigned char to[4096];
	struct error err = {0};
	int r;

	n = n < sizeof to ? n : sizeof to;
	r = tensor_read(t, b, off, to, n, p, &err);
	FUZZ_CHECK(r == 0 || (r == err.code && *err.text));
}

static void check_array(struct tensor *t, struct pinner *p)
{
	struct error err = {0};
	char *text = tensor_info_text(t, &err);
	struct box b;

	FUZZ_CHECK(text || *err.text);
	free(text);
	if (t->why_not || !t->bytes)
		return;
	for (unsigned i = 0; i < t->rank; i++) {
		b.start[i] = 0;
		b.count[i] = t->shape[i];
	}
	check_window(t, &b, 0, t->bytes, p);
	check_window(t, &b, t->bytes - (t->bytes < 100 ? t->bytes : 100), 100,
		     p);
	check_window(t, &b, t->bytes / 2, t->bytes - t->bytes / 2, p);
}

static void check_tree(struct tree *t, struct pinner *p)
{
	struct error err = {0};
	struct files *f;
	struct node at;
	struct attr a;
	const char *name;
	unsigned n = 0;

	FUZZ_CHECK(bundles_add(t, &err) == 0);
	for (uint32_t d = 0; d < tree_dirs(t); d++)
		for (uint32_t i = 0; tree_dir_entry(t, d, i, &f, &name); i++)
			if (f && tensor_of_files(f) && n++ < ARRAYS_MOST)
				check_array(tensor_of_files(f), p);
	if (tree_lookup(t, TREE_ROOT, "tensor.safetensors", &at) == 0)
		(void)tree_attr(t, &at, p, &a, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct archive_options none = {.index = "none"};
	struct attr like = {.mode = S_IFREG | 0444};
	struct made made = {NULL, 0};
	struct source_args a = {
		.path = "fuzz", .archive = &none, .like = &like};
	struct source *source = NULL;
	struct pinning pinning = {.pinner = {.pin = pin, .unpin = unpin}};
	struct error err = {0};
	struct tree *t = NULL;
	struct fuzz_file f;
	int r;

	if (!size)
		return 0;
	if (*data != 'P') {
		made = zip_of(data, size);
		data = made.at;
		size = made.n;
	}
	fuzz_file_open(&f, data, size);
	pinning.handles = f.handles;
	f.backing.pinner = &pinning.pinner;
	a.inside = &f.backing;
	a.handles = f.handles;
	a.pinner = &pinning.pinner;
	a.tree = tree_builder_new();
	view_options_default(&a.views);
	r = source_zip.open(&a, &source, &err);
	FUZZ_CHECK(r == 0 || *err.text);
	if (r == 0 && tree_finish(a.tree, &t, &err) == 0)
		check_tree(t, &pinning.pinner);
	tree_builder_free(a.tree);
	tree_free(t);
	source_close(source);
	fuzz_file_close(&f);
	free(made.at);
	return 0;
}
