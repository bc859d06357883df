/* SPDX-License-Identifier: BSD-2-Clause */
/* Parse option views=: names of views of tensors, and of members of archives. */
#include <errno.h>
#include <string.h>

#include "formats/source.h"

int source_views_parse(struct view_options *tensors,
		       struct member_view_options *members, const char *list,
		       struct error *err)
{
	uint64_t of_tensors = 0;
	uint32_t of_members = 0;

	while (*list) {
		size_t len = strcspn(list, ",+");
		uint64_t t = view_rows(list, len);
		uint32_t m = member_view_rows(list, len);

		if (!(t | m))
			return error_set(err, -EINVAL,
					 "there is no view '%.*s' (views: %s; "
					 "of archives and directories: %s)",
					 (int)len, list, view_names(),
					 member_view_names());
		of_tensors |= t;
		of_members |= m;
		list += len + (list[len] != 0);
	}
	if (!(of_tensors | of_members))
		return error_set(err, -EINVAL,
				 "no view given (views: %s; of archives and "
				 "directories: %s)",
				 view_names(), member_view_names());
	if (of_tensors)
		tensors->views = of_tensors;
	members->listed = of_members;
	return 0;
}
