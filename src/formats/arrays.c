/* SPDX-License-Identifier: BSD-2-Clause */
/* Arrays of formats whose headers describe them completely: the file, the tensors, their
 * directories. */
#include "formats/arrays.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "formats/stage.h"
#include "stream/backing.h"

/* ---- the file ------------------------------------------------------------ */

static int begin_inside(struct arrays *s, const struct source_args *a,
			struct error *err)
{
	const struct backing *b = a->inside;

	s->mtime = a->like->mtime;
	s->size = b->size;
	s->file = backing_is_plain(b) ? handles_add_part(a->handles, b->file,
							 b->pos, b->size)
				      : source_staged(a, err);
	if (s->file == UINT32_MAX)
		return err->code
			       ? err->code
			       : error_no_memory(err, "a member of an archive");
	s->path = strdup(a->path);
	return s->path ? 0 : error_no_memory(err, "a member of an archive");
}

int arrays_begin(struct arrays *s, const struct source_args *a,
		 struct error *err)
{
	struct stat st;

	s->handles = a->handles;
	s->views = a->views;
	s->file = UINT32_MAX;
	intern_init(&s->intern);
	if (a->inside)
		return begin_inside(s, a, err);
	s->path = realpath(a->path, NULL);
	if (!s->path || stat(s->path, &st) < 0)
		return error_errno(err, -errno, "%s", a->path);
	s->mtime = st.st_mtime;
	if (S_ISDIR(st.st_mode))
		return 0;
	s->size = (uint64_t)st.st_size;
	s->file = handles_add(a->handles, s->path);
	if (s->file == UINT32_MAX)
		return error_no_memory(err, "the table of files");
	handles_expect(a->handles, s->file, &st);
	return 0;
}

void arrays_end(struct arrays *s)
{
	intern_free(&s->intern);
	free(s->path);
	s->path = NULL;
}

int arrays_open(const struct source_ops *ops, size_t size,
		int (*publish)(struct arrays *s, const struct source_args *a,
			       struct error *err),
		const struct source_args *a, struct source **out,
		struct error *err)
{
	struct arrays *s = calloc(1, size);
	int r;

	if (!s)
		return error_no_memory(err, "the source");
	s->source.ops = ops;
	r = arrays_begin(s, a, err);
	if (r == 0)
		r = publish(s, a, err);
	if (r < 0) {
		if (!strstr(err->text, a->path))
			error_prefix(err, "%s: ", a->path);
		ops->close(&s->source);
		return r;
	}
	*out = &s->source;
	return 0;
}

int arrays_read(const struct arrays *s, uint64_t pos, void *to, size_t n,
		struct error *err)
{
	if (pos > s->size || n > s->size - pos)
		return error_set(err, -EBADMSG,
				 "%s has %" PRIu64
				 " bytes, and ends before data that its header "
				 "promises: truncated?",
				 s->path, s->size);
	return handles_read(s->handles, s->file, pos, to, n, err);
}

void arrays_usage(const struct source *s, uint64_t *bytes, uint64_t *inodes)
{
	*bytes = ((const struct arrays *)s)->size;
	*inodes = 0;
}

/* ---- types --------------------------------------------------------------- */

/* Most levels of nested structures; a file may claim any number. */
#define DEPTH_MAX 32

static bool dtype_little_endian(struct intern *in, const struct dtype *d,
				unsigned depth, struct dtype *out)
{
	size_t n = d->nfields * sizeof(struct dtype_field);
	cleanup_free struct dtype_field *fields = NULL;

	memcpy(out, d, sizeof *out);
	out->big_endian = false;
	if (d->kind != DTYPE_STRUCT || !n)
		return true;
	fields = malloc(n);
	if (!fields || depth == DEPTH_MAX)
		return false;
	memcpy(fields, d->fields, n);
	for (uint32_t i = 0; i < d->nfields; i++)
		if (!dtype_little_endian(in, &d->fields[i].type, depth + 1,
					 &fields[i].type))
			return false;
	out->fields = intern_bytes(in, fields, n);
	return out->fields;
}

bool arrays_served(struct arrays *s, const struct dtype *stored,
		   struct dtype *out)
{
	if (!s->views.source_order)
		return dtype_little_endian(&s->intern, stored, 0, out);
	memcpy(out, stored, sizeof *out);
	return true;
}

/* ---- the tree ------------------------------------------------------------ */

int array_publish(struct tree_builder *b, uint32_t parent, const char *name,
		  struct array *a, uint32_t *dir, struct error *err)
{
	uint32_t at = name ? tree_add_dir(b, parent, name, a->t.mtime) : parent;
	struct files *f;
	int r;

	if (at == UINT32_MAX) {
		tensor_free(&a->t);
		return error_no_memory(err, "a directory of the tree");
	}
	r = tensor_files_new(&f, &a->t, &a->source->views, err);
	if (r < 0)
		return r;
	tree_set_files(b, at, f);
	if (dir)
		*dir = at;
	return 0;
}
