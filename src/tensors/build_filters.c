/* SPDX-License-Identifier: BSD-2-Clause */
/* Filters of a new dataset: flags and parameters as h5py writes them. */

/*
 * In the file a filter is a number and parameters, but to create a dataset the library
 * wants an encoder for each.  It has its own; those that we can encode are registered
 * with it (formats/hdf5/file/filters.c).  For all others, whose chunks are copied as stored, a
 * filter is registered that does nothing but exist.  It also replaces a plugin, which
 * might adjust the parameters, although they belong to chunks that exist.  From then on
 * the library cannot decode such filters in this process.
 */
#include "tensors/build.h"

#include <errno.h>
#include <stdio.h>

#include "formats/hdf5/file/driver.h"

static size_t filter_never(unsigned flags, size_t n, const unsigned *cd,
			   size_t in_len, size_t *room, void **buf)
{
	(void)flags, (void)n, (void)cd, (void)in_len, (void)room, (void)buf;
	return 0;
}

/* Return a copy of `name` that stays valid: the library keeps the pointer and writes the
 * name when the file is closed. */
static const char *filter_keep_name(uint32_t id, const char *name)
{
	static struct {
		uint32_t id;
		char name[32];
	} kept[2 * PIPELINE_MAX]; /* guarded by the library's lock */
	static unsigned n;
	unsigned i = 0;

	while (i < n && kept[i].id != id)
		i++;
	if (i == sizeof kept / sizeof *kept)
		return NULL;
	if (i == n) {
		n++;
		kept[i].id = id;
		snprintf(kept[i].name, sizeof kept[i].name, "%s", name);
	}
	return kept[i].name;
}

static herr_t filter_pretend(uint32_t id, const char *name)
{
	const H5Z_class2_t class = {.version = H5Z_CLASS_T_VERS,
				    .id = (H5Z_filter_t)id,
				    .encoder_present = 1,
				    .decoder_present = 1,
				    .name = name ? filter_keep_name(id, name)
						 : NULL,
				    .filter = filter_never};

	return H5Zregister(&class);
}

/* Number of parameters to pass to the library, which computes the others itself for some
 * of its own filters. */
static size_t own_params(uint32_t id, size_t n)
{
	size_t most = n;

	if (id == H5Z_FILTER_SHUFFLE || id == H5Z_FILTER_NBIT)
		most = 0;
	else if (id == H5Z_FILTER_SZIP || id == H5Z_FILTER_SCALEOFFSET)
		most = 2;
	return most < n ? most : n;
}

/* As h5py and the library's own functions: a filter that cannot be applied is skipped,
 * except checksums. */
static unsigned flags_of(uint32_t id)
{
	return id == H5Z_FILTER_FLETCHER32 ? H5Z_FLAG_MANDATORY
					   : H5Z_FLAG_OPTIONAL;
}

int build_filters(hid_t dcpl, const struct pipeline *p, struct error *err)
{
	for (unsigned i = 0; p && i < p->n; i++) {
		const struct pipeline_filter *f = &p->filter[i];
		size_t n = own_params(f->id, f->params.n);
		const struct codec *c = codec_by_id(f->id);
		unsigned cd[CODEC_CD_MAX];
		char why[256];

		/* If there are CODEC_CD_MAX parameters, more may have been dropped: see
		 * keep_params in pipeline.c. */
		if (!f->codec && n == CODEC_CD_MAX)
			return error_set(err, -ENOTSUP,
					 "filter %s has too many parameters to "
					 "be copied (%d or more)",
					 f->name, CODEC_CD_MAX);
		for (size_t k = 0; k < n; k++)
			cd[k] = f->params.cd[k];
		if ((f->id < H5Z_FILTER_RESERVED || (c && c->encode) ||
		     filter_pretend(f->id, f->name) >= 0) &&
		    H5Pset_filter(dcpl, (H5Z_filter_t)f->id, flags_of(f->id), n,
				  n ? cd : NULL) >= 0)
			continue;
		hdf5_why(why, sizeof why);
		return error_set(err, -ENOTSUP,
				 "libhdf5 does not accept filter %s: %s",
				 f->name, why);
	}
	return 0;
}

int build_filters_nameless(hid_t dcpl, struct error *err)
{
	int r = 1;

	for (int i = H5Pget_nfilters(dcpl); i-- > 0;) {
		unsigned flags;
		size_t n = 0;
		H5Z_filter_t id = H5Pget_filter2(dcpl, (unsigned)i, &flags, &n,
						 NULL, 0, NULL, NULL);

		if (id >= 0 && id < H5Z_FILTER_RESERVED)
			continue;
		r = 0;
		if (id < 0 || filter_pretend((uint32_t)id, NULL) < 0)
			return error_set(err, -EIO,
					 "its filters cannot be copied");
	}
	return r;
}
