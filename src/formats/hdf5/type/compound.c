/* SPDX-License-Identifier: BSD-2-Clause */
/* HDF5 compound types: structures of NumPy, complex numbers, or text. */

/*
 * In the file a member of variable length is larger or smaller than in memory, and
 * H5Dget_type returns offsets in memory.  The library computes these by walking through
 * the members by offset, and moving each by what those before it grew.  The offsets in
 * the file are found by the same walk.
 */
#include "formats/hdf5/type/type_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"

struct member {
	char *name; /* freed by H5free_memory */
	int declared;
	uint64_t offset;  /* in bytes, in memory */
	uint64_t in_file; /* offset in bytes, in the file */
	const char *kept; /* interned name; `dims` are its interned axes */
	const uint64_t *dims;
	struct element e;
};
struct members {
	struct member *at;
	int n;
	bool binary;    /* all members are */
	bool converted; /* at least one member is */
	bool laid_out;  /* offsets in the file are certain */
};

static int compound_read_member(struct type_reader *r, hid_t type, int i,
				struct member *m)
{
	hid_t t = H5Tget_member_type(type, (unsigned)i);
	int rc;

	m->name = H5Tget_member_name(type, (unsigned)i);
	m->offset = H5Tget_member_offset(type, (unsigned)i);
	m->declared = i;
	if (t < 0 || !m->name)
		rc = hdf5_type_refuse(r, &m->e, "a damaged member");
	else
		rc = hdf5_type_read_element(r, t, &m->e);
	if (t >= 0)
		H5Tclose(t);
	return rc;
}

static int compound_compare_offsets(const void *a, const void *b)
{
	const struct member *x = a, *y = b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x->declared - y->declared;
}

/* Compute the offsets in the file.  Return false if members overlap or are not inside
 * of the element, or if the element is too large. */
static bool compound_lay_out(struct members *all, struct element *e)
{
	uint64_t end = 0, in_file = 0;

	qsort(all->at, (size_t)all->n, sizeof *all->at,
	      compound_compare_offsets);
	for (int i = 0; i < all->n; i++) {
		struct member *m = &all->at[i];

		if (m->offset < end || m->offset > e->in_memory ||
		    m->e.in_memory > e->in_memory - m->offset)
			return false;
		in_file += m->offset - end; /* padding is kept */
		m->in_file = in_file;
		in_file += m->e.in_file;
		end = m->offset + m->e.in_memory;
		all->binary = all->binary && dtype_is_binary(&m->e.served);
		all->converted =
			all->converted || m->e.stored.kind == DTYPE_OTHER;
		all->laid_out = all->laid_out && m->e.laid_out;
	}
	e->in_file = in_file + (e->in_memory - end);
	e->laid_out = all->laid_out;
	return e->in_file <= UINT32_MAX / 2;
}

/* Intern all names as one piece of memory, so that a type of 65 535 members is one
 * entry of the table. */
static int keep_names(struct type_reader *r, struct members *all)
{
	cleanup_free char *text = NULL;
	const char *kept;
	size_t n = 0;

	for (int i = 0; i < all->n; i++)
		n += strlen(all->at[i].name) + 1;
	text = malloc(n);
	if (!text)
		return -ENOMEM;
	n = 0;
	for (int i = 0; i < all->n; i++) {
		size_t len = strlen(all->at[i].name) + 1;

		memcpy(text + n, all->at[i].name, len);
		n += len;
	}
	kept = intern_bytes(r->in, text, n);
	for (int i = 0; i < all->n && kept; i++) {
		struct member *m = &all->at[i];

		m->kept = kept;
		kept += strlen(kept) + 1;
		if (m->e.rank)
			m->dims = intern_bytes(r->in, m->e.dims,
					       m->e.rank * sizeof *m->e.dims);
		if (m->e.rank && !m->dims)
			return -ENOMEM;
	}
	return kept ? 0 : -ENOMEM;
}

/* Set the fields of one of the two dtypes. */
static int keep_fields(struct type_reader *r, const struct members *all,
		       bool served, struct dtype *out)
{
	cleanup_free struct dtype_field *f = calloc((size_t)all->n, sizeof *f);

	if (!f)
		return -ENOMEM;
	for (int i = 0; i < all->n; i++) {
		const struct member *m = &all->at[i];

		f[i].name = m->kept;
		f[i].offset = (uint32_t)m->in_file;
		f[i].rank = m->e.rank;
		f[i].dims = m->dims;
		f[i].declared = (uint32_t)m->declared;
		memcpy(&f[i].type, served ? &m->e.served : &m->e.stored,
		       sizeof f[i].type);
	}
	out->nfields = (uint32_t)all->n;
	out->fields = intern_bytes(r->in, f, (size_t)all->n * sizeof *f);
	return out->fields ? 0 : -ENOMEM;
}

/* Is it what h5py writes for complex numbers: {r, i} of one float type? */
static bool compound_is_complex(const struct members *all,
				const struct element *e)
{
	const struct member *re = all->at, *im = all->at + 1;
	const struct dtype *part = &re->e.stored;

	return all->n == 2 && re->declared == 0 && !strcmp(re->name, "r") &&
	       !strcmp(im->name, "i") && !re->e.rank && !im->e.rank &&
	       part->kind == DTYPE_FLOAT && part->size >= 4 &&
	       im->e.stored.kind == DTYPE_FLOAT &&
	       im->e.stored.size == part->size &&
	       im->e.stored.big_endian == part->big_endian && re->offset == 0 &&
	       im->offset == part->size &&
	       e->in_memory == 2 * (uint64_t)part->size;
}

static int finish_complex(const struct members *all, struct element *e)
{
	const struct element *part = &all->at->e;

	e->stored.kind = e->served.kind = DTYPE_COMPLEX;
	e->stored.size = e->served.size = (uint32_t)e->in_memory;
	e->stored.big_endian = part->stored.big_endian;
	e->served.big_endian = part->served.big_endian;
	return 0;
}

static int finish_structure(struct type_reader *r, struct members *all,
			    struct element *e)
{
	uint64_t at = 0;
	int rc;

	e->stored.size = e->served.size = (uint32_t)e->in_file;
	e->served.kind = DTYPE_STRUCT;
	if (!all->converted) {
		e->stored.kind = DTYPE_STRUCT;
		rc = keep_fields(r, all, false, &e->stored);
		return rc < 0 ? rc : keep_fields(r, all, true, &e->served);
	}
	e->stored.kind = DTYPE_OTHER;
	rc = keep_fields(r, all, false, &e->stored);
	if (rc < 0)
		return rc;
	for (int i = 0; i < all->n; i++) {
		struct member *m = &all->at[i];
		uint64_t size = m->e.served.size;

		for (unsigned k = 0; k < m->e.rank; k++)
			if (mul_overflows(size, m->e.dims[k], &size))
				size = UINT32_MAX;
		m->in_file = at;
		at += size;
		if (at > UINT32_MAX / 2)
			return hdf5_type_refuse(r, e,
						"elements of 2 GiB and more");
	}
	e->served.size = (uint32_t)at;
	rc = keep_fields(r, all, true, &e->served);
	return rc < 0 ? rc : hdf5_type_say(r, e, "structure, converted");
}

/* The offsets in the file are not certain: let the library read the members. */
static void hide_places(struct members *all)
{
	for (int i = 0; i < all->n; i++) {
		struct dtype *stored = &all->at[i].e.stored;
		struct dtype *served = &all->at[i].e.served;

		if (dtype_is_binary(stored)) {
			stored->kind = DTYPE_OTHER;
			stored->nfields = 0;
			stored->fields = NULL;
		} else if (stored->kind == DTYPE_TEXT) {
			stored->nfields = served->nfields = 0;
			stored->fields = served->fields = NULL;
		}
	}
}

static int finish_text(struct type_reader *r, struct members *all,
		       struct element *e)
{
	int rc = hdf5_type_as_text(r, e,
				   "structure with members that NumPy lacks "
				   "(text of any length, sequences, "
				   "references, time)");

	if (rc < 0)
		return rc;
	if (!all->laid_out)
		hide_places(all);
	rc = keep_fields(r, all, false, &e->stored);
	return rc < 0 ? rc : keep_fields(r, all, true, &e->served);
}

static int compound_read_members(struct type_reader *r, hid_t type,
				 struct members *all, struct element *e)
{
	bool inside = r->inside;
	int rc = 0;

	r->inside = true;
	for (int i = 0; i < all->n && !rc; i++)
		rc = compound_read_member(r, type, i, &all->at[i]);
	r->inside = inside;
	if (rc < 0)
		return rc;
	for (int i = 0; i < all->n; i++)
		if (!all->at[i].name)
			return hdf5_type_refuse(r, e, "a damaged structure");
	if (!compound_lay_out(all, e))
		return hdf5_type_refuse(r, e,
					"a structure whose members overlap");
	if (all->binary && compound_is_complex(all, e))
		return finish_complex(all, e);
	rc = keep_names(r, all);
	if (rc < 0)
		return rc;
	return all->binary ? finish_structure(r, all, e)
			   : finish_text(r, all, e);
}

int hdf5_type_read_compound(struct type_reader *r, hid_t type,
			    struct element *e)
{
	struct members all = {
		.n = H5Tget_nmembers(type), .binary = true, .laid_out = true};
	int rc;

	if (all.n <= 0)
		return hdf5_type_refuse(r, e, "a structure without members");
	all.at = calloc((size_t)all.n, sizeof *all.at);
	if (!all.at)
		return -ENOMEM;
	rc = compound_read_members(r, type, &all, e);
	for (int i = 0; i < all.n; i++)
		if (all.at[i].name)
			H5free_memory(all.at[i].name);
	free(all.at);
	return rc;
}
