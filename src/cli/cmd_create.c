/* SPDX-License-Identifier: BSD-2-Clause */
/* tensorfs create: make the files of a distributed tensor, to be filled with write. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "app/cli.h"
#include "app/interrupt.h"
#include "base/parse.h"
#include "pack/comp.h"
#include "tensors/create/hdf5_create.h"

#define JOBS 16

/* Parse "100,64,64".  Return 0, or -EINVAL with a sentence. */
static int parse_shape(const char *option, const char *text, uint64_t *out,
		       unsigned *rank, struct error *err)
{
	char number[24];

	for (*rank = 0; *rank < RANK_MAX; text++) {
		size_t n = strcspn(text, ",");

		snprintf(number, sizeof number, "%.*s",
			 (int)(n < sizeof number ? n : sizeof number - 1),
			 text);
		if (n >= sizeof number ||
		    parse_count(number, 0, INT64_MAX, &out[*rank], err) < 0)
			return error_set(err, -EINVAL,
					 "--%s: '%.*s' is not a length; give "
					 "lengths as N,N,...",
					 option, (int)(n < 40 ? n : 40), text);
		++*rank;
		text += n;
		/* "5," is allowed, too, as in NumPy's (5,) */
		if (!*text || !strcmp(text, ","))
			return 0;
	}
	return error_set(err, -EINVAL, "--%s: more than %d axes", option,
			 RANK_MAX);
}

static int create_args_make(const struct settings *s, const char *pattern,
			    struct create_args *a, struct error *err)
{
	unsigned rank;
	int r;

	*a = (struct create_args){.pattern = pattern,
				  .dtype = s->pack.dtype,
				  .comp = s->pack.comp,
				  .replace = s->pack.force,
				  .jobs = s->pack.jobs ? s->pack.jobs : JOBS,
				  .chunked = s->pack.chunk != NULL,
				  .stop = &interrupted};
	if (!s->pack.shape || !s->pack.block || !s->pack.dtype)
		return error_set(err, -EINVAL, "--%s is missing",
				 !s->pack.shape   ? "shape"
				 : !s->pack.block ? "block"
						  : "dtype");
	/* "()" is NumPy's notation of a shape without axes. */
	r = *s->pack.shape && strcmp(s->pack.shape, "()")
		    ? parse_shape("shape", s->pack.shape, a->shape, &a->rank,
				  err)
		    : 0;
	if (r == 0 &&
	    parse_count(s->pack.block, 1, INT64_MAX, &a->block, err) < 0)
		r = error_set(err, -EINVAL,
			      "--block: '%.40s' is not a number of rows",
			      s->pack.block);
	if (r == 0 && a->chunked) {
		r = parse_shape("chunk", s->pack.chunk, a->chunk, &rank, err);
		if (r == 0 && rank != a->rank)
			r = error_set(err, -EINVAL,
				      "--chunk has %u axes, but --shape has %u",
				      rank, a->rank);
	}
	return r;
}

static void print_list(const uint64_t *list, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		printf("%s%" PRIu64, i ? ", " : "", list[i]);
}

static void create_print_json(const struct create_args *a,
			      const struct create_result *r)
{
	struct pack_comp comp = a->comp;
	char codec[32];

	if (comp.codec == PACK_AUTO)
		comp.codec = PACK_LZF;
	comp_describe(&comp, codec, sizeof codec);
	printf("{\"main\": ");
	cli_json_string(stdout, r->main);
	printf(", \"dtype\": ");
	cli_json_string(stdout, r->descr);
	printf(", \"shape\": [");
	print_list(a->shape, a->rank);
	printf("], \"block\": %" PRIu64 ", \"parts\": %" PRIu64
	       ", \"chunk\": [",
	       a->block, r->parts);
	print_list(r->chunk, a->rank);
	printf("], \"comp\": \"%s\", \"bytes\": %" PRIu64 "}\n", codec,
	       r->bytes);
}

int cmd_create(const struct command *c, struct settings *s, int argc,
	       char **argv)
{
	struct create_args a;
	struct create_result result;
	struct error err = {0};
	int r;

	(void)argc;
	if (create_args_make(s, argv[0], &a, &err) < 0)
		return cli_usage(c, "%s", err.text);
	interrupt_catch();
	r = hdf5_create(&a, &result, &err);
	if (r == -EINTR && interrupted) {
		cli_say(c, "interrupted: nothing was left behind");
		interrupt_die();
	}
	if (r < 0) {
		cli_say(c, "%s", err.text);
		return r == -EINVAL   ? CLI_USAGE
		       : r == -ENOMEM ? CLI_MEMORY
				      : CLI_INCOMPLETE;
	}
	if (result.others && !s->quiet)
		cli_say(c,
			"%" PRIu64 " files in the same directory look like "
			"parts of another tensor of that name",
			result.others);
	if (s->json)
		create_print_json(&a, &result);
	else
		puts(result.main);
	create_result_free(&result);
	return cli_flush_report(c);
}
