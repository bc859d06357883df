/* SPDX-License-Identifier: BSD-2-Clause */
/* What `info` and `verify` find out about a tensor, part by part. */
#ifndef APP_REPORT_H
#define APP_REPORT_H

#include <jansson.h>

#include "app/cli.h"
#include "views/view.h"

/* Sentences that are kept; further ones are counted. */
#define REPORT_PROBLEMS 20
/* A grid is counted chunk by chunk up to this many. */
#define REPORT_CHUNKS (UINT64_C(1) << 24)
/* The source is asked to list what was written in grids of this many. */
#define REPORT_LIST (UINT64_C(1) << 16)
/* Parts of parts that are looked at: a small file can announce 1000^16. */
#define REPORT_NESTED (UINT32_C(1) << 17)

struct report_flag {
	char *value;
	uint64_t blocks;
};
struct report {
	struct tensor *tensor;
	unsigned sample_axes;
	const struct layout *layout; /* of a part that is there, or NULL */
	bool alike;                  /* all parts are stored as `layout` */
	bool by_library;             /* some part is decoded by libhdf5 */
	const char *maker;           /* by_library: who; NULL: libhdf5 */
	uint32_t nested;             /* parts of parts */
	/* Parts where there are several, else chunks. */
	uint64_t blocks, present, missing, bad;
	uint64_t unwritten; /* chunks that read as fill value */
	uint64_t chunks;    /* stored ones */
	uint64_t stored;    /* bytes of them */
	bool counted;       /* false: too many, the sums are not known */
	struct sample_cost sample;
	struct report_flag *flags;
	size_t n_flags;
	char *problems[REPORT_PROBLEMS];
	uint64_t n_problems;
};
/* Look at everything but the data; `o` says what a sample is.  Blocks on I/O.
 * 0; -ENOMEM.  What is wrong with the tensor is in the report. */
int report_make(struct report *r, struct tensor *t,
		const struct view_options *o, struct pinner *p,
		struct error *err);
void report_free(struct report *r);
/* A paragraph, or one line of a table. */
void report_print(const struct report *r, FILE *out);
void report_print_line(const struct report *r, FILE *out);
json_t *report_json(const struct report *r);

/* Where a sample decodes far more than it has, or touches many chunks: the command that
 * makes a file with a chunk for each sample (malloc'ed); else NULL. */
char *report_cheaper(const struct report *r);

/* Part p's layout: -ENODATA when its file is gone, whatever missing= says. */
int report_part(struct tensor *t, uint32_t p, const struct layout **l,
		struct error *err);
/* Rows (of the first axis) of a part's dataset that the tensor takes: all that
 * lies between the first and the last one. */
struct report_rows {
	uint64_t begin, end;
};
/* The rows of each part (malloc'ed); NULL: no memory. */
struct report_rows *report_rows(const struct tensor *t);
/* LAYOUT_CHUNKED: the chunks [first, end) that hold these rows. */
void report_chunks(const struct report_rows *rows, const struct layout *l,
		   uint64_t *first, uint64_t *end);
/* LAYOUT_LINEAR: the stored bytes [first, end) of the dataset that hold them. */
void report_bytes(const struct report_rows *rows, const struct layout *l,
		  uint64_t *first, uint64_t *end);

/* Every tensor below a node, in order of names (or the one it belongs to);
 * stops when `each` does not return 0.  -ENOMEM, or what `each` returned.
 * Fields of structures are left out, but not by report_walk_fields. */
typedef int report_each(void *ctx, struct tensor *t);
int report_walk(struct tree *tree, const struct node *from, report_each *each,
		void *ctx);
int report_walk_fields(struct tree *tree, const struct node *from,
		       report_each *each, void *ctx);

#endif
