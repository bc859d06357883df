/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects of which libhdf5 cannot decode an attribute. */
#ifndef FORMATS_HDF5_FILE_LOST_H
#define FORMATS_HDF5_FILE_LOST_H

#include "base/json.h"
#include "formats/hdf5/file/place.h"

struct hdf5_header;

/* Attributes that the library does not get at, besides those that are named. */
enum hdf5_rest {
	HDF5_REST_NONE, /* it may list attributes in any order */
	HDF5_REST_SOME, /* in H5_ITER_NATIVE only, and will fail at one */
	HDF5_REST_ALL   /* it must not try: it frees what it never allocated */
};
struct hdf5_lost {
	json_t *names; /* of those that are hidden, and why; NULL: none is */
	enum hdf5_rest rest;
};
/* What of an object's attributes the library may list; `why` is set unless that is
 * all of them.  To be asked before each H5Aiterate2.  Lock held. */
enum hdf5_rest hdf5_lost_rest(hid_t object, char *why, size_t n);
/*
 * hdf5_place_open; then, where the library cannot go through the object's
 * attributes because it cannot decode some of them, the object is opened so that
 * these are not there for it.  lost->names is the caller's.  Lock held until
 * hdf5_lost_close, but not when it fails.
 */
int hdf5_lost_open(const struct hdf5_place *at, struct hdf5_opened *o,
		   struct hdf5_lost *lost, struct error *err);
void hdf5_lost_close(struct hdf5_opened *o);
/* For the driver: what was read of a file, `n` bytes at `pos`, as the library is to
 * see it.  Lock held. */
void hdf5_lost_overlay(uint32_t file, uint64_t pos, void *buf, size_t n);

#endif
