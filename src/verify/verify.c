/* SPDX-License-Identifier: BSD-2-Clause */
/* Read and decode every stored chunk once, on all cores, in bounded memory. */

/*
 * The main thread goes through tensors and their parts (and the parts' parts, where they
 * are virtual datasets) and queues jobs (verify_jobs.c): a thousand chunks, a piece of
 * contiguous data, or the values of a part that are text or sequences.  A job decodes its
 * chunks one after the other, past the cache.  The queue is short and a gate bounds the
 * memory of what is being decoded, so the size of the data does not matter.
 *
 * A file that is missing or was replaced spoils all chunks in it; it is reported once,
 * and the other jobs of that part see `spoiled` and return.
 */
#include "verify/verify_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "base/system.h"

/* The number of members that a line of output names. */
#define LISTED 3

static void list_json(const struct verify *v, const struct source_bad *bad)
{
	printf("%s\n{\"name\": ", v->bad ? "," : "");
	cli_json_string(stdout, bad->name);
	printf(", \"error\": \"%s\", \"sentence\": ", error_name(bad->code));
	cli_json_string(stdout, bad->why);
	if (bad->n_members) {
		printf(", \"members\": [");
		for (size_t i = 0; i < bad->listed; i++) {
			fputs(i ? ", " : "", stdout);
			cli_json_string(stdout, bad->members[i]);
		}
		printf("], \"member_count\": %" PRIu64, bad->n_members);
	}
	putchar('}');
}

/* Print a name that is stored in a file on one line, without control characters. */
static void verify_print_name(const char *name)
{
	for (; *name; name++)
		putchar((unsigned char)*name < ' ' || *name == 0x7f ? '?'
								    : *name);
}

static void list_line(const struct source_bad *bad)
{
	printf("bad: ");
	if (strncmp(bad->why, bad->name, strlen(bad->name))) {
		verify_print_name(bad->name);
		printf(": ");
	}
	printf("%s", bad->why);
	for (size_t i = 0; i < bad->listed && i < LISTED; i++) {
		printf(i ? ", " : "; in ");
		verify_print_name(bad->members[i]);
	}
	if (bad->n_members > LISTED)
		printf(" and %" PRIu64 " more", bad->n_members - LISTED);
	putchar('\n');
}

void verify_list(struct verify *v, const struct source_bad *bad)
{
	lock_scope(&v->lock);
	progress_clear(&v->progress);
	if (bad->code == -ENOMEM)
		v->out_of_memory = true;
	if (v->settings->json)
		list_json(v, bad);
	else
		list_line(bad);
	fflush(stdout);
	v->bad++;
}

void verify_bad(struct verify *v, const char *name, int code, const char *why)
{
	cleanup_free char *whole = NULL;
	struct source_bad bad = {.name = name, .code = code, .why = why};

	if (*v->prefix && asprintf(&whole, "%s:%s", v->prefix, name) > 0)
		bad.name = whole;
	verify_list(v, &bad);
}

void verify_skipped(struct verify *v, const char *name, const char *why)
{
	lock_scope(&v->lock);
	v->skipped++;
	if (v->settings->json || v->settings->quiet)
		return;
	progress_clear(&v->progress);
	printf("not checked: %s%s%s: %s\n", v->prefix, *v->prefix ? ":" : "",
	       name, why);
}

void verify_left_out(struct verify *v, const char *name, uint64_t n)
{
	lock_scope(&v->lock);
	v->skipped += n;
	if (v->settings->json || v->settings->quiet)
		return;
	progress_clear(&v->progress);
	printf("not checked: %s: %" PRIu64 " member%s that cannot be shown "
	       "(tensorfs info says why)\n",
	       name, n, n == 1 ? "" : "s");
}

static void part_name(const struct tensor *t, uint32_t p, char *buf, size_t n)
{
	if (tensor_is_distributed(t))
		snprintf(buf, n, "%s: %s of %s", t->name, t->parts[p].dataset,
			 handles_name(t->handles, t->parts[p].file));
	else
		snprintf(buf, n, "%s", t->name);
}

void verify_spoil(struct part_check *c, int code, const struct error *err)
{
	char name[1024];

	if (atomic_exchange(&c->spoiled, true))
		return;
	part_name(c->t, c->part, name, sizeof name);
	verify_bad(c->v, name, code, err->text);
}

bool verify_has_checksum(struct tensor *t, uint32_t p, const struct layout *l)
{
	bool text = !dtype_is_binary(&t->dtype);

	if (t->ops->has_checksum && t->ops->has_checksum(t, p))
		return true;
	/* Values of variable length are in heaps, which have no checksums. */
	if (l->kind != LAYOUT_CHUNKED ||
	    (text && (t->dtype.kind != DTYPE_STRING || t->stored.vlen)))
		return false;
	return pipeline_has_checksum(l->pipeline, 0);
}

void verify_part_unref(struct part_check *c)
{
	struct error err = {0};
	uint64_t written;

	if (atomic_fetch_sub(&c->refs, 1) != 1)
		return;
	written = atomic_load(&c->t->parts[c->part].written);
	if (c->whole && !atomic_load(&c->spoiled) && written &&
	    atomic_load(&c->found) + 1 != written)
		verify_spoil(c,
			     error_set(&err, -EBADMSG,
				       "the chunk index is damaged: it counts "
				       "%" PRIu64 " chunks, %" PRIu64
				       " were found",
				       written - 1, atomic_load(&c->found)),
			     &err);
	if (atomic_load(&c->unsummed) ||
	    (atomic_load(&c->read) && !atomic_load(&c->spoiled) &&
	     !verify_has_checksum(c->t, c->part, c->layout)))
		atomic_store(&c->v->unsummed, true);
	free(c);
}

static int check_parts(struct verify *v, struct tensor *t, bool nested);

static int submit_part(struct part_check *c)
{
	struct error err = {0};
	int r = report_part(c->t, c->part, &c->layout, &err);

	if (r < 0) {
		verify_spoil(c, r, &err);
		return 0;
	}
	if (c->layout->kind == LAYOUT_NESTED)
		return check_parts(c->v, c->layout->nested, true);
	return verify_queue_part(c);
}

/* Check the parts of a tensor, or (nested) of a part of a tensor.  The depth is bounded
 * elsewhere; the number of nested parts is bounded here. */
static int check_parts(struct verify *v, struct tensor *t, bool nested)
{
	cleanup_free struct report_rows *rows = report_rows(t);
	int r = rows ? 0 : -ENOMEM;
	static const char too_many[] =
		"virtual datasets of virtual datasets have too many parts: not "
		"all were checked";

	for (uint32_t p = 0; p < t->nparts && r == 0; p++) {
		struct part_check *c;

		if (nested && v->nested >= REPORT_NESTED) {
			if (v->nested == REPORT_NESTED)
				verify_bad(v, t->name, -ENOTSUP, too_many);
			v->nested = REPORT_NESTED + 1;
			return 0;
		}
		v->nested += nested;
		c = calloc(1, sizeof *c);
		if (!c)
			return -ENOMEM;
		c->v = v;
		c->t = t;
		c->part = p;
		c->rows = rows[p];
		atomic_init(&c->refs, 1);
		r = submit_part(c);
		verify_part_unref(c);
	}
	return r;
}

/* Check that each mapping fits into the dataset that it takes elements from.  (A part
 * that cannot be opened is reported elsewhere.) */
static void check_mappings(struct verify *v, struct tensor *t)
{
	struct mosaic_piece piece;
	struct tile tile;
	struct box whole;
	int64_t part;

	for (unsigned i = 0; i < t->rank; i++) {
		whole.start[i] = 0;
		whole.count[i] = t->shape[i];
	}
	for (uint32_t k = 0; k < mosaic_count(t->mosaic); k++) {
		struct error err = {0};
		uint64_t at = 0;

		mosaic_tile(t->mosaic, k, &tile);
		for (unsigned i = 0; i < t->rank; i++)
			at = at * t->shape[i] + tile.to.start[i];
		if (!atomic_load(&t->parts[tile.part].layout))
			continue;
		if (tensor_find(t, &whole, at, &part, &piece, &err) == -EIO)
			verify_bad(v, t->name, -EIO, err.text);
	}
}

int verify_tensor(void *ctx, struct tensor *t)
{
	struct verify *v = ctx;
	int r;

	if (t->why_not && t->why_code != -ENOTSUP) {
		verify_bad(v, t->name, t->why_code, t->why_not);
		return 0;
	}
	if (t->why_not) {
		verify_skipped(v, t->name, t->why_not);
		return 0;
	}
	v->tensors++;
	v->nested = 0;
	r = check_parts(v, t, false);
	if (!r && t->mosaic)
		check_mappings(v, t);
	return r;
}

int verify_init(struct verify *v, const struct settings *s, struct store *store,
		uint64_t total, struct error *err)
{
	unsigned cores = system_cores();
	int r;

	memset(v, 0, sizeof *v);
	v->settings = s;
	v->store = store;
	v->prefix = "";
	pthread_mutex_init(&v->lock, NULL);
	gate_init(&v->gate, system_memory() / 4);
	progress_init(&v->progress, s->quiet ? "none" : s->progress, "verify",
		      total);
	r = pool_new(&v->pool, "verify", cores, 2 * cores, err);
	verify_source_init(v);
	return r;
}

void verify_finish(struct verify *v)
{
	if (v->pool)
		pool_free(v->pool);
	v->pool = NULL;
	progress_clear(&v->progress);
	gate_destroy(&v->gate);
	pthread_mutex_destroy(&v->lock);
}
