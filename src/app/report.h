/* SPDX-License-Identifier: BSD-2-Clause */
/* What `info` and `verify` report about a tensor, part by part. */
#ifndef APP_REPORT_H
#define APP_REPORT_H

#include <jansson.h>

#include "app/cli.h"
#include "views/view.h"

/* The largest number of problems that are kept; further ones are counted. */
#define REPORT_PROBLEMS 20
/* Up to this many chunks of a grid are counted one by one. */
#define REPORT_CHUNKS (UINT64_C(1) << 24)
/* From this many chunks on, the source is asked for a list of written chunks. */
#define REPORT_LIST (UINT64_C(1) << 16)
/* The largest number of parts of parts examined: a small file can declare 1000^16. */
#define REPORT_NESTED (UINT32_C(1) << 17)

struct report_flag {
	char *value;
	uint64_t blocks;
};
struct report {
	struct tensor *tensor;
	unsigned sample_axes;
	const struct layout
		*layout; /* layout of a part that is present, or NULL */
	bool alike;      /* all parts are stored as `layout` */
	bool by_library; /* some part is decoded by libhdf5 */
	const char
		*maker; /* the decoder if by_library; NULL stands for libhdf5 */
	uint32_t nested; /* number of parts of parts */
	/* Number of parts if there are several, else of chunks. */
	uint64_t blocks, present, missing, bad;
	uint64_t
		unwritten; /* chunks never written, which read as the fill value */
	uint64_t chunks; /* chunks that are stored */
	uint64_t stored; /* size of the stored chunks in bytes */
	/* false: the sums are incomplete, because there were too many chunks or libhdf5
	 * decodes them */
	bool counted;
	struct sample_cost sample;
	struct report_flag *flags;
	size_t n_flags;
	char *problems[REPORT_PROBLEMS];
	uint64_t n_problems;
};
/* Examine everything but the data; `o` defines a sample.  Blocks on I/O. Return 0 or
 * -ENOMEM. Faults of the tensor are put into the report. */
int report_make(struct report *r, struct tensor *t,
		const struct view_options *o, struct pinner *p,
		struct error *err);
void report_free(struct report *r);
/* Print a report as a paragraph, or as one line of a table. */
void report_print(const struct report *r, FILE *out);
void report_print_line(const struct report *r, FILE *out);
json_t *report_json(const struct report *r);

/* Return the command that makes a file with one chunk for each sample (malloc'ed), if a
 * sample decodes far more bytes than it has or touches many chunks; else NULL. */
char *report_cheaper(const struct report *r);

/* Get the layout of part p.  Return -ENODATA if its file is missing, whatever missing=
 * is set to. */
int report_part(struct tensor *t, uint32_t p, const struct layout **l,
		struct error *err);
/* A range of rows (of the first axis) of a part's dataset that the tensor uses: from the
 * first to the last one used. */
struct report_rows {
	uint64_t begin, end;
};
/* Return the rows of each part (malloc'ed), NULL if out of memory. */
struct report_rows *report_rows(const struct tensor *t);
/* For LAYOUT_CHUNKED: get the chunks [first, end) that hold these rows. */
void report_chunks(const struct report_rows *rows, const struct layout *l,
		   uint64_t *first, uint64_t *end);
/* For LAYOUT_LINEAR: get the stored bytes [first, end) of the dataset that hold these
 * rows. */
void report_bytes(const struct report_rows *rows, const struct layout *l,
		  uint64_t *first, uint64_t *end);

/* Call `each` for every tensor at or below a node, in order of names, until it returns
 * non-zero.  Return -ENOMEM, or what `each` returned last. report_walk leaves out the
 * fields of structures; report_walk_fields visits them, too. */
typedef int report_each(void *ctx, struct tensor *t);
int report_walk(struct tree *tree, const struct node *from, report_each *each,
		void *ctx);
int report_walk_fields(struct tree *tree, const struct node *from,
		       report_each *each, void *ctx);

#endif
