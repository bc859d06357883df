/* SPDX-License-Identifier: BSD-2-Clause */
/* An object of an HDF5 file, by file and path, open for as long as a question takes. */
#ifndef FORMATS_HDF5_FILE_PLACE_H
#define FORMATS_HDF5_FILE_PLACE_H

#include <hdf5.h>

#include "formats/hdf5/file/source.h"

struct hdf5_place {
	struct hdf5_source *s;
	uint32_t file;
	const char *object; /* path in the file */
};
/* An object and its file, open while the library's lock is held. */
struct hdf5_opened {
	hid_t file, object;
};

/* Take the library's lock and open the object; hdf5_place_close closes both and releases
 * the lock.  After an error the lock is not held.  Errors as hdf5_open. */
int hdf5_place_open(const struct hdf5_place *at, struct hdf5_opened *o,
		    struct error *err);
void hdf5_place_close(struct hdf5_opened *o);
/* Put "PATH: object 'x': " in front of the sentence. */
void hdf5_place_prefix(const struct hdf5_place *at, struct error *err);

#endif
