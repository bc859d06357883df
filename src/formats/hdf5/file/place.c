/* SPDX-License-Identifier: BSD-2-Clause */
/* An object of an HDF5 file, open for as long as a question takes. */

#include "formats/hdf5/file/place.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "formats/hdf5/file/driver.h"

/* Most bytes of an object's path in a sentence. */
#define NAME_SHOWN 160

void hdf5_place_close(struct hdf5_opened *o)
{
	if (o->object >= 0)
		H5Oclose(o->object);
	if (o->file >= 0)
		H5Fclose(o->file);
	hdf5_unlock();
}

/* Does every link of the path `object` exist?  True as well if that cannot be found
 * out. */
static bool place_exists(hid_t file, const char *object)
{
	char *path = strdup(object);
	bool is = true;
	char end;

	for (char *at = path; at && is && *at;) {
		size_t n = strspn(at, "/");

		n += strcspn(at + n, "/");
		end = at[n];
		at[n] = '\0';
		is = !path[strspn(path, "/")] ||
		     H5Lexists(file, path, H5P_DEFAULT) != 0;
		at[n] = end;
		at += n;
	}
	free(path);
	return is;
}

int hdf5_place_open(const struct hdf5_place *at, struct hdf5_opened *o,
		    struct error *err)
{
	char why[256];
	int r;

	o->file = o->object = H5I_INVALID_HID;
	hdf5_lock();
	r = hdf5_open(at->s->handles, at->file, &o->file, err);
	if (r < 0) {
		o->file = H5I_INVALID_HID;
		hdf5_place_close(o);
		return r;
	}
	o->object = H5Oopen(o->file, at->object, H5P_DEFAULT);
	if (o->object >= 0)
		return 0;
	hdf5_why(why, sizeof why);
	if (place_exists(o->file, at->object))
		r = error_set(err, -EIO, "it cannot be opened: %s", why);
	else
		r = error_set(err, -ENOENT, "there is no such object");
	hdf5_place_prefix(at, err);
	hdf5_place_close(o);
	return r;
}

void hdf5_place_prefix(const struct hdf5_place *at, struct error *err)
{
	size_t n = strlen(at->object);
	const char *dots = n > NAME_SHOWN ? "..." : "";

	error_prefix(err, "%s: object '%s%s': ",
		     handles_name(at->s->handles, at->file), dots,
		     n > NAME_SHOWN ? at->object + n - NAME_SHOWN : at->object);
}
