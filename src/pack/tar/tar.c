/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing tar, plain and compressed: from units to a named file with an index. */

/*
 *	unit -> tar_entry -> squeeze -> hash, out
 *	             |          |
 *	             +----------+----> tar_index -> the index, when the file has its name
 *
 * A compressed tar is a sequence of streams, which all readers take for one, and each of
 * which can be decoded alone.  A block begins where a member does if that costs nothing:
 * members that fit into a block lie in one block, and the contents of large members begin
 * with a block, so that aligned reads of them touch no more blocks than necessary.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "pack/out.h"
#include "pack/sink.h"
#include "pack/tar/private.h"

/* Default bytes of a block, which a read has to decode: one window of our reader. */
#define BLOCK_USUAL (UINT32_C(1) << 20)
#define BLOCK_LEAST (UINT32_C(4) << 10)
/* A header, and a second one with its extended records, in bytes. */
#define HEADERS 1536

struct tar_sink {
	struct sink sink; /* first member */
	struct sink_args args;
	struct out *out;
	struct squeeze *squeeze;
	struct tar_writer *writer;
	struct tar_index *index; /* NULL: not wanted, or it failed */
	XXH3_state_t *hash;
	size_t block; /* bytes; 0: not compressed */
	char codec[24];
	char *path, *where;
	struct error warning;
};
struct format {
	enum squeeze_codec codec;
	enum pack_codec named; /* the value of --comp that goes with it */
	/* Name of the compression, as the reader calls it. */
	const char *stream;
	const char *name;
};
static const struct format plain = {SQUEEZE_NONE, PACK_NONE, NULL, "tar"};
static const struct format gzip = {SQUEEZE_GZIP, PACK_GZIP, "gzip", "tar.gz"};
static const struct format zstd = {SQUEEZE_ZSTD, PACK_ZSTD, "zstd", "tar.zst"};

/* ---- callbacks --------------------------------------------------------------- */

static int on_block(void *ctx, const struct squeeze_block *b, struct error *err)
{
	struct tar_sink *s = ctx;

	if (s->index)
		tar_index_block(s->index, b, out_size(s->out));
	XXH3_128bits_update(s->hash, b->data, b->size);
	return out_write(s->out, b->data, b->size, err);
}

static int on_bytes(void *ctx, const void *bytes, size_t n, bool data,
		    struct error *err)
{
	struct tar_sink *s = ctx;

	if (s->index)
		tar_index_add(s->index, bytes, n, data);
	return squeeze_add(s->squeeze, bytes, n, err);
}

/* ---- opening ------------------------------------------------------------- */

/* The file name decides about the compression, as with tar -a; --comp may give the
 * level. */
static int check_comp(const struct sink_args *a, const struct format *f,
		      struct error *err)
{
	static const char *const words[] = {
		[PACK_NONE] = "none", [PACK_GZIP] = "gzip",
		[PACK_ZSTD] = "zstd", [PACK_LZ4] = "lz4",
		[PACK_XZ] = "xz",     [PACK_LZF] = "lzf"};
	enum pack_codec c = a->comp.codec;

	if (c == PACK_AUTO || c == f->named)
		return 0;
	if (c == PACK_LZ4 || c == PACK_XZ || c == PACK_LZF)
		return error_set(err, -EINVAL,
				 "--comp=%s does not apply to tars; use gzip "
				 "(.tar.gz) or zstd (.tar.zst)",
				 words[c]);
	return error_set(err, -EINVAL,
			 "--comp=%s does not match '%s', which is a %s; name "
			 "it .tar, .tar.gz or .tar.zst, or give its --format",
			 words[c], a->path, f->name);
}

static int check_block(const struct sink_args *a, const struct format *f,
		       struct error *err)
{
	if (!a->block)
		return 0;
	if (f->codec == SQUEEZE_NONE)
		return error_set(err, -EINVAL,
				 "--block-size: a plain tar has no blocks");
	if (a->block < BLOCK_LEAST || a->block > SQUEEZE_BLOCK_MOST)
		return error_set(
			err, -EINVAL,
			"--block-size of a %s must be %lu to %lu bytes",
			f->name, (unsigned long)BLOCK_LEAST,
			(unsigned long)SQUEEZE_BLOCK_MOST);
	return 0;
}

static int check_as(const struct format *f, const struct sink_args *a,
		    struct error *err)
{
	int r = check_comp(a, f, err);

	return r < 0 ? r : check_block(a, f, err);
}

static void name_codec(struct tar_sink *s, const struct sink_args *a,
		       const struct format *f)
{
	int level = a->comp.level ? a->comp.level : squeeze_usual(f->codec);

	if (f->codec == SQUEEZE_NONE)
		snprintf(s->codec, sizeof s->codec, "none");
	else
		snprintf(s->codec, sizeof s->codec, "%s:%d", f->stream, level);
}

static int tar_open_parts(struct tar_sink *s, const struct sink_args *a,
			  const struct format *f, struct error *err)
{
	struct squeeze_options o = {
		.codec = f->codec,
		.level = f->codec == SQUEEZE_NONE ? 0 : a->comp.level,
		.block = a->block ? (size_t)a->block : BLOCK_USUAL,
		.threads = a->threads,
		.memory = a->memory ? a->memory : UINT64_MAX,
		.sample = a->comp.codec == PACK_AUTO};
	int r = squeeze_new(&s->squeeze, &o, on_block, s, err);

	if (r == 0)
		r = tar_writer_new(&s->writer, a->numeric_owner, on_bytes, s,
				   err);
	if (r == 0 && a->index != PACK_INDEX_NONE)
		r = tar_index_new(&s->index, f->stream, err);
	if (r == 0)
		r = out_new(&s->out, a->path, 0666, a->replace, err);
	s->block = f->codec == SQUEEZE_NONE ? 0 : o.block;
	return r;
}

static void tar_close(struct sink *sink)
{
	struct tar_sink *s = (struct tar_sink *)sink;

	if (!s)
		return;
	squeeze_free(s->squeeze); /* first: its threads use the others */
	tar_writer_free(s->writer);
	tar_index_free(s->index);
	out_free(s->out);
	XXH3_freeState(s->hash);
	free(s->path);
	free(s->where);
	free(s);
}

static int tar_open_as(const struct sink_ops *ops, const struct format *f,
		       const struct sink_args *a, struct sink **out,
		       struct error *err)
{
	struct tar_sink *s;
	int r = ops->check(a, err);

	*out = NULL;
	if (r < 0)
		return r;
	s = calloc(1, sizeof *s);
	if (!s)
		return error_no_memory(err, "writing the tar");
	s->sink.ops = ops;
	s->args = *a;
	s->args.path = s->path = strdup(a->path);
	s->hash = XXH3_createState();
	if (!s->path || !s->hash) {
		r = error_no_memory(err, "writing the tar");
	} else {
		XXH3_128bits_reset(s->hash);
		name_codec(s, a, f);
		r = tar_open_parts(s, a, f, err);
	}
	if (r < 0) {
		tar_close(&s->sink);
		return r;
	}
	*out = &s->sink;
	return 0;
}

/* ---- members ------------------------------------------------------------- */

/* End the current block if a member would cross its end, fits into a block, and the
 * current one is at least half full. */
static int place_member(struct tar_sink *s, const struct feed_unit *u,
			struct error *err)
{
	size_t filled = squeeze_filled(s->squeeze);
	uint64_t size = u->attr.size + HEADERS;

	if (s->block && size <= s->block && filled + size > s->block &&
	    filled >= s->block / 2)
		return squeeze_cut(s->squeeze, err);
	return 0;
}

static int tar_begin_member(struct tar_sink *s, const struct feed_unit *u,
			    struct error *err)
{
	bool bytes = S_ISREG(u->attr.mode) && !u->same_as;
	int r = bytes ? place_member(s, u, err) : 0;

	if (r == 0)
		r = tar_writer_begin(s->writer, u, err);
	if (r == 0 && bytes && s->block && u->attr.size >= s->block)
		r = squeeze_cut(s->squeeze, err);
	return r;
}

static int tar_put(struct sink *sink, const struct feed_unit *u,
		   struct error *err)
{
	struct tar_sink *s = (struct tar_sink *)sink;
	int r = u->first ? tar_begin_member(s, u, err) : 0;

	if (r == 0 && S_ISREG(u->attr.mode) && !u->same_as)
		r = tar_writer_data(s->writer, u->data, u->size, err);
	if (r == 0 && u->last)
		r = tar_writer_end(s->writer, err);
	return r;
}

/* ---- the end ------------------------------------------------------------- */

static int tar_finish(struct sink *sink, struct sink_result *result,
		      struct error *err)
{
	struct tar_sink *s = (struct tar_sink *)sink;
	XXH128_hash_t sum;
	int r = tar_writer_finish(s->writer, err);

	if (r == 0)
		r = squeeze_finish(s->squeeze, err);
	if (r < 0)
		return r;
	sum = XXH3_128bits_digest(s->hash);
	*result = (struct sink_result){.stored = out_size(s->out),
				       .xxh3 = {sum.high64, sum.low64},
				       .codec = s->codec};
	r = sink_publish(&s->args, s->out, result->xxh3, err);
	if (r < 0)
		return r;
	/* The tar is complete even if its index cannot be saved. */
	if (s->index &&
	    tar_index_save(s->index, s->path, &s->where, &s->warning) < 0) {
		error_prefix(&s->warning, "no index was saved: ");
		result->warning = s->warning.text;
	}
	result->index = s->where;
	return 0;
}

/* ---- three formats ------------------------------------------------------- */

static int check_sink_tar(const struct sink_args *a, struct error *err)
{
	return check_as(&plain, a, err);
}
static int open_sink_tar(const struct sink_args *a, struct sink **out,
			 struct error *err)
{
	return tar_open_as(&sink_tar, &plain, a, out, err);
}
const struct sink_ops sink_tar = {.name = "tar",
				  .summary = "tar: ustar, pax where needed",
				  .suffixes = ".tar",
				  .shards = true,
				  .check = check_sink_tar,
				  .open = open_sink_tar,
				  .put = tar_put,
				  .finish = tar_finish,
				  .close = tar_close};

static int check_sink_tar_gzip(const struct sink_args *a, struct error *err)
{
	return check_as(&gzip, a, err);
}
static int open_sink_tar_gzip(const struct sink_args *a, struct sink **out,
			      struct error *err)
{
	return tar_open_as(&sink_tar_gzip, &gzip, a, out, err);
}
const struct sink_ops sink_tar_gzip = {.name = "tar.gz",
				       .summary =
					       "tar in gzip members of a MiB",
				       .suffixes = ".tar.gz .tgz",
				       .shards = true,
				       .check = check_sink_tar_gzip,
				       .open = open_sink_tar_gzip,
				       .put = tar_put,
				       .finish = tar_finish,
				       .close = tar_close};

static int check_sink_tar_zstd(const struct sink_args *a, struct error *err)
{
	return check_as(&zstd, a, err);
}
static int open_sink_tar_zstd(const struct sink_args *a, struct sink **out,
			      struct error *err)
{
	return tar_open_as(&sink_tar_zstd, &zstd, a, out, err);
}
const struct sink_ops sink_tar_zstd = {.name = "tar.zst",
				       .summary = "tar in zstd frames of a MiB",
				       .suffixes = ".tar.zst .tzst",
				       .shards = true,
				       .check = check_sink_tar_zstd,
				       .open = open_sink_tar_zstd,
				       .put = tar_put,
				       .finish = tar_finish,
				       .close = tar_close};
