/* SPDX-License-Identifier: BSD-2-Clause */
/* Decide which files --delete-parts does not delete. */

/*
 * A link or a mapping may lead to anything: a calibration that others use, or one dataset
 * of a file that has many.  So only files below the directory of the main file are
 * deleted (or below a directory that the user has named with --prefix), and only if all
 * of the following is in the output:
 *
 *   datasets    that are mapped: all their elements; or the whole dataset, behind a link
 *   groups      everything in them
 *   raw files   from the first byte to the last, as the data of one dataset
 *
 * Other files are copied from as well, but they stay, and a warning names them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "formats/hdf5/walk.h"
#include "tensors/merge/private.h"

/* The number of files that warnings name; of the others only the number is reported. */
#define NAMED 5
/* The number of objects of a file that are looked at before the file is kept without
 * knowing. */
#define LOOKS 100000

/* ---- below a directory ---------------------------------------------------- */

struct roots {
	vec(char *) v; /* real paths */
};

static bool add_root(struct roots *roots, const char *path, size_t n)
{
	cleanup_free char *name = strndup(path, n);
	char *real = name ? realpath(name, NULL) : NULL;

	if (!real) /* the directory does not exist: nothing is below it */
		return name != NULL;
	if (vec_push(&roots->v, real))
		return true;
	free(real);
	return false;
}

static bool find_roots(const struct merge *m, struct roots *roots)
{
	const char *main = m->s->real_dir ? m->s->real_dir : m->s->dir;
	const char *at = m->s->prefix;
	bool ok = add_root(roots, main, strlen(main));

	while (ok && at && *at) {
		size_t n = strcspn(at, ":");

		ok = !n || add_root(roots, at, n);
		at += n + (at[n] == ':');
	}
	return ok;
}

static void free_roots(struct roots *roots)
{
	for (size_t i = 0; i < roots->v.n; i++)
		free(roots->v.at[i]);
	vec_free(&roots->v);
}

/* Return true if the file's name is below one of the roots.  If it is a symbolic link,
 * its target does not matter: the name is what is deleted. */
static bool keep_is_below(const struct roots *roots, const char *path)
{
	const char *slash = strrchr(path, '/');
	cleanup_free char *dir = NULL, *real = NULL;

	if (!slash)
		return false;
	dir = strndup(path, (size_t)(slash - path) + (slash == path));
	real = dir ? realpath(dir, NULL) : NULL;
	for (size_t i = 0; real && i < roots->v.n; i++) {
		const char *root = roots->v.at[i];
		size_t n = strlen(root);

		if (!strcmp(root, "/") || (!strncmp(real, root, n) &&
					   (real[n] == '\0' || real[n] == '/')))
			return true;
	}
	return false;
}

/* ---- all of it is in the output ------------------------------------------- */

struct cover {
	struct merge *m;
	const struct merge_file *f;
	unsigned looks, depth;
	char left[200]; /* the first object that is not in the output */
	const char *at; /* path of the group; "" is the root */
};

static bool is_taken(const struct merge_file *f, const char *path)
{
	for (size_t i = 0; i < f->taken.n; i++) {
		const char *have = f->taken.at[i];

		if (!strcmp(have + (*have == '/'), path + 1))
			return true;
	}
	return false;
}

static herr_t cover_link(hid_t group, const char *name, const H5L_info_t *info,
			 void *ctx);

/* Return 0 if all of the object is in the output, else nonzero, with its name in
 * c->left. */
static herr_t cover_object(struct cover *c, hid_t id, const char *path)
{
	const char *above = c->at;
	hsize_t at = 0;
	H5O_info_t info;
	herr_t r = 1;

	if (H5Oget_info2(id, &info, H5O_INFO_BASIC) >= 0) {
		if (info.type == H5O_TYPE_NAMED_DATATYPE ||
		    merge_item_of(c->m, c->f->file, info.addr))
			return 0;
		if (info.type == H5O_TYPE_GROUP && c->depth < DEPTH_MAX) {
			c->at = path;
			c->depth++;
			r = H5Literate(id, H5_INDEX_NAME, H5_ITER_NATIVE, &at,
				       cover_link, c);
			c->depth--;
			c->at = above;
		}
	}
	if (r != 0 && !*c->left)
		snprintf(c->left, sizeof c->left, "%s", path);
	return r;
}

static herr_t cover_link(hid_t group, const char *name, const H5L_info_t *info,
			 void *ctx)
{
	struct cover *c = ctx;
	cleanup_free char *path = NULL;
	herr_t r;
	hid_t id;

	if (info->type != H5L_TYPE_HARD) /* only a name */
		return 0;
	if (asprintf(&path, "%s/%s", c->at, name) < 0) {
		path = NULL;
		return -1;
	}
	if (is_taken(c->f, path))
		return 0;
	id = c->looks++ < LOOKS ? H5Oopen(group, name, H5P_DEFAULT)
				: H5I_INVALID_HID;
	r = id < 0 ? 1 : cover_object(c, id, path);
	if (r != 0 && !*c->left)
		snprintf(c->left, sizeof c->left, "%s", path);
	if (id >= 0)
		H5Oclose(id);
	return r;
}

static bool is_covered(struct cover *c)
{
	struct hdf5_place at = {c->m->s, c->f->file, "/"};
	struct hdf5_opened o;
	struct error ignored;
	herr_t r;

	if (c->f->partly) {
		snprintf(c->left, sizeof c->left, "rows of %s", c->f->partly);
		return false;
	}
	if (c->f->raw)
		return c->f->raw_whole;
	if (hdf5_place_open(&at, &o, &ignored) < 0)
		return false;
	r = cover_object(c, o.object, "");
	hdf5_place_close(&o);
	return r == 0;
}

/* ---- what the output takes ------------------------------------------------ */

static struct merge_file *keep_find_file(struct merge *m, uint32_t file)
{
	uint32_t i =
		file < m->file_index.n ? m->file_index.at[file] : UINT32_MAX;

	return i == UINT32_MAX ? NULL : &m->files.at[i];
}

static uint64_t product(const uint64_t *shape, unsigned rank)
{
	uint64_t n = 1;

	for (unsigned i = 0; i < rank; i++)
		n *= shape[i];
	return n;
}

/* What is mapped of a part. */
struct mapped {
	uint64_t elements;
	uint64_t end; /* the row after the last that is mapped */
};

/* Count the elements that a tile maps.  A row that is mapped twice counts once: a tile
 * counts only if its rows come after those of the tiles before. */
static void keep_map_tile(const struct tile *tile, unsigned rank,
			  struct mapped *x)
{
	const struct slab *f = &tile->from;
	bool some = !tile->all && tile->rank;

	if (x->elements && (!some || f->start[0] < x->end))
		return;
	x->elements +=
		product(tile->to.count, rank) * product(tile->to.block, rank);
	x->end = some ? f->start[0] + (f->count[0] - 1) * f->stride[0] +
				 f->block[0]
		      : UINT64_MAX;
}

/* Return what is mapped of each part, in memory that the caller frees; NULL if memory is
 * short. */
static struct mapped *keep_mapped_rows(const struct tensor *t)
{
	struct mapped *x = calloc((size_t)t->nparts + 1, sizeof *x);
	struct tile tile;

	if (x && !t->mosaic)
		x[0].elements = product(t->shape, t->rank);
	for (uint32_t i = 0; x && t->mosaic && i < mosaic_count(t->mosaic);
	     i++) {
		mosaic_tile(t->mosaic, i, &tile);
		keep_map_tile(&tile, t->rank, &x[tile.part]);
	}
	return x;
}

/* A raw file may be deleted if it is the data of one dataset as a whole. */
static void keep_note_raw(struct merge *m, const struct stretch *x)
{
	struct merge_file *f = keep_find_file(m, x->file);

	if (!f)
		return;
	f->raw = true;
	f->raw_whole = f->raw_whole || (!x->pos && x->len == f->id.size);
}

static bool keep_note_tensor(struct merge *m, const struct tensor *t,
			     bool whole);

static bool keep_note_part(struct merge *m, const struct tensor *t, uint32_t p,
			   uint64_t n, bool whole)
{
	const struct layout *l = atomic_load(&t->parts[p].layout);
	struct merge_file *f = keep_find_file(m, t->parts[p].file);

	if (l && l->kind == LAYOUT_NESTED)
		whole = whole &&
			n >= product(l->nested->shape, l->nested->rank);
	else if (l)
		whole = whole && n >= product(l->grid->shape, l->grid->rank);
	if (f && !whole)
		f->partly = t->parts[p].dataset;
	if (f && !vec_push(&f->taken, t->parts[p].dataset))
		return false;
	if (l && l->kind == LAYOUT_NESTED)
		return keep_note_tensor(m, l->nested, whole);
	for (uint32_t i = 0; l && i < l->nstretches; i++)
		keep_note_raw(m, &l->stretches[i]);
	return true;
}

static bool keep_note_tensor(struct merge *m, const struct tensor *t,
			     bool whole)
{
	cleanup_free struct mapped *x = keep_mapped_rows(t);
	bool ok = x != NULL;

	for (uint32_t p = 0; p < t->nparts && ok; p++)
		ok = keep_note_part(m, t, p, x[p].elements, whole);
	return ok;
}

static bool keep_note_all(struct merge *m)
{
	bool ok = true;

	for (size_t i = 0; i < m->streams.n && ok; i++)
		ok = keep_note_tensor(m, m->streams.at[i].t, true);
	for (size_t i = 0; i < m->values.n && ok; i++)
		ok = keep_note_tensor(m, m->values.at[i].t, true);
	return ok;
}

/* ---- all files ------------------------------------------------------------ */

static void keep_report_file(const struct merge *m, const struct merge_file *f,
			     const char *left)
{
	const char *path = handles_path(m->handles, f->file);

	if (m->result->kept_files > NAMED)
		return;
	if (!left)
		log_warn("%s is not deleted: it is not below the directory of "
			 "the main file",
			 file_shown(path));
	else if (*left)
		log_warn("%s is not deleted: it has %s, which the main file "
			 "does not show",
			 file_shown(path), file_shown(left));
	else
		log_warn("%s is not deleted: it may have more than the main "
			 "file shows",
			 file_shown(path));
}

static void keep_decide_file(struct merge *m, const struct roots *roots,
			     struct merge_file *f)
{
	struct cover c = {.m = m, .f = f};
	bool below = keep_is_below(roots, handles_path(m->handles, f->file));

	if (!f->kept && below && is_covered(&c))
		return;
	f->kept = true;
	m->result->kept_files++;
	keep_report_file(m, f, below ? c.left : NULL);
}

int merge_keep_files(struct merge *m, struct error *err)
{
	struct roots roots = {VEC_EMPTY};
	bool ok;

	if (!m->o.delete_parts)
		return 0;
	ok = find_roots(m, &roots) && keep_note_all(m);
	for (size_t i = 0; i < m->files.n && ok && !*m->o.stop; i++) {
		struct merge_file *f = &m->files.at[i];

		/* An earlier attempt has decided about the files that it has copied. */
		if (!f->main && !f->gone && !(f->journaled && !f->kept))
			keep_decide_file(m, &roots, f);
	}
	free_roots(&roots);
	if (m->result->kept_files > NAMED)
		log_warn("and %" PRIu64 " more files are not deleted",
			 m->result->kept_files - NAMED);
	if (*m->o.stop)
		return error_set(err, -EINTR, "interrupted");
	return ok ? 0 : error_no_memory(err, "the list of files to delete");
}
