/* SPDX-License-Identifier: BSD-2-Clause */
/* The chunks that an index has, from the nodes that libhdf5 reads to count them. */

/*
 * A grid may have 10^9 places and three chunks.  To ask for each place takes
 * minutes; libhdf5's own list walks through the index once for each chunk, and
 * returns wrong places if the unlimited axis is not the first.  But libhdf5 has to
 * walk through the index once to count the chunks, and then our driver reads each
 * node for it.  So the chunks are noted from the nodes that pass by:
 *
 *   version 1 B-tree   leaves  TREE   the first element of each chunk
 *   version 2 B-tree   nodes   BTLF, BTIN   its place in the grid, at the end of
 *                      each record; the number of records is not in the node,
 *                      so all slots are read, also those with stale records
 *   fixed array        blocks  FADB   an address for each place of the grid that
 *   extensible array   blocks  EAIB, EADB   the dataset may grow to, in C order
 *                      with the unlimited axis first; large blocks are read in
 *                      pages that have no signature: only their positions are
 *                      known, from the block or the super block (EASB)
 *
 * The caller does not trust the result: it looks each chunk up as a reader would,
 * and compares their number with libhdf5's.  For a damaged file the result may be
 * wrong, but only the bytes that were read are accessed.
 *
 * Memory is bounded: only the lowest `room` chunks from number `first` on are kept.
 */
#include "formats/hdf5/file/index.h"

#include <string.h>

#include "base/bytes.h"
#include "base/number.h"

/* Bytes of the head of the newer kinds of nodes: signature, version and type. */
#define HEAD 6
#define CHECKSUM 4

static _Thread_local struct hdf5_index *watching;

/* ---- what was found ------------------------------------------------------ */

static int index_compare_chunks(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Sort the chunks, remove duplicates, and keep the lowest x->room. */
static void index_sort_chunks(struct hdf5_index *x)
{
	size_t n = 0;

	if (x->chunks.n)
		qsort(x->chunks.at, x->chunks.n, sizeof *x->chunks.at,
		      index_compare_chunks);
	for (size_t i = 0; i < x->chunks.n; i++) {
		if (n && x->chunks.at[i] == x->chunks.at[n - 1])
			x->twice = true;
		else
			x->chunks.at[n++] = x->chunks.at[i];
	}
	x->more = x->more || n > x->room;
	x->chunks.n = min_u64(n, x->room);
}

/* Note the chunk at `place`, its position in the grid counted in chunks. */
static void index_add_chunk(struct hdf5_index *x, const uint64_t *place)
{
	uint64_t k = 0;

	for (unsigned i = 0; i < x->rank; i++) {
		if (place[i] >= x->g->chunks[i]) {
			x->outside++;
			return;
		}
		k = k * x->g->chunks[i] + place[i];
	}
	if (k < x->first)
		return;
	if (x->more && k > x->chunks.at[x->room - 1])
		return;
	if (x->chunks.n >= 2 * x->room)
		index_sort_chunks(x);
	if (!vec_push(&x->chunks, k))
		x->no_memory = true;
}

/* ---- B-trees ------------------------------------------------------------- */

/* HDF5 file format 3.0, section III.A.1.  A node has a signature, node type, level,
 * number of entries (2 bytes) and two siblings; then keys, each but the last with the
 * address of what it describes.  A key has the chunk's stored size, its filter mask,
 * and the position of its first element, with a zero for the axis of an element's
 * bytes. */
static void saw_btree1(struct hdf5_index *x, const unsigned char *p, size_t n)
{
	size_t key = 8 + 8 * ((size_t)x->rank + 1), at = 8 + 2 * x->addr_size;
	unsigned used;

	if (n < at || p[4] != 1)
		return;
	x->kind = HDF5_INDEX_BTREE1;
	used = (unsigned)load_le(p + 6, 2);
	for (unsigned i = 0; i < used && !p[5]; i++, at += key + x->addr_size) {
		uint64_t place[RANK_MAX];

		if (at > n || n - at < key) {
			x->odd = true;
			return;
		}
		for (unsigned k = 0; k < x->rank; k++) {
			uint64_t first = load_le(p + at + 8 + 8 * k, 8);

			place[k] = first % x->g->chunk[k]
					   ? UINT64_MAX
					   : first / x->g->chunk[k];
		}
		x->entries++;
		index_add_chunk(x, place);
	}
}

static bool is_chunk_tree(const unsigned char *p)
{
	return p[5] == 10 || p[5] == 11; /* 11: of chunks with filters */
}

/* The header of the tree has the node size (4 bytes) and the record size (2 bytes). */
static void saw_btree2(struct hdf5_index *x, const unsigned char *p, size_t n)
{
	if (n < HEAD + 6 || !is_chunk_tree(p))
		return;
	x->kind = HDF5_INDEX_BTREE2;
	x->record = (unsigned)load_le(p + HEAD + 4, 2);
	x->odd = x->odd || x->record < x->addr_size + 8 * x->rank;
}

static void saw_records(struct hdf5_index *x, const unsigned char *p, size_t n)
{
	uint64_t place[RANK_MAX];

	if (x->kind != HDF5_INDEX_BTREE2 || x->odd || !is_chunk_tree(p))
		return;
	for (size_t at = HEAD; at + x->record + CHECKSUM <= n;
	     at += x->record) {
		const unsigned char *end = p + at + x->record;

		for (unsigned k = 0; k < x->rank; k++)
			place[k] = load_le(end - 8 * (x->rank - k), 8);
		index_add_chunk(x, place);
	}
}

/* ---- arrays -------------------------------------------------------------- */

/* Set `place` to the position of element k in the grid.  Elements are in C order over
 * the maximum shape, with an unlimited axis before all others. */
static void index_element_place(const struct hdf5_index *x, uint64_t k,
				uint64_t *place)
{
	unsigned endless = 0;

	for (unsigned i = 0; i < x->rank; i++)
		endless = x->max[i] == H5S_UNLIMITED ? i : endless;
	for (unsigned i = x->rank; i-- > 0;) {
		uint64_t n = div_up(x->max[i], x->g->chunk[i]);

		if (i == endless)
			continue;
		place[i] = n ? k % n : 0;
		k = n ? k / n : 0;
	}
	place[endless] = k;
}

/* Note the chunks of the elements from number k on.  Each element begins with an
 * address, which has all bits set if there is no chunk. */
static void saw_elements(struct hdf5_index *x, const unsigned char *p, size_t n,
			 uint64_t k)
{
	const struct hdf5_index_array *a = &x->array;
	const uint64_t none = x->addr_size < 8
				      ? (UINT64_C(1) << 8 * x->addr_size) - 1
				      : UINT64_MAX;
	uint64_t place[RANK_MAX];

	for (size_t i = 0; i < n / a->elem; i++) {
		if (load_le(p + i * a->elem, x->addr_size) == none)
			continue;
		if (x->kind == HDF5_INDEX_FIXED && k + i >= a->count)
			return;
		index_element_place(x, k + i, place);
		x->entries++;
		index_add_chunk(x, place);
	}
}

static uint64_t page_elements(const struct hdf5_index *x)
{
	return UINT64_C(1) << x->array.page_bits;
}

static size_t page_bytes(const struct hdf5_index *x)
{
	return (size_t)page_elements(x) * x->array.elem + CHECKSUM;
}

static void array_end(struct hdf5_index *x)
{
	vec_free(&x->array.near);
	vec_free(&x->array.pages);
}

static void array_begin(struct hdf5_index *x, enum hdf5_index_kind kind,
			unsigned elem, unsigned page_bits)
{
	x->kind = kind;
	array_end(x);
	x->array =
		(struct hdf5_index_array){.elem = elem, .page_bits = page_bits};
	x->odd = x->odd || elem < x->addr_size || page_bits > 31 || !x->rank;
}

/* The header of a fixed array has the bytes of an element, log2 of the elements of a
 * page, and the number of elements. */
static void saw_fixed(struct hdf5_index *x, const unsigned char *p, size_t n)
{
	if (n < HEAD + 2 + x->len_size)
		return;
	array_begin(x, HDF5_INDEX_FIXED, p[6], p[7]);
	x->array.count = load_le(p + 8, x->len_size);
}

/* The header of an extensible array has the bytes of an element, the bits of an
 * element's number, the elements in the index block, the least elements of a data
 * block, the least pointers of a super block, and log2 of the elements of a page. */
static void saw_extensible(struct hdf5_index *x, const unsigned char *p,
			   size_t n)
{
	if (n < HEAD + 6)
		return;
	array_begin(x, HDF5_INDEX_EXTENSIBLE, p[6], p[11]);
	x->array.offset_bytes = (p[7] + 7u) / 8;
	x->array.lead = p[8];
	x->array.least = p[9];
	x->array.nears = p[10] ? 2 * (p[10] - 1u) : 0;
	x->odd = x->odd || x->array.offset_bytes > 8 || !p[9];
}

/* The index block has the header's address, the first elements, the addresses of the
 * first data blocks, then those of super blocks. */
static void saw_lead(struct hdf5_index *x, const unsigned char *p, size_t n)
{
	struct hdf5_index_array *a = &x->array;
	size_t at = HEAD + x->addr_size, bytes = (size_t)a->lead * a->elem;

	if (n < at + bytes + (size_t)a->nears * x->addr_size) {
		x->odd = true;
		return;
	}
	saw_elements(x, p + at, bytes, 0);
	a->near.n = 0;
	for (unsigned i = 0; i < a->nears; i++) {
		uint64_t addr =
			x->base + load_le(p + at + bytes + i * x->addr_size,
					  x->addr_size);

		if (!vec_push(&a->near, addr))
			x->no_memory = true;
	}
}

/* Super block k has 2^(k/2) data blocks, each of 2^((k+1)/2) times the least number of
 * elements.  Change both numbers from those of super block k to those of the next. */
static void next_super(unsigned k, uint64_t *blocks, uint64_t *per_block)
{
	*blocks <<= k & 1;
	*per_block <<= !(k & 1);
}

/* Return the number of the first element of data block `i` of the index block.  The
 * number in that data block itself is wrong; libhdf5 never reads it. */
static uint64_t near_first(const struct hdf5_index_array *a, uint64_t i)
{
	uint64_t first = a->lead, blocks = 1, per_block = a->least;

	for (unsigned k = 0; i >= blocks && k < 62; k++) {
		first += blocks * per_block;
		i -= blocks;
		next_super(k, &blocks, &per_block);
	}
	return first + i * per_block;
}

static void index_add_pages(struct hdf5_index *x, uint64_t pages)
{
	if (!vec_push(&x->array.pages, pages))
		x->no_memory = true;
}

/* The only data block of a fixed array has the header's address, then a bit for each
 * page, or all elements. */
static void saw_fixed_block(struct hdf5_index *x, uint64_t addr,
			    const unsigned char *p, size_t n)
{
	struct hdf5_index_array *a = &x->array;
	size_t at = HEAD + x->addr_size;

	a->per_block = a->count;
	if (a->count > page_elements(x))
		index_add_pages(x, addr + n);
	else if (n < at + CHECKSUM)
		x->odd = true;
	else
		saw_elements(x, p + at, n - at - CHECKSUM, 0);
}

/* A data block without pages has the header's address, then the number of its first
 * element, counted from the end of the index block's elements. */
static void saw_extensible_block(struct hdf5_index *x, uint64_t addr,
				 const unsigned char *p, size_t n)
{
	struct hdf5_index_array *a = &x->array;
	size_t at = HEAD + x->addr_size + a->offset_bytes;
	uint64_t first;

	if (n < at + CHECKSUM) {
		x->odd = true;
		return;
	}
	first = a->lead + load_le(p + at - a->offset_bytes, a->offset_bytes);
	for (size_t i = 0; i < a->near.n; i++)
		if (a->near.at[i] == addr)
			first = near_first(a, i);
	saw_elements(x, p + at, n - at - CHECKSUM, first);
}

/*
 * A super block begins like a data block.  If its data blocks have pages, bits follow
 * that say which pages exist; then come the addresses of the data blocks.
 */
static void saw_super(struct hdf5_index *x, const unsigned char *p, size_t n)
{
	struct hdf5_index_array *a = &x->array;
	size_t at = HEAD + x->addr_size + a->offset_bytes, head = at + CHECKSUM;
	uint64_t first, begin = 0, blocks = 1, bits;

	if (n < head) {
		x->odd = true;
		return;
	}
	first = load_le(p + at - a->offset_bytes, a->offset_bytes);
	a->per_block = a->least;
	for (unsigned k = 0; begin < first && k < 62; k++) {
		begin += blocks * a->per_block;
		next_super(k, &blocks, &a->per_block);
	}
	a->pages.n = a->at = 0;
	a->first = a->lead + first;
	if (a->per_block <= page_elements(x))
		return;
	bits = div_up(a->per_block >> a->page_bits, 8);
	if (begin != first || bits > n ||
	    blocks > (n - head) / (bits + x->addr_size)) {
		x->odd = true;
		return;
	}
	at += blocks * bits;
	for (uint64_t i = 0; i < blocks; i++, at += x->addr_size)
		index_add_pages(x,
				x->base + load_le(p + at, x->addr_size) + head);
}

/* Read a page if it belongs to one of the announced data blocks.  Pages come in order,
 * so the search begins at the block of the last one. */
static void saw_page(struct hdf5_index *x, uint64_t addr,
		     const unsigned char *p, size_t n)
{
	struct hdf5_index_array *a = &x->array;

	for (size_t i = 0; i < a->pages.n && n <= page_bytes(x); i++) {
		uint64_t in = addr - a->pages.at[a->at];
		uint64_t first = in / page_bytes(x) * page_elements(x);

		if (addr >= a->pages.at[a->at] && in % page_bytes(x) == 0 &&
		    first < a->per_block) {
			saw_elements(x, p, n - CHECKSUM,
				     a->first + a->at * a->per_block + first);
			return;
		}
		a->at = (a->at + 1) % a->pages.n;
	}
}

/* ---- looking ------------------------------------------------------------- */

int hdf5_index_saw(uint64_t addr, const void *data, size_t n)
{
	struct hdf5_index *x = watching;
	const unsigned char *p = data;
	bool array = x && !x->odd &&
		     (x->kind == HDF5_INDEX_FIXED ||
		      x->kind == HDF5_INDEX_EXTENSIBLE);

	if (!x || n < HEAD + CHECKSUM)
		return 0;
	if (!memcmp(p, "TREE", 4))
		saw_btree1(x, p, n);
	else if (!memcmp(p, "BTHD", 4))
		saw_btree2(x, p, n);
	else if (!memcmp(p, "BTLF", 4) || !memcmp(p, "BTIN", 4))
		saw_records(x, p, n);
	else if (!memcmp(p, "FAHD", 4))
		saw_fixed(x, p, n);
	else if (!memcmp(p, "EAHD", 4))
		saw_extensible(x, p, n);
	else if (array && !memcmp(p, "EAIB", 4))
		saw_lead(x, p, n);
	else if (array && !memcmp(p, "EASB", 4))
		saw_super(x, p, n);
	else if (array && !memcmp(p, "EADB", 4))
		saw_extensible_block(x, addr, p, n);
	else if (array && !memcmp(p, "FADB", 4))
		saw_fixed_block(x, addr, p, n);
	else if (array)
		saw_page(x, addr, p, n);
	return 0;
}

void hdf5_index_begin(struct hdf5_index *x)
{
	watching = x;
}

void hdf5_index_end(struct hdf5_index *x)
{
	watching = NULL;
	array_end(x);
	index_sort_chunks(x);
}
