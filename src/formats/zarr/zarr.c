/* SPDX-License-Identifier: BSD-2-Clause */
/* The source "zarr": groups are directories, arrays are tensors. */
/*
 * A chunk has a file of its own, or is part of one, a shard.  Chunks are made from these
 * files when they are read, by any number of threads, and no state is kept for a chunk.
 * An array that is one chunk without codecs is served from the bytes of its file.
 */
#include "formats/zarr/zarr.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/number.h"
#include "formats/group_files.h"

#define DEPTH_MAX 64
#define NODES_MAX (UINT64_C(1) << 20)

/* ---- arrays -------------------------------------------------------------- */

static void zarr_own_free(struct zarr_own *own)
{
	if (!own)
		return;
	free(own->path);
	free(own->doc);
	free(own);
}

static void zarr_free_own(struct array *a)
{
	zarr_own_free(a->own);
}

static const struct array_ops zarr_array_ops = {
	.make = zarr_make,
	.has_checksum = zarr_has_checksum,
	.attributes = zarr_array_attributes,
	.about = zarr_array_about,
	.free = zarr_free_own,
};

/* Make the state that an array needs to make its chunks.  *out is owned by the caller,
 * also after a failure. */
static int zarr_own_new(struct zarr *s, const char *path,
			const struct zarr_node *node,
			const struct zarr_array *z, struct zarr_own **out,
			struct error *err)
{
	struct intern *in = &s->arrays.intern;
	struct zarr_own *own = calloc(1, sizeof *own);
	struct zarr_array kept = *z;
	struct dtype served;
	struct recode recode;

	*out = own;
	memset(kept.shape, 0, sizeof kept.shape);
	memset(&recode, 0, sizeof recode);
	if (!own || !arrays_served(&s->arrays, &z->stored, &served))
		return error_no_memory(err, "the record of an array");
	if (!dtype_recode(&z->stored, &served, NULL, &recode))
		return error_set(err, -ENOTSUP, "its type is too complicated");
	own->z = intern_bytes(in, &kept, sizeof kept);
	own->path = strdup(path);
	own->doc = strdup(node->key);
	own->version = node->version;
	memcpy(own->identity, node->identity, sizeof own->identity);
	if (!recode_is_identity(&recode))
		own->recode = intern_bytes(in, &recode, sizeof recode);
	if (!own->z || !own->path || !own->doc ||
	    (!own->recode && !recode_is_identity(&recode)))
		return error_no_memory(err, "the record of an array");
	return zarr_find_separator(s, path, z, &own->separator, err);
}

/* Return true if the array is one chunk, stored without codecs. */
static bool array_is_one_file(const struct zarr_array *z)
{
	bool same = !z->codecs.n && !z->codecs.turned && !z->sharded;

	for (unsigned i = 0; i < z->rank; i++)
		same &= z->shape[i] == z->chunk[i];
	return same;
}

static uint64_t bytes_of_chunk(const struct zarr_array *z)
{
	uint64_t n = z->stored.size;

	for (unsigned i = 0; i < z->rank; i++)
		/* zarr_check_chunk has excluded overflow. */
		n *= z->chunk[i];
	return n;
}

/* Set the layout of an array whose only chunk is served in place.  Returns 0, 1 if the
 * chunk must be decoded, or -errno. */
static int zarr_set_linear(struct zarr *s, const struct zarr_own *own,
			   struct array_layout *l, struct error *err)
{
	static const uint64_t zeros[RANK_MAX];
	uint64_t size = bytes_of_chunk(own->z);
	struct zarr_place at;
	char key[ZARR_KEY_MAX];
	int r;

	l->kind = ARRAY_ABSENT;
	if (!zarr_chunk_key(own, own->z->rank, zeros, key))
		return error_set(err, -ENAMETOOLONG, "its path is too long");
	r = s->store->ops->place(s->store, key, s->arrays.handles, &at, err);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (at.size != size)
		return error_set(err, -EBADMSG,
				 "%s has %llu bytes, and should have %llu: "
				 "truncated?",
				 key, (unsigned long long)at.size,
				 (unsigned long long)size);
	if (r == 1)
		return 1;
	l->kind = ARRAY_LINEAR;
	l->file = at.file;
	l->pos = at.pos;
	return 0;
}

static int zarr_set_layout(struct zarr *s, const struct zarr_array *z,
			   const struct zarr_own *own, struct array_layout *l,
			   struct error *err)
{
	int r;

	memset(l, 0, sizeof *l);
	l->file = UINT32_MAX;
	l->stored = z->stored;
	memcpy(l->shape, z->shape, sizeof l->shape);
	memcpy(l->chunk, z->chunk, sizeof l->chunk);
	r = array_is_one_file(z) ? zarr_set_linear(s, own, l, err) : 1;
	if (r <= 0)
		return r;
	if (bytes_of_chunk(z) > ZARR_CHUNK_BYTES_MAX)
		return error_set(err, -ENOTSUP,
				 "its chunks of %llu bytes are too large to be "
				 "decoded",
				 (unsigned long long)bytes_of_chunk(z));
	l->kind = ARRAY_MADE;
	l->maker = "tensorfs: from Zarr chunks";
	return 0;
}

/* Set *out to the fill value as it is served (malloc'ed), or NULL if it is zero. */
static int served_fill(const struct zarr_array *z, const struct zarr_own *own,
		       void **out, struct error *err)
{
	*out = NULL;
	if (!z->fill)
		return 0;
	*out = malloc(z->stored.size);
	if (!*out)
		return error_no_memory(err, "a fill value");
	memcpy(*out, z->fill, z->stored.size);
	if (own->recode)
		recode_run(own->recode, *out, *out, 1);
	return 0;
}

/* Set the file that stands for the array in sentences and statistics. */
static int zarr_set_part(struct zarr *s, const struct zarr_own *own,
			 struct array_part *part, struct error *err)
{
	part->file = s->store->ops->file(s->store, own->doc, s->arrays.handles);
	part->name = intern_text(&s->arrays.intern, own->path);
	return part->file == UINT32_MAX || !part->name
		       ? error_no_memory(err, "the name of an array")
		       : 0;
}

static const char *path_last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int zarr_make_array(struct zarr *s, const char *path,
			   const struct zarr_node *node, const char *name,
			   struct zarr_own **own, struct array **out,
			   struct error *err)
{
	cleanup_free void *fill = NULL;
	struct array_layout l;
	struct array_part part = {0};
	struct zarr_array z;
	struct array_spec spec;
	int r = node->version == 3
			? zarr_v3_read(node->doc, &s->arrays.intern, &z, err)
			: zarr_v2_read(node->doc, &s->arrays.intern, &z, err);

	if (r == 0)
		r = zarr_own_new(s, path, node, &z, own, err);
	if (r == 0)
		r = zarr_set_layout(s, &z, *own, &l, err);
	if (r == 0)
		r = served_fill(&z, *own, &fill, err);
	if (r == 0)
		r = zarr_set_part(s, *own, &part, err);
	if (r < 0)
		return r;
	memset(&spec, 0, sizeof spec);
	spec.name = name;
	spec.stored = z.stored;
	spec.rank = z.rank;
	memcpy(spec.shape, z.shape, sizeof spec.shape);
	if (!strcmp(path_last_name(path), "data"))
		spec.sample_axes = zarr_hyperspy_axes(s, path, z.rank);
	spec.fill = fill;
	spec.note = z.no_fill ? "it has no fill value: chunks that were never "
				"written are shown as zeros"
			      : NULL;
	spec.layout = &l;
	spec.nparts = 1;
	spec.parts = &part;
	spec.ops = &zarr_array_ops;
	spec.own = steal_pointer(own);
	return array_new(&s->arrays, &spec, out, err);
}

/* ---- the tree ------------------------------------------------------------ */

struct walk {
	struct zarr *s;
	struct tree_builder *b;
	struct error *err;
};

/* Publish an array as `name` in `dir`, or list it with the reason why it cannot be
 * shown. */
static int publish_array(struct walk *w, const char *path, const char *name,
			 uint32_t dir, const struct zarr_node *node,
			 struct error *why)
{
	cleanup_free char *full = NULL;
	struct zarr_own *own = NULL;
	struct array *a;
	int r = why->code;

	if (asprintf(&full, "/%s", *path ? path : name ? name : "data") < 0) {
		full = NULL;
		return error_no_memory(w->err, "the name of an array");
	}
	if (r == 0)
		r = zarr_make_array(w->s, path, node, full, &own, &a, why);
	zarr_own_free(own);
	if (r == -ENOMEM)
		return error_no_memory(w->err, "an array");
	if (r < 0)
		return array_publish_not(&w->s->arrays, w->b, dir, name, why,
					 w->err);
	return array_publish(w->b, dir, name, a, NULL, w->err);
}

/* Read a node.  A directory without metadata that has nodes below it is shown like a
 * group.  Returns -ENOENT if it is neither. */
static int node_or_prefix(struct zarr *s, const char *path,
			  struct zarr_node *out, struct error *err)
{
	int r = zarr_node_read(s, path, out, err);
	struct zarr_node root;
	struct error ignored;

	if (r != -ENOENT)
		return r;
	r = zarr_nodes_below(s, path, 0, err);
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	if (zarr_node_read(s, "", &root, &ignored) == 0)
		out->version = root.version;
	zarr_node_free(&root);
	return 0;
}

static int walk_group(struct walk *w, const char *path, unsigned version,
		      uint32_t dir, unsigned depth);

static int walk_node(struct walk *w, const char *path, const char *name,
		     uint32_t dir, unsigned depth)
{
	struct zarr_node node;
	struct error why = {0};
	int r = node_or_prefix(w->s, path, &node, &why);

	if (r == -ENOENT)
		return 0;
	if (r == -ENOMEM)
		return error_no_memory(w->err, "the metadata of a node");
	/* A node that cannot be read does not hide its neighbours. */
	if (w->s->nodes++ >= NODES_MAX || depth > DEPTH_MAX)
		r = error_set(&why, -ENOTSUP,
			      "%s has too many nodes, or groups that are "
			      "nested too deep, at %s",
			      w->s->store->path, path);
	if (r < 0 || node.is_array) {
		r = publish_array(w, path, name, dir, &node, &why);
	} else {
		uint32_t at = tree_add_dir(w->b, dir, name, w->s->arrays.mtime);

		r = at == UINT32_MAX
			    ? error_no_memory(w->err, "the tree of groups")
			    : walk_group(w, path, node.version, at, depth);
	}
	zarr_node_free(&node);
	return r;
}

/* Return the xattr "attrs" of a group.  `version` is that of Zarr, in the parameter that
 * other sources use for a file. */
static char *group_attributes(void *source, uint32_t version, const char *path,
			      struct error *err)
{
	json_t *o = zarr_attributes(source, path, version, err);
	char *text = o ? json_exact(o, JSON_COMPACT) : NULL;

	json_decref(o);
	return text;
}

static int set_group(struct walk *w, const char *path, unsigned version,
		     uint32_t dir)
{
	const char *kept = intern_text(&w->s->arrays.intern, path);
	struct files *f =
		kept ? group_files_new(group_attributes, w->s, version, kept,
				       w->s->arrays.mtime)
		     : NULL;

	if (!f)
		return error_no_memory(w->err, "the attributes of a group");
	tree_set_files(w->b, dir, f);
	return 0;
}

static int walk_group(struct walk *w, const char *path, unsigned version,
		      uint32_t dir, unsigned depth)
{
	json_t *names, *v;
	size_t i;
	int r = set_group(w, path, version, dir);

	if (r == 0)
		r = zarr_children(w->s, path, &names, w->err);
	if (r < 0)
		return r;
	json_array_foreach(names, i, v)
	{
		const char *name = json_string_value(v);
		char below[ZARR_KEY_MAX];

		if (!zarr_key(below, path, name))
			continue;
		r = walk_node(w, below, name, dir, depth + 1);
		if (r < 0)
			break;
	}
	json_decref(names);
	return r;
}

/* Publish the node that is shown as the root, and everything below it. */
static int zarr_walk_root(struct walk *w, const struct source_args *a)
{
	const char *path = a->dataset ? a->dataset : "";
	char clean[ZARR_KEY_MAX];
	struct zarr_node node;
	struct error why = {0};
	size_t n;
	int r;

	path += strspn(path, "/");
	n = strlen(path);
	while (n && path[n - 1] == '/')
		n--;
	snprintf(clean, sizeof clean, "%.*s", (int)min_u64(n, sizeof clean - 1),
		 path);
	r = node_or_prefix(w->s, clean, &node, &why);
	w->s->version = r < 0 ? 0 : node.version;
	if (r == -ENOENT)
		return error_set(w->err, -ENOENT,
				 "%s has no group or array '/%s'", a->path,
				 clean);
	if (r < 0 && !*clean)
		return error_set(w->err, r, "%s", why.text);
	if (r < 0 || node.is_array)
		r = publish_array(w, clean, *clean ? NULL : "data", a->dir,
				  &node, &why);
	else
		r = walk_group(w, clean, node.version, a->dir, 0);
	zarr_node_free(&node);
	return r;
}

/* ---- the source ---------------------------------------------------------- */

void zarr_close(struct source *source)
{
	struct zarr *s = (struct zarr *)source;

	zarr_indexes_free(s);
	json_decref(s->consolidated);
	zarr_store_free(s->store);
	pthread_mutex_destroy(&s->lock);
	arrays_end(&s->arrays);
	free(s);
}

const char *zarr_format(const struct source *source)
{
	const struct zarr *s = (const struct zarr *)source;

	return s->version == 3 ? "Zarr v3" : s->version ? "Zarr v2" : "Zarr";
}

static int zarr_publish(struct zarr *s, const struct source_args *a,
			struct error *err)
{
	struct walk w = {.s = s, .b = a->tree, .err = err};
	int r = zarr_consolidated(s, err);

	return r < 0 ? r : zarr_walk_root(&w, a);
}

struct zarr *zarr_new(const struct source_ops *ops)
{
	struct zarr *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->arrays.source.ops = ops;
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

int zarr_finish(struct zarr *s, int r, const struct source_args *a,
		struct source **out, struct error *err)
{
	if (r == 0)
		r = zarr_publish(s, a, err);
	if (r < 0) {
		if (err && !strstr(err->text, a->path))
			error_prefix(err, "%s: ", a->path);
		zarr_close(&s->arrays.source);
		return r;
	}
	*out = &s->arrays.source;
	return 0;
}

static int zarr_open(const struct source_args *a, struct source **out,
		     struct error *err)
{
	struct zarr *s = zarr_new(&source_zarr);
	int r;

	*out = NULL;
	if (!s)
		return error_no_memory(err, "the record of a Zarr store");
	r = arrays_begin(&s->arrays, a, err);
	if (r == 0) {
		s->store = zarr_directory_new(s->arrays.path, a->handles);
		r = s->store ? 0
			     : error_no_memory(err,
					       "the record of a Zarr store");
	}
	return zarr_finish(s, r, a, out, err);
}

static int zarr_probe(const unsigned char *head, size_t n, const char *path)
{
	(void)head;
	(void)n;
	(void)path;
	return 0; /* a directory has no first bytes */
}

const struct source_ops source_zarr = {
	.flags = SOURCE_HAS_DATASETS,
	.name = "zarr",
	.format = zarr_format,
	.summary = "Zarr stores (directories), versions 2 and 3",
	.probe = zarr_probe,
	.open = zarr_open,
	.close = zarr_close,
};
