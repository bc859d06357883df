/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the keys of a Zarr store are: names of bytes, in a directory or a zip. */
#ifndef FORMATS_ZARR_STORE_H
#define FORMATS_ZARR_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Bytes of a key, prefix included, at most. */
#define ZARR_KEY_MAX 4096
/* Of a document that is read whole. */
#define ZARR_DOCUMENT_MAX (UINT64_C(64) << 20)

struct zarr_store;
struct handles;
/* A key that is open; a value, closed soon. */
struct zarr_value {
	uint64_t size;
	/* What it was then: other numbers, other bytes. */
	uint64_t identity[4];
	uint64_t member; /* of a zip: its record */
	int fd;
};
/* A value that lies in a file as it is. */
struct zarr_place {
	uint32_t file; /* number in handles */
	uint64_t pos, size;
};
struct zarr_store_ops {
	/* -ENOENT: there is no such key, without a sentence.  -ESTALE: it was
	 * written after the store was opened; -EIO. */
	int (*open)(struct zarr_store *s, const char *key, struct zarr_value *v,
		    struct error *err);
	/* Exactly n bytes; -EIO: it ends before; -ESTALE: it changed meanwhile. */
	int (*read)(struct zarr_store *s, struct zarr_value *v, uint64_t pos,
		    void *to, size_t n, struct error *err);
	void (*close)(struct zarr_store *s, struct zarr_value *v);
	/*
	 * What is directly below the prefix `dir` ("" or "a/b"), in no order, until
	 * `each` returns something else than 0, which is returned.  Symlinks that lead
	 * to `dir` or a directory above it are left out.
	 */
	int (*list)(struct zarr_store *s, const char *dir,
		    int (*each)(void *ctx, const char *name, bool is_dir),
		    void *ctx, struct error *err);
	/* Where all of a key's bytes are, for who maps them.  1: they have to be
	 * decoded (out->size is right); -ENOENT without a sentence. */
	int (*place)(struct zarr_store *s, const char *key, struct handles *h,
		     struct zarr_place *out, struct error *err);
	/* The file that stands for a key in sentences and statistics: its number in
	 * handles; UINT32_MAX: no memory. */
	uint32_t (*file)(struct zarr_store *s, const char *key,
			 struct handles *h);
	void (*free)(struct zarr_store *s);
};
/* Used by several threads at once. */
struct zarr_store {
	const struct zarr_store_ops *ops;
	char *path; /* for sentences */
};

/* What the root of a store has one of; ends with NULL. */
extern const char *const zarr_root_documents[];
/* Is this directory a Zarr store, by its metadata? */
bool zarr_is_store(const char *path);
/* A directory's; `path` is copied, `handles` say what may be shown (handles_may_show).
 * NULL: no memory. */
struct zarr_store *zarr_directory_new(const char *path,
				      struct handles *handles);
void zarr_store_free(struct zarr_store *s);
/* All of a key, NUL-terminated (malloc'ed); -ENOENT without a sentence: there is none;
 * -EFBIG: more than ZARR_DOCUMENT_MAX.  `identity` may be NULL. */
int zarr_store_read(struct zarr_store *s, const char *key, char **text,
		    size_t *n, uint64_t identity[4], struct error *err);
/* "a/b" from "a" and "b", "b" from "" and "b".  False: too long. */
bool zarr_key(char out[ZARR_KEY_MAX], const char *dir, const char *name);

#endif
