/* SPDX-License-Identifier: BSD-2-Clause */
/* A directory of samples of one shape as one chunked HDF5 dataset. */

/*
 *	feed -> sample reader -> chunker -> build            the file, from the inside out
 *	        header, elements  strips,    chunks one
 *	                          encoders   after the other
 *
 * The first file decides about type, shape and chunks; the chunker is made then.  The
 * number of rows is known when the last file came, because some may not have been
 * readable.  Then libhdf5 makes the file around the chunks, and the datasets beside the
 * tensor.
 *
 * Any mismatch stops everything: a tensor with a wrong row is worse than none.
 */
#include "pack/hdf5/sink.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/number.h"
#include "formats/hdf5/file/driver.h"
#include "formats/hdf5/type/dtype.h"
#include "pack/comp.h"
#include "pack/out.h"
#include "tensors/build.h"
#include "tensors/chunker.h"

/* Rows of a chunk where samples are single numbers. */
#define SCALARS_CHUNK 1024
/* Chunks of fewer bytes cost more space in the index than for their data. */
#define CHUNK_SMALL 512

struct hdf5_sink {
	struct sink sink;
	struct sink_args a;
	struct hdf5_names names;
	struct sample_list samples;
	struct sample_reader reader;
	struct labels *labels;
	struct hdf5_rows rows;
	bool chunk_given;
	unsigned chunk_rank;
	uint64_t chunk[RANK_MAX];
	/* Set by the first sample; shape[0] is the largest number of rows that may
	 * come. */
	unsigned rank;
	uint64_t shape[RANK_MAX];
	struct pipeline pipeline;
	/* NULL before the first sample, and for samples without elements. */
	struct chunker *chunker;
	vec(struct build_chunk) chunks;
	struct out *out;
	struct build *build;
	char codec[32];
};

static struct hdf5_sink *self(struct sink *s)
{
	return (struct hdf5_sink *)s;
}

/* ---- opening ----------------------------------------------------------------- */

static int refuse_options(const struct sink_args *a, struct error *err)
{
	if (a->comp.codec == PACK_XZ)
		return error_set(err, -EINVAL,
				 "HDF5 has no filter for xz; use gzip, zstd, "
				 "lz4, lzf or none");
	if (a->block)
		return error_set(
			err, -EINVAL,
			"--block-size does not apply to HDF5; use --chunk");
	return 0;
}

static int sink_open_parts(struct hdf5_sink *s, struct error *err)
{
	const struct sink_args *a = &s->a;
	int r = refuse_options(a, err);

	if (r == 0)
		r = hdf5_init(err);
	if (r == 0)
		r = hdf5_names_init(&s->names, a->dataset, err);
	if (r == 0 && a->chunk) {
		s->chunk_given = true;
		r = sample_parse_shape("--chunk", a->chunk, &s->chunk_rank,
				       s->chunk, err);
	}
	if (r == 0)
		r = sample_list_init(&s->samples, a, err);
	if (r == 0 && a->labels)
		r = labels_new(&s->labels, a->labels, &s->samples, a, err);
	if (r == 0)
		r = out_new(&s->out, a->path, 0666, a->replace, err);
	if (r == 0)
		r = build_new(&s->build, out_fd(s->out), a->path, BUILD_FIRST,
			      err);
	return r;
}

static void close_sink_hdf5(struct sink *sink)
{
	struct hdf5_sink *s = self(sink);

	chunker_free(s->chunker);
	build_free(s->build);
	out_free(s->out);
	labels_free(s->labels);
	sample_reader_free(&s->reader);
	hdf5_names_free(&s->names);
	vec_free(&s->rows.entry);
	vec_free(&s->chunks);
	free(s);
}

static int open_sink_hdf5(const struct sink_args *a, struct sink **out,
			  struct error *err)
{
	struct hdf5_sink *s = calloc(1, sizeof *s);
	int r;

	*out = NULL;
	if (!s)
		return error_no_memory(err, "writing the HDF5 file");
	s->sink.ops = &sink_hdf5;
	s->a = *a;
	s->rows.scan = a->scan;
	s->reader.list = &s->samples;
	s->reader.memory = a->memory / 4;
	r = sink_open_parts(s, err);
	if (r < 0)
		close_sink_hdf5(&s->sink);
	else
		*out = &s->sink;
	return r;
}

/* ---- the first sample -------------------------------------------------------- */

/* Write one encoded chunk.  Called by any thread, one at a time, in order of numbers. */
static int sink_put_chunk(void *ctx, uint64_t number, uint32_t mask,
			  const void *data, size_t n, struct error *err)
{
	struct hdf5_sink *s = ctx;
	struct build_chunk c = {
		.number = number, .len = (uint32_t)n, .mask = mask};
	int r;

	if (n > BUILD_CHUNK_MAX)
		return error_set(err, -EINVAL,
				 "an encoded chunk has 4 GiB or more; give "
				 "smaller ones with --chunk");
	r = build_put(s->build, data, n, &c.pos, err);
	if (r < 0)
		return r;
	return vec_push(&s->chunks, c)
		       ? 0
		       : error_no_memory(err, "the list of chunks");
}

static int sink_check_chunk(struct hdf5_sink *s, struct error *err)
{
	char shape[256];

	dtype_shape_text(s->shape, s->rank, shape, sizeof shape);
	if (s->chunk_rank != s->rank)
		return error_set(
			err, -EINVAL,
			"--chunk=%.100s has %u axes, but the tensor has %u "
			"(files, then the axes of a sample): %s",
			s->a.chunk, s->chunk_rank, s->rank, shape);
	for (unsigned i = 1; i < s->rank; i++)
		if (s->chunk[i] > s->shape[i] && s->shape[i] > 0)
			return error_set(err, -EINVAL,
					 "--chunk=%.100s is larger than the "
					 "tensor, which is %s",
					 s->a.chunk, shape);
	s->chunk[0] = min_u64(s->chunk[0], s->shape[0]);
	return 0;
}

/* The default chunk: one sample. */
static void usual_chunk(struct hdf5_sink *s)
{
	memcpy(s->chunk, s->shape, sizeof s->chunk);
	s->chunk[0] = s->rank == 1 ? min_u64(s->shape[0], SCALARS_CHUNK) : 1;
}

static int sink_chunk_bytes(const struct hdf5_sink *s, uint64_t *out,
			    struct error *err)
{
	uint64_t n = s->reader.form.dtype.size;
	bool fits = true;

	for (unsigned i = 0; i < s->rank; i++)
		fits = fits && !mul_overflows(n, s->chunk[i], &n);
	*out = n;
	if (!fits || n > BUILD_CHUNK_MAX)
		return error_set(err, -EINVAL,
				 "chunks of 4 GiB and more are not possible in "
				 "HDF5; give smaller ones with --chunk");
	return 0;
}

static void note_small(const struct hdf5_sink *s, uint64_t bytes)
{
	char sentence[200];

	if (s->chunk_given || bytes >= CHUNK_SMALL || s->shape[0] < 1000 ||
	    !s->a.note)
		return;
	snprintf(sentence, sizeof sentence,
		 "chunks of one sample have only %" PRIu64
		 " bytes; with many samples in a chunk (--chunk) the file is "
		 "smaller and faster to read in order",
		 bytes);
	s->a.note(s->a.note_ctx, sentence);
}

static int sink_set_up_chunker(struct hdf5_sink *s, struct error *err)
{
	const struct sample_form *f = &s->reader.form;
	struct chunker_options o;
	uint64_t bytes;
	int r = 0;

	s->rank = f->rank + 1;
	s->shape[0] = s->samples.n;
	memcpy(s->shape + 1, f->shape, f->rank * sizeof *f->shape);
	if (s->chunk_given)
		r = sink_check_chunk(s, err);
	else
		usual_chunk(s);
	if (r < 0 || f->bytes == 0)
		return r;
	r = sink_chunk_bytes(s, &bytes, err);
	if (r == 0)
		r = comp_pipeline(&s->a.comp, f->dtype.size, bytes,
				  &s->pipeline, err);
	if (r < 0)
		return r;
	note_small(s, bytes);
	o = (struct chunker_options){.rank = s->rank,
				     .elem = f->dtype.size,
				     .shape = s->shape,
				     .chunk = s->chunk,
				     .pipeline = s->pipeline,
				     .threads = s->a.threads,
				     .memory = s->a.memory - s->reader.memory,
				     .put = sink_put_chunk,
				     .ctx = s};
	return chunker_new(&s->chunker, &o, err);
}

/* ---- samples ----------------------------------------------------------------- */

static int sink_take_elements(void *ctx, const void *data, uint64_t n,
			      struct error *err)
{
	struct hdf5_sink *s = ctx;

	return n ? chunker_add(s->chunker, data, n, err) : 0;
}

static int put_sink_hdf5(struct sink *sink, const struct feed_unit *u,
			 struct error *err)
{
	struct hdf5_sink *s = self(sink);
	bool known = s->reader.known;
	int r = 0;

	if (s->a.stop && *s->a.stop)
		return error_set(err, -EINTR, "interrupted");
	if (!sample_is(&s->samples, u->entry))
		return 0;
	if (u->same_as)
		return error_set(err, -EIO,
				 "'%s' came without its contents: a defect",
				 u->path);
	if (u->first)
		r = sample_begin(&s->reader, u, err);
	if (r == 0 && !known)
		r = sink_set_up_chunker(s, err);
	if (r == 0)
		r = sample_put(&s->reader, u, sink_take_elements, s, err);
	if (r == 0 && u->last && !vec_push(&s->rows.entry, u->entry))
		r = error_no_memory(err, "the list of samples");
	return r;
}

/* ---- the end ----------------------------------------------------------------- */

static int sink_make_dataset(struct hdf5_sink *s, hid_t file, hid_t type,
			     struct error *err)
{
	struct build_dataset d = {.path = s->names.data,
				  .type = type,
				  .rank = s->rank,
				  .shape = s->shape,
				  .chunk = s->chunk,
				  .pipeline = &s->pipeline,
				  .chunks = s->chunks.at,
				  .n_chunks = s->chunks.n};
	uint64_t bytes;
	hid_t dset;
	int r = 0;

	s->shape[0] = s->rows.entry.n;
	if (s->chunker) {
		s->chunk[0] = chunker_rows_of_chunk(s->chunker);
		r = sink_chunk_bytes(s, &bytes, err);
		if (r == 0)
			r = comp_pipeline(&s->a.comp, s->reader.form.dtype.size,
					  bytes, &s->pipeline, err);
	} else {
		memset(s->chunk, 0, sizeof s->chunk);
		for (unsigned i = 0; i < s->rank; i++)
			s->chunk[i] = 1;
	}
	if (r == 0)
		r = build_dataset(s->build, file, &d, &dset, err);
	if (r < 0)
		return r;
	if (s->reader.form.maxval)
		r = hdf5_number_attribute(dset, "maxval", s->reader.form.maxval,
					  err);
	if (H5Dclose(dset) < 0 && r == 0)
		r = error_set(err, -EIO, "cannot close dataset '%s'", d.path);
	return r;
}

/* Make the HDF5 file around the chunks.  The library's lock is held. */
static int sink_make_file(struct hdf5_sink *s, struct error *err)
{
	hid_t file, type = H5I_INVALID_HID;
	int r = build_open(s->build, &file, err), closed;
	struct error why = {.code = 0};

	if (r < 0)
		return r;
	r = hdf5_type_of_dtype(&s->reader.form.dtype, &type, err);
	if (r == 0)
		r = sink_make_dataset(s, file, type, err);
	if (type >= 0)
		H5Tclose(type);
	if (r == 0)
		r = hdf5_companions_write(file, &s->names, &s->rows, s->labels,
					  err);
	closed = build_close(s->build, file, &why);
	/* If the disk is full, libhdf5 reports another failure first. */
	if (closed < 0 && (r == 0 || why.code == -ENOSPC))
		return error_set(err, why.code, "%s", why.text);
	return r;
}

static int finish_sink_hdf5(struct sink *sink, struct sink_result *result,
			    struct error *err)
{
	static const uint64_t unknown[2];
	struct hdf5_sink *s = self(sink);
	struct stat st;
	int r = 0;

	if (s->rows.entry.n == 0)
		return error_set(err, -ENODATA,
				 "none of the %" PRIu64
				 " samples could be read",
				 s->samples.n);
	if (s->chunker)
		r = chunker_finish(s->chunker, s->rows.entry.n, err);
	if (r < 0)
		return r;
	hdf5_lock();
	r = sink_make_file(s, err);
	hdf5_unlock();
	if (r == 0 && fstat(out_fd(s->out), &st) < 0)
		r = error_errno(err, -errno, "'%s'", s->a.path);
	if (r == 0)
		r = sink_publish(&s->a, s->out, unknown, err);
	if (r < 0)
		return r;
	pipeline_describe(&s->pipeline, s->codec, sizeof s->codec);
	*result = (struct sink_result){.stored = (uint64_t)st.st_size,
				       .codec = s->codec};
	return 0;
}

const struct sink_ops sink_hdf5 = {
	.name = "h5",
	.summary = "arrays or images of one shape as one HDF5 dataset",
	.suffixes = ".h5 .hdf5 .hdf .he5 .hspy .nxs .emd .mat .nc .nc4 .cxi "
		    ".h5ad",
	.no_links = true,
	.tensors = true,
	.check = refuse_options,
	.open = open_sink_hdf5,
	.put = put_sink_hdf5,
	.finish = finish_sink_hdf5,
	.close = close_sink_hdf5};
