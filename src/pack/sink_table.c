/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of formats that can be written, and the last step of writing all of them. */
#include <errno.h>
#include <string.h>

#include "pack/out.h"
#include "pack/sink.h"

const struct sink_ops *const sink_table[] = {&sink_tar,      &sink_tar_gzip,
					     &sink_tar_zstd, &sink_squashfs,
					     &sink_hdf5,     NULL};

static bool sink_has_suffix(const char *path, const char *list)
{
	size_t n = strlen(path);

	for (const char *at = list; *at;) {
		size_t len = strcspn(at, " ");

		if (n > len && !strncasecmp(path + n - len, at, len))
			return true;
		at += len;
		at += *at == ' ';
	}
	return false;
}

const struct sink_ops *sink_find(const char *format, const char *path)
{
	for (size_t i = 0; sink_table[i]; i++)
		if (format ? !strcmp(format, sink_table[i]->name)
			   : sink_has_suffix(path, sink_table[i]->suffixes))
			return sink_table[i];
	return NULL;
}

int sink_publish(const struct sink_args *a, struct out *o,
		 const uint64_t xxh3[2], struct error *err)
{
	int r = out_sync(o, err);

	if (r == 0 && a->stop && *a->stop)
		r = error_set(err, -EINTR, "interrupted");
	if (r == 0 && a->check)
		r = a->check(a->check_ctx, a->path, out_fd(o), xxh3, err);
	return r < 0 ? r : out_publish(o, err);
}
