/* SPDX-License-Identifier: BSD-2-Clause */
/* Source: a .npz is a zip whose members NAME.npy are tensors, too. */
/*
 * Members are files as those of any zip; beside NAME.npy there is NAME/ with the views.
 * A stored member's array is shown where it is.  A deflated one is cut into chunks of
 * about a MiB, runs of its bytes, which are read from the windows of the archive's stream.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/number.h"
#include "source/archive.h"
#include "source/npy.h"

#define MADE_BYTES (UINT64_C(1) << 20)
/* Members that are shown as tensors: each header is read when it is opened. */
#define ARRAYS_MAX 10000
#define PATH_ROOM 1024
#define INFLATED "tensorfs: from a deflated member"

/* ---- arrays that are compressed ------------------------------------------ */

struct inflated {
	struct backing from; /* the whole member */
	uint64_t pos;        /* of the first element */
	struct recode recode;
	bool turned;
};

/* Runs of elements as they lie: whole inner axes, a piece of the next one. */
static void run_chunk(const struct npy_file *f, uint64_t *chunk)
{
	uint64_t left = max_u64(MADE_BYTES / f->dtype.size, 1);

	for (unsigned i = f->rank; i-- > 0;) {
		chunk[i] = max_u64(min_u64(f->shape[i], left), 1);
		left = chunk[i] == f->shape[i] ? left / chunk[i] : 1;
		left = max_u64(left, 1);
	}
}

static int make_run(const struct inflated *x, const struct grid *g,
		    uint64_t chunk, unsigned char *out, size_t size,
		    struct error *err)
{
	uint64_t start[RANK_MAX], at = 0, n = 1;
	int r;

	grid_origin(g, chunk, start);
	for (unsigned i = 0; i < g->rank; i++) {
		at = at * g->shape[i] + start[i];
		n *= min_u64(g->chunk[i], g->shape[i] - start[i]);
	}
	r = backing_read(&x->from, x->pos + at * g->elem, out, n * g->elem,
			 err);
	if (r < 0)
		return r;
	memset(out + n * g->elem, 0, size - n * g->elem);
	recode_run(&x->recode, out, out, n);
	return 0;
}

static int make(struct array *a, uint32_t part, const struct grid *g,
		uint64_t chunk, void *out, size_t size, struct error *err)
{
	const struct inflated *x = a->own;
	const struct npy_turned t = {.file = x->from.file,
				     .pos = x->pos,
				     .recode = &x->recode,
				     .from = &x->from};

	(void)part;
	return x->turned ? npy_turn(a->t.handles, &t, g, chunk, out, size, err)
			 : make_run(x, g, chunk, out, size, err);
}

/* Its file may be the archive of an archive, with many members of this name. */
static bool origin(const struct array *a, uint32_t part, FILE *out)
{
	const struct inflated *x = a->own;
	char text[1024];

	(void)part;
	return backing_origin(&x->from, text, sizeof text) &&
	       fprintf(out, "%s from byte %llu of %s",
		       x->turned ? "turned" : "in order",
		       (unsigned long long)x->pos, text) > 0;
}

static void free_inflated(struct array *a)
{
	free(a->own);
}

static const struct array_ops inflated_ops = {
	.make = make,
	.origin = origin,
	.free = free_inflated,
};

static int inflated_array(struct arrays *s, const struct backing *b,
			  const struct npy_file *f, const char *name,
			  struct array **out, struct error *err)
{
	struct inflated *own = calloc(1, sizeof *own);
	struct array_layout l = {.kind = ARRAY_MADE,
				 .file = s->file,
				 .stored = f->dtype,
				 .maker = INFLATED};
	struct array_spec spec = {.name = name,
				  .stored = f->dtype,
				  .rank = f->rank,
				  .layout = &l,
				  .ops = &inflated_ops,
				  .own = own};
	struct dtype served;

	if (!own || !arrays_served(s, &f->dtype, &served)) {
		free(own);
		return error_set(err, -ENOMEM, "out of memory");
	}
	if (f->data > b->size || f->bytes > b->size - f->data ||
	    !dtype_recode(&f->dtype, &served, NULL, &own->recode)) {
		free(own);
		return f->data > b->size || f->bytes > b->size - f->data
			       ? error_set(err, -EBADMSG,
					   "its header promises more bytes of "
					   "data than it has: truncated?")
			       : error_set(err, -ENOTSUP,
					   "its type is too complicated");
	}
	own->from = *b;
	own->pos = f->data;
	own->turned = npy_is_turned(f);
	memcpy(l.shape, f->shape, sizeof l.shape);
	memcpy(spec.shape, f->shape, sizeof spec.shape);
	if (own->turned)
		npy_fortran_chunk(f, l.chunk);
	else
		run_chunk(f, l.chunk);
	return array_new(s, &spec, out, err);
}

/* ---- one member ---------------------------------------------------------- */

static int open_array(struct arrays *s, const struct backing *b,
		      const char *name, struct array **out, struct error *err)
{
	size_t n = (size_t)min_u64(b->size, NPY_HEADER_MOST);
	cleanup_free unsigned char *head = malloc(n ? n : 1);
	struct npy_file f;
	int r;

	if (!head)
		return error_set(err, -ENOMEM, "out of memory");
	r = backing_read(b, 0, head, n, err);
	if (r == 0)
		r = npy_read(head, n, &s->intern, &f, err);
	if (r < 0)
		return r;
	return backing_is_plain(b) ? npy_array(s, b->file, b->pos, b->size, &f,
					       name, out, err)
				   : inflated_array(s, b, &f, name, out, err);
}

/* What is no array, or none that can be shown, is listed with the reason. */
static int publish_one(struct archive *a, const struct source_args *args,
		       uint64_t record, const char *name, struct error *err)
{
	const struct member_record *r = &a->members.at[record];
	struct backing b = volume_range(&a->volume, r->data, r->size);
	struct error why = {0};
	struct array *array;
	int e = open_array(a->arrays, &b, name, &array, &why);

	if (e == 0)
		return array_publish(args->tree, args->dir, name, array, NULL,
				     err);
	if (e == -ENOMEM) {
		*err = why;
		return e;
	}
	log_warn("%s: %s.npy: %s", a->path, name, why.text);
	return array_publish_not(a->arrays, args->tree, args->dir, name, &why,
				 err);
}

/* "a" of "a.npy"; a directory has no slash in its name.  False: it is none. */
static bool name_of(const struct archive *a, uint64_t record,
		    char name[PATH_ROOM])
{
	const struct member_record *r = &a->members.at[record];
	char path[PATH_ROOM];
	size_t n;

	members_path(&a->members, record, path, sizeof path);
	n = strlen(path);
	if (r->kind != MEMBER_RANGE || n < 6 || n >= FILES_NAME_MAX ||
	    strcasecmp(path + n - 4, ".npy") != 0)
		return false;
	memcpy(name, path + 1, n - 5);
	name[n - 5] = '\0';
	for (char *p = name; *p; p++)
		if (*p == '/')
			*p = ':';
	return true;
}

static int publish(struct archive *a, const struct source_args *args,
		   struct error *err)
{
	unsigned n = 0;
	int r = 0;

	for (uint64_t i = 1; i < a->members.n && r == 0; i++) {
		char name[PATH_ROOM];
		uint64_t other;

		if (!name_of(a, i, name))
			continue;
		if (members_find(&a->members, 0, name, &other) == 0) {
			log_warn("%s: %s.npy is only a file: another member "
				 "has the name %s",
				 a->path, name, name);
			continue;
		}
		if (n++ == ARRAYS_MAX) {
			log_warn("%s: arrays beyond the first %u are only "
				 "files",
				 a->path, ARRAYS_MAX);
			break;
		}
		r = publish_one(a, args, i, name, err);
	}
	return r;
}

/* ---- the source ---------------------------------------------------------- */

static int begin(struct archive *a, const struct source_args *args,
		 struct error *err)
{
	struct arrays *s = calloc(1, sizeof *s);

	a->arrays = s;
	if (!s)
		return error_set(err, -ENOMEM, "out of memory");
	s->source = a->source;
	intern_init(&s->intern);
	s->handles = args->handles;
	s->views = args->views;
	s->file = a->stored.file;
	s->size = a->stored.pos + a->stored.size;
	s->mtime = a->mtime;
	s->path = strdup(a->path);
	return s->path ? 0 : error_set(err, -ENOMEM, "out of memory");
}

static void npz_close(struct source *source)
{
	struct archive *a = (struct archive *)source;

	if (a && a->arrays) {
		arrays_end(a->arrays);
		free(a->arrays);
	}
	archive_close(source);
}

static int npz_open(const struct source_args *args, struct source **out,
		    struct error *err)
{
	struct archive *a;
	int r = archive_open(&archive_npz, args, out, err);

	if (r < 0 || (args->archive && args->archive->subdir))
		return r;
	a = (struct archive *)*out;
	r = begin(a, args, err);
	if (r == 0)
		r = publish(a, args, err);
	if (r < 0) {
		error_prefix(err, "%s: ", args->path);
		npz_close(*out);
		*out = NULL;
	}
	return r;
}

/* What else is a zip is known by its name only. */
static int npz_probe(const unsigned char *head, size_t n, const char *path)
{
	size_t len = strlen(path);
	int zip = zip_probe(head, n);

	return zip && len > 4 && !strcasecmp(path + len - 4, ".npz") ? zip + 5
								     : 0;
}

const struct source_ops source_npz = {
	.name = "npz",
	.summary = "NumPy arrays in a zip (.npz)",
	.archive = true,
	.probe = npz_probe,
	.open = npz_open,
	.about = archive_about,
	.verify = archive_verify,
	.usage = archive_usage,
	.close = npz_close,
};
