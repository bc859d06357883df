/* SPDX-License-Identifier: BSD-2-Clause */
/* Trying the walk through a file in a child process first. */
#ifndef FORMATS_HDF5_WORKER_TRIAL_H
#define FORMATS_HDF5_WORKER_TRIAL_H

#include "formats/hdf5/file/source.h"

/* Run `walk` in a child process, to see whether libhdf5 survives it.  -EBADMSG: it does
 * not, and the sentence says how it ended.  `walk` calls hdf5_trial_beat for each object;
 * after a minute without a beat the child counts as hanging. */
typedef int hdf5_walk(struct hdf5_source *s, const struct source_args *a,
		      struct error *err);
int hdf5_trial(hdf5_walk *walk, struct hdf5_source *s,
	       const struct source_args *a, struct error *err);
void hdf5_trial_beat(void);

#endif
