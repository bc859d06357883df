/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the command that would make samples of a tensor cheaper to read, ready to be
 * pasted. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "app/report.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "pack/sink.h"

/* A sample is expensive if it decodes DEAR_TIMES its bytes, or touches DEAR_CHUNKS
 * chunks. */
#define DEAR_TIMES 8
#define DEAR_CHUNKS 16
/* For a sample of fewer bytes, a chunk of its own costs more than it saves. */
#define SAMPLE_LEAST 4096

static bool is_dear(const struct report *r)
{
	const struct sample_cost *c = &r->sample;

	return c->elements && c->bytes >= SAMPLE_LEAST && r->layout &&
	       r->layout->kind == LAYOUT_CHUNKED &&
	       (r->layout->pipeline->n || r->layout->recode ||
		r->layout->by_library) &&
	       (c->decoded / DEAR_TIMES >= c->bytes ||
		c->chunks >= DEAR_CHUNKS);
}

/* Print a word for the shell: in quotes, unless it has no special characters. */
static void put_shell_word(FILE *out, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-+=./:,@%";

	if (*word && !word[strspn(word, plain)]) {
		fputs(word, out);
		return;
	}
	putc('\'', out);
	for (; *word; word++)
		if (*word == '\'')
			fputs("'\\''", out);
		else
			putc(*word, out);
	putc('\'', out);
}

/* Return the name of the output, in the working directory: "scan.hspy" gives
 * "scan-samples.hspy". malloc'ed; NULL if out of memory. */
static char *output_name(const char *source)
{
	const char *base = strrchr(source, '/'), *dot;
	const struct sink_ops *sink = sink_find(NULL, source);
	char *name;
	int n;

	base = base ? base + 1 : source;
	dot = strrchr(base, '.');
	n = dot && dot > base ? (int)(dot - base) : (int)strlen(base);
	if (asprintf(&name, "%.*s-samples%s", n, base,
		     sink && sink->tensors && dot ? dot : ".h5") < 0)
		return NULL;
	return name;
}

/* Return true if a terminal shows the name as it is. */
static bool is_printable_name(const char *s)
{
	while (*s && (unsigned char)*s >= ' ' && *s != 127)
		s++;
	return !*s;
}

char *report_cheaper(const struct report *r)
{
	const struct tensor *t = r->tensor;
	cleanup_free char *output = NULL, *word = NULL;
	struct error ignored = {0};
	char *text = NULL;
	struct stat st;
	size_t size;
	FILE *out;

	if (!is_dear(r) || !t->source || !dtype_is_binary(&t->dtype) ||
	    stat(t->source, &st) < 0 || !S_ISREG(st.st_mode) ||
	    !is_printable_name(t->source) || !is_printable_name(t->name) ||
	    !(output = output_name(t->source)) ||
	    asprintf(&word, "%s:%s", t->source, t->name) < 0 ||
	    !(out = open_memstream(&text, &size)))
		return NULL;
	fputs("tensorfs pack --chunk=", out);
	for (unsigned i = 0; i < t->rank; i++)
		fprintf(out, "%s%" PRIu64, i ? "," : "",
			i < r->sample_axes ? 1 : max_u64(t->shape[i], 1));
	if (pipeline_cannot_encode(r->layout->pipeline, &ignored) < 0)
		fputs(" --comp=gzip", out);
	putc(' ', out);
	put_shell_word(out, word);
	putc(' ', out);
	put_shell_word(out, output);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}
