/* SPDX-License-Identifier: BSD-2-Clause */
/* Parse the header of a .safetensors file and check the tensors against the buffer. */
/*
 * A scanner of this file cuts the object into names and values, and jansson parses
 * each of them.  So a header of 100 MB, whatever it holds, takes no more memory
 * than the tensors in it.
 */
#include "formats/safetensors/header.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "tensor/grid.h"

/* Limits in bytes of the JSON of one tensor, and of all metadata. */
#define TENSOR_TEXT_MOST 65536
#define METADATA_MOST (UINT32_C(4) << 20)

/* ---- types --------------------------------------------------------------- */

static const struct format {
	const char *name;
	unsigned bits;
	enum dtype_kind kind;
	const char *text;
} formats[] = {
	{"BOOL", 8, DTYPE_BOOL, NULL},
	{"U8", 8, DTYPE_UINT, NULL},
	{"I8", 8, DTYPE_INT, NULL},
	{"F8_E5M2", 8, DTYPE_UINT, "float8 (E5M2), shown as its bits"},
	{"F8_E4M3", 8, DTYPE_UINT, "float8 (E4M3), shown as its bits"},
	{"F8_E5M2FNUZ", 8, DTYPE_UINT, "float8 (E5M2FNUZ), shown as its bits"},
	{"F8_E4M3FNUZ", 8, DTYPE_UINT, "float8 (E4M3FNUZ), shown as its bits"},
	{"F8_E8M0", 8, DTYPE_UINT, "float8 (E8M0), shown as its bits"},
	{"I16", 16, DTYPE_INT, NULL},
	{"U16", 16, DTYPE_UINT, NULL},
	{"F16", 16, DTYPE_FLOAT, NULL},
	{"BF16", 16, DTYPE_UINT, "bfloat16, shown as its bits"},
	{"I32", 32, DTYPE_INT, NULL},
	{"U32", 32, DTYPE_UINT, NULL},
	{"F32", 32, DTYPE_FLOAT, NULL},
	{"C64", 64, DTYPE_COMPLEX, NULL},
	{"F64", 64, DTYPE_FLOAT, NULL},
	{"I64", 64, DTYPE_INT, NULL},
	{"U64", 64, DTYPE_UINT, NULL},
	/* Types with several elements in a byte. */
	{"F4", 4, DTYPE_OTHER, NULL},
	{"F6_E2M3", 6, DTYPE_OTHER, NULL},
	{"F6_E3M2", 6, DTYPE_OTHER, NULL},
};

static const struct format *find_tensor_type(const char *name)
{
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}

/* ---- one tensor ---------------------------------------------------------- */

static bool is_natural_number(const json_t *v, uint64_t *out)
{
	if (!json_is_integer(v) || json_integer_value(v) < 0)
		return false;
	*out = (uint64_t)json_integer_value(v);
	return true;
}

static int read_safetensor_shape(struct safetensor *t, const json_t *shape,
				 uint64_t *elements, struct error *err)
{
	size_t n = json_array_size(shape);

	if (!json_is_array(shape))
		return error_set(err, -EBADMSG, "\"shape\" is not a list");
	t->shape = calloc(n ? n : 1, sizeof *t->shape);
	if (!t->shape)
		return error_no_memory(err, "the shape of a tensor");
	*elements = 1;
	for (size_t i = 0; i < n; i++) {
		if (!is_natural_number(json_array_get(shape, i), &t->shape[i]))
			return error_set(err, -EBADMSG,
					 "\"shape\" has an element that is not "
					 "a number of at least 0");
		if (mul_overflows(*elements, t->shape[i], elements))
			return error_set(err, -EBADMSG,
					 "its shape is too large");
	}
	t->rank = (unsigned)n;
	if (n > RANK_MAX)
		t->why_not = "it has more than 32 axes";
	return 0;
}

static int read_data_offsets(struct safetensor *t, const json_t *offsets,
			     uint64_t bytes, struct error *err)
{
	if (json_array_size(offsets) != 2 ||
	    !is_natural_number(json_array_get(offsets, 0), &t->begin) ||
	    !is_natural_number(json_array_get(offsets, 1), &t->end) ||
	    t->begin > t->end)
		return error_set(
			err, -EBADMSG,
			"\"data_offsets\" are not two ascending positions");
	if (t->end > bytes)
		return error_set(err, -EBADMSG,
				 "it ends at byte %" PRIu64
				 " of a buffer of %" PRIu64 ": truncated?",
				 t->end, bytes);
	return 0;
}

static int check_tensor_bytes(struct safetensor *t, const struct format *f,
			      uint64_t elements, struct error *err)
{
	uint64_t bits;

	if (mul_overflows(elements, f->bits, &bits) || bits % 8)
		return error_set(
			err, -EBADMSG,
			"its shape is too large, or does not take whole bytes");
	if (bits / 8 != t->end - t->begin)
		return error_set(err, -EBADMSG,
				 "type and shape take %" PRIu64
				 " bytes, but there are %" PRIu64,
				 bits / 8, t->end - t->begin);
	if (f->kind == DTYPE_OTHER)
		t->why_not = "types with several elements in a byte are not "
			     "supported";
	t->dtype.kind = f->kind;
	t->dtype.size = f->bits / 8;
	t->dtype.text = f->text;
	return 0;
}

static int read_tensor(struct safetensor *t, const json_t *o, uint64_t bytes,
		       struct error *err)
{
	const char *type = json_string_value(json_object_get(o, "dtype"));
	const struct format *f = type ? find_tensor_type(type) : NULL;
	uint64_t elements = 0;
	int r;

	if (!type)
		return error_set(err, -EBADMSG, "it has no \"dtype\"");
	if (!f)
		return error_set(err, -EBADMSG, "its type \"%.40s\" is unknown",
				 type);
	r = read_safetensor_shape(t, json_object_get(o, "shape"), &elements,
				  err);
	if (r == 0)
		r = read_data_offsets(t, json_object_get(o, "data_offsets"),
				      bytes, err);
	return r < 0 ? r : check_tensor_bytes(t, f, elements, err);
}

/* ---- the object ---------------------------------------------------------- */

struct scan {
	const char *at, *end;
};

static void skip_space(struct scan *s)
{
	while (s->at < s->end && memchr(" \t\r\n", *s->at, 4))
		s->at++;
}

static bool scan_char(struct scan *s, char c)
{
	skip_space(s);
	if (s->at == s->end || *s->at != c)
		return false;
	s->at++;
	return true;
}

/* Move past a string that begins here. */
static bool scan_string(struct scan *s)
{
	if (!scan_char(s, '"'))
		return false;
	for (; s->at < s->end; s->at++) {
		if (*s->at == '"') {
			s->at++;
			return true;
		}
		if (*s->at == '\\' && ++s->at == s->end)
			return false;
	}
	return false;
}

/* Move past an object that begins here.  What is in it is parsed later. */
static bool scan_object(struct scan *s)
{
	size_t depth = 0;

	skip_space(s);
	if (s->at == s->end || *s->at != '{')
		return false;
	while (s->at < s->end) {
		char c = *s->at;

		if (c == '"') {
			if (!scan_string(s))
				return false;
			continue;
		}
		s->at++;
		depth += c == '{';
		depth -= c == '}';
		if (!depth)
			return true;
	}
	return false;
}

static json_t *load_json(const char *from, const char *to, struct error *err)
{
	json_error_t e;
	json_t *v = json_loadb(from, (size_t)(to - from),
			       JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &e);

	if (!v)
		error_set(err, -EBADMSG, "%s", e.text);
	return v;
}

static int read_file_metadata(struct safetensors *s, const char *from,
			      const char *to, struct error *err)
{
	const char *key;
	json_t *v;

	if (s->metadata)
		return error_set(err, -EBADMSG, "it is in the header twice");
	if (to - from > METADATA_MOST)
		return error_set(err, -EBADMSG, "it is longer than 4 MiB");
	s->metadata = load_json(from, to, err);
	if (!s->metadata)
		return -EBADMSG;
	json_object_foreach(s->metadata, key, v) if (
		!json_is_string(v)) return error_set(err, -EBADMSG,
						     "it has a value that is "
						     "not a string");
	return 0;
}

static int add_tensor_entry(struct safetensors *s, const char *name,
			    const char *from, const char *to, uint64_t bytes,
			    struct error *err)
{
	struct safetensor *t;
	json_t *o;
	int r;

	if (to - from > TENSOR_TEXT_MOST)
		return error_set(err, -EBADMSG,
				 "its entry in the header is too long");
	if (s->n == s->room) {
		size_t room = s->room ? 2 * s->room : 16;

		t = realloc(s->at, room * sizeof *t);
		if (!t)
			return error_no_memory(err, "the list of tensors");
		s->at = t;
		s->room = room;
	}
	o = load_json(from, to, err);
	if (!o)
		return -EBADMSG;
	t = memset(&s->at[s->n], 0, sizeof *t);
	t->name = strdup(name);
	s->n++;
	r = t->name ? read_tensor(t, o, bytes, err)
		    : error_no_memory(err, "the name of a tensor");
	json_decref(o);
	return r;
}

/* Parse one entry, "name": {...}. */
static int read_header_entry(struct safetensors *s, struct scan *in,
			     uint64_t bytes, struct error *err)
{
	const char *key, *key_end, *from;
	json_t *name;
	int r;

	skip_space(in);
	key = in->at;
	if (!scan_string(in))
		return error_set(err, -EBADMSG,
				 "the header is not a JSON object");
	key_end = in->at;
	name = load_json(key, key_end, err);
	if (!name)
		return error_prefix(err, "a name in the header: ");
	from = in->at;
	if (!scan_char(in, ':') || (from = in->at, !scan_object(in)))
		r = error_set(err, -EBADMSG, "it is not a JSON object");
	else if (!strcmp(json_string_value(name), "__metadata__"))
		r = read_file_metadata(s, from, in->at, err);
	else
		r = add_tensor_entry(s, json_string_value(name), from, in->at,
				     bytes, err);
	if (r < 0)
		error_prefix(err, "\"%.80s\": ", json_string_value(name));
	json_decref(name);
	return r;
}

static int read_header_entries(struct safetensors *s, struct scan *in,
			       uint64_t bytes, struct error *err)
{
	int r;

	if (in->at == in->end || *in->at != '{')
		return error_set(err, -EBADMSG,
				 "its header does not begin with \"{\"");
	in->at++;
	if (!scan_char(in, '}')) {
		do {
			r = read_header_entry(s, in, bytes, err);
			if (r < 0)
				return r;
		} while (scan_char(in, ','));
		if (!scan_char(in, '}'))
			return error_set(err, -EBADMSG,
					 "the header is not a JSON object");
	}
	skip_space(in);
	return in->at == in->end
		       ? 0
		       : error_set(err, -EBADMSG,
				   "something follows the header's object");
}

/* ---- all tensors --------------------------------------------------------- */

static int compare_tensor_names(const void *a, const void *b)
{
	return strcmp(((const struct safetensor *)a)->name,
		      ((const struct safetensor *)b)->name);
}

static int compare_tensor_places(const void *a, const void *b)
{
	const struct safetensor *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	return strcmp(x->name, y->name);
}

static int check_tensor_order(struct safetensors *s, uint64_t bytes,
			      struct error *err)
{
	uint64_t at = 0;

	if (s->n)
		qsort(s->at, s->n, sizeof *s->at, compare_tensor_names);
	for (size_t i = 1; i < s->n; i++)
		if (!strcmp(s->at[i - 1].name, s->at[i].name))
			return error_set(err, -EBADMSG,
					 "\"%.80s\" is in the header twice",
					 s->at[i].name);
	if (s->n)
		qsort(s->at, s->n, sizeof *s->at, compare_tensor_places);
	for (size_t i = 0; i < s->n; i++) {
		const struct safetensor *t = &s->at[i];

		if (t->begin != at)
			return error_set(err, -EBADMSG,
					 "\"%.80s\" begins at byte %" PRIu64
					 " of the buffer instead of %" PRIu64
					 ": tensors %s",
					 t->name, t->begin, at,
					 t->begin < at ? "overlap"
						       : "leave a hole");
		at = t->end;
	}
	if (at != bytes)
		return error_set(err, -EBADMSG,
				 "its tensors take %" PRIu64
				 " bytes, but the buffer has %" PRIu64,
				 at, bytes);
	return 0;
}

int safetensors_read(const char *text, size_t n, uint64_t bytes,
		     struct safetensors *out, struct error *err)
{
	struct scan in = {text, text + n};
	int r;

	memset(out, 0, sizeof *out);
	r = read_header_entries(out, &in, bytes, err);
	if (r == 0)
		r = check_tensor_order(out, bytes, err);
	if (r < 0)
		safetensors_free(out);
	return r;
}

void safetensors_free(struct safetensors *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->at[i].name);
		free(s->at[i].shape);
	}
	free(s->at);
	json_decref(s->metadata);
	memset(s, 0, sizeof *s);
}
