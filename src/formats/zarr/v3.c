/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads zarr.json, an array of Zarr version 3 (zarr-specs, v3 core and codecs). */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/number.h"
#include "codec/numcodecs.h"
#include "formats/zarr/meta.h"

/* Return the name of an extension, which is an object or only the name, and set *config
 * to its configuration or NULL. */
static const char *extension_name(const json_t *v, const json_t **config)
{
	*config = json_object_get(v, "configuration");
	return json_string_value(
		json_is_string(v) ? v : json_object_get(v, "name"));
}

/* ---- codecs -------------------------------------------------------------- */

enum stage { ARRAYS, BYTES }; /* what the next codec takes */
struct reading {
	struct zarr_array *z;
	struct zarr_codecs *c;
	enum stage stage;
	/* The codec "bytes" is big-endian; it has an `endian`. */
	bool big, endian;
	/* These are the codecs of the chunks of a shard. */
	bool inner;
	struct error *err;
};

static int read_endian(const json_t *config, bool *big, bool *said,
		       struct error *err)
{
	const json_t *v = json_object_get(config, "endian");
	const char *s = json_string_value(v);

	*said = v && !json_is_null(v);
	*big = s && !strcmp(s, "big");
	if (*said && (!s || (!*big && strcmp(s, "little") != 0)))
		return error_set(err, -EBADMSG,
				 "'endian' of codec 'bytes' is neither little "
				 "nor big");
	return 0;
}

static int read_transpose(struct reading *x, const json_t *config)
{
	const json_t *v = json_object_get(config, "order");
	const char *s = json_string_value(v);
	unsigned rank = x->z->rank;
	uint8_t order[RANK_MAX];
	uint64_t seen = 0, axis;
	bool moved = false;

	for (unsigned i = 0; i < rank; i++) {
		if (s && (!strcmp(s, "F") || !strcmp(s, "C")))
			axis = *s == 'F' ? rank - 1 - i : i;
		else if (json_array_size(v) != rank ||
			 !zarr_count(json_array_get(v, i), &axis) ||
			 axis >= rank || seen >> axis & 1)
			return error_set(x->err, -EBADMSG,
					 "'order' of codec 'transpose' is not "
					 "a permutation of the axes");
		seen |= UINT64_C(1) << axis;
		order[i] = (uint8_t)axis;
		moved |= axis != i;
	}
	/* Decoding undoes all filters before it permutes axes. */
	if (moved && x->c->n)
		return error_set(x->err, -ENOTSUP,
				 "codec 'transpose' behind codec '%s' is not "
				 "supported",
				 x->c->step[0].codec->name);
	zarr_turn(x->c, rank, order);
	return 0;
}

static int read_sharding(struct reading *x, const json_t *config);

static int unknown_codec(const char *name, struct error *err)
{
	return error_set(err, -ENOTSUP, "codec '%.40s' is not supported", name);
}

static int codec_misplaced(const char *name, struct error *err)
{
	return error_set(err, -EBADMSG,
			 "codec '%.40s' is in a wrong place of 'codecs'", name);
}

/* Append a codec of numcodecs.  A codec of arrays works on the bytes that an array has
 * in memory. */
static int read_numcodec(struct reading *x, const char *name,
			 const json_t *config)
{
	bool of_array = !strcmp(name, "shuffle") || !strcmp(name, "delta") ||
			!strcmp(name, "bitround");

	if (!zarr_has_numcodec(name))
		return unknown_codec(name, x->err);
	if (x->stage == ARRAYS && !of_array)
		return codec_misplaced(name, x->err);
	if (x->stage == ARRAYS && x->c->turned)
		return error_set(x->err, -ENOTSUP,
				 "codec '%.40s' behind 'transpose' is not "
				 "supported",
				 name);
	return zarr_add_numcodec(x->c, name, config, x->err);
}

static int read_codec(struct reading *x, const json_t *v)
{
	static const char *const core[] = {"gzip", "zstd", "blosc", "crc32c"};
	const json_t *config;
	const char *name = extension_name(v, &config);
	bool arrays = x->stage == ARRAYS;

	if (!name)
		return error_set(x->err, -EBADMSG, "a codec has no name");
	if (!strcmp(name, "transpose"))
		return arrays ? read_transpose(x, config)
			      : codec_misplaced(name, x->err);
	if (!strcmp(name, "sharding_indexed"))
		return arrays ? read_sharding(x, config)
			      : codec_misplaced(name, x->err);
	if (!strcmp(name, "bytes")) {
		if (!arrays)
			return codec_misplaced(name, x->err);
		x->stage = BYTES;
		return read_endian(config, &x->big, &x->endian, x->err);
	}
	if (!strncmp(name, "numcodecs.", 10))
		return read_numcodec(x, name + 10, config);
	/* zarr-extensions has it without the prefix, too. */
	if (!strcmp(name, "bitround"))
		return read_numcodec(x, name, config);
	for (size_t i = 0; i < sizeof core / sizeof *core; i++)
		if (!strcmp(name, core[i]))
			return arrays ? codec_misplaced(name, x->err)
				      : zarr_add_numcodec(x->c, name, config,
							  x->err);
	return unknown_codec(name, x->err);
}

static int v3_check_codecs(struct reading *x, unsigned filters)
{
	struct dtype *d = &x->z->stored;
	bool one = d->size == 1 || d->kind == DTYPE_OPAQUE;

	if (x->stage == ARRAYS)
		return error_set(x->err, -EBADMSG,
				 "none of its codecs turns arrays into bytes: "
				 "'bytes' is missing");
	if (!x->endian && !one)
		return error_set(x->err, -EBADMSG,
				 "codec 'bytes' has no 'endian'");
	if (x->big && filters)
		return error_set(x->err, -ENOTSUP,
				 "filters of arrays that are stored big-endian "
				 "are not supported");
	d->big_endian = x->big && !one;
	return 0;
}

static int v3_read_codecs(struct reading *x, const json_t *list)
{
	unsigned filters = 0;

	if (!json_is_array(list) || !json_array_size(list))
		return error_set(x->err, -EBADMSG,
				 "'codecs' is not a list, or is empty");
	for (size_t i = 0; i < json_array_size(list); i++) {
		bool done = x->z->sharded && !x->inner;
		int r = done ? error_set(x->err, -ENOTSUP,
					 "codecs behind 'sharding_indexed' are "
					 "not supported")
			     : read_codec(x, json_array_get(list, i));

		if (r < 0)
			return r;
		if (x->stage == ARRAYS)
			filters = x->c->n;
	}
	return x->z->sharded && !x->inner ? 0 : v3_check_codecs(x, filters);
}

/* ---- shards -------------------------------------------------------------- */

/* Read the codecs of a shard's index.  Only plain numbers, perhaps with a checksum, are
 * supported, for the size of the index must be known. */
static int read_index_codecs(struct reading *x, const json_t *list)
{
	struct zarr_array *z = x->z;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *config;
		const char *name =
			extension_name(json_array_get(list, i), &config);
		bool said;
		int r = 0;

		if (name && i == 0 && !strcmp(name, "bytes"))
			r = read_endian(config, &z->index_big, &said, x->err);
		else if (name && i == 1 && !strcmp(name, "crc32c"))
			z->index_checked = true;
		else
			r = error_set(x->err, -ENOTSUP,
				      "codec '%.40s' of the index of shards is "
				      "not supported",
				      name ? name : "?");
		if (r < 0)
			return r;
	}
	return json_array_size(list)
		       ? 0
		       : error_set(x->err, -EBADMSG,
				   "'index_codecs' is not a list, or is empty");
}

static int read_location(struct zarr_array *z, const json_t *v,
			 struct error *err)
{
	const char *s = json_string_value(v);

	if (!v || (s && !strcmp(s, "end")))
		return 0;
	if (!s || strcmp(s, "start") != 0)
		return error_set(err, -EBADMSG,
				 "'index_location' is neither start nor end");
	z->index_first = true;
	return 0;
}

/* Make the chunk shape read so far that of a shard, and set the shape of the chunks in
 * it. */
static int shard_divide(struct zarr_array *z, const json_t *config,
			struct error *err)
{
	uint64_t inner[RANK_MAX];
	unsigned rank;
	int r = zarr_read_shape(config, "chunk_shape", &rank, inner, err);

	if (r < 0)
		return r;
	if (rank != z->rank)
		return error_set(
			err, -EBADMSG,
			"chunks of a shard have %u axes, and the array "
			"has %u",
			rank, z->rank);
	z->shard_chunks = 1;
	for (unsigned i = 0; i < rank; i++) {
		if (!inner[i] || z->chunk[i] % inner[i])
			return error_set(err, -EBADMSG,
					 "the shape of its shards is not a "
					 "multiple of that of its chunks");
		z->per_shard[i] = z->chunk[i] / inner[i];
		z->chunk[i] = inner[i];
		if (mul_overflows(z->shard_chunks, z->per_shard[i],
				  &z->shard_chunks) ||
		    z->shard_chunks > ZARR_SHARD_CHUNKS_MAX)
			return error_set(err, -ENOTSUP,
					 "its shards have too many chunks");
	}
	return 0;
}

static int read_sharding(struct reading *x, const json_t *config)
{
	struct reading inner = {
		.z = x->z, .c = x->c, .inner = true, .err = x->err};
	int r;

	if (x->inner)
		return error_set(x->err, -ENOTSUP,
				 "shards in shards are not supported");
	if (x->c->turned || x->c->n)
		return error_set(x->err, -ENOTSUP,
				 "codecs in front of 'sharding_indexed' are "
				 "not supported");
	x->z->sharded = true;
	r = shard_divide(x->z, config, x->err);
	if (r == 0)
		r = read_location(x->z,
				  json_object_get(config, "index_location"),
				  x->err);
	if (r == 0)
		r = read_index_codecs(x,
				      json_object_get(config, "index_codecs"));
	if (r == 0)
		r = v3_read_codecs(&inner, json_object_get(config, "codecs"));
	x->stage = BYTES;
	return r;
}

uint64_t zarr_shard_index_bytes(const struct zarr_array *z)
{
	return z->shard_chunks * 16 + (z->index_checked ? 4 : 0);
}

int zarr_shard_check(const struct zarr_array *z, const void *index,
		     struct error *err)
{
	size_t n = (size_t)(z->shard_chunks * 16);
	uint32_t is, stored;

	if (!z->index_checked)
		return 0;
	is = crc32c(index, n);
	stored = load_le32((const unsigned char *)index + n);
	if (is != stored)
		return error_set(err, -EBADMSG,
				 "the index of the shard is damaged: checksum "
				 "is %08x, stored is %08x",
				 is, stored);
	return 0;
}

int zarr_shard_find(const struct zarr_array *z, const void *index, uint64_t i,
		    uint64_t size, uint64_t *pos, uint64_t *n,
		    struct error *err)
{
	const unsigned char *at = (const unsigned char *)index + 16 * i;

	*pos = z->index_big ? load_be64(at) : load_le(at, 8);
	*n = z->index_big ? load_be64(at + 8) : load_le(at + 8, 8);
	if (*pos == UINT64_MAX && *n == UINT64_MAX)
		return 1;
	if (*n > size || *pos > size - *n)
		return error_set(err, -EBADMSG,
				 "the index of the shard has a chunk of %llu "
				 "bytes at %llu, and the shard ends at %llu: "
				 "truncated?",
				 (unsigned long long)*n,
				 (unsigned long long)*pos,
				 (unsigned long long)size);
	return 0;
}

/* ---- the rest ------------------------------------------------------------ */

static int read_grid(const json_t *doc, struct zarr_array *z, struct error *err)
{
	const json_t *config;
	const char *name =
		extension_name(json_object_get(doc, "chunk_grid"), &config);
	unsigned rank;
	int r;

	if (!name)
		return error_set(err, -EBADMSG, "it has no 'chunk_grid'");
	if (strcmp(name, "regular") != 0)
		return error_set(err, -ENOTSUP,
				 "a chunk grid '%.40s' is not supported", name);
	r = zarr_read_shape(config, "chunk_shape", &rank, z->chunk, err);
	if (r == 0 && rank != z->rank)
		r = error_set(err, -EBADMSG,
			      "'shape' has %u axes, and 'chunk_shape' has %u",
			      z->rank, rank);
	return r;
}

static int read_keys(const json_t *doc, struct zarr_array *z, struct error *err)
{
	const json_t *config, *v;
	const char *name = extension_name(
		json_object_get(doc, "chunk_key_encoding"), &config);
	const char *s;

	if (!name)
		return error_set(err, -EBADMSG,
				 "it has no 'chunk_key_encoding'");
	if (strcmp(name, "default") != 0 && strcmp(name, "v2") != 0)
		return error_set(err, -ENOTSUP,
				 "a chunk key encoding '%.40s' is not "
				 "supported",
				 name);
	z->prefixed = *name == 'd';
	z->separator = z->prefixed ? '/' : '.';
	v = json_object_get(config, "separator");
	s = json_string_value(v);
	if (v && (!s || strlen(s) != 1 || !strchr("./", *s)))
		return error_set(err, -EBADMSG,
				 "'separator' is neither . nor /");
	if (s)
		z->separator = *s;
	return 0;
}

/* Refuse members of zarr.json that a reader must understand but tensorfs does not
 * know. */
static int v3_check_members(const json_t *doc, struct error *err)
{
	static const char *const known[] = {"zarr_format",
					    "node_type",
					    "shape",
					    "data_type",
					    "chunk_grid",
					    "chunk_key_encoding",
					    "fill_value",
					    "codecs",
					    "attributes",
					    "dimension_names",
					    "consolidated_metadata"};
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)doc, key, v)
	{
		bool must =
			!json_is_false(json_object_get(v, "must_understand"));
		bool empty = json_is_null(v) ||
			     (json_is_array(v) && !json_array_size(v));

		for (size_t i = 0; i < sizeof known / sizeof *known; i++)
			must &= strcmp(key, known[i]) != 0;
		if (must && !empty)
			return error_set(err, -ENOTSUP,
					 "'%.40s' in its zarr.json is not "
					 "supported",
					 key);
	}
	return 0;
}

static int v3_read_places(const json_t *doc, struct zarr_array *z,
			  struct error *err)
{
	uint64_t version;
	int r;

	if (!zarr_count(json_object_get(doc, "zarr_format"), &version))
		return error_set(err, -EBADMSG, "it has no 'zarr_format'");
	if (version != 3)
		return error_set(err, -ENOTSUP,
				 "Zarr version %llu is not supported",
				 (unsigned long long)version);
	r = v3_check_members(doc, err);
	if (r == 0)
		r = zarr_read_shape(doc, "shape", &z->rank, z->shape, err);
	if (r == 0)
		r = read_grid(doc, z, err);
	return r == 0 ? read_keys(doc, z, err) : r;
}

int zarr_v3_read(const json_t *doc, struct intern *in, struct zarr_array *out,
		 struct error *err)
{
	struct zarr_array *z = out;
	struct reading x = {.z = z, .c = &z->codecs, .err = err};
	const json_t *fill = json_object_get(doc, "fill_value");
	int r;

	memset(z, 0, sizeof *z);
	r = v3_read_places(doc, z, err);
	if (r == 0)
		r = zarr_v3_type(json_object_get(doc, "data_type"), in,
				 &z->stored, err);
	if (r == 0)
		r = zarr_check_chunk(z, err);
	if (r == 0)
		r = v3_read_codecs(&x, json_object_get(doc, "codecs"));
	if (r == 0 && (!fill || json_is_null(fill)))
		r = error_set(err, -EBADMSG, "it has no 'fill_value'");
	return r < 0 ? r : zarr_read_fill(fill, in, z, err);
}
