/* SPDX-License-Identifier: BSD-2-Clause */
/* Warns at mount time about tensors that the cache is too small for. */
/* If a sample decodes more bytes than the cache holds, its neighbours decode the same
 * chunks again: a cache just below that limit saves nothing.  What a sample decodes
 * follows from its shape and the shape of the chunks, so the warning can come before the
 * first read.  For a virtual dataset one of its parts has to be opened, so only
 * VIRTUAL_MAX of them are examined. */
#include <inttypes.h>
#include <string.h>

#include "app/report.h"
#include "base/log.h"
#include "base/parse.h"

#define SAID_MAX 5
#define VIRTUAL_MAX 64

struct cost_check {
	const struct settings *s;
	const struct tensor *last; /* the tensor of the last warning */
	unsigned said, looked;
};

static void say_sample_cost(const struct cost_check *c, const struct tensor *t,
			    const struct sample_cost *cost)
{
	char needs[32], has[32];

	format_size(cost->decoded, needs, sizeof needs);
	format_size(c->s->cache_size, has, sizeof has);
	log_warn("%s: one sample decodes %" PRIu64 " chunk%s, %s, more than "
		 "cache-size (%s): each sample decodes %s again; remedy: "
		 "cache-size=%" PRIu64 "M, or smaller chunks",
		 t->name, cost->chunks, cost->chunks == 1 ? "" : "s", needs,
		 has, cost->chunks == 1 ? "it" : "them",
		 ((cost->decoded + cost->decoded / 4) >> 20) + 1);
}

/* Return true if `t` is a field of the structure that was warned about last.  The walk
 * visits fields right after their structure. */
static bool is_field_of_last(const struct cost_check *c, const struct tensor *t)
{
	static const char fields[] = "/fields/";
	size_t n = c->last ? strlen(c->last->name) : 0;

	return n && !strncmp(t->name, c->last->name, n) &&
	       !strncmp(t->name + n, fields, strlen(fields));
}

static int warn_if_costly(void *ctx, struct tensor *t)
{
	struct cost_check *c = ctx;
	struct sample_cost cost;

	if (t->why_not || !dtype_is_binary(&t->dtype) ||
	    is_field_of_last(c, t) ||
	    (tensor_is_distributed(t) && c->looked++ >= VIRTUAL_MAX))
		return 0;
	if (tensor_sample_cost(t, view_sample_axes(&c->s->views, t), &cost,
			       NULL) < 0 ||
	    cost.decoded <= c->s->cache_size)
		return 0;
	c->last = t;
	if (c->said++ < SAID_MAX)
		say_sample_cost(c, t, &cost);
	return 0;
}

void cost_warn(struct session *session, const struct settings *s)
{
	struct cost_check c = {.s = s};
	struct node root;

	if (tree_node(session->tree, TREE_ROOT, &root) < 0)
		return;
	report_walk_fields(session->tree, &root, warn_if_costly, &c);
	if (c.said > SAID_MAX)
		log_warn("%u more datasets have samples that decode more than "
			 "the cache holds",
			 c.said - SAID_MAX);
}
