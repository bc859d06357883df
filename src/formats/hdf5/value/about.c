/* SPDX-License-Identifier: BSD-2-Clause */
/* What info.json has of a dataset beyond its numbers: attributes, axes. */
/*
 * Files tell what the axes of an array are in several ways:
 *
 *   HyperSpy          groups beside the dataset `data` (formats/hdf5/value/hyperspy.c)
 *   NeXus             the attribute `axes` of its group, if the group says that
 *                     the dataset is its `signal`, or of the dataset itself, as
 *                     a list or as "x:y"; `NAME_indices` says which axis NAME is
 *                     for, where the list is not one of all (NXdata)
 *   dimension scales  DIMENSION_LIST refers to a dataset for each axis, and
 *                     DIMENSION_LABELS names them (netCDF-4, H5DS)
 *
 * The first that says something counts.  It becomes the member `axes`: for each
 * axis of the array, in its order, an object, or null where nothing is said.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "formats/hdf5/value/listing.h"
#include "formats/hdf5/file/lost.h"
#include "formats/hdf5/value/value.h"

/* Limit of texts like units, in bytes. */
#define WORDS_MAX 4096

/* ---- a coordinate --------------------------------------------------------- */

static json_t *list_optional_attribute(struct hdf5_listing *l, hid_t object,
				       const char *name)
{
	return H5Aexists(object, name) > 0
		       ? hdf5_list_attribute(l, object, name)
		       : NULL;
}

static void add_words(struct hdf5_listing *l, hid_t dset, const char *name,
		      json_t *axis)
{
	json_t *v = list_optional_attribute(l, dset, name);

	if (json_is_string(v) && json_string_length(v) <= WORDS_MAX)
		json_object_set(axis, name, v);
	json_decref(v);
}

/* Add what the dataset of an axis' coordinates says of the axis. */
static void add_coordinate(struct hdf5_listing *l, hid_t from, const char *path,
			   json_t *axis)
{
	hid_t id = H5Lexists(from, path, H5P_DEFAULT) > 0
			   ? H5Oopen(from, path, H5P_DEFAULT)
			   : H5I_INVALID_HID;
	char name[WORDS_MAX];
	ssize_t n;

	if (id >= 0 && H5Iget_type(id) == H5I_DATASET) {
		n = H5Iget_name(id, name, sizeof name);
		if (n > 0 && (size_t)n < sizeof name)
			json_object_set_new(axis, "path",
					    json_text(name, (size_t)n));
		add_words(l, id, "long_name", axis);
		add_words(l, id, "units", axis);
	}
	if (id >= 0)
		H5Oclose(id);
}

/* ---- dimension scales ----------------------------------------------------- */

static const char *text_at(const json_t *array, size_t i)
{
	return json_string_value(json_array_get(array, i));
}

/* Describe axis i by its dimension scale; NULL if the file says nothing. */
static json_t *scaled_axis(struct hdf5_listing *l, hid_t file,
			   const json_t *all, size_t i)
{
	const char *label =
		text_at(json_object_get(all, "DIMENSION_LABELS"), i);
	const char *path = text_at(
		json_array_get(json_object_get(all, "DIMENSION_LIST"), i), 0);
	json_t *axis;

	if (path && *path != '/')
		path = NULL; /* in brackets: it leads nowhere */
	if (label && !*label)
		label = NULL;
	if (!path && !label)
		return NULL;
	axis = json_object();
	json_object_set_new(
		axis, "name",
		json_string(label ? label : strrchr(path, '/') + 1));
	if (path)
		add_coordinate(l, file, path, axis);
	return axis;
}

/* ---- NeXus ---------------------------------------------------------------- */

/* Split "[x,y]" or "x:y" into words. */
static json_t *split_words(const char *s)
{
	static const char between[] = "[],: ";
	json_t *words = json_array();

	for (s += strspn(s, between); *s; s += strspn(s, between)) {
		size_t n = strcspn(s, between);

		json_array_append_new(words, json_stringn(s, n));
		s += n;
	}
	return words;
}

/* Return an attribute as a list of words; NULL if it is missing. */
static json_t *words_of(struct hdf5_listing *l, hid_t object, const char *name)
{
	json_t *v = list_optional_attribute(l, object, name), *words = NULL;

	if (json_is_array(v))
		return v;
	/* In brackets: not listed, or not read. */
	if (json_is_string(v) && *json_string_value(v) != '(')
		words = split_words(json_string_value(v));
	json_decref(v);
	return words;
}

static bool has_word(struct hdf5_listing *l, hid_t object, const char *name,
		     const char *word)
{
	json_t *v = list_optional_attribute(l, object, name);
	bool is = json_is_string(v) && !strcmp(json_string_value(v), word);

	for (size_t i = 0; i < json_array_size(v) && !is; i++)
		is = text_at(v, i) && !strcmp(text_at(v, i), word);
	json_decref(v);
	return is;
}

/* Return the axis that word k of n is for; `rank` if unknown. */
static size_t axis_of_word(struct hdf5_listing *l, hid_t group,
			   const char *word, size_t k, size_t n, size_t rank)
{
	cleanup_free char *name = NULL;
	json_t *v, *one;
	size_t at = n == rank ? k : rank;

	if (asprintf(&name, "%s_indices", word) < 0) {
		name = NULL;
		return rank;
	}
	v = list_optional_attribute(l, group, name);
	one = json_is_array(v) ? json_array_get(v, 0) : v;
	if (json_is_integer(one) && json_array_size(v) <= 1) {
		json_int_t i = json_integer_value(one);

		at = i >= 0 && (uint64_t)i < rank ? (size_t)i : rank;
	}
	json_decref(v);
	return at;
}

/* Return the names of axes of a NeXus signal; NULL if there are none. */
static json_t *nexus_words(struct hdf5_listing *l, hid_t group, hid_t dset,
			   const char *name)
{
	json_t *words = NULL;

	if (has_word(l, group, "signal", name) ||
	    has_word(l, group, "auxiliary_signals", name))
		words = words_of(l, group, "axes");
	return words ? words : words_of(l, dset, "axes");
}

static bool nexus_axes(struct hdf5_listing *l, hid_t group, json_t *words,
		       json_t *axes)
{
	size_t n = json_array_size(words), rank = json_array_size(axes);
	bool said = false;

	for (size_t k = 0; k < n && k < RANK_MAX; k++) {
		const char *word = text_at(words, k);
		size_t i =
			word ? axis_of_word(l, group, word, k, n, rank) : rank;
		json_t *axis;

		if (i == rank || !*word || !strcmp(word, ".") ||
		    !json_is_null(json_array_get(axes, i)))
			continue;
		axis = json_object();
		json_object_set_new(axis, "name", json_string(word));
		add_coordinate(l, group, word, axis);
		json_array_set_new(axes, i, axis);
		said = true;
	}
	return said;
}

/* ---- all of it ------------------------------------------------------------ */

static size_t rank_of(hid_t dset)
{
	hid_t space = H5Dget_space(dset);
	int rank = space < 0 ? 0 : H5Sget_simple_extent_ndims(space);

	if (space >= 0)
		H5Sclose(space);
	return rank < 0 || rank > RANK_MAX ? 0 : (size_t)rank;
}

/* Set the axes that NeXus names. Return false if there are none. */
static bool nexus_about(struct hdf5_listing *l, hid_t group, hid_t dset,
			const char *name, json_t *axes)
{
	json_t *words = nexus_words(l, group, dset, name);
	bool said = words && nexus_axes(l, group, words, axes);

	json_decref(words);
	return said;
}

static bool scales_about(struct hdf5_listing *l, hid_t dset, const json_t *all,
			 json_t *axes)
{
	bool said = false;

	for (size_t i = 0; i < json_array_size(axes); i++) {
		json_t *axis = scaled_axis(l, dset, all, i);

		if (axis)
			json_array_set_new(axes, i, axis);
		said = said || axis;
	}
	return said;
}

/* Add the axes that attributes name. */
static void named_about(struct hdf5_listing *l, hid_t group, hid_t dset,
			const char *name, json_t *about)
{
	const json_t *all = json_object_get(about, "attributes");
	json_t *axes = json_array();
	size_t rank = rank_of(dset);

	for (size_t i = 0; i < rank; i++)
		json_array_append_new(axes, json_null());
	if (nexus_about(l, group, dset, name, axes) ||
	    scales_about(l, dset, all, axes))
		json_object_set(about, "axes", axes);
	json_decref(axes);
}

/* Add to `about` what the dataset and its group say. `path` is the dataset's path. */
static void read_about(struct hdf5_listing *l, hid_t dset, const char *path,
		       json_t *about)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	cleanup_free char *parent =
		slash && slash > path ? strndup(path, (size_t)(slash - path))
				      : strdup("/");
	hid_t group =
		parent ? H5Gopen2(dset, parent, H5P_DEFAULT) : H5I_INVALID_HID;

	l->failed = l->failed || !parent;
	if (group < 0)
		return;
	if (!strcmp(name, "data"))
		hdf5_hyperspy_about(l, group, dset, about);
	if (!json_object_get(about, "axes"))
		named_about(l, group, dset, name, about);
	H5Gclose(group);
}

char *hdf5_about_here(const struct hdf5_place *at, struct error *err)
{
	json_t *about, *attributes = NULL;
	struct hdf5_lost lost;
	struct hdf5_listing l;
	struct hdf5_opened o;
	char *text = NULL;

	if (hdf5_lost_open(at, &o, &lost, err) < 0)
		return NULL;
	about = json_object();
	if (!hdf5_listing_open(&l, at->s, o.object, &lost, err))
		attributes = hdf5_list_attributes(&l, o.object, err);
	if (attributes) {
		if (json_object_set_new(about, "attributes", attributes) < 0)
			l.failed = true;
		if (l.lost.names)
			json_object_set(about, "unreadable_attributes",
					l.lost.names);
		if (H5Iget_type(o.object) == H5I_DATASET)
			read_about(&l, o.object, at->object, about);
		text = l.failed ? NULL : json_exact(about, HDF5_LISTING_DUMP);
		if (!text)
			error_no_memory(err, "the description of an object");
	}
	if (!text)
		hdf5_place_prefix(at, err);
	json_decref(about);
	hdf5_listing_close(&l);
	hdf5_lost_close(&o);
	return text;
}
