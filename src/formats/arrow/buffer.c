/* SPDX-License-Identifier: BSD-2-Clause */
/* Compressed buffers of Arrow batches: decoded whole, read in pieces, a few kept. */
/*
 * Readers ask for some thousands of rows at a time, and no byte of a compressed buffer
 * can be had without decoding all before it.  So a few decoded buffers are kept, in one
 * cache for all files: the next rows want the same ones.  If a thread is decoding a
 * buffer, others that want it wait, whatever its size.  It takes the place of older ones
 * when it has been decoded.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "formats/arrow/private.h"
#include "formats/columns/unpack.h"

/* Most bytes that one compressed buffer may decode to. */
#define PIECE_MOST (UINT64_C(4) << 30)
/* A buffer begins with its decoded length; this number instead means that it is stored
 * uncompressed (struct BodyCompression of Message.fbs: -1). */
#define PREFIX_PLAIN UINT64_MAX
/* How many decoded buffers are kept, and their bytes together. */
#define KEPT_MAX 16
#define KEPT_BYTES (UINT64_C(24) << 20)

struct decoded {
	const struct arrays *of;
	enum arrow_codec codec;
	uint64_t pos, stored, size;
	/* Under the lock: the list of those being decoded. */
	struct decoded *next;
	/* Under the lock: calls that use it, and 1 for the table. */
	unsigned users;
	uint64_t used; /* under the lock: `accesses` at the last use */
	bool is_made;  /* under the lock; once set, these do not change: */
	int r;         /* 0, or -errno of decoding, which `why` explains */
	struct error why;
	unsigned char *data;
};

static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t was_made = PTHREAD_COND_INITIALIZER;
static struct decoded *making; /* no longer than there are threads */
static struct decoded *kept[KEPT_MAX];
static uint64_t kept_bytes, accesses;

/* ---- the cache of decoded buffers ------------------------------------------ */

/* Give up one use; the last one frees it.  The caller holds kept_lock. */
static void decoded_drop(struct decoded *d)
{
	if (--d->users)
		return;
	free(d->data);
	free(d);
}

static void decoded_evict(struct decoded **at)
{
	kept_bytes -= (*at)->size;
	decoded_drop(*at);
	*at = NULL;
}

static struct decoded **decoded_oldest(void)
{
	struct decoded **old = NULL;

	for (unsigned i = 0; i < KEPT_MAX; i++)
		if (kept[i] && (!old || kept[i]->used < (*old)->used))
			old = &kept[i];
	return old;
}

static bool decoded_is_of(const struct decoded *d, const struct arrow_buffer *b)
{
	return d && d->of == b->s && d->pos == b->pos && d->stored == b->size &&
	       d->codec == b->codec;
}

/* Keep a decoded buffer in place of those used least recently.  The caller holds
 * kept_lock. */
static void decoded_keep(struct decoded *d)
{
	struct decoded **place = NULL;

	for (unsigned i = 0; i < KEPT_MAX; i++)
		if (!kept[i])
			place = &kept[i];
	while (kept_bytes > KEPT_BYTES - d->size || !place) {
		place = decoded_oldest();
		decoded_evict(place);
	}
	kept_bytes += d->size;
	d->users++;
	d->used = ++accesses;
	*place = d;
}

/* Return the buffer if it is kept or being decoded, else NULL.  The caller holds
 * kept_lock. */
static struct decoded *decoded_find(const struct arrow_buffer *b)
{
	for (unsigned i = 0; i < KEPT_MAX; i++)
		if (decoded_is_of(kept[i], b))
			return kept[i];
	for (struct decoded *d = making; d; d = d->next)
		if (decoded_is_of(d, b))
			return d;
	return NULL;
}

/* Return the decoded buffer, which has `size` bytes and must be given back with
 * decoded_release, or NULL if memory is short.  If *mine is set, the caller must decode
 * it and call decoded_publish; otherwise it is decoded: the function has waited for
 * that. */
static struct decoded *decoded_get(const struct arrow_buffer *b, uint64_t size,
				   bool *mine)
{
	struct decoded *d;
	lock_scope(&kept_lock);

	d = decoded_find(b);
	*mine = !d;
	if (*mine) {
		d = calloc(1, sizeof *d);
		if (!d)
			return NULL;
		d->of = b->s;
		d->codec = b->codec;
		d->pos = b->pos;
		d->stored = b->size;
		d->size = size;
		d->next = making;
		making = d;
	}
	d->users++;
	d->used = ++accesses;
	while (!*mine && !d->is_made)
		pthread_cond_wait(&was_made, &kept_lock);
	return d;
}

/* Publish the result of decoding to those that wait.  After a failure it is not kept, and
 * the next call tries again. */
static void decoded_publish(struct decoded *d, bool once)
{
	struct decoded **at = &making;
	lock_scope(&kept_lock);

	while (*at != d)
		at = &(*at)->next;
	*at = d->next;
	d->is_made = true;
	if (d->r == 0 && !once && d->size <= KEPT_BYTES)
		decoded_keep(d);
	pthread_cond_broadcast(&was_made);
}

static void decoded_release(struct decoded *d)
{
	lock_scope(&kept_lock);

	decoded_drop(d);
}

/* Take over the data if no other call uses the buffer and the cache does not hold it;
 * else return NULL. */
static unsigned char *decoded_steal_data(struct decoded *d)
{
	lock_scope(&kept_lock);

	return d->users == 1 ? steal_pointer(&d->data) : NULL;
}

void arrow_buffers_forget(const struct arrays *of)
{
	lock_scope(&kept_lock);

	for (unsigned i = 0; i < KEPT_MAX; i++)
		if (kept[i] && kept[i]->of == of)
			decoded_evict(&kept[i]);
}

/* ---- decoding --------------------------------------------------------------- */

static enum unpack unpack_of(enum arrow_codec c)
{
	return c == ARROW_ZSTD ? UNPACK_ZSTD : UNPACK_LZ4_FRAME;
}

/* The most by which a codec makes data smaller: a block of zstd decodes to 128 KiB at
 * most (RFC 8878, 3.1.1.2.4). */
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
				 "a buffer decodes to %" PRIu64
				 " bytes instead of %" PRIu64,
				 *out, b->least);
	if (*plain)
		return 0;
	if (*out > PIECE_MOST)
		return error_set(
			err, -ENOTSUP,
			"a batch has more than 4 GiB that are compressed in "
			"one piece: write it with smaller batches");
	if (*out / ratio_of(b->codec) > size)
		return error_set(err, -EBADMSG,
				 "a buffer of %" PRIu64
				 " bytes cannot decode to %" PRIu64,
				 size, *out);
	return 0;
}

/* Decode the buffer to its `n` bytes (*out is malloc'ed). */
static int decode_buffer(const struct arrow_buffer *b, uint64_t n,
			 unsigned char **out, struct error *err)
{
	cleanup_free unsigned char *stored = malloc(b->size);
	cleanup_free unsigned char *data = malloc(n ? n : 1);
	uint64_t size = b->size - ARROW_PREFIX;
	int r;

	if (!stored || !data)
		return error_no_memory(
			err, "a compressed buffer and its decoded bytes");
	r = arrays_read(b->s, b->pos + ARROW_PREFIX, stored, size, err);
	if (r == 0)
		r = unpack(unpack_of(b->codec), stored, size, data, n, err);
	if (r == 0)
		*out = steal_pointer(&data);
	return r;
}

static int copy_decoded(const unsigned char *from, uint64_t n,
			unsigned char **out, struct error *err)
{
	*out = malloc(n ? n : 1);
	if (!*out)
		return error_no_memory(err, "the decoded bytes of a buffer");
	memcpy(*out, from, n);
	return 0;
}

static int read_uncompressed(const struct arrow_buffer *b, uint64_t from,
			     uint64_t n, unsigned char **out, struct error *err)
{
	cleanup_free unsigned char *data = malloc(n ? n : 1);
	int r;

	if (!data)
		return error_no_memory(err, "the bytes of a buffer");
	r = arrays_read(b->s, b->pos + ARROW_PREFIX + from, data, n, err);
	if (r == 0)
		*out = steal_pointer(&data);
	return r;
}

/* Set *out to bytes [from, from + n) of a buffer that has been decoded, or return the
 * error of decoding it. */
static int decoded_hand_out(struct decoded *d, uint64_t from, uint64_t n,
			    unsigned char **out, struct error *err)
{
	unsigned char *data, *less;

	if (d->r < 0 && err)
		*err = d->why;
	if (d->r < 0)
		return d->r;
	data = decoded_steal_data(d);
	if (!data)
		return copy_decoded(d->data + from, n, out, err);
	memmove(data, data + from, n);
	less = realloc(data, n ? n : 1);
	*out = less ? less : data;
	return 0;
}

int arrow_buffer_part(const struct arrow_buffer *b, uint64_t from, uint64_t n,
		      unsigned char **out, uint64_t *decoded, struct error *err)
{
	struct decoded *d;
	bool plain, mine;
	uint64_t all;
	int r = arrow_buffer_size(b, &all, &plain, err);

	if (decoded)
		*decoded = 0;
	if (r < 0)
		return r;
	if (from > all || n > all - from)
		return error_set(err, -EBADMSG,
				 "a batch has fewer bytes than its rows take");
	if (plain)
		return read_uncompressed(b, from, n, out, err);
	d = decoded_get(b, all, &mine);
	if (!d)
		return error_no_memory(err, "the record of a decoded buffer");
	if (mine) {
		d->r = decode_buffer(b, all, &d->data, &d->why);
		decoded_publish(d, b->once);
		if (d->r == 0 && decoded)
			*decoded = all;
	}
	/* If the decoded buffer has another length, the file has changed since. */
	r = d->size == all ? decoded_hand_out(d, from, n, out, err)
			   : error_set(err, -EIO,
				       "a batch changed since it was read "
				       "last: the file was overwritten");
	decoded_release(d);
	return r;
}
