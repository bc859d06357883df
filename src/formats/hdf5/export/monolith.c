/* SPDX-License-Identifier: BSD-2-Clause */
/* An HDF5 file without its data, made in memory: the beginning of array.h5, merged.h5. */
#include "formats/hdf5/export/monolith.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/arrays.h"

bool hdf5_has_data(const struct hdf5_tensor *h)
{
	return !h->t.why_not && dtype_is_binary(&h->t.dtype) && h->t.bytes;
}

/* ---- making it ----------------------------------------------------------- */

/* Create a property list without times, so that the same source gives the same
 * bytes. */
static hid_t create_plist_without_times(hid_t class)
{
	hid_t p = H5Pcreate(class);

	if (p >= 0 && H5Pset_obj_track_times(p, false) >= 0)
		return p;
	if (p >= 0)
		H5Pclose(p);
	return H5I_INVALID_HID;
}

static bool monolith_plists_open(struct making *m)
{
	m->gcpl = create_plist_without_times(H5P_GROUP_CREATE);
	m->dcpl = create_plist_without_times(H5P_DATASET_CREATE);
	m->lcpl = H5Pcreate(H5P_LINK_CREATE);
	return m->gcpl >= 0 && m->dcpl >= 0 && m->lcpl >= 0 &&
	       H5Pset_char_encoding(m->lcpl, H5T_CSET_UTF8) >= 0 &&
	       H5Pset_layout(m->dcpl, H5D_CONTIGUOUS) >= 0 &&
	       H5Pset_alloc_time(m->dcpl, H5D_ALLOC_TIME_LATE) >= 0 &&
	       (m->tcpl = H5Pcopy(m->dcpl)) >= 0 &&
	       H5Pset_fill_time(m->dcpl, H5D_FILL_TIME_NEVER) >= 0;
}

static void monolith_plists_close(struct making *m)
{
	if (m->gcpl >= 0)
		H5Pclose(m->gcpl);
	if (m->dcpl >= 0)
		H5Pclose(m->dcpl);
	if (m->tcpl >= 0)
		H5Pclose(m->tcpl);
	if (m->lcpl >= 0)
		H5Pclose(m->lcpl);
}

static int close_out(struct making *m, int r)
{
	herr_t ok = H5Fclose(m->out);

	return r == 0 && ok < 0 ? monolith_failed(m, "/", "it cannot be closed")
				: r;
}

static int write_front_file(struct making *m)
{
	hid_t fcpl = create_plist_without_times(H5P_FILE_CREATE);
	int r;

	if (monolith_plists_open(m) && fcpl >= 0)
		m->out = monolith_create(&m->image, fcpl);
	r = m->out < 0 ? monolith_failed(m, "/", "no file can be made of it")
	    : m->array ? monolith_make_array(m)
		       : monolith_make(m);
	if (m->from >= 0)
		H5Fclose(m->from);
	if (!r && H5Fflush(m->out, H5F_SCOPE_LOCAL) < 0)
		r = monolith_failed(m, "/", "it cannot be written");
	m->image.placing = true;
	m->image.front = m->image.eoa;
	if (!r)
		r = monolith_place(m);
	if (m->out >= 0)
		r = close_out(m, r);
	if (fcpl >= 0)
		H5Pclose(fcpl);
	monolith_plists_close(m);
	return r;
}

/* ---- the message --------------------------------------------------------- */

static char *pack_front(const struct making *m, const char *notes, size_t *len)
{
	size_t parts = m->parts.n * sizeof *m->parts.at;
	struct monolith_tail tail = {.size = m->image.eoa,
				     .notes = strlen(notes),
				     .nparts = m->parts.n};
	char *out;

	tail.front = m->parts.n ? m->parts.at[0].at : tail.size;
	if (m->image.size > tail.front) {
		error_set(m->err, -EIO,
			  "libhdf5 has written something behind the data");
		return NULL;
	}
	*len = tail.front + tail.notes + parts + sizeof tail;
	out = tail.front <= MONOLITH_MAX + MONOLITH_PAGE ? calloc(1, *len)
							 : NULL;
	if (!out) {
		error_no_memory(m->err, "the HDF5 file that is made");
		return NULL;
	}
	if (m->image.size)
		memcpy(out, m->image.data, m->image.size);
	memcpy(out + tail.front, notes, tail.notes);
	if (parts)
		memcpy(out + tail.front + tail.notes, m->parts.at, parts);
	memcpy(out + *len - sizeof tail, &tail, sizeof tail);
	return out;
}

static char *make_front(struct making *m, size_t *len)
{
	cleanup_free char *notes = NULL;
	char *out = NULL;
	size_t notes_len;
	int r;

	m->notes = open_memstream(&notes, &notes_len);
	if (!m->notes) {
		error_no_memory(m->err, "the HDF5 file that is made");
		return NULL;
	}
	r = write_front_file(m);
	if (fclose(m->notes) && !r)
		r = error_no_memory(m->err, "the list of what is left out");
	if (!r)
		out = pack_front(m, notes, len);
	free(m->image.data);
	return out;
}

/* Take the lock and make the front, in this process; `whose` names the source in
 * errors. */
static char *make_locked(struct making *m, const char *whose, size_t *len,
			 struct error *err)
{
	struct error why = {0};
	char *out;

	m->out = m->from = m->gcpl = m->dcpl = m->tcpl = m->lcpl =
		H5I_INVALID_HID;
	m->err = &why;
	hdf5_lock();
	out = make_front(m, len);
	hdf5_unlock();
	for (size_t i = 0; i < m->paths.n; i++)
		free(m->paths.at[i]);
	vec_free(&m->paths);
	vec_free(&m->parts);
	if (!out) {
		error_set(err, why.code ? why.code : -EIO, "%s", why.text);
		error_prefix(err, "%s: ", whose);
	}
	return out;
}

char *hdf5_monolith_here(const struct hdf5_place *at,
			 const struct hdf5_tensor *of, const void *text,
			 size_t text_len, size_t *len, struct error *err)
{
	struct making m = {.s = at->s,
			   .of = of,
			   .text = text,
			   .text_len = text_len,
			   .parts = VEC_EMPTY,
			   .paths = VEC_EMPTY};

	return make_locked(&m, handles_name(at->s->handles, at->file), len,
			   err);
}

char *array_monolith(struct tensor *t, size_t *len, struct error *err)
{
	struct making m = {.array = t, .parts = VEC_EMPTY, .paths = VEC_EMPTY};

	return make_locked(&m, t->source, len, err);
}
