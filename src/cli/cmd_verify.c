/* SPDX-License-Identifier: BSD-2-Clause */
/* tensorfs verify: check that every stored byte is there and decodes. */
#include <errno.h>
#include <limits.h>
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

/* Check a symlink.  One whose text is an absolute path stands for a part in another file:
 * if that is not there, the part is missing.  Links within a file are relative, and may
 * dangle intentionally, so those are only counted as not checked. */
static void verify_link(struct verify *v, const struct tree *t,
			const struct node *n)
{
	char path[PATH_MAX], why[PATH_MAX + 64];
	const char *to = tree_link_target(t, n);
	struct error err;
	struct node end;

	if (!to || tree_path(t, n->ino, path, sizeof path) < 0)
		return;
	if (to[0] == '/') {
		snprintf(why, sizeof why,
			 "its data is in %s, which does not exist", to);
		verify_bad(v, path, -ENODATA, why);
	} else if (tree_walk(t, path, &end, &err) < 0) {
		snprintf(why, sizeof why,
			 "it leads to %s, which does not exist", to);
		verify_skipped(v, path, why);
	}
}

/* Return what the source knows about a directory, as JSON text (malloc'ed); NULL if that
 * is nothing, or with `err` set. */
static char *about_of(const struct node *dir, struct error *err)
{
	struct tensor *t = dir->files ? tensor_of_files(dir->files) : NULL;

	if (t)
		return t->why_not || !t->ops->about ? NULL
						    : t->ops->about(t, err);
	return dir->files && dir->files->ops->about
		       ? dir->files->ops->about(dir->files, dir->node, err)
		       : NULL;
}

static void verify_attributes(struct verify *v, const struct tree *t,
			      const struct node *dir)
{
	struct error err = {0};
	char path[PATH_MAX];
	cleanup_free char *text = about_of(dir, &err);
	json_t *about = text ? json_loads(text, JSON_ALLOW_NUL, NULL) : NULL;
	const char *name;
	json_t *why;

	if (tree_path(t, dir->ino, path, sizeof path) < 0)
		snprintf(path, sizeof path, "(a path that is too long)");
	/* A missing or changed part was listed when its data was read. */
	if (!text && err.code && err.code != -ENODATA && err.code != -ESTALE)
		verify_bad(v, path, err.code, err.text);
	json_object_foreach(json_object_get(about, "unreadable_attributes"),
			    name, why)
	{
		cleanup_free char *whole = NULL;

		if (asprintf(&whole, "%s@%s", path, name) < 0)
			whole = NULL;
		verify_bad(v, whole ? whole : path, -EIO,
			   json_string_value(why));
	}
	json_decref(about);
}

void verify_beside(struct verify *v, const struct tree *t,
		   const struct node *dir, unsigned depth)
{
	char name[FILES_NAME_MAX + 1];
	struct node n;

	if (dir->type == S_IFDIR)
		verify_attributes(v, t, dir);
	if (dir->type != S_IFDIR || (dir->files && tensor_of_files(dir->files)))
		return;
	for (uint64_t i = 0;
	     depth < 128 && !tree_entry(t, dir->ino, i, &n, name, sizeof name);
	     i++) {
		if (n.type == S_IFDIR && !n.node)
			verify_beside(v, t, &n, depth + 1);
		if (n.type == S_IFLNK)
			verify_link(v, t, &n);
	}
}

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
