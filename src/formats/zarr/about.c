/* SPDX-License-Identifier: BSD-2-Clause */
/* What info.json tells of a Zarr array: attributes, axes, HyperSpy's metadata. */
/*
 * HyperSpy writes to .zspy what it writes to .hspy: beside the array `data` there are
 * groups `axis-N` with an attribute `navigate`, and `metadata`, a group of groups.
 */
#include <stdio.h>
#include <string.h>

#include "formats/zarr/zarr.h"

/* The attribute in which xarray stores the names of dimensions. */
#define DIMENSIONS "_ARRAY_DIMENSIONS"
#define NESTED_MAX 16
#define ITEMS_MAX 10000

static struct zarr *zarr_of(const struct array *a)
{
	return (struct zarr *)a->source;
}

json_t *zarr_array_attributes(const struct array *a)
{
	const struct zarr_own *own = a->own;
	struct error err;
	json_t *o = zarr_attributes(zarr_of(a), own->path, own->version, &err);

	if (!o && err.code)
		return json_pack("{s:s}", "(cannot be read)", err.text);
	if (o && own->version == 2)
		json_object_del(o, DIMENSIONS);
	return o;
}

/* ---- axes ---------------------------------------------------------------- */

/* Return the names of an array's axes as a new reference, or NULL. */
static json_t *dimension_names(struct zarr *s, const struct zarr_own *own,
			       const json_t *doc)
{
	json_t *o, *names;

	if (own->version == 3)
		return json_incref(json_object_get(doc, "dimension_names"));
	o = zarr_attributes(s, own->path, 2, NULL);
	names = json_incref(json_object_get(o, DIMENSIONS));
	json_decref(o);
	return names;
}

/* Add the codecs, as the metadata spell them. */
static void about_put_codecs(const struct zarr_own *own, const json_t *doc,
			     json_t *about)
{
	static const char *const keys[] = {"compressor", "filters", "order",
					   "codecs"};
	json_t *o = json_pack("{s:i}", "version", (int)own->version);

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		json_t *v = json_object_get(doc, keys[i]);

		if (v)
			json_object_set(o, keys[i], v);
	}
	json_object_set_new(about, "zarr", o);
}

/* Add the names of axes, one element for each axis ([{"name": "y"}, null]), if there are
 * any. */
static void about_put_dimensions(struct zarr *s, const struct array *a,
				 const json_t *doc, json_t *about)
{
	json_t *names = dimension_names(s, a->own, doc);
	json_t *axes = json_array(), *v;
	size_t i, found = 0;

	if (json_array_size(names) == a->t.rank)
		json_array_foreach(names, i, v)
		{
			found += json_is_string(v);
			json_array_append_new(
				axes, json_is_string(v)
					      ? json_pack("{s:O}", "name", v)
					      : json_null());
		}
	if (found)
		json_object_set(about, "axes", axes);
	json_decref(axes);
	json_decref(names);
}

json_t *zarr_array_about(const struct array *a)
{
	const struct zarr_own *own = a->own;
	const char *slash = strrchr(own->path, '/');
	const char *name = slash ? slash + 1 : own->path;
	struct zarr *s = zarr_of(a);
	json_t *about = json_object();
	struct zarr_node node;

	if (!about || zarr_node_read(s, own->path, &node, NULL) < 0)
		return about;
	about_put_codecs(own, node.doc, about);
	about_put_dimensions(s, a, node.doc, about);
	zarr_node_free(&node);
	if (!json_object_get(about, "axes") && !strcmp(name, "data"))
		zarr_hyperspy_about(s, own->path, a->t.rank, about);
	return about;
}

/* ---- HyperSpy ------------------------------------------------------------ */

/* Write the key of the node `name` in the group of the array at `path`.  Returns false
 * if it is too long. */
static bool sibling_key(const char *path, const char *name,
			char out[ZARR_KEY_MAX])
{
	const char *slash = strrchr(path, '/');
	int n = snprintf(out, ZARR_KEY_MAX, "%.*s%s%s",
			 slash ? (int)(slash - path) : 0, path,
			 slash ? "/" : "", name);

	return n >= 0 && n < ZARR_KEY_MAX;
}

/* Return the attributes of the group of axis `i`, or NULL if there is no such group; set
 * *version to its Zarr version. */
static json_t *hyperspy_read_axis(struct zarr *s, const char *path, unsigned i,
				  unsigned *version)
{
	struct zarr_node node;
	char name[32], at[ZARR_KEY_MAX];

	snprintf(name, sizeof name, "axis-%u", i);
	if (!sibling_key(path, name, at) ||
	    zarr_node_read(s, at, &node, NULL) < 0)
		return NULL;
	*version = node.version;
	zarr_node_free(&node);
	return zarr_attributes(s, at, *version, NULL);
}

unsigned zarr_hyperspy_axes(struct zarr *s, const char *path, unsigned rank)
{
	unsigned n = 0, version;

	while (n < rank) {
		json_t *o = hyperspy_read_axis(s, path, n, &version);
		bool yes = json_is_true(json_object_get(o, "navigate"));

		json_decref(o);
		if (!yes)
			break;
		n++;
	}
	return n;
}

/* Return a group of groups as an object of objects. */
static json_t *hyperspy_read_group(struct zarr *s, const char *path,
				   unsigned version, unsigned depth,
				   unsigned *left)
{
	json_t *o = zarr_attributes(s, path, version, NULL), *names, *v;
	size_t i;

	if (!o || depth == NESTED_MAX ||
	    zarr_children(s, path, &names, NULL) < 0)
		return o;
	json_array_foreach(names, i, v)
	{
		const char *name = json_string_value(v);
		char below[ZARR_KEY_MAX];
		struct zarr_node node;

		if (!*left || !zarr_key(below, path, name) ||
		    zarr_node_read(s, below, &node, NULL) < 0)
			continue;
		--*left;
		if (!node.is_array)
			json_object_set_new(
				o, name,
				hyperspy_read_group(s, below, version,
						    depth + 1, left));
		zarr_node_free(&node);
	}
	json_decref(names);
	return o;
}

bool zarr_hyperspy_about(struct zarr *s, const char *path, unsigned rank,
			 json_t *about)
{
	json_t *axes = json_array();
	unsigned found = 0, version = 2, left = ITEMS_MAX;
	char at[ZARR_KEY_MAX];
	struct zarr_node node;

	for (unsigned i = 0; i < rank; i++) {
		json_t *o = hyperspy_read_axis(s, path, i, &version);

		found += o != NULL;
		json_array_append_new(axes, o ? o : json_null());
	}
	if (found)
		json_object_set(about, "axes", axes);
	json_decref(axes);
	if (!found || !sibling_key(path, "metadata", at) ||
	    zarr_node_read(s, at, &node, NULL) < 0)
		return found;
	if (!node.is_array)
		json_object_set_new(
			about, "metadata",
			hyperspy_read_group(s, at, node.version, 0, &left));
	zarr_node_free(&node);
	return true;
}
