/* SPDX-License-Identifier: BSD-2-Clause */
/* The file around the chunks: everything that the main file has, made anew. */

/*
 * Items are made in the order of the list: a group before what is in it, an object before
 * its other names.  Then, once more, what refers to objects.  Their files are opened one
 * at a time; items of one file follow each other as links do.
 *
 * All this is done again from the beginning if it was interrupted: it changes nothing but
 * what is behind the chunks in a file that has no name yet.
 */
#include "tensors/merge/making.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "formats/hdf5/file/driver.h"
#include "tensors/refer.h"

int making_failed(struct making *x, const struct item *it, const char *what)
{
	char why[256];

	hdf5_why(why, sizeof why);
	return error_set(x->err, -EIO, "%s: %s: %s", it->path, what, why);
}

const char *making_place(const struct item *it)
{
	return *it->object ? it->object : "/";
}

hid_t making_link(const struct item *it)
{
	hid_t lcpl = H5Pcreate(H5P_LINK_CREATE);

	H5Pset_char_encoding(lcpl, it->cset);
	return lcpl;
}

/* The object that an item is of; opens its file. */
static int open_object(struct making *x, const struct item *it, hid_t *out)
{
	int r;

	if (x->from >= 0 && x->file != it->file) {
		H5Fclose(x->from);
		x->from = H5I_INVALID_HID;
	}
	if (x->from < 0) {
		r = hdf5_open(x->m->handles, it->file, &x->from, x->err);
		if (r < 0) {
			x->from = H5I_INVALID_HID;
			return r;
		}
		x->file = it->file;
	}
	*out = H5Oopen(x->from, making_place(it), H5P_DEFAULT);
	return *out < 0 ? making_failed(x, it, "it cannot be opened") : 0;
}

/* ---- names --------------------------------------------------------------- */

static int make_link(struct making *x, const struct item *it)
{
	hid_t lcpl = making_link(it);
	herr_t ok;
	int r;

	if (it->kind == ITEM_SOFT)
		ok = H5Lcreate_soft(it->target, x->out, it->path, lcpl,
				    H5P_DEFAULT);
	else
		ok = H5Lcreate_hard(x->out, it->target, x->out, it->path, lcpl,
				    H5P_DEFAULT);
	r = ok < 0 ? making_failed(x, it, "the link cannot be made") : 0;

	H5Pclose(lcpl);
	return r;
}

/* How a group keeps its links.  One by one: as a whole, the list has where the old
 * group keeps them, too. */
static hid_t group_plist(hid_t group)
{
	hid_t from = H5Gget_create_plist(group),
	      to = H5Pcreate(H5P_GROUP_CREATE);
	unsigned a, b;

	if (from < 0)
		return to;
	if (H5Pget_link_creation_order(from, &a) >= 0)
		H5Pset_link_creation_order(to, a);
	if (H5Pget_link_phase_change(from, &a, &b) >= 0)
		H5Pset_link_phase_change(to, a, b);
	if (H5Pget_attr_creation_order(from, &a) >= 0)
		H5Pset_attr_creation_order(to, a);
	H5Pclose(from);
	return to;
}

static int make_group(struct making *x, const struct item *it, hid_t from,
		      hid_t *to)
{
	hid_t gcpl, lcpl;
	int r;

	if (!strcmp(it->path, "/")) {
		*to = H5Gopen2(x->out, "/", H5P_DEFAULT);
		return *to < 0 ? making_failed(x, it, "it cannot be opened")
			       : 0;
	}
	lcpl = making_link(it);
	gcpl = group_plist(from);
	*to = gcpl < 0 ? -1
		       : H5Gcreate2(x->out, it->path, lcpl, gcpl, H5P_DEFAULT);
	r = *to < 0 ? making_failed(x, it, "the group cannot be made") : 0;
	if (gcpl >= 0)
		H5Pclose(gcpl);
	H5Pclose(lcpl);
	return r;
}

/* ---- all of it ----------------------------------------------------------- */

static int make_object(struct making *x, const struct item *it, hid_t from,
		       hid_t *to)
{
	switch (it->kind) {
	case ITEM_GROUP:
		return make_group(x, it, from, to);
	case ITEM_STREAM:
		return making_stream(x, it, from, to);
	case ITEM_VALUES:
		return making_values(x, it, from, to);
	case ITEM_KEPT:
		if (making_points(from))
			return making_pointing(x, it, from, to);
		/* fall through */
	default:
		return making_copy(x, it, from, to);
	}
}

static int make_item(struct making *x, const struct item *it)
{
	hid_t from, to;
	int r;

	if (it->kind == ITEM_SAME || it->kind == ITEM_SOFT)
		return make_link(x, it);
	r = open_object(x, it, &from);
	if (r < 0)
		return r;
	r = make_object(x, it, from, &to);
	if (r == 0) {
		/* Its file may have been closed meanwhile. */
		hid_t again = from;

		if (x->from < 0)
			r = open_object(x, it, &again);
		if (r == 0)
			r = merge_attributes(x->m, it, again, to, false,
					     x->err);
		if (again != from && again >= 0)
			H5Oclose(again);
		H5Oclose(to);
	}
	if (H5Iis_valid(from) > 0)
		H5Oclose(from);
	return r;
}

/* What refers to objects, which are all there now. */
static int refer(struct making *x, const struct item *it)
{
	hid_t from, to, type = H5I_INVALID_HID;
	int r;

	if (it->kind == ITEM_SAME || it->kind == ITEM_SOFT)
		return 0;
	r = open_object(x, it, &from);
	if (r < 0)
		return r;
	to = H5Oopen(x->out, it->path, H5P_DEFAULT);
	if (to < 0)
		r = making_failed(x, it, "it cannot be opened");
	if (r == 0)
		r = merge_attributes(x->m, it, from, to, true, x->err);
	if (r == 0 && it->kind == ITEM_KEPT) {
		type = H5Dget_type(from);
		if (type >= 0 && refer_is_in(type))
			r = merge_references(x->m, it, from, to, x->err);
	}
	if (type >= 0)
		H5Tclose(type);
	if (to >= 0)
		H5Oclose(to);
	H5Oclose(from);
	return r;
}

static int make_all(struct making *x)
{
	struct merge *m = x->m;
	int r = 0;

	for (size_t i = 0; i < m->items.n && r == 0; i++) {
		r = make_item(x, &m->items.at[i]);
		if (r == 0 && *m->o.stop)
			r = error_set(x->err, -EINTR, "interrupted");
	}
	for (size_t i = 0; i < m->items.n && r == 0; i++)
		r = refer(x, &m->items.at[i]);
	if (x->from >= 0)
		H5Fclose(x->from);
	return r;
}

/* Can everything be opened in what the library has written? */
static int look_again(struct merge *m, struct error *err)
{
	uint32_t number = handles_add(m->handles, m->data_path);
	hid_t file, object;
	int r = number == UINT32_MAX
			? merge_no_memory(err)
			: hdf5_open(m->handles, number, &file, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < m->items.n && r == 0; i++) {
		const struct item *it = &m->items.at[i];

		if (it->kind == ITEM_SOFT)
			continue;
		object = H5Oopen(file, it->path, H5P_DEFAULT);
		if (object < 0)
			r = error_set(err, -EIO,
				      "%s: libhdf5 has written what it cannot "
				      "read",
				      it->path);
		else
			H5Oclose(object);
	}
	H5Fclose(file);
	return r;
}

int merge_make(struct merge *m, struct error *err)
{
	struct making x = {.m = m, .from = H5I_INVALID_HID, .err = err};
	struct error late = {.code = 0};
	int r, end;

	hdf5_lock();
	r = build_open(m->b, &x.out, err);
	if (r == 0) {
		r = make_all(&x);
		end = build_close(m->b, x.out, r ? &late : err);
		/* A write that failed is why the rest did. */
		if (r < 0 && end < 0)
			*err = late;
		r = r < 0 ? err->code : end;
	}
	if (r == 0)
		r = look_again(m, err);
	hdf5_unlock();
	return r;
}
