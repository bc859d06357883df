/* SPDX-License-Identifier: BSD-2-Clause */
/* What the daemon and its HDF5 workers send each other. */
#ifndef FORMATS_HDF5_WORKER_REQUEST_H
#define FORMATS_HDF5_WORKER_REQUEST_H

#include "extent/file.h"
#include "formats/hdf5/dataset/description.h"
#include "formats/hdf5/worker/worker.h"

/* Values and attributes in one answer at most. */
#define HDF5_TEXT_MAX ((uint64_t)1 << 30)
/* Names in a request at most. */
#define HDF5_NAME_MAX ((uint32_t)1 << 20)

/*
 * A request is this, three names: the file's path, the object's in it, a member's
 * (empty: none); and values of text, where it has any.  The source, and what types point to, are as old as
 * the tree: a worker, forked when that was built, has them at the same address.
 *
 * An answer is a reply and `size` bytes: a description, `written` and locations,
 * a list and its chunks, the bytes of a chunk, values (each a uint64_t and so many
 * bytes), text, a monolith (views/monolith.h).
 */
enum op { DESCRIBE, LOCATE, LIST, FETCH, VALUES, ATTRIBUTES, ABOUT, MONOLITH };
struct request {
	enum op op;
	struct hdf5_source *s;
	struct identity id; /* of the file */
	uint32_t path_len, object_len, member_len;
	const struct hdf5_tensor *tensor; /* MONOLITH; NULL: all */
	uint64_t text_len; /* MONOLITH: values, behind the names */
	bool typed;        /* DESCRIBE: `type` is wanted */
	bool converted;    /* FETCH: as type.served */
	unsigned rank;     /* VALUES */
	uint64_t first,
		n;        /* chunks; FETCH: chunk and bytes; LIST: from, room */
	uint64_t written; /* LOCATE */
	struct hdf5_type type; /* VALUES: `served` */
	union {
		struct grid grid; /* LOCATE, LIST, FETCH */
		struct box box;   /* VALUES */
	} u;
};
struct reply {
	uint64_t size; /* of what follows */
	struct error err;
};

/* LIST: what else its answer says than which chunks. */
struct hdf5_listed {
	int64_t code; /* 0, 1, -ENOTSUP */
	uint64_t from, count, n;
};

/* formats/hdf5/worker/message.c: a description as bytes.  `pack` calls `put` with pieces of
 * it; `unpack` trusts nothing (-EIO). */
void hdf5_description_pack(const struct hdf5_description *d,
			   void (*put)(void *ctx, const void *data, size_t n),
			   void *ctx);
int hdf5_description_unpack(const void *data, size_t n,
			    struct hdf5_description *out, struct error *err);

#endif
