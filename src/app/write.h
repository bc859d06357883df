/* SPDX-License-Identifier: BSD-2-Clause */
/* `tensorfs write`: finds the parts, and runs the processes that write them. */
#ifndef APP_WRITE_H
#define APP_WRITE_H

#include "app/cli.h"
#include "base/vec.h"
#include "tensors/rows/hdf5_write.h"

/* Rows [begin, end) of the tensor are rows of one dataset in one file. */
struct write_part {
	uint64_t begin, end;
	uint64_t first; /* the row of the dataset that `begin` is */
	uint32_t file;
	char *path, *data; /* owned */
	char *flags;       /* owned; NULL if they are not in the same file */
	uint64_t flags_first;
};
struct write_plan {
	struct dtype dtype;
	unsigned rank;
	uint64_t shape[RANK_MAX];
	uint64_t row_bytes;
	uint64_t begin, end; /* the rows [begin, end) are to be written */
	bool distributed;
	int main_fd; /* the locked file of a distributed tensor, or -1 */
	vec(struct write_part)
		parts; /* the parts with these rows, clipped to them */
};
/* Open TARGET and find the parts that the options select.  Return CLI_DONE, or an exit
 * code after a sentence on stderr.  No process or thread is left running. */
int write_plan_make(struct write_plan *p, const struct command *c,
		    const struct settings *s, const char *target);
void write_plan_free(struct write_plan *p);

/* Write each part in a process of its own, several at once.  *done is set to the number
 * of parts written.  Return 0, or -errno of the first that failed. */
int write_jobs_run(const struct write_plan *p, const struct settings *s,
		   struct write_input *in, uint64_t *done, struct error *err);

#endif
