/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the planning and writing of shards; included in this folder only. */
#ifndef PACK_SHARDS_PRIVATE_H
#define PACK_SHARDS_PRIVATE_H

#include "pack/shards/shards.h"

/* ---- shards of earlier runs in the packed directory (pack/shards/place.c) ------ */

struct shards_own {
	const struct shards_name *name;
	/* The directory part of their paths, "" or "a/b/"; NULL: the shards are elsewhere. */
	char *prefix;
};
/* Find out whether shards called `name` would be in the packed directory `top`.  `name`
 * may be NULL: then there are no such files.  Returns 0 or -ENOMEM. */
int shards_own_find(struct shards_own *own, const struct shards_name *name,
		    const char *top, struct error *err);
/* Return true if `path` is a shard of an earlier run, its member index, the index of
 * all shards, or in a directory that a killed run has left. */
bool shards_own_is(const struct shards_own *own, const char *path);
void shards_own_free(struct shards_own *own);

/* ---- where shards are made, and get their names (pack/shards/place.c) ---------- */

struct shards_place {
	const struct shards_name *name;
	int dir, stage; /* descriptors; -1: closed */
	char *hidden;   /* base name of the temporary directory `stage` */
};
/* Open the directory of `n` shards and make a temporary directory in it.  Returns 0,
 * -EEXIST if files are in the way, -EISDIR, -EINVAL, or what open returns. */
int shards_place_open(struct shards_place *p, const struct shards_name *name,
		      uint64_t n, bool replace, struct error *err);
/* Check what shards_place_open would refuse for any number of shards. */
int shards_place_check(const struct shards_name *name, bool replace,
		       struct error *err);
/* Return the path at which file `base` is made, for the caller to free; NULL if memory
 * ran out. */
char *shards_place_path(const struct shards_place *p, const char *base);
/* Give all files their names, or none of them.  Returns 0 or -errno. */
int shards_place_publish(struct shards_place *p, struct error *err);
/* In an error's sentence, replace the path of a file that is being made by its final
 * path. */
void shards_place_translate(const struct shards_place *p, struct error *err);
/* Remove all files that have not got their names, and the temporary directory. */
void shards_place_close(struct shards_place *p);

#endif
