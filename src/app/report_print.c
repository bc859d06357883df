/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints a report as a paragraph, as a line of a table, as JSON. */
#include <inttypes.h>
#include <string.h>

#include "app/report.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/number.h"
#include "base/parse.h"

#define ABSENT_LAYOUT "never written"

static const char *layout_word(const struct layout *l)
{
	static const char *const words[] = {[LAYOUT_CHUNKED] = "chunked",
					    [LAYOUT_LINEAR] = "contiguous",
					    [LAYOUT_FETCHED] = "compact",
					    [LAYOUT_ABSENT] = ABSENT_LAYOUT,
					    [LAYOUT_NESTED] = "virtual"};

	if (!l)
		return "unknown";
	return l->nstretches && !l->joined ? "external" : words[l->kind];
}

static bool is_chunked(const struct report *r)
{
	return r->layout && r->layout->kind == LAYOUT_CHUNKED;
}

/* Return true if a read has to decode something. */
static bool read_decodes(const struct report *r)
{
	return is_chunked(r) && (r->layout->pipeline->n || r->layout->recode ||
				 r->layout->by_library);
}

static const char *decoder_name(const struct report *r)
{
	return r->maker ? r->maker : "libhdf5";
}

/* Return the number of samples that one chunk holds a piece of. */
static uint64_t samples_per_chunk(const struct report *r)
{
	const struct grid *g = r->layout->grid;
	uint64_t n = 1;

	for (unsigned i = 0; i < r->sample_axes && i < g->rank; i++)
		n *= max_u64(1, min_u64(g->chunk[i], g->shape[i]));
	return n;
}

static double stored_ratio(const struct report *r)
{
	return r->stored ? (double)r->tensor->bytes / (double)r->stored : 0;
}

static void say_size(FILE *out, const char *label, uint64_t bytes)
{
	char text[32];

	format_size(bytes, text, sizeof text);
	fprintf(out, "  %-12s %s (%" PRIu64 " bytes)", label, text, bytes);
}

static void print_layout(const struct report *r, FILE *out)
{
	const struct tensor *t = r->tensor;
	uint32_t n = r->layout ? layout_external_files(r->layout) : 0;

	fputs("  layout       ", out);
	if (t->mosaic) {
		uint32_t mappings = mosaic_count(t->mosaic);

		fprintf(out, "virtual: %u part%s", t->nparts,
			t->nparts == 1 ? "" : "s");
		if (mappings != t->nparts)
			fprintf(out, " in %u mappings", mappings);
		if (r->nested)
			fprintf(out, ", which have %u more", r->nested);
		fputs(", ", out);
	}
	fputs(layout_word(r->layout), out);
	if (n)
		fprintf(out, " (%u file%s)", n, n == 1 ? "" : "s");
	fputs(r->alike ? "\n" : " (parts differ)\n", out);
}

static void print_chunks(const struct report *r, FILE *out)
{
	const struct layout *l = r->layout;
	const struct pipeline_filter *lack = pipeline_missing(l->pipeline, 0);
	char shape[768], size[32], filters[512];

	dtype_shape_text(l->grid->chunk, l->grid->rank, shape, sizeof shape);
	format_size(l->grid->chunk_bytes, size, sizeof size);
	pipeline_describe(l->pipeline, filters, sizeof filters);
	fprintf(out, "  chunk        %s, %s\n  filters      %s\n", shape, size,
		filters);
	if (lack && !l->by_library)
		fprintf(out, "  cannot read  filter %s is not supported\n",
			lack->name);
}

/* Return true if the dataset stores references to values elsewhere in the file. */
static bool stores_references(const struct tensor *t)
{
	return t->dtype.vlen || t->dtype.kind == DTYPE_TEXT ||
	       t->dtype.kind == DTYPE_RAGGED;
}

static void print_storage(const struct report *r, FILE *out)
{
	const struct tensor *t = r->tensor;

	print_layout(r, out);
	if (is_chunked(r))
		print_chunks(r, out);
	if (r->by_library && r->maker)
		fprintf(out, "  decoded by   %s\n", r->maker);
	else if (r->by_library)
		fprintf(out, "  decoded by   libhdf5, one chunk at a time, "
			     "which is slower\n");
	if (dtype_is_binary(&t->dtype)) {
		say_size(out, "logical", t->bytes);
		putc('\n', out);
	}
	if (!r->counted) {
		fprintf(out, "  stored       not counted");
		if (!r->by_library)
			fprintf(out, ": more than %" PRIu64 " chunks",
				REPORT_CHUNKS);
		putc('\n', out);
		return;
	}
	say_size(out, "stored", r->stored);
	if (stores_references(t))
		fprintf(out, " of references; the values are stored elsewhere");
	else if (r->missing || r->bad)
		fprintf(out, " in the parts that are there");
	else if (r->stored && t->bytes)
		fprintf(out, ", ratio %.2f", stored_ratio(r));
	putc('\n', out);
}

static void print_blocks(const struct report *r, FILE *out)
{
	const struct tensor *t = r->tensor;

	if (!r->blocks)
		return;
	if (t->mosaic) {
		fprintf(out,
			"  parts        %" PRIu64 " of %" PRIu64 " present",
			r->present, r->blocks);
		if (r->missing)
			fprintf(out, ", %" PRIu64 " missing", r->missing);
		if (r->bad)
			fprintf(out, ", %" PRIu64 " unusable", r->bad);
		if (r->unwritten)
			fprintf(out,
				", %" PRIu64 " chunks never written "
				"(fill value)",
				r->unwritten);
	} else {
		fprintf(out, "  blocks       %" PRIu64, r->blocks);
		if (is_chunked(r) && r->counted)
			fprintf(out,
				", %" PRIu64 " stored, %" PRIu64
				" never written (fill value)",
				r->chunks, r->unwritten);
	}
	putc('\n', out);
	for (size_t i = 0; i < r->n_flags; i++)
		fprintf(out, "  %-12s %s: %" PRIu64 " block%s\n",
			i ? "" : "flags",
			*r->flags[i].value ? r->flags[i].value : "(empty)",
			r->flags[i].blocks, r->flags[i].blocks == 1 ? "" : "s");
}

/* Print what reading one sample costs, and what would make it cheaper. */
static void print_cost(const struct report *r, FILE *out)
{
	const struct sample_cost *c = &r->sample;
	cleanup_free char *cheaper = report_cheaper(r);
	char sample[32], decoded[32], all[32];
	uint64_t share;

	if (!c->elements)
		return;
	format_size(c->bytes, sample, sizeof sample);
	format_size(c->decoded, decoded, sizeof decoded);
	format_size(r->tensor->bytes, all, sizeof all);
	if (!read_decodes(r)) {
		fprintf(out, "  one sample   %s, nothing to decode\n", sample);
		return;
	}
	share = samples_per_chunk(r);
	fprintf(out, "  one sample   %s; decodes %" PRIu64 " chunk%s, %s",
		sample, c->chunks, c->chunks == 1 ? "" : "s", decoded);
	if (share > 1)
		fprintf(out, ", which %" PRIu64 " samples share", share);
	putc('\n', out);
	if (cheaper)
		fprintf(out, "  cheaper      %s\n", cheaper);
	if (share <= 1) {
		fprintf(out, "  cache-size   %s is enough in any order\n",
			decoded);
		return;
	}
	fprintf(out,
		"  cache-size   samples in order: %s; in random order: %s "
		"keeps "
		"all chunks,\n"
		"               with less, a sample decodes %.0f times its "
		"bytes\n",
		decoded, all, (double)c->decoded / (double)c->bytes);
}

/* Print the type that is shown and the type that is stored. */
static void print_type(const struct tensor *t, FILE *out)
{
	cleanup_free char *descr = tensor_descr_text(&t->dtype);
	cleanup_free char *stored = tensor_descr_text(&t->stored);
	const char *said = t->stored.text ? t->stored.text : t->dtype.text;
	char name[80];

	dtype_name(&t->dtype, name, sizeof name);
	fprintf(out, "  dtype        %s", name);
	if (!descr || !stored)
		return;
	if (dtype_is_binary(&t->dtype))
		fprintf(out, t->descr ? " %s" : " '%s'", descr);
	if (strcmp(stored, descr))
		fprintf(out, ", stored as %s", stored);
	if (said)
		fprintf(out, " (%s)", said);
}

static void print_shape(const struct tensor *t, char *buf, size_t n)
{
	if (tensor_has_shape(t))
		dtype_shape_text(t->shape, t->rank, buf, n);
	else
		snprintf(buf, n, "unknown");
}

void report_print(const struct report *r, FILE *out)
{
	const struct tensor *t = r->tensor;
	char shape[768];

	print_shape(t, shape, sizeof shape);
	fprintf(out, "%s\n  shape        %s\n", t->name, shape);
	print_type(t, out);
	putc('\n', out);
	if (t->why_not) {
		fprintf(out, "  not shown    %s\n", t->why_not);
		return;
	}
	print_storage(r, out);
	print_blocks(r, out);
	print_cost(r, out);
	if (t->note)
		fprintf(out, "  note         %s\n", t->note);
	for (size_t i = 0; i < REPORT_PROBLEMS && i < r->n_problems; i++)
		fprintf(out, "  problem      %s\n",
			r->problems[i] ? r->problems[i] : "out of memory");
	if (r->n_problems > REPORT_PROBLEMS)
		fprintf(out, "  problem      and %" PRIu64 " more\n",
			r->n_problems - REPORT_PROBLEMS);
}

void report_print_line(const struct report *r, FILE *out)
{
	const struct tensor *t = r->tensor;
	char shape[768], name[80], logical[32], stored[32], filters[512];

	print_shape(t, shape, sizeof shape);
	dtype_name(&t->dtype, name, sizeof name);
	fprintf(out, "%-24s %-10s %-20s", t->name, name, shape);
	if (t->why_not) {
		fprintf(out, " not shown: %s\n", t->why_not);
		return;
	}
	format_size(t->bytes, logical, sizeof logical);
	format_size(r->stored, stored, sizeof stored);
	fprintf(out, " %s", layout_word(r->layout));
	if (is_chunked(r)) {
		dtype_shape_text(r->layout->grid->chunk, r->layout->grid->rank,
				 shape, sizeof shape);
		pipeline_describe(r->layout->pipeline, filters, sizeof filters);
		fprintf(out, " %s %s", shape, filters);
	}
	if (t->bytes)
		fprintf(out, ", %s", logical);
	if (r->counted && !stores_references(t))
		fprintf(out, ", %s stored", stored);
	if (r->by_library)
		fprintf(out, ", decoded by %s", decoder_name(r));
	if (t->mosaic)
		fprintf(out, ", %" PRIu64 " of %" PRIu64 " parts present",
			r->present, r->blocks);
	putc('\n', out);
}

static json_t *numbers(const uint64_t *v, unsigned n)
{
	json_t *a = json_array();

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(a, json_integer((json_int_t)v[i]));
	return a;
}

static void put_json_number(json_t *o, const char *key, uint64_t v)
{
	json_object_set_new(o, key, json_integer((json_int_t)v));
}

static void put_json_text(json_t *o, const char *key, const char *s)
{
	json_object_set_new(o, key, json_text(s, strlen(s)));
}

static void json_storage(const struct report *r, json_t *o)
{
	json_t *filters = json_array();

	put_json_text(o, "layout", layout_word(r->layout));
	if (is_chunked(r)) {
		const struct pipeline *p = r->layout->pipeline;

		json_object_set_new(
			o, "chunk",
			numbers(r->layout->grid->chunk, r->layout->grid->rank));
		put_json_number(o, "chunk_bytes", r->layout->grid->chunk_bytes);
		for (unsigned i = 0; i < p->n; i++)
			json_array_append_new(
				filters, json_text(p->filter[i].name,
						   strlen(p->filter[i].name)));
	}
	json_object_set_new(o, "filters", filters);
	if (r->by_library)
		put_json_text(o, "decoded_by", decoder_name(r));
	put_json_number(o, "bytes", r->tensor->bytes);
	json_object_set_new(o, "stored_bytes",
			    r->counted ? json_integer((json_int_t)r->stored)
				       : json_null());
	json_object_set_new(o, "ratio",
			    r->counted && r->stored && !r->missing && !r->bad
				    ? json_real(stored_ratio(r))
				    : json_null());
}

static json_t *json_blocks(const struct report *r)
{
	json_t *o = json_object();

	put_json_number(o, "total", r->blocks);
	put_json_number(o, "present", r->present);
	put_json_number(o, "missing", r->missing);
	put_json_number(o, "unusable", r->bad);
	put_json_number(o, "never_written", r->unwritten);
	return o;
}

static json_t *json_sample(const struct report *r)
{
	cleanup_free char *cheaper = report_cheaper(r);
	json_t *o = json_object();

	put_json_number(o, "axes", r->sample_axes);
	put_json_number(o, "bytes", r->sample.bytes);
	put_json_number(o, "chunks", r->sample.chunks);
	put_json_number(o, "decoded_bytes",
			read_decodes(r) ? r->sample.decoded : 0);
	put_json_number(o, "samples_per_chunk",
			is_chunked(r) ? samples_per_chunk(r) : 1);
	put_json_number(o, "cache_in_order",
			read_decodes(r) ? r->sample.decoded : 0);
	put_json_number(o, "cache_random",
			!read_decodes(r)           ? 0
			: samples_per_chunk(r) > 1 ? r->tensor->bytes
						   : r->sample.decoded);
	if (cheaper)
		put_json_text(o, "cheaper", cheaper);
	return o;
}

static void json_dtype(const struct tensor *t, json_t *o)
{
	cleanup_free char *descr = tensor_descr_text(&t->dtype);
	cleanup_free char *stored = tensor_descr_text(&t->stored);
	char name[80];

	dtype_name(&t->dtype, name, sizeof name);
	put_json_text(o, "type", name);
	if (descr)
		put_json_text(o, "dtype", descr);
	if (stored)
		put_json_text(o, "stored_dtype", stored);
	if (t->stored.text || t->dtype.text)
		put_json_text(o, "stored_type",
			      t->stored.text ? t->stored.text : t->dtype.text);
}

json_t *report_json(const struct report *r)
{
	const struct tensor *t = r->tensor;
	json_t *o = json_object(), *flags = json_object();
	json_t *problems = json_array();

	put_json_text(o, "name", t->name);
	json_object_set_new(o, "shape", numbers(t->shape, t->rank));
	json_dtype(t, o);
	json_object_set_new(o, "distributed", json_boolean(t->mosaic != NULL));
	if (t->mosaic) {
		put_json_number(o, "parts", t->nparts);
		put_json_number(o, "mappings", mosaic_count(t->mosaic));
		put_json_number(o, "nested_parts", r->nested);
	}
	if (t->why_not) {
		put_json_text(o, "not_shown", t->why_not);
	} else {
		json_storage(r, o);
		json_object_set_new(o, "blocks", json_blocks(r));
		if (r->sample.elements)
			json_object_set_new(o, "sample", json_sample(r));
	}
	for (size_t i = 0; i < r->n_flags; i++) {
		json_t *key =
			json_text(r->flags[i].value, strlen(r->flags[i].value));

		put_json_number(flags, json_string_value(key),
				r->flags[i].blocks);
		json_decref(key);
	}
	json_object_set_new(o, "flags", flags);
	for (size_t i = 0; i < REPORT_PROBLEMS && i < r->n_problems; i++)
		if (r->problems[i])
			json_array_append_new(
				problems, json_text(r->problems[i],
						    strlen(r->problems[i])));
	json_object_set_new(o, "problems", problems);
	put_json_number(o, "problem_count", r->n_problems);
	if (t->note)
		put_json_text(o, "note", t->note);
	return o;
}
