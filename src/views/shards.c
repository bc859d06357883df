/* SPDX-License-Identifier: BSD-2-Clause */
/* shards/NAME-000000.tar: samples as WebDataset shards, computed instead of written. */

/*
 * A shard is byte for byte what `pack --shards --owner=0:0 --numeric-owner` makes of
 * samples/.  All samples take the same number of bytes, so every offset is found by a
 * division:
 *
 *	| header 512 | .npy header | elements | zeros | header | ... | zeros to 10240 |
 *	|------------- a sample, whole blocks --------|
 *
 * Where samples have labels, KEY.cls comes before KEY.npy.  Its text is the label if
 * labels are whole numbers, else the place of the class in the order of names (as in
 * file_list), in decimal digits.  Header and text always take SHARDS_LABEL_BYTES.
 *
 * Owners are 0, permissions 0444 and times the tensor's (0 where a header cannot hold
 * them), so a shard is the same for every user and in every mount.  NAME-index.json is
 * the index that wids reads; it has no checksums, because these would need a read of
 * all samples.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/number.h"
#include "shards/cut.h"
#include "views/name.h"
#include "views/node.h"
#include "views/samples.h"
#include "views/shards.h"
#include "views/table.h"

#define BYTES_MAX (UINT64_C(1) << 61)

/* What is the same for all samples of a tensor. */
struct row {
	uint64_t n;      /* samples */
	uint64_t data;   /* bytes of the elements of a sample */
	uint64_t file;   /* bytes of its .npy */
	uint64_t label;  /* bytes of the .cls with its header; 0: no labels */
	uint64_t member; /* bytes of a sample, headers and padding included */
	struct npy_header header; /* header of the .npy */
	struct shards_keys keys;
};

uint64_t shards_keys_init(struct shards_keys *x, const struct tensor *t,
			  unsigned axes)
{
	uint64_t n = 1;

	x->k = axes;
	for (unsigned i = 0; i < axes; i++) {
		if (mul_overflows(n, t->shape[i], &n) || !n)
			return 0;
		x->width[i] = view_width(t->shape[i] - 1);
	}
	return n;
}

void shards_sample_path(const struct tensor *t, const struct shards_keys *r,
			uint64_t sample, const char *suffix, char *buf,
			size_t room)
{
	uint64_t at[RANK_MAX];
	size_t n = 0;

	for (unsigned i = r->k; i-- > 0;) {
		at[i] = sample % t->shape[i];
		sample /= t->shape[i];
	}
	for (unsigned i = 0; i < r->k; i++)
		n += (size_t)snprintf(buf + n, room - n, "%s%0*" PRIu64,
				      i ? "/" : "", (int)r->width[i], at[i]);
	snprintf(buf + n, room - n, "%s", suffix);
}

struct ustar shards_member(const struct tensor *t, uint64_t size,
			   const char *path)
{
	bool holds = t->mtime >= 0 && t->mtime < INT32_MAX;

	return (struct ustar){.path = path,
			      .mode = S_IFREG | 0444,
			      .size = size,
			      .mtime = holds ? t->mtime : 0};
}

/* Set *out.  Return false if the samples cannot be in shards. */
static bool shards_row(struct tensor *t, unsigned axes, struct row *out)
{
	uint64_t all;

	out->n = shards_keys_init(&out->keys, t, axes);
	if (!out->n || !dtype_npy_header(&t->dtype, t->descr, t->rank - axes,
					 t->shape + axes, &out->header))
		return false;
	out->data = t->bytes / out->n;
	out->file = out->header.total + out->data;
	out->label = view_classes.fits(t, axes) ? SHARDS_LABEL_BYTES : 0;
	out->member = out->label + USTAR_BLOCK + ustar_padded(out->file);
	return !mul_overflows(out->n, out->member, &all) && all < BYTES_MAX;
}

static uint64_t shards_number(const struct tensor *t, const struct row *r)
{
	return shards_even(&t->shards, r->n, r->member);
}

/* This is a note in info.json, not a message, because a file may have many such
 * datasets. */
void shards_note_too_few(struct tensor *t, uint64_t n)
{
	char why[100];

	snprintf(why, sizeof why,
		 "%" PRIu64 " shards are asked for, and there are %" PRIu64
		 " samples",
		 t->shards.shards, n);
	view_add_note(t, view_shards.top, why);
}

static bool shards_fits(struct tensor *t, unsigned axes)
{
	char path[SHARDS_PATH_ROOM];
	struct ustar last;
	struct row r;
	uint64_t n;

	if (!view_is_numeric(t) || !axes || !shards_row(t, axes, &r))
		return false;
	shards_sample_path(t, &r.keys, r.n - 1, ".npy", path, sizeof path);
	last = shards_member(t, r.file, path);
	n = shards_number(t, &r);
	if (!n)
		shards_note_too_few(t, r.n);
	return ustar_fits(&last) && n && n <= SHARDS_MOST;
}

/* ---- names --------------------------------------------------------------- */

void shards_name(const struct tensor *t, char name[SHARDS_NAME_MOST + 1])
{
	const char *slash = t->name ? strrchr(t->name, '/') : NULL;
	const char *base = slash ? slash + 1 : t->name ? t->name : "";

	shards_name_from_source(name, base, strlen(base));
}

static uint64_t shards_count(const struct view *v, unsigned level)
{
	struct row r;

	(void)level;
	return shards_row(v->tensor, v->sample_axes, &r)
		       ? shards_number(v->tensor, &r) + 1
		       : 1;
}

static bool shards_is_index(const struct view *v, const uint64_t *at)
{
	return at[0] + 1 == shards_count(v, 0);
}

static void shards_view_name(const struct view *v, unsigned level,
			     const uint64_t *at, char *buf, size_t n)
{
	char name[SHARDS_NAME_MOST + 1];

	shards_name(v->tensor, name);
	shards_file_name(name, at[0], shards_count(v, level) - 1, buf, n);
}

static int shards_find(const struct view *v, unsigned level, const uint64_t *at,
		       const char *file, uint64_t *index)
{
	char name[SHARDS_NAME_MOST + 1];

	(void)at;
	shards_name(v->tensor, name);
	return shards_file_find(name, shards_count(v, level) - 1, file, index);
}

/* ---- the index ----------------------------------------------------------- */

struct listing {
	struct tensor *t;
	struct row row;
};

static void shards_index_line(const void *ctx, uint64_t k,
			      struct shards_line *out)
{
	const struct listing *l = ctx;
	uint64_t first;

	shards_even_at(&l->t->shards, l->row.n, l->row.member, k, &first,
		       &out->samples);
	out->files = out->samples * (l->row.label ? 2 : 1);
	out->size = ustar_archive_size(out->samples * l->row.member);
}

static char *shards_index(const struct view *v, const uint64_t *at, size_t *len,
			  struct error *err)
{
	struct listing l = {.t = v->tensor};
	char name[SHARDS_NAME_MOST + 1], *text = NULL;

	(void)at;
	shards_name(v->tensor, name);
	if (shards_row(v->tensor, v->sample_axes, &l.row))
		text = shards_index_text(name, shards_number(v->tensor, &l.row),
					 shards_index_line, &l, len);
	if (!text)
		error_no_memory(err, "the index of shards");
	return text;
}

/* ---- a shard ------------------------------------------------------------- */

struct shard {
	struct row row;
	uint64_t first, n; /* samples */
};

static int shards_open_shard(const struct view *v, const uint64_t *at,
			     struct shard *out, struct error *err)
{
	struct tensor *t = v->tensor;

	if (!shards_row(t, v->sample_axes, &out->row))
		return error_set(err, -ENOENT, "no such file");
	shards_even_at(&t->shards, out->row.n, out->row.member, at[0],
		       &out->first, &out->n);
	return 0;
}

static int shards_size(const struct view *v, const uint64_t *at,
		       struct pinner *p, uint64_t *size, struct error *err)
{
	struct shard s;
	int r = shards_open_shard(v, at, &s, err);

	(void)p;
	if (r == 0)
		*size = ustar_archive_size(s.n * s.row.member);
	return r;
}

/* Neighbouring samples of a shard are neighbours in the tensor, so one box covers the
 * window. */
static int shards_prepare(const struct view *v, const uint64_t *at,
			  uint64_t off, uint64_t len, struct error *err)
{
	const struct class_index *labels;
	uint64_t first, last;
	struct shard s;
	struct box all;
	int r = shards_open_shard(v, at, &s, err);

	if (r == 0 && s.row.label)
		r = classes_index(v->tensor->classes, &labels, err);
	if (r < 0 || !len || off / s.row.member >= s.n || !s.row.data)
		return r;
	first = off / s.row.member;
	last = min_u64((off + len - 1) / s.row.member, s.n - 1);
	view_whole_box(v, at, &all);
	return tensor_prepare_box(v->tensor, &all,
				  (s.first + first) * s.row.data,
				  (last - first + 1) * s.row.data, err);
}

void shards_map_zeros(struct plan *plan, uint64_t n)
{
	static const unsigned char zero[1];

	plan_fill(plan, (struct fill){.pattern = zero, .width = 1}, 0, n);
}

void shards_map_header(const struct tensor *t, const struct shards_keys *x,
		       uint64_t sample, const char *suffix, uint64_t size,
		       uint64_t off, struct plan *plan)
{
	unsigned char header[USTAR_BLOCK];
	char path[SHARDS_PATH_ROOM];
	struct ustar m;

	shards_sample_path(t, x, sample, suffix, path, sizeof path);
	m = shards_member(t, size, path);
	ustar_header(header, &m);
	plan_copy(plan, header + off, USTAR_BLOCK - off);
}

/* Write the text of a .cls, which is the label of file_list; return its length. */
static size_t shards_label_text(const struct class_index *x, uint64_t sample,
				char text[32])
{
	uint32_t of = x->of[sample];

	return (size_t)(x->numbers ? snprintf(text, 32, "%s", x->label[of])
				   : snprintf(text, 32, "%" PRIu32, of));
}

int shards_map_label(const struct tensor *t, const struct shards_keys *k,
		     uint64_t sample, uint64_t off, struct plan *plan,
		     struct error *err)
{
	const struct class_index *x = classes_ready(t->classes);
	char text[32];
	size_t n;

	if (!x)
		return error_set(err, -EIO, "%s: labels were not prepared",
				 t->name);
	n = shards_label_text(x, sample, text);
	if (off < USTAR_BLOCK)
		shards_map_header(t, k, sample, ".cls", n, off, plan);
	else if (off - USTAR_BLOCK < n)
		plan_copy(plan, text + (off - USTAR_BLOCK),
			  n - (off - USTAR_BLOCK));
	else
		shards_map_zeros(plan, SHARDS_LABEL_BYTES - off);
	return 0;
}

/* Append a sample's elements from byte `off` of them on; the plan must not go beyond
 * them. */
static int shards_map_elements(const struct view *v, const struct row *r,
			       uint64_t sample, uint64_t off, struct plan *plan,
			       struct error *err)
{
	const struct tensor *t = v->tensor;
	const uint64_t want = plan->want;
	struct box b;
	int code;

	view_whole_box(v, NULL, &b);
	for (unsigned i = r->keys.k; i-- > 0;) {
		b.start[i] = sample % t->shape[i];
		b.count[i] = 1;
		sample /= t->shape[i];
	}
	plan->want = min_u64(want, plan->have + r->data - off);
	code = tensor_map_box(t, &b, off, plan, err);
	plan->want = want;
	return code;
}

/* Append what is at byte `off` of a sample's members, up to the next header, text or
 * padding. */
static int shards_map_member(const struct view *v, const struct row *r,
			     uint64_t sample, uint64_t off, struct plan *plan,
			     struct error *err)
{
	if (off < r->label)
		return shards_map_label(v->tensor, &r->keys, sample, off, plan,
					err);
	off -= r->label;
	if (off < USTAR_BLOCK) {
		shards_map_header(v->tensor, &r->keys, sample, ".npy", r->file,
				  off, plan);
		return 0;
	}
	off -= USTAR_BLOCK;
	if (off < r->header.total) {
		dtype_npy_map(&r->header, off, plan);
		return 0;
	}
	if (off < r->file)
		return shards_map_elements(v, r, sample, off - r->header.total,
					   plan, err);
	shards_map_zeros(plan, r->member - r->label - USTAR_BLOCK - off);
	return 0;
}

static int shards_map(const struct view *v, const uint64_t *at, uint64_t off,
		      struct plan *plan, struct error *err)
{
	struct shard s;
	int r = shards_open_shard(v, at, &s, err);

	while (r == 0 && plan_open(plan)) {
		uint64_t before = plan->have, k = off / s.row.member;

		if (k >= s.n)
			shards_map_zeros(plan, plan->want - plan->have);
		else
			r = shards_map_member(v, &s.row, s.first + k,
					      off % s.row.member, plan, err);
		if (plan->have == before)
			break;
		off += plan->have - before;
	}
	return r;
}

const struct view_ops view_shards = {
	.name = "shards",
	.summary = "shards/NAME-NUMBER.tar, samples as WebDataset shards",
	.top = "shards",
	.levels = 1,
	.unlisted = true,
	.fits = shards_fits,
	.count = shards_count,
	.name_of = shards_view_name,
	.find = shards_find,
	.document = shards_index,
	.is_document = shards_is_index,
	.size = shards_size,
	.size_is_known = true,
	.prepare = shards_prepare,
	.map = shards_map,
};
