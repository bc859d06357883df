/* SPDX-License-Identifier: BSD-2-Clause */
/* tensorfs write: which parts, and the processes that write them. */
#ifndef APP_WRITE_H
#define APP_WRITE_H

#include "app/cli.h"
#include "base/vec.h"
#include "tensors/rows/hdf5_write.h"

/* Rows [begin, end) of the tensor are rows of one dataset in one file. */
struct write_part {
	uint64_t begin, end;
	uint64_t first; /* of `begin` in the dataset */
	uint32_t file;
	char *path, *data; /* owned */
	char *flags;       /* owned; NULL: not in the same file */
	uint64_t flags_first;
};
struct write_plan {
	struct dtype dtype;
	unsigned rank;
	uint64_t shape[RANK_MAX];
	uint64_t row_bytes;
	uint64_t begin, end; /* rows to be written */
	bool distributed;
	int main_fd;                  /* distributed: locked; -1 */
	vec(struct write_part) parts; /* those of these rows, cut to them */
};
/* What TARGET is, and the parts that the options mean.  An exit code, with a sentence on
 * stderr.  No process or thread is left. */
int write_plan_make(struct write_plan *p, const struct command *c,
		    const struct settings *s, const char *target);
void write_plan_free(struct write_plan *p);

/* Each part by a process, several at once; `done`: parts that were written.  -errno of the
 * first that failed. */
int write_jobs_run(const struct write_plan *p, const struct settings *s,
		   struct write_input *in, uint64_t *done, struct error *err);

#endif
