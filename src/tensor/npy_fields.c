/* SPDX-License-Identifier: BSD-2-Clause */
/* Read the structures in .npy headers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "tensor/dtype_parse.h"
#include "tensor/grid.h"
#include "tensor/npy_literal.h"

/* Deepest nesting of structures, and most bytes of one; the rest of the program counts
 * those in 32 bits. */
#define DEPTH_MAX 16
#define SIZE_MOST (UINT32_C(1) << 30)
/* Bytes of a name, with its NUL. */
#define NAME_ROOM 1024

struct fields {
	struct dtype_field *at;
	uint32_t n, room;
	uint64_t size; /* bytes of all fields so far, with padding */
};

static int fields_are_no_list(struct error *err)
{
	return error_set(err, -EBADMSG, "its type is not a list of fields");
}

static int fields_read_list(struct npy_text *t, struct intern *in,
			    unsigned depth, struct dtype *out,
			    struct error *err);

/* Read a type.  Every byte of *out is set, because fields are interned as bytes. */
static int field_read_type(struct npy_text *t, struct intern *in,
			   unsigned depth, struct dtype *out, struct error *err)
{
	struct dtype plain;
	char text[64];
	int r;

	memset(out, 0, sizeof *out);
	if (npy_next(t, '['))
		return fields_read_list(t, in, depth + 1, out, err);
	if (npy_next(t, '('))
		return error_set(err, -ENOTSUP,
				 "a field's type is a pair of type and shape, "
				 "which is not supported: load it with NumPy, "
				 "and save it again");
	if (!npy_take_string(t, text, sizeof text))
		return error_set(err, -EBADMSG,
				 "a field's type is not a string");
	r = dtype_parse_stored(text, in, &plain, err);
	if (r < 0)
		return r;
	out->kind = plain.kind;
	out->size = plain.size;
	out->big_endian = plain.big_endian;
	out->text = plain.text;
	return 0;
}

static int field_intern_name(struct npy_text *t, struct intern *in,
			     const char **out, struct error *err)
{
	char name[NAME_ROOM];

	if (!npy_take_string(t, name, sizeof name))
		return error_set(
			err, -EBADMSG,
			"a field's name is not a string of less than %d bytes",
			NAME_ROOM);
	*out = intern_text(in, name);
	return *out ? 0 : error_no_memory(err, "the names of fields");
}

/* Read 'name', or ('title', 'name'). */
static int field_read_name(struct npy_text *t, struct intern *in,
			   struct dtype_field *f, struct error *err)
{
	int r;

	if (!npy_take(t, '('))
		return field_intern_name(t, in, &f->name, err);
	r = field_intern_name(t, in, &f->title, err);
	if (r == 0 && !npy_take(t, ','))
		r = fields_are_no_list(err);
	if (r == 0)
		r = field_intern_name(t, in, &f->name, err);
	if (r == 0 && !npy_take(t, ')'))
		r = fields_are_no_list(err);
	return r;
}

static int field_read_dims(struct npy_text *t, struct intern *in,
			   struct dtype_field *f, struct error *err)
{
	uint64_t dims[RANK_MAX] = {0};
	unsigned rank = 1;
	int r = 0;

	if (npy_next(t, '('))
		r = npy_take_shape(t, &rank, dims, err);
	else if (!npy_take_number(t, &dims[0]))
		r = fields_are_no_list(err);
	else
		rank = dims[0] != 1; /* ('a', '<i4', 1) is ('a', '<i4') */
	if (r < 0 || !rank)
		return r;
	for (unsigned i = 0; i < rank; i++)
		if (!dims[i])
			return error_set(err, -ENOTSUP, "a field has no bytes");
	f->rank = rank;
	f->dims = intern_bytes(in, dims, rank * sizeof *dims);
	return f->dims ? 0 : error_no_memory(err, "the shape of a field");
}

/* Read (name, type) or (name, type, shape). */
static int field_read(struct npy_text *t, struct intern *in, unsigned depth,
		      struct dtype_field *f, struct error *err)
{
	int r;

	memset(f, 0, sizeof *f);
	if (!npy_take(t, '('))
		return fields_are_no_list(err);
	r = field_read_name(t, in, f, err);
	if (r == 0 && !npy_take(t, ','))
		r = fields_are_no_list(err);
	if (r == 0)
		r = field_read_type(t, in, depth, &f->type, err);
	if (r == 0 && npy_take(t, ',') && !npy_next(t, ')'))
		r = field_read_dims(t, in, f, err);
	if (r == 0) {
		npy_take(t, ',');
		if (!npy_take(t, ')'))
			r = fields_are_no_list(err);
	}
	return r;
}

/* Add a field; its place follows those before it.  Padding takes a place but is not a
 * field. */
static int fields_add(struct fields *all, struct dtype_field *f,
		      struct error *err)
{
	uint64_t count, size;
	bool pad = !*f->name && !f->title && f->type.kind == DTYPE_OPAQUE &&
		   !f->rank;

	f->offset = (uint32_t)all->size;
	if (!dtype_field_size(f, &count, &size) ||
	    add_overflows(all->size, size, &all->size) || all->size > SIZE_MOST)
		return error_set(err, -ENOTSUP, "its elements are too large");
	if (pad)
		return 0;
	if (!*f->name)
		return error_set(err, -ENOTSUP, "a field has no name");
	if (all->n == all->room) {
		uint32_t room = all->room ? 2 * all->room : 16;
		struct dtype_field *at =
			reallocarray(all->at, room, sizeof *at);

		if (!at)
			return error_no_memory(err,
					       "the fields of a structure");
		all->at = at;
		all->room = room;
	}
	memcpy(&all->at[all->n++], f, sizeof *f);
	return 0;
}

static int field_name_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names and titles must all differ, because they are keys of one dictionary. */
static int fields_check_names(const struct fields *all, struct error *err)
{
	cleanup_free const char **names =
		calloc(2 * (size_t)all->n, sizeof *names);
	size_t n = 0;

	if (!names)
		return error_no_memory(err, "the names of fields");
	for (uint32_t i = 0; i < all->n; i++) {
		names[n++] = all->at[i].name;
		if (all->at[i].title)
			names[n++] = all->at[i].title;
	}
	qsort(names, n, sizeof *names, field_name_compare);
	for (size_t i = 1; i < n; i++)
		if (!strcmp(names[i - 1], names[i]))
			return error_set(err, -EBADMSG,
					 "two fields are named '%.80s'",
					 names[i]);
	return 0;
}

static int fields_read_all(struct npy_text *t, struct intern *in,
			   unsigned depth, struct fields *all,
			   struct error *err)
{
	struct dtype_field f;
	bool comma = true;

	while (!npy_take(t, ']')) {
		int r = comma ? field_read(t, in, depth, &f, err)
			      : fields_are_no_list(err);

		if (r == 0)
			r = fields_add(all, &f, err);
		if (r < 0)
			return r;
		comma = npy_take(t, ',');
	}
	if (!all->n)
		return error_set(err, -ENOTSUP, "a structure has no fields");
	return fields_check_names(all, err);
}

static int fields_read_list(struct npy_text *t, struct intern *in,
			    unsigned depth, struct dtype *out,
			    struct error *err)
{
	struct fields all = {.n = 0};
	int r = 0;

	if (depth > DEPTH_MAX)
		r = error_set(err, -ENOTSUP,
			      "its structures are nested too deeply");
	else if (!npy_take(t, '['))
		r = fields_are_no_list(err);
	if (r == 0)
		r = fields_read_all(t, in, depth, &all, err);
	if (r == 0) {
		out->kind = DTYPE_STRUCT;
		out->size = (uint32_t)all.size;
		out->nfields = all.n;
		out->fields = intern_bytes(in, all.at, all.n * sizeof *all.at);
		r = out->fields
			    ? 0
			    : error_no_memory(err, "the fields of a structure");
	}
	free(all.at);
	return r;
}

int npy_take_fields(struct npy_text *t, struct intern *in, struct dtype *out,
		    struct error *err)
{
	memset(out, 0, sizeof *out);
	return fields_read_list(t, in, 1, out, err);
}
