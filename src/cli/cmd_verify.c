/* SPDX-License-Identifier: BSD-2-Clause */
/* tensorfs verify: check that every stored byte is there and decodes. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "app/against.h"
#include "app/inside.h"
#include "app/report.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "base/parse.h"
#include "base/system.h"
#include "formats/archive/archive.h"
#include "verify/verify_private.h"

static int add_bytes(void *ctx, struct tensor *t)
{
	uint64_t *total = ctx;

	if (!t->why_not && add_overflows(*total, t->bytes, total))
		*total = UINT64_MAX;
	return 0;
}

/* Return true if checksums cover the bytes of a file as a mount reads it.  For a member
 * that is stored uncompressed the answer is false, because such a read does not compare
 * the archive's checksum. */
static bool file_has_checksums(struct session *session, const struct node *node)
{
	struct source *source = inside_source(session, node);
	struct tensor *t = tensor_of_files(node->files);
	struct archive *a = source ? archive_of_source(source) : NULL;
	struct plan plan;
	bool all = true;

	for (uint32_t p = 0; t && all && p < t->nparts; p++) {
		const struct layout *l = atomic_load(&t->parts[p].layout);

		all = !l || l->kind == LAYOUT_NESTED ||
		      verify_has_checksum(t, p, l);
	}
	if (t)
		return all;
	plan_init(&plan, 1);
	return a && archive_has_checksums(a) &&
	       node->files->ops->map(node->files, node->node, 0, &plan, NULL) ==
		       0 &&
	       !(plan.n && plan.ext[0].kind == EXTENT_FILE);
}

/* Read one file of a tensor's directory as a mount would, and list the error if that
 * fails. */
static void verify_file(struct verify *v, struct session *session,
			const struct node *node, const char *name)
{
	struct fs *fs = session->fs;
	enum { STEP = 1 << 20 };
	cleanup_free char *buf = malloc(STEP);
	char why[512];
	uint64_t off = 0;
	ssize_t n = buf ? 1 : -ENOMEM;

	while (n > 0) {
		n = fs_read_copy(fs, node->ino, off, buf, STEP);
		off += n > 0 ? (uint64_t)n : 0;
	}
	atomic_fetch_add(&v->decoded, off);
	if (off && !file_has_checksums(session, node))
		v->no_checksums = true;
	if (n < 0) {
		fs_last_error(fs, node->ino, why, sizeof why);
		verify_bad(v, name, (int)n, *why ? why : strerror((int)-n));
	}
}

/* Print "all good" only if everything was read and everything has checksums. */
static void print_verdict(const struct verify *v)
{
	const char *what = v->skipped ? "the rest is" : "all";

	if (v->bad)
		printf("%" PRIu64 " bad\n", v->bad);
	else if (v->no_checksums)
		printf("%s readable; there is data without checksums, in which "
		       "changed bytes cannot be detected\n",
		       what);
	else
		printf("%s good\n", what);
}

static void print_summary(const struct verify *v, double seconds)
{
	uint64_t decoded = atomic_load(&v->decoded);
	uint64_t stored = atomic_load(&v->stored);
	uint64_t members = atomic_load(&v->members);
	char a[32], b[32], rate[32];

	if (v->settings->json) {
		printf("%s],\n \"datasets\": %" PRIu64 ", \"members\": %" PRIu64
		       ", \"not_checked\": %" PRIu64 ", \"chunks\": %" PRIu64
		       ", \"never_written\": %" PRIu64
		       ",\n \"stored_bytes\": %" PRIu64
		       ", \"decoded_bytes\": %" PRIu64 ", \"seconds\": %.3f"
		       ",\n \"bad_count\": %" PRIu64
		       ", \"all_checksums\": %s, \"ok\": %s}\n",
		       v->bad ? "\n" : "", v->tensors, members, v->skipped,
		       atomic_load(&v->chunks), atomic_load(&v->unwritten),
		       stored, decoded, seconds, v->bad,
		       v->no_checksums ? "false" : "true",
		       v->bad ? "false" : "true");
		return;
	}
	if (v->settings->quiet)
		return;
	format_size(stored, a, sizeof a);
	format_size(decoded, b, sizeof b);
	format_size(seconds > 0 ? (uint64_t)((double)decoded / seconds) : 0,
		    rate, sizeof rate);
	if (members)
		printf("%" PRIu64 " member%s, ", members,
		       members == 1 ? "" : "s");
	if (v->tensors || !members)
		printf("%" PRIu64 " dataset%s, ", v->tensors,
		       v->tensors == 1 ? "" : "s");
	printf("%" PRIu64 " chunk%s: %s stored, %s decoded, %s/s\n",
	       atomic_load(&v->chunks), atomic_load(&v->chunks) == 1 ? "" : "s",
	       a, b, rate);
	if (v->skipped)
		printf("%" PRIu64 " not checked\n", v->skipped);
	print_verdict(v);
}

static int verify_all(const struct command *c, const struct settings *s,
		      struct session *session, struct node *node,
		      const char *name)
{
	struct tree *tree = fs_tree(session->fs);
	struct error err = {0};
	struct verify v;
	uint64_t total = 0;
	int r = report_walk(tree, node, add_bytes, &total);

	if (r == 0)
		r = verify_init(&v, s, session->store, total, &err);
	if (r < 0) {
		cli_say(c, "%s", err.code ? err.text : "out of memory");
		return CLI_MEMORY;
	}
	if (node->type == S_IFREG)
		verify_file(&v, session, node, name);
	else
		r = verify_tree(&v, tree, inside_source(session, node), node,
				"", 0);
	verify_finish(&v);
	print_summary(&v, progress_seconds(&v.progress));
	if (r < 0 || v.out_of_memory) {
		cli_say(c, "out of memory");
		return CLI_MEMORY;
	}
	r = cli_flush(c);
	return v.bad ? CLI_INCOMPLETE : r;
}

int cmd_verify(const struct command *c, struct settings *s, int argc,
	       char **argv)
{
	struct session *session;
	struct error err = {0};
	struct operand o;
	struct node node;
	int r;

	(void)argc;
	if (s->against)
		return against_exec(c, s, argv[0]);
	s->views.missing = MISSING_ERROR;
	s->threads = system_cores();
	r = operand_open(c, s, argv[0], 0, &o, &session, &node);
	if (r != 0)
		return r;
	if (s->json) {
		printf("{\"source\": ");
		cli_json_string(stdout, o.source);
		printf(", \"bad\": [");
	}
	r = inside_enter(session->tree, &node, &err);
	if (r < 0) {
		cli_say(c, "%s", err.text);
		r = cli_source_exit(r);
	} else {
		r = verify_all(c, s, session, &node, argv[0]);
	}
	session_free(session);
	operand_free(&o);
	return r;
}
