/* SPDX-License-Identifier: BSD-2-Clause */
/* tensorfs info: what is in a source, and what reading it costs. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "app/about.h"
#include "app/inside.h"
#include "app/report.h"
#include "base/json.h"
#include "base/number.h"
#include "base/parse.h"

/* With more tensors than this, each gets one line instead of a paragraph. */
#define PARAGRAPHS 8
/* Most sources inside the source that the text output lists. */
#define INSIDE_LINES 20

struct informing {
	const struct command *c;
	const struct settings *s;
	struct pinner *pinner;
	json_t *list; /* NULL: text */
	uint64_t count, shown, incomplete;
	struct error err;
};

static struct tensor *info_tensor_of(const struct node *n)
{
	return n->files ? tensor_of_files(n->files) : NULL;
}

static int count_tensor(void *ctx, struct tensor *t)
{
	struct informing *in = ctx;

	(void)t;
	in->count++;
	return 0;
}

static int inform_tensor(void *ctx, struct tensor *t)
{
	struct informing *in = ctx;
	struct report r;
	int code = report_make(&r, t, &in->s->views, in->pinner, &in->err);

	if (code < 0)
		return code;
	if (r.n_problems)
		in->incomplete++;
	if (in->list)
		json_array_append_new(in->list, report_json(&r));
	else if (in->count > PARAGRAPHS)
		report_print_line(&r, stdout);
	else
		report_print(&r, stdout);
	if (!in->list && in->count <= PARAGRAPHS && ++in->shown < in->count)
		putchar('\n');
	report_free(&r);
	return 0;
}

/* Return the name of a source's format, in a word or two. */
static const char *format_of(const struct source *s)
{
	return s->ops->format ? s->ops->format(s) : s->ops->name;
}

/* Print a heading, unless it is NULL, and a report on each dataset below a node. */
static int inform_datasets(struct informing *in, struct session *session,
			   const struct node *node, const char *heading)
{
	struct tree *tree = fs_tree(session->fs);
	const struct source *source = inside_source(session, node);
	int r;

	in->count = in->shown = 0;
	r = report_walk(tree, node, count_tensor, in);
	if (heading && !in->list) {
		about_say(heading, stdout);
		printf(": %s%s%" PRIu64 " dataset%s\n\n",
		       source ? format_of(source) : "", source ? ", " : "",
		       in->count, in->count == 1 ? "" : "s");
	}
	return r < 0 ? r : report_walk(tree, node, inform_tensor, in);
}

/* Fill in `entry` with what is known of a source inside without reading it.  HDF5 files
 * are opened and reported on as if they were the operand. */
static int inform_inside(struct informing *in, struct session *session,
			 struct node *n, json_t *entry)
{
	struct nest_inside x;
	struct error err = {0};
	json_t *outer = in->list;
	char path[4096];
	int r = 0;

	nest_inside(n->graft, &x);
	if (x.source)
		x.ops = x.source->ops;
	if (tree_path(session->tree, n->ino, path, sizeof path) < 0)
		snprintf(path, sizeof path, "?");
	json_object_set_new(entry, "path", json_text(path, strlen(path)));
	json_object_set_new(entry, "kind",
			    x.ops ? json_string(x.ops->name) : json_null());
	json_object_set_new(entry, "bytes", json_integer((json_int_t)x.size));
	if (x.ops && !x.ops->archive &&
	    inside_enter(session->tree, n, &err) == 0) {
		in->list = outer ? json_array() : NULL;
		if (!outer)
			putchar('\n');
		r = inform_datasets(in, session, n, path);
		if (outer)
			json_object_set_new(entry, "datasets", in->list);
		in->list = outer;
	} else if (err.code) {
		json_object_set_new(entry, "error",
				    json_text(err.text, strlen(err.text)));
	}
	nest_inside(n->graft, &x);
	if (x.source && x.source->ops->about)
		json_object_set_new(entry, "archive",
				    x.source->ops->about(x.source, 0));
	return r;
}

static void print_inside(const json_t *list)
{
	size_t n = json_array_size(list), i;
	char size[32];

	if (n)
		printf("\n%zu inside, shown as director%s:\n", n,
		       n == 1 ? "y" : "ies");
	for (i = 0; i < n && i < INSIDE_LINES; i++) {
		const json_t *x = json_array_get(list, i);
		const json_t *kind = json_object_get(x, "kind");
		const json_t *error = json_object_get(x, "error");

		format_size((uint64_t)json_integer_value(
				    json_object_get(x, "bytes")),
			    size, sizeof size);
		printf("  %-10s %10s  ",
		       kind && json_is_string(kind) ? json_string_value(kind)
						    : "?",
		       size);
		about_say(json_string_value(json_object_get(x, "path")),
			  stdout);
		if (error)
			printf(": cannot be opened: %s",
			       json_string_value(error));
		putchar('\n');
	}
	if (n > i)
		printf("  and %zu more\n", n - i);
}

static int inform_all_inside(struct informing *in, struct session *session,
			     const struct node *node, json_t *whole)
{
	json_t *list = json_array();
	struct node n;
	uint32_t i = 0;
	int r = 0;

	while (r == 0 && inside_next(session->tree, node, &i, &n)) {
		json_t *entry = json_object();

		r = inform_inside(in, session, &n, entry);
		json_array_append_new(list, entry);
	}
	if (!in->list)
		print_inside(list);
	if (json_array_size(list))
		json_object_set(whole, "inside", list);
	json_decref(list);
	return r;
}

/* Report on the tensors among the members of an archive, if there are any. */
static int inform_beside(struct informing *in, struct session *session,
			 const struct node *node)
{
	int r = report_walk(fs_tree(session->fs), node, count_tensor, in);

	if (r < 0 || !in->count)
		return r;
	if (!in->list)
		putchar('\n');
	return inform_datasets(in, session, node, NULL);
}

static int inform_source(struct informing *in, struct session *session,
			 const struct operand *o, const struct node *node,
			 json_t *whole)
{
	int r;
	const struct source *source = inside_source(session, node);
	json_t *about;

	if (source && (!source->ops->about || info_tensor_of(node)))
		json_object_set_new(whole, "format",
				    json_string(format_of(source)));
	if (!source || !source->ops->about || info_tensor_of(node))
		return inform_datasets(in, session, node,
				       node->type == S_IFDIR &&
						       !info_tensor_of(node)
					       ? o->source
					       : NULL);
	about = source->ops->about(source, node->node);
	if (!about)
		return error_no_memory(&in->err,
				       "the description of the archive");
	if (!node->node)
		json_object_set(whole, "format",
				json_object_get(about, "format"));
	json_object_set(whole, node->node ? "member" : "archive", about);
	if (!in->list) {
		about_say(*o->path ? o->path : o->source, stdout);
		putchar('\n');
		about_print(about, stdout);
	}
	json_decref(about);
	r = inform_beside(in, session, node);
	return r < 0 ? r : inform_all_inside(in, session, node, whole);
}

static int inform_all(struct informing *in, struct session *session,
		      const struct operand *o, struct node *node)
{
	json_t *whole = json_object();
	int r = inside_enter(session->tree, node, &in->err);

	in->pinner = store_pinner(session->store);
	json_object_set_new(whole, "source",
			    json_text(o->source, strlen(o->source)));
	if (in->s->json) {
		in->list = json_array();
		json_object_set_new(whole, "datasets", in->list);
	}
	if (r == 0)
		r = inform_source(in, session, o, node, whole);
	if (in->list) {
		json_dumpf(whole, stdout,
			   JSON_INDENT(2) | JSON_PRESERVE_ORDER |
				   JSON_REAL_PRECISION(6));
		putchar('\n');
	}
	json_decref(whole);
	if (r < 0) {
		cli_say(in->c, "%s",
			in->err.code ? in->err.text : "out of memory");
		return r == -ENOMEM ? CLI_MEMORY : CLI_INCOMPLETE;
	}
	return cli_flush(in->c);
}

/* Print the plans of a window of a file, one after the other until all of it is
 * mapped. */
static int print_plans(const struct command *c, struct session *session,
		       const struct node *node, uint64_t off, uint64_t len,
		       bool json)
{
	const uint64_t begin = off;
	struct error err = {0};
	struct files *f = node->files;
	struct attr a;
	int r = tree_attr(fs_tree(session->fs), node,
			  store_pinner(session->store), &a, &err);

	if (r == -ENOENT && !err.text[0])
		error_set(&err, r, "there is no such file");
	if (r == 0)
		len = off < a.size ? min_u64(len, a.size - off) : 0;
	if (r == 0 && len > 0 && f->ops->prepare)
		r = f->ops->prepare(f, node->node, off, len, &err);
	if (r == 0 && json)
		putchar('[');
	while (r == 0 && len > 0) {
		struct plan plan;

		plan_init(&plan, len);
		r = f->ops->map(f, node->node, off, &plan, &err);
		if (r < 0)
			break;
		if (json)
			plan_print_json(&plan, session->handles, off,
					off == begin, stdout);
		else
			plan_print(&plan, session->handles, stdout);
		if (plan.have == 0)
			r = error_set(&err, -EIO, "nothing mapped at %" PRIu64,
				      off);
		off += plan.have;
		len -= plan.have;
	}
	/* After a failure the JSON array is left open, so that it is not taken for
	 * complete. */
	if (r < 0) {
		cli_say(c, "%s", err.text);
		return CLI_INCOMPLETE;
	}
	if (json)
		puts(off == begin ? "]" : "\n]");
	return cli_flush(c);
}

static int parse_window(const struct command *c, char **argv, uint64_t *off,
			uint64_t *len)
{
	struct error err = {0};

	if (parse_size(argv[1], 0, off, &err) < 0 ||
	    parse_size(argv[2], 0, len, &err) < 0)
		return cli_usage(c, "%s", err.text);
	return 0;
}

int cmd_info(const struct command *c, struct settings *s, int argc, char **argv)
{
	struct informing in = {.c = c, .s = s};
	struct session *session;
	struct operand o;
	struct node node;
	uint64_t off = 0, len = 0;
	int r = 0;

	if (s->map && argc != 3)
		return cli_usage(c, "--map takes SOURCE:PATH OFFSET LENGTH");
	if (!s->map && argc != 1)
		return cli_usage(
			c,
			"unexpected argument '%s'; expected one SOURCE[:PATH]",
			argv[1]);
	if (s->map)
		r = parse_window(c, argv, &off, &len);
	else
		s->views.missing =
			MISSING_ERROR; /* so that missing parts are reported */
	if (r == 0)
		r = operand_open(c, s, argv[0], 0, &o, &session, &node);
	if (r != 0)
		return r;
	if (!s->map) {
		r = inform_all(&in, session, &o, &node);
	} else if (node.type == S_IFREG && node.files) {
		r = print_plans(c, session, &node, off, len, s->json);
	} else {
		cli_say(c, "'%s' is not a file", argv[0]);
		r = CLI_INCOMPLETE;
	}
	session_free(session);
	operand_free(&o);
	return r;
}
