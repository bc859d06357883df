/* SPDX-License-Identifier: BSD-2-Clause */
/* The sources "zarr" and "zarr-zip": groups are directories, arrays are tensors. */
#ifndef FORMATS_ZARR_ZARR_H
#define FORMATS_ZARR_ZARR_H

#include <pthread.h>

#include "base/buf.h"
#include "formats/arrays.h"
#include "formats/zarr/meta.h"
#include "formats/zarr/store.h"

extern const struct source_ops source_zarr, source_zarr_zip;

/* How many indexes of shards are kept, and the bytes of all of them. */
#define ZARR_INDEXES 64
#define ZARR_INDEX_BYTES ((size_t)8 << 20)
struct zarr_index {
	const struct array *of;
	uint64_t shard;
	uint64_t identity[4];
	struct buf *bytes; /* NULL: the slot is free */
};
struct zarr {
	struct arrays arrays; /* first member */
	struct zarr_store *store;
	/* Consolidated metadata: documents by their keys; or NULL. */
	json_t *consolidated;
	const char *consolidated_key;
	uint64_t consolidated_identity[4];
	uint64_t nodes; /* number of nodes read so far */
	/* Number of directories without metadata searched so far. */
	uint64_t searched;
	/* Zarr version of the node shown as the root; 0: none. */
	unsigned version;
	pthread_mutex_t lock; /* protects all below */
	struct zarr_index index[ZARR_INDEXES];
	unsigned next; /* the slot that is replaced next */
	size_t index_bytes;
};

/* Return a source that is zero but for its ops and lock, or NULL if memory is short. */
struct zarr *zarr_new(const struct source_ops *ops);
/* If `r` is 0, publish the nodes of the source's store and set *out.  If `r` is an
 * error, or publishing fails, close the source and return the error. */
int zarr_finish(struct zarr *s, int r, const struct source_args *a,
		struct source **out, struct error *err);
void zarr_close(struct source *s);
/* Return the name of the format: "Zarr v2", "Zarr v3" or "Zarr". */
const char *zarr_format(const struct source *s);
/* Return true if this zip is a Zarr store: with Zarr metadata in its root, or in the
 * only directory of its root. */
struct archive;
bool zarr_zip_is_store(const struct archive *a);
/* Open a zip as a Zarr store.  Takes ownership of `a`, also when it fails. */
int zarr_zip_open(struct archive *a, const struct source_args *args,
		  struct source **out, struct error *err);

/* The state of one array of this source. */
struct zarr_own {
	const struct zarr_array *z; /* owned by the source */
	/* From stored to served elements; NULL: they are the same. */
	const struct recode *recode;
	/* Path of its directory in the store; owned. */
	char *path;
	char *doc; /* key of its metadata; owned */
	/* Identity of the metadata when they were read. */
	uint64_t identity[4];
	unsigned version; /* version of Zarr */
	char separator;
};

/* The `make` of array_ops. */
int zarr_make(struct array *a, uint32_t part, const struct grid *g,
	      uint64_t chunk, void *out, size_t size, struct error *err);
/* The `has_checksum` of array_ops. */
bool zarr_has_checksum(struct array *a, uint32_t part);
/* Write the key of the chunk, or shard, at place `at` of the grid of keys.  Returns
 * false if it is too long. */
bool zarr_chunk_key(const struct zarr_own *own, unsigned rank,
		    const uint64_t *at, char out[ZARR_KEY_MAX]);
/*
 * Decode bytes [from->pos, from->pos + n) of a value to the chunk's elements in C order,
 * as they are served.  Returns 0, -EBADMSG if they do not decode to `size` bytes, or
 * another error.
 */
struct zarr_bytes {
	struct zarr_store *store;
	struct zarr_value *value;
	uint64_t pos, n;
};
int zarr_decode(const struct zarr_own *own, const struct zarr_bytes *from,
		unsigned char *out, size_t size, struct error *err);
/*
 * Find chunk `i` of a shard, and set `pos` and `n` of *out, whose value is the open
 * shard.  Returns 0, 1 if the chunk was never written, or -errno.
 */
int zarr_find_in_shard(struct zarr *s, const struct array *a, uint64_t shard,
		       uint64_t i, struct zarr_bytes *out, struct error *err);
void zarr_indexes_free(struct zarr *s);

/* The metadata of a node. */
struct zarr_node {
	json_t *doc; /* a JSON object; owned */
	unsigned version;
	bool is_array;
	char *key; /* key of the document; owned */
	uint64_t identity[4];
};
/* Read the node at `path`.  Returns 0; -ENOENT without a sentence if there is none;
 * -EBADMSG; or an error of reading.  The caller frees *out with zarr_node_free. */
int zarr_node_read(struct zarr *s, const char *path, struct zarr_node *out,
		   struct error *err);
void zarr_node_free(struct zarr_node *n);
/* Read the consolidated metadata of the store, if it has any; they serve nodes that have
 * no metadata of their own.  Returns 0 or -errno. */
int zarr_consolidated(struct zarr *s, struct error *err);
/* Set *out to the names of the directories below `path`, which may be nodes: a sorted
 * array of strings without duplicates, owned by the caller.  Returns 0 or -errno. */
int zarr_children(struct zarr *s, const char *path, json_t **out,
		  struct error *err);
/* Return 1 if a directory without metadata has nodes below it, which readers of Zarr
 * find by their paths; 0 if not; -E2BIG if there are too many directories to search; or
 * an error of listing them.  Callers outside of node.c pass 0 for `depth`. */
int zarr_nodes_below(struct zarr *s, const char *path, unsigned depth,
		     struct error *err);
/* Set *out to the character between the indices in an array's chunk keys: as its
 * metadata say, else as the names of its chunks look.  Returns 0 or -errno. */
int zarr_find_separator(struct zarr *s, const char *path,
			const struct zarr_array *z, char *out,
			struct error *err);
/* Return the attributes of a node, an object, as a new reference; NULL if they cannot be
 * read. */
json_t *zarr_attributes(struct zarr *s, const char *path, unsigned version,
			struct error *err);
/* The `attributes` and `about` of array_ops. */
json_t *zarr_array_attributes(const struct array *a);
json_t *zarr_array_about(const struct array *a);
/* Return how many leading axes count samples by HyperSpy's metadata; 0 if there are no
 * such metadata. */
unsigned zarr_hyperspy_axes(struct zarr *s, const char *path, unsigned rank);
/* Add the axes and metadata of a HyperSpy signal to `about`; return false if the array
 * is not one. */
bool zarr_hyperspy_about(struct zarr *s, const char *path, unsigned rank,
			 json_t *about);

#endif
