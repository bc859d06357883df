/* SPDX-License-Identifier: BSD-2-Clause */
/* Check everything that has to be right before anything is touched. */

/*
 * Every part is opened, its shape and type are compared with what the main file says, and
 * the positions of its chunks are looked up: they have to be inside the file.  After
 * this, the only errors left in a part are a change in the meantime and data that does
 * not decode.
 *
 * libhdf5 answers in two processes of its own, so a few threads are enough to keep them
 * busy.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "base/parse.h"
#include "base/pool.h"
#include "formats/hdf5/file/driver.h"
#include "formats/hdf5/file/place.h"
#include "tensors/merge/private.h"

#define CHECKERS 4

/* ---- files --------------------------------------------------------------- */

struct merge_file *merge_file_of(struct merge *m, uint32_t file)
{
	struct merge_file f = {.file = file};

	while (m->file_index.n <= file)
		if (!vec_push(&m->file_index, UINT32_MAX))
			return NULL;
	if (m->file_index.at[file] == UINT32_MAX) {
		m->file_index.at[file] = (uint32_t)m->files.n;
		if (!vec_push(&m->files, f))
			return NULL;
	}
	return &m->files.at[m->file_index.at[file]];
}

/* Note that `file` has this part. */
static int note_use(struct merge *m, uint32_t file, uint32_t stream,
		    uint32_t part, struct error *err)
{
	struct merge_use use = {.stream = stream, .part = part};
	struct merge_file *f;

	lock_scope(&m->lock);
	f = merge_file_of(m, file);
	return f && vec_push(&f->uses, use)
		       ? 0
		       : error_no_memory(err, "the list of parts");
}

/* Return true if an earlier attempt has copied all that is needed of a file, and has
 * deleted it or knows it by this name.  A file whose directory was renamed is checked
 * again. */
static bool was_taken(struct merge *m, uint32_t file)
{
	struct merge_file *f;

	lock_scope(&m->lock);
	f = merge_file_of(m, file);
	if (!f || f->journaled)
		return true;
	f->gone = access(handles_path(m->handles, file), F_OK) < 0;
	return f->gone;
}

/* Note the file's identity as it is now, and whether it is needed until the end
 * (`late`). */
static int note_file(struct merge *m, uint32_t file, bool late,
		     struct error *err)
{
	struct handle pin;
	const char *path;
	struct merge_file *f;
	int r = handles_get(m->handles, file, &pin, err);

	if (r < 0)
		return r;
	handles_put(m->handles, &pin);
	lock_scope(&m->lock);
	f = merge_file_of(m, file);
	if (!f)
		return error_no_memory(err, "the list of parts");
	handles_known(m->handles, file, &path, &f->id);
	f->late = f->late || late;
	return 0;
}

static int check_range(struct merge *m, uint32_t file, uint64_t pos,
		       uint64_t len, struct error *err)
{
	struct handle pin;
	int r = handles_get(m->handles, file, &pin, err);

	if (r < 0)
		return r;
	handles_put(m->handles, &pin);
	if (pos <= pin.size && len <= pin.size - pos)
		return 0;
	return error_set(err, -EIO,
			 "%s has %" PRIu64
			 " bytes, but its data ends at byte %" PRIu64
			 ": it may be truncated",
			 handles_name(m->handles, file), pin.size, pos + len);
}

/* ---- one part ------------------------------------------------------------ */

/* Return true if the shapes of chunks are equal, apart from axes of one element. */
static bool chunk_alike(const struct grid *a, const struct grid *b)
{
	unsigned i = 0, k = 0;

	for (;;) {
		while (i < a->rank && a->chunk[i] == 1)
			i++;
		while (k < b->rank && b->chunk[k] == 1)
			k++;
		if (i == a->rank || k == b->rank)
			return i == a->rank && k == b->rank;
		if (a->chunk[i++] != b->chunk[k++])
			return false;
	}
}

/* Return true if libhdf5 says that the types of the part and of the dataset are equal, so
 * that the same bytes have the same meaning. */
static bool same_type(struct merge *m, const struct tensor *t, uint32_t p)
{
	const struct hdf5_tensor *h = (const struct hdf5_tensor *)t;
	struct hdf5_place place[2] = {
		{m->s, t->parts[p].file, t->parts[p].dataset},
		{m->s, h->file, h->object}};
	hid_t type[2] = {H5I_INVALID_HID, H5I_INVALID_HID};
	struct hdf5_opened o;
	struct error ignored;
	bool same;

	for (unsigned i = 0; i < 2; i++)
		if (hdf5_place_open(&place[i], &o, &ignored) == 0) {
			hid_t stored = H5Dget_type(o.object);

			type[i] =
				H5Tcopy(stored); /* a copy outlives the file */
			H5Tclose(stored);
			hdf5_place_close(&o);
		}
	hdf5_lock();
	same = type[0] >= 0 && type[1] >= 0 && H5Tequal(type[0], type[1]) > 0;
	for (unsigned i = 0; i < 2; i++)
		if (type[i] >= 0)
			H5Tclose(type[i]);
	hdf5_unlock();
	return same;
}

static bool is_raw(struct merge *m, const struct stream *s,
		   const struct tensor *t, uint32_t p, const struct layout *l)
{
	return l->kind == LAYOUT_CHUNKED && l->indexed && !l->recode &&
	       pipeline_equal(l->pipeline, &s->pipeline) &&
	       chunk_alike(l->grid, &s->grid) &&
	       (!l->by_library || same_type(m, t, p));
}

static int check_chunk_places(struct merge *m, struct tensor *t, uint32_t p,
			      const struct layout *l, struct location *only,
			      struct error *err)
{
	uint64_t count = l->grid->count;
	struct location *at;
	int r = 0;

	if (!l->indexed || !count)
		return 0;
	at = calloc(TENSOR_SEGMENT, sizeof *at);
	if (!at)
		return error_no_memory(err, "the positions of chunks");
	for (uint64_t i = 0; i < count && r == 0; i += TENSOR_SEGMENT) {
		uint32_t n = (uint32_t)min_u64(TENSOR_SEGMENT, count - i);

		r = t->ops->locate(t, p, l, i, n, at, err);
		for (uint32_t k = 0; k < n && r == 0; k++)
			if (at[k].pos != UINT64_MAX)
				r = check_range(m, l->file, at[k].pos,
						at[k].stored, err);
		if (*m->o.stop)
			r = error_set(err, -EINTR, "interrupted");
	}
	if (count == 1 && r == 0 && only)
		*only = at[0];
	free(at);
	return r;
}

static int check_linear(struct merge *m, const struct layout *l,
			struct error *err)
{
	uint64_t bytes = l->grid->count ? l->grid->chunk_bytes : 0;
	int r = 0;

	if (!l->nstretches)
		return check_range(m, l->file, l->pos,
				   l->recode ? bytes / l->recode->to *
						       l->recode->from
					     : bytes,
				   err);
	for (uint32_t i = 0; i < l->nstretches && r == 0; i++) {
		const struct stretch *x = &l->stretches[i];

		r = check_range(m, x->file, x->pos, x->len, err);
		if (r == 0)
			r = note_file(m, x->file, true, err);
	}
	return r;
}

static int check_layout(struct merge *m, struct tensor *t, uint32_t p,
			const struct layout *l, struct location *only,
			struct error *err);

/* Check a part that is a virtual dataset itself: its parts are needed until the end. */
static int check_nested(struct merge *m, struct tensor *t, struct error *err)
{
	const struct layout *l;
	int r = 0;

	for (uint32_t p = 0; p < t->nparts && r == 0; p++) {
		r = note_file(m, t->parts[p].file, true, err);
		if (r == 0)
			r = tensor_learn(t, p, &l, err);
		if (r == 0)
			r = check_layout(m, t, p, l, NULL, err);
	}
	return r;
}

static int check_layout(struct merge *m, struct tensor *t, uint32_t p,
			const struct layout *l, struct location *only,
			struct error *err)
{
	switch (l->kind) {
	case LAYOUT_CHUNKED:
		return check_chunk_places(m, t, p, l, only, err);
	case LAYOUT_LINEAR:
		return check_linear(m, l, err);
	case LAYOUT_NESTED:
		return check_nested(m, l->nested, err);
	default:
		return 0;
	}
}

/* Check that each mapping fits into the part's shape. */
static int check_tiles(struct stream *s, uint32_t p, struct error *err)
{
	struct mosaic_piece piece;
	struct tensor *t = s->t;
	int64_t part;
	struct box b;
	int r = 0;

	for (uint32_t i = s->first[p]; i < s->first[p + 1] && r == 0; i++)
		if (merge_tile_box(t, s->tile[i], &b) &&
		    box_elements(&b, t->rank))
			r = tensor_find(t, &b, 0, &part, &piece, err);
	return r;
}

static int merge_check_part(struct merge *m, size_t stream, uint32_t p,
			    struct error *err)
{
	struct stream *s = &m->streams.at[stream];
	uint32_t file = s->t->parts[p].file;
	const struct layout *l;
	bool late;
	int r;

	if (m->result->resumed && merge_part_is_safe(s, p) &&
	    was_taken(m, file))
		return note_use(m, file, (uint32_t)stream, p, err);
	r = tensor_learn(s->t, p, &l, err);
	late = r == 0 && (l->kind == LAYOUT_NESTED || !s->boxes ||
			  (l->kind == LAYOUT_LINEAR && l->nstretches));
	if (r == 0)
		r = note_file(m, file, late, err);
	if (r == 0)
		r = note_use(m, file, (uint32_t)stream, p, err);
	if (r == 0)
		r = check_tiles(s, p, err);
	if (r < 0)
		return r;
	s->part[p].raw = is_raw(m, s, s->t, p, l);
	s->part[p].only.pos = MERGE_UNKNOWN;
	return check_layout(m, s->t, p, l, &s->part[p].only, err);
}

/* ---- all of them --------------------------------------------------------- */

struct checking {
	struct merge *m;
	size_t stream;
	_Atomic uint32_t next;
};

/* Show progress in bytes, as if all parts had the same size. */
static void show_checked(struct merge *m, size_t stream, uint32_t p)
{
	const struct tensor *t = m->streams.at[stream].t;
	lock_scope(&m->lock);

	m->o.progress(m->o.ctx, "checked", t->bytes / t->nparts * p, t->bytes);
}

static void check_some(void *arg)
{
	struct checking *c = arg;
	struct merge *m = c->m;
	uint32_t n = m->streams.at[c->stream].t->nparts, p;
	struct error err;

	while (!merge_stopped(m) && (p = atomic_fetch_add(&c->next, 1)) < n)
		if (merge_check_part(m, c->stream, p, &err) < 0) {
			lock_scope(&m->lock);
			if (!m->failure.code)
				m->failure = err;
			atomic_store(&m->failed, true);
		} else if (m->o.progress && p % 16 == 0) {
			show_checked(m, c->stream, p);
		}
}

static int check_stream(struct merge *m, size_t stream, struct error *err)
{
	struct checking c = {.m = m, .stream = stream};
	unsigned n = m->o.jobs < CHECKERS ? m->o.jobs : CHECKERS;
	struct pool *pool;
	int r = pool_new(&pool, "check", n, n, err);

	if (r < 0)
		return r;
	for (unsigned i = 0; i < n; i++)
		pool_submit(pool, check_some, &c);
	pool_free(pool);
	if (*m->o.stop)
		return error_set(err, -EINTR, "interrupted");
	if (m->failure.code) {
		*err = m->failure;
		return err->code;
	}
	return 0;
}

/* Filters that this program cannot encode allow only copied chunks.  Chunks at the edge
 * of the dataset, where parts are smaller than a chunk, may be stored without filters. */
static int check_encoder(struct stream *s, struct error *err)
{
	struct error why = {.code = 0};
	struct box b;

	s->unfiltered = pipeline_cannot_encode(&s->pipeline, &why) < 0;
	for (uint32_t p = 0; s->unfiltered && p < s->t->nparts; p++)
		for (uint32_t i = s->first[p]; i < s->first[p + 1]; i++) {
			bool fits = merge_tile_box(s->t, s->tile[i], &b);
			bool small = false;

			for (unsigned k = 0; fits && k < s->t->rank; k++) {
				fits = b.start[k] % s->grid.chunk[k] == 0;
				small = small || b.count[k] < s->grid.chunk[k];
			}
			if (!fits || (!small && !s->part[p].raw))
				return error_set(
					err, -ENOTSUP,
					"%s: %s; chunks that differ from those "
					"of the parts need other filters: "
					"choose them with --comp",
					s->t->name, why.text);
		}
	return 0;
}

/* Check the parts of a dataset of strings or the like. */
static int merge_check_values(struct merge *m, struct values *v,
			      struct error *err)
{
	const struct layout *l;
	int r = 0;

	for (uint32_t p = 0; p < v->t->nparts && r == 0; p++) {
		if (v->captured)
			continue;
		r = tensor_learn(v->t, p, &l, err);
		if (r == 0)
			r = note_file(m, v->t->parts[p].file, true, err);
		if (r == 0)
			r = check_layout(m, v->t, p, l, NULL, err);
	}
	return r;
}

int merge_check_parts(struct merge *m, struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < m->streams.n && r == 0; i++) {
		r = check_stream(m, i, err);
		if (r == 0)
			r = check_encoder(&m->streams.at[i], err);
	}
	for (size_t i = 0; i < m->values.n && r == 0; i++)
		r = merge_check_values(m, &m->values.at[i], err);
	/* Objects that links lead to are copied at the end. */
	for (size_t i = 0; i < m->items.n && r == 0; i++)
		if (m->items.at[i].file != m->s->file &&
		    m->items.at[i].kind != ITEM_SAME)
			r = note_file(m, m->items.at[i].file, true, err);
	return r < 0 ? r : merge_check_renamed(m, err);
}

/* The number of runs of rows that an error sentence names. */
#define SHOWN 4

/* ---- flags --------------------------------------------------------------- */

/* Append a run to `list`: "rows 100-199 are 'initialized', row 300 is ''". */
static void show_run(char *list, size_t room, uint64_t row,
		     const struct journal_run *x)
{
	size_t n = strlen(list);
	const char *comma = n ? ", " : "";

	if (x->rows > 1)
		snprintf(list + n, room - n,
			 "%srows %" PRIu64 "-%" PRIu64 " are '%.32s'", comma,
			 row, row + x->rows - 1, x->value);
	else
		snprintf(list + n, room - n, "%srow %" PRIu64 " is '%.32s'",
			 comma, row, x->value);
}

static int check_flags(const struct merge *m, const struct journal_text *t,
		       struct error *err)
{
	char list[400] = "";
	uint64_t row = 0, bad = 0;
	unsigned shown = 0;

	for (size_t i = 0; i < t->runs.n; row += t->runs.at[i++].rows) {
		const struct journal_run *x = &t->runs.at[i];

		if (!strcmp(x->value, m->o.check_flag))
			continue;
		bad += x->rows;
		if (shown++ < SHOWN)
			show_run(list, sizeof list, row, x);
	}
	if (!bad)
		return 0;
	return error_set(err, -EPERM,
			 "%s: %s%s: %" PRIu64 " of %" PRIu64
			 " rows are not '%.32s'",
			 t->path, list, shown > SHOWN ? ", ..." : "", bad, row,
			 m->o.check_flag);
}

int merge_check_flags(struct merge *m, struct error *err)
{
	unsigned n = 0;
	int r = 0;

	for (size_t i = 0; i < m->values.n && r == 0; i++) {
		struct values *v = &m->values.at[i];

		if (!v->is_flags)
			continue;
		n++;
		if (!v->captured)
			r = merge_values_runs(m, v, err);
		if (r == 0 && m->o.check_flag)
			r = check_flags(m, &v->text, err);
	}
	if (r == 0 && m->o.check_flag && !n)
		return error_set(err, -EPERM,
				 "--check-flag: the main file has no dataset "
				 "'flags' to check");
	return r;
}

/* ---- room ---------------------------------------------------------------- */

/* Bytes that are written before the first part can be deleted. */
#define AHEAD (UINT64_C(256) << 20)

/* Return about how many bytes the output needs on its file system. */
static uint64_t room_needed(const struct merge *m)
{
	uint64_t need = 0, largest = 0, decoded = 0;
	bool stays = !m->o.delete_parts;

	for (size_t i = 0; i < m->files.n; i++) {
		const struct merge_file *f = &m->files.at[i];

		need += f->id.size;
		largest = max_u64(largest, f->id.size);
		stays = stays || f->late || f->id.dev != m->dir_dev;
	}
	for (size_t i = 0; i < m->streams.n; i++)
		decoded += m->streams.at[i].t->bytes;
	if (m->o.comp_given && m->o.comp.codec == PACK_NONE)
		return decoded;
	return stays ? need : min_u64(need, AHEAD + 2 * largest);
}

/* Check that this user may delete files in the directories of the parts. */
static int check_deletable(const struct merge *m, struct error *err)
{
	cleanup_free char *last = NULL;

	for (size_t i = 0; i < m->files.n; i++) {
		const struct merge_file *f = &m->files.at[i];
		const char *path = handles_path(m->handles, f->file);
		const char *slash = strrchr(path, '/');
		char *dir;

		if (f->main || f->gone || !slash)
			continue;
		dir = strndup(path, (size_t)(slash - path) + (slash == path));
		if (!dir)
			return error_no_memory(
				err, "the name of a directory of parts");
		if (last && !strcmp(last, dir)) {
			free(dir);
			continue;
		}
		free(last);
		last = dir;
		if (access(dir, W_OK | X_OK) < 0 && errno != ENOENT)
			return error_errno(err, -errno,
					   "parts in '%s' cannot be deleted",
					   file_shown(dir));
	}
	return 0;
}

int merge_check_room(struct merge *m, struct error *err)
{
	uint64_t need = room_needed(m), have;
	char want[32], is[32];
	struct statvfs v;

	if (m->o.delete_parts && check_deletable(m, err) < 0)
		return err->code;
	if (m->result->resumed || fstatvfs(m->dir_fd, &v) < 0)
		return 0;
	have = (uint64_t)v.f_bavail * v.f_frsize;
	if (need <= have)
		return 0;
	format_size(need, want, sizeof want);
	format_size(have, is, sizeof is);
	return error_set(err, -ENOSPC,
			 "'%s' needs about %s, but there is room for %s only",
			 file_shown(m->out), want, is);
}
