/* SPDX-License-Identifier: BSD-2-Clause */
/* Nodes of a Zarr store: their documents, on their own or consolidated. */
/*
 * A node's own metadata count: consolidated metadata is a copy that may be out of date.
 * It is used for nodes that have no other, in stores that consist of it and chunks only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "formats/zarr/zarr.h"

/* ---- documents ----------------------------------------------------------- */

static int document_parse(struct zarr *s, const char *key, const char *text,
			  size_t n, json_t **out, struct error *err)
{
	int r = zarr_json(text, n, out, err);

	if (r < 0)
		error_prefix(err, "%s/%s: ", s->store->path, key);
	return r;
}

/* Read the document `name` of the node at `path`.  *where is NULL if it is the node's
 * own, else the key of the consolidated metadata.  Returns -ENOENT without a sentence if
 * there is none. */
static int node_read_document(struct zarr *s, const char *path,
			      const char *name, json_t **out,
			      const char **where, uint64_t identity[4],
			      struct error *err)
{
	cleanup_free char *text = NULL;
	char key[ZARR_KEY_MAX];
	json_t *copy;
	size_t n;
	int r;

	*where = NULL;
	if (!zarr_key(key, path, name))
		return error_set(err, -ENAMETOOLONG, "%s: the path is too long",
				 path);
	r = zarr_store_read(s->store, key, &text, &n, identity, err);
	if (r == 0)
		return document_parse(s, key, text, n, out, err);
	copy = r == -ENOENT ? json_object_get(s->consolidated, key) : NULL;
	if (!copy)
		return r;
	if (!json_is_object(copy))
		return error_set(err, -EBADMSG,
				 "%s: the consolidated metadata of %s are not "
				 "a JSON object",
				 s->store->path, key);
	*out = json_incref(copy);
	*where = s->consolidated_key;
	if (identity)
		memcpy(identity, s->consolidated_identity,
		       sizeof s->consolidated_identity);
	return 0;
}

/* Read a document that need not be there: returns 0 also if there is none, and then
 * out->doc is NULL. */
static int node_try_document(struct zarr *s, const char *path, const char *name,
			     struct zarr_node *out, struct error *err)
{
	char key[ZARR_KEY_MAX];
	const char *where;
	int r = node_read_document(s, path, name, &out->doc, &where,
				   out->identity, err);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	if (!where && zarr_key(key, path, name))
		where = key;
	out->key = strdup(where ? where : name);
	return out->key ? 0 : error_no_memory(err, "the key of a node");
}

/* Set what kind of node it is from the member node_type of zarr.json. */
static int read_kind(struct zarr *s, struct zarr_node *n, struct error *err)
{
	const char *kind =
		json_string_value(json_object_get(n->doc, "node_type"));

	n->version = 3;
	n->is_array = kind && !strcmp(kind, "array");
	if (!kind || (!n->is_array && strcmp(kind, "group") != 0))
		return error_set(err, -EBADMSG,
				 "%s/%s: 'node_type' is neither array nor "
				 "group",
				 s->store->path, n->key);
	return 0;
}

int zarr_node_read(struct zarr *s, const char *path, struct zarr_node *out,
		   struct error *err)
{
	int r;

	memset(out, 0, sizeof *out);
	r = node_try_document(s, path, "zarr.json", out, err);
	if (r == 0 && out->doc)
		r = read_kind(s, out, err);
	if (r == 0 && !out->doc) {
		out->version = 2;
		out->is_array = true;
		r = node_try_document(s, path, ".zarray", out, err);
	}
	if (r == 0 && !out->doc) {
		out->is_array = false;
		r = node_try_document(s, path, ".zgroup", out, err);
	}
	if (r < 0) {
		zarr_node_free(out);
		return r;
	}
	return out->doc ? 0 : -ENOENT;
}

void zarr_node_free(struct zarr_node *n)
{
	json_decref(n->doc);
	free(n->key);
	n->doc = NULL;
	n->key = NULL;
}

json_t *zarr_attributes(struct zarr *s, const char *path, unsigned version,
			struct error *err)
{
	const char *where;
	json_t *doc, *v;
	int r = node_read_document(s, path,
				   version == 3 ? "zarr.json" : ".zattrs", &doc,
				   &where, NULL, err);

	if (r == -ENOENT)
		return json_object();
	if (r < 0)
		return NULL;
	if (version != 3)
		return doc;
	v = json_object_get(doc, "attributes");
	v = json_is_object(v) ? json_incref(v) : json_object();
	json_decref(doc);
	return v;
}

/* ---- consolidated -------------------------------------------------------- */

/* Return true if no part of the key is empty, "." or "..". */
static bool is_plain_key(const char *key)
{
	for (;;) {
		size_t n = strcspn(key, "/");

		if (!n || (n <= 2 && !strncmp(key, "..", n)))
			return false;
		if (!key[n])
			return true;
		key += n + 1;
	}
}

/* Return the consolidated documents by their keys: keys of version 2 as they are, those
 * of version 3 with "/zarr.json" appended.  NULL if memory is short. */
static json_t *by_keys(const json_t *metadata, unsigned version)
{
	json_t *out = json_object(), *v;
	const char *key;
	char full[ZARR_KEY_MAX];
	bool ok = out;

	json_object_foreach((json_t *)metadata, key, v)
	{
		if (!ok || !is_plain_key(key))
			continue;
		if (version == 2)
			ok = json_object_set(out, key, v) == 0;
		else if (zarr_key(full, key, "zarr.json"))
			ok = json_object_set(out, full, v) == 0;
	}
	if (ok)
		return out;
	json_decref(out);
	return NULL;
}

int zarr_consolidated(struct zarr *s, struct error *err)
{
	static const char *const names[] = {".zmetadata", "zarr.json"};
	json_t *doc, *in;
	const char *where;
	bool found;

	for (unsigned i = 0; i < 2; i++) {
		int r = node_read_document(s, "", names[i], &doc, &where,
					   s->consolidated_identity, err);

		if (r == -ENOENT)
			continue;
		if (r < 0)
			return r;
		in = i ? json_object_get(doc, "consolidated_metadata") : doc;
		in = json_object_get(in, "metadata");
		found = json_is_object(in);
		if (found) {
			s->consolidated_key = names[i];
			s->consolidated = by_keys(in, i ? 3 : 2);
		}
		json_decref(doc);
		if (found)
			return s->consolidated
				       ? 0
				       : error_no_memory(
						 err,
						 "the consolidated metadata");
	}
	return 0;
}

/* ---- what is below ------------------------------------------------------- */

struct names {
	json_t *set;
	bool failed;
};

static int children_add_name(void *ctx, const char *name, bool is_dir)
{
	struct names *n = ctx;

	/* A name that is not UTF-8 is not the name of a node: it is skipped.  Setting
	 * another name tells that from lack of memory. */
	if (is_dir && json_object_set_new(n->set, name, json_true()) < 0)
		n->failed = json_object_set_new(n->set, "?", json_true()) < 0 ||
			    json_object_del(n->set, "?") < 0;
	return n->failed;
}

static void add_consolidated(struct zarr *s, const char *path, struct names *n)
{
	size_t len = strlen(path);
	const char *key;
	json_t *v;

	json_object_foreach(s->consolidated, key, v)
	{
		char name[ZARR_KEY_MAX];
		const char *at = key, *end;

		if (len && (strncmp(key, path, len) != 0 || key[len] != '/'))
			continue;
		at += len ? len + 1 : 0;
		end = strchr(at, '/');
		if (!end || (size_t)(end - at) >= sizeof name)
			continue;
		memcpy(name, at, (size_t)(end - at));
		name[end - at] = '\0';
		children_add_name(n, name, true);
	}
}

static int children_compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int children_sort(json_t *set, json_t **out, struct error *err)
{
	size_t n = json_object_size(set), i = 0;
	cleanup_free const char **names = calloc(n + 1, sizeof *names);
	const char *key;
	json_t *v;

	*out = json_array();
	if (!names || !*out)
		return error_no_memory(err, "the names of nodes");
	json_object_foreach(set, key, v) names[i++] = key;
	qsort(names, n, sizeof *names, children_compare_names);
	for (i = 0; i < n; i++)
		if (json_array_append_new(*out, json_string(names[i])) < 0)
			return error_no_memory(err, "the names of nodes");
	return 0;
}

int zarr_children(struct zarr *s, const char *path, json_t **out,
		  struct error *err)
{
	struct names n = {.set = json_object()};
	int r = n.set ? s->store->ops->list(s->store, path, children_add_name,
					    &n, err)
		      : error_no_memory(err, "the names of nodes");

	*out = NULL;
	if (r == -ENOENT && s->consolidated)
		r = 0;
	if (r == 0)
		add_consolidated(s, path, &n);
	if (r > 0 || n.failed)
		r = error_no_memory(err, "the names of nodes");
	if (r == 0)
		r = children_sort(n.set, out, err);
	json_decref(n.set);
	if (r < 0) {
		json_decref(*out);
		*out = NULL;
	}
	return r;
}

/* ---- what is not said by documents --------------------------------------- */

/* Chunk keys of NestedDirectoryStore before zarr 2.8 have '/', but no metadata say so:
 * look at the names. */
static int looks_nested(void *ctx, const char *name, bool is_dir)
{
	char *separator = ctx;
	size_t digits = strspn(name, "0123456789");

	if (!digits || (name[digits] && name[digits] != '.'))
		return 0;
	*separator = is_dir && !name[digits] ? '/' : '.';
	return 1;
}

int zarr_find_separator(struct zarr *s, const char *path,
			const struct zarr_array *z, char *out,
			struct error *err)
{
	int r;

	*out = z->separator ? z->separator : '.';
	if (z->separator || z->rank < 2)
		return 0;
	r = s->store->ops->list(s->store, path, looks_nested, out, err);
	return r == -ENOENT || r > 0 ? 0 : r;
}

/* How deep directories are searched for nodes, and how many in all. */
enum { SEARCH_DEPTH = 32, SEARCH_MAX = 1 << 16 };

static int node_look_below(struct zarr *s, const char *path, const char *name,
			   unsigned depth, struct error *err)
{
	struct zarr_node node;
	char below[ZARR_KEY_MAX];
	int r;

	if (!zarr_key(below, path, name))
		return 0;
	r = zarr_node_read(s, below, &node, err);
	zarr_node_free(&node);
	/* A node that cannot be read is a node, too. */
	if (r != -ENOENT)
		return r == -ENOMEM ? r : 1;
	return zarr_nodes_below(s, below, depth + 1, err);
}

int zarr_nodes_below(struct zarr *s, const char *path, unsigned depth,
		     struct error *err)
{
	json_t *names, *v;
	size_t i;
	int r;

	if (!*path)
		return 0;
	if (depth == SEARCH_DEPTH || s->searched++ == SEARCH_MAX)
		return error_set(err, -E2BIG,
				 "%s/%s: it has no Zarr metadata, and too many "
				 "directories to search for arrays",
				 s->store->path, path);
	r = zarr_children(s, path, &names, err);
	if (r < 0)
		return r == -ENOENT || r == -ENOTDIR ? 0 : r;
	json_array_foreach(names, i, v)
	{
		r = node_look_below(s, path, json_string_value(v), depth, err);
		if (r)
			break;
	}
	json_decref(names);
	return r;
}
