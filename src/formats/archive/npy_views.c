/* SPDX-License-Identifier: BSD-2-Clause */
/* tensor.safetensors: a view of the .npy files in the root of a directory or
 * archive. */

/*
 * The headers of the .npy files are read when the size of tensor.safetensors is
 * first needed.  It holds the arrays whose types the format has, named like the
 * files without the suffix.  Arrays of other types are left out, as in the
 * tensor.safetensors of any directory.  A file that is damaged or cannot be read is
 * an error, because a reader would not notice that it is missing.
 */
#include "formats/archive/npy_views.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/vec.h"
#include "formats/bundles.h"
#include "formats/numpy/npy_member.h"
#include "views/bundle.h"

/* Each header is read, and each array takes about 1 KiB of memory. */
#define ARRAYS_MAX 10000

struct npy_dir {
	struct handles *handles;
	struct pinner *pinner;
	struct view_options views;
	const struct members *m;
	const struct volume *volumes;
	struct files *files;
	unsigned n_volumes;
	uint64_t root;
	int64_t mtime;
};
struct npy_found {
	struct bundle_found found; /* first member */
	struct arrays arrays;
	vec(struct tensor *) t;
};

static void npy_found_free(struct bundle_found *f)
{
	struct npy_found *x = (struct npy_found *)f;

	for (size_t i = 0; i < x->t.n; i++)
		tensor_free(x->t.at[i]);
	vec_free(&x->t);
	arrays_end(&x->arrays);
	free(x);
}

/* Set `name` to "a" for record "a.npy".  Return false if it is not a .npy file. */
static bool npy_array_name(const struct npy_dir *b, uint64_t i,
			   char name[FILES_NAME_MAX + 1])
{
	const struct member_record *r = &b->m->at[i];
	const char *full = member_name(b->m, r);
	size_t n = strlen(full);

	if (!S_ISREG(r->mode) || r->kind == MEMBER_LINK || n < 5 ||
	    n > FILES_NAME_MAX || strcasecmp(full + n - 4, ".npy") != 0 ||
	    (r->kind != MEMBER_FILE &&
	     member_common(b->m, r)->volume >= b->n_volumes))
		return false;
	memcpy(name, full, n - 4);
	name[n - 4] = '\0';
	return true;
}

static int add_npy_array(struct npy_found *x, const struct npy_dir *b,
			 uint64_t i, const char *name, struct error *err)
{
	const struct backing bytes = member_backing(b->handles, b->pinner, b->m,
						    i, b->volumes, b->files);
	struct npy_member m;
	struct array *a;
	int r = npy_member_read(&x->arrays, &bytes, &m, err);

	if (r == 0)
		r = npy_member_array(&x->arrays, &m, NULL, name, &a, err);
	if (r == -ENOTSUP)
		return 0;
	if (r < 0)
		return error_prefix(err, "%s.npy: ", name);
	if (!bundle_takes(&a->t) || !bundle_takes_name(name)) {
		tensor_free(&a->t);
		return 0;
	}
	if (vec_push(&x->t, &a->t))
		return 0;
	tensor_free(&a->t);
	return error_no_memory(err, "the list of .npy files");
}

static int add_npy_arrays(struct npy_found *x, const struct npy_dir *b,
			  struct error *err)
{
	const struct member_record *root = &b->m->at[b->root];
	char name[FILES_NAME_MAX + 1];
	unsigned n = 0;
	int r = 0;

	for (uint64_t i = 0; i < root->size && r == 0; i++) {
		if (!npy_array_name(b, root->data + i, name))
			continue;
		if (n++ == ARRAYS_MAX)
			return error_set(
				err, -EFBIG,
				BUNDLE_NAME
				": it cannot hold more than %d .npy files",
				ARRAYS_MAX);
		r = add_npy_array(x, b, root->data + i, name, err);
	}
	if (r == 0)
		x->found.bundle = bundle_new(x->t.at, NULL, x->t.n);
	return r == 0 && !x->found.bundle
		       ? error_no_memory(err, "the tensors of the .npy files")
		       : r;
}

static struct bundle_found *find_npy_arrays(void *ctx, struct error *err)
{
	const struct npy_dir *b = ctx;
	struct npy_found *x = calloc(1, sizeof *x);

	if (!x || !(x->arrays.path = strdup(BUNDLE_NAME))) {
		free(x);
		error_no_memory(err, "the tensors of the .npy files");
		return NULL;
	}
	x->found.free = npy_found_free;
	intern_init(&x->arrays.intern);
	x->arrays.handles = b->handles;
	x->arrays.views = b->views;
	x->arrays.file = UINT32_MAX;
	x->arrays.mtime = b->mtime;
	if (add_npy_arrays(x, b, err) == 0)
		return &x->found;
	npy_found_free(&x->found);
	return NULL;
}

static bool has_npy_file(const struct npy_dir *b)
{
	const struct member_record *root = &b->m->at[b->root];
	char name[FILES_NAME_MAX + 1];

	for (uint64_t i = 0; i < root->size; i++)
		if (npy_array_name(b, root->data + i, name))
			return true;
	return false;
}

int npy_views_add(const struct source_args *a, const struct members *m,
		  const struct volume *volumes, unsigned n, uint64_t root,
		  struct files *files, struct error *err)
{
	struct npy_dir *b = calloc(1, sizeof *b);
	struct files *f;

	if (!b)
		return error_no_memory(err, "the tensors of the .npy files");
	*b = (struct npy_dir){.handles = a->handles,
			      .pinner = a->pinner,
			      .views = a->views,
			      .m = m,
			      .volumes = volumes,
			      .n_volumes = n,
			      .root = root,
			      .files = files,
			      .mtime = member_mtime(m, &m->at[root])};
	if (!has_npy_file(b)) {
		free(b);
		return 0;
	}
	f = bundle_files_late(find_npy_arrays, b, b->mtime);
	if (!f)
		return error_no_memory(err, "the tensors of the .npy files");
	tree_set_extra(a->tree, a->dir, f);
	return 0;
}
