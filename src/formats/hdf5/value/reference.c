/* SPDX-License-Identifier: BSD-2-Clause */
/* What HDF5 references mean: paths of objects, selections in words. */

/*
 * A reference is an address.  The library finds a path for one by visiting the
 * whole file; a dataset of a million references would have it do so a million
 * times.  So the file is visited once, with all its addresses remembered.
 */
#include "formats/hdf5/value/reference.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "tensor/grid.h"

#define OBJECTS_MAX 1000000         /* that are remembered ... */
#define TEXT_MAX ((size_t)64 << 20) /* ... and bytes of their paths */
#define PIECES_MAX 32               /* of a selection that are listed */

struct known {
	haddr_t address;
	char *path;
};
struct hdf5_paths {
	hid_t object;
	bool visited;
	size_t text;
	vec(struct known) v;
};

struct hdf5_paths *hdf5_paths_new(hid_t object)
{
	struct hdf5_paths *p = calloc(1, sizeof *p);

	if (p)
		p->object = object;
	return p;
}

void hdf5_paths_free(struct hdf5_paths *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->v.n; i++)
		free(p->v.at[i].path);
	vec_free(&p->v);
	free(p);
}

/* The library visits each object once. */
static herr_t remember_path(hid_t group, const char *name,
			    const H5O_info_t *info, void *ctx)
{
	struct hdf5_paths *p = ctx;
	struct known k = {.address = info->addr};

	(void)group;
	p->text += strlen(name) + 2;
	if (p->v.n == OBJECTS_MAX || p->text > TEXT_MAX)
		return 1; /* enough */
	if (asprintf(&k.path, "/%s", strcmp(name, ".") ? name : "") < 0)
		return 1;
	if (vec_push(&p->v, k))
		return 0;
	free(k.path);
	return 1;
}

static int compare_known_addresses(const void *a, const void *b)
{
	const struct known *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

static const char *path_of_address(struct hdf5_paths *p, haddr_t address)
{
	const struct known key = {.address = address}, *k;

	if (!p->visited) {
		hid_t root = H5Oopen(p->object, "/", H5P_DEFAULT);

		p->visited = true;
		if (root >= 0) {
			H5Ovisit2(root, H5_INDEX_NAME, H5_ITER_NATIVE,
				  remember_path, p, H5O_INFO_BASIC);
			H5Oclose(root);
		}
		if (p->v.n)
			qsort(p->v.at, p->v.n, sizeof *p->v.at,
			      compare_known_addresses);
	}
	k = p->v.n ? bsearch(&key, p->v.at, p->v.n, sizeof *p->v.at,
			     compare_known_addresses)
		   : NULL;
	return k ? k->path : NULL;
}

/* ---- selections ---------------------------------------------------------- */

static void print_point(FILE *f, const hsize_t *at, int rank)
{
	fputc('(', f);
	for (int i = 0; i < rank; i++)
		fprintf(f, i ? ",%llu" : "%llu", (unsigned long long)at[i]);
	fputc(')', f);
}

static void print_pieces(FILE *f, hid_t space, int rank, bool blocks)
{
	static const char sorry[] = "a selection that cannot be read";
	hssize_t n = blocks ? H5Sget_select_hyper_nblocks(space)
			    : H5Sget_select_elem_npoints(space);
	hsize_t m = n < PIECES_MAX ? (hsize_t)n : PIECES_MAX;
	hsize_t at[PIECES_MAX * 2 * RANK_MAX], *c = at;

	if (n < 0 || rank < 1 || rank > RANK_MAX ||
	    (n > 0 &&
	     (blocks ? H5Sget_select_hyper_blocklist(space, 0, m, at)
		     : H5Sget_select_elem_pointlist(space, 0, m, at)) < 0)) {
		fputs(sorry, f);
		return;
	}
	for (hsize_t i = 0; i < m; i++, c += rank) {
		fputs(i ? ", " : "", f);
		print_point(f, c, rank);
		if (!blocks)
			continue;
		fputc('-', f);
		print_point(f, c += rank, rank);
	}
	if (n > PIECES_MAX)
		fprintf(f, ", and %lld more", (long long)n - PIECES_MAX);
}

static int read_selection(hid_t space, char **out)
{
	size_t len;
	FILE *f = open_memstream(out, &len);

	if (!f)
		return -ENOMEM;
	switch (H5Sget_select_type(space)) {
	case H5S_SEL_ALL:
		fputs("all", f);
		break;
	case H5S_SEL_NONE:
		fputs("none", f);
		break;
	case H5S_SEL_HYPERSLABS:
	case H5S_SEL_POINTS:
		print_pieces(f, space, H5Sget_simple_extent_ndims(space),
			     H5Sget_select_type(space) == H5S_SEL_HYPERSLABS);
		break;
	default:
		fputs("a selection that cannot be read", f);
	}
	return fclose(f) ? -ENOMEM : 0;
}

/* ---- references ---------------------------------------------------------- */

static bool is_null_reference(const unsigned char *data, size_t n)
{
	bool zeros = true, ones = true;

	for (size_t i = 0; i < n; i++) {
		zeros = zeros && data[i] == 0;
		ones = ones && data[i] == 0xff;
	}
	return zeros || ones;
}

static int read_object_path(struct hdf5_paths *p, hid_t object, char **out)
{
	const char *path = NULL;
	H5O_info_t info;
	int r = 0;

	if (object < 0 || H5Oget_info2(object, &info, H5O_INFO_BASIC) < 0)
		*out = strdup("(nothing: the object is gone)");
	else if ((path = path_of_address(p, info.addr)))
		*out = strdup(path);
	else
		r = asprintf(out, "(object at address %llu, without a path)",
			     (unsigned long long)info.addr);
	if (r < 0)
		*out = NULL;
	return *out ? 0 : -ENOMEM;
}

int hdf5_reference_read(struct hdf5_paths *p, hid_t type, const void *data,
			struct hdf5_meaning *out)
{
	bool region = H5Tequal(type, H5T_STD_REF_DSETREG) > 0;
	H5R_type_t kind = region ? H5R_DATASET_REGION : H5R_OBJECT;
	hid_t object, space;
	int r;

	*out = (struct hdf5_meaning){NULL, NULL};
	if (is_null_reference(data, H5Tget_size(type)))
		return 0;
	if (!region && H5Tequal(type, H5T_STD_REF_OBJ) <= 0) {
		out->path = strdup("(a reference of an unknown kind)");
		return out->path ? 0 : -ENOMEM;
	}
	object = H5Rdereference2(p->object, H5P_DEFAULT, kind, data);
	r = read_object_path(p, object, &out->path);
	if (!r && region && object >= 0) {
		space = H5Rget_region(p->object, kind, data);
		if (space >= 0) {
			r = read_selection(space, &out->selection);
			H5Sclose(space);
		}
	}
	if (object >= 0)
		H5Oclose(object);
	if (r < 0)
		hdf5_meaning_free(out);
	return r;
}

void hdf5_meaning_free(struct hdf5_meaning *m)
{
	free(m->path);
	free(m->selection);
	*m = (struct hdf5_meaning){NULL, NULL};
}
