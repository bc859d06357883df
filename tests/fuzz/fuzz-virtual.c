/* SPDX-License-Identifier: BSD-2-Clause */
/* Virtual datasets of any kind: mappings to mosaics, and what workers answer. */
/*
 * The input describes a dataset: shape, mappings with regular hyperslabs (with
 * and without end), names, patterns.  It goes through the bytes in which workers
 * answer and back, unharmed; cut or changed bytes are refused or give another
 * valid description.  A tensor is made of it, and every window of its elements
 * can be asked for: their sources are missing, which must be said.
 */
#include <errno.h>

#include "formats/hdf5/file/source.h"
#include "formats/hdf5/layout/tensor.h"
#include "fuzz.h"
#include "formats/hdf5/worker/request.h"
#include "views/view.h"

struct bytes {
	uint8_t *at;
	size_t n;
};

static void put(void *ctx, const void *data, size_t n)
{
	struct bytes *b = ctx;

	b->at = realloc(b->at, b->n + n + 1);
	FUZZ_CHECK(b->at);
	if (n)
		memcpy(b->at + b->n, data, n);
	b->n += n;
}

/* Small numbers mostly; sometimes ones near the limits. */
static uint64_t number(struct fuzz_input *in)
{
	uint8_t v = fuzz_u8(in);

	if (v < 240)
		return v % 24;
	return v < 250 ? UINT64_MAX - (v & 3) : UINT64_C(1) << (v & 63);
}

static uint64_t *slab(struct fuzz_input *in, unsigned rank)
{
	uint64_t *s = calloc(4 * rank + 1, sizeof *s);

	FUZZ_CHECK(s);
	for (unsigned i = 0; i < 4 * rank; i++)
		s[i] = number(in);
	return s;
}

static char *name(struct fuzz_input *in)
{
	static const char *const names[] = {
		"a.h5", "b%b.h5", "%%.h5", ".", "%x", "/no/dir/c.h5", "d%"};

	return strdup(names[fuzz_u8(in) % 7]);
}

static void describe(struct fuzz_input *in, struct hdf5_description *d)
{
	static const struct dtype i4 = {.kind = DTYPE_INT, .size = 4};

	memset(d, 0, sizeof *d);
	d->rank = d->own_rank = fuzz_u8(in) % 4;
	for (unsigned i = 0; i < d->rank; i++)
		d->shape[i] = number(in);
	d->type.stored = d->type.served = i4;
	d->storage = HDF5_VIRTUAL;
	d->nmappings = fuzz_u8(in) % 5;
	d->mapping = calloc(d->nmappings + 1, sizeof *d->mapping);
	FUZZ_CHECK(d->mapping);
	for (size_t i = 0; i < d->nmappings; i++) {
		struct hdf5_mapping *m = &d->mapping[i];

		m->all = fuzz_u8(in) & 1;
		m->from_rank = fuzz_u8(in) % 4;
		m->to = slab(in, d->own_rank);
		m->from = m->all ? NULL : slab(in, m->from_rank);
		m->file = name(in);
		m->dataset = name(in);
	}
}

static void check_message(const struct hdf5_description *d, uint8_t flip)
{
	struct bytes a = {NULL, 0}, b = {NULL, 0};
	struct hdf5_description back;
	struct error err = {0};

	hdf5_description_pack(d, put, &a);
	FUZZ_CHECK(!hdf5_description_unpack(a.at, a.n, &back, &err));
	FUZZ_CHECK(back.nmappings == d->nmappings && back.rank == d->rank);
	hdf5_description_pack(&back, put, &b);
	FUZZ_CHECK(a.n == b.n && !memcmp(a.at + sizeof *d, b.at + sizeof *d,
					 a.n - sizeof *d));
	hdf5_description_free(&back);
	FUZZ_CHECK(hdf5_description_unpack(a.at, a.n - 1, &back, &err) < 0);
	a.at[a.n * flip / 256] ^= 1 + flip;
	if (!hdf5_description_unpack(a.at, a.n, &back, &err))
		hdf5_description_free(&back);
	free(a.at);
	free(b.at);
}

static void check_windows(struct tensor *t)
{
	struct box whole;
	struct plan plan;
	struct error err = {0};

	if (t->why_not || !t->elements)
		return;
	for (unsigned i = 0; i < t->rank; i++) {
		whole.start[i] = 0;
		whole.count[i] = t->shape[i];
	}
	for (uint64_t at = 0; at < t->bytes; at += 1 + t->bytes / 7) {
		uint64_t n = t->bytes - at < 64 ? t->bytes - at : 64;
		int r = tensor_prepare_box(t, &whole, at, n, &err);

		FUZZ_CHECK(r == 0 || r == -ENODATA || r == -EIO);
		plan_init(&plan, 64);
		if (!r)
			FUZZ_CHECK(!tensor_map_box(t, &whole, at, &plan, &err));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	struct hdf5_source s = {.path = (char *)"/nonexistent/main.h5",
				.dir = (char *)"/nonexistent"};
	struct hdf5_place at = {&s, 0, "/d"};
	struct hdf5_description d;
	struct error err = {0};
	struct hdf5_tensor *h;

	FUZZ_CHECK(!handles_new(&s.handles, 8, 1, &err));
	view_options_default(&s.views);
	intern_init(&s.intern);
	at.file = s.file = handles_add(s.handles, s.path);
	describe(&in, &d);
	check_message(&d, fuzz_u8(&in));
	h = hdf5_tensor_new(&at, "/d", &d, NULL);
	FUZZ_CHECK(h);
	check_windows(&h->t);
	tensor_free(&h->t);
	hdf5_description_free(&d);
	intern_free(&s.intern);
	handles_free(s.handles);
	return 0;
}
