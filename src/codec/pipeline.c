/* SPDX-License-Identifier: BSD-2-Clause */
/* An ordered list of filters, undone last to first, with a skip mask. */
/*
 * A chunk was written through filters 0, 1, ... n-1; undoing them is n stages from the
 * back.  A stage must give back as many bytes as its filter once got:
 *
 *	size -> shuffle -> size -> deflate -> ? -> fletcher32 -> ? + 4
 *
 * So the length is exactly known up to the first compressor, and checked.  The lengths
 * behind it can only be bounded, by the most that a compressor could have made of its
 * input.  Trailers are checked in place and cut off without a copy, filters that change
 * nothing are left out, and the last stage writes into the caller's buffer.  So [deflate]
 * copies nothing, [shuffle, deflate] needs one scratch buffer, and no pipeline needs more
 * than two, which take turns.
 *
 * Scratch is a `buf`: one that is too large for the thread to keep goes to the buffers'
 * own free list, which is bounded for the process, and comes back with its pages in
 * place.
 */
#include "codec/pipeline.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "codec/pipeline_private.h"

struct stage {
	const struct pipeline_filter *filter;
	size_t size; /* bytes it gives back: if `exact` exactly, else at most */
	bool exact;
};

static _Thread_local struct buf *scratch[SCRATCHES];

static void scratch_free(void)
{
	for (unsigned i = 0; i < SCRATCHES; i++) {
		buf_unref(scratch[i]);
		scratch[i] = NULL;
	}
}

void *scratch_get(enum scratch which, size_t size)
{
	struct buf **b = &scratch[which];

	if (*b && (*b)->capacity >= size)
		return (*b)->data;
	if (codec_thread_at_exit(scratch_free) < 0)
		return NULL;
	buf_unref(*b);
	*b = buf_new(size ? size : 1, NULL);
	return *b ? (*b)->data : NULL;
}

void scratch_trim(enum scratch which)
{
	if (scratch[which] &&
	    scratch[which]->capacity > PIPELINE_SCRATCH_KEEP) {
		buf_unref(scratch[which]);
		scratch[which] = NULL;
	}
}

void *pipeline_stored_scratch(size_t size)
{
	return scratch_get(SCRATCH_STORED, size);
}

void pipeline_scratch_release(void)
{
	for (unsigned i = 0; i < SCRATCHES; i++)
		scratch_trim(i);
}

static bool filter_is_skipped(unsigned filter, uint32_t skip_mask)
{
	return skip_mask >> filter & 1;
}

static bool filter_is_identity(const struct pipeline_filter *f)
{
	return f->codec && f->codec->is_identity &&
	       f->codec->is_identity(&f->params);
}

/* Set the filter's usual name, or else the one that the file gives, made printable. */
static void name_filter(struct pipeline_filter *f, const char *file_name)
{
	const char *ours = codec_name_of_id(f->id);

	if (ours)
		snprintf(f->name, sizeof f->name, "%s", ours);
	else if (file_name && *file_name)
		snprintf(f->name, sizeof f->name, "%s", file_name);
	else
		snprintf(f->name, sizeof f->name, "filter %u", f->id);
	for (char *c = f->name; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

/*
 * Only filters that we do not decode have more values than CODEC_CD_MAX (nbit of a
 * compound type).  Two such pipelines must not be taken for equal because their first
 * values are, so the last value kept becomes a hash (FNV-1a) of it and the rest.
 */
static void keep_params(struct codec_params *p, const uint32_t *cd, unsigned n)
{
	uint32_t hash = 2166136261u;

	p->n = n < CODEC_CD_MAX ? n : CODEC_CD_MAX;
	if (p->n)
		memcpy(p->cd, cd, p->n * sizeof *cd);
	if (n <= CODEC_CD_MAX)
		return;
	for (unsigned i = CODEC_CD_MAX - 1; i < n; i++)
		for (unsigned shift = 0; shift < 32; shift += 8)
			hash = (hash ^ (cd[i] >> shift & 0xff)) * 16777619u;
	p->cd[CODEC_CD_MAX - 1] = hash;
}

int pipeline_add_undecoded(struct pipeline *p, uint32_t id,
			   const char *file_name, const uint32_t *cd,
			   unsigned n_cd, uint32_t elem_size, struct error *err)
{
	struct pipeline_filter *f = &p->filter[p->n];

	if (p->n >= PIPELINE_MAX)
		return error_set(err, -EBADMSG,
				 "pipeline: more than %d filters",
				 PIPELINE_MAX);
	memset(f, 0, sizeof *f);
	f->id = id;
	f->codec = codec_by_id(id);
	name_filter(f, file_name);
	f->codec = NULL;
	keep_params(&f->params, cd, n_cd);
	f->params.elem_size = elem_size;
	p->n++;
	return 0;
}

int pipeline_add(struct pipeline *p, uint32_t id, const char *file_name,
		 const uint32_t *cd, unsigned n_cd, uint32_t elem_size,
		 struct error *err)
{
	const struct codec *codec =
		n_cd > CODEC_CD_MAX ? NULL : codec_by_id(id);
	int r = pipeline_add_undecoded(p, id, file_name, cd, n_cd, elem_size,
				       err);

	if (r < 0 || !codec)
		return r;
	if (codec->check) {
		r = codec->check(&p->filter[p->n - 1].params, err);
		if (r < 0) {
			p->n--;
			return r;
		}
	}
	p->filter[p->n - 1].codec = codec;
	return 0;
}

const struct pipeline_filter *pipeline_missing(const struct pipeline *p,
					       uint32_t skip_mask)
{
	for (unsigned i = 0; i < p->n; i++)
		if (!p->filter[i].codec && !filter_is_skipped(i, skip_mask))
			return &p->filter[i];
	return NULL;
}

bool pipeline_is_verbatim(const struct pipeline *p, uint32_t skip_mask)
{
	for (unsigned i = 0; i < p->n; i++)
		if (!filter_is_skipped(i, skip_mask) &&
		    !filter_is_identity(&p->filter[i]))
			return false;
	return true;
}

bool pipeline_has_checksum(const struct pipeline *p, uint32_t skip_mask)
{
	for (unsigned i = 0; i < p->n; i++)
		if (!filter_is_skipped(i, skip_mask) && p->filter[i].codec &&
		    p->filter[i].codec->has_checksum)
			return true;
	return false;
}

static int missing_error(const struct pipeline_filter *f, struct error *err)
{
	const char *package = codec_package_of_id(f->id);
	char number[sizeof f->name], what[sizeof f->name + 32];

	snprintf(number, sizeof number, "filter %u", f->id);
	if (strcmp(f->name, number))
		snprintf(what, sizeof what, "filter %s (id %u)", f->name,
			 f->id);
	else /* it has no other name */
		snprintf(what, sizeof what, "%s", number);
	if (package)
		return error_set(err, -ENOTSUP,
				 "no decoder for %s; the Debian package %s "
				 "brings an HDF5 plugin for it",
				 what, package);
	return error_set(err, -ENOTSUP, "no decoder for %s, and %s", what,
			 f->id < 256 ? "only the HDF5 library itself has one"
				     : "no Debian package is known to bring "
				       "an HDF5 plugin for it");
}

int pipeline_lacks(const struct pipeline *p, struct error *err)
{
	const struct pipeline_filter *f = pipeline_missing(p, 0);

	return f ? missing_error(f, err) : 0;
}

/*
 * More than any of our compressors makes of `size` bytes, and enough for any number of
 * them: what one compressor left incompressible, the next can only pad.  The bound is not
 * compounded, so that a list of 32 compressors cannot ask for 40 times the chunk.
 */
static size_t compressed_bound(size_t size)
{
	return size + size / 8 + 4096;
}

/* List the stages that are not skipped, in writing order; return their number. */
static unsigned plan_stages(const struct pipeline *p, uint32_t skip_mask,
			    size_t size, struct stage *stages)
{
	size_t bound = compressed_bound(size);
	bool exact = true;
	unsigned n = 0;

	for (unsigned i = 0; i < p->n; i++) {
		const struct pipeline_filter *f = &p->filter[i];

		if (!f->codec || filter_is_skipped(i, skip_mask) ||
		    filter_is_identity(f))
			continue;
		stages[n].filter = f;
		stages[n].size = size;
		stages[n].exact = exact;
		n++;
		if (f->codec->kind == CODEC_TRAILER) {
			size += f->codec->trailer;
		} else if (f->codec->kind == CODEC_COMPRESS) {
			size = bound;
			exact = false;
		}
	}
	return n;
}

/* Check that stage `s` gave back as many bytes as it had to. */
static int stage_check_length(const struct stage *s, size_t len,
			      struct error *err)
{
	if (s->exact ? len == s->size : len <= s->size)
		return 0;
	return error_set(err, -EBADMSG,
			 "%s: chunk decodes to %zu bytes instead of %zu",
			 s->filter->name, len, s->size);
}

/* Undo one filter into `to`, which has room for all that the stage may give. */
static int run_stage(const struct stage *s, const void *in, size_t in_len,
		     void *to, size_t *len, struct error *err)
{
	const struct pipeline_filter *f = s->filter;
	int r = f->codec->decode(&f->params, in, in_len, to, s->size, len, err);

	if (r == -ENOSPC) {
		if (err)
			err->code = -EBADMSG;
		return -EBADMSG;
	}
	return r < 0 ? r : stage_check_length(s, *len, err);
}

static int run_stages(const struct stage *stages, unsigned n,
		      const void *stored, size_t stored_len, void *out,
		      size_t size, struct error *err)
{
	enum scratch turn = SCRATCH_A;
	const void *at = stored;
	size_t len = stored_len;
	int r;

	while (n--) {
		const struct stage *s = &stages[n];
		void *to = out;

		if (s->filter->codec->kind == CODEC_TRAILER) {
			r = s->filter->codec->verify(at, len, err);
			if (r < 0)
				return r;
			len -= s->filter->codec->trailer;
			r = stage_check_length(s, len, err);
			if (r < 0)
				return r;
			continue;
		}
		if (n) {
			to = scratch_get(turn, s->size);
			turn = turn == SCRATCH_A ? SCRATCH_B : SCRATCH_A;
		}
		if (!to)
			return error_set(
				err, -ENOMEM,
				"%s: out of memory for %zu bytes of scratch",
				s->filter->name, s->size);
		r = run_stage(s, at, len, to, &len, err);
		if (r < 0)
			return r;
		at = to;
	}
	if (len != size)
		return error_set(err, -EBADMSG,
				 "chunk holds %zu bytes instead of %zu", len,
				 size);
	if (at != out && size)
		memcpy(out, at, size);
	return 0;
}

int pipeline_decode(const struct pipeline *p, uint32_t skip_mask,
		    const void *stored, size_t stored_len, void *out,
		    size_t size, struct error *err)
{
	const struct pipeline_filter *f = pipeline_missing(p, skip_mask);
	struct stage stages[PIPELINE_MAX];
	unsigned char nothing = 0;
	unsigned n;
	int r;

	if (f)
		return missing_error(f, err);
	n = plan_stages(p, skip_mask, size, stages);
	r = run_stages(stages, n, stored_len ? stored : &nothing, stored_len,
		       size ? out : &nothing, size, err);
	scratch_trim(SCRATCH_A);
	scratch_trim(SCRATCH_B);
	return r;
}

size_t pipeline_scratch_size(const struct pipeline *p, size_t size)
{
	struct stage stages[PIPELINE_MAX];
	unsigned n = plan_stages(p, 0, size, stages);
	size_t need[2] = {0, 0};
	unsigned turn = 0;

	for (; n > 1; n--) {
		const struct stage *s = &stages[n - 1];

		if (s->filter->codec->kind == CODEC_TRAILER)
			continue;
		if (need[turn] < s->size)
			need[turn] = s->size;
		turn ^= 1;
	}
	return need[0] + need[1];
}

bool pipeline_equal(const struct pipeline *a, const struct pipeline *b)
{
	if (a->n != b->n)
		return false;
	for (unsigned i = 0; i < a->n; i++) {
		const struct codec_params *p = &a->filter[i].params;
		const struct codec_params *q = &b->filter[i].params;

		if (a->filter[i].id != b->filter[i].id || p->n != q->n ||
		    p->elem_size != q->elem_size ||
		    memcmp(p->cd, q->cd, p->n * sizeof *p->cd))
			return false;
	}
	return true;
}

void pipeline_describe(const struct pipeline *p, char *buf, size_t n)
{
	size_t at = 0;

	if (!n)
		return;
	snprintf(buf, n, "%s", p->n ? "" : "none");
	for (unsigned i = 0; i < p->n && at < n; i++)
		at += (size_t)snprintf(buf + at, n - at, "%s%s", i ? ", " : "",
				       p->filter[i].name);
}
