/* SPDX-License-Identifier: BSD-2-Clause */
/* Decodes a stored chunk of Zarr: undoes its codecs and its permutation of axes. */
#include <errno.h>
#include <string.h>

#include "base/copies.h"
#include "base/number.h"
#include "formats/zarr/zarr.h"

/* Return an upper limit of the bytes that a compressor makes of `n`. */
static uint64_t compressed_most(uint64_t n)
{
	return n + n / 8 + 65536;
}

/* ---- codecs -------------------------------------------------------------- */

struct sizes {
	/* Bytes in front of each step, as encoding goes. */
	uint64_t before[ZARR_STEPS_MAX + 1];
	/* The number is exact, else a maximum. */
	bool exact[ZARR_STEPS_MAX + 1];
};

static bool count_sizes(const struct zarr_codecs *c, uint64_t plain,
			struct sizes *out)
{
	out->before[0] = plain;
	out->exact[0] = true;
	for (unsigned i = 0; i < c->n; i++) {
		const struct zarr_step *s = &c->step[i];
		uint64_t n = out->before[i];

		out->exact[i + 1] = out->exact[i] && s->from;
		if (s->from && out->exact[i] && n % s->from)
			return false;
		out->before[i + 1] =
			s->from ? div_up(n, s->from) * s->to + s->more
				: compressed_most(n);
	}
	return true;
}

static int step_undo(const struct zarr_step *s, const void *in, size_t n,
		     void *out, size_t room, size_t *made, struct error *err)
{
	int r = s->codec->decode(&s->params, in, n, out, room, made, err);

	if (r == -ENOSPC && err)
		err->code = -EBADMSG;
	return r == -ENOSPC ? -EBADMSG : r;
}

static int wrong_size(uint64_t is, uint64_t should, struct error *err)
{
	return error_set(err, -EBADMSG,
			 "it decodes to %llu bytes instead of %llu",
			 (unsigned long long)is, (unsigned long long)should);
}

/* Undo all steps, last to first, on the `n` bytes of `b`, and write the result to `out`.
 * Takes over the caller's reference to `b`. */
static int undo_steps(const struct zarr_codecs *c, const struct sizes *sizes,
		      struct buf *b, size_t n, unsigned char *out,
		      struct error *err)
{
	int r = 0;

	for (unsigned i = c->n; i-- > 0 && r == 0;) {
		size_t room = (size_t)sizes->before[i], made = 0;
		struct buf *next = i ? buf_new(room ? room : 1, NULL) : NULL;

		if (i && !next)
			r = error_no_memory(err, "a decoded chunk");
		else
			r = step_undo(&c->step[i], b->data, n,
				      i ? next->data : out, room, &made, err);
		if (r == 0 && sizes->exact[i] && made != room)
			r = wrong_size(made, room, err);
		buf_unref(b);
		b = next;
		n = made;
	}
	buf_unref(b);
	return r;
}

static int read_and_undo(const struct zarr_codecs *c,
			 const struct zarr_bytes *from, unsigned char *out,
			 size_t size, struct error *err)
{
	struct sizes sizes;
	struct buf *b;
	int r;

	if (!count_sizes(c, size, &sizes))
		return error_set(
			err, -EBADMSG,
			"its codecs do not suit the size of its elements");
	if (from->n > sizes.before[c->n] ||
	    (sizes.exact[c->n] && from->n != sizes.before[c->n]))
		return error_set(err, -EBADMSG,
				 "it has %llu stored bytes instead of %s%llu",
				 (unsigned long long)from->n,
				 sizes.exact[c->n] ? "" : "no more than ",
				 (unsigned long long)sizes.before[c->n]);
	if (!c->n)
		return from->store->ops->read(from->store, from->value,
					      from->pos, out, size, err);
	b = buf_new(from->n ? (size_t)from->n : 1, NULL);
	if (!b)
		return error_no_memory(err, "a stored chunk");
	r = from->store->ops->read(from->store, from->value, from->pos, b->data,
				   (size_t)from->n, err);
	if (r < 0) {
		buf_unref(b);
		return r;
	}
	return undo_steps(c, &sizes, b, (size_t)from->n, out, err);
}

/* ---- axes ---------------------------------------------------------------- */

static void chunk_turn_axes(const struct zarr_array *z, const unsigned char *in,
			    unsigned char *out)
{
	const uint8_t *order = z->codecs.order;
	struct copy_axis a[RANK_MAX];
	size_t in_step = z->stored.size, out_step = in_step;

	for (unsigned i = z->rank; i-- > 0;) {
		a[order[i]].in = in_step;
		in_step *= z->chunk[order[i]];
		a[i].out = out_step;
		out_step *= z->chunk[i];
		a[i].n = z->chunk[i];
	}
	copy_box(out, in, a, z->rank, z->stored.size);
}

int zarr_decode(const struct zarr_own *own, const struct zarr_bytes *from,
		unsigned char *out, size_t size, struct error *err)
{
	const struct zarr_array *z = own->z;
	size_t elements = size / z->stored.size;
	struct buf *b = NULL;
	int r;

	if (z->codecs.turned) {
		b = buf_new(size ? size : 1, NULL);
		if (!b)
			return error_no_memory(err, "a decoded chunk");
	}
	r = read_and_undo(&z->codecs, from, b ? b->data : out, size, err);
	if (r == 0 && own->recode)
		recode_run(own->recode, b ? b->data : out, b ? b->data : out,
			   elements);
	if (r == 0 && b)
		chunk_turn_axes(z, b->data, out);
	buf_unref(b);
	return r;
}

bool zarr_has_checksum(struct array *a, uint32_t part)
{
	const struct zarr_own *own = a->own;
	const struct zarr_codecs *c = &own->z->codecs;

	(void)part;
	for (unsigned i = 0; i < c->n; i++)
		if (c->step[i].codec->has_checksum)
			return true;
	return false;
}
