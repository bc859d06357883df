/* SPDX-License-Identifier: BSD-2-Clause */
/* The label of each sample, according to --labels. */
#ifndef PACK_HDF5_SAMPLE_LABELS_H
#define PACK_HDF5_SAMPLE_LABELS_H

#include "pack/hdf5/sample.h"

/*
 * "dirs": the label is the directory below the top.  Classes are numbered as by
 * torchvision's ImageFolder (folder.py, find_classes, 0.14): all directories of the first
 * level, sorted by name, even those without samples.
 *
 * Otherwise --labels names a file of comma-separated values: "path,label", with paths as
 * in the pack.  The first row may be a header; then columns are found by name, and there
 * may be more.  If all labels are whole numbers in their usual form (no "007"), they are
 * used as numbers; otherwise the distinct texts, sorted, are classes.
 */
struct labels;
/* Return 0; -EBADMSG if a sample has no label or two, or the file is malformed; or the
 * error of open.  The caller frees *out with labels_free. */
int labels_new(struct labels **out, const char *how,
	       const struct sample_list *samples, const struct sink_args *a,
	       struct error *err);
/* The label of an entry of the scan that is a sample. */
int64_t labels_at(const struct labels *l, uint64_t entry);
/* Names of classes, in order of their numbers, owned by `l`; NULL if labels are
 * numbers. */
const char *const *labels_classes(const struct labels *l, size_t *n);
/* `l` may be NULL. */
void labels_free(struct labels *l);

#endif
