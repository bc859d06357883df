/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of a tensor's files, and their number. */
#include "tensors/create/private.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

size_t create_name_length(const struct create_plan *p)
{
	return strlen(p->before) + strlen(p->after) +
	       max_u64(2 * p->digits + 1, strlen(CREATE_MAIN));
}

void create_part_name(const struct create_plan *p, uint64_t part, char *buf,
		      size_t n)
{
	snprintf(buf, n, "%s%0*" PRIu64 "-%0*" PRIu64 "%s", p->before,
		 (int)p->digits, create_begin(p, part), (int)p->digits,
		 create_end(p, part), p->after);
}

void create_main_name(const struct create_plan *p, char *buf, size_t n)
{
	snprintf(buf, n, "%s" CREATE_MAIN "%s", p->before, p->after);
}

void create_file_name(const struct create_plan *p, uint64_t i, char *buf)
{
	if (i < p->parts)
		create_part_name(p, i, buf, NAME_MAX + 1);
	else
		create_main_name(p, buf, NAME_MAX + 1);
}

int create_plan_names(struct create_plan *p, struct error *err)
{
	const char *text = p->a->pattern, *slash = strrchr(text, '/');
	const char *base = slash ? slash + 1 : text;
	const char *braces = strstr(base, "{}");

	if (!strstr(text, "{}"))
		return error_set(
			err, -EINVAL,
			"'%s' has no {}, which stands for " CREATE_MAIN
			" or the rows of a part: give a name like run_{}.h5",
			text);
	if (!braces || strstr(text, "{}") != braces || strstr(braces + 2, "{}"))
		return error_set(err, -EINVAL,
				 "'%s' must have one {}, in the name of the "
				 "files, not of their directory",
				 text);
	p->dir = !slash          ? strdup(".")
		 : slash == text ? strdup("/")
				 : strndup(text, (size_t)(slash - text));
	p->before = strndup(base, (size_t)(braces - base));
	p->after = strdup(braces + 2);
	if (!p->dir || !p->before || !p->after)
		return error_no_memory(err, "the names of files");
	/* The name of the directory of new files is longer by this. */
	if (create_name_length(p) + strlen("." CREATE_MARK CREATE_RANDOM) >
	    NAME_MAX)
		return error_set(
			err, -EINVAL,
			"'%s': the names of the files would be too long", text);
	return 0;
}

int create_plan_shape(struct create_plan *p, struct error *err)
{
	const struct create_args *a = p->a;

	if (a->rank == 0)
		return error_set(err, -EINVAL,
				 "a tensor without axes has no parts");
	for (unsigned i = 0; i < a->rank; i++) {
		if (a->shape[i] == 0)
			return error_set(err, -EINVAL,
					 "a tensor without elements cannot be "
					 "written to: axis %u has length 0",
					 i);
		if (a->chunked && a->chunk[i] == 0)
			return error_set(err, -EINVAL,
					 "a chunk must have elements: axis %u "
					 "has length 0",
					 i);
		if (a->chunked && a->chunk[i] > a->shape[i])
			return error_set(
				err, -EINVAL,
				"axis %u of a chunk (%" PRIu64
				") is longer than that of the tensor (%" PRIu64
				")",
				i, a->chunk[i], a->shape[i]);
	}
	p->digits = digits_of(a->shape[0]) + 1;
	p->parts = div_up(a->shape[0], a->block);
	if (p->parts > CREATE_PARTS_MAX)
		return error_set(err, -EINVAL,
				 "there would be %" PRIu64
				 " parts, more than %d: make --block larger",
				 p->parts, CREATE_PARTS_MAX);
	return 0;
}

static bool create_skip_digits(const char **at, unsigned least)
{
	const char *from = *at;

	while (**at >= '0' && **at <= '9')
		++*at;
	return *at - from >= (ptrdiff_t)least;
}

bool create_looks_like_part(const struct create_plan *p, const char *name)
{
	size_t n = strlen(p->before);

	if (strncmp(name, p->before, n))
		return false;
	name += n;
	return create_skip_digits(&name, 2) && *name++ == '-' &&
	       create_skip_digits(&name, 2) && !strcmp(name, p->after);
}
