/* SPDX-License-Identifier: BSD-2-Clause */
/* What the daemon has done so far: atomic counters with names. */
#ifndef BASE_COUNTERS_H
#define BASE_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

/* X(symbol, "json_name", "help for people and Prometheus") */
#define COUNTERS(X)                                                          \
	X(REQ_LOOKUP, "lookup_requests", "LOOKUP requests")                  \
	X(REQ_GETATTR, "getattr_requests", "GETATTR requests")               \
	X(REQ_READDIR, "readdir_requests", "READDIR(PLUS) requests")         \
	X(REQ_READ, "read_requests", "READ requests by readers")             \
	X(REQ_WAITED, "read_requests_waited",                                \
	  "of these, requests that had to decode")                           \
	X(REQ_XATTR, "xattr_requests", "GETXATTR and LISTXATTR requests")    \
	X(REQ_IOCTL, "ioctl_requests", "IOCTL requests (isatty and others)") \
	X(REQ_OTHER, "other_requests", "all other requests")                 \
	X(BYTES_SERVED, "bytes_served", "bytes given to readers")            \
	X(CHUNKS_DECODED, "chunks_decoded", "chunks decoded")                \
	X(BYTES_DECODED, "bytes_decoded", "bytes that decoding produced")    \
	X(BYTES_VERBATIM, "bytes_verbatim", "stored bytes read as they are") \
	X(BYTES_WARMED, "bytes_warmed", "source bytes read ahead of demand") \
	X(BYTES_STORED, "bytes_stored", "stored bytes read for decoding")    \
	X(PREFETCHED, "chunks_prefetched", "chunks decoded ahead of demand") \
	X(SHARED_HITS, "shared_hits", "chunks found in shared memory")       \
	X(SHARED_TAKEN, "shared_taken",                                      \
	  "chunks that another daemon decoded meanwhile")                    \
	X(SHARED_ADDED, "shared_added", "chunks put into shared memory")     \
	X(SHARED_REFUSED, "shared_refused",                                  \
	  "chunks that could be shared, decoded for this mount alone")       \
	X(SHARED_DAMAGED, "shared_damaged",                                  \
	  "chunks in shared memory that were found changed")                 \
	X(REQ_AHEAD, "read_requests_ahead",                                  \
	  "READ requests for files that are read ahead")                     \
	X(FILES_AHEAD, "files_read_ahead",                                   \
	  "files that the kernel was asked to read ahead")                   \
	X(AHEAD_REFUSED, "read_ahead_refused",                               \
	  "times reading ahead was skipped for want of memory")              \
	X(ORDER_FOUND, "order_found",                                        \
	  "times readers were found to follow the order")                    \
	X(ORDER_LOST, "order_lost", "times readers left the order")          \
	X(ORDER_READY, "order_ready",                                        \
	  "files made ready ahead of readers in order")                      \
	X(ORDER_KEPT, "order_kept",                                          \
	  "of these, files kept in the daemon until they are read")          \
	X(ORDER_KEPT_READ, "order_kept_read",                                \
	  "READ requests answered from such files")                          \
	X(ORDER_DECODED, "order_decoded",                                    \
	  "chunks decoded for files made ready")                             \
	X(PARTS_OPENED, "parts_opened", "parts whose layout was read")       \
	X(FILES_OPENED, "files_opened", "backing files opened")              \
	X(ERRORS, "errors", "requests answered with a data error")

enum counter {
#define X(sym, name, help) COUNT_##sym,
	COUNTERS(X)
#undef X
		COUNTER_COUNT
};
struct counter_info {
	const char *name, *help;
};
extern const struct counter_info counter_info[COUNTER_COUNT];
extern _Atomic uint64_t counter_values[COUNTER_COUNT];

static inline void counter_add(enum counter c, uint64_t n)
{
	atomic_fetch_add_explicit(&counter_values[c], n, memory_order_relaxed);
}
static inline uint64_t counter_get(enum counter c)
{
	return atomic_load_explicit(&counter_values[c], memory_order_relaxed);
}

#endif
