/* SPDX-License-Identifier: BSD-2-Clause */
/* What the daemon and its HDF5 workers send each other. */
#ifndef FORMATS_HDF5_WORKER_REQUEST_H
#define FORMATS_HDF5_WORKER_REQUEST_H

#include "extent/file.h"
#include "formats/hdf5/dataset/description.h"
#include "formats/hdf5/worker/worker.h"

/* Limit of values and attributes in one answer, in bytes. */
#define HDF5_TEXT_MAX ((uint64_t)1 << 30)
/* Limit of a name in a request, in bytes. */
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
	struct identity id; /* identity of the file */
	uint32_t path_len, object_len, member_len;
	const struct hdf5_tensor
		*tensor;   /* MONOLITH: the tensor; NULL: everything */
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
	uint64_t size; /* bytes that follow */
	struct error err;
};

/* The head of an answer to LIST, before the chunks. */
struct hdf5_listed {
	int64_t code; /* 0, 1, -ENOTSUP */
	uint64_t from, count, n;
};

/* A description as bytes (message.c). hdf5_description_pack calls `put` with pieces
 * of it. hdf5_description_unpack checks every number and returns -EIO if one is
 * wrong. */
void hdf5_description_pack(const struct hdf5_description *d,
			   void (*put)(void *ctx, const void *data, size_t n),
			   void *ctx);
int hdf5_description_unpack(const void *data, size_t n,
			    struct hdf5_description *out, struct error *err);

#endif
