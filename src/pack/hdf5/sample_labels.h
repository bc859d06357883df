/* SPDX-License-Identifier: BSD-2-Clause */
/* What --labels says of each sample. */
#ifndef PACK_HDF5_SAMPLE_LABELS_H
#define PACK_HDF5_SAMPLE_LABELS_H

#include "pack/hdf5/sample.h"

/*
 * "dirs": the directory below the top that a sample is in; classes are numbered as
 * torchvision's ImageFolder numbers them (folder.py, find_classes, 0.14): all directories
 * of the first level, sorted by name, whether samples are in them or not.
 *
 * Else a file of comma-separated values: "path,label", paths as in the pack.  The first row
 * may be a header: then its columns are found by name, and there may be more.  Labels are
 * numbers where all of them are whole ones as one writes them (no "007"); else their
 * different texts, sorted, are classes.
 */
struct labels;
/* -EBADMSG: a sample without a label or with two, a file that is no such; what open says. */
int labels_new(struct labels **out, const char *how,
	       const struct sample_list *samples, const struct sink_args *a,
	       struct error *err);
/* Of an entry of the scan that is a sample. */
int64_t labels_at(const struct labels *l, uint64_t entry);
/* Names of classes, in order of their numbers; NULL: labels are numbers themselves. */
const char *const *labels_classes(const struct labels *l, size_t *n);
/* `l` may be NULL. */
void labels_free(struct labels *l);

#endif
