/* SPDX-License-Identifier: BSD-2-Clause */
/* Comma-separated values (RFC 4180). */
#include "base/csv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

struct csv {
	char *at, *end;
	uint64_t line;
};

static int csv_error(const struct csv *c, const char *what, struct error *err)
{
	return error_set(err, -EBADMSG, "line %" PRIu64 ": %s", c->line, what);
}

/* Move the text between quotes to `to`, doubled quotes made single. c->at is then behind
 * the closing quote. */
static int csv_read_quoted(struct csv *c, char *to, struct error *err)
{
	c->at++;
	for (;;) {
		if (c->at == c->end)
			return csv_error(c, "a quoted field does not end", err);
		if (*c->at == '"' && (++c->at == c->end || *c->at != '"'))
			break;
		c->line += *c->at == '\n';
		*to++ = *c->at++;
	}
	*to = '\0';
	if (c->at < c->end && *c->at == '\r')
		c->at++;
	else if (c->at < c->end && *c->at == ',')
		return 0;
	if (c->at < c->end && *c->at != '\n')
		return csv_error(c, "text follows a closing quote", err);
	return 0;
}

/* Read a field; *ended is the character that ends it: ',', '\n', or '\0' at the end of
 * the text. */
static int csv_read_field(struct csv *c, char **out, char *ended,
			  struct error *err)
{
	bool quoted = c->at < c->end && *c->at == '"';
	int r = 0;

	*out = c->at;
	if (quoted)
		r = csv_read_quoted(c, *out, err);
	else
		while (c->at < c->end && *c->at != ',' && *c->at != '\n')
			c->at++;
	if (r < 0)
		return r;
	*ended = c->at < c->end ? *c->at : '\0';
	if (!quoted) {
		char *stop = c->at;

		stop -= *ended != ',' && stop > *out && stop[-1] == '\r';
		*stop = '\0';
	}
	c->at += c->at < c->end;
	return 0;
}

int csv_parse(char *text, size_t n, csv_row *row, void *ctx, struct error *err)
{
	struct csv c = {text, text + n, 1};
	char *field[CSV_FIELDS_MOST];

	if (memchr(text, '\0', n))
		return error_set(err, -EBADMSG,
				 "it is not a text: it contains a NUL byte");
	if (n >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
		c.at += 3;
	while (c.at < c.end) {
		uint64_t line = c.line;
		size_t fields = 0;
		char ended;
		int r;

		do {
			if (fields == CSV_FIELDS_MOST)
				return csv_error(&c, "more than 256 fields",
						 err);
			r = csv_read_field(&c, &field[fields++], &ended, err);
			if (r < 0)
				return r;
		} while (ended == ',');
		c.line++;
		if (fields == 1 && !*field[0])
			continue;
		r = row(ctx, line, field, fields, err);
		if (r != 0)
			return r;
	}
	return 0;
}
