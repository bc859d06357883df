/* SPDX-License-Identifier: BSD-2-Clause */
/* epochs/E/rank-R-of-W/: the samples of one rank, in its order, by name. */
#ifndef TREE_EPOCHS_H
#define TREE_EPOCHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Of n samples, which and in which order a process of a distributed job reads.  Nothing
 * is listed above a rank: epochs, ranks and numbers of them are what somebody asks for.
 *
 *	E                     epoch, 0 to 2^32 - 1
 *	  rank-R-of-W[,OPTION...]
 *	    000000.npy ...    position in the order of the rank, and the suffix of samples
 *	    order.txt         their names, a line each (found, not listed)
 *	    from/K            the same without the first K (found, not listed)
 *
 *	(none)         torch.utils.data.DistributedSampler, shuffle=True, seed=0: the ranks
 *	               have equally many, some samples twice
 *	drop-last      drop_last=True: equally many, some samples not at all
 *	no-shuffle     shuffle=False (in words '_' does as well as '-')
 *	in-turn        R, R + W, R + 2 W, ... of the order: each sample once
 *	seed=S         0 to 2^64 - 1; the generator's is S + E
 *	worker-I-of-N  of these what worker I of a DataLoader with N reads: batches in turn
 *	batch=B        of B samples (1)
 *
 * Source: torch/utils/data/distributed.py 1.13.  Thread-safe; finding may allocate, and
 * compute an order, which is kept: those used last, 4 bytes a sample, EPOCHS_KEPT_MAX of them
 * but no more than EPOCHS_KEPT_BYTES, or two.
 */
#define EPOCHS_KEPT_MAX 16
#define EPOCHS_KEPT_BYTES (UINT64_C(16) << 20)
#define EPOCHS_SAMPLES_MAX (UINT64_C(1) << 28)

struct epochs;
/* 1 to EPOCHS_SAMPLES_MAX samples; NULL: no memory. */
struct epochs *epochs_new(uint64_t n);
void epochs_free(struct epochs *e);

/* Directories have numbers, as they are asked for; the first of them, "epochs", is
 * EPOCHS_TOP. */
#define EPOCHS_TOP UINT32_MAX
enum epochs_kind {
	EPOCHS_DIRECTORY, /* with this number */
	EPOCHS_SAMPLE,    /* the sample with this index */
	EPOCHS_ORDER      /* order.txt of this directory */
};
struct epochs_entry {
	enum epochs_kind kind;
	uint64_t number;
};
/* Samples are listed under their positions and `suffix` (".npy"; NULL: any that does not begin
 * with a digit, the caller looks).  -ENOENT; -ENOSPC: there
 * were too many directories; -ENOMEM. */
int epochs_find(struct epochs *e, uint32_t dir, const char *name,
		const char *suffix, struct epochs_entry *out);
/* Listed entries of a directory: samples. */
uint64_t epochs_count(struct epochs *e, uint32_t dir);
/* Has it directories that are found, and no samples? */
bool epochs_endless(struct epochs *e, uint32_t dir);
/* The i-th of them: its index, and its name if `buf`.  -ENOENT, -ENOMEM. */
int epochs_entry(struct epochs *e, uint32_t dir, uint64_t i, const char *suffix,
		 uint64_t *sample, char *buf, size_t n);
/* -ENOENT: there is no such directory. */
int epochs_parent(struct epochs *e, uint32_t dir, uint32_t *parent);
/* Numbers mean nothing to another struct epochs: never 0, another one for each. */
uint32_t epochs_generation(struct epochs *e, uint32_t dir);
/* As lookups_hold: of directories that nobody holds those that were used lately are
 * kept, and the number of one that is gone is never that of another. */
int epochs_hold(struct epochs *e, uint32_t dir, int64_t n);
/* Its name in its parent; -ENOENT. */
int epochs_name(struct epochs *e, uint32_t dir, char *buf, size_t n);

#endif
