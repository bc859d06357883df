/* SPDX-License-Identifier: BSD-2-Clause */
/* Compressed buffers of Arrow batches: decoded whole, read piece by piece. */
/*
 * Rows are asked for some thousands at a time, and nothing of a compressed buffer can
 * be had without all that is before it.  So a few buffers are kept as they decode, of
 * all files together: the next rows want the same ones.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "source/arrow_private.h"
#include "source/unpack.h"

/* Of what is compressed in one piece, decoded. */
#define PIECE_MOST (UINT64_C(4) << 30)
/* A buffer begins with its decoded length; with this: it is stored as it is. */
#define PREFIX_PLAIN UINT64_MAX
/* Kept buffers, and their bytes together. */
#define KEPT_MAX 16
#define KEPT_BYTES (UINT64_C(24) << 20)

struct decoded {
	const struct arrays *of;
	enum arrow_codec codec;
	uint64_t pos, stored, size;
	unsigned users; /* under the lock: those who have it, and the table */
	uint64_t used;  /* when, in accesses */
	unsigned char *data;
};

static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static struct decoded *kept[KEPT_MAX];
static uint64_t kept_bytes, accesses;

static int no_memory(struct error *err)
{
	return error_set(err, -ENOMEM, "out of memory");
}

/* ---- those that are kept ---------------------------------------------------- */

/* With the lock. */
static void drop(struct decoded *d)
{
	if (--d->users)
		return;
	free(d->data);
	free(d);
}

static void take_out(struct decoded **at)
{
	kept_bytes -= (*at)->size;
	drop(*at);
	*at = NULL;
}

static struct decoded **oldest(void)
{
	struct decoded **old = NULL;

	for (unsigned i = 0; i < KEPT_MAX; i++)
		if (kept[i] && (!old || kept[i]->used < (*old)->used))
			old = &kept[i];
	return old;
}

static bool is_of(const struct decoded *d, const struct arrow_buffer *b)
{
	return d && d->of == b->s && d->pos == b->pos && d->stored == b->size &&
	       d->codec == b->codec;
}

static struct decoded *get(const struct arrow_buffer *b)
{
	lock_scope(&kept_lock);

	for (unsigned i = 0; i < KEPT_MAX; i++)
		if (is_of(kept[i], b)) {
			kept[i]->users++;
			kept[i]->used = ++accesses;
			return kept[i];
		}
	return NULL;
}

/* In place of those that were used least recently; its maker has it as well. */
static void keep(const struct arrow_buffer *b, struct decoded *d)
{
	struct decoded **free_one = NULL;
	lock_scope(&kept_lock);

	for (unsigned i = 0; i < KEPT_MAX; i++) {
		/* Somebody else was faster. */
		if (is_of(kept[i], b))
			return;
		if (!kept[i])
			free_one = &kept[i];
	}
	while (kept_bytes > KEPT_BYTES - d->size) {
		free_one = oldest();
		take_out(free_one);
	}
	if (!free_one) {
		free_one = oldest();
		take_out(free_one);
	}
	kept_bytes += d->size;
	d->users++;
	d->used = ++accesses;
	*free_one = d;
}

static void release(struct decoded *d)
{
	lock_scope(&kept_lock);

	drop(d);
}

void arrow_buffers_forget(const struct arrays *of)
{
	lock_scope(&kept_lock);

	for (unsigned i = 0; i < KEPT_MAX; i++)
		if (kept[i] && kept[i]->of == of)
			take_out(&kept[i]);
}

/* ---- decoding --------------------------------------------------------------- */

static enum unpack unpack_of(enum arrow_codec c)
{
	return c == ARROW_ZSTD ? UNPACK_ZSTD : UNPACK_LZ4_FRAME;
}

/* Nothing gets smaller than by so much: a block of zstd has 128 KiB at most. */
static uint64_t ratio_of(enum arrow_codec c)
{
	return c == ARROW_ZSTD ? 65536 : 256;
}

int arrow_buffer_size(const struct arrow_buffer *b, uint64_t *out, bool *plain,
		      struct error *err)
{
	unsigned char p[ARROW_PREFIX];
	uint64_t size = b->size - ARROW_PREFIX;
	int r;

	if (b->size < ARROW_PREFIX)
		return error_set(err, -EBADMSG, "a buffer is too short");
	r = arrays_read(b->s, b->pos, p, sizeof p, err);
	if (r < 0)
		return r;
	*out = load_le64(p);
	*plain = *out == PREFIX_PLAIN;
	if (*plain)
		*out = size;
	if (*out < b->least || *out > b->most)
		return error_set(err, -EBADMSG,
				 "a buffer has %" PRIu64
				 " bytes when it is decoded, and should have "
				 "%" PRIu64,
				 *out, b->least);
	if (*plain)
		return 0;
	if (*out > PIECE_MOST)
		return error_set(err, -ENOTSUP,
				 "a batch has more than 4 GiB that are "
				 "compressed in one piece");
	if (*out / ratio_of(b->codec) > size)
		return error_set(err, -EBADMSG,
				 "a buffer of %" PRIu64
				 " bytes cannot decode to %" PRIu64,
				 size, *out);
	return 0;
}

/* Its n bytes, decoded (malloc'ed). */
static int decode(const struct arrow_buffer *b, uint64_t n, unsigned char **out,
		  struct error *err)
{
	cleanup_free unsigned char *stored = malloc(b->size);
	cleanup_free unsigned char *data = malloc(n ? n : 1);
	uint64_t size = b->size - ARROW_PREFIX;
	int r;

	if (!stored || !data)
		return no_memory(err);
	r = arrays_read(b->s, b->pos + ARROW_PREFIX, stored, size, err);
	if (r == 0)
		r = unpack(unpack_of(b->codec), stored, size, data, n, err);
	if (r == 0)
		*out = steal_pointer(&data);
	return r;
}

static int copy(const unsigned char *from, uint64_t n, unsigned char **out,
		struct error *err)
{
	*out = malloc(n ? n : 1);
	if (!*out)
		return no_memory(err);
	memcpy(*out, from, n);
	return 0;
}

static int read_stored(const struct arrow_buffer *b, uint64_t from, uint64_t n,
		       unsigned char **out, struct error *err)
{
	cleanup_free unsigned char *data = malloc(n ? n : 1);
	int r;

	if (!data)
		return no_memory(err);
	r = arrays_read(b->s, b->pos + ARROW_PREFIX + from, data, n, err);
	if (r == 0)
		*out = steal_pointer(&data);
	return r;
}

static struct decoded *decoded_of(const struct arrow_buffer *b,
				  unsigned char *data, uint64_t n)
{
	struct decoded *d = malloc(sizeof *d);

	if (d)
		*d = (struct decoded){.of = b->s,
				      .codec = b->codec,
				      .pos = b->pos,
				      .stored = b->size,
				      .size = n,
				      .users = 1,
				      .data = data};
	return d;
}

int arrow_buffer_part(const struct arrow_buffer *b, uint64_t from, uint64_t n,
		      unsigned char **out, uint64_t *decoded, struct error *err)
{
	unsigned char *data = NULL;
	struct decoded *d;
	uint64_t all;
	bool plain;
	int r = arrow_buffer_size(b, &all, &plain, err);

	if (decoded)
		*decoded = 0;
	if (r < 0)
		return r;
	if (from > all || n > all - from)
		return error_set(err, -EBADMSG,
				 "a batch has fewer bytes than its rows take");
	if (plain)
		return read_stored(b, from, n, out, err);
	d = get(b);
	if (!d) {
		r = decode(b, all, &data, err);
		if (r < 0)
			return r;
		if (decoded)
			*decoded = all;
		d = b->once || all > KEPT_BYTES ? NULL
						: decoded_of(b, data, all);
		if (!d) {
			memmove(data, data + from, n);
			*out = data;
			return 0;
		}
		keep(b, d);
	}
	/* If it had another length before, the file is not what it was. */
	r = d->size == all ? copy(d->data + from, n, out, err)
			   : error_set(err, -EIO, "a batch is not what it was");
	release(d);
	return r;
}
