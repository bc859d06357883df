/* SPDX-License-Identifier: BSD-2-Clause */
/* Building the mosaic of a virtual dataset: what its two files share. */
#ifndef FORMATS_HDF5_LAYOUT_VIRTUAL_H
#define FORMATS_HDF5_LAYOUT_VIRTUAL_H

#include "base/vec.h"
#include "formats/hdf5/dataset/description.h"

/* A slab is four rows of numbers, as in struct hdf5_mapping. */
enum { START, STRIDE, COUNT, BLOCK };
#define HDF5_UNLIMITED UINT64_MAX

/* A tile of the mosaic, before the shape is known. */
struct plan_tile {
	uint64_t *slabs; /* to: 4 x rank, from: 4 x from_rank numbers */
	unsigned from_rank;
	bool all;
	uint32_t part;
	int endless; /* open axis whose length its missing source would tell, or -1 */
};

struct builder {
	struct hdf5_tensor *h;
	const struct hdf5_description *d;
	uint64_t *shape; /* d->rank lengths; those of open axes grow */
	bool open[RANK_MAX], known[RANK_MAX];
	uint32_t at;            /* the file that has the mappings */
	vec(struct part) parts; /* becomes the tensor's */
	uint32_t *slots; /* hash table of part numbers plus 1; 0 is empty */
	size_t nslots;
	vec(struct plan_tile) tiles;
	char *missing; /* sentence about a missing source that an open axis needs */
	struct error *err;
};

/* Return the axis of a slab that has no end, or -1. */
int hdf5_slab_endless(const uint64_t *s, unsigned rank);
/* Set *end to the position behind the first n elements of a slab along an axis.
 * Return false on overflow. */
bool hdf5_slab_end(const uint64_t *s, unsigned rank, unsigned axis, uint64_t n,
		   uint64_t *end);
/* Return how many elements of a slab without end lie in an axis of `length`
 * elements. */
uint64_t hdf5_slab_clip(const uint64_t *s, unsigned rank, unsigned axis,
			uint64_t length);
/* Narrow an endless slab to its elements [from, from + n) along the axis; n is a
 * multiple of the block or less than one. Return false on overflow. */
bool hdf5_slab_part(uint64_t *s, unsigned rank, unsigned axis, uint64_t from,
		    uint64_t n);

/* Expand a name: "%%" is '%', "%b" the number of the block. Malloc'ed; NULL if the
 * name has another escape, or when out of memory. */
char *hdf5_name_of_block(const char *s, uint64_t block);
/* Set *out to the part of that file and dataset, which several mappings may share. */
int hdf5_builder_part(struct builder *b, const char *file, const char *dataset,
		      uint32_t *out);
/* Remove the part that was added last if there are more than `n` parts. No tile may
 * use it. */
void hdf5_builder_drop(struct builder *b, size_t n);
/* Add a tile with copies of both slabs. */
int hdf5_builder_tile(struct builder *b, const uint64_t *to,
		      const uint64_t *from, const struct hdf5_mapping *m,
		      uint32_t part, int endless);
/* Make the shape reach at least to `end` along an open axis. */
void hdf5_builder_reach(struct builder *b, unsigned axis, uint64_t end);

/* Add the tiles of a mapping whose axes u (of the array) and v (of the source) have
 * no end, or of a mapping whose sources a pattern names (unlimited.c). */
int hdf5_add_unlimited(struct builder *b, const struct hdf5_mapping *m,
		       unsigned u, unsigned v, uint32_t part);
int hdf5_add_pattern(struct builder *b, const struct hdf5_mapping *m,
		     unsigned u);

#endif
