/* SPDX-License-Identifier: BSD-2-Clause */
/* Interface: units of a stream decoded ahead on threads, delivered in order. */
#ifndef STREAM_AHEAD_H
#define STREAM_AHEAD_H

#include "base/vec.h"
#include "stream/slide.h"

/* A place in a unit where a window may begin. */
struct ahead_mark {
	size_t out;    /* decoded bytes of the unit before it */
	uint64_t in;   /* as in a stream_point */
	uint8_t bits;  /* as in a stream_point */
	uint8_t flags; /* as in a stream_point */
	/* A checksum of all bytes up to the next mark failed: `why`. */
	bool bad;
	/* Much that follows can only be reached from here. */
	bool must;
	uint32_t tag; /* the format's own */
	bool state;   /* the decoder needs one there: see ahead_ops.state */
};
#define AHEAD_STATE_MOST ((size_t)66 << 10)

/*
 * Compressed bytes and what they decode to.  A format's own unit has this as its
 * first member, and is calloc'ed.
 */
struct ahead_unit {
	/* Made by `next`; `in` is freed when `run` is done. */
	unsigned char *in; /* malloc'ed */
	size_t in_size;
	size_t cost; /* memory for it and what is decoded, at most */
	/* Made by `run`: marks in order. */
	unsigned char *out; /* malloc'ed */
	size_t before;      /* bytes in it before those that were decoded */
	size_t out_size;    /* of these */
	vec(struct ahead_mark) marks;
	struct error err; /* what ended decoding after out_size bytes */
	struct error why; /* of bad marks, and: */
	/* A checksum failed which covers what was decoded from here on (counted
	 * from the beginning of the stream) until `bad_until` of the unit. */
	uint64_t bad_from;
	size_t bad_until;
	bool bad;
	/* Set by `run` or `taken`: nobody knows how many bytes were to be there, so
	 * what follows is not where it belongs. */
	bool displaced;
	/* Before `taken` is called. */
	uint64_t at; /* decoded bytes before the unit */
	/* Set by `taken`: what lies before is right, a checksum said so. */
	uint64_t verified;

	/* Private. */
	struct ahead *ahead;
	struct ahead_unit *later;
	size_t in_room;
	bool done;
};

struct ahead;
/* A decoder on its first pass.  A format's own decoder has this as its first
 * member. */
struct ahead_decoder {
	struct stream_decoder stream; /* first member */
	struct slide feed;            /* for `next` and `taken` */
	struct ahead *ahead;
};

enum ahead_next {
	AHEAD_END = 0,  /* there are no more */
	AHEAD_UNIT = 1, /* here it is */
	AHEAD_WAIT = 2  /* what comes next depends on units not taken yet */
};
/* What a format does; `own` is its decoder. */
struct ahead_ops {
	size_t size; /* of the decoder, which is zeros at first */
	/* Optional: what it has beside struct ahead_decoder; 0 or -errno, `close`
	 * follows either. */
	int (*open)(void *own, struct error *err);
	void (*close)(void *own);
	/* On the reader's thread: gather the next unit; enum ahead_next, or what
	 * the stream ends with after the units before. */
	int (*next)(void *own, struct ahead_unit **out, struct error *err);
	/* Any thread, several units at once: decode.  -errno: what ends decoding
	 * after out_size bytes. */
	int (*run)(struct ahead_unit *u, struct error *err);
	/* On the reader's thread, in order, before the bytes are delivered.
	 * Optional. */
	int (*taken)(void *own, struct ahead_unit *u, struct error *err);
	/* The state at a mark: its size.  Optional.  On the reader's thread. */
	size_t (*state)(const struct ahead_unit *u, const struct ahead_mark *m,
			unsigned char to[AHEAD_STATE_MOST]);
	/* Optional: free what a format's unit has beside this; not the unit. */
	void (*clear)(struct ahead_unit *u);
};

/* What stream_format.decoder is where stream_format.ahead is set.  Its close waits for
 * the units that are running. */
extern const struct stream_decoder_ops ahead_decoder;

/* For `next`: move `n` bytes that are there behind those that the unit has; false
 * when memory is out. */
bool ahead_gather(struct ahead_unit *u, struct slide *f, size_t n);
/* For `next`: a unit that it does not hand out. */
void ahead_discard(const struct ahead_decoder *d, struct ahead_unit *u);
/* For `taken`: forget all units that follow; `next` makes them anew. */
void ahead_drop(struct ahead_decoder *d);
/* For `run` and `taken`: false when memory is out. */
bool ahead_add_mark(struct ahead_unit *u, struct ahead_mark mark);

#endif
