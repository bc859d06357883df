/* SPDX-License-Identifier: BSD-2-Clause */
/* epochs/E/rank-R-of-W/: the samples that one rank reads, listed in its order. */
#ifndef TREE_EPOCHS_H
#define TREE_EPOCHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * These directories show which of n samples a process of a distributed job reads, and
 * in which order.  Epochs and ranks are found by name and not listed:
 *
 *	E                     epoch, 0 to 2^32 - 1
 *	  rank-R-of-W[,OPTION...]
 *	    000000.npy ...    position in the order of the rank, and the suffix of samples
 *	    order.txt         their names, a line each (found, not listed)
 *	    from/K            the same without the first K (found, not listed)
 *
 *	(none)         torch.utils.data.DistributedSampler, shuffle=True, seed=0: all
 *	               ranks have equally many samples, some samples appear twice
 *	drop-last      drop_last=True: equally many, some samples do not appear
 *	no-shuffle     shuffle=False ('_' may be written for '-' in names of options)
 *	in-turn        R, R + W, R + 2 W, ... of the order: each sample once
 *	seed=S         0 to 2^64 - 1; the generator is seeded with S + E
 *	worker-I-of-N  the part that worker I of a DataLoader with N workers reads:
 *	               workers take batches in turn
 *	batch=B        B samples in a batch (1)
 *
 * Source: torch/utils/data/distributed.py 1.13.  All functions are thread-safe.
 * Finding may allocate memory and compute the order of an epoch.  Orders are kept, 4
 * bytes a sample: the EPOCHS_KEPT_MAX that were used last, but no more than
 * EPOCHS_KEPT_BYTES, or two.
 */
#define EPOCHS_KEPT_MAX 16
#define EPOCHS_KEPT_BYTES (UINT64_C(16) << 20)
#define EPOCHS_SAMPLES_MAX (UINT64_C(1) << 28)

struct epochs;
/* Make the directories of n samples, 1 to EPOCHS_SAMPLES_MAX.  Returns NULL if memory
 * ran out. */
struct epochs *epochs_new(uint64_t n);
void epochs_free(struct epochs *e);

/* A directory gets a number when it is first found; EPOCHS_TOP is the first one,
 * "epochs". */
#define EPOCHS_TOP UINT32_MAX
enum epochs_kind {
	EPOCHS_DIRECTORY, /* the directory with this number */
	EPOCHS_SAMPLE,    /* the sample with this index */
	EPOCHS_ORDER      /* order.txt of this directory */
};
struct epochs_entry {
	enum epochs_kind kind;
	uint64_t number;
};
/* Find `name` in a directory.  Samples are listed under their positions and `suffix`
 * (".npy"; NULL allows any suffix that does not begin with a digit, and the caller
 * checks it).  Returns 0, -ENOENT, -ENOSPC if there are too many directories, or
 * -ENOMEM. */
int epochs_find(struct epochs *e, uint32_t dir, const char *name,
		const char *suffix, struct epochs_entry *out);
/* Return the number of entries that a directory lists; all are samples. */
uint64_t epochs_count(struct epochs *e, uint32_t dir);
/* Return true if a directory has directories that are found and not listed, and no
 * samples. */
bool epochs_endless(struct epochs *e, uint32_t dir);
/* Set *sample to the index of entry i of a directory, and `buf`, if it is not NULL, to
 * its name.  Returns 0, -ENOENT or -ENOMEM. */
int epochs_entry(struct epochs *e, uint32_t dir, uint64_t i, const char *suffix,
		 uint64_t *sample, char *buf, size_t n);
/* Set *parent to the directory that has `dir`.  Returns 0, -ENOENT if there is no such
 * directory, or another -errno. */
int epochs_parent(struct epochs *e, uint32_t dir, uint32_t *parent);
/* Return the generation of a directory's number: never 0, and different in each struct
 * epochs, in which the same number means another directory. */
uint32_t epochs_generation(struct epochs *e, uint32_t dir);
/* As lookups_hold: count `n` more (n < 0: less) references of the kernel.  Directories
 * without references are kept while they were used lately; the number of one that was
 * dropped is never reused for another. */
int epochs_hold(struct epochs *e, uint32_t dir, int64_t n);
/* Write the name of a directory in its parent.  Returns 0 or -ENOENT. */
int epochs_name(struct epochs *e, uint32_t dir, char *buf, size_t n);

#endif
