/* SPDX-License-Identifier: BSD-2-Clause */
/* tensorfs info: what is in a source, and what reading it costs. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/number.h"
#include "base/parse.h"
#include "cli/report.h"

/* With more tensors than this, a line each. */
#define PARAGRAPHS 8

struct informing {
	const struct command *c;
	const struct settings *s;
	struct pinner *pinner;
	json_t *list; /* NULL: text */
	uint64_t count, shown, incomplete;
	struct error err;
};

static int count_tensor(void *ctx, struct tensor *t)
{
	struct informing *in = ctx;

	(void)t;
	in->count++;
	return 0;
}

static int inform(void *ctx, struct tensor *t)
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

static int inform_all(struct informing *in, struct session *session,
		      const struct operand *o, const struct node *node)
{
	struct tree *tree = fs_tree(session->fs);
	json_t *whole;
	int r;

	in->pinner = store_pinner(session->store);
	r = report_walk(tree, node, count_tensor, in);
	if (in->s->json)
		in->list = json_array();
	else if (node->type == S_IFDIR && !tensor_of_files(node->files))
		printf("%s: %" PRIu64 " dataset%s\n\n", o->source, in->count,
		       in->count == 1 ? "" : "s");
	if (r == 0)
		r = report_walk(tree, node, inform, in);
	if (in->list) {
		whole = json_object();
		json_object_set_new(whole, "source",
				    json_text(o->source, strlen(o->source)));
		json_object_set_new(whole, "datasets", in->list);
		json_dumpf(whole, stdout,
			   JSON_INDENT(2) | JSON_PRESERVE_ORDER |
				   JSON_REAL_PRECISION(6));
		putchar('\n');
		json_decref(whole);
	}
	if (r < 0) {
		cli_say(in->c, "%s",
			in->err.code ? in->err.text : "out of memory");
		return r == -ENOMEM ? CLI_MEMORY : CLI_INCOMPLETE;
	}
	return cli_flush(in->c);
}

/* The plans of a window, until it is whole. */
static int print_plans(const struct command *c, struct session *session,
		       const struct node *node, uint64_t off, uint64_t len)
{
	struct error err = {0};
	struct files *f = node->files;
	struct attr a;
	int r = tree_attr(fs_tree(session->fs), node,
			  store_pinner(session->store), &a, &err);

	if (r == 0)
		len = off < a.size ? min_u64(len, a.size - off) : 0;
	if (r == 0 && len > 0 && f->ops->prepare)
		r = f->ops->prepare(f, node->node, off, len, &err);
	while (r == 0 && len > 0) {
		struct plan plan;

		plan_init(&plan, len);
		r = f->ops->map(f, node->node, off, &plan, &err);
		if (r < 0)
			break;
		plan_print(&plan, stdout);
		if (plan.have == 0)
			r = error_set(&err, -EIO, "nothing mapped at %" PRIu64,
				      off);
		off += plan.have;
		len -= plan.have;
	}
	if (r < 0) {
		cli_say(c, "%s", err.text);
		return CLI_INCOMPLETE;
	}
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
		return cli_usage(c, "'%s' is too much: one SOURCE[:PATH]",
				 argv[1]);
	if (s->map)
		r = parse_window(c, argv, &off, &len);
	else
		s->views.missing = MISSING_ERROR; /* to see what is missing */
	if (r == 0)
		r = operand_open(c, s, argv[0], 0, &o, &session, &node);
	if (r != 0)
		return r;
	if (!s->map) {
		r = inform_all(&in, session, &o, &node);
	} else if (node.type == S_IFREG && node.files) {
		r = print_plans(c, session, &node, off, len);
	} else {
		cli_say(c, "'%s' is not a file", argv[0]);
		r = CLI_INCOMPLETE;
	}
	session_free(session);
	operand_free(&o);
	return r;
}
