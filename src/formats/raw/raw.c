/* SPDX-License-Identifier: BSD-2-Clause */
/* Source: a raw binary file, whose records are the samples of a tensor. */
#include "formats/raw/raw.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "base/parse.h"
#include "formats/numpy/frames.h"
#include "tensor/dtype_parse.h"

#define KEYS "dtype, shape, header, footer, offset, order and count"

/* ---- parsing raw= -------------------------------------------------------- */

/* Parse a shape such as "256x256".  It has no commas, because they separate keys. */
static int parse_raw_shape(char *value, struct raw_spec *out, struct error *err)
{
	char *save = NULL;

	out->rank = 0;
	if (!*value || value[strlen(value) - 1] == 'x')
		return error_set(err, -EINVAL,
				 "shape '%s' is not of the form 256x256",
				 value);
	for (char *n = strtok_r(value, "x", &save); n;
	     n = strtok_r(NULL, "x", &save)) {
		if (out->rank == RANK_MAX - 1)
			return error_set(err, -EINVAL,
					 "shape: more than %d axes",
					 RANK_MAX - 1);
		if (parse_count(n, 1, INT64_MAX, &out->shape[out->rank++],
				err) < 0)
			return error_set(
				err, -EINVAL,
				"shape: '%s' is not a number of at least 1", n);
	}
	return 0;
}

static int parse_raw_order(const char *value, struct raw_spec *out,
			   struct error *err)
{
	out->fortran = !strcmp(value, "F");
	return out->fortran || !strcmp(value, "C")
		       ? 0
		       : error_set(err, -EINVAL, "order '%s' is not C or F",
				   value);
}

static int parse_raw_key(const char *key, char *value, struct raw_spec *out,
			 struct error *err)
{
	uint64_t *bytes = !strcmp(key, "header")   ? &out->header
			  : !strcmp(key, "footer") ? &out->footer
			  : !strcmp(key, "offset") ? &out->offset
						   : NULL;
	int r;

	if (!strcmp(key, "dtype"))
		return dtype_parse(value, &out->dtype, err);
	if (!strcmp(key, "shape"))
		return parse_raw_shape(value, out, err);
	if (!strcmp(key, "order"))
		return parse_raw_order(value, out, err);
	if (bytes)
		r = parse_size(value, 0, bytes, err);
	else if (!strcmp(key, "count"))
		r = parse_count(value, 1, INT64_MAX, &out->count, err);
	else
		return error_set(err, -EINVAL,
				 "unknown key '%s': keys are " KEYS, key);
	if (r < 0)
		error_prefix(err, "%s: ", key);
	return r;
}

int raw_parse(const char *text, struct raw_spec *out, struct error *err)
{
	cleanup_free char *copy = strdup(text);
	char *save = NULL;

	memset(out, 0, sizeof *out);
	if (!copy)
		return error_no_memory(err, "the text of raw=");
	for (char *item = strtok_r(copy, ",", &save); item;
	     item = strtok_r(NULL, ",", &save)) {
		char *value = strchr(item, '=');
		int r;

		if (!value)
			return error_set(
				err, -EINVAL,
				"'%s' is not KEY=VALUE: keys are " KEYS, item);
		*value++ = '\0';
		r = parse_raw_key(item, value, out, err);
		if (r < 0)
			return r == -ENOMEM ? r : (err->code = -EINVAL);
	}
	if (!out->dtype.size)
		return error_set(err, -EINVAL,
				 "dtype= is missing (dtype=u2,shape=256x256)");
	return 0;
}

/* ---- the source ---------------------------------------------------------- */

static int count_raw_records(const struct raw_spec *spec, uint64_t size,
			     uint64_t record, uint64_t *n, struct error *err)
{
	uint64_t all;
	int r = frames_count(size, spec->offset, record, spec->count > 0, n,
			     err);

	if (r < 0 && *n)
		error_prefix(err, "raw: ");
	if (r < 0 || !spec->count)
		return r;
	all = *n;
	*n = spec->count;
	return spec->count <= all ? 0
				  : error_set(err, -EBADMSG,
					      "it has room for %" PRIu64
					      " records of %" PRIu64
					      " bytes, but count= is %" PRIu64
					      ": truncated?",
					      all, record, spec->count);
}

static int publish_raw(struct arrays *s, const struct source_args *a,
		       struct error *err)
{
	struct frames_part part = {.file = s->file};
	struct frames f = {
		.name = "/data", .lead = 1, .nparts = 1, .parts = &part};
	struct raw_spec spec;
	struct array *array;
	uint64_t bytes;
	int r = raw_parse(a->raw, &spec, err);

	if (r < 0)
		return r;
	f.dtype = spec.dtype;
	f.fortran = spec.fortran;
	f.rank = spec.rank + 1;
	memcpy(f.shape + 1, spec.shape, spec.rank * sizeof *f.shape);
	if (!frames_bytes(&f, &bytes) ||
	    add_overflows(bytes, spec.header, &part.stride) ||
	    add_overflows(part.stride, spec.footer, &part.stride) ||
	    add_overflows(spec.offset, spec.header, &part.pos))
		return error_set(
			err, -EINVAL,
			"raw: records of this size are too large for any file");
	r = count_raw_records(&spec, s->size, part.stride, &part.n, err);
	if (r < 0)
		return r;
	f.shape[0] = part.n;
	r = frames_array(s, &f, &array, err);
	return r < 0 ? r
		     : array_publish(a->tree, a->dir, "data", array, NULL, err);
}

/* Raw files cannot be recognised by their bytes. */
static int raw_probe(const unsigned char *head, size_t n, const char *path)
{
	(void)head;
	(void)n;
	(void)path;
	return 0;
}

static void raw_close(struct source *source)
{
	arrays_end((struct arrays *)source);
	free(source);
}

int raw_open(const struct source_args *a, struct source **out,
	     struct error *err)
{
	struct arrays *s = calloc(1, sizeof *s);
	int r;

	*out = NULL;
	if (!s)
		return error_no_memory(err, "the raw file");
	s->source.ops = &source_raw;
	r = arrays_begin(s, a, err);
	if (r == 0 && s->file == UINT32_MAX)
		r = error_set(err, -EISDIR,
			      "it is a directory, but raw= is for files");
	if (r == 0)
		r = publish_raw(s, a, err);
	if (r < 0) {
		if (!strstr(err->text, a->path))
			error_prefix(err, "%s: ", a->path);
		raw_close(&s->source);
		return r;
	}
	*out = &s->source;
	return 0;
}

const struct source_ops source_raw = {
	.name = "raw",
	.summary = "raw binary files, as raw= describes them",
	.probe = raw_probe,
	.open = raw_open,
	.usage = arrays_usage,
	.close = raw_close,
};
