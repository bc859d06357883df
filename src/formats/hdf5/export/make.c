/* SPDX-License-Identifier: BSD-2-Clause */
/* Groups, datasets and attributes of array.h5 and merged.h5, and where data are. */

/*
 * libhdf5 writes a real file.  First everything but data: datasets are contiguous and
 * have no room yet.  Then each is given its room, by writing one element: nothing else is
 * allocated by then, so all room is behind everything else, in order.
 *
 * The same source makes the same bytes: no times, no creation order, one version of the
 * format (that of HDF5 1.8, which every program reads).
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/hdf5/export/monolith.h"
#include "formats/hdf5/type/type.h"

/* ---- words --------------------------------------------------------------- */

int monolith_failed(struct making *m, const char *path, const char *what)
{
	char why[256];

	hdf5_why(why, sizeof why);
	return error_set(m->err, -EIO, "%s: %s: %s", path, what, why);
}

/* A newline in the text becomes a space. */
void monolith_note(struct making *m, const char *path, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	for (char *s = text; *s; s++)
		if (*s == '\n')
			*s = ' ';
	fprintf(m->notes, "%s%s: %s\n", *path == '/' ? "" : "/", path, text);
}

/* ---- what belongs into the file ------------------------------------------- */

bool monolith_has(const struct making *m, const struct hdf5_tensor *h)
{
	return !m->of || h == m->of || &h->t == m->of->t.flags;
}

/* Return true if the tensor lies in the group. */
static bool is_around(const char *group, const struct hdf5_tensor *of)
{
	size_t n = strlen(group);

	return !of || (!strncmp(group, of->t.name, n) && of->t.name[n] == '/');
}

/* ---- groups -------------------------------------------------------------- */

/* The groups that a path leads through. */
int monolith_parents(struct making *m, const char *path)
{
	cleanup_free char *part = strdup(path);
	hid_t g;

	if (!part)
		return error_no_memory(m->err, "the path of a group");
	for (char *s = strchr(part + 1, '/'); s; s = strchr(s + 1, '/')) {
		*s = '\0';
		if (H5Lexists(m->out, part, H5P_DEFAULT) <= 0) {
			g = H5Gcreate2(m->out, part, m->lcpl, m->gcpl,
				       H5P_DEFAULT);
			if (g < 0)
				return monolith_failed(
					m, part, "the group cannot be made");
			H5Gclose(g);
		}
		*s = '/';
	}
	return 0;
}

/* Open an object of the source; its file stays open for the next one. */
static int monolith_open_object(struct making *m, uint32_t file,
				const char *object, const char *path,
				hid_t *out)
{
	int r;

	if (m->from >= 0 && m->file != file) {
		H5Fclose(m->from);
		m->from = H5I_INVALID_HID;
	}
	if (m->from < 0) {
		r = hdf5_open(m->s->handles, file, &m->from, m->err);
		if (r < 0) {
			m->from = H5I_INVALID_HID;
			return r;
		}
		m->file = file;
	}
	*out = H5Oopen(m->from, object, H5P_DEFAULT);
	return *out < 0 ? monolith_failed(m, path, "it cannot be opened") : 0;
}

static int monolith_make_group(struct making *m, const struct hdf5_item *it)
{
	const char *path = *it->name ? it->name : "/";
	hid_t from, to;
	int r;

	if (!is_around(it->name, m->of))
		return 0;
	r = *it->name ? monolith_parents(m, path) : 0;
	if (!r)
		r = monolith_open_object(m, it->file, it->object, path, &from);
	if (r < 0)
		return r;
	to = *it->name ? H5Gcreate2(m->out, path, m->lcpl, m->gcpl, H5P_DEFAULT)
		       : H5Gopen2(m->out, "/", H5P_DEFAULT);
	r = to < 0 ? monolith_failed(m, path, "the group cannot be made")
		   : monolith_attributes(m, path, from, to);
	if (to >= 0)
		H5Gclose(to);
	H5Oclose(from);
	return r;
}

static int monolith_make_link(struct making *m, const struct hdf5_item *it)
{
	if (m->of)
		return 0;
	if (it->kind == HDF5_ITEM_LOST)
		monolith_note(m, it->name, "a link whose target is missing");
	else if (H5Lcreate_soft(it->target, m->out, it->name, m->lcpl,
				H5P_DEFAULT) < 0)
		return monolith_failed(m, it->name, "the link cannot be made");
	return 0;
}

/* ---- datasets ------------------------------------------------------------ */

/* Axes of the dataset, without those that its type has. */
static hid_t own_dataspace(const struct hdf5_tensor *h)
{
	const struct tensor *t = &h->t;
	unsigned rank = t->rank;
	hsize_t dims[RANK_MAX];

	if (!tensor_has_shape(t))
		return H5Screate(H5S_NULL);
	if (!h->member && h->type)
		rank -= h->type->rank < rank ? h->type->rank : rank;
	for (unsigned i = 0; i < rank; i++)
		dims[i] = t->shape[i];
	return rank ? H5Screate_simple((int)rank, dims, NULL)
		    : H5Screate(H5S_SCALAR);
}

int monolith_part_add(struct making *m, uint64_t bytes, const char *path)
{
	char *kept = strdup(path);

	if (kept && vec_push(&m->paths, kept)) {
		if (vec_push(&m->parts, ((struct monolith_part){0, bytes})))
			return 0;
		kept = NULL; /* it is in the other list */
	}
	free(kept);
	return error_no_memory(m->err, "the table of datasets");
}

struct dataset {
	const struct hdf5_tensor *h;
	const char *path;
	size_t item; /* SIZE_MAX: none */
	bool text;
};

static int fill_dataset(struct making *m, const struct dataset *d, hid_t from,
			hid_t type, hid_t to)
{
	int r = 0;

	if (d->text)
		r = monolith_text_write(m, d->item, d->path, type, to);
	else if (hdf5_has_data(d->h))
		r = monolith_part_add(m, d->h->t.bytes, d->path);

	/* A field has none of its own. */
	if (!r && !d->h->t.field && !d->h->member)
		r = monolith_attributes(m, d->path, from, to);
	return r;
}

static int create_dataset(struct making *m, const struct dataset *d, hid_t from)
{
	hid_t stored = H5Dget_type(from), space = own_dataspace(d->h), type, to;
	int r;

	type = stored < 0 ? stored : monolith_type(stored, d->h);
	to = type < 0 || space < 0
		     ? H5I_INVALID_HID
		     : H5Dcreate2(m->out, d->path, type, space, m->lcpl,
				  dtype_is_binary(&d->h->t.dtype) ? m->dcpl
								  : m->tcpl,
				  H5P_DEFAULT);
	r = to < 0 ? monolith_failed(m, d->path, "the dataset cannot be made")
		   : fill_dataset(m, d, from, type, to);
	if (to >= 0)
		H5Dclose(to);
	if (type >= 0)
		H5Tclose(type);
	if (space >= 0)
		H5Sclose(space);
	if (stored >= 0)
		H5Tclose(stored);
	return r;
}

/* Return true and note why if the dataset is left out of the file. */
static bool is_left_out(struct making *m, const struct dataset *d)
{
	const struct tensor *t = &d->h->t;
	const char *why;
	size_t len;

	if (d->h->null && t->dtype.kind <= DTYPE_STRING)
		return false;
	if (t->why_not) {
		monolith_note(m, t->name, "%s", t->why_not);
		return true;
	}
	if (!m->of && t->unreadable) {
		monolith_note(m, t->name, "%s", t->unreadable);
		return true;
	}
	if (dtype_is_binary(&t->dtype))
		return false;
	if (t->dtype.kind != DTYPE_STRING) {
		monolith_note(m, t->name, "not an array of numbers or strings");
		return true;
	}
	if (monolith_text_find(m, d->item, &why, &len))
		return false;
	monolith_note(m, t->name, "%.*s", (int)min_u64(len, 512), why);
	return true;
}

static int monolith_make_dataset(struct making *m, const struct hdf5_tensor *h,
				 size_t item)
{
	struct dataset d = {.h = h, .path = h->t.name, .item = item};
	hid_t from;
	int r;

	if (is_left_out(m, &d))
		return 0;
	d.text = !h->null && h->t.dtype.kind == DTYPE_STRING;
	r = monolith_parents(m, d.path);
	if (!r)
		r = monolith_open_object(m, h->file, h->object, d.path, &from);
	if (r < 0)
		return r;
	r = create_dataset(m, &d, from);
	H5Oclose(from);
	return r;
}

int monolith_make(struct making *m)
{
	bool met = false;
	int r = 0;

	for (size_t i = 0; i < m->s->items.n && !r; i++) {
		const struct hdf5_item *it = &m->s->items.at[i];

		if (it->kind == HDF5_ITEM_GROUP) {
			r = monolith_make_group(m, it);
		} else if (it->kind != HDF5_ITEM_DATASET) {
			r = monolith_make_link(m, it);
		} else if (monolith_has(m, it->tensor)) {
			r = monolith_make_dataset(m, it->tensor, i);
			met = met || it->tensor == m->of;
		}
	}
	/* A field is not in the list of items. */
	return r || !m->of || met ? r
				  : monolith_make_dataset(m, m->of, SIZE_MAX);
}

/* ---- places -------------------------------------------------------------- */

/* Write one element, which makes libhdf5 allocate room for all. */
static herr_t write_first(hid_t dset, hid_t type, const void *element)
{
	static const hsize_t start[RANK_MAX];
	hsize_t count[RANK_MAX];
	hid_t space = H5Dget_space(dset), one = H5Screate(H5S_SCALAR);
	int rank = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);
	herr_t ok = rank < 0 || one < 0 ? -1 : 0;

	for (int i = 0; i < rank && i < RANK_MAX; i++)
		count[i] = 1;
	if (ok >= 0 && rank > 0)
		ok = H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL,
					 count, NULL);
	if (ok >= 0)
		ok = H5Dwrite(dset, type, one, space, H5P_DEFAULT, element);
	if (one >= 0)
		H5Sclose(one);
	if (space >= 0)
		H5Sclose(space);
	return ok;
}

static haddr_t place_dataset(hid_t dset)
{
	hid_t type = H5Dget_type(dset);
	cleanup_free void *element =
		type < 0 ? NULL : calloc(1, H5Tget_size(type));
	haddr_t at = HADDR_UNDEF;

	if (element && write_first(dset, type, element) >= 0)
		at = H5Dget_offset(dset);
	if (type >= 0)
		H5Tclose(type);
	return at;
}

int monolith_place(struct making *m)
{
	for (size_t i = 0; i < m->parts.n; i++) {
		struct monolith_part *p = &m->parts.at[i];
		hid_t dset = H5Dopen2(m->out, m->paths.at[i], H5P_DEFAULT);
		haddr_t at = dset < 0 ? HADDR_UNDEF : place_dataset(dset);

		if (dset >= 0)
			H5Dclose(dset);
		if (at == HADDR_UNDEF)
			return monolith_failed(m, m->paths.at[i],
					       "there is no room for its data");
		p->at = at;
	}
	return 0;
}
