/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that hold one sample each, as a stream of elements. */
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

/* What all samples have in common; the first file says it, or the options. */
struct sample_form {
	struct dtype dtype;
	unsigned rank; /* <= RANK_MAX - 1 */
	uint64_t shape[RANK_MAX];
	uint64_t bytes;  /* of a sample; fits in 63 bits */
	uint32_t maxval; /* of images; else 0 */
};
/* "<f4 (64, 64)", "|u1 (480, 640, 3), maxval 255" */
void sample_form_text(const struct sample_form *f, char *buf, size_t n);
/* "64,64": 1 to RANK_MAX numbers >= 1; `option` is for the sentence.  -EINVAL. */
int sample_parse_shape(const char *option, const char *text, unsigned *rank,
		       uint64_t *shape, struct error *err);

/* ---- which files are samples ------------------------------------------------- */

enum sample_kind { SAMPLE_NPY, SAMPLE_PNM, SAMPLE_RAW };
/*
 * With --shape and --dtype those are that have the suffix of the first file of the right
 * size; else all .npy, or all .pgm, .ppm and .pnm.  Other files are left out, and a
 * note says so.
 */
struct sample_list {
	const struct scan *scan; /* borrowed */
	enum sample_kind kind;
	const char *suffix; /* SAMPLE_RAW: ".dat", ""; borrowed */
	uint64_t n;         /* samples */
	struct sample_form raw;
};
/* -EINVAL: options that do not fit together; -ENODATA: no samples; -ENOTSUP: two kinds
 * of them, or one that is a link. */
int sample_list_init(struct sample_list *l, const struct sink_args *a,
		     struct error *err);
/* Is that entry of the scan one? */
bool sample_is(const struct sample_list *l, uint64_t entry);

/* ---- what is in them ----------------------------------------------------------- */

/* Elements in C order; NULL: zeros. */
typedef int sample_take(void *ctx, const void *data, uint64_t n,
			struct error *err);
struct sample_reader {
	const struct sample_list *list;
	uint64_t memory; /* bytes for a sample that has to be turned */
	bool known;      /* `form` is that of all samples */
	struct sample_form form;
	uint64_t first; /* the entry that said so */
	/* Of the file that is being read: */
	struct npy_file npy;
	struct pnm pnm;
	struct pnm_plain plain;
	uint64_t given;      /* bytes of elements */
	unsigned char *turn; /* a sample in Fortran order */
	unsigned char *text; /* what plain images become */
};
/* The first unit of a sample: reads its header.  -EBADMSG, -ENOTSUP with its name: it is
 * no such file, cut off, has something behind its array, or another form than the first
 * one. */
int sample_begin(struct sample_reader *r, const struct feed_unit *u,
		 struct error *err);
/* Every unit, the first one too: gives its elements to `take`.  -EIO: not all of them could
 * be read. */
int sample_put(struct sample_reader *r, const struct feed_unit *u,
	       sample_take *take, void *ctx, struct error *err);
void sample_reader_free(struct sample_reader *r);

#endif
