/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects with attributes that libhdf5 cannot decode. */

/*
 * The library decodes attributes one after the other, and stops with an error at the
 * first that it does not know (a datatype of HDF5 2.0).  So the bad ones are found by
 * bisection: all attributes but one half are hidden, and the library is asked to decode
 * that half; a half that it cannot decode is halved again.  One bad attribute among a
 * hundred costs about 14 attempts.
 */
#include "formats/hdf5/file/lost.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/hdf5/file/driver.h"
#include "formats/hdf5/file/header.h"

#define ATTEMPTS_MAX 1024 /* for one object */

/* While `hiding`, the driver replaces what it reads of this header.  Guarded by the
 * library's lock. */
static struct hdf5_header header;
static bool hiding;

struct search {
	const struct hdf5_place *at;
	struct hdf5_opened *o;
	json_t *lost;
	unsigned attempts;
	enum hdf5_rest rest; /* result of the last attempt */
	char why[256];
	struct error *err;
};

void hdf5_lost_overlay(uint32_t file, uint64_t pos, void *buf, size_t n)
{
	if (hiding && header.file == file)
		hdf5_header_overlay(&header, pos, buf, n);
}

static herr_t lost_visit_attribute(hid_t object, const char *name,
				   const H5A_info_t *info, void *ctx)
{
	(void)object, (void)name, (void)info, (void)ctx;
	return 0;
}

/*
 * libhdf5 (1.10 at least) collects the attributes of a header in a table before it
 * returns any, and if it cannot decode one of them, it frees entries that it never set.
 * Looking for a name that does not exist makes it decode all of them without a table.
 * Attributes in a heap are returned one by one if no order is asked for.
 */
enum hdf5_rest hdf5_lost_rest(hid_t object, char *why, size_t n)
{
	static const char absent_name[] = "\x01(tensorfs: no such attribute)";
	enum hdf5_rest rest = HDF5_REST_NONE;
	hsize_t at = 0;

	if (H5Aexists(object, absent_name) < 0)
		rest = HDF5_REST_ALL;
	else if (H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_NATIVE, &at,
			     lost_visit_attribute, NULL) < 0)
		rest = HDF5_REST_SOME;
	if (rest != HDF5_REST_NONE)
		hdf5_why(why, n);
	return rest;
}

static bool lost_decodes(struct search *s)
{
	s->rest = hdf5_lost_rest(s->o->object, s->why, sizeof s->why);
	return s->rest == HDF5_REST_NONE;
}

/* ---- the search ---------------------------------------------------------- */

/* Open the file and the object again, because the library caches what it has read. */
static int lost_reopen(struct search *s)
{
	int r;

	H5Oclose(s->o->object);
	H5Fclose(s->o->file);
	s->o->object = s->o->file = H5I_INVALID_HID;
	r = hdf5_open(s->at->s->handles, s->at->file, &s->o->file, s->err);
	if (r < 0) {
		s->o->file = H5I_INVALID_HID;
		return r;
	}
	s->o->object = H5Oopen(s->o->file, s->at->object, H5P_DEFAULT);
	if (s->o->object >= 0)
		return 0;
	hdf5_why(s->why, sizeof s->why);
	return error_set(s->err, -EIO, "it cannot be opened: %s", s->why);
}

/* Hide all attributes but [from, to).  Return 1 if the library decodes these, 0 if
 * not, -errno on errors. */
static int lost_attempt(struct search *s, size_t from, size_t to)
{
	int r;

	for (size_t i = 0; i < header.attributes.n; i++)
		header.attributes.at[i].hidden = i < from || i >= to;
	hdf5_header_hide(&header);
	r = lost_reopen(s);
	return r < 0 ? r : lost_decodes(s);
}

static int lost_add(struct search *s, const char *name, size_t number,
		    const char *why)
{
	char some[40];
	json_t *key, *text;
	int r;

	snprintf(some, sizeof some, "(attribute %zu)", number + 1);
	name = name ? name : some;
	key = json_text(name, strlen(name));
	text = json_text(why, strlen(why));
	r = json_object_set_new(s->lost, key ? json_string_value(key) : some,
				text);
	json_decref(key);
	return r < 0 ? error_no_memory(s->err, "the attributes of an object")
		     : 0;
}

static int lost_add_attribute(struct search *s, size_t i)
{
	unsigned major = 0, minor = 0, release = 0;
	char why[sizeof s->why + 80];

	H5get_libversion(&major, &minor, &release);
	snprintf(why, sizeof why,
		 "libhdf5 %u.%u.%u cannot decode it (a newer one may): %s",
		 major, minor, release, s->why);
	return lost_add(s, header.attributes.at[i].name, i, why);
}

/* Find the attributes in [from, to) that the library cannot decode; set the byte of
 * each in `bad`. */
static int lost_sift(struct search *s, size_t from, size_t to, char *bad)
{
	size_t middle = from + (to - from) / 2;
	int r;

	if (from == to)
		return 0;
	if (++s->attempts > ATTEMPTS_MAX)
		return error_set(s->err, -ENOTSUP,
				 "too many attributes cannot be decoded");
	r = lost_attempt(s, from, to);
	if (r)
		return r < 0 ? r : 0;
	if (to - from == 1) {
		bad[from] = 1;
		return lost_add_attribute(s, from);
	}
	r = lost_sift(s, from, middle, bad);
	return r < 0 ? r : lost_sift(s, middle, to, bad);
}

/* Hide all bad attributes.  Return 1 if the library decodes the others, 0 if not,
 * -errno on errors. */
static int lost_hide(struct search *s, const char *bad)
{
	int r;

	for (size_t i = 0; i < header.attributes.n; i++)
		header.attributes.at[i].hidden = bad[i];
	hdf5_header_hide(&header);
	r = lost_reopen(s);
	return r < 0 ? r : lost_decodes(s);
}

/* Read the object's header into `header`. */
static int lost_read_header(struct search *s)
{
	hid_t fcpl = H5Fget_create_plist(s->o->file);
	size_t addr = 0, len = 0;
	hsize_t base = 0;
	H5O_info_t info;
	bool ok = fcpl >= 0 && H5Pget_sizes(fcpl, &addr, &len) >= 0 &&
		  H5Pget_userblock(fcpl, &base) >= 0 &&
		  H5Oget_info2(s->o->object, &info, H5O_INFO_BASIC) >= 0 &&
		  addr <= 8 && len <= 8;

	if (fcpl >= 0)
		H5Pclose(fcpl);
	if (!ok)
		return error_set(s->err, -EIO,
				 "its object header cannot be found");
	return hdf5_header_read(s->at->s->handles, s->at->file, base,
				(unsigned)addr, (unsigned)len, info.addr,
				&header, s->err);
}

static int lost_search(struct search *s)
{
	char *bad;
	int r = lost_read_header(s);

	if (r < 0)
		return r;
	bad = calloc(header.attributes.n + 1, 1);
	if (!bad)
		return error_no_memory(s->err, "the attributes of an object");
	hiding = true;
	r = lost_sift(s, 0, header.attributes.n, bad);
	if (!r)
		r = lost_hide(s, bad);
	free(bad);
	return r;
}

/* ---- opening ------------------------------------------------------------- */

static void lost_stop_hiding(void)
{
	if (hiding || header.blocks.n)
		hdf5_header_free(&header);
	hiding = false;
}

/* Open the object with nothing hidden: attributes that the library decodes before it
 * fails are listed.  The lock is not held after an error. */
static int lost_open_unhidden(struct search *s, struct error *err)
{
	char why[sizeof s->err->text];
	int r;

	snprintf(why, sizeof why, "%s", s->err->code ? s->err->text : s->why);
	lost_stop_hiding();
	hdf5_place_close(s->o);
	r = hdf5_place_open(s->at, s->o, err);
	if (r < 0)
		return r;
	json_object_clear(s->lost);
	s->err = err;
	r = lost_add(s,
		     lost_decodes(s) || s->rest == HDF5_REST_ALL ? "(all)"
								 : "(others)",
		     0, why);
	if (r < 0)
		hdf5_place_close(s->o);
	return r;
}

int hdf5_lost_open(const struct hdf5_place *at, struct hdf5_opened *o,
		   struct hdf5_lost *lost, struct error *err)
{
	struct error why = {0};
	struct search s = {.at = at, .o = o, .err = &why};
	int r = hdf5_place_open(at, o, err);

	*lost = (struct hdf5_lost){.rest = HDF5_REST_NONE};
	if (r < 0 || lost_decodes(&s))
		return r;
	s.lost = json_object();
	if (!s.lost) {
		hdf5_place_close(o);
		return error_no_memory(err, "the attributes of an object");
	}
	r = lost_search(&s);
	if (r != 1)
		r = lost_open_unhidden(&s, err);
	if (r < 0) {
		json_decref(s.lost);
		return r;
	}
	lost->names = s.lost;
	lost->rest = s.rest;
	return 0;
}

void hdf5_lost_close(struct hdf5_opened *o)
{
	lost_stop_hiding();
	hdf5_place_close(o);
}
