/* SPDX-License-Identifier: BSD-2-Clause */
/* What planning and writing shards share; nobody else includes it. */
#ifndef PACK_SHARDS_PRIVATE_H
#define PACK_SHARDS_PRIVATE_H

#include "pack/shards/shards.h"

/* ---- files of ours in the directory that is packed (pack/shards/place.c) ------- */

struct shards_own {
	const struct shards_name *name;
	char *prefix; /* of their paths, "" or "a/b/"; NULL: they are elsewhere */
};
/* `name` may be NULL: there are none. */
int shards_own_find(struct shards_own *own, const struct shards_name *name,
		    const char *top, struct error *err);
/* A shard of an earlier run, its index, the index of all, or in what a run that was
 * killed has left. */
bool shards_own_is(const struct shards_own *own, const char *path);
void shards_own_free(struct shards_own *own);

/* ---- where shards are made, and get their names (pack/shards/place.c) ---------- */

struct shards_place {
	const struct shards_name *name;
	int dir, stage; /* -1 */
	char *hidden;   /* base name of `stage` */
};
/* For `n` shards.  -EEXIST, -EISDIR, what open says. */
int shards_place_open(struct shards_place *p, const struct shards_name *name,
		      uint64_t n, bool replace, struct error *err);
/* Would it find what is in its way, whatever `n`? */
int shards_place_check(const struct shards_name *name, bool replace,
		       struct error *err);
/* Where `base` is made; malloc'ed; NULL: no memory. */
char *shards_place_path(const struct shards_place *p, const char *base);
/* Everything that is there gets its name, or nothing does. */
int shards_place_publish(struct shards_place *p, struct error *err);
/* What a sentence says of files being made, as of what they will be. */
void shards_place_translate(const struct shards_place *p, struct error *err);
/* Removes what has no name. */
void shards_place_close(struct shards_place *p);

#endif
