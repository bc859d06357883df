/* SPDX-License-Identifier: BSD-2-Clause */
/* Interface: frames that follow each other, some of which mean nothing. */
#ifndef STREAM_FRAME_H
#define STREAM_FRAME_H

#include "stream/slide.h"

/*
 * Zstandard and LZ4 files are frames, each with a number of 4 bytes that says what
 * it is.  Both know the same skippable ones: a number, a size, and that many bytes
 * which a decoder passes.
 */
#define FRAME_MAGIC 4

/* A format of frames. */
struct frame_kind {
	const char *name; /* "zstd" */
	bool (*is_frame)(uint32_t magic);
	/* A bid where nothing is seen but skippable frames, which others have. */
	int skippable_bid;
	/* What fewer bytes than a number are behind a frame: the beginning of one
	 * more, which was cut off (-EIO), or none (-EBADMSG). */
	int rest;
};

bool frame_is_skippable(uint32_t magic);
/* As stream_format.probe, for formats that have `frames` instead. */
int frame_probe(const struct frame_kind *k, const unsigned char *head,
		size_t n);
/* The data ends within a frame: -EIO. */
int frame_truncated(const struct frame_kind *k, const struct slide *f,
		    struct error *err);
/* Have n bytes of a frame at f->data: 0, -EIO where there are fewer, -errno. */
int frame_need(const struct frame_kind *k, struct slide *f, size_t n,
	       struct error *err);
/* Go to the next frame, past skippable ones; its number is there.  1, 0 at the end,
 * -errno. */
int frame_next(const struct frame_kind *k, struct slide *f, struct error *err);

#endif
