/* SPDX-License-Identifier: BSD-2-Clause */
/* Labels: datasets and attributes that an option names, datasets found beside others. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "formats/hdf5/file/driver.h"
#include "formats/hdf5/file/find.h"
#include "formats/hdf5/walk.h"
#include "views/classes.h"

/* Give labels to the source, which owns them from now on. */
static int labels_keep(struct walk *w, struct classes *c)
{
	if (vec_push(&w->s->labels, c))
		return 0;
	classes_free(c);
	return error_no_memory(w->err, "the table of labels");
}

/* Make labels of a dataset. -EINVAL if it cannot be labels. */
static int labels_new(struct walk *w, const struct hdf5_place *at,
		      const char *name, hid_t dset, struct classes **out,
		      struct error *err)
{
	struct hdf5_description d;
	struct hdf5_tensor *h;
	int r = hdf5_describe(w->s, dset, NULL, &d, err);

	if (r < 0)
		return r;
	hdf5_unlock();
	h = hdf5_tensor_new(at, name, &d, NULL);
	hdf5_description_free(&d);
	hdf5_lock();
	if (!h)
		return error_no_memory(w->err, "the labels");
	if (!classes_can_be(&h->t)) {
		tensor_free(&h->t);
		return error_set(
			err, -EINVAL,
			"it is not a list of whole numbers or strings");
	}
	r = classes_of_tensor(out, &h->t, w->s->pinner, err);
	return r < 0 ? r : labels_keep(w, *out);
}

/* Find the labels that OBJECT@NAME names; @NAME names an attribute that each dataset
 * may have. */
static int attribute_given(struct walk *w, hid_t file, const char *sign,
			   bool one_of_several)
{
	const char *name = w->s->views.labels;
	struct hdf5_place at = {w->s, w->s->file, NULL};
	cleanup_free char *object = strndup(name, (size_t)(sign - name));
	struct error err = {0};
	hid_t id = -1;
	int r;

	if (!object)
		return error_no_memory(w->err, "the path of the labels");
	if (!*object) {
		w->own = sign + 1;
		return 0;
	}
	r = hdf5_find_object(w->s, file, object, &at, &id, w->err);
	if (r == -ENOENT && one_of_several)
		return 0;
	if (r < 0)
		return error_prefix(w->err, "labels: ");
	r = hdf5_labels_attribute(id, sign + 1, name, &w->given, &err);
	H5Oclose(id);
	if (r == 0)
		return labels_keep(w, w->given);
	return r == -ENOENT && one_of_several
		       ? 0
		       : error_set(w->err, r, "labels: '%s': %s", object,
				   err.text);
}

int hdf5_labels_given(struct walk *w, hid_t file, bool one_of_several)
{
	const char *name = w->s->views.labels;
	const char *sign = name ? strrchr(name, '@') : NULL;
	struct hdf5_place at = {w->s, w->s->file, NULL};
	struct error err = {0};
	hid_t id = -1;
	int r;

	if (!name)
		return 0;
	r = hdf5_find_object(w->s, file, name, &at, &id, w->err);
	if (r == -ENOENT && sign && sign[1])
		return attribute_given(w, file, sign, one_of_several);
	if (r == -ENOENT && one_of_several)
		return 0;
	if (r < 0)
		return error_prefix(w->err, "labels: ");
	r = H5Iget_type(id) == H5I_DATASET
		    ? labels_new(w, &at, name, id, &w->given, &err)
		    : error_set(&err, -EINVAL, "it is a group, not a dataset");
	H5Oclose(id);
	w->given_object = at.object;
	return r < 0 ? error_set(w->err, r, "labels: '%s': %s", name, err.text)
		     : 0;
}

int hdf5_labels_check(struct walk *w, bool one_of_several)
{
	const bool used =
		w->own ? w->own_used : w->given && classes_used(w->given);

	if (used && w->s->views.labels_found)
		*w->s->views.labels_found = true;
	if (w->own && !used && !one_of_several)
		return w->own_why.code
			       ? error_set(w->err, w->own_why.code,
					   "labels: %s", w->own_why.text)
			       : error_set(
					 w->err, -EINVAL,
					 "labels: no dataset has an attribute "
					 "'%s'",
					 w->own);
	if (w->own_why.code)
		log_warn("%s: labels: %s", w->s->path, w->own_why.text);
	if (!w->given || one_of_several || used)
		return 0;
	return classes_fail_unused(w->given, w->s->views.labels, w->err);
}

int hdf5_labels_look(struct walk *w, const struct group *g, const char *name,
		     struct group_labels *out)
{
	struct hdf5_place at = {w->s, g->file, NULL};
	cleanup_free char *object = NULL, *path = NULL;
	struct error err = {0};
	hid_t id;
	int r = 0;

	if (w->given || w->own || w->s->views.classes ||
	    out->n == HDF5_LABELS_MAX)
		return 0;
	if (asprintf(&object, "%s/%s", g->object, name) < 0)
		return object = NULL,
		       error_no_memory(w->err, "the path of the labels");
	if (asprintf(&path, "%s/%s", g->path, name) < 0)
		return path = NULL,
		       error_no_memory(w->err, "the path of the labels");
	at.object = intern_text(&w->s->intern, object);
	if (!at.object)
		return error_no_memory(w->err, "the path of the labels");
	id = H5Oopen(g->id, name, H5P_DEFAULT);
	if (id < 0)
		return 0; /* the walk says what is wrong with it */
	if (H5Iget_type(id) == H5I_DATASET) {
		r = labels_new(w, &at, path, id, &out->at[out->n], &err);
		if (r == 0)
			out->object[out->n++] = at.object;
	}
	H5Oclose(id);
	return r == -ENOMEM ? error_no_memory(w->err, "the labels") : 0;
}

/* Set the labels that the dataset's own attribute gives; remember the first error. */
static int set_own(struct walk *w, hid_t dset, struct hdf5_tensor *h,
		   unsigned axes)
{
	cleanup_free char *called = NULL;
	struct error err = {0};
	struct classes *c = NULL;
	int r;

	if (asprintf(&called, "%s@%s", h->t.name, w->own) < 0)
		return called = NULL,
		       error_no_memory(w->err, "the name of the labels");
	r = hdf5_labels_attribute(dset, w->own, called, &c, &err);
	if (r == -ENOMEM || (r == 0 && labels_keep(w, c) < 0))
		return error_no_memory(w->err, "the labels");
	if (r == 0) {
		classes_offer(c, &h->t, axes);
		if (!classes_used(c))
			r = error_set(&err, -EINVAL,
				      "the attribute '%s' has %" PRIu64
				      " labels, which is not one for each "
				      "sample",
				      w->own, classes_samples(c));
		w->own_used = w->own_used || r == 0;
	}
	if (r < 0 && r != -ENOENT && !w->own_why.code)
		error_set(&w->own_why, r, "'%s': %s", h->t.name, err.text);
	return 0;
}

int hdf5_labels_set(struct walk *w, const struct group *g, hid_t dset,
		    struct hdf5_tensor *h)
{
	const struct group_labels *l = g ? g->labels : NULL;
	const unsigned axes = view_sample_axes(&w->s->views, &h->t);
	struct classes *only = NULL;

	if (w->own)
		return set_own(w, dset, h, axes);
	if (h->object != w->given_object)
		classes_offer(w->given, &h->t, axes);
	if (w->given || !l || !h->t.rank)
		return 0;
	for (unsigned i = 0; i < l->n; i++) {
		if (l->object[i] == h->object)
			return 0; /* these are labels */
		if (!classes_fit(l->at[i], &h->t, axes))
			continue;
		if (only)
			return 0; /* ambiguous: more than one fits */
		only = l->at[i];
	}
	classes_offer(only, &h->t, axes);
	return 0;
}
