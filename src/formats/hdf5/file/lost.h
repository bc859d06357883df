/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects with attributes that libhdf5 cannot decode. */
#ifndef FORMATS_HDF5_FILE_LOST_H
#define FORMATS_HDF5_FILE_LOST_H

#include "base/json.h"
#include "formats/hdf5/file/place.h"

struct hdf5_header;

/* Which attributes of an object the library cannot list, apart from those in
 * hdf5_lost.names. */
enum hdf5_rest {
	HDF5_REST_NONE, /* it may list attributes in any order */
	HDF5_REST_SOME, /* in H5_ITER_NATIVE order only, and fails at one */
	HDF5_REST_ALL   /* it must not try: it frees what it never allocated */
};
struct hdf5_lost {
	json_t *names; /* hidden attributes: name and reason; NULL: none */
	enum hdf5_rest rest;
};
/* Find out which attributes of an object the library may list.  Call this before each
 * H5Aiterate2.  Unless the library may list all of them, `why` (`n` bytes) is set to
 * the reason.  The lock must be held. */
enum hdf5_rest hdf5_lost_rest(hid_t object, char *why, size_t n);
/*
 * Do what hdf5_place_open does.  If the library cannot list the attributes of the object
 * because it cannot decode some of them, hide these from it and open the object again.
 * The caller owns lost->names.  After success the lock is held until hdf5_lost_close;
 * after an error it is not held.
 */
int hdf5_lost_open(const struct hdf5_place *at, struct hdf5_opened *o,
		   struct hdf5_lost *lost, struct error *err);
void hdf5_lost_close(struct hdf5_opened *o);
/* Called by the driver: replace hidden attributes in the `n` bytes that were read at
 * `pos` of `file`.  The lock must be held. */
void hdf5_lost_overlay(uint32_t file, uint64_t pos, void *buf, size_t n);

#endif
