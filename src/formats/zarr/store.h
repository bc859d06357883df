/* SPDX-License-Identifier: BSD-2-Clause */
/* A Zarr store: values by their keys, in a directory or a zip. */
#ifndef FORMATS_ZARR_STORE_H
#define FORMATS_ZARR_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Most bytes of a key, prefix included. */
#define ZARR_KEY_MAX 4096
/* Most bytes of a document, which is read whole. */
#define ZARR_DOCUMENT_MAX (UINT64_C(64) << 20)

struct zarr_store;
struct handles;
/* An open value; it is closed soon. */
struct zarr_value {
	uint64_t size;
	/* What it was when it was opened: if these numbers differ, the bytes may,
	 * too. */
	uint64_t identity[4];
	uint64_t member; /* in a zip: number of its member record */
	int fd;
};
/* A value whose bytes are in a file as they are. */
struct zarr_place {
	uint32_t file; /* its number in handles */
	uint64_t pos, size;
};
struct zarr_store_ops {
	/* Open a value.  Returns 0; -ENOENT without a sentence if there is no such key;
	 * -ESTALE if it was written after the store was opened; -EIO or another
	 * -errno. */
	int (*open)(struct zarr_store *s, const char *key, struct zarr_value *v,
		    struct error *err);
	/* Read exactly `n` bytes.  Returns 0; -EIO if the value ends before; -ESTALE if
	 * it changed meanwhile. */
	int (*read)(struct zarr_store *s, struct zarr_value *v, uint64_t pos,
		    void *to, size_t n, struct error *err);
	void (*close)(struct zarr_store *s, struct zarr_value *v);
	/*
	 * Call `each` for each name directly below the prefix `dir` ("" or "a/b"), in no
	 * order, until it returns something else than 0, which is returned.  Symlinks
	 * that lead to `dir` or a directory above it are left out.  Returns -ENOENT if
	 * there is no such prefix.
	 */
	int (*list)(struct zarr_store *s, const char *dir,
		    int (*each)(void *ctx, const char *name, bool is_dir),
		    void *ctx, struct error *err);
	/* Find the file range that has all bytes of a key, so that it can be mapped.
	 * Returns 0; 1 if they must be decoded, with out->size set all the same; -ENOENT
	 * without a sentence; or -errno. */
	int (*place)(struct zarr_store *s, const char *key, struct handles *h,
		     struct zarr_place *out, struct error *err);
	/* Return the number in handles of the file that stands for a key in sentences
	 * and statistics; UINT32_MAX if memory is short. */
	uint32_t (*file)(struct zarr_store *s, const char *key,
			 struct handles *h);
	void (*free)(struct zarr_store *s);
};
/* Several threads may use a store at once. */
struct zarr_store {
	const struct zarr_store_ops *ops;
	char *path; /* path of the store, for sentences; owned */
};

/* Names of documents of which the root of a store has at least one; ends with NULL. */
extern const char *const zarr_root_documents[];
/* Return true if this directory has the metadata of a Zarr store. */
bool zarr_is_store(const char *path);
/* Make the store of a directory.  `path` is copied; `handles` say which files may be
 * shown (handles_check_public) and must outlive the store.  Returns NULL if memory is
 * short. */
struct zarr_store *zarr_directory_new(const char *path,
				      struct handles *handles);
void zarr_store_free(struct zarr_store *s);
/* Read a whole value: set *text (malloc'ed, NUL-terminated, owned by the caller) and *n.
 * `identity` may be NULL.  Returns 0; -ENOENT without a sentence if there is no such
 * key; -EFBIG if it has more than ZARR_DOCUMENT_MAX bytes; or another -errno. */
int zarr_store_read(struct zarr_store *s, const char *key, char **text,
		    size_t *n, uint64_t identity[4], struct error *err);
/* Join "a" and "b" to "a/b"; "" and "b" give "b".  Returns false if the key is too
 * long. */
bool zarr_key(char out[ZARR_KEY_MAX], const char *dir, const char *name);

#endif
