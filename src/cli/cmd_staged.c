/* SPDX-License-Identifier: BSD-2-Clause */
/* tensorfs staged: list what is staged, with source, size, age and state. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/stage.h"
#include "base/number.h"
#include "base/parse.h"
#include "store/shared/shared.h"

#define CHUNKS_NAME ".chunks"

static const char *state_name(const struct staging_item *i)
{
	switch (i->state) {
	case STAGING_GROWING:
		return "being staged";
	case STAGING_DEAD:
		return "interrupted";
	case STAGING_DAMAGED:
		return "damaged";
	case STAGING_READY:
		break;
	}
	return i->in_use ? "in use" : "unused";
}

static void format_age(int64_t since, char out[32])
{
	static const struct {
		int64_t unit;
		char letter;
	} units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
	int64_t age = (int64_t)time(NULL) - since;
	unsigned i = 0;

	age = age > 0 ? age : 0;
	while (i < 3 && age < units[i].unit)
		i++;
	snprintf(out, 32, "%" PRId64 "%c", age / units[i].unit,
		 units[i].letter);
}

/* Print `text`, padded to `width`.  Control characters become question marks, because a
 * terminal would obey them. */
static void staged_print_text(const char *text, int width)
{
	for (; *text || width > 0; width--) {
		unsigned char c = *text ? (unsigned char)*text++ : ' ';

		putchar(c < ' ' || c == 127 ? '?' : c);
	}
}

static void staged_print_table(const struct staging_list *l)
{
	int width = 4;

	for (size_t i = 0; i < l->list.n; i++)
		width = (int)max_u64((uint64_t)width,
				     strlen(l->list.at[i].name));
	printf("%-*s %10s %9s %5s %-12s %s\n", width, "NAME", "SIZE", "FILES",
	       "AGE", "STATE", "SOURCE");
	for (size_t i = 0; i < l->list.n; i++) {
		const struct staging_item *it = &l->list.at[i];
		char size[32], age[32];

		format_size(it->space, size, sizeof size);
		format_age(it->made, age);
		staged_print_text(it->name, width);
		printf(" %10s %9" PRIu64 " %5s %-12s ",
		       it->state == STAGING_READY ? size : "-", it->files, age,
		       state_name(it));
		staged_print_text(it->source, 0);
		putchar('\n');
	}
}

static void staged_print_json(const struct staging *s,
			      const struct staging_list *l)
{
	printf("[");
	for (size_t i = 0; i < l->list.n; i++) {
		const struct staging_item *it = &l->list.at[i];
		char path[8192];

		snprintf(path, sizeof path, "%s/%s",
			 s->at.path ? s->at.path : "", it->name);
		printf("%s\n {\"name\": ", i ? "," : "");
		cli_json_string(stdout, it->name);
		if (it->state == STAGING_READY && s->at.path) {
			printf(", \"path\": ");
			cli_json_string(stdout, path);
		}
		printf(", \"source\": ");
		cli_json_string(stdout, it->source);
		printf(", \"options\": ");
		cli_json_string(stdout, it->options);
		printf(", \"state\": \"%s\", \"in_use\": %s, \"files\": "
		       "%" PRIu64 ", \"bytes\": %" PRIu64
		       ", \"space\": %" PRIu64 ", \"staged\": %" PRId64
		       ", \"last_asked_for\": %" PRId64
		       ", \"transient\": %s, \"verified\": %s}",
		       it->state == STAGING_READY ? "ready" : state_name(it),
		       it->in_use ? "true" : "false", it->files, it->bytes,
		       it->space, it->made, it->used,
		       it->transient ? "true" : "false",
		       it->verified ? "true" : "false");
	}
	printf("%s]\n", l->list.n ? "\n" : "");
}

/* Describe the shared chunks as if they were a staged tree.  Return 0, 1 if there are
 * none, or -errno with a sentence. */
static int chunks_item(const struct settings *s, struct staging_item *out,
		       struct error *err)
{
	struct shared_summary sum;
	int r = shared_survey(s->stage.to, &sum, err);

	*out = (struct staging_item){.state = STAGING_READY,
				     .files = sum.entries,
				     .bytes = sum.bytes,
				     .space = sum.bytes,
				     .made = (int64_t)time(NULL),
				     .in_use = sum.live || sum.used};
	if (r < 0 || !sum.entries)
		return r < 0 ? r : 1;
	out->used = out->made;
	out->name = strdup(CHUNKS_NAME);
	out->source = strdup("shared chunks (unstage --chunks removes them)");
	out->options = strdup("");
	return out->name && out->source && out->options
		       ? 0
		       : error_no_memory(err, "the list of what is staged");
}

static int add_chunks(const struct settings *s, struct staging_list *l,
		      struct error *err)
{
	struct staging_item item;
	int r = chunks_item(s, &item, err);

	if (r == 0 && vec_push(&l->list, item))
		return 0;
	if (r == 1)
		return 0;
	free(item.name);
	free(item.source);
	free(item.options);
	return r < 0 ? r : error_no_memory(err, "the list of what is staged");
}

/* List the staged trees and shared chunks.  *place stays open, because the output names
 * its path. */
static int staged_list_all(const struct settings *s, struct staging *place,
			   struct staging_list *l, struct error *err)
{
	int r = staging_open(place, s->stage.to, false, err);

	if (r == 0)
		r = staging_list(place, l, err);
	else if (r == -ENOENT && stage_may_be_empty(s))
		r = 0;
	return r < 0 ? r : add_chunks(s, l, err);
}

int cmd_staged(const struct command *c, struct settings *s, int argc,
	       char **argv)
{
	struct staging_list list = {.list = VEC_EMPTY};
	struct error err = {0};
	struct staging place;
	int r;

	if (argc)
		return cli_usage(c, "unexpected argument '%s'", argv[0]);
	r = staged_list_all(s, &place, &list, &err);
	if (r < 0)
		cli_say(c, "%s", err.text);
	else if (s->json)
		staged_print_json(&place, &list);
	else if (list.list.n)
		staged_print_table(&list);
	staging_list_free(&list);
	if (r == 0 && place.control.fd >= 0)
		staging_tidy(&place);
	staging_close(&place);
	return r < 0 ? CLI_INCOMPLETE : cli_flush(c);
}
