/* SPDX-License-Identifier: BSD-2-Clause */
/* Building the mosaic of a virtual dataset: what its two files share. */
#ifndef FORMATS_HDF5_LAYOUT_VIRTUAL_H
#define FORMATS_HDF5_LAYOUT_VIRTUAL_H

#include "base/vec.h"
#include "formats/hdf5/dataset/description.h"

/* A slab is four rows of numbers, as in struct hdf5_mapping. */
enum { START, STRIDE, COUNT, BLOCK };
#define HDF5_UNLIMITED UINT64_MAX

/* One tile to be, before the shape is known. */
struct plan_tile {
	uint64_t *slabs; /* to: 4 x rank, from: 4 x from_rank numbers */
	unsigned from_rank;
	bool all;
	uint32_t part;
	int endless; /* axis that its missing source leaves open, or -1 */
};

struct builder {
	struct hdf5_tensor *h;
	const struct hdf5_description *d;
	uint64_t *shape; /* d->rank, lengths of open axes grow */
	bool open[RANK_MAX], known[RANK_MAX];
	uint32_t at;            /* the file that has the mappings */
	vec(struct part) parts; /* becomes the tensor's */
	uint32_t *slots;        /* hash of parts, numbers plus 1 */
	size_t nslots;
	vec(struct plan_tile) tiles;
	char *missing; /* a source that an open axis needs */
	struct error *err;
};

/* The axis that has no end, or -1. */
int hdf5_slab_endless(const uint64_t *s, unsigned rank);
/* First element behind n elements of a slab along one axis; false: overflow. */
bool hdf5_slab_end(const uint64_t *s, unsigned rank, unsigned axis, uint64_t n,
		   uint64_t *end);
/* Elements of a slab without end that an axis of `length` has. */
uint64_t hdf5_slab_clip(const uint64_t *s, unsigned rank, unsigned axis,
			uint64_t length);
/* Elements [from, from + n) of an endless slab, n a multiple of the block or
 * less than one: set its start, count and block along the axis. */
bool hdf5_slab_part(uint64_t *s, unsigned rank, unsigned axis, uint64_t from,
		    uint64_t n);

/* "%%" is '%', "%b" the number of the block; malloc'ed, NULL: something else, or
 * no memory. */
char *hdf5_name_of_block(const char *s, uint64_t block);
/* The part with that file and dataset; several mappings may share one. */
int hdf5_builder_part(struct builder *b, const char *file, const char *dataset,
		      uint32_t *out);
/* Take back the part that was added last, if there are more than `n`: nothing
 * uses it. */
void hdf5_builder_drop(struct builder *b, size_t n);
/* Keep a copy of both slabs as a tile. */
int hdf5_builder_tile(struct builder *b, const uint64_t *to,
		      const uint64_t *from, const struct hdf5_mapping *m,
		      uint32_t part, int endless);
/* The shape must reach `end` along an open axis. */
void hdf5_builder_reach(struct builder *b, unsigned axis, uint64_t end);

/* formats/hdf5/layout/unlimited.c: a mapping whose axes u (of the array) and v (of the source)
 * have no end; one whose sources are named by a pattern. */
int hdf5_add_unlimited(struct builder *b, const struct hdf5_mapping *m,
		       unsigned u, unsigned v, uint32_t part);
int hdf5_add_pattern(struct builder *b, const struct hdf5_mapping *m,
		     unsigned u);

#endif
