/* SPDX-License-Identifier: BSD-2-Clause */
/* Our codecs as filters of libhdf5, for what it has to read or write itself. */

/*
 * Chunks are decoded by our own code, without the library.  Variable-length strings are
 * the exception: H5Dread finds them wherever they are in an element, and needs filters of
 * its own for that, as does H5Dwrite.  So each row of codec_table that is not built into
 * the library is registered with it, for encoding if our codec can encode.  The library
 * then does not look for a plugin of the same number (some are packaged in a way that
 * cannot be loaded).
 *
 * The library calls a filter without its number, so every row needs a function of its
 * own: a numbered slot, made by a macro.  Nor does the library say how long the result
 * will be: the buffer is doubled until it suffices, up to a limit.
 */

#include <errno.h>
#include <stdlib.h>

#include "base/number.h"
#include "codec/codec.h"
#include "formats/hdf5/file/driver.h"

static _Thread_local size_t limit = HDF5_FILTERS_LIMIT;

size_t hdf5_filters_limit(size_t bytes)
{
	size_t before = limit;

	limit = bytes ? bytes : HDF5_FILTERS_LIMIT;
	return before;
}

static _Thread_local uint32_t element;

void hdf5_filters_element(uint32_t bytes)
{
	element = bytes;
}

static int filter_params(const struct codec *c, size_t n, const unsigned *cd,
			 struct codec_params *p, struct error *err)
{
	*p = (struct codec_params){.n = (uint32_t)n, .elem_size = element};
	if (n > CODEC_CD_MAX)
		return error_set(err, -EBADMSG,
				 "%s: %zu parameters, at most %u are supported",
				 c->name, n, (unsigned)CODEC_CD_MAX);
	for (size_t i = 0; i < n; i++)
		p->cd[i] = cd[i];
	return c->check ? c->check(p, err) : 0;
}

static int filter_no_memory(const struct codec *c, struct error *err)
{
	error_no_memory(err, "a chunk");
	error_prefix(err, "%s: ", c->name);
	return -ENOMEM;
}

/* Decode into a new buffer, *out of *room bytes, which is enlarged until the result
 * fits.  The caller frees it by H5free_memory, or gives it to the library. */
static int filter_decode(const struct codec *c, const struct codec_params *p,
			 const void *in, size_t in_len, void **out,
			 size_t *room, size_t *out_len, struct error *err)
{
	size_t size = min_u64(max_u64(4 * (uint64_t)in_len, 4096), limit);
	void *data;
	int r;

	for (;;) {
		data = H5allocate_memory(size, 0);
		if (!data)
			return filter_no_memory(c, err);
		r = c->decode(p, in, in_len, data, size, out_len, err);
		if (r == 0)
			break;
		H5free_memory(data);
		if (r != -ENOSPC)
			return r;
		if (size >= limit)
			return error_set(
				err, -EBADMSG,
				"%s: the data decode to more than %zu bytes",
				c->name, limit);
		size = size > limit / 2 ? limit : size * 2;
	}
	*out = data;
	*room = size;
	return 0;
}

/* Encode into a new buffer, as filter_decode does.  A result that is not smaller is a
 * failure, after which the library skips the filter if it is optional (all of ours
 * are). */
static int filter_encode(const struct codec *c, const struct codec_params *p,
			 const void *in, size_t in_len, void **out,
			 size_t *room, size_t *out_len, struct error *err)
{
	void *data;
	int r;

	if (!c->encode)
		return error_set(err, -ENOTSUP,
				 "%s: this filter can decode only, not encode",
				 c->name);
	data = H5allocate_memory(in_len ? in_len : 1, 0);
	if (!data)
		return filter_no_memory(c, err);
	r = c->encode(p, in, in_len, data, in_len, out_len, err);
	if (r != 0) {
		H5free_memory(data);
		return r < 0 ? r
			     : error_set(err, -ENOSPC,
					 "%s: the data do not get smaller",
					 c->name);
	}
	*out = data;
	*room = in_len;
	return 0;
}

/* The library's call of a filter: return the size of the result in bytes, or 0 on
 * failure. */
static size_t filter_run(const struct codec *c, unsigned flags, size_t n,
			 const unsigned *cd, size_t in_len, size_t *room,
			 void **buf)
{
	struct error err = {.code = 0, .text = ""};
	struct codec_params p;
	size_t out_len = 0;
	void *data = NULL;
	int r;

	r = filter_params(c, n, cd, &p, &err);
	if (r == 0)
		r = (flags & H5Z_FLAG_REVERSE ? filter_decode : filter_encode)(
			c, &p, *buf, in_len, &data, room, &out_len, &err);
	if (r < 0) {
		H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS,
			 H5E_PLINE, H5E_CANTFILTER, "%s", err.text);
		return 0;
	}
	H5free_memory(*buf);
	*buf = data;
	return out_len;
}

#define SLOTS(X) \
	X(0)     \
	X(1)     \
	X(2)     \
	X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
enum { SLOT_COUNT = 16 };
static const struct codec *slot_codec[SLOT_COUNT];

#define SLOT_FUNCTION(i)                                                     \
	static size_t slot_##i(unsigned flags, size_t n, const unsigned *cd, \
			       size_t in_len, size_t *room, void **buf)      \
	{                                                                    \
		return filter_run(slot_codec[i], flags, n, cd, in_len, room, \
				  buf);                                      \
	}
SLOTS(SLOT_FUNCTION)

#define SLOT_NAME(i) slot_##i,
static const H5Z_func_t slot_function[SLOT_COUNT] = {SLOTS(SLOT_NAME)};

int hdf5_filters_register(struct error *err)
{
	unsigned slot = 0;

	for (unsigned i = 0; codec_table[i]; i++) {
		const struct codec *c = codec_table[i];
		H5Z_class2_t class = {
			.version = H5Z_CLASS_T_VERS,
			.id = (H5Z_filter_t)c->id,
			/* Without an encoder no dataset could be created whose chunks
			 * are copied from another one. */
			.encoder_present = 1,
			.decoder_present = 1,
			.name = c->name,
		};

		if (c->id < H5Z_FILTER_RESERVED) /* built into the library */
			continue;
		if (slot == SLOT_COUNT)
			return error_set(err, -ENOSPC,
					 "no more than %u filters can be added "
					 "to libhdf5",
					 (unsigned)SLOT_COUNT);
		slot_codec[slot] = c;
		class.filter = slot_function[slot++];
		if (H5Zregister(&class) < 0)
			return error_set(err, -EIO,
					 "libhdf5 refuses the filter %s",
					 c->name);
	}
	return 0;
}
