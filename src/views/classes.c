/* SPDX-License-Identifier: BSD-2-Clause */
/* Labels: the class of each sample, and the samples of each class. */

/*
 * Labels are sorted together with the rows that have them.  Equal labels are then
 * neighbours and make up a class, with its rows in order.  If two threads compute the
 * same index at once, one of them publishes its result and the other frees its own.
 */
#include "views/classes.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "base/vec.h"
#include "tensor/text.h"
#include "tree/tree.h"
#include "views/name.h"

struct classes {
	struct tensor *t; /* owned; NULL: labels of a file */
	struct pinner *p;
	char *path;
	uint64_t samples;
	unsigned rank; /* trailing axes of length 1 not counted; at least 1 */
	uint64_t shape[RANK_MAX];
	_Atomic bool used;
	_Atomic(struct class_index *) index;
};

/* ---- names ----------------------------------------------------------------- */

/* Must this byte be escaped?  A name cannot contain it, or it begins what looks like an
 * escape. */
static bool label_needs_escape(const unsigned char *s)
{
	return *s < ' ' || *s == 0x7f || *s == '/' ||
	       (*s == '%' && isxdigit(s[1]) && isxdigit(s[2]));
}

static char *class_name_of_text(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	cleanup_free char *wide = malloc(3 * strlen(text) + 1);
	char *to = wide, name[FILES_NAME_MAX + 1];

	if (!wide)
		return NULL;
	for (; *s; s++)
		if (label_needs_escape(s))
			to += sprintf(to, "%%%02X", *s);
		else
			*to++ = (char)*s;
	*to = '\0';
	tree_escape(wide, name);
	return strdup(name);
}

static char *class_name_of_number(int64_t v, unsigned width)
{
	uint64_t size = v < 0 ? -(uint64_t)v : (uint64_t)v;
	char *name;

	return asprintf(&name, "%s%0*" PRIu64, v < 0 ? "-" : "", (int)width,
			size) < 0
		       ? NULL
		       : name;
}

static unsigned label_number_width(const struct class_labels *l)
{
	uint64_t most = 0;

	for (uint64_t i = 0; i < l->n; i++) {
		int64_t v = l->at[i].number;

		most = max_u64(most, v < 0 ? -(uint64_t)v : (uint64_t)v);
	}
	return view_width(most);
}

/* ---- the index -------------------------------------------------------------- */

static int label_compare_rows(const struct class_label *a,
			      const struct class_label *b)
{
	return (a->row > b->row) - (a->row < b->row);
}

static int label_compare_texts(const void *a, const void *b)
{
	const struct class_label *x = a, *y = b;
	int r = strcmp(x->text, y->text);

	return r ? r : label_compare_rows(x, y);
}

static int label_compare_numbers(const void *a, const void *b)
{
	const struct class_label *x = a, *y = b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return label_compare_rows(x, y);
}

/* Sort numbers that are close together, with rows in order, by counting.  Return false
 * if they are not like that, or without memory. */
static bool sort_by_counting(struct class_labels *l)
{
	int64_t least = l->at[0].number, most = least;
	struct class_label *sorted;
	uint64_t span, *place;
	bool done;

	for (uint64_t i = 1; i < l->n; i++) {
		if (l->at[i].row < l->at[i - 1].row)
			return false;
		if (l->at[i].number < least)
			least = l->at[i].number;
		if (l->at[i].number > most)
			most = l->at[i].number;
	}
	span = (uint64_t)most - (uint64_t)least;
	if (span > l->n)
		return false;
	place = calloc(span + 2, sizeof *place);
	sorted = malloc(l->n * sizeof *sorted);
	done = place && sorted;
	if (done) {
		for (uint64_t i = 0; i < l->n; i++)
			place[l->at[i].number - least + 1]++;
		for (uint64_t k = 0; k < span; k++)
			place[k + 1] += place[k];
		for (uint64_t i = 0; i < l->n; i++)
			sorted[place[l->at[i].number - least]++] = l->at[i];
		memcpy(l->at, sorted, l->n * sizeof *sorted);
	}
	free(sorted);
	free(place);
	return done;
}

static void sort_labels(struct class_labels *l)
{
	if (!l->n || (!l->at[0].text && sort_by_counting(l)))
		return;
	qsort(l->at, l->n, sizeof *l->at,
	      l->at[0].text ? label_compare_texts : label_compare_numbers);
}

void class_index_free(struct class_index *x)
{
	if (!x)
		return;
	for (uint32_t i = 0; i < x->n; i++) {
		free(x->name[i]);
		free(x->label[i]);
	}
	free(x->name);
	free(x->label);
	free(x->start);
	free(x->row);
	free(x->of);
	free(x);
}

static bool label_is_same(const struct class_label *a,
			  const struct class_label *b)
{
	return a->text ? !strcmp(a->text, b->text) : a->number == b->number;
}

/* A class, and its range in the sorted labels. */
struct class_made {
	char *name, *label;
	uint64_t first, count;
};

static int class_compare_names(const void *a, const void *b)
{
	return strcmp(((const struct class_made *)a)->name,
		      ((const struct class_made *)b)->name);
}

static int class_make_names(const struct class_labels *l,
			    struct class_made *made, uint32_t n,
			    struct error *err)
{
	unsigned width = l->n && !l->at[0].text ? label_number_width(l) : 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct class_label *of = &l->at[made[i].first];

		made[i].name =
			of->text ? class_name_of_text(of->text)
				 : class_name_of_number(of->number, width);
		made[i].label = of->text ? strdup(of->text)
					 : class_name_of_number(of->number, 1);
		if (!made[i].name || !made[i].label)
			return error_no_memory(err, "the names of classes");
	}
	qsort(made, n, sizeof *made, class_compare_names);
	for (uint32_t i = 1; i < n; i++)
		if (!strcmp(made[i - 1].name, made[i].name))
			return error_set(err, -EEXIST,
					 "label '%.60s...' and another label "
					 "would have the same directory",
					 made[i].label);
	return 0;
}

static int class_index_alloc(struct class_index *x, uint64_t samples,
			     uint32_t n, struct error *err)
{
	x->samples = samples;
	x->start = calloc((size_t)n + 1, sizeof *x->start);
	x->row = malloc(samples * sizeof *x->row + 1);
	x->of = malloc(samples * sizeof *x->of + 1);
	x->name = calloc((size_t)n + 1, sizeof *x->name);
	x->label = calloc((size_t)n + 1, sizeof *x->label);
	return x->start && x->row && x->of && x->name && x->label
		       ? 0
		       : error_no_memory(err, "the index of labels");
}

/* Fill the index from sorted labels. */
static int class_index_fill(struct class_index *x, const struct class_labels *l,
			    struct class_made *made, uint32_t n,
			    struct error *err)
{
	uint64_t at = 0;
	int r = class_index_alloc(x, l->n, n, err);

	if (r < 0)
		return r;
	x->numbers = l->n && !l->at[0].text;
	for (uint32_t i = 0; i < n; i++) {
		x->start[i] = at;
		for (uint64_t k = 0; k < made[i].count; k++) {
			uint32_t row = l->at[made[i].first + k].row;

			x->row[at++] = row;
			x->of[row] = i;
		}
		x->name[i] = steal_pointer(&made[i].name);
		x->label[i] = steal_pointer(&made[i].label);
	}
	x->start[n] = at;
	x->n = n;
	return 0;
}

int class_index_new(struct class_index **out, struct class_labels *l,
		    struct error *err)
{
	vec(struct class_made) made = VEC_EMPTY;
	struct class_index *x = calloc(1, sizeof *x);
	int r = x ? 0 : error_no_memory(err, "the list of classes");

	sort_labels(l);
	for (uint64_t i = 0; i < l->n && r == 0; i++) {
		struct class_made one = {.first = i};

		if (!i || !label_is_same(&l->at[i - 1], &l->at[i])) {
			if (made.n == CLASSES_MAX)
				r = error_set(err, -E2BIG,
					      "there are more than %u "
					      "different labels",
					      CLASSES_MAX);
			else if (!vec_push(&made, one))
				r = error_no_memory(err, "the list of classes");
		}
		if (r == 0)
			made.at[made.n - 1].count++;
	}
	if (r == 0)
		r = class_make_names(l, made.at, (uint32_t)made.n, err);
	if (r == 0)
		r = class_index_fill(x, l, made.at, (uint32_t)made.n, err);
	for (size_t i = 0; i < made.n; i++) {
		free(made.at[i].name);
		free(made.at[i].label);
	}
	vec_free(&made);
	if (r < 0)
		class_index_free(x);
	else
		*out = x;
	return r;
}

static void class_labels_free(struct class_labels *l)
{
	free(l->at);
	free(l->text);
}

const struct class_index *classes_ready(const struct classes *c)
{
	return atomic_load(&c->index);
}

int classes_index(struct classes *c, const struct class_index **out,
		  struct error *err)
{
	struct class_index *x = atomic_load(&c->index), *none = NULL;
	struct class_labels l = {0};
	int r;

	*out = x;
	if (x)
		return 0;
	r = class_labels_read(c->t, c->p, &l, err);
	if (r == 0)
		r = class_index_new(&x, &l, err);
	class_labels_free(&l);
	if (r < 0)
		return error_prefix(err, "labels %s: ", classes_name(c));
	if (!atomic_compare_exchange_strong(&c->index, &none, x)) {
		class_index_free(x);
		x = none;
	}
	*out = x;
	return 0;
}

int class_find(const struct class_index *x, const char *name, uint32_t *out)
{
	struct bisect b = bisect_in(0, x->n);

	while (bisect_next(&b))
		bisect_answer(&b, strcmp(x->name[b.mid], name) >= 0);
	if (b.lo == x->n || strcmp(x->name[b.lo], name) != 0)
		return -ENOENT;
	*out = (uint32_t)b.lo;
	return 0;
}

/* ---- where they come from ----------------------------------------------------- */

int classes_of_tensor(struct classes **out, struct tensor *t, struct pinner *p,
		      struct error *err)
{
	struct classes *c = calloc(1, sizeof *c);
	int r = c ? 0 : error_no_memory(err, "labels");

	if (r == 0 && !dtype_is_binary(&t->dtype) && !t->text)
		r = text_new(&t->text, t, t->rank, err);
	if (r < 0) {
		tensor_free(t);
		free(c);
		return r;
	}
	c->t = t;
	c->p = p;
	classes_set_shape(c, t->rank, t->shape);
	*out = c;
	return 0;
}

int classes_of_index(struct classes **out, struct class_index *x,
		     const char *path, struct error *err)
{
	struct classes *c = calloc(1, sizeof *c);

	if (c)
		c->path = strdup(path);
	if (!c || !c->path) {
		free(c);
		class_index_free(x);
		return error_no_memory(err, "labels");
	}
	classes_set_shape(c, 1, &x->samples);
	atomic_init(&c->index, x);
	*out = c;
	return 0;
}

void classes_free(struct classes *c)
{
	if (!c)
		return;
	class_index_free(atomic_load(&c->index));
	tensor_free(c->t);
	free(c->path);
	free(c);
}

uint64_t classes_samples(const struct classes *c)
{
	return c->samples;
}

const char *classes_name(const struct classes *c)
{
	return c->path ? c->path : c->t->name;
}

void classes_set_shape(struct classes *c, unsigned rank, const uint64_t *shape)
{
	c->samples = c->rank = 1;
	c->shape[0] = 1;
	for (unsigned i = 0; i < rank; i++) {
		c->shape[i] = shape[i];
		/* cannot overflow: there are as many labels */
		c->samples *= shape[i];
		if (shape[i] != 1)
			c->rank = i + 1;
	}
}

bool classes_fit(const struct classes *c, const struct tensor *t, unsigned axes)
{
	uint64_t all = 1;
	bool same = axes >= c->rank;

	if (t->why_not || !axes || axes > t->rank ||
	    t->dtype.kind == DTYPE_OTHER ||
	    (dtype_is_binary(&t->dtype) && t->rank == axes))
		return false;
	for (unsigned i = 0; i < axes; i++) {
		if (mul_overflows(all, t->shape[i], &all))
			return false;
		same = same && t->shape[i] == (i < c->rank ? c->shape[i] : 1);
	}
	return same || (c->rank == 1 && all == c->samples);
}

void classes_offer(struct classes *c, struct tensor *t, unsigned axes)
{
	if (!c || t->classes || !classes_fit(c, t, axes))
		return;
	t->classes = c;
	c->used = true;
}

bool classes_used(const struct classes *c)
{
	return c->used;
}

int classes_fail_unused(const struct classes *c, const char *name,
			struct error *err)
{
	char shape[32 * RANK_MAX];

	if (c->rank == 1)
		return error_set(err, -EINVAL,
				 "labels: '%s' has %" PRIu64
				 " labels, and no dataset has as many samples "
				 "(arrays or texts)",
				 name, c->samples);
	dtype_shape_text(c->shape, c->rank, shape, sizeof shape);
	return error_set(err, -EINVAL,
			 "labels: '%s' has the shape %s, and no dataset has "
			 "samples along such axes (sample-axes= says how many "
			 "axes count samples); one-hot labels are not "
			 "supported, use the numbers of the classes",
			 name, shape);
}
