/* SPDX-License-Identifier: BSD-2-Clause */
/* Setters of options that say what sources are and how they are shown. */
#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "cli/option_rows.h"
#include "formats/raw/raw.h"
#include "formats/suffix.h"
#include "readahead/order/spec.h"
#include "tree/tree.h"

int option_set_sample_axes(struct settings *s, const char *value,
			   struct error *err)
{
	uint64_t n;

	if (parse_count(value, 1, RANK_MAX, &n, err) < 0)
		return -EINVAL;
	s->views.sample_axes = (unsigned)n;
	s->views.sample_axes_given = true;
	return 0;
}

int option_set_dtype_order(struct settings *s, const char *value,
			   struct error *err)
{
	s->views.source_order = !strcmp(value, "source");
	if (!s->views.source_order && strcmp(value, "little"))
		return error_set(err, -EINVAL, "'%s' is not little or source",
				 value);
	return 0;
}

int option_set_concat(struct settings *s, const char *value, struct error *err)
{
	bool back = *value == '-';
	uint64_t n;

	if (parse_count(value + back, back, RANK_MAX, &n, err) < 0)
		return -EINVAL;
	s->concat = back ? -(int)n : (int)n;
	s->concat_given = true;
	return 0;
}

int option_set_prefetch(struct settings *s, const char *value,
			struct error *err)
{
	if (!strcmp(value, "off"))
		s->no_prefetch = true;
	else if (!strcmp(value, "on"))
		s->no_prefetch = false;
	else
		return error_set(err, -EINVAL, "'%s' is not on or off", value);
	return 0;
}

int option_set_order(struct settings *s, const char *value, struct error *err)
{
	struct order_spec spec;

	s->order = value;
	return order_spec_parse(value, &spec, err);
}

int option_set_missing(struct settings *s, const char *value, struct error *err)
{
	if (!strcmp(value, "fill"))
		s->views.missing = MISSING_FILL;
	else if (!strcmp(value, "error"))
		s->views.missing = MISSING_ERROR;
	else
		return error_set(err, -EINVAL, "'%s' is not error or fill",
				 value);
	return 0;
}

int option_set_raw(struct settings *s, const char *value, struct error *err)
{
	struct raw_spec spec;

	s->raw = value;
	return raw_parse(value, &spec, err);
}

int option_set_ext(struct settings *s, const char *value, struct error *err)
{
	s->views.ext = value;
	return suffix_check(value, err);
}

int option_set_zarr_root(struct settings *s, const char *value,
			 struct error *err)
{
	char usable[FILES_NAME_MAX + 1];

	if (strlen(value) > FILES_NAME_MAX - 8 || tree_escape(value, usable))
		return error_set(err, -EINVAL,
				 "'%s' cannot be the name of a directory",
				 value);
	s->zarr_root = value;
	return 0;
}
