/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of this folder share and others need not know. */
#ifndef FS_FS_PRIVATE_H
#define FS_FS_PRIVATE_H

#include <time.h>

#include "fs/errors.h"
#include "fs/fs.h"

struct fs {
	struct tree *tree;
	struct store *store;
	struct fs_options options; /* version and config are ours */
	struct errors *errors;
	uint64_t pin_budget; /* decoded bytes one read may hold pinned */
	struct timespec started;
};

/* The file's attributes, through the cache where they are generated. */
int fs_attr(struct fs *fs, const struct node *n, struct attr *out,
	    struct error *err);
/* Note a failure of a reader (ring, counter, log) and return the errno that
 * reader gets: one of ENODATA, EBADMSG, ESTALE, EIO, ENOTSUP, ENOMEM. */
int fs_report(struct fs *fs, uint64_t ino, int code, const struct error *err);

/* Collect the window [off, off + len) of a regular file, which lies within it,
 * into `out`.  Sets the whole of `out` (release it) on success only. */
int reply_collect(struct fs *fs, const struct node *n, uint64_t off, size_t len,
		  struct reply *out, struct error *err);
/* The next plan of a window: map from off + have on; never an empty one. */
int reply_map(const struct node *n, uint64_t off, uint64_t want,
	      struct plan *plan, struct error *err);

/* What other threads were asked to decode for the rest of a plan. */
struct ahead {
	unsigned asked;        /* the first extent that was not looked at */
	uint64_t bytes;        /* of chunks asked for and not yet reached */
	uint64_t of[PLAN_MAX]; /* ... by each extent */
};
/* Before extent `i` is pinned, from 0 on: have those behind it decoded. */
void reply_want(struct fs *fs, const struct plan *plan, unsigned i,
		struct ahead *a);

/* Copying bytes together, run by run; see gather.c. */
#define GATHER_SLOTS 128
#define GATHER_WINDOW 4096
#define GATHER_FILES 16
struct gather_slot {
	uint64_t set, index; /* the key: chunk set and chunk, or file and MiB */
	bool used;
	struct span span; /* pinned */
	uint64_t origin;  /* SPAN_FD: where skip 0 is in the file */
	uint64_t win_pos; /* SPAN_FD: what of the file the window holds */
	size_t win_len;
};
struct gather {
	struct fs *fs;
	unsigned char *to;      /* where the next byte goes */
	size_t left;            /* room */
	uint64_t across;        /* bytes of a band's row that were copied */
	uint64_t pinned;        /* decoded bytes held in slots */
	unsigned files;         /* descriptors held in slots */
	unsigned hand;          /* next slot to give up when too much is held */
	unsigned char *windows; /* GATHER_SLOTS of GATHER_WINDOW, or NULL */
	struct gather_slot slot[GATHER_SLOTS];
};
void gather_init(struct gather *g, struct fs *fs, void *to, size_t len);
/* Append the bytes of a pinned span. */
int gather_span(struct gather *g, const struct span *s, struct error *err);
/* Append the bytes of an extent.  May block, as store_pin. */
int gather_extent(struct gather *g, const struct extent *x, struct error *err);
/* Drop every pin; checks again that the files read stayed as they were. */
int gather_finish(struct gather *g, struct error *err);
/* All of the above for the window [off, off + len) of a file. */
int gather_window(struct fs *fs, const struct node *n, uint64_t off, void *to,
		  size_t len, struct error *err);

#endif
