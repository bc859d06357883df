/* SPDX-License-Identifier: BSD-2-Clause */
/* Any bytes as a zip: the table can be used, and its bytes are those it checked. */
/*
 * What is read of a stored or deflated member has the CRC-32 of the directory, or is
 * an error; every range lies in the space, and every place in the list of places.
 */
#include <libdeflate.h>

#include "fuzz_stream.h"
#include "formats/zip/zip.h"

#define MOST ((uint64_t)4 << 20)

static int pin(struct pinner *p, const struct extent *x, struct span *out,
	       struct error *err)
{
	struct chunk_set *set;
	struct chunk c;
	int r;

	(void)p;
	*out = (struct span){.len = x->len};
	if (x->kind == EXTENT_MEM) {
		out->kind = SPAN_MEM;
		out->mem = x->u.mem.data;
		return 0;
	}
	if (x->kind == EXTENT_FILE) {
		out->kind = SPAN_FD;
		out->handle.file = x->u.file.file;
		out->pos = x->u.file.pos;
		return 0;
	}
	FUZZ_CHECK(x->kind == EXTENT_CHUNK);
	set = x->u.chunk.set;
	r = set->ops->locate(set, x->u.chunk.index, NULL, &c, err);
	if (r == 0) {
		static _Atomic uint64_t gauge; /* until it is unpinned */

		r = set->ops->fetch(set, x->u.chunk.index, &gauge, &out->buf,
				    err);
	}
	if (r < 0)
		return r;
	FUZZ_CHECK(x->u.chunk.skip + x->len <= out->buf->size);
	out->kind = SPAN_MEM;
	out->mem = out->buf->data + x->u.chunk.skip;
	return 0;
}

static void unpin(struct pinner *p, struct span *s)
{
	(void)p;
	buf_unref(s->buf);
}

static void check_member(const struct zip *z, const struct volume *v,
			 const struct member_record *r)
{
	struct backing b = volume_range(v, r->data, r->size);
	struct error err = {0};
	uint64_t first, last, at;
	unsigned char *to;
	uint32_t crc;
	int e;

	FUZZ_CHECK(r->data <= v->backing.size &&
		   r->size <= v->backing.size - r->data && b.size == r->size);
	FUZZ_CHECK(zip_place_range(z, r->data, r->size, &first, &last));
	FUZZ_CHECK(first <= last && last < zip_places(z));
	(void)zip_storage_name(z, r->data, &at);
	(void)zip_stored_crc(z, r->data, &crc);
	if (r->size > MOST)
		return;
	to = malloc(r->size);
	e = backing_read(&b, 0, to, r->size, &err);
	FUZZ_CHECK(e == 0 || (e == err.code && *err.text));
	if (first == last && zip_place_size(z, first) == r->size &&
	    r->size > 1 && zip_place_check(z, first, &err) == 0)
		FUZZ_CHECK(e == 0);
	free(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pinner pinner = {.pin = pin, .unpin = unpin};
	struct zip_scanning s = {0};
	struct error err = {0};
	struct fuzz_file f;
	struct members m;
	struct zip *z;
	int r;

	if (!size)
		return 0;
	(void)zip_probe(data, size);
	fuzz_file_open(&f, data, size);
	f.backing.pinner = &pinner;
	(void)zip_ends_file(&f.backing);
	s.stored = &f.backing;
	r = zip_scan(&s, &m, &z, &err);
	FUZZ_CHECK(r == 0 || (r == err.code && *err.text));
	if (r == 0) {
		struct volume v = zip_volume(z);

		for (uint64_t i = 0; i < m.n && i < 64; i++)
			if (m.at[i].kind == MEMBER_RANGE)
				check_member(z, &v, &m.at[i]);
		members_free(&m);
		zip_free(z);
	}
	fuzz_file_close(&f);
	return 0;
}
