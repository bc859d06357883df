/* SPDX-License-Identifier: BSD-2-Clause */
/* Parse options by table, and print the same tables as help. */

/*
 * A command offers a few tables; a row is one option.  It is written --name VALUE,
 * --name=VALUE, -k VALUE or -kVALUE.  For `mount` and `run` every row is also a mount
 * option: -o name=VALUE[,name=VALUE], where "\," is a comma inside a value.  '-' and '_'
 * are equal in names, because similar programs differ (allow_other, cache-size).
 * Operands may stand between options, "--" ends the options, "-" is an operand.  For
 * `run` the words behind "--" are the command and are not parsed.
 *
 * -o also takes what mount(8) passes on from /etc/fstab, and names that users of similar
 * programs know; these are in option_aliases and not in the help.
 */
#include "cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/system.h"

static bool takes_mount_options(const struct command *c)
{
	return c->run == cmd_mount || c->run == cmd_run;
}

static char fold_dash(char c)
{
	return c == '_' ? '-' : c;
}

/* Do the first n bytes of `given` spell `name`? */
static bool name_is(const char *given, size_t n, const char *name)
{
	size_t i;

	for (i = 0; i < n && name[i]; i++)
		if (fold_dash(given[i]) != fold_dash(name[i]))
			return false;
	return i == n && !name[i];
}

static bool alias_is(const char *given, size_t n, const char *alias)
{
	size_t len = strlen(alias);

	if (alias[len - 1] == '*')
		return n >= len - 1 && !strncmp(given, alias, len - 1);
	return name_is(given, n, alias);
}

static const struct option *option_find_name(const struct command *c,
					     const char *given, size_t n)
{
	for (const struct option *const *t = c->tables; *t; t++)
		for (const struct option *o = *t; o->name; o++)
			if (name_is(given, n, o->name))
				return o;
	return NULL;
}

static const struct option *option_find_key(const struct command *c, char key)
{
	for (const struct option *const *t = c->tables; *t; t++)
		for (const struct option *o = *t; o->name; o++)
			if (o->key == key)
				return o;
	return NULL;
}

static const struct option_alias *option_find_alias(const struct command *c,
						    const char *given, size_t n)
{
	if (!takes_mount_options(c))
		return NULL;
	for (const struct option_alias *a = option_aliases; a->alias; a++)
		if (alias_is(given, n, a->alias))
			return a;
	return NULL;
}

/* Return the number of letters to change, add or drop to make `b` of the n bytes at `a`
 * (the Levenshtein distance); 64 if `b` is too long to compare. */
static unsigned name_distance(const char *a, size_t n, const char *b)
{
	unsigned row[64];
	size_t m = strlen(b);

	if (m + 1 > sizeof row / sizeof *row)
		return 64;
	for (size_t j = 0; j <= m; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; i <= n; i++) {
		unsigned diagonal = row[0];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= m; j++) {
			unsigned best = diagonal;

			if (fold_dash(a[i - 1]) != fold_dash(b[j - 1])) {
				best = row[j] < best ? row[j] : best;
				best = row[j - 1] < best ? row[j - 1] : best;
				best++;
			}
			diagonal = row[j];
			row[j] = best;
		}
	}
	return row[m];
}

static int option_unknown(const struct command *c, const char *dashes,
			  const char *given, size_t n, struct error *err)
{
	const struct option *close = NULL;
	unsigned best = n > 5 ? 3 : 2;

	for (const struct option *const *t = c->tables; *t && n < 40; t++)
		for (const struct option *o = *t; o->name; o++) {
			unsigned d = name_distance(given, n, o->name);

			if (d < best) {
				best = d;
				close = o;
			}
		}
	if (close)
		return error_set(err, -EINVAL,
				 "unknown option '%s%.*s'; did you mean "
				 "'%s%s'?",
				 dashes, (int)n, given, dashes, close->name);
	return error_set(err, -EINVAL, "unknown option '%s%.*s'", dashes,
			 (int)n, given);
}

static bool arg_is_optional(const struct option *o)
{
	return o->arg && o->arg[0] == '[';
}

static int note_given(struct settings *s, const char *name, struct error *err)
{
	const char **grown =
		realloc(s->given, (s->n_given + 1) * sizeof *grown);

	if (!grown)
		return error_no_memory(err, "the options");
	s->given = grown;
	s->given[s->n_given++] = name;
	return 0;
}

/* Apply one option; `spelled` is how the user wrote it, for sentences.  Return 0 or
 * -errno with a sentence. */
static int option_apply(const struct option *o, struct settings *s,
			const char *spelled, const char *value,
			struct error *err)
{
	void *member = (char *)s + o->offset;
	uint64_t number;
	int r = 0;

	if (!o->arg && value)
		return error_set(err, -EINVAL, "option '%s' takes no value",
				 spelled);
	if (o->arg && !value && !arg_is_optional(o))
		return error_set(err, -EINVAL, "option '%s' needs a value: %s",
				 spelled, o->arg);
	switch (o->kind) {
	case OPTION_FLAG:
		*(bool *)member = true;
		break;
	case OPTION_TEXT:
		if (!*value)
			return error_set(err, -EINVAL,
					 "option '%s' needs a value: %s",
					 spelled, o->arg);
		*(const char **)member = value;
		break;
	case OPTION_SIZE:
		r = parse_size(value, system_memory(), member, err);
		break;
	case OPTION_COUNT:
		r = parse_count(value, o->min, o->max, member, err);
		break;
	case OPTION_UINT:
		r = parse_count(value, o->min, o->max, &number, err);
		if (r == 0)
			*(uint32_t *)member = (uint32_t)number;
		break;
	case OPTION_MODE:
		r = parse_mode(value, member, err);
		break;
	case OPTION_CALL:
		r = o->set(s, value, err);
		break;
	}
	if (r < 0)
		return error_prefix(err, "option '%s': ", spelled);
	return note_given(s, o->name, err);
}

/* Parse and apply one item of -o: "key" or "key=value".  `item` is changed. */
static int parse_item(const struct command *c, struct settings *s, char *item,
		      struct error *err)
{
	char *equals = strchr(item, '=');
	size_t n = equals ? (size_t)(equals - item) : strlen(item);
	const char *value = equals ? equals + 1 : NULL;
	const struct option *o;
	const struct option_alias *a;

	if (n == 0 && !equals)
		return 0;
	o = option_find_name(c, item, n);
	if (!o) {
		a = option_find_alias(c, item, n);
		if (!a)
			return option_unknown(c, "-o ", item, n, err);
		if (!a->name)
			return 0;
		o = option_find_name(c, a->name, strlen(a->name));
		if (!o)
			return option_unknown(c, "-o ", item, n, err);
		value = value ? value : a->value;
	}
	if (equals)
		*equals = '\0';
	return option_apply(o, s, item, value, err);
}

static int parse_mount_options(const struct command *c, struct settings *s,
			       const char *text, struct error *err)
{
	char *list = settings_keep(s, text);
	char *from, *to, *item;
	int r = 0;

	if (!list)
		return error_no_memory(err, "the mount options");
	for (from = to = item = list; r == 0; from++) {
		if (*from == '\\' && from[1]) {
			*to++ = *++from;
		} else if (*from == ',' || !*from) {
			bool last = !*from;

			*to = '\0';
			r = parse_item(c, s, item, err);
			if (last)
				break;
			item = to = from + 1;
		} else {
			*to++ = *from;
		}
	}
	return r;
}

/* Parse and apply --name[=value].  Set *used if the following word was taken as the
 * value. */
static int parse_long(const struct command *c, struct settings *s,
		      const char *word, const char *next, bool *used,
		      struct error *err)
{
	const char *name = word + 2;
	size_t n = strcspn(name, "=");
	const char *value = name[n] ? name + n + 1 : NULL;
	const struct option *o = option_find_name(c, name, n);
	const struct option_alias *a;
	char spelled[64];

	if (!o) {
		a = option_find_alias(c, name, n);
		/* Ignored options are those of mount(8), which are accepted with -o
		 * only. */
		if (!a || !a->name)
			return option_unknown(c, "--", name, n, err);
		o = option_find_name(c, a->name, strlen(a->name));
		if (!o)
			return option_unknown(c, "--", name, n, err);
		if (a->value && !value)
			value = a->value;
	}
	if (o->arg && !arg_is_optional(o) && !value && next) {
		value = next;
		*used = true;
	}
	snprintf(spelled, sizeof spelled, "--%.*s", (int)n, name);
	return option_apply(o, s, spelled, value, err);
}

/* Return true if all of these letters are options, as in -fds. */
static bool all_keys(const struct command *c, const char *letters)
{
	while (*letters && option_find_key(c, *letters))
		letters++;
	return !*letters;
}

/* Parse and apply -abc, -kVALUE, -k VALUE or -k=VALUE.  An optional value has to be in
 * the same word. */
static int parse_short(const struct command *c, struct settings *s,
		       const char *word, const char *next, bool *used,
		       struct error *err)
{
	for (const char *p = word + 1; *p; p++) {
		const struct option *o = option_find_key(c, *p);
		char spelled[3] = {'-', *p, '\0'};
		const char *value = NULL;
		int r;

		if (*p == 'o' && takes_mount_options(c)) {
			value = p[1] ? p + 1 : next;
			*used = !p[1];
			if (!value)
				return error_set(err, -EINVAL,
						 "option '-o' needs a value");
			return parse_mount_options(c, s, value, err);
		}
		if (!o)
			return option_unknown(c, "-", p, 1, err);
		if (o->arg && !arg_is_optional(o)) {
			value = p[1] ? p + 1 : next;
			*used = !p[1];
		} else if (o->arg && p[1] && !all_keys(c, p + 1)) {
			value = p + 1 + (p[1] == '=');
		}
		r = option_apply(o, s, spelled, value, err);
		if (r < 0 || value)
			return r;
	}
	return 0;
}

int options_parse(const struct command *c, struct settings *s, int argc,
		  char **argv, int *operands, struct error *err)
{
	bool only_operands = false;
	int n = 0, r = 0;

	for (int i = 0; i < argc && r == 0; i++) {
		const char *next = i + 1 < argc ? argv[i + 1] : NULL;
		char *word = argv[i];
		bool used = false;

		if (only_operands || word[0] != '-' || !word[1]) {
			argv[n++] = word;
			continue;
		}
		if (!strcmp(word, "--") && c->run == cmd_run) {
			s->command = &argv[i + 1];
			break;
		}
		if (!strcmp(word, "--"))
			only_operands = true;
		else if (word[1] == '-')
			r = parse_long(c, s, word, next, &used, err);
		else
			r = parse_short(c, s, word, next, &used, err);
		/* Skip the next word only if an option took it as its value. */
		if (used && next)
			i++;
	}
	*operands = n;
	return r;
}

/* Print the words of `text` in lines that end before column 80; `at` is the column
 * now. */
static void print_wrapped(FILE *out, const char *text, size_t indent, size_t at)
{
	while (*text) {
		size_t n = strcspn(text, " ");

		if (at + n + 1 > 79 && at > indent) {
			fprintf(out, "\n%*s", (int)indent, "");
			at = indent;
		} else if (at > indent) {
			putc(' ', out);
			at++;
		}
		fwrite(text, 1, n, out);
		at += n;
		text += n + (text[n] == ' ');
	}
	putc('\n', out);
}

static void print_option(FILE *out, const struct option *o)
{
	enum { COLUMN = 30 };
	cleanup_free char *text = NULL;
	int n = 2;

	n += o->key ? fprintf(out, "  -%c, --%s", o->key, o->name) - 2
		    : fprintf(out, "      --%s", o->name) - 2;
	if (arg_is_optional(o))
		n += fprintf(out, "[=%s", o->arg + 1);
	else if (o->arg)
		n += fprintf(out, "=%s", o->arg);
	if (n > COLUMN - 2) {
		putc('\n', out);
		n = 0;
	}
	fprintf(out, "%*s", COLUMN - n, "");
	if (asprintf(
		    &text, "%s%s%s%s", o->help, o->fallback ? " (default " : "",
		    o->fallback ? o->fallback : "", o->fallback ? ")" : "") < 0)
		text = NULL;
	print_wrapped(out, text ? text : o->help, COLUMN, COLUMN);
}

void options_help(const struct command *c, FILE *out)
{
	fprintf(out, "Usage: tensorfs %s [OPTIONS]%s%s\n\n", c->name,
		*c->operands ? " " : "", c->operands);
	fprintf(out, "%c%s.\n", toupper((unsigned char)c->summary[0]),
		c->summary + 1);
	if (c->details) {
		putc('\n', out);
		print_wrapped(out, c->details, 0, 0);
	}
	fprintf(out, "\nOptions:\n");
	for (const struct option *const *t = c->tables; *t; t++)
		for (const struct option *o = *t; o->name; o++)
			print_option(out, o);
	if (takes_mount_options(c))
		fprintf(out, "\nEach is also a mount option: -o name=value,"
			     "name=value.\n");
	fprintf(out,
		"\nThe manual: man tensorfs-%s; sizes take K, M, G, T "
		"and %%.\n",
		!strcmp(c->name, "umount")   ? "mount"
		: !strcmp(c->name, "cat")    ? "ls"
		: !strcmp(c->name, "verify") ? "info"
					     : c->name);
}
