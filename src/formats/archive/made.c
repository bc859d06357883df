/* SPDX-License-Identifier: BSD-2-Clause */
/* Make the index of an archive that this process has just written, without reading
 * the archive. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "formats/archive/archive.h"

/* Descriptors that are held open, for the archive. */
enum { OPEN_MOST = 4 };

static int load_made_points(struct archive *a, const struct archive_written *m,
			    struct error *err)
{
	struct blob *states;
	int r;

	if (!m->format)
		return 0;
	r = blob_of_memory(&states, "", 0, err);
	if (r < 0)
		return r;
	a->is_tar = true;
	return stream_of_points(&a->stream, stream_find(m->format), &a->stored,
				m->points, m->n_points, states, err);
}

int archive_index_written(const struct archive_written *m, char **index,
			  struct error *err)
{
	static const struct archive_options options;
	struct source_args args = {.path = m->path};
	struct archive *a = calloc(1, sizeof *a);
	int r;

	*index = NULL;
	if (!a) {
		members_free(m->members);
		return error_no_memory(err, "the index of the archive");
	}
	a->kind = m->format ? &archive_stream : &archive_tar;
	a->options = &options;
	a->members = *m->members;
	*m->members = (struct members){.n = 0};
	a->path = strdup(m->path);
	r = a->path ? handles_new(&args.handles, OPEN_MOST, 1, err)
		    : error_no_memory(err, "the path of the archive");
	if (r == 0)
		r = archive_find_bytes(a, &args, err);
	if (r == 0)
		r = load_made_points(a, m, err);
	if (r == 0)
		r = archive_save_index(a, err);
	if (r == 0) {
		*index = a->index;
		a->index = NULL;
	}
	archive_close(&a->source);
	handles_free(args.handles);
	return r;
}
