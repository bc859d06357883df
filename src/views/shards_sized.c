/* SPDX-License-Identifier: BSD-2-Clause */
/* shards/NAME-000000.tar of samples that differ in size: texts, sequences, blobs. */

/*
 * The tars are those of views/shards.c, but the start of a member cannot be computed by
 * a division.  The sizes of all samples are found out once, when a shard is first
 * opened or the directory is listed, and kept, 8 bytes for each sample.  If a sample
 * cannot be read its size is unknown; then there are no shards, and the error says why.
 *
 * The number of shards is known beforehand only where it does not depend on sizes.
 * Else there are node numbers for as many as there could be, and those without a shard
 * are skipped in listings.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bisect.h"
#include "base/number.h"
#include "base/vec.h"
#include "shards/cut.h"
#include "tensor/text.h"
#include "views/name.h"
#include "views/samples.h"
#include "views/shards.h"
#include "views/state.h"
#include "views/table.h"

#define SAMPLES_MAX (UINT64_C(1) << 26)

struct shards_sized {
	vec(uint64_t) first; /* first sample of each shard, and n */
	uint64_t n;          /* number of samples */
	/* [n + 1], for each sample: the blocks of all members before it << 9 | bytes of
	 * its file in its last block (0: the whole block). */
	uint64_t at[];
};

static void shards_sized_free(struct shards_sized *x)
{
	if (!x)
		return;
	vec_free(&x->first);
	free(x);
}

/* ---- sizes ------------------------------------------------------------------ */

static bool sized_has_labels(const struct view *v)
{
	return view_classes.fits(v->tensor, v->sample_axes);
}

static const char *sized_suffix(const struct tensor *t)
{
	return view_is_text(t) ? ".txt" : view_is_blob(t) ? t->suffix : ".npy";
}

/* Return how many blocks come before the file of a sample: its header, and its .cls. */
static uint64_t sized_header_blocks(bool labels)
{
	return (labels ? SHARDS_LABEL_BYTES / USTAR_BLOCK : 0) + 1;
}

struct making {
	struct shards_sized *x;
	const struct tensor *t;
	struct shards_keys keys;
	uint64_t sample, blocks, front, in_shard;
};

static int sized_begin_shard(struct making *m, struct error *err)
{
	m->in_shard = m->blocks;
	if (m->x->first.n == SHARDS_MOST)
		return error_set(err, -EOVERFLOW,
				 "%s: there would be more than %" PRIu64
				 " shards",
				 m->t->name, SHARDS_MOST);
	return vec_push(&m->x->first, m->sample)
		       ? 0
		       : error_no_memory(err, "the list of shards");
}

static int sized_add_sample(void *ctx, uint64_t size, struct error *err)
{
	struct making *m = ctx;
	struct shards_sized *x = m->x;
	char path[SHARDS_PATH_ROOM];
	struct ustar u;
	uint64_t blocks, taken = (m->blocks - m->in_shard) * USTAR_BLOCK;
	int r = 0;

	if (m->sample >= x->n)
		return error_set(err, -EIO,
				 "%s: there are more samples than "
				 "were counted",
				 m->t->name);
	shards_sample_path(m->t, &m->keys, m->sample, sized_suffix(m->t), path,
			   sizeof path);
	u = shards_member(m->t, size, path);
	if (!ustar_fits(&u))
		return error_set(err, -EFBIG,
				 "%s: sample %" PRIu64 " has %" PRIu64
				 " bytes, too many for a shard",
				 m->t->name, m->sample, size);
	blocks = m->front + ustar_padded(size) / USTAR_BLOCK;
	if (!x->first.n ||
	    shards_cut_here(&m->t->shards, x->n, x->first.n - 1,
			    m->sample - x->first.at[x->first.n - 1], taken,
			    blocks * USTAR_BLOCK))
		r = sized_begin_shard(m, err);
	x->at[m->sample++] = m->blocks << 9 | (size & (USTAR_BLOCK - 1));
	m->blocks += blocks; /* fits: 2^26 samples of less than 2^25 blocks */
	return r;
}

/* Set *out to the sizes of the samples, which the tensor owns.  The first call reads
 * all sizes and blocks.  With `p` NULL it does not read them, and fails if they are not
 * known. */
static int sized_get(const struct view *v, struct pinner *p,
		     const struct shards_sized **out, struct error *err)
{
	struct tensor *t = v->tensor;
	struct shards_sized *x = atomic_load(&t->views->sized), *none = NULL;
	struct making m = {.t = t,
			   .front = sized_header_blocks(sized_has_labels(v))};
	uint64_t n;
	int r;

	*out = x;
	if (x)
		return 0;
	n = shards_keys_init(&m.keys, t, v->sample_axes);
	x = p ? calloc(1, sizeof *x + (n + 1) * sizeof x->at[0]) : NULL;
	if (!x)
		return p ? error_no_memory(err, "the sizes of samples")
			 : error_set(err, -EIO, "%s: shards were not prepared",
				     t->name);
	x->n = n;
	m.x = x;
	r = text_each_size(t->text, p, sized_add_sample, &m, err);
	if (r == 0 && m.sample != n)
		r = error_set(err, -EIO, "%s: samples are missing", t->name);
	if (r == 0) {
		x->at[n] = m.blocks << 9;
		r = vec_push(&x->first, n)
			    ? 0
			    : error_no_memory(err, "the list of shards");
	}
	if (r < 0) {
		shards_sized_free(x);
		return r;
	}
	if (!atomic_compare_exchange_strong(&t->views->sized, &none, x)) {
		shards_sized_free(x);
		x = none;
	}
	*out = x;
	return 0;
}

static uint64_t sized_shards(const struct shards_sized *x)
{
	return x->first.n - 1;
}

/* Return the bytes that samples [first, last) take in a shard. */
static uint64_t sized_bytes(const struct shards_sized *x, uint64_t first,
			    uint64_t last)
{
	return ((x->at[last] >> 9) - (x->at[first] >> 9)) * USTAR_BLOCK;
}

static uint64_t sized_file_size(const struct shards_sized *x, uint64_t sample,
				uint64_t front_blocks)
{
	uint64_t rest = x->at[sample] & (USTAR_BLOCK - 1);
	uint64_t bytes =
		sized_bytes(x, sample, sample + 1) - front_blocks * USTAR_BLOCK;

	return rest ? bytes - USTAR_BLOCK + rest : bytes;
}

/* ---- the directory ---------------------------------------------------------- */

/* Return how many shards there may be at most; that many get node numbers. */
static uint64_t sized_shards_most(const struct tensor *t, uint64_t n)
{
	const struct shards_cut *c = &t->shards;

	if (c->shards)
		return c->shards;
	return min_u64(c->size ? n : div_up(n, c->count), SHARDS_MOST);
}

static bool sized_fits(struct tensor *t, unsigned axes)
{
	struct shards_keys keys;
	char path[SHARDS_PATH_ROOM];
	struct ustar last;
	uint64_t n;

	if ((!view_is_text(t) && !view_is_sized(t)) || !axes)
		return false;
	n = shards_keys_init(&keys, t, axes);
	if (!n || n > SAMPLES_MAX)
		return false;
	if (t->shards.shards > n) {
		shards_note_too_few(t, n);
		return false;
	}
	shards_sample_path(t, &keys, n - 1, sized_suffix(t), path, sizeof path);
	last = shards_member(t, 0, path);
	return ustar_fits(&last) && t->shards.shards <= SHARDS_MOST;
}

static uint64_t sized_count(const struct view *v, unsigned level)
{
	struct shards_keys keys;

	(void)level;
	return sized_shards_most(v->tensor, shards_keys_init(&keys, v->tensor,
							     v->sample_axes)) +
	       1;
}

static bool sized_is_index(const struct view *v, const uint64_t *at)
{
	return at[0] + 1 == sized_count(v, 0);
}

static void sized_name_of(const struct view *v, unsigned level,
			  const uint64_t *at, char *buf, size_t n)
{
	char name[SHARDS_NAME_MOST + 1];

	shards_name(v->tensor, name);
	shards_file_name(name, at[0], sized_count(v, level) - 1, buf, n);
}

static int sized_find(const struct view *v, unsigned level, const uint64_t *at,
		      const char *file, uint64_t *index)
{
	char name[SHARDS_NAME_MOST + 1];

	(void)at;
	shards_name(v->tensor, name);
	return shards_file_find(name, sized_count(v, level) - 1, file, index);
}

/* Skip from the last shard to the index. */
static int sized_skip(const struct view *v, unsigned level, uint64_t *at,
		      uint64_t *i, struct pinner *p, struct error *err)
{
	const struct shards_sized *x;
	int r = sized_get(v, p, &x, err);

	(void)at;
	if (r == 0 && *i >= sized_shards(x))
		*i = max_u64(*i, sized_count(v, level) - 1);
	return r;
}

struct listing {
	const struct shards_sized *x;
	unsigned files; /* files of a sample */
};

static void sized_index_line(const void *ctx, uint64_t k,
			     struct shards_line *out)
{
	const struct listing *l = ctx;
	const uint64_t *first = &l->x->first.at[k];

	out->samples = first[1] - first[0];
	out->files = out->samples * l->files;
	out->size = ustar_archive_size(sized_bytes(l->x, first[0], first[1]));
}

static int sized_ready(const struct view *v, struct pinner *p,
		       struct error *err)
{
	const struct shards_sized *x;

	return sized_get(v, p, &x, err);
}

static char *sized_index(const struct view *v, const uint64_t *at, size_t *len,
			 struct error *err)
{
	struct listing l = {.files = sized_has_labels(v) ? 2 : 1};
	char name[SHARDS_NAME_MOST + 1], *text;

	(void)at;
	if (sized_get(v, NULL, &l.x, err) < 0)
		return NULL;
	shards_name(v->tensor, name);
	text = shards_index_text(name, sized_shards(l.x), sized_index_line, &l,
				 len);
	if (!text)
		error_no_memory(err, "the index of shards");
	return text;
}

/* ---- a shard ---------------------------------------------------------------- */

static int sized_size(const struct view *v, const uint64_t *at,
		      struct pinner *p, uint64_t *size, struct error *err)
{
	const struct shards_sized *x;
	int r = sized_get(v, p, &x, err);

	if (r == 0 && at[0] >= sized_shards(x))
		r = error_set(err, -ENOENT, "no such shard");
	if (r == 0)
		*size = ustar_archive_size(sized_bytes(x, x->first.at[at[0]],
						       x->first.at[at[0] + 1]));
	return r;
}

static int sized_prepare(const struct view *v, const uint64_t *at, uint64_t off,
			 uint64_t len, struct error *err)
{
	const struct class_index *labels;

	(void)at, (void)off, (void)len;
	return sized_has_labels(v)
		       ? classes_index(v->tensor->classes, &labels, err)
		       : 0;
}

/* Return the last sample of [first, last) that begins at or before a block. */
static uint64_t sized_sample_at(const struct shards_sized *x, uint64_t first,
				uint64_t last, uint64_t block)
{
	struct bisect b = bisect_in(first + 1, last);

	while (bisect_next(&b))
		bisect_answer(&b, x->at[b.mid] >> 9 > block);
	return b.lo - 1;
}

static int sized_map_file(const struct view *v, uint64_t sample, uint64_t size,
			  uint64_t off, struct plan *plan)
{
	const uint64_t want = plan->want;
	int r;

	plan->want = min_u64(want, plan->have + size - off);
	r = text_map_sample(v->tensor->text, sample, off, plan);
	plan->want = want;
	return r;
}

/* Append what is at byte `off` of a sample, up to the next header, text or padding. */
static int sized_map_sample(const struct view *v, const struct shards_sized *x,
			    uint64_t sample, uint64_t off, struct plan *plan,
			    struct error *err)
{
	const struct tensor *t = v->tensor;
	uint64_t blocks = sized_header_blocks(sized_has_labels(v));
	uint64_t size = sized_file_size(x, sample, blocks);
	struct shards_keys keys;

	shards_keys_init(&keys, t, v->sample_axes);
	if (blocks > 1 && off < SHARDS_LABEL_BYTES)
		return shards_map_label(t, &keys, sample, off, plan, err);
	off -= (blocks - 1) * USTAR_BLOCK;
	if (off < USTAR_BLOCK) {
		shards_map_header(t, &keys, sample, sized_suffix(t), size, off,
				  plan);
		return 0;
	}
	off -= USTAR_BLOCK;
	if (off < size)
		return sized_map_file(v, sample, size, off, plan);
	shards_map_zeros(plan, ustar_padded(size) - off);
	return 0;
}

static int sized_map(const struct view *v, const uint64_t *at, uint64_t off,
		     struct plan *plan, struct error *err)
{
	const struct shards_sized *x;
	uint64_t first, last, base;
	int r = sized_get(v, NULL, &x, err);

	if (r < 0)
		return r;
	if (at[0] >= sized_shards(x))
		return error_set(err, -ENOENT, "no such shard");
	first = x->first.at[at[0]];
	last = x->first.at[at[0] + 1];
	base = (x->at[first] >> 9) * USTAR_BLOCK;
	while (r == 0 && plan_open(plan)) {
		uint64_t before = plan->have, sample;

		if (off >= sized_bytes(x, first, last)) {
			shards_map_zeros(plan, plan->want - plan->have);
			break;
		}
		sample = sized_sample_at(x, first, last,
					 (base + off) / USTAR_BLOCK);
		r = sized_map_sample(v, x, sample,
				     off - sized_bytes(x, first, sample), plan,
				     err);
		if (plan->have == before)
			break;
		off += plan->have - before;
	}
	return r;
}

static void sized_end(struct tensor *t)
{
	shards_sized_free(atomic_exchange(&t->views->sized, NULL));
}

const struct view_ops view_shards_sized = {
	.name = "shards",
	.top = "shards",
	.levels = 1,
	.unlisted = true,
	.fits = sized_fits,
	.end = sized_end,
	.count = sized_count,
	.name_of = sized_name_of,
	.find = sized_find,
	.skip = sized_skip,
	.ready = sized_ready,
	.document = sized_index,
	.is_document = sized_is_index,
	.size = sized_size,
	.prepare = sized_prepare,
	.map = sized_map,
};
