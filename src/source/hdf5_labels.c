/* SPDX-License-Identifier: BSD-2-Clause */
/* Datasets that are the labels of others: named by an option, or found beside them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "source/hdf5_walk.h"
#include "tensor/classes.h"

bool hdf5_labels_is_name(const char *name)
{
	static const char *const names[] = {"label",   "labels", "target",
					    "targets", "class",  "classes",
					    "y",       NULL};

	for (unsigned i = 0; names[i]; i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

/* -EINVAL: it cannot be labels. */
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
		return hdf5_walk_no_memory(w);
	if (!classes_can_be(&h->t)) {
		tensor_free(&h->t);
		return error_set(err, -EINVAL,
				 "it is no list of whole numbers or strings");
	}
	r = classes_of_tensor(out, &h->t, w->s->pinner, err);
	if (r == 0 && !vec_push(&w->s->labels, *out)) {
		classes_free(*out);
		return hdf5_walk_no_memory(w);
	}
	return r;
}

int hdf5_labels_given(struct walk *w, hid_t file, bool one_of_several)
{
	const char *name = w->s->views.labels;
	struct hdf5_place at = {w->s, w->s->file, NULL};
	struct error err = {0};
	hid_t id = -1;
	int r;

	if (!name)
		return 0;
	r = hdf5_walk_find(w, file, name, &at, &id);
	if (r == -ENOENT && one_of_several)
		return 0;
	if (r < 0)
		return error_prefix(w->err, "labels: ");
	r = H5Iget_type(id) == H5I_DATASET
		    ? labels_new(w, &at, name, id, &w->given, &err)
		    : error_set(&err, -EINVAL, "it is a group");
	H5Oclose(id);
	w->given_object = at.object;
	return r < 0 ? error_set(w->err, r, "labels: '%s': %s", name, err.text)
		     : 0;
}

int hdf5_labels_check(struct walk *w)
{
	return !w->given || classes_used(w->given)
		       ? 0
		       : classes_fail_unused(w->given, w->s->views.labels,
					     w->err);
}

int hdf5_labels_look(struct walk *w, const struct group *g, const char *name,
		     struct group_labels *out)
{
	struct hdf5_place at = {w->s, g->file, NULL};
	cleanup_free char *object = NULL, *path = NULL;
	struct error err = {0};
	hid_t id;
	int r = 0;

	if (w->given || w->s->views.classes || out->n == HDF5_LABELS_MAX)
		return 0;
	if (asprintf(&object, "%s/%s", g->object, name) < 0)
		return object = NULL, hdf5_walk_no_memory(w);
	if (asprintf(&path, "%s/%s", g->path, name) < 0)
		return path = NULL, hdf5_walk_no_memory(w);
	at.object = intern_text(&w->s->intern, object);
	if (!at.object)
		return hdf5_walk_no_memory(w);
	id = H5Oopen(g->id, name, H5P_DEFAULT);
	if (id < 0)
		return 0; /* the walk says what is wrong with it */
	if (H5Iget_type(id) == H5I_DATASET) {
		r = labels_new(w, &at, path, id, &out->at[out->n], &err);
		if (r == 0)
			out->object[out->n++] = at.object;
	}
	H5Oclose(id);
	return r == -ENOMEM ? hdf5_walk_no_memory(w) : 0;
}

void hdf5_labels_set(struct walk *w, const struct group *g,
		     struct hdf5_tensor *h)
{
	const struct group_labels *l = g ? g->labels : NULL;
	const unsigned axes = view_sample_axes(&w->s->views, &h->t);
	struct classes *only = NULL;

	if (h->object != w->given_object)
		classes_offer(w->given, &h->t, axes);
	if (w->given || !l || !h->t.rank)
		return;
	for (unsigned i = 0; i < l->n; i++) {
		if (l->object[i] == h->object)
			return; /* these are labels */
		if (!classes_fit(l->at[i], &h->t, axes))
			continue;
		if (only)
			return; /* which? */
		only = l->at[i];
	}
	classes_offer(only, &h->t, axes);
}
