/* SPDX-License-Identifier: BSD-2-Clause */
/* tensorfs pack: pack a directory into one file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "app/interrupt.h"
#include "app/pack.h"
#include "pack/out.h"

struct packer {
	const struct command *c;
	struct settings *s;
	const char *top, *out;
	const struct sink_ops *ops;
	struct scan_options scan_options;
	struct feed_options feed_options;
	struct scan *scan;
	struct feed *feed;
	struct sink_args args;
	struct sink *sink;
	struct progress progress;
	struct pack_report report;
	bool no_source; /* the directory could not be listed */
};

static void pack_note(void *ctx, const char *sentence)
{
	struct packer *p = ctx;

	progress_clear(&p->progress);
	if (!p->s->quiet)
		cli_say(p->c, "%s", sentence);
}

static int pack_check_written(void *ctx, const char *path, int fd,
			      const uint64_t xxh3[2], struct error *err)
{
	struct packer *p = ctx;

	progress_clear(&p->progress);
	return pack_check_bytes(p->s, path, fd, xxh3, err);
}

/* Set all arguments of the sink but those that the scan determines. */
static void pack_set_args(struct packer *p)
{
	struct settings *s = p->s;
	struct sink_args *a = &p->args;
	/* With --chunk=sample, leave the chunk unset: one sample is the default. */
	const char *chunk = pack_chunk_is_sample(s) ? NULL : s->pack.chunk;

	*a = (struct sink_args){
		.path = p->out,
		.replace = s->pack.force,
		.comp = s->pack.comp,
		.block = s->pack.block_size,
		.threads = s->threads,
		.memory = s->pack.memory / 2,
		.index = s->pack.no_index ? PACK_INDEX_NONE : PACK_INDEX_BESIDE,
		.numeric_owner =
			s->pack.numeric_owner || s->pack.uid != OWNER_DEFAULT,
		.epoch = p->feed_options.mtime_most == INT64_MAX
				 ? INT64_MIN
				 : p->feed_options.mtime_most,
		.chunk = chunk,
		.shape = s->pack.shape,
		.dtype = s->pack.dtype,
		.labels = s->pack.labels,
		.dataset = s->dataset,
		.stop = &interrupted,
		.check = s->pack.verify ? pack_check_written : NULL,
		.check_ctx = p,
		.note = pack_note,
		.note_ctx = p};
}

static int pack_open_sink(struct packer *p, struct error *err)
{
	struct sink_args *a = &p->args;

	a->scan = p->scan;
	feed_attr_set(&a->top, &p->scan->top, &p->feed_options);
	return p->ops->open(a, &p->sink, err);
}

/* Give the sink one unit of the feed after the other.  Return 0, or -errno with a
 * sentence. */
static int pack_put_units(struct packer *p, struct error *err)
{
	struct feed_unit u;
	uint64_t done = 0;
	int r;

	while ((r = feed_next(p->feed, &u, err)) > 0) {
		r = p->sink->ops->put(p->sink, &u, err);
		if (r < 0)
			return r;
		done += u.size;
		progress_update(&p->progress, done);
	}
	return r;
}

/* Make hard links files of their own, for sinks that cannot store links. */
static void pack_part_links(struct scan *s)
{
	s->bytes = 0;
	for (size_t i = 0; i < s->list.n; i++) {
		s->list.at[i].same_as = i;
		if (S_ISREG(s->list.at[i].mode))
			s->bytes += s->list.at[i].size;
	}
}

/* Keep the result's strings, which belong to the sink and end with it. */
static int pack_keep_strings(struct packer *p, struct error *err)
{
	struct sink_result *r = &p->report.result;

	snprintf(p->report.codec, sizeof p->report.codec, "%s",
		 r->codec ? r->codec : "none");
	if (r->warning)
		cli_say(p->c, "%s: %s", p->out, r->warning);
	p->report.index = r->index ? strdup(r->index) : NULL;
	if (r->index && !p->report.index)
		return error_no_memory(err, "the name of the index");
	r->codec = r->index = r->warning = NULL;
	return 0;
}

static int pack_write(struct packer *p, struct error *err)
{
	int r;

	pack_set_args(p);
	r = p->ops->check(&p->args, err);
	if (r == 0)
		r = out_check(p->out, p->s->pack.force, err);
	/* Check the output first, because listing millions of files takes long. */
	if (r < 0)
		return r;
	r = scan_new(&p->scan, p->top, &p->scan_options, &interrupted, err);
	p->no_source = r < 0 && r != -ENOMEM && r != -EINTR;
	if (r == 0 && p->ops->no_links)
		pack_part_links(p->scan);
	if (r == 0)
		r = pack_open_sink(p, err);
	if (r == 0)
		r = feed_new(&p->feed, p->scan, p->top, &p->feed_options,
			     &interrupted, err);
	if (r < 0)
		return r;
	progress_init(&p->progress, p->s->quiet ? "none" : p->s->progress,
		      "packed", p->scan->bytes);
	r = pack_put_units(p, err);
	if (r == 0)
		r = p->sink->ops->finish(p->sink, &p->report.result, err);
	progress_clear(&p->progress);
	if (r == 0)
		r = pack_keep_strings(p, err);
	return r;
}

/* Close sink and feed; all their threads have ended when this returns. */
static void pack_close(struct packer *p)
{
	if (p->sink)
		p->sink->ops->close(p->sink);
	feed_close(p->feed);
	p->sink = NULL;
	p->feed = NULL;
}

static int pack_verify_result(struct packer *p, struct error *err)
{
	int64_t n;

	if (!p->s->pack.verify)
		return 0;
	n = pack_verify(p->c, p->s, p->top, p->scan, &p->feed_options, &p->args,
			p->ops, err);
	p->report.verified = n == 0;
	p->report.differences = n > 0 ? (uint64_t)n : 0;
	return n < 0 ? (int)n : 0;
}

static int pack_directory(struct packer *p)
{
	struct pack_lists lists;
	struct progress all; /* measures the time of the whole command */
	struct error err = {0};
	bool made;
	int code, r = pack_options(p->c, p->s, p->out, &p->scan_options,
				   &p->feed_options, &lists);

	p->scan_options.sockets = p->ops->sockets;
	if (r != 0) {
		pack_lists_free(&lists);
		return r;
	}
	interrupt_catch();
	progress_init(&all, "none", "", 0);
	r = pack_write(p, &err);
	pack_close(p);
	made = r == 0;
	if (made)
		r = pack_verify_result(p, &err);
	p->report.scan = p->scan;
	p->report.seconds = progress_seconds(&all);
	if (r == 0) {
		code = pack_say(p->c, p->s, &p->report);
	} else {
		code = p->no_source ? CLI_SOURCE : pack_exit(r);
		pack_say_end(p->c, p->out, made, r, &err);
	}
	scan_free(p->scan);
	free(p->report.index);
	pack_lists_free(&lists);
	interrupt_die();
	return code;
}

/* Return the name of a given option that is for tensors only; NULL if none is given. */
static const char *tensor_option(const struct settings *s)
{
	return s->pack.shape    ? "shape"
	       : s->pack.dtype  ? "dtype"
	       : s->pack.chunk  ? "chunk"
	       : s->pack.keep   ? "keep"
	       : s->pack.labels ? "labels"
	       : s->dataset     ? "dataset"
				: NULL;
}

int cmd_pack(const struct command *c, struct settings *s, int argc, char **argv)
{
	struct packer p = {.c = c, .s = s, .top = argv[0], .out = argv[1]};
	struct stat st;
	bool is_directory = stat(p.top, &st) == 0 && S_ISDIR(st.st_mode);

	(void)argc;
	pack_defaults(s, p.top);
	p.ops = sink_find(s->pack.format, p.out);
	if (!p.ops)
		return cli_usage(c,
				 "'%s' names no known format; --format is tar, "
				 "tar.gz, tar.zst, squashfs or h5",
				 s->pack.format ? s->pack.format : p.out);
	if (!p.ops->tensors && tensor_option(s))
		return cli_usage(c, "--%s is for tensors, but '%s' is a %s",
				 tensor_option(s), p.out, p.ops->name);
	p.report.output = p.out;
	p.report.format = p.ops->name;
	if (pack_wants_shards(s))
		return pack_shards(c, s, p.top, p.out, p.ops);
	if (!is_directory && p.ops->tensors)
		return pack_rechunk(c, s, p.top, p.out);
	if (s->pack.keep)
		return cli_usage(c,
				 "--keep is for files, but '%s' is a directory",
				 p.top);
	return pack_directory(&p);
}
