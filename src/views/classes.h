/* SPDX-License-Identifier: BSD-2-Clause */
/* Labels: which class each sample is in, and which samples a class has. */
#ifndef VIEWS_CLASSES_H
#define VIEWS_CLASSES_H

#include "tensor/tensor.h"

#define CLASSES_MAX (UINT32_C(1) << 20)
#define CLASSES_SAMPLES_MAX UINT32_MAX

/* A list of labels, one for each sample; the classes that come of it are worked out when
 * they are first asked for, and kept: 8 bytes a sample. */
struct classes;
/* "label", "targets", ...: is it likely to be labels, by its name? */
bool classes_is_name(const char *name);
/* Can this tensor be labels: whole numbers or strings, not too many? */
bool classes_can_be(const struct tensor *t);
/* Labels that are a tensor, which is owned, also when it fails; `p` as long as they live.
 * No I/O. */
int classes_of_tensor(struct classes **out, struct tensor *t, struct pinner *p,
		      struct error *err);
/*
 * Labels that are a file: one in each row, or the number of the sample (from 0, each
 * once) and its label; a header is skipped.  -EBADMSG, with path and line.
 */
int classes_of_csv(struct classes **out, const char *path, struct error *err);
/* The same for text that is in memory (room for one byte more; changed). */
int classes_of_text(struct classes **out, char *text, size_t n,
		    const char *path, struct error *err);
void classes_free(struct classes *c);
uint64_t classes_samples(const struct classes *c);
/* Labels that have axes, in C order; before they are offered to anybody. */
void classes_set_shape(struct classes *c, unsigned rank, const uint64_t *shape);
/* Is there one for each sample, of which the first `axes` axes count?  Axes are the same,
 * but for further ones of length 1; or there is a list that is as long.  A sample is more
 * than a number: else it could be a label. */
bool classes_fit(const struct classes *c, const struct tensor *t,
		 unsigned axes);
/* Make them those of a tensor that they fit, and that has no labels yet; `c` may be
 * NULL. */
void classes_offer(struct classes *c, struct tensor *t, unsigned axes);
/* Some tensor has them. */
bool classes_used(const struct classes *c);
/* -EINVAL: they fit nothing, and how many there are. */
int classes_fail_unused(const struct classes *c, const char *name,
			struct error *err);
/* "/labels" or the path, for sentences. */
const char *classes_name(const struct classes *c);

/*
 * Classes in the order of their names.  A name is that of a directory: a number padded to
 * the width of the largest (6 at least), or the text, where '/', control characters and a
 * '%' that could be meant so are written as %XX: different labels have different names.
 */
struct class_index {
	uint64_t samples;
	uint32_t n;
	bool numbers;
	uint64_t *start; /* [n + 1] of `row` */
	uint32_t *row;   /* samples, class by class, each in their order */
	uint32_t *of;    /* class of each sample */
	char **name;     /* [n] */
	char **label;    /* [n], as it is: "7", "cat" */
};
/* Reads all labels the first time.  Blocks. */
int classes_index(struct classes *c, const struct class_index **out,
		  struct error *err);
/* NULL until then. */
const struct class_index *classes_ready(const struct classes *c);
/* The class with this name; -ENOENT. */
int class_find(const struct class_index *x, const char *name, uint32_t *out);

/* A label while they are sorted: text, or a number. */
struct class_label {
	const char *text;
	int64_t number;
	uint32_t row;
};
struct class_labels {
	struct class_label *at;
	uint64_t n;
	char *text; /* that labels point into; or NULL */
};
/* classes_read.c: all labels of a tensor.  What was made is freed by the caller. */
int class_labels_read(struct tensor *t, struct pinner *p,
		      struct class_labels *out, struct error *err);
/* The index of labels, which are sorted for it and stay the caller's. */
int class_index_new(struct class_index **out, struct class_labels *l,
		    struct error *err);
void class_index_free(struct class_index *x);
/* Classes that are known; the index is owned, also when it fails. */
int classes_of_index(struct classes **out, struct class_index *x,
		     const char *path, struct error *err);

#endif
