/* SPDX-License-Identifier: BSD-2-Clause */
/* Print what a source reports about itself (a JSON object) as lines for people. */
#include "app/about.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "base/parse.h"

#define LABEL 22

void about_say(const char *text, FILE *out)
{
	for (; *text; text++)
		putc((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text,
		     out);
}

static bool is_size(const char *key)
{
	size_t n = strlen(key);

	return !strcmp(key, "bytes") || !strcmp(key, "size") ||
	       (n > 6 && !strcmp(key + n - 6, "_bytes"));
}

static void print_about_label(const char *key, unsigned depth, FILE *out)
{
	unsigned used = 2 + 2 * depth;

	fprintf(out, "%*s", (int)used, "");
	for (; *key; key++, used++)
		putc(*key == '_' ? ' ' : *key, out);
	fprintf(out, "%*s ", used < LABEL ? (int)(LABEL - used) : 0, "");
}

static bool print_time(const char *key, json_int_t n, FILE *out)
{
	time_t t = (time_t)n;
	char text[64];
	struct tm tm;

	if (strcmp(key, "mtime") || !localtime_r(&t, &tm) ||
	    !strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %z", &tm))
		return false;
	fputs(text, out);
	return true;
}

static void print_number(const char *key, const json_t *v, FILE *out)
{
	json_int_t n = json_integer_value(v);
	char size[32];

	if (print_time(key, n, out))
		return;
	if (json_is_real(v)) {
		fprintf(out, "%.2f", json_real_value(v));
	} else if (is_size(key) && n >= 1024) {
		format_size((uint64_t)n, size, sizeof size);
		fprintf(out, "%s (%" JSON_INTEGER_FORMAT " bytes)", size, n);
	} else {
		fprintf(out, "%" JSON_INTEGER_FORMAT "%s", n,
			is_size(key) ? " bytes" : "");
	}
}

static bool is_value_empty(const char *key, const json_t *v)
{
	if (json_is_integer(v))
		return !json_integer_value(v) && strcmp(key, "files") &&
		       strcmp(key, "size") && strcmp(key, "mtime");
	if (json_is_null(v))
		return strcmp(key, "index") != 0;
	return json_is_false(v) || (json_is_array(v) && !json_array_size(v));
}

/* A row is printed like "offset 0, bytes 512, at 1024". */
static void print_row(const json_t *v, FILE *out)
{
	const char *key, *comma = "";
	json_t *x;

	if (json_is_string(v)) {
		about_say(json_string_value(v), out);
		return;
	}
	json_object_foreach((json_t *)(uintptr_t)v, key, x)
	{
		fprintf(out, "%s%s ", comma, key);
		if (json_is_string(x))
			about_say(json_string_value(x), out);
		else
			fprintf(out, "%" JSON_INTEGER_FORMAT,
				json_integer_value(x));
		comma = ", ";
	}
}

static void print_object(const json_t *o, unsigned depth, FILE *out)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)(uintptr_t)o, key, v)
	{
		if (is_value_empty(key, v))
			continue;
		if (json_is_object(v)) {
			print_object(v, depth, out);
			continue;
		}
		if (!json_is_array(v))
			print_about_label(key, depth, out);
		for (size_t i = 0; i < json_array_size(v); i++) {
			print_about_label(key, depth, out);
			print_row(json_array_get(v, i), out);
			putc('\n', out);
		}
		if (json_is_array(v))
			continue;
		if (json_is_string(v))
			about_say(json_string_value(v), out);
		else if (json_is_number(v))
			print_number(key, v, out);
		else
			fputs(json_is_null(v) ? "none" : "yes", out);
		putc('\n', out);
	}
}

void about_print(const json_t *o, FILE *out)
{
	print_object(o, 0, out);
}
