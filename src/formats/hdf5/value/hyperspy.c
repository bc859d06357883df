/* SPDX-License-Identifier: BSD-2-Clause */
/* HyperSpy's signals: axes and metadata of the array in a group. */
/*
 * A signal is a group that holds the dataset `data`, a group `axis-N` for each
 * axis of it, and its metadata, a dictionary (hyperspy 1.7: _hierarchical.py):
 *
 *     dictionary       a group: attributes, groups, datasets are its items
 *     None             the string "_None_"
 *     empty list       an attribute `_list_empty_KEY` (`_tuple_empty_KEY`)
 *     list             a dataset `_list_KEY`; a group `_list_LENGTH_KEY`, if the
 *                      items are of several kinds, with items 0, 1, 2, ...
 *     bytes            an attribute `_bs_KEY`
 *     list of axes     a group `_hspy_AxesManager_KEY`
 *     signal           a group `_sig_KEY`
 *
 * What HyperSpy would make of that is written as JSON, with the items of a list
 * in the order of their numbers (it sorts them as text, 10 before 2).
 *
 * Links can make groups that contain themselves, or many paths to one group.  So the
 * groups around the current one are known, and everything is counted.  Words in
 * brackets take the place of what is nested too deep or is too much.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "formats/hdf5/value/listing.h"

#define NESTED_MAX 32
/* Items, bytes of JSON that are listed, and bytes that are looked at for it. */
#define ITEMS_MAX 20000
#define TEXT_MAX ((size_t)4 << 20)
#define LOOK_MAX ((size_t)64 << 20)

static const char not_listed[] = "(not listed)";

struct reading {
	struct hdf5_listing *l;
	size_t items, text, looked; /* so far */
};
/* A group that is being read. */
struct dictionary {
	struct reading *r;
	const struct dictionary *in;
	haddr_t address;
	unsigned depth;
	uint64_t done; /* items */
	json_t *out;
};

static json_t *read_metadata_group(struct reading *r, hid_t group,
				   const struct dictionary *in);

/* ---- items ---------------------------------------------------------------- */

static int count_dumped_bytes(const char *text, size_t n, void *ctx)
{
	(void)text;
	*(size_t *)ctx += n;
	return 0;
}

/* Count another item; return false when a limit is reached. */
static bool admit_metadata_item(struct dictionary *d)
{
	struct reading *r = d->r;

	if (r->items == ITEMS_MAX || r->text >= TEXT_MAX ||
	    r->looked >= LOOK_MAX)
		return false;
	r->items++;
	d->done++;
	return true;
}

/* Set an item; its value is counted if it is no group.  NULL: it was said. */
static herr_t set_metadata_item(struct dictionary *d, const char *name,
				json_t *v, bool counted)
{
	json_t *key = json_text(name, strlen(name));
	struct reading *r = d->r;
	size_t n = 0;
	char words[64];

	if (counted && v)
		json_dump_callback(v, count_dumped_bytes, &n,
				   HDF5_LISTING_DUMP | JSON_ENCODE_ANY);
	r->looked += n;
	if (n > TEXT_MAX - r->text) {
		snprintf(words, sizeof words, "(%zu bytes: too long to list)",
			 n);
		json_decref(v);
		v = json_string(words);
		n = 0;
	}
	/* At worst each byte of a key is six, as \u0001. */
	n += 6 * strlen(name) + sizeof words;
	r->text = n > TEXT_MAX - r->text ? TEXT_MAX : r->text + n;
	if (!key || json_object_set_new(d->out, json_string_value(key), v) < 0)
		r->l->failed = true;
	json_decref(key);
	return r->l->failed ? -1 : 0;
}

/* Return the rest of a name behind a prefix, NULL if it has another. */
static const char *text_after_prefix(const char *name, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(name, prefix, n) ? NULL : name + n;
}

static herr_t read_metadata_attribute(hid_t group, const char *name,
				      const H5A_info_t *info, void *ctx)
{
	struct dictionary *d = ctx;
	const char *key = text_after_prefix(name, "_list_empty_");
	json_t *v;

	(void)info;
	if (!admit_metadata_item(d))
		return 1;
	if (!key)
		key = text_after_prefix(name, "_tuple_empty_");
	if (key)
		return set_metadata_item(d, key, json_array(), true);
	key = text_after_prefix(name, "_bs_");
	v = hdf5_list_attribute(d->r->l, group, name);
	if (v && json_is_string(v) && !strcmp(json_string_value(v), "_None_")) {
		json_decref(v);
		v = json_null();
	}
	return set_metadata_item(d, key ? key : name, v, true);
}

/* ---- lists ---------------------------------------------------------------- */

static int compare_item_numbers(const void *a, const void *b)
{
	return strverscmp(*(const char *const *)a, *(const char *const *)b);
}

/* The values of an object in the order of its keys, which are numbers, or names
 * that end with one.  An object that was cut stays one. */
static json_t *list_of_items(json_t *o)
{
	vec(const char *) keys = VEC_EMPTY;
	json_t *v, *list;
	const char *key;
	bool ok = true;

	if (!json_is_object(o) || json_object_get(o, not_listed))
		return o;
	list = json_array();
	json_object_foreach(o, key, v) ok = ok && vec_push(&keys, key);
	if (ok && keys.n)
		qsort(keys.at, keys.n, sizeof *keys.at, compare_item_numbers);
	for (size_t i = 0; ok && i < keys.n; i++)
		ok = json_array_append(list, json_object_get(o, keys.at[i])) >=
		     0;
	vec_free(&keys);
	json_decref(o);
	if (ok && list)
		return list;
	json_decref(list);
	return NULL;
}

/* "2_KEY" of a list in a group: the number of its items and the key. */
static const char *without_length(const char *s)
{
	size_t n = strspn(s, "0123456789");

	return n && s[n] == '_' ? s + n + 1 : s;
}

/* ---- signals -------------------------------------------------------------- */

/* Read a group in a group; NULL if there is none. */
static json_t *read_group_member(struct reading *r, hid_t group,
				 const char *name, const struct dictionary *in)
{
	hid_t id = H5Lexists(group, name, H5P_DEFAULT) > 0
			   ? H5Oopen(group, name, H5P_DEFAULT)
			   : H5I_INVALID_HID;
	json_t *v = NULL;

	if (id >= 0 && H5Iget_type(id) == H5I_GROUP)
		v = read_metadata_group(r, id, in);
	if (id >= 0)
		H5Oclose(id);
	return v;
}

/* Axes in the order of the array, null where one is missing; NULL: none is
 * there. */
static json_t *read_signal_axes(struct reading *r, hid_t group, unsigned rank,
				const struct dictionary *in)
{
	json_t *axes = json_array(), *one;
	unsigned found = 0;
	char name[32];

	for (unsigned i = 0; i < rank; i++) {
		snprintf(name, sizeof name, "axis-%u", i);
		one = read_group_member(r, group, name, in);
		found += one != NULL;
		if (json_array_append_new(axes, one ? one : json_null()) < 0)
			r->l->failed = true;
	}
	/* Files of before 1.0. */
	snprintf(name, sizeof name, "_list_%u_axes", rank);
	one = found < rank ? read_group_member(r, group, name, in) : NULL;
	if (one || !found) {
		json_decref(axes);
		axes = one ? list_of_items(one) : NULL;
	}
	return axes;
}

/* Read axes and metadata, not the values. Sets no "axes" if the group is not a
 * signal. */
static void read_signal(struct reading *r, hid_t group, hid_t dset,
			const struct dictionary *in, json_t *out)
{
	hid_t space = H5Dget_space(dset);
	int rank = space < 0 ? 0 : H5Sget_simple_extent_ndims(space);
	json_t *axes = NULL, *metadata;

	if (rank > 0 && rank <= RANK_MAX)
		axes = read_signal_axes(r, group, (unsigned)rank, in);
	if (space >= 0)
		H5Sclose(space);
	if (!axes)
		return;
	metadata = read_group_member(r, group, "metadata", in);
	if (!metadata) /* before 1.2 */
		metadata = read_group_member(r, group, "mapped_parameters", in);
	if (json_object_set_new(out, "axes", axes) < 0 ||
	    (metadata && json_object_set_new(out, "metadata", metadata) < 0))
		r->l->failed = true;
}

/* A signal in the metadata of another; not its values. */
static json_t *inner_signal(struct dictionary *d, hid_t group)
{
	hid_t dset = H5Lexists(group, "data", H5P_DEFAULT) > 0
			     ? H5Oopen(group, "data", H5P_DEFAULT)
			     : H5I_INVALID_HID;
	json_t *out = json_object();

	if (dset >= 0 && H5Iget_type(dset) == H5I_DATASET) {
		read_signal(d->r, group, dset, d, out);
		json_object_set_new(out, "data",
				    hdf5_list_dataset(d->r->l, dset,
						      "a signal of its own"));
	}
	if (dset >= 0)
		H5Oclose(dset);
	return out;
}

/* ---- groups --------------------------------------------------------------- */

static herr_t set_group_item(struct dictionary *d, const char *name, hid_t id)
{
	const char *key = text_after_prefix(name, "_sig_");
	json_t *v;

	if (key)
		return set_metadata_item(d, key, inner_signal(d, id), false);
	v = read_metadata_group(d->r, id, d);
	key = text_after_prefix(name, "_hspy_AxesManager_");
	if (key)
		return set_metadata_item(d, key, list_of_items(v), false);
	key = text_after_prefix(name, "_list_");
	if (!key)
		key = text_after_prefix(name, "_tuple_");
	return key ? set_metadata_item(d, without_length(key), list_of_items(v),
				       false)
		   : set_metadata_item(d, name, v, false);
}

static herr_t set_dataset_item(struct dictionary *d, const char *name, hid_t id)
{
	const char *key = text_after_prefix(name, "_list_");

	if (!key)
		key = text_after_prefix(name, "_tuple_");
	return set_metadata_item(d, key ? key : name,
				 hdf5_list_dataset(d->r->l, id, NULL), true);
}

static herr_t read_metadata_link(hid_t group, const char *name,
				 const H5L_info_t *info, void *ctx)
{
	struct dictionary *d = ctx;
	hid_t id = H5I_INVALID_HID;
	herr_t r;

	if (!admit_metadata_item(d))
		return 1;
	if (info->type == H5L_TYPE_HARD || info->type == H5L_TYPE_SOFT)
		id = H5Oopen(group, name, H5P_DEFAULT);
	switch (id < 0 ? H5I_BADID : H5Iget_type(id)) {
	case H5I_GROUP:
		r = set_group_item(d, name, id);
		break;
	case H5I_DATASET:
		r = set_dataset_item(d, name, id);
		break;
	case H5I_DATATYPE:
		r = set_metadata_item(d, name, json_string("(a type)"), true);
		break;
	default:
		r = set_metadata_item(
			d, name,
			json_string(info->type == H5L_TYPE_HARD
					    ? "(cannot be read)"
					    : "(a link, not followed)"),
			true);
	}
	if (id >= 0)
		H5Oclose(id);
	return r;
}

/* Note how many items are left out, or that they cannot be read. */
static void note_items_left_out(struct dictionary *d, hid_t group,
				bool readable)
{
	H5G_info_t links;
	H5O_info_t o;
	json_t *v = NULL;

	if (readable && H5Gget_info(group, &links) >= 0 &&
	    H5Oget_info2(group, &o, H5O_INFO_NUM_ATTRS) >= 0)
		v = json_integer(
			(json_int_t)(links.nlinks + o.num_attrs - d->done));
	if (json_object_set_new(d->out, not_listed,
				v ? v : json_string("(cannot be read)")) < 0)
		d->r->l->failed = true;
}

static void read_metadata_items(struct dictionary *d, hid_t group)
{
	hsize_t at = 0;
	char why[256];
	herr_t r = -1;

	if (hdf5_lost_rest(group, why, sizeof why) != HDF5_REST_ALL)
		r = H5Aiterate2(group, H5_INDEX_NAME, H5_ITER_NATIVE, &at,
				read_metadata_attribute, d);

	at = 0;
	if (r == 0)
		r = H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, &at,
			       read_metadata_link, d);
	if (r != 0)
		note_items_left_out(d, group, r > 0);
}

static json_t *read_metadata_group(struct reading *r, hid_t group,
				   const struct dictionary *in)
{
	struct dictionary d = {.r = r, .in = in};
	H5O_info_t info;

	if (H5Oget_info2(group, &info, H5O_INFO_BASIC) < 0)
		return json_string("(cannot be read)");
	d.address = info.addr;
	d.depth = in ? in->depth + 1 : 1;
	for (; in; in = in->in)
		if (in->address == d.address)
			return json_string("(a group that this is in)");
	if (d.depth > NESTED_MAX)
		return json_string("(nested too deep)");
	d.out = json_object();
	if (d.out)
		read_metadata_items(&d, group);
	else
		r->l->failed = true;
	return d.out;
}

void hdf5_hyperspy_about(struct hdf5_listing *l, hid_t group, hid_t dset,
			 json_t *about)
{
	struct reading r = {.l = l};

	read_signal(&r, group, dset, NULL, about);
}
