/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that hold one sample each, as streams of elements. */
#ifndef PACK_HDF5_SAMPLE_H
#define PACK_HDF5_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "pack/feed.h"
#include "pack/sink.h"
#include "tensor/dtype.h"
#include "tensor/grid.h"
#include "tensor/npy_read.h"
#include "views/pnm.h"

/* Type and shape, which all samples share; set by the first file or by options. */
struct sample_form {
	struct dtype dtype;
	unsigned rank; /* <= RANK_MAX - 1 */
	uint64_t shape[RANK_MAX];
	uint64_t bytes;  /* bytes of a sample; fits in 63 bits */
	uint32_t maxval; /* for images; otherwise 0 */
};
/* Write a form as text: "<f4 (64, 64)", "|u1 (480, 640, 3), maxval 255". */
void sample_form_text(const struct sample_form *f, char *buf, size_t n);
/* Parse "64,64", 1 to RANK_MAX numbers >= 1.  `option` names the option in the sentence.
 * Return 0 or -EINVAL. */
int sample_parse_shape(const char *option, const char *text, unsigned *rank,
		       uint64_t *shape, struct error *err);

/* ---- which files are samples ------------------------------------------------- */

enum sample_kind { SAMPLE_NPY, SAMPLE_PNM, SAMPLE_RAW };
/*
 * Which files are samples.  With --shape and --dtype: all with the suffix of the first
 * file of the right size.  Otherwise: all .npy files, or all .pgm, .ppm and .pnm files.
 * Other files are left out, and a note says so.
 */
struct sample_list {
	const struct scan *scan; /* borrowed */
	enum sample_kind kind;
	const char *suffix; /* SAMPLE_RAW: ".dat", ""; borrowed */
	uint64_t n;         /* number of samples */
	struct sample_form raw;
};
/* Return 0; -EINVAL for options that do not fit together; -ENODATA if there are no
 * samples; -ENOTSUP if there are two kinds of samples, or one of them is a symbolic
 * link. */
int sample_list_init(struct sample_list *l, const struct sink_args *a,
		     struct error *err);
/* Is that entry of the scan a sample? */
bool sample_is(const struct sample_list *l, uint64_t entry);

/* ---- contents ---------------------------------------------------------------- */

/* Takes `n` bytes of elements in C order; `data` NULL means zeros. */
typedef int sample_take(void *ctx, const void *data, uint64_t n,
			struct error *err);
struct sample_reader {
	const struct sample_list *list;
	uint64_t memory; /* bytes of memory for a sample in Fortran order */
	bool known;      /* `form` is set */
	struct sample_form form;
	uint64_t first; /* the entry that set it */
	/* The file that is being read: */
	struct npy_file npy;
	struct pnm pnm;
	struct pnm_plain plain;
	uint64_t given;      /* bytes of elements that were delivered */
	unsigned char *turn; /* a whole sample in Fortran order */
	unsigned char *text; /* binary elements of a plain (text) image */
};
/* Read the header from the first unit of a sample.  Return -EBADMSG or -ENOTSUP with the
 * file's name if it is not such a file, is truncated, has bytes behind its array, or has
 * another form than the first sample. */
int sample_begin(struct sample_reader *r, const struct feed_unit *u,
		 struct error *err);
/* Deliver the elements of a unit, the first one included, to `take`.  Return -EIO if they
 * could not all be read, or the error of `take`. */
int sample_put(struct sample_reader *r, const struct feed_unit *u,
	       sample_take *take, void *ctx, struct error *err);
/* Free the buffers of a reader. */
void sample_reader_free(struct sample_reader *r);

#endif
