/* SPDX-License-Identifier: BSD-2-Clause */
/* Read all labels of a tensor: whole numbers, or lines of text. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/number.h"
#include "tensor/read.h"
#include "tensor/text.h"
#include "views/classes.h"

#define WINDOW 65536

/* Read a number from served bytes.  Return false if it does not fit into int64. */
static bool label_read_number(const struct dtype *d, const unsigned char *p,
			      int64_t *out)
{
	uint64_t v = 0;

	for (uint32_t i = 0; i < d->size; i++)
		v |= (uint64_t)p[d->big_endian ? d->size - 1 - i : i]
		     << (8 * i);
	if (d->kind != DTYPE_INT) {
		*out = (int64_t)v;
		return v <= INT64_MAX;
	}
	if (d->size < 8 && v >> (8 * d->size - 1))
		v |= UINT64_MAX << (8 * d->size);
	*out = (int64_t)v;
	return true;
}

static int labels_read_numbers(struct tensor *t, struct pinner *p,
			       struct class_labels *l, struct error *err)
{
	const uint32_t size = t->dtype.size;
	unsigned char some[WINDOW];
	struct box b;
	int r = 0;

	tensor_whole_box(t, &b);
	for (uint64_t i = 0, n; i < l->n && r == 0; i += n) {
		n = min_u64(l->n - i, WINDOW / size);
		r = tensor_read(t, &b, i * size, some, (size_t)n * size, p,
				err);
		for (uint64_t k = 0; k < n && r == 0; k++) {
			l->at[i + k].row = (uint32_t)(i + k);
			if (!label_read_number(&t->dtype, some + k * size,
					       &l->at[i + k].number))
				r = error_set(err, -ERANGE,
					      "%s: label %llu is too large",
					      t->name,
					      (unsigned long long)(i + k));
		}
	}
	return r;
}

struct text_labels {
	struct class_labels *l;
	size_t used, room;
	size_t *at;
	uint64_t n;
};

/* Take a line, which ends with a newline and has backslashes and newlines escaped. */
static int label_put_line(void *ctx, const unsigned char *line, size_t len,
			  struct error *err)
{
	struct text_labels *x = ctx;
	char *to;

	if (x->n == x->l->n)
		return error_set(err, -EIO,
				 "there are more labels than elements");
	if (memchr(line, 0, len))
		return error_set(err, -EBADMSG,
				 "label %llu contains a NUL character",
				 (unsigned long long)x->n);
	if (x->room - x->used < len + 1) {
		size_t room = 2 * x->room + len + 4096;

		to = realloc(x->l->text, room);
		if (!to)
			return error_no_memory(err, "the text of labels");
		x->l->text = to;
		x->room = room;
	}
	x->at[x->n++] = x->used;
	to = x->l->text + x->used;
	for (size_t i = 0; i < len && line[i] != '\n'; i++) {
		if (line[i] == '\\' && i + 1 < len && line[i + 1] != '\n')
			*to++ = line[++i] == 'n' ? '\n' : (char)line[i];
		else
			*to++ = (char)line[i];
	}
	*to++ = '\0';
	x->used = (size_t)(to - x->l->text);
	return 0;
}

static int labels_read_texts(struct tensor *t, struct pinner *p,
			     struct class_labels *l, struct error *err)
{
	struct text_labels x = {.l = l};
	int r;

	x.at = malloc((size_t)l->n * sizeof *x.at + 1);
	if (!x.at)
		return error_no_memory(err, "the text of labels");
	r = text_each(t->text, p, label_put_line, &x, err);
	if (r == 0 && x.n != l->n)
		r = error_set(err, -EIO, "%s: labels are missing", t->name);
	for (uint64_t i = 0; i < l->n && r == 0; i++)
		l->at[i] = (struct class_label){.text = l->text + x.at[i],
						.row = (uint32_t)i};
	free(x.at);
	return r;
}

int class_labels_read(struct tensor *t, struct pinner *p,
		      struct class_labels *out, struct error *err)
{
	*out = (struct class_labels){.n = t->elements};
	out->at = calloc((size_t)out->n + 1, sizeof *out->at);
	if (!out->at)
		return error_no_memory(err, "labels");
	return t->text ? labels_read_texts(t, p, out, err)
		       : labels_read_numbers(t, p, out, err);
}

bool classes_is_name(const char *name)
{
	static const char *const names[] = {"label",   "labels", "target",
					    "targets", "class",  "classes",
					    "y",       NULL};

	for (unsigned i = 0; names[i]; i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

bool classes_can_be(const struct tensor *t)
{
	const struct dtype *d = &t->dtype;

	if (t->why_not || !t->rank || !t->elements ||
	    t->elements > CLASSES_SAMPLES_MAX)
		return false;
	return d->kind == DTYPE_STRING || d->kind == DTYPE_BOOL ||
	       ((d->kind == DTYPE_INT || d->kind == DTYPE_UINT) &&
		d->size <= 8);
}
