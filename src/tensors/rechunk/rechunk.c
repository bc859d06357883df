/* SPDX-License-Identifier: BSD-2-Clause */
/* Rechunk a tensor: decide about chunks, filters and memory, then do all steps. */
/*
 * Memory is divided before anything is read:
 *
 *	base      the program, libraries, trees and tables
 *	list      positions of new chunks, known when all are written; the existing chunks of a
 *	          sparse source
 *	cache     decoded chunks and tables of locations; or, if that is more, for each
 *	          thread a chunk of the source, its stored bytes and scratch
 *	encoders  for each thread an encoded chunk, scratch, and the state of the codec
 *	room      the rest: chunks in the making
 *
 * There are as many threads as leave room for one chunk.  If one thread does not,
 * rechunking fails with the memory that it would need.
 */
#include "tensors/rechunk/private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "base/parse.h"
#include "pack/comp.h"
#include "pack/hdf5/sink.h"

/* The list of a sparse source's chunks may take this share of the memory. */
#define LIST_SHARE 16
/* Bytes of a chunk in it, with the tiles that it touches. */
#define LIST_BYTES (6 * sizeof(uint64_t))
#define BASE (UINT64_C(28) << 20)
/* Bytes of a thread without its buffers: stack, malloc's caches, pieces of boxes. */
#define THREAD (UINT64_C(1) << 20)
/* Small tiles are enlarged up to this size in bytes, to reduce overhead. */
#define TILE_BYTES (UINT64_C(4) << 20)
/* Rows of a chunk if rows are single numbers. */
#define SCALARS_CHUNK 1024
/* Decodes per chunk above which the user is told. */
#define MANY 1.5

static uint64_t rechunk_memory_times(uint64_t a, uint64_t b)
{
	uint64_t r;

	return mul_overflows(a, b, &r) ? UINT64_MAX / 4
				       : min_u64(r, UINT64_MAX / 4);
}

/* ---- chunks, filters, fill value ------------------------------------------------- */

static int rechunk_check_tensor(const struct tensor *t, struct error *err)
{
	if (t->why_not)
		return error_set(err, t->why_code ? t->why_code : -ENOTSUP,
				 "%s: %s", t->name, t->why_not);
	if (!dtype_is_binary(&t->dtype))
		return error_set(err, -ENOTSUP,
				 "%s holds text, references or sequences: "
				 "only numbers, booleans and structures can be "
				 "rechunked",
				 t->name);
	if (t->unreadable)
		return error_set(err, -ENOTSUP, "%s: %s", t->name,
				 t->unreadable);
	if (!t->rank)
		return error_set(err, -EINVAL,
				 "%s is a single value: it has no chunks",
				 t->name);
	return 0;
}

/* Set `chunk` to the chunks asked for, or the source's, or a row of the first axis. */
static void rechunk_choose_chunk(const struct rechunk *w, uint64_t *chunk)
{
	const struct tensor *t = w->t;
	uint64_t rows = t->elements == t->shape[0] ? SCALARS_CHUNK : 1;

	for (unsigned i = 0; i < t->rank; i++) {
		if (w->o->chunk)
			chunk[i] = w->o->chunk[i];
		else if (w->cells.chunked)
			chunk[i] = w->cells.chunk[i];
		else
			chunk[i] = i ? t->shape[i] : rows;
		/* libhdf5 requires this if the shape is fixed. */
		if (!w->grows || w->max[i] < chunk[i])
			chunk[i] = min_u64(chunk[i], t->shape[i]);
		chunk[i] = max_u64(chunk[i], 1);
	}
}

static int make_grid(struct rechunk *w, struct error *err)
{
	const struct tensor *t = w->t;
	uint64_t chunk[RANK_MAX];
	char text[32];

	rechunk_choose_chunk(w, chunk);
	if (grid_init(&w->grid, t->rank, t->shape, chunk, t->dtype.size) < 0)
		return error_set(err, -EINVAL,
				 "%s: chunks would have more than 2^64 bytes",
				 t->name);
	format_size(w->grid.chunk_bytes, text, sizeof text);
	if (w->grid.chunk_bytes > BUILD_CHUNK_MAX)
		return error_set(
			err, -EINVAL,
			"chunks of %s are too large: HDF5 chunks have less "
			"than 4 GiB; give smaller ones with --chunk",
			text);
	return 0;
}

/* Is this a second shuffle?  libhdf5 gives its parameters to the first one and skips it
 * when it writes; it cannot read what was shuffled twice. */
static bool is_second_shuffle(const struct pipeline *p, unsigned k)
{
	for (unsigned i = 0; i < k; i++)
		if (p->filter[i].id == 2 && p->filter[k].id == 2)
			return true;
	return false;
}

/* Use the source's filters, adapted to the size of the new chunks. */
static int same_filters(struct rechunk *w, struct error *err)
{
	const struct pipeline *from = w->cells.pipeline;
	uint64_t bytes = w->grid.chunk_bytes;
	struct error why = {0};

	for (unsigned i = 0; from && i < from->n; i++) {
		struct pipeline_filter f = from->filter[i];
		int r;

		if (is_second_shuffle(from, i))
			continue;
		if (f.id == 32000 && f.params.n >= 3)
			f.params.cd[2] = (uint32_t)bytes;
		if (f.id == 2) { /* may be the size of a member */
			f.params.n = 1;
			f.params.cd[0] = w->grid.elem;
		}
		r = pipeline_add(&w->pipeline, f.id, f.name, f.params.cd,
				 f.params.n, w->grid.elem, err);
		if (r < 0)
			return r;
	}
	if (pipeline_cannot_encode(&w->pipeline, &why) < 0)
		return error_set(err, -ENOTSUP,
				 "%s: %s; choose another one with --comp",
				 w->t->name, why.text);
	return 0;
}

static int make_pipeline(struct rechunk *w, struct error *err)
{
	return w->o->comp
		       ? comp_pipeline(w->o->comp, w->grid.elem,
				       w->grid.chunk_bytes, &w->pipeline, err)
		       : same_filters(w, err);
}

/* Choose the fill value, which unwritten elements read as; other parts may have another
 * one. */
static void choose_fill(struct rechunk *w)
{
	static const unsigned char zero;
	const struct layout *l;

	w->fill = w->t->fill;
	if (!w->t->mosaic && w->t->nparts &&
	    tensor_learn(w->t, 0, &l, NULL) == 0)
		w->fill = l->fill;
	if (!w->fill.pattern || !w->fill.width)
		w->fill = (struct fill){&zero, 1};
	if (w->fill.width == 1 && !*(const unsigned char *)w->fill.pattern)
		return;
	if (w->fill.width != w->t->dtype.size)
		w->fill = (struct fill){&zero, 0};
}

/* Find out which chunks of the source exist, because the others need not be written. */
static int find_written(struct rechunk *w, struct error *err)
{
	uint64_t most = w->o->memory / LIST_SHARE / LIST_BYTES;
	int r = 0;

	w->most_chunks = w->grid.count;
	if (!w->fill.width || !w->grid.count)
		return 0;
	r = rechunk_written_find(w->t, most, &w->written, err);
	w->of_source = r < 0;
	if (w->written.known)
		w->most_chunks = rechunk_written_touch(&w->written, &w->grid);
	return r;
}

/* ---- memory -------------------------------------------------------------- */

static uint64_t per_thread(const struct rechunk *w)
{
	uint64_t bytes = w->grid.chunk_bytes, encode = THREAD;

	if (w->pipeline.n || w->o->verify)
		encode += pipeline_bound(&w->pipeline, bytes) +
			  pipeline_encode_memory(&w->pipeline, bytes);
	if (w->o->verify)
		encode += 2 * bytes;
	return encode;
}

/* Bytes of memory for everything except chunks in the making. */
static uint64_t rechunk_fixed_memory(const struct rechunk *w, unsigned threads)
{
	uint64_t decode = rechunk_memory_times(3 * threads, w->cells.decoded);
	uint64_t list = rechunk_memory_times(w->most_chunks,
					     2 * sizeof(struct build_chunk));

	list += rechunk_memory_times(w->written.chunks.room, LIST_BYTES);
	return BASE + list + max_u64(w->o->cache, decode) +
	       rechunk_memory_times(threads, per_thread(w));
}

static int too_little(const struct rechunk *w, struct error *err)
{
	uint64_t need = rechunk_fixed_memory(w, 1) + rechunk_cost(w);
	char in[32], out[32], have[32], most[32];

	format_size(w->cells.decoded, in, sizeof in);
	format_size(w->grid.chunk_bytes, out, sizeof out);
	format_size(w->o->memory, have, sizeof have);
	/* A share of the memory is the cache's. */
	need = max_u64(need, (need - w->o->cache) / 3 * 4);
	format_size(need + need / 16, most, sizeof most);
	return error_set(err, -ENOMEM,
			 "%s: %s of memory are too little to turn chunks of %s "
			 "into chunks of %s: give --memory=%" PRIu64 "M",
			 w->t->name, have, in, out,
			 ((need + need / 16) >> 20) + 1);
}

static int divide_memory(struct rechunk *w, struct error *err)
{
	uint64_t cost = rechunk_cost(w), have = w->o->memory;

	w->threads = w->o->threads;
	while (w->threads > 1 &&
	       rechunk_fixed_memory(w, w->threads) + 2 * cost > have)
		w->threads--;
	if (rechunk_fixed_memory(w, w->threads) + cost > have)
		return too_little(w, err);
	w->room = have - rechunk_fixed_memory(w, w->threads);
	return 0;
}

/* ---- order --------------------------------------------------------------- */

/* Enlarge tiny tiles along the last axes, which costs no decodes. */
static void grow_tiles(struct rechunk *w, uint64_t most)
{
	uint64_t n = 1;

	most = min_u64(most, max_u64(TILE_BYTES / rechunk_cost(w), 1));
	for (unsigned i = 0; i < w->t->rank; i++)
		n *= w->plan.tile[i];
	for (unsigned i = w->t->rank; i-- > 0 && n < most;) {
		uint64_t all = div_up(w->grid.chunks[i], w->plan.tile[i]);
		uint64_t more = min_u64(most / n, all);

		if (more < 2)
			continue;
		w->plan.tile[i] *= more;
		n *= more;
	}
	rechunk_plan_count(&w->plan, w->t->rank, w->t->shape, w->cells.cell,
			   w->grid.chunk);
}

/* Tell the user how much memory would avoid repeated decoding. */
static void say_cost(const struct rechunk *w)
{
	double each = (double)w->plan.decodes / (double)w->plan.chunks;
	uint64_t bytes = rechunk_cost(w);
	struct rechunk_plan best;
	char text[160], size[32];

	if (each < MANY || !w->cells.chunked || !w->o->note ||
	    rechunk_plan_make(&best, w->t->rank, w->t->shape, w->cells.cell,
			      w->grid.chunk, UINT64_MAX / 2, NULL) < 0)
		return;
	for (unsigned i = 0; i < w->t->rank; i++)
		bytes = rechunk_memory_times(bytes, best.tile[i]);
	bytes = (bytes + rechunk_fixed_memory(w, w->threads) - w->o->cache) /
		3 * 4;
	format_size(bytes, size, sizeof size);
	snprintf(text, sizeof text,
		 "each chunk of the source is decoded %.1f times; with "
		 "--memory=%" PRIu64 "M (%s) once would be enough",
		 each, (bytes >> 20) + 1, size);
	w->o->note(w->o->ctx, text);
}

static int rechunk_make_plan(struct rechunk *w, struct error *err)
{
	uint64_t most = w->room / rechunk_cost(w);
	int r;

	if (!w->grid.count)
		return 0;
	r = rechunk_plan_make(&w->plan, w->t->rank, w->t->shape, w->cells.cell,
			      w->grid.chunk, most, err);
	if (r < 0)
		return r;
	grow_tiles(w, most);
	say_cost(w);
	return 0;
}

/* ---- all steps ------------------------------------------------------------------ */

static int rechunk_decide(struct rechunk *w, struct error *err)
{
	int r = rechunk_check_tensor(w->t, err);

	if (r == 0) {
		r = rechunk_cells_find(w->t, &w->cells, err);
		w->of_source = r < 0;
	}
	w->grows = r == 0 && rechunk_max_shape(w->t, w->max);
	if (r == 0)
		r = make_grid(w, err);
	if (r == 0)
		r = make_pipeline(w, err);
	choose_fill(w);
	if (r == 0)
		r = find_written(w, err);
	if (r == 0)
		r = divide_memory(w, err);
	w->rest = rechunk_has_rest(w);
	if (r == 0 && w->rest)
		r = rechunk_look_rest(w, err);
	return r < 0 ? r : rechunk_make_plan(w, err);
}

static int rechunk_finish_file(struct rechunk *w, const char *dataset,
			       struct rest_found *found, struct error *err)
{
	struct rechunk_answer a;
	int r = rechunk_apart(w,
			      w->rest ? rechunk_make_rest : rechunk_make_alone,
			      dataset, &a, err);

	if (r < 0)
		return r;
	*found = a.found;
	w->others = found->datasets;
	w->lost = found->lost.n;
	return w->rest ? rechunk_judge_rest(w, found, err) : 0;
}

static int rechunk_write_file(struct rechunk *w, const char *dataset,
			      struct error *err)
{
	const struct rechunk_options *o = w->o;
	struct rest_found found = {0};
	int r = out_new(&w->out, o->path, 0666, o->replace, err);

	if (r == 0)
		r = build_new(&w->build, out_fd(w->out), o->path, BUILD_FIRST,
			      err);
	if (r == 0)
		r = rechunk_put_user_block(w, err);
	if (r == 0)
		r = rechunk_run(w, err);
	if (r == 0)
		r = rechunk_finish_file(w, dataset, &found, err);
	if (r == 0 && o->stop && atomic_load(o->stop))
		r = error_set(err, -EINTR, "interrupted");
	if (r == 0 && o->check) {
		r = out_sync(w->out, err);
		r = r < 0 ? r : o->check(o->ctx, out_fd(w->out), err);
	}
	if (r == 0)
		r = out_publish(w->out, err);
	if (r == 0)
		rechunk_note_rest(w, &found);
	return r;
}

static void rechunk_report(const struct rechunk *w, const char *dataset,
			   struct rechunk_result *out)
{
	struct stat st;

	memset(out, 0, sizeof *out);
	memcpy(out->chunk, w->grid.chunk, sizeof out->chunk);
	snprintf(out->dataset, sizeof out->dataset, "%s", dataset);
	pipeline_describe(&w->pipeline, out->codec, sizeof out->codec);
	out->plan = w->plan;
	out->chunks = w->chunks.n;
	out->unwritten = w->unwritten;
	out->chunk_bytes = w->chunk_bytes;
	out->threads = w->threads;
	out->of_source = w->of_source;
	out->rest = w->rest;
	out->datasets = w->others;
	out->lost = w->lost;
	if (stat(w->o->path, &st) == 0)
		out->stored = (uint64_t)st.st_size;
}

int hdf5_rechunk(const struct rechunk_options *o, struct rechunk_result *out,
		 struct error *err)
{
	cleanup_free struct rechunk *w = calloc(1, sizeof *w);
	const char *dataset = o->dataset;
	int r = 0;

	memset(out, 0, sizeof *out);
	if (!w)
		return error_no_memory(err, "the plan of the rechunk");
	w->o = o;
	w->t = o->tensor;
	if (dataset)
		r = hdf5_check_path(dataset, err);
	else
		dataset = rechunk_object(w->t);
	if (r == 0)
		r = rechunk_decide(w, err);
	if (r == 0)
		r = rechunk_write_file(w, dataset, err);
	rechunk_report(w, dataset, out);
	rechunk_apart_free(w);
	build_free(w->build);
	out_free(w->out);
	vec_free(&w->chunks);
	rechunk_written_free(&w->written);
	return r;
}
