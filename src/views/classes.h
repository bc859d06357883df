/* SPDX-License-Identifier: BSD-2-Clause */
/* Labels: the class of each sample, and the samples of each class. */
#ifndef VIEWS_CLASSES_H
#define VIEWS_CLASSES_H

#include "tensor/tensor.h"

#define CLASSES_MAX (UINT32_C(1) << 20)
#define CLASSES_SAMPLES_MAX UINT32_MAX

/* A list of labels, one for each sample.  The classes are computed when they are first
 * needed, and kept: 8 bytes for each sample. */
struct classes;
/* Does a name suggest labels: "label", "targets", ...? */
bool classes_is_name(const char *name);
/* Can this tensor be labels?  It must have whole numbers or strings, and not too many. */
bool classes_can_be(const struct tensor *t);
/* Make labels of a tensor.  It takes over the tensor, also on errors; `p` must outlive
 * the labels.  Return 0 or -errno.  No I/O. */
int classes_of_tensor(struct classes **out, struct tensor *t, struct pinner *p,
		      struct error *err);
/*
 * Make labels of a file: each row is a label, or the number of a sample (from 0, each
 * once) and its label; a header is skipped.  Return 0; -ENOMEM; -EBADMSG, with path and
 * line in the sentence; or -errno of reading.
 */
int classes_of_csv(struct classes **out, const char *path, struct error *err);
/* Make labels of the text of such a file, `n` bytes with room for one more; the text is
 * changed.  `path` is for sentences. */
int classes_of_text(struct classes **out, char *text, size_t n,
		    const char *path, struct error *err);
/* Free labels, which may be NULL, with their tensor and index. */
void classes_free(struct classes *c);
uint64_t classes_samples(const struct classes *c);
/* Give the labels, in C order, axes.  Call it before classes_offer. */
void classes_set_shape(struct classes *c, unsigned rank, const uint64_t *shape);
/* Is there one label for each sample of `t`, whose first `axes` axes count samples?
 * Either these axes have the lengths of the labels' axes, or 1 where the labels have no
 * more axes; or the labels are a list of as many.  A tensor whose samples are single
 * numbers does not fit: it may be labels itself. */
bool classes_fit(const struct classes *c, const struct tensor *t,
		 unsigned axes);
/* Give the labels to a tensor if they fit it and it has no labels yet.  `c` may be
 * NULL. */
void classes_offer(struct classes *c, struct tensor *t, unsigned axes);
/* Did some tensor get these labels? */
bool classes_used(const struct classes *c);
/* Set and return -EINVAL, with a sentence: the labels fit no tensor, and how many there
 * are. */
int classes_fail_unused(const struct classes *c, const char *name,
			struct error *err);
/* Return "/labels" or the path, for sentences. */
const char *classes_name(const struct classes *c);

/*
 * Classes in the order of their names.  A class's name is that of its directory: a
 * number padded to the width of the largest (at least 6), or the text of the label,
 * where '/', control characters, and a '%' that looks like an escape are written as
 * %XX.  Different labels have different names.
 */
struct class_index {
	uint64_t samples;
	uint32_t n;
	bool numbers;
	uint64_t *start; /* [n + 1]: where each class begins in `row` */
	uint32_t *row;   /* samples, class by class, in order */
	uint32_t *of;    /* the class of each sample */
	char **name;     /* [n] */
	char **label;    /* [n], unescaped: "7", "cat" */
};
/* Set *out to the index, which belongs to `c`.  The first call reads all labels.
 * Blocks. */
int classes_index(struct classes *c, const struct class_index **out,
		  struct error *err);
/* Return the index if classes_index has made it, else NULL.  Does not block. */
const struct class_index *classes_ready(const struct classes *c);
/* Set *out to the class with this name.  Return 0 or -ENOENT. */
int class_find(const struct class_index *x, const char *name, uint32_t *out);

/* A label while labels are sorted: a text, or a number if `text` is NULL. */
struct class_label {
	const char *text;
	int64_t number;
	uint32_t row;
};
struct class_labels {
	struct class_label *at;
	uint64_t n;
	char *text; /* texts that the labels point into; or NULL */
};
/* Read all labels of a tensor; in classes_read.c.  The caller frees out->at and
 * out->text, also on errors.  Blocks. */
int class_labels_read(struct tensor *t, struct pinner *p,
		      struct class_labels *out, struct error *err);
/* Make the index of labels.  It sorts them; they stay the caller's.  Return 0; -ENOMEM;
 * -E2BIG for too many classes; -EEXIST if two labels get the same name. */
int class_index_new(struct class_index **out, struct class_labels *l,
		    struct error *err);
void class_index_free(struct class_index *x);
/* Make labels of an index.  It takes over the index, also on errors. */
int classes_of_index(struct classes **out, struct class_index *x,
		     const char *path, struct error *err);

#endif
