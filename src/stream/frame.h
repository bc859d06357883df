/* SPDX-License-Identifier: BSD-2-Clause */
/* Interface: data that is a sequence of frames, some of which are to be skipped. */
#ifndef STREAM_FRAME_H
#define STREAM_FRAME_H

#include "stream/slide.h"

/*
 * Zstandard (RFC 8878) and LZ4 files are sequences of frames, each of which begins with
 * a magic number of 4 bytes.  Both formats have the same skippable frames: a magic
 * number, a size, and that many bytes, which a decoder skips (RFC 8878, section 3.1.2).
 */
#define FRAME_MAGIC 4

/* A format that consists of frames. */
struct frame_kind {
	const char *name; /* "zstd" */
	bool (*is_frame)(uint32_t magic);
	/* The bid (0 to 100) if only skippable frames are seen, which other formats
	 * have, too. */
	int skippable_bid;
	/* The error if fewer than 4 bytes follow a frame: -EIO if they are taken for
	 * the beginning of a frame that was cut off, -EBADMSG if not. */
	int rest;
};

bool frame_is_skippable(uint32_t magic);
/* As stream_format.probe, for formats that have `frames` instead. */
int frame_probe(const struct frame_kind *k, const unsigned char *head,
		size_t n);
/* Set the error that the data ends within a frame.  Returns -EIO. */
int frame_truncated(const struct frame_kind *k, const struct slide *f,
		    struct error *err);
/* Have n bytes of a frame at f->data.  Return 0, -EIO if there are fewer, or -errno. */
int frame_need(const struct frame_kind *k, struct slide *f, size_t n,
	       struct error *err);
/* Go to the next frame, past skippable ones, and have its magic number at f->data.
 * Return 1, 0 at the end of the data, or -errno. */
int frame_next(const struct frame_kind *k, struct slide *f, struct error *err);

#endif
