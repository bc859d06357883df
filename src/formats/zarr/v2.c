/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads .zarray, the metadata of an array of Zarr version 2 (zarr-specs, v2.0). */
#include <errno.h>
#include <string.h>

#include "base/number.h"
#include "formats/zarr/meta.h"

int zarr_check_chunk(struct zarr_array *z, struct error *err)
{
	uint64_t bytes = z->stored.size;

	for (unsigned i = 0; i < z->rank; i++) {
		if (!z->chunk[i] && z->shape[i])
			return error_set(err, -EBADMSG,
					 "its chunks have no elements");
		if (!z->chunk[i])
			z->chunk[i] = 1;
		if (mul_overflows(bytes, z->chunk[i], &bytes) ||
		    bytes > INT64_MAX)
			return error_set(err, -ENOTSUP,
					 "its chunks are too large");
	}
	return 0;
}

static int v2_add_codec(const json_t *v, struct zarr_codecs *c,
			struct error *err)
{
	const char *id = json_string_value(json_object_get(v, "id"));

	if (!id)
		return error_set(err, -EBADMSG,
				 "a compressor or filter has no 'id'");
	return zarr_add_numcodec(c, id, v, err);
}

/* Read the filters, in the order in which they were applied, then the compressor. */
static int v2_read_codecs(const json_t *doc, struct zarr_codecs *c,
			  struct error *err)
{
	const json_t *filters = json_object_get(doc, "filters");
	const json_t *compressor = json_object_get(doc, "compressor");
	int r = 0;

	if (filters && !json_is_null(filters) && !json_is_array(filters))
		return error_set(err, -EBADMSG, "'filters' is not a list");
	for (size_t i = 0; i < json_array_size(filters) && !r; i++)
		r = v2_add_codec(json_array_get(filters, i), c, err);
	if (r == 0 && compressor && !json_is_null(compressor))
		r = v2_add_codec(compressor, c, err);
	return r;
}

static int v2_read_order(const json_t *doc, struct zarr_array *z,
			 struct error *err)
{
	const char *order = json_string_value(json_object_get(doc, "order"));
	uint8_t reversed[RANK_MAX];

	if (!order || strlen(order) != 1 || !strchr("CF", *order))
		return error_set(err, -EBADMSG, "'order' is neither C nor F");
	for (unsigned i = 0; i < z->rank; i++)
		reversed[i] = (uint8_t)(z->rank - 1 - i);
	if (*order == 'F')
		zarr_turn(&z->codecs, z->rank, reversed);
	return 0;
}

static int read_separator(const json_t *doc, struct zarr_array *z,
			  struct error *err)
{
	const json_t *v = json_object_get(doc, "dimension_separator");
	const char *s = json_string_value(v);

	if (!v || json_is_null(v))
		return 0;
	if (!s || strlen(s) != 1 || !strchr("./", *s))
		return error_set(err, -EBADMSG,
				 "'dimension_separator' is neither . nor /");
	z->separator = *s;
	return 0;
}

/* Read what does not depend on the type, which may be unknown. */
static int v2_read_places(const json_t *doc, struct zarr_array *z,
			  struct error *err)
{
	unsigned rank;
	uint64_t version;
	int r;

	if (!zarr_count(json_object_get(doc, "zarr_format"), &version))
		return error_set(err, -EBADMSG, "it has no 'zarr_format'");
	if (version != 2)
		return error_set(err, -ENOTSUP,
				 "Zarr version %llu is not supported",
				 (unsigned long long)version);
	r = zarr_read_shape(doc, "shape", &z->rank, z->shape, err);
	if (r == 0)
		r = zarr_read_shape(doc, "chunks", &rank, z->chunk, err);
	if (r == 0 && rank != z->rank)
		r = error_set(err, -EBADMSG,
			      "'shape' has %u axes, and 'chunks' has %u",
			      z->rank, rank);
	return r;
}

int zarr_v2_read(const json_t *doc, struct intern *in, struct zarr_array *out,
		 struct error *err)
{
	struct zarr_array *z = out;
	int r;

	memset(z, 0, sizeof *z);
	r = v2_read_places(doc, z, err);
	if (r == 0)
		r = v2_read_codecs(doc, &z->codecs, err);
	if (r == 0)
		r = zarr_v2_type(json_object_get(doc, "dtype"), in, &z->stored,
				 err);
	if (r == 0)
		r = zarr_check_chunk(z, err);
	if (r == 0)
		r = v2_read_order(doc, z, err);
	if (r == 0)
		r = read_separator(doc, z, err);
	if (r == 0)
		r = zarr_read_fill(json_object_get(doc, "fill_value"), in, z,
				   err);
	return r;
}
