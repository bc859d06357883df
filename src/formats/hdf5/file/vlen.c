/* SPDX-License-Identifier: BSD-2-Clause */
/* Text and sequences of variable length, which our code reads in place of libhdf5. */

/*
 * libhdf5 reads such a value while it converts it: from 16 bytes in the file to a
 * pointer, or a length and a pointer, in memory.  It does not check how long the value
 * really is (formats/hdf5/file/heap.c), so with a damaged length it writes beyond a
 * buffer, or returns what was in the buffer before.
 *
 * libhdf5 lets programs register conversions, and tries the last one first.  Ours does
 * all conversions from file to memory, wherever in a type such a value is: in a
 * structure, an array, another sequence, an attribute.  All others stay with the library.
 * A type does not say which file it is from, so callers do (hdf5_vlen_begin); there is
 * one reader at a time, under the library's lock.
 *
 * All memory that values point to is in one arena, which has a limit (lengths come from
 * the file) and is freed as a whole, also if the library fails halfway.
 */
#include "formats/hdf5/file/vlen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "formats/hdf5/file/driver_private.h"
#include "formats/hdf5/file/heap.h"
#include "formats/hdf5/file/members.h"

#define ARENA_BLOCK ((size_t)256 << 10)

struct arena_block {
	struct arena_block *next;
	_Alignas(16) unsigned char bytes[];
};
struct arena {
	struct arena_block *first;
	unsigned char *at;
	size_t left;
	uint64_t used, most;
};

/* Guarded by the library's lock. */
static struct {
	bool ignored; /* values are left empty and not read */
	bool lengths; /* only the lengths of sequences are read, not their elements */
	bool given; /* values point to malloc'ed memory, which the library frees */
	struct hdf5_heap *heap;
	unsigned address; /* bytes of an address in the file */
	/* The heaps of the other file: the one that is written or, after hdf5_vlen_swap_files, the
	 * one that is read. */
	struct hdf5_heap *other;
	unsigned other_address;
	struct arena arena;
	struct error why;
} now;

/* ---- the arena ----------------------------------------------------------- */

static void *arena_alloc(struct arena *a, uint64_t n)
{
	struct arena_block *b;
	size_t room;
	void *p;

	if (n > a->most || a->used > a->most - n) {
		error_set(&now.why, -ENOTSUP,
			  "values of variable length need more than %llu MiB "
			  "together",
			  (unsigned long long)(a->most >> 20));
		return NULL;
	}
	n = (max_u64(n, 1) + 15) & ~UINT64_C(15);
	if (now.given) {
		p = malloc(n);
		if (!p)
			error_no_memory(&now.why, "values of variable length");
		a->used += n;
		return p;
	}
	if (n > a->left) {
		room = n > ARENA_BLOCK / 4 ? (size_t)n : ARENA_BLOCK;
		b = malloc(sizeof *b + room);
		if (!b) {
			error_no_memory(&now.why, "values of variable length");
			return NULL;
		}
		b->next = a->first;
		a->first = b;
		if (room == n) { /* the current block stays in use */
			a->used += n;
			return b->bytes;
		}
		a->at = b->bytes;
		a->left = room;
	}
	p = a->at;
	a->at += n;
	a->left -= n;
	a->used += n;
	return p;
}

static void arena_empty(struct arena *a)
{
	while (a->first) {
		struct arena_block *b = a->first;

		a->first = b->next;
		free(b);
	}
	*a = (struct arena){.most = a->most};
}

/* ---- one value ----------------------------------------------------------- */

struct conversion {
	bool text;            /* make a pointer; else a length and a pointer */
	hid_t from, to, dxpl; /* types of items; transfer property list */
	bool same;            /* the two types are equal */
	bool layered;         /* H5Tconvert needs the old contents */
	size_t from_size, to_size;
	size_t reference; /* bytes of a value in the file */
};

/* Return the `n` items at `data` as they are in memory (owned by the arena), or NULL
 * with now.why set. */
static void *vlen_make_items(const struct conversion *c,
			     const unsigned char *data, uint64_t n)
{
	cleanup_free unsigned char *work = NULL, *below = NULL;
	uint64_t stored = n * c->from_size, room, served;
	unsigned char *out;

	if (mul_overflows(n, c->to_size, &served))
		served = UINT64_MAX;
	room = max_u64(stored, served);
	out = arena_alloc(&now.arena,
			  served + (c->text && served < UINT64_MAX));
	if (!out)
		return NULL;
	if (c->text)
		out[served] = '\0';
	if (c->same) {
		if (stored)
			memcpy(out, data, stored);
		return out;
	}
	work = malloc(room);
	if (c->layered)
		below = calloc(1, room);
	if (!work || (c->layered && !below)) {
		error_no_memory(&now.why, "values of variable length");
		return NULL;
	}
	memcpy(work, data, stored);
	if (H5Tconvert(c->from, c->to, (size_t)n, work, below, c->dxpl) < 0) {
		if (!now.why.code)
			error_set(&now.why, -EIO,
				  "libhdf5 cannot convert a sequence");
		return NULL;
	}
	memcpy(out, work, served);
	return out;
}

/* A reference without an address means that there is no value. */
static bool vlen_is_null(const struct conversion *c,
			 const unsigned char *reference)
{
	bool null = true;

	for (size_t i = 4; i + 4 < c->reference; i++)
		null = null && !reference[i];
	return null;
}

static size_t vlen_length(const struct conversion *c,
			  const unsigned char *reference)
{
	return vlen_is_null(c, reference) ? 0 : load_le32(reference);
}

static int vlen_read_value(const struct conversion *c,
			   const unsigned char *reference, void *out)
{
	const unsigned char *data = NULL;
	uint64_t n = 0;
	hvl_t s = {0, NULL};

	if (now.lengths && !c->text) {
		s.len = vlen_length(c, reference);
		memcpy(out, &s, sizeof s);
		return 0;
	}
	if (!now.ignored && !now.heap)
		return error_set(&now.why, -EIO,
				 "a value of variable length cannot be read "
				 "here");
	if (!now.ignored && hdf5_heap_get(now.heap, reference, c->from_size,
					  &data, &n, &now.why) < 0)
		return now.why.code;
	/* An empty text is not the same as no text. */
	if (n > 0 || (c->text && now.heap && !vlen_is_null(c, reference))) {
		s.len = (size_t)n;
		s.p = vlen_make_items(c, data, n);
		if (!s.p)
			return now.why.code;
	}
	if (c->text)
		memcpy(out, &s.p, sizeof s.p);
	else
		memcpy(out, &s, sizeof s);
	return 0;
}

/* Convert `n` values in place, beginning at the end at which results do not overwrite
 * values that are still to be read. */
static int vlen_read_values(const struct conversion *c, size_t n, size_t stride,
			    size_t from_size, unsigned char *buf)
{
	size_t to_size = c->text ? sizeof(char *) : sizeof(hvl_t);
	size_t from = stride ? stride : from_size,
	       to = stride ? stride : to_size;
	unsigned char reference[HDF5_HEAP_REFERENCE_MAX];
	int r = 0;

	/* The buffer of a fill value only has room for its form in the file. */
	if (now.ignored && !stride) {
		memset(buf, 0, n * min_u64(from_size, to_size));
		return 0;
	}
	for (size_t k = 0; k < n && !r; k++) {
		size_t i = to > from ? n - 1 - k : k;

		memcpy(reference, buf + i * from, from_size);
		r = vlen_read_value(c, reference, buf + i * to);
	}
	return r;
}

/* ---- what the library calls ---------------------------------------------- */

static bool vlen_in_memory(hid_t type)
{
	hid_t copy = H5Tcopy(type); /* a copy is always in memory */
	bool is = copy >= 0 && H5Tequal(type, copy) > 0;

	if (copy >= 0)
		H5Tclose(copy);
	return is;
}

/* Is it a conversion of text to text or of sequences to sequences, from a file to
 * memory? */
static bool vlen_is_ours(hid_t from, hid_t to)
{
	H5T_class_t class = H5Tget_class(from);

	if (class != H5Tget_class(to) || vlen_in_memory(from) ||
	    !vlen_in_memory(to))
		return false;
	if (class == H5T_STRING)
		return H5Tis_variable_str(from) > 0 &&
		       H5Tis_variable_str(to) > 0 &&
		       H5Tget_cset(from) == H5Tget_cset(to);
	return class == H5T_VLEN;
}

static bool conversion_open(struct conversion *c, hid_t from, hid_t to)
{
	H5T_class_t class;

	c->text = H5Tget_class(from) == H5T_STRING;
	if (c->text) {
		c->same = true;
		c->from_size = c->to_size = 1;
		return true;
	}
	c->from = H5Tget_super(from);
	c->to = H5Tget_super(to);
	c->from_size = c->from < 0 ? 0 : H5Tget_size(c->from);
	c->to_size = c->to < 0 ? 0 : H5Tget_size(c->to);
	class = H5Tget_class(c->to);
	c->layered = class == H5T_COMPOUND || class == H5T_ARRAY ||
		     class == H5T_VLEN;
	c->same = H5Tequal(c->from, c->to) > 0;
	return c->from_size > 0 && c->to_size > 0;
}

static void conversion_close(struct conversion *c)
{
	if (c->from >= 0)
		H5Tclose(c->from);
	if (c->to >= 0)
		H5Tclose(c->to);
}

static herr_t vlen_convert(hid_t from, hid_t to, H5T_cdata_t *data, size_t n,
			   size_t stride, size_t below_stride, void *buf,
			   void *below, hid_t dxpl)
{
	struct conversion c = {.from = -1, .to = -1, .dxpl = dxpl};
	size_t size;
	int r;

	(void)below_stride, (void)below;
	if (data->command == H5T_CONV_INIT) {
		data->need_bkg = H5T_BKG_NO;
		return vlen_is_ours(from, to) ? 0 : -1;
	}
	if (data->command != H5T_CONV_CONV)
		return 0;
	size = c.reference = H5Tget_size(from);
	if (!conversion_open(&c, from, to) || size > HDF5_HEAP_REFERENCE_MAX ||
	    (now.heap && size != HDF5_HEAP_REFERENCE(now.address)))
		r = error_set(&now.why, -EIO,
			      "the type of a value of variable length cannot "
			      "be read");
	else
		r = vlen_read_values(&c, n, stride, size, buf);
	conversion_close(&c);
	if (r < 0)
		H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS,
			 H5E_HEAP, H5E_READERROR, "%s", now.why.text);
	return r < 0 ? -1 : 0;
}

int hdf5_vlen_register(struct error *err)
{
	hid_t sequence = H5Tvlen_create(H5T_NATIVE_UCHAR);
	herr_t ok = sequence < 0
			    ? -1
			    : H5Tregister(H5T_PERS_SOFT, "tensorfs", sequence,
					  sequence, vlen_convert);

	if (sequence >= 0)
		H5Tclose(sequence);
	return ok < 0 ? error_set(err, -EIO,
				  "libhdf5 refuses the conversion of "
				  "values of variable length")
		      : 0;
}

/* ---- the file that is read ----------------------------------------------- */

static int vlen_read_file(void *ctx, uint64_t pos, void *buf, size_t n,
			  struct error *err)
{
	const struct hdf5_driver_info *info = ctx;

	return handles_read(
		info->handles, info->file,
		hdf5_members_position(info->handles, info->file, pos), buf, n,
		err);
}

/* Get what the superblock says of addresses and lengths. */
static bool vlen_learn_file(hid_t object, struct hdf5_heap_file *f)
{
	hid_t file = H5Iget_file_id(object);
	hid_t fcpl = file < 0 ? -1 : H5Fget_create_plist(file);
	size_t address = 0, length = 0;
	hsize_t base = 0;
	bool ok = fcpl >= 0 && H5Pget_sizes(fcpl, &address, &length) >= 0 &&
		  H5Pget_userblock(fcpl, &base) >= 0;

	f->base = base;
	f->address = (unsigned)address;
	f->length = (unsigned)length;
	if (fcpl >= 0)
		H5Pclose(fcpl);
	if (file >= 0)
		H5Fclose(file);
	return ok;
}

void hdf5_vlen_begin(hid_t object, uint64_t most)
{
	struct hdf5_heap_file f = {.read = vlen_read_file};

	hdf5_vlen_end();
	now.arena.most = most;
	f.ctx = (void *)hdf5_driver_info(object);
	if (!f.ctx || !vlen_learn_file(object, &f))
		return;
	now.heap = hdf5_heap_new(&f);
	now.address = f.address;
}

static void *library_alloc(size_t n, void *ctx)
{
	return arena_alloc(ctx, n);
}

static void library_free(void *p, void *ctx)
{
	(void)p, (void)ctx; /* freed together with the arena */
}

hid_t hdf5_vlen_transfer(void)
{
	hid_t dxpl = H5Pcreate(H5P_DATASET_XFER);

	if (dxpl < 0 || H5Pset_vlen_mem_manager(dxpl, library_alloc, &now.arena,
						library_free, &now.arena) >= 0)
		return dxpl;
	H5Pclose(dxpl);
	return H5I_INVALID_HID;
}

void hdf5_vlen_begin_lengths(void)
{
	hdf5_vlen_end();
	now.lengths = true;
}

uint64_t hdf5_vlen_used(void)
{
	return now.arena.used;
}

void hdf5_vlen_free_values(void)
{
	arena_empty(&now.arena);
	now.why.code = 0;
}

bool hdf5_vlen_output(const struct hdf5_heap_file *f)
{
	hdf5_heap_free(now.other);
	now.other = hdf5_heap_new(f);
	now.other_address = f->address;
	return now.other;
}

void hdf5_vlen_swap_files(void)
{
	struct hdf5_heap *heap = now.heap;
	unsigned address = now.address;

	now.heap = now.other;
	now.address = now.other_address;
	now.other = heap;
	now.other_address = address;
}

void hdf5_vlen_end(void)
{
	hdf5_vlen_free_values();
	hdf5_heap_free(now.heap);
	hdf5_heap_free(now.other);
	now.heap = now.other = NULL;
	now.lengths = false;
}

int hdf5_vlen_failed(struct error *err)
{
	return now.why.code ? error_set(err, now.why.code, "%s", now.why.text)
			    : 0;
}

hid_t hdf5_vlen_create_plist(hid_t dset)
{
	hid_t dcpl;

	now.ignored = true;
	dcpl = H5Dget_create_plist(dset);
	now.ignored = false;
	return dcpl;
}

hid_t hdf5_vlen_fill_plist(hid_t dset)
{
	hid_t dcpl;

	now.given = true;
	dcpl = H5Dget_create_plist(dset);
	now.given = false;
	return dcpl;
}
