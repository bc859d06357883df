/* SPDX-License-Identifier: BSD-2-Clause */
/* Interface: units of a stream decoded ahead on threads, delivered in order. */
#ifndef STREAM_AHEAD_H
#define STREAM_AHEAD_H

#include "base/vec.h"
#include "stream/slide.h"

/* A mark: a place in a unit where a window may begin. */
struct ahead_mark {
	size_t out;    /* decoded bytes of the unit before it */
	uint64_t in;   /* as in a stream_point */
	uint8_t bits;  /* as in a stream_point */
	uint8_t flags; /* as in a stream_point */
	/* A checksum over the bytes up to the next mark failed; the unit's `why`
	 * says which. */
	bool bad;
	/* Make a point here in any case: many bytes that follow can be decoded from
	 * here only. */
	bool must;
	uint32_t tag; /* for the format's own use */
	/* The decoder needs a state to begin there: see ahead_ops.state. */
	bool state;
};
#define AHEAD_STATE_MOST ((size_t)66 << 10)

/*
 * A unit: some compressed bytes and what they decode to.  A format's own unit has this
 * as its first member, and is calloc'ed.
 */
struct ahead_unit {
	/* Filled in by `next`; `in` is freed when `run` is done. */
	unsigned char *in; /* malloc'ed */
	size_t in_size;
	/* Upper bound of the memory for it and its decoded bytes. */
	size_t cost;
	/* Filled in by `run`; marks are in order. */
	unsigned char *out; /* malloc'ed */
	size_t before;      /* bytes of `out` before the decoded ones */
	size_t out_size;    /* decoded bytes */
	vec(struct ahead_mark) marks;
	/* The failure that ended decoding after out_size bytes. */
	struct error err;
	struct error why; /* the failed checksum of bad marks, and of `bad` */
	/* With `bad` set, a checksum failed that covers the decoded bytes from
	 * bad_from (counted from the beginning of the stream) to bad_until (counted
	 * in the unit). */
	uint64_t bad_from;
	size_t bad_until;
	bool bad;
	/* Set by `run` or `taken`: it is unknown how many bytes the damaged part
	 * should have decoded to, so all that follows may be displaced. */
	bool displaced;
	/* Set before `taken` is called. */
	uint64_t at; /* decoded bytes before the unit */
	/* Set by `taken`: decoded bytes of the stream that a checksum has confirmed. */
	uint64_t verified;

	/* Private to ahead.c. */
	struct ahead *ahead;
	struct ahead_unit *later;
	size_t in_room;
	bool done;
};

struct ahead;
/* The decoder of a first pass that runs ahead.  A format's own decoder has this as
 * its first member. */
struct ahead_decoder {
	struct stream_decoder stream; /* first member */
	struct slide feed;            /* for `next` and `taken` */
	struct ahead *ahead;
};

enum ahead_next {
	AHEAD_END = 0,  /* there are no more units */
	AHEAD_UNIT = 1, /* a unit was made */
	/* The next unit depends on units that were not taken yet. */
	AHEAD_WAIT = 2
};
/* The functions of a format; `own` is its decoder. */
struct ahead_ops {
	size_t size; /* bytes of the decoder, which begins as zeros */
	/* Optional: initialize the fields after struct ahead_decoder.  Return 0 or
	 * -errno; `close` is called in either case. */
	int (*open)(void *own, struct error *err);
	void (*close)(void *own);
	/* Gather the next unit, on the reader's thread.  Return an enum ahead_next,
	 * or -errno if the stream ends with an error after the units before. */
	int (*next)(void *own, struct ahead_unit **out, struct error *err);
	/* Decode a unit, on any thread; several units are decoded at the same time.
	 * Return 0, or -errno if a failure ends decoding after out_size bytes. */
	int (*run)(struct ahead_unit *u, struct error *err);
	/* Optional: take a decoded unit, on the reader's thread and in order, before
	 * its bytes are delivered.  Return 0 or -errno. */
	int (*taken)(void *own, struct ahead_unit *u, struct error *err);
	/* Optional: write the state at a mark, on the reader's thread.  Return its
	 * size in bytes. */
	size_t (*state)(const struct ahead_unit *u, const struct ahead_mark *m,
			unsigned char to[AHEAD_STATE_MOST]);
	/* Optional: free what a format's unit has beside struct ahead_unit, but not
	 * the unit. */
	void (*clear)(struct ahead_unit *u);
};

/* The value of stream_format.decoder where stream_format.ahead is set.  Its close
 * waits for the units that are running. */
extern const struct stream_decoder_ops ahead_decoder;

/* For `next`: move n bytes, which `f` must have, to the end of the unit's input.
 * Return false when memory is out. */
bool ahead_gather(struct ahead_unit *u, struct slide *f, size_t n);
/* For `next`: free a unit that is not returned. */
void ahead_discard(const struct ahead_decoder *d, struct ahead_unit *u);
/* For `taken`: drop all units that follow; `next` makes them anew. */
void ahead_drop(struct ahead_decoder *d);
/* For `run` and `taken`: append a mark.  Return false when memory is out. */
bool ahead_add_mark(struct ahead_unit *u, struct ahead_mark mark);

#endif
