/* SPDX-License-Identifier: BSD-2-Clause */
/* Data that is a sequence of frames, some of which are to be skipped. */
#include "stream/frame.h"

#include <errno.h>

#include "base/bytes.h"

/* The last four bits may have any value (RFC 8878, section 3.1.2). */
#define MAGIC_SKIPPABLE 0x184d2a50u
#define SKIPPABLE_HEAD 8

bool frame_is_skippable(uint32_t magic)
{
	return (magic & 0xfffffff0u) == MAGIC_SKIPPABLE;
}

int frame_probe(const struct frame_kind *k, const unsigned char *head, size_t n)
{
	uint64_t at = 0;

	while (n >= SKIPPABLE_HEAD && at <= n - SKIPPABLE_HEAD &&
	       frame_is_skippable(load_le32(head + at)))
		at += SKIPPABLE_HEAD +
		      (uint64_t)load_le32(head + at + FRAME_MAGIC);
	if (n >= FRAME_MAGIC && at <= n - FRAME_MAGIC)
		return k->is_frame(load_le32(head + at)) ? 100 : 0;
	return at ? k->skippable_bid : 0;
}

int frame_truncated(const struct frame_kind *k, const struct slide *f,
		    struct error *err)
{
	return error_set(err, -EIO,
			 "%s: the data ends at %llu, within a frame: "
			 "truncated?",
			 k->name, (unsigned long long)(f->at + f->n));
}

int frame_need(const struct frame_kind *k, struct slide *f, size_t n,
	       struct error *err)
{
	ssize_t r = slide_need(f, n, err);

	if (r < 0)
		return (int)r;
	return (size_t)r < n ? frame_truncated(k, f, err) : 0;
}

static int frame_pass_skippable(const struct frame_kind *k, struct slide *f,
				struct error *err)
{
	int r = frame_need(k, f, SKIPPABLE_HEAD, err);
	uint64_t n;
	int64_t got;

	if (r < 0)
		return r;
	n = SKIPPABLE_HEAD + (uint64_t)load_le32(f->data + FRAME_MAGIC);
	got = slide_skip(f, n, err);
	if (got < 0)
		return (int)got;
	return (uint64_t)got < n ? frame_truncated(k, f, err) : 0;
}

static int frame_not_found(const struct frame_kind *k, const struct slide *f,
			   struct error *err)
{
	return error_set(err, -EBADMSG,
			 "%s: the bytes from %llu on are not a frame", k->name,
			 (unsigned long long)f->at);
}

int frame_next(const struct frame_kind *k, struct slide *f, struct error *err)
{
	for (;;) {
		ssize_t have = slide_need(f, FRAME_MAGIC, err);
		uint32_t magic;
		int r;

		if (have <= 0)
			return (int)have;
		if (have < FRAME_MAGIC)
			return k->rest == -EIO ? frame_truncated(k, f, err)
					       : frame_not_found(k, f, err);
		magic = load_le32(f->data);
		if (k->is_frame(magic))
			return 1;
		if (!frame_is_skippable(magic))
			return frame_not_found(k, f, err);
		r = frame_pass_skippable(k, f, err);
		if (r < 0)
			return r;
	}
}
