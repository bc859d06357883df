/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of hdf5_rest share; the lock of the library is held in all of them. */
#ifndef TENSORS_REST_PRIVATE_H
#define TENSORS_REST_PRIVATE_H

#include "base/vec.h"
#include "tensors/rest.h"

/* An object of the source that is in the copy. */
struct rest_object {
	haddr_t from, to;
	H5O_type_t type;
	hid_t held; /* a named type that no link leads to yet, open; or negative */
	bool target; /* made by the caller */
	bool values; /* its elements have to be written one by one */
	char *path;  /* one of its names in the source */
};
struct rest {
	const struct rest_options *o;
	struct rest_found *found;
	vec(struct rest_object *)
		objects;             /* in the order in which they were met */
	void *by_address;            /* tsearch tree of them */
	uint64_t bytes;              /* memory of the list */
	hid_t link_ascii, link_utf8; /* properties of links */
	/* What ends the work; err->code is set then. */
	struct error *err;
};
/* The group that links are made in. */
struct rest_group {
	struct rest *r;
	const char *path;
	hid_t from, to; /* to < 0: only look */
};
static inline bool rest_looks(const struct rest *r)
{
	return r->o->to < 0;
}

/* tensors/rest.c */
/* rest_say, with the library's words. */
void rest_say_why(struct rest_said *s, const char *path, const char *what);
/* Is libhdf5 known to die of this? */
bool rest_is_deadly(const struct rest *r, char what, const char *path);
/* Leave a trail; false: it is deadly, which is said. */
bool rest_begin(struct rest *r, char what, const char *path);
struct rest_object *rest_find(const struct rest *r, haddr_t from);
/* Note a new object; NULL: no memory, or too many of them (r->err). */
struct rest_object *rest_add(struct rest *r, hid_t from, hid_t to,
			     const char *path);
/* For struct refer. */
haddr_t rest_find_address(void *ctx, haddr_t from);

/* tensors/rest_make.c: an object under its name in a group, without attributes and, if
 * rest_object.values is set, without elements. */
void rest_make(const struct rest_group *g, const char *name, hid_t from,
	       hid_t lcpl);
/* The type, to be closed: the same named type of the copy where it is a named one; else a
 * copy in memory; negative: r->err, or the library's words. */
hid_t rest_type(struct rest *r, hid_t type);

/* tensors/rest_attr.c */
void rest_attributes(struct rest *r, const char *path, hid_t from, hid_t to);
/* tensors/rest_values.c: why a dataset's values cannot be copied one by one, for `look`;
 * NULL: they can. */
const char *rest_values_check(struct rest *r, const char *path, hid_t from,
			      char *why, size_t n);
void rest_values(struct rest *r, const char *path, hid_t from, hid_t to);

#endif
