/* SPDX-License-Identifier: BSD-2-Clause */
/* Say at mount which tensors the cache is too small for. */
/*
 * A sample that decodes more than the cache holds decodes it anew for each
 * neighbour: a cache just below the limit is worth nothing.  What a sample
 * decodes follows from its shape and that of the chunks, so it can be said
 * before anybody waits for it.  Of a virtual dataset that takes a look at one of
 * its parts, so only that many are looked at.
 */
#include <inttypes.h>
#include <string.h>

#include "app/report.h"
#include "base/log.h"
#include "base/parse.h"

#define SAID_MAX 5
#define VIRTUAL_MAX 64

struct cost_check {
	const struct settings *s;
	const struct tensor *last; /* that was said */
	unsigned said, looked;
};

static void say_sample_cost(const struct cost_check *c, const struct tensor *t,
			    const struct sample_cost *cost)
{
	char needs[32], has[32];

	format_size(cost->decoded, needs, sizeof needs);
	format_size(c->s->cache_size, has, sizeof has);
	log_warn("%s: one sample decodes %" PRIu64 " chunk%s, %s, more than "
		 "cache-size (%s): each sample decodes %s anew; cure: "
		 "cache-size=%" PRIu64 "M, or smaller chunks",
		 t->name, cost->chunks, cost->chunks == 1 ? "" : "s", needs,
		 has, cost->chunks == 1 ? "it" : "them",
		 ((cost->decoded + cost->decoded / 4) >> 20) + 1);
}

/* Its structure is said, and its fields come right after it. */
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
