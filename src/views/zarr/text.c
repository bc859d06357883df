/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the metadata of a Zarr array: .zarray, .zattrs, zarr.json. */

/*
 * Sources: zarr-specs v2 and v3 core; names and parameters of codecs are numcodecs'.
 * xarray takes the names of axes from _ARRAY_DIMENSIONS.  It wants a name for each
 * axis, different names within an array, and one length for each name within a group.
 * Axes that the file does not name are dim_0, dim_1; where siblings differ in length,
 * dim_0_100.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "views/zarr/zarr.h"

/* The JSON is ASCII, as zarr itself writes it: some readers expect that. */
#define DUMP (JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII)

static json_t *zarr_numbers_json(const uint64_t *v, unsigned n)
{
	json_t *a = json_array();

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(a, json_integer((json_int_t)v[i]));
	return a;
}

/* Write `"key": value` and drop the reference to the value.  Returns false if memory
 * ran out. */
static bool zarr_put_json(FILE *out, const char *key, json_t *value)
{
	cleanup_free char *s = value ? json_exact(value, DUMP) : NULL;

	json_decref(value);
	if (!s)
		return false;
	fprintf(out, "\"%s\": %s, ", key, s);
	return true;
}

/* ---- types ---------------------------------------------------------------- */

static json_t *zarr_type_json(const struct dtype *d);

static void zarr_put_padding(json_t *fields, uint64_t n)
{
	char name[32], type[32];

	snprintf(name, sizeof name, "padding_%zu", json_array_size(fields));
	snprintf(type, sizeof type, "|V%" PRIu64, n);
	json_array_append_new(fields, json_pack("[s, s]", name, type));
}

/* Return fields as NumPy lists them, but with names for padding. */
static json_t *zarr_structure_json(const struct dtype *d)
{
	json_t *all = json_array();
	uint64_t at = 0, count, size;

	for (uint32_t i = 0; i < d->nfields; i++) {
		const struct dtype_field *f = &d->fields[i];
		json_t *one = json_array();

		if (f->offset > at)
			zarr_put_padding(all, f->offset - at);
		json_array_append_new(one, json_text(f->name, strlen(f->name)));
		json_array_append_new(one, zarr_type_json(&f->type));
		if (f->rank)
			json_array_append_new(
				one, zarr_numbers_json(f->dims, f->rank));
		json_array_append_new(all, one);
		at = f->offset;
		if (dtype_field_size(f, &count, &size))
			at += size;
	}
	if (d->size > at)
		zarr_put_padding(all, d->size - at);
	return all;
}

static json_t *zarr_type_json(const struct dtype *d)
{
	char descr[32];

	if (d->kind == DTYPE_STRUCT)
		return zarr_structure_json(d);
	dtype_descr(d, descr, sizeof descr);
	return json_string(descr);
}

/* Return the name of a type in Zarr v3, which may be in `buf`; NULL if it has none. */
static const char *zarr3_type_name(const struct dtype *d, char *buf, size_t n)
{
	switch (d->kind) {
	case DTYPE_BOOL:
		return "bool";
	case DTYPE_FLOAT:
	case DTYPE_COMPLEX:
		if (d->size > (d->kind == DTYPE_FLOAT ? 8 : 16) ||
		    (d->kind == DTYPE_COMPLEX && d->size < 8))
			return NULL;
		break;
	case DTYPE_INT:
	case DTYPE_UINT:
		break;
	default:
		return NULL;
	}
	dtype_name(d, buf, n);
	return buf;
}

bool zarr3_fits(const struct tensor *t)
{
	char name[80];

	return zarr_fits(t) && zarr3_type_name(&t->dtype, name, sizeof name);
}

/* ---- codecs --------------------------------------------------------------- */

static json_t *zarr_codec_json(const struct pipeline_filter *f)
{
	const struct codec_params *p = &f->params;

	switch (f->id) {
	case ZARR_SHUFFLE:
		return json_pack("{s:s, s:i}", "id", "shuffle", "elementsize",
				 (int)p->cd[0]);
	case ZARR_ZLIB:
		return json_pack("{s:s, s:i}", "id", "zlib", "level",
				 p->n && p->cd[0] <= 9 ? (int)p->cd[0] : 1);
	case ZARR_ZSTD:
		return json_pack("{s:s, s:i}", "id", "zstd", "level",
				 p->n ? (int)p->cd[0] : 1);
	default: /* blosc; zarr_can_store checked the parameters */
		return json_pack("{s:s, s:s, s:i, s:i, s:i}", "id", "blosc",
				 "cname", zarr_blosc_name(p->cd[6]), "clevel",
				 p->cd[4] <= 9 ? (int)p->cd[4] : 5, "shuffle",
				 p->cd[5] <= 2 ? (int)p->cd[5] : 1, "blocksize",
				 0);
	}
}

/* Write "compressor" and "filters".  The last filter is the compressor, if it
 * compresses. */
static bool zarr_put_codecs(FILE *out, const struct pipeline *p)
{
	json_t *filters = json_array(), *compressor = json_null();
	unsigned n = p ? p->n : 0;
	bool ok;

	if (n && p->filter[n - 1].id == ZARR_FLETCHER32)
		n--;
	if (n && p->filter[n - 1].id != ZARR_SHUFFLE)
		compressor = zarr_codec_json(&p->filter[--n]);
	for (unsigned i = 0; i < n; i++)
		json_array_append_new(filters, zarr_codec_json(&p->filter[i]));
	if (!n) {
		json_decref(filters);
		filters = json_null();
	}
	ok = zarr_put_json(out, "compressor", compressor);
	return zarr_put_json(out, "filters", filters) && ok;
}

/* ---- .zarray --------------------------------------------------------------- */

/*
 * xarray takes an array's fill value for missing data and replaces it by NaN, even if
 * it is zero.  So a fill value is written only where a chunk is missing that it stands
 * for.
 */
static bool zarr_put_array(FILE *out, const struct tensor *t,
			   const struct grid *g, bool stored, bool whole)
{
	const struct layout *l =
		stored ? atomic_load(&t->parts[0].layout) : NULL;
	bool ok;

	fputs("{", out);
	ok = zarr_put_json(out, "shape",
			   zarr_numbers_json(zarr_shape(t), t->rank));
	ok = zarr_put_json(out, "chunks",
			   zarr_numbers_json(g->chunk, t->rank)) &&
	     ok;
	ok = zarr_put_json(out, "dtype",
			   zarr_type_json(stored ? zarr_stored_dtype(t)
						 : &t->dtype)) &&
	     ok;
	ok = zarr_put_codecs(out, l ? l->pipeline : NULL) && ok;
	fputs("\"fill_value\": ", out);
	if (whole)
		fputs("null", out);
	else
		zarr_put_fill(out, t, false);
	fputs(", \"order\": \"C\", \"zarr_format\": 2}\n", out);
	return ok;
}

char *zarr_array_text(struct tensor *t, struct error *err)
{
	struct grid room;
	const struct grid *g = zarr_grid(t, &room);
	enum zarr_mode mode;
	char *text = NULL;
	size_t len;
	FILE *out;
	bool ok, whole;

	if (!g || zarr_mode(t, &mode, err) < 0 ||
	    zarr_is_whole(t, &whole, err) < 0)
		return NULL;
	out = open_memstream(&text, &len);
	if (!out) {
		error_no_memory(err, ".zarray");
		return NULL;
	}
	ok = zarr_put_array(out, t, g, mode == ZARR_STORED, whole);
	if (fclose(out) == 0 && ok)
		return text;
	free(text);
	error_no_memory(err, ".zarray");
	return NULL;
}

/* ---- attributes ------------------------------------------------------------ */

static json_t *zarr_source_json(struct tensor *t,
				char *(*ask)(struct tensor *t,
					     struct error *err),
				struct error *err)
{
	cleanup_free char *text = ask ? ask(t, err) : NULL;
	json_t *o = text ? json_loads(text, JSON_ALLOW_NUL, NULL) : NULL;

	if (!ask)
		o = json_object();
	if (text && !o)
		error_set(err, -EIO, "%s: its attributes are not valid JSON",
			  t->name);
	return o;
}

static const char *last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool axes_have_name(const json_t *names, const char *name)
{
	for (size_t i = 0; i < json_array_size(names); i++)
		if (!strcmp(json_string_value(json_array_get(names, i)), name))
			return true;
	return false;
}

/* Return the names of axes; `axes` is what the source knows of them, or NULL. */
static json_t *zarr_axis_names(const struct tensor *t, const json_t *attributes,
			       const json_t *axes)
{
	const char *class =
		json_string_value(json_object_get(attributes, "CLASS"));
	bool is_scale =
		t->rank == 1 && class && !strcmp(class, "DIMENSION_SCALE");
	json_t *names = json_array();

	for (unsigned i = 0; i < t->rank; i++) {
		const char *name = json_string_value(
			json_object_get(json_array_get(axes, i), "name"));
		char number[64];

		if (is_scale)
			name = last_name(t->name);
		snprintf(number, sizeof number, "dim_%u", i);
		if (t->sized_axes)
			snprintf(number, sizeof number, "dim_%u_%" PRIu64, i,
				 zarr_shape(t)[i]);
		if (!name || !*name || axes_have_name(names, name))
			name = number;
		json_array_append_new(names, json_text(name, strlen(name)));
	}
	return names;
}

/* Delete the attributes that HDF5 and netCDF keep for themselves. */
static void zarr_drop_internal(json_t *attributes)
{
	static const char *const names[] = {
		"DIMENSION_LIST", "DIMENSION_LABELS",    "REFERENCE_LIST",
		"CLASS",          "_Netcdf4Coordinates", "_Netcdf4Dimid",
		"_nc3_strict",    "_NCProperties",       "NAME"};
	const char *class =
		json_string_value(json_object_get(attributes, "CLASS"));
	bool scale = class && !strcmp(class, "DIMENSION_SCALE");

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (scale || (strcmp(names[i], "CLASS") != 0 &&
			      strcmp(names[i], "NAME") != 0))
			json_object_del(attributes, names[i]);
}

/* Return the attributes and set *names to the names of axes; the caller owns both.
 * NULL with a sentence if that failed. */
static json_t *zarr_attributes_and_axes(struct tensor *t, json_t **names,
					struct error *err)
{
	json_t *about = zarr_source_json(t, t->ops ? t->ops->about : NULL, err);
	json_t *o = json_incref(json_object_get(about, "attributes"));

	if (about && !o)
		o = zarr_source_json(t, t->ops ? t->ops->attributes : NULL,
				     err);
	if (!o) {
		json_decref(about);
		return NULL;
	}
	*names = zarr_axis_names(t, o, json_object_get(about, "axes"));
	zarr_drop_internal(o);
	json_decref(about);
	return o;
}

char *zarr_attributes_text(struct tensor *t, struct error *err)
{
	json_t *names, *o = zarr_attributes_and_axes(t, &names, err);
	char *text;

	if (!o)
		return NULL;
	json_object_set_new(o, "_ARRAY_DIMENSIONS", names);
	text = json_exact(o, DUMP);
	json_decref(o);
	if (!text)
		error_no_memory(err, ".zattrs");
	return text;
}

/* ---- zarr.json ------------------------------------------------------------- */

/* Return the compressor.  Zstd and blosc store most parameters in each chunk, but the
 * format requires them here, too. */
static json_t *zarr3_compressor_json(const struct pipeline_filter *f)
{
	static const char *const shuffles[] = {"noshuffle", "shuffle",
					       "bitshuffle"};
	const struct codec_params *p = &f->params;
	uint32_t type;

	if (f->id == ZARR_ZSTD)
		return json_pack("{s:s, s:{s:i, s:b}}", "name", "zstd",
				 "configuration", "level",
				 p->n ? (int)p->cd[0] : 1, "checksum", 0);
	type = p->cd[2] && p->cd[2] < 256 ? p->cd[2] : 1;
	return json_pack("{s:s, s:{s:s, s:i, s:s, s:i, s:i}}", "name", "blosc",
			 "configuration", "cname", zarr_blosc_name(p->cd[6]),
			 "clevel", p->cd[4] <= 9 ? (int)p->cd[4] : 5, "shuffle",
			 shuffles[p->cd[5] <= 2 ? p->cd[5] : 1], "typesize",
			 (int)type, "blocksize", 0);
}

/* Return the codecs.  `d` is the type of elements in a chunk; if `l` is not NULL,
 * chunks are served as that layout stores them. */
static json_t *zarr3_codecs_json(const struct dtype *d, const struct layout *l)
{
	unsigned one = d->kind == DTYPE_COMPLEX ? d->size / 2 : d->size;
	json_t *all = one == 1 ? json_pack("[{s:s}]", "name", "bytes")
			       : json_pack("[{s:s, s:{s:s}}]", "name", "bytes",
					   "configuration", "endian",
					   d->big_endian ? "big" : "little");

	if (l)
		json_array_append_new(
			all, zarr3_compressor_json(&l->pipeline->filter[0]));
	return all;
}

static bool zarr3_put_array(FILE *out, const struct tensor *t,
			    const struct grid *g, bool stored,
			    json_t *attributes, json_t *names)
{
	const struct layout *l =
		stored ? atomic_load(&t->parts[0].layout) : NULL;
	const struct dtype *d = stored ? zarr_stored_dtype(t) : &t->dtype;
	char type[80];
	bool ok;

	fputs("{\"zarr_format\": 3, \"node_type\": \"array\", ", out);
	ok = zarr_put_json(out, "shape",
			   zarr_numbers_json(zarr_shape(t), t->rank));
	fprintf(out, "\"data_type\": \"%s\", ",
		zarr3_type_name(&t->dtype, type, sizeof type));
	ok = zarr_put_json(out, "chunk_grid",
			   json_pack("{s:s, s:{s:o}}", "name", "regular",
				     "configuration", "chunk_shape",
				     zarr_numbers_json(g->chunk, t->rank))) &&
	     ok;
	ok = zarr_put_json(out, "chunk_key_encoding",
			   json_pack("{s:s, s:{s:s}}", "name", "default",
				     "configuration", "separator", "/")) &&
	     ok;
	ok = zarr_put_json(out, "codecs", zarr3_codecs_json(d, l)) && ok;
	ok = zarr_put_json(out, "attributes", attributes) && ok;
	ok = zarr_put_json(out, "dimension_names", names) && ok;
	fputs("\"fill_value\": ", out);
	zarr_put_fill(out, t, true);
	fputs("}\n", out);
	return ok;
}

char *zarr3_array_text(struct tensor *t, struct error *err)
{
	struct grid room;
	const struct grid *g = zarr_grid(t, &room);
	enum zarr_mode mode = ZARR_DECODED;
	json_t *names, *o;
	char *text = NULL;
	size_t len;
	FILE *out;
	bool ok;

	if (!g || (zarr3_can_store(t) && zarr_mode(t, &mode, err) < 0))
		return NULL;
	o = zarr_attributes_and_axes(t, &names, err);
	if (!o)
		return NULL;
	out = open_memstream(&text, &len);
	if (!out) {
		json_decref(o);
		json_decref(names);
		error_no_memory(err, "zarr.json");
		return NULL;
	}
	ok = zarr3_put_array(out, t, g, mode == ZARR_STORED, o, names);
	if (fclose(out) == 0 && ok)
		return text;
	free(text);
	error_no_memory(err, "zarr.json");
	return NULL;
}
