/* SPDX-License-Identifier: BSD-2-Clause */
/* tensorfs write: fill rows of a distributed tensor. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "app/interrupt.h"
#include "app/write.h"

static void write_print_json(const struct write_plan *p, const char *target,
			     const struct write_input *in, const char *flag)
{
	printf("{\"target\": ");
	cli_json_string(stdout, target);
	printf(", \"rows\": [%" PRIu64 ", %" PRIu64
	       "], \"parts\": %zu, \"bytes\": %" PRIu64 ", \"flag\": ",
	       p->begin, p->end, p->parts.n,
	       in->fd < 0 ? 0 : (p->end - p->begin) * p->row_bytes);
	if (flag)
		cli_json_string(stdout, flag);
	else
		printf("null");
	printf("}\n");
}

/* Return the exit code for a failure. */
static int write_exit_code(int code)
{
	switch (code) {
	case -ENOMEM:
		return CLI_MEMORY;
	case -ENODATA:
	case -EBADMSG:
	case -ENOTSUP:
		return CLI_SOURCE;
	default:
		return CLI_INCOMPLETE;
	}
}

static int write_parts(const struct command *c, const struct settings *s,
		       const struct write_plan *p, const char *target,
		       struct write_input *in)
{
	struct error err = {0};
	uint64_t done = 0;
	int r = write_input_check(in, &p->dtype, p->rank, p->shape,
				  p->end - p->begin, &err);

	if (r == 0)
		r = write_jobs_run(p, s, in, &done, &err);
	if (p->distributed)
		hdf5_write_sweep_beside(p->parts.at[0].path);
	if (r == 0) {
		if (s->json)
			write_print_json(p, target, in, s->pack.flag);
		return cli_flush_report(c);
	}
	if (done)
		cli_say(c,
			"%s; %" PRIu64
			" of %zu parts were written, the others are unchanged",
			err.text, done, p->parts.n);
	else if (r == -EINTR)
		cli_say(c, "interrupted: nothing was changed");
	else
		cli_say(c, "%s", err.text);
	return write_exit_code(r);
}

int cmd_write(const struct command *c, struct settings *s, int argc,
	      char **argv)
{
	struct write_input in = {.fd = -1};
	struct write_plan plan;
	struct error err = {0};
	int r;

	if (s->pack.rows && s->pack.block_given)
		return cli_usage(
			c, "--rows and --block exclude each other: give one");
	if (argc < 2 && !s->pack.flag)
		return cli_usage(
			c, "INPUT is missing; to set flags only, give --flag");
	r = write_plan_make(&plan, c, s, argv[0]);
	if (r != CLI_DONE)
		return r;
	interrupt_catch();
	if (argc > 1 &&
	    write_input_open(&in, argv[1], &interrupted, &err) < 0) {
		cli_say(c, "%s",
			err.code == -EINTR ? "interrupted: nothing was changed"
					   : err.text);
		r = interrupted ? CLI_INCOMPLETE : CLI_SOURCE;
	} else {
		r = write_parts(c, s, &plan, argv[0], &in);
	}
	write_input_close(&in);
	write_plan_free(&plan);
	interrupt_die();
	return r;
}
