/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files rest*.c share.  The library's lock is held in all of these functions. */
#ifndef TENSORS_REST_PRIVATE_H
#define TENSORS_REST_PRIVATE_H

#include "base/vec.h"
#include "tensors/rest.h"

/* An object of the source that is in the copy. */
struct rest_object {
	haddr_t from, to;
	H5O_type_t type;
	/* A named type, open, that does not have a link yet; or negative. */
	hid_t held;
	bool target; /* made by rest_options.make */
	bool values; /* its elements are to be copied in the last pass */
	char *path;  /* one of its paths in the source */
};
struct rest {
	const struct rest_options *o;
	struct rest_found *found;
	vec(struct rest_object *)
		objects; /* in the order in which they were met */
	/* The tsearch tree of the objects, by `from`. */
	void *by_address;
	uint64_t bytes;              /* bytes of memory of the list */
	hid_t link_ascii, link_utf8; /* property lists of links */
	/* Once err->code is set, the work ends. */
	struct error *err;
};
/* The group whose links are copied. */
struct rest_group {
	struct rest *r;
	const char *path;
	hid_t from, to; /* to < 0: only check */
};
static inline bool rest_looks(const struct rest *r)
{
	return r->o->to < 0;
}

/* tensors/rest.c */
/* As rest_say, with the reason that the library gives. */
void rest_say_why(struct rest_said *s, const char *path, const char *what);
/* Has libhdf5 crashed in this step before? */
bool rest_is_deadly(const struct rest *r, char what, const char *path);
/* Record the step in the trail.  Return false if libhdf5 has crashed in it before, which
 * is reported. */
bool rest_begin(struct rest *r, char what, const char *path);
struct rest_object *rest_find(const struct rest *r, haddr_t from);
/* Add an object to the table.  Return NULL, and set r->err, if there is no memory or
 * there are too many objects. */
struct rest_object *rest_add(struct rest *r, hid_t from, hid_t to,
			     const char *path);
/* The `find` of struct refer. */
haddr_t rest_find_address(void *ctx, haddr_t from);

/* tensors/rest_make.c: copy an object to its name in a group, without attributes and, if
 * rest_object.values is set, without elements. */
void rest_make(const struct rest_group *g, const char *name, hid_t from,
	       hid_t lcpl);
/* Return the type to use in the copy, which the caller closes: for a named type, the same
 * named type of the copy; otherwise a copy in memory.  Negative on failure: see r->err,
 * or the library. */
hid_t rest_type(struct rest *r, hid_t type);

/* tensors/rest_attr.c: copy all attributes of an object. */
void rest_attributes(struct rest *r, const char *path, hid_t from, hid_t to);
/* tensors/rest_values.c: return NULL if the elements of a dataset can be copied one by
 * one; otherwise the reason, in `why`. */
const char *rest_values_check(struct rest *r, const char *path, hid_t from,
			      char *why, size_t n);
/* Copy the elements of a dataset one by one.  The check must have passed. */
void rest_values(struct rest *r, const char *path, hid_t from, hid_t to);

#endif
