/* SPDX-License-Identifier: BSD-2-Clause */
/* Source: Zarr stores, versions 2 and 3: groups are directories, arrays tensors. */
#ifndef FORMATS_ZARR_ZARR_H
#define FORMATS_ZARR_ZARR_H

#include <pthread.h>

#include "base/buf.h"
#include "formats/arrays.h"
#include "formats/zarr/meta.h"
#include "formats/zarr/store.h"

extern const struct source_ops source_zarr, source_zarr_zip;

/* Indexes of shards that were read last; bytes of all of them. */
#define ZARR_INDEXES 64
#define ZARR_INDEX_BYTES ((size_t)8 << 20)
struct zarr_index {
	const struct array *of;
	uint64_t shard;
	uint64_t identity[4];
	struct buf *bytes; /* NULL: free */
};
struct zarr {
	struct arrays arrays; /* first member */
	struct zarr_store *store;
	json_t *consolidated; /* documents by their keys; or NULL */
	const char *consolidated_key;
	uint64_t consolidated_identity[4];
	uint64_t nodes;       /* that were read */
	uint64_t searched;    /* directories without metadata */
	unsigned version;     /* of what is shown as the root */
	pthread_mutex_t lock; /* protects what follows */
	struct zarr_index index[ZARR_INDEXES];
	unsigned next; /* the slot that is used next */
	size_t index_bytes;
};

/* Cleared, but for its ops and lock; NULL: no memory. */
struct zarr *zarr_new(const struct source_ops *ops);
/* Publish what its store has, if nothing has gone wrong yet (r); else close it. */
int zarr_finish(struct zarr *s, int r, const struct source_args *a,
		struct source **out, struct error *err);
void zarr_close(struct source *s);
/* "Zarr v2" */
const char *zarr_format(const struct source *s);
/* Is this zip a Zarr store: with metadata in its root, or in its only directory? */
struct archive;
bool zarr_zip_is_store(const struct archive *a);
/* Open it as one; `a` is taken over. */
int zarr_zip_open(struct archive *a, const struct source_args *args,
		  struct source **out, struct error *err);

/* What an array of this source has of its own. */
struct zarr_own {
	const struct zarr_array *z;  /* kept by the source */
	const struct recode *recode; /* from stored to served */
	char *path;                  /* of its directory in the store */
	char *doc;                   /* key of its metadata */
	uint64_t identity[4];        /* of that, when it was read */
	unsigned version;            /* of Zarr */
	char separator;
};

/* ops->make of arrays. */
int zarr_make(struct array *a, uint32_t part, const struct grid *g,
	      uint64_t chunk, void *out, size_t size, struct error *err);
/* ops->has_checksum of arrays. */
bool zarr_has_checksum(struct array *a, uint32_t part);
/* The key of a chunk (of a shard), by its place in the grid.  False: too long. */
bool zarr_chunk_key(const struct zarr_own *own, unsigned rank,
		    const uint64_t *at, char out[ZARR_KEY_MAX]);
/*
 * Decode [pos, pos + n) of a value to the chunk's elements in C order, as served.
 * -EBADMSG: they do not decode to as many bytes as it has.
 */
struct zarr_bytes {
	struct zarr_store *store;
	struct zarr_value *value;
	uint64_t pos, n;
};
int zarr_decode(const struct zarr_own *own, const struct zarr_bytes *from,
		unsigned char *out, size_t size, struct error *err);
/*
 * Place of a chunk in a shard.  1: it was never written.
 */
int zarr_find_in_shard(struct zarr *s, const struct array *a, uint64_t shard,
		       uint64_t i, struct zarr_bytes *out, struct error *err);
void zarr_indexes_free(struct zarr *s);

/* The metadata of a node. */
struct zarr_node {
	json_t *doc; /* an object; owned */
	unsigned version;
	bool is_array;
	char *key; /* where it is; owned */
	uint64_t identity[4];
};
/* The node at `path`.  -ENOENT without a sentence: there is none; -EBADMSG. */
int zarr_node_read(struct zarr *s, const char *path, struct zarr_node *out,
		   struct error *err);
void zarr_node_free(struct zarr_node *n);
/* Consolidated metadata, for nodes that have none of their own. */
int zarr_consolidated(struct zarr *s, struct error *err);
/* Names of nodes below `path`, sorted, each once: an array of strings. */
int zarr_children(struct zarr *s, const char *path, json_t **out,
		  struct error *err);
/* Whether a directory without metadata has nodes below it (1, 0), which readers of Zarr
 * find by their paths.  `depth` is 0 for callers outside.  -E2BIG: too many directories;
 * errors of listing them. */
int zarr_nodes_below(struct zarr *s, const char *path, unsigned depth,
		     struct error *err);
/* What separates the indices in keys of chunks of an array: what its document says, else
 * what the names of its chunks look like. */
int zarr_find_separator(struct zarr *s, const char *path,
			const struct zarr_array *z, char *out,
			struct error *err);
/* Attributes of a node, an object; a new reference; NULL: they cannot be had. */
json_t *zarr_attributes(struct zarr *s, const char *path, unsigned version,
			struct error *err);
/* ops->attributes and ops->about of arrays. */
json_t *zarr_array_attributes(const struct array *a);
json_t *zarr_array_about(const struct array *a);
/* Axes that count samples, as HyperSpy's metadata says; 0: it does not. */
unsigned zarr_hyperspy_axes(struct zarr *s, const char *path, unsigned rank);
/* Its axes and metadata; false: it is no signal of HyperSpy. */
bool zarr_hyperspy_about(struct zarr *s, const char *path, unsigned rank,
			 json_t *about);

#endif
