/* SPDX-License-Identifier: BSD-2-Clause */
/* What is written around an array, as JSON: attributes and small datasets. */
#ifndef FORMATS_HDF5_VALUE_LISTING_H
#define FORMATS_HDF5_VALUE_LISTING_H

#include "base/json.h"
#include "formats/hdf5/file/lost.h"
#include "formats/hdf5/file/source.h"
#include "formats/hdf5/value/reference.h"

/* Flags for json_exact when a listing is written. */
#define HDF5_LISTING_DUMP JSON_COMPACT

/*
 * The values listed for one question are limited, each and together; larger
 * ones are described in words, in brackets.  So is what cannot be read: damage
 * in one value does not hide the others.  Lock of the library held for all
 * calls.
 */
struct hdf5_listing {
	struct hdf5_source *s;
	struct hdf5_paths *paths;
	uint64_t values, bytes; /* read so far */
	bool failed;            /* memory ran out */
	bool unread;            /* the last value could not be read */
	/* Attributes of the object that could not be read, and why. */
	struct hdf5_lost lost;
};

/* `object`: any of the file; it stays open until the listing is closed.  `lost` is
 * what hdf5_lost_open said of it; its names become the listing's.  -ENOMEM (then it need
 * not be closed, but may be). */
int hdf5_listing_open(struct hdf5_listing *l, struct hdf5_source *s,
		      hid_t object, const struct hdf5_lost *lost,
		      struct error *err);
void hdf5_listing_close(struct hdf5_listing *l);

/* Return the value of an attribute; NULL when out of memory (l->failed). */
json_t *hdf5_list_attribute(struct hdf5_listing *l, hid_t object,
			    const char *name);
/* Return the values of a dataset or, with `why` not NULL, only their number and type
 * and why they are not listed. NULL when out of memory. */
json_t *hdf5_list_dataset(struct hdf5_listing *l, hid_t dset, const char *why);
/* Return all attributes of the object. Those that cannot be read are words in
 * brackets, and in l->lost. NULL when out of memory, with a sentence. */
json_t *hdf5_list_attributes(struct hdf5_listing *l, hid_t object,
			     struct error *err);

/* If a dataset `data` belongs to a HyperSpy signal, add `axes` and `metadata` of its
 * group to `about` (hyperspy.c). */
void hdf5_hyperspy_about(struct hdf5_listing *l, hid_t group, hid_t dset,
			 json_t *about);

#endif
