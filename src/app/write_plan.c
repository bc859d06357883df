/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the rows of the files that are the rows to be written. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/write.h"
#include "base/bisect.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "base/parse.h"

#define DATA "data"

void write_plan_free(struct write_plan *p)
{
	for (size_t i = 0; i < p->parts.n; i++) {
		free(p->parts.at[i].path);
		free(p->parts.at[i].data);
		free(p->parts.at[i].flags);
	}
	free(p->parts.at);
	p->parts.at = NULL;
	p->parts.n = 0;
	if (p->main_fd >= 0)
		close(steal_fd(&p->main_fd));
}

/* ---- parts of a tensor -------------------------------------------------------------- */

struct parts { /* the element type is that of write_plan.parts */
	vec(struct write_part) list;
};

static void parts_free(struct parts *p)
{
	for (size_t i = 0; i < p->list.n; i++) {
		free(p->list.at[i].path);
		free(p->list.at[i].data);
	}
	free(p->list.at);
}

/* Get the range of a slab along an axis.  Return false if it has gaps. */
static bool slab_range(const struct slab *s, unsigned axis, uint64_t *start,
		       uint64_t *length)
{
	*start = s->start[axis];
	*length = s->count[axis] * s->block[axis];
	return s->count[axis] == 1 || s->stride[axis] == s->block[axis];
}

/* Return true if the tile maps whole rows of the source to whole rows of the array. */
static bool tile_rows(const struct tensor *t, const struct tile *tile,
		      struct write_part *out)
{
	uint64_t start, length, from_start, from_length;

	if (!slab_range(&tile->to, 0, &out->begin, &length))
		return false;
	out->end = out->begin + length;
	out->first = 0;
	for (unsigned i = 1; i < t->rank; i++)
		if (!slab_range(&tile->to, i, &start, &length) || start ||
		    length != t->shape[i])
			return false;
	if (tile->all)
		return true;
	if (tile->rank != t->rank ||
	    !slab_range(&tile->from, 0, &out->first, &from_length) ||
	    from_length != out->end - out->begin)
		return false;
	for (unsigned i = 1; i < t->rank; i++)
		if (!slab_range(&tile->from, i, &from_start, &from_length) ||
		    from_start || from_length != t->shape[i])
			return false;
	return true;
}

static int add_part(struct parts *out, const struct tensor *t, uint32_t part,
		    struct write_part *p, struct error *err)
{
	p->file = t->parts[part].file;
	if (handles_is_joined(t->handles, p->file))
		return error_set(
			err, -ENOTSUP,
			"%s is an HDF5 file that a driver of HDF5 split into "
			"several: it can be read, but not written",
			handles_name(t->handles, p->file));
	p->path = strdup(handles_path(t->handles, p->file));
	p->data = strdup(t->parts[part].dataset);
	if (p->path && p->data && vec_push(&out->list, *p))
		return 0;
	free(p->path);
	free(p->data);
	return error_no_memory(err, "the list of parts");
}

static int compare_parts(const void *x, const void *y)
{
	const struct write_part *a = x, *b = y;

	return (a->begin > b->begin) - (a->begin < b->begin);
}

static int list_parts(struct parts *out, const struct tensor *t,
		      struct error *err)
{
	struct write_part p = {.end = t->shape[0]};
	uint32_t n = t->mosaic ? mosaic_count(t->mosaic) : 0;
	struct tile tile;
	int r = 0;

	if (!t->mosaic)
		return t->nparts == 1
			       ? add_part(out, t, 0, &p, err)
			       : error_set(err, -ENOTSUP, "it has no parts");
	for (uint32_t i = 0; i < n && r == 0; i++) {
		mosaic_tile(t->mosaic, i, &tile);
		p = (struct write_part){.begin = 0};
		if (!tile_rows(t, &tile, &p))
			return error_set(err, -ENOTSUP,
					 "its parts are not whole rows; write "
					 "to the files of the parts");
		r = add_part(out, t, tile.part, &p, err);
	}
	if (r < 0)
		return r;
	if (out->list.n)
		qsort(out->list.at, out->list.n, sizeof *out->list.at,
		      compare_parts);
	for (size_t i = 1; i < out->list.n; i++)
		if (out->list.at[i].begin < out->list.at[i - 1].end)
			return error_set(err, -ENOTSUP,
					 "its parts overlap; write to the "
					 "files of the parts");
	return 0;
}

/* Find the flags of a part: those of its rows, if they are in its file. */
static int find_flags(struct write_part *p, const struct parts *flags,
		      struct error *err)
{
	/* The first that ends behind the part's begin. */
	struct bisect b = bisect_in(0, flags->list.n);

	while (bisect_next(&b))
		bisect_answer(&b, flags->list.at[b.mid].end > p->begin);
	if (b.lo < flags->list.n) {
		const struct write_part *f = &flags->list.at[b.lo];

		if (f->begin <= p->begin && f->end >= p->end &&
		    f->file == p->file) {
			p->flags = strdup(f->data);
			p->flags_first = f->first + (p->begin - f->begin);
			return p->flags ? 0
					: error_no_memory(err,
							  "the list of flags");
		}
	}
	return 0;
}

/* ---- which rows --------------------------------------------------------------------- */

static bool parse_row(const char *text, size_t n, uint64_t none, uint64_t *out)
{
	struct error ignored = {0};
	char number[24];

	*out = none;
	if (n == 0)
		return true;
	if (n >= sizeof number)
		return false;
	memcpy(number, text, n);
	number[n] = '\0';
	return parse_count(number, 0, INT64_MAX, out, &ignored) == 0;
}

/* Parse rows: "B:E", "B:", ":E" or "N". */
static int parse_rows(const char *text, uint64_t rows, uint64_t *begin,
		      uint64_t *end, struct error *err)
{
	size_t n = strcspn(text, ":");
	bool ok = *text && parse_row(text, n, 0, begin);

	if (ok && text[n])
		ok = parse_row(text + n + 1, strlen(text + n + 1), rows, end);
	else if (ok)
		*end = *begin + 1;
	if (!ok)
		return error_set(err, -EINVAL,
				 "--rows: '%.60s' is not BEGIN:END", text);
	if (*begin >= *end || *end > rows)
		return error_set(err, -EINVAL,
				 "--rows: %s is not within the %" PRIu64
				 " rows of the tensor",
				 text, rows);
	return 0;
}

static int choose_rows(struct write_plan *p, const struct settings *s,
		       const struct parts *all, struct error *err)
{
	uint64_t k = s->pack.block_number;

	p->begin = 0;
	p->end = p->shape[0];
	if (s->pack.rows)
		return parse_rows(s->pack.rows, p->end, &p->begin, &p->end,
				  err);
	if (!s->pack.block_given)
		return 0;
	if (k >= all->list.n)
		return error_set(err, -EINVAL,
				 "--block: there is no part %" PRIu64
				 "; the %zu parts are numbered from 0",
				 k, all->list.n);
	p->begin = all->list.at[k].begin;
	p->end = all->list.at[k].end;
	return 0;
}

/* Take the parts of `all` that have some of the rows, and clip them. */
static int choose_parts(struct write_plan *p, struct parts *all,
			struct error *err)
{
	uint64_t at = p->begin;

	for (size_t i = 0; i < all->list.n && at < p->end; i++) {
		struct write_part *from = &all->list.at[i], part = *from;

		if (part.end <= at)
			continue;
		if (part.begin > at)
			break;
		part.first += at - part.begin;
		part.begin = at;
		part.end = min_u64(part.end, p->end);
		if (!vec_push(&p->parts, part))
			return error_no_memory(err, "the list of parts");
		from->path = from->data = NULL; /* taken over */
		at = part.end;
	}
	return at < p->end
		       ? error_set(err, -ENODATA,
				   "row %" PRIu64 " is in none of its parts",
				   at)
		       : 0;
}

/* ---- the tensor ---------------------------------------------------------------------- */

static int check_tensor(struct write_plan *p, const struct tensor *t,
			struct error *err)
{
	char name[64];

	p->dtype = t->dtype;
	p->dtype.text =
		NULL; /* it belongs to the tensor, which is freed earlier */
	/* Fixed strings are NumPy's type S, which a mount shows as text. */
	if (t->dtype.kind == DTYPE_STRING && !t->dtype.vlen)
		p->dtype.kind = DTYPE_BYTES;
	if (t->why_not)
		return error_set(err, -ENOTSUP, "%s", t->why_not);
	if (p->dtype.kind >= DTYPE_STRUCT) {
		dtype_name(&t->dtype, name, sizeof name);
		return error_set(err, -ENOTSUP,
				 "elements are %s: only numbers, bool and "
				 "bytes of fixed length can be written",
				 name);
	}
	if (t->rank == 0 || t->elements == 0)
		return error_set(err, -ENOTSUP, "it has no rows");
	p->rank = t->rank;
	memcpy(p->shape, t->shape, t->rank * sizeof *p->shape);
	p->row_bytes = t->elements / t->shape[0] * p->dtype.size;
	p->distributed = tensor_is_distributed(t);
	return 0;
}

/* Check all files before one of them is replaced. */
static int check_part_files(const struct write_plan *p, struct error *err)
{
	for (size_t i = 0; i < p->parts.n; i++) {
		const char *path = p->parts.at[i].path;
		struct stat st = {0};

		if (stat(path, &st) < 0 &&
		    (errno == ENOENT || errno == ENOTDIR))
			return error_set(err, -ENODATA,
					 "'%s' is missing (no such file)",
					 path);
		if (faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) < 0)
			return error_errno(err, -errno, "cannot write '%s'",
					   path);
		if (!S_ISREG(st.st_mode))
			return error_set(err, -ENOTSUP,
					 "'%s' is not a regular file", path);
	}
	return 0;
}

static int plan_tensor(struct write_plan *p, const struct settings *s,
		       const struct tensor *t, struct error *err)
{
	struct parts all = {VEC_EMPTY}, flags = {VEC_EMPTY};
	struct error ignored = {0};
	int r = check_tensor(p, t, err);

	if (r == 0)
		r = list_parts(&all, t, err);
	if (r == 0)
		r = choose_rows(p, s, &all, err);
	if (r == 0)
		r = choose_parts(p, &all, err);
	/* Faults of the flags matter only if flags are to be set. */
	if (r == 0 && t->flags && t->flags->rank == 1 && !t->flags->why_not &&
	    list_parts(&flags, t->flags, &ignored) == 0)
		for (size_t i = 0; i < p->parts.n && r == 0; i++)
			r = find_flags(&p->parts.at[i], &flags, err);
	for (size_t i = 0; i < p->parts.n && r == 0 && s->pack.flag; i++)
		if (!p->parts.at[i].flags)
			r = error_set(err, -ENOTSUP,
				      "rows %" PRIu64 " to %" PRIu64
				      " have no flags in '%s'",
				      p->parts.at[i].begin, p->parts.at[i].end,
				      p->parts.at[i].path);
	parts_free(&flags);
	parts_free(&all);
	return r;
}

/* Find the tensor of TARGET:PATH; without a path it is the dataset `data`. */
static int find_target_tensor(struct session *session, const char *path,
			      struct tensor **out, struct error *err)
{
	struct node node;
	int r = tree_walk(fs_tree(session->fs), *path ? path : DATA, &node,
			  err);

	*out = r == 0 && node.files ? tensor_of_files(node.files) : NULL;
	if (r < 0 && !*path)
		return error_set(err, -ENOTSUP,
				 "it has no dataset '" DATA
				 "'; name the dataset: TARGET:PATH");
	if (r < 0)
		return r;
	return *out ? 0
		    : error_set(err, -ENOTSUP, "'%s' is not a tensor", path);
}

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_ino == y.st_ino &&
	       x.st_dev == y.st_dev;
}

/* Lock the main file against a merge that deletes parts.  The merge would otherwise
 * delete a part that changed after it was copied.  Writers share the lock. */
static int lock_main(struct write_plan *p, const char *path, struct error *err)
{
	struct flock l = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

	for (size_t i = 0; i < p->parts.n; i++)
		if (same_file(p->parts.at[i].path,
			      path)) /* the writing process locks it itself */
			return 0;
	p->main_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (p->main_fd < 0 || fcntl(p->main_fd, F_OFD_SETLK, &l) == 0 ||
	    (errno != EAGAIN && errno != EACCES))
		return 0;
	return error_set(err, -EBUSY, "it is being merged by another process");
}

static int exit_of_plan(int code)
{
	switch (code) {
	case -EINVAL:
	case -EBUSY:
	case -EACCES:
	case -EPERM:
	case -EROFS:
		return CLI_INCOMPLETE;
	default:
		return cli_source_exit(code);
	}
}

int write_plan_make(struct write_plan *p, const struct command *c,
		    const struct settings *s, const char *target)
{
	struct session *session = NULL;
	struct operand o = {NULL, NULL};
	struct error err = {0};
	struct tensor *t;
	int r;

	*p = (struct write_plan){.main_fd = -1};
	if (!operand_split(target, &o)) {
		cli_say(c, "out of memory for the name of the target");
		return CLI_MEMORY;
	}
	r = session_open(&session, &o.source, 1, s, 0, &err);
	if (r == 0) {
		r = find_target_tensor(session, o.path, &t, &err);
		if (r == 0)
			r = plan_tensor(p, s, t, &err);
		if (r == 0 && p->distributed && !s->pack.no_lock)
			r = lock_main(p, o.source, &err);
		/* Checked under the lock, so that a merge that deletes the files is
		 * reported as such. */
		if (r == 0)
			r = check_part_files(p, &err);
		if (r < 0)
			error_prefix(&err, "%s: ", o.source);
	}
	session_free(session);
	operand_free(&o);
	if (r == 0)
		return CLI_DONE;
	write_plan_free(p);
	cli_say(c, "%s", err.text);
	return exit_of_plan(r);
}
