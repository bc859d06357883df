/* SPDX-License-Identifier: BSD-2-Clause */
/* The size of a sequence's file, found without reading the sequence. */
/*
 * Some sources know the length of a sequence.  In HDF5 the element in the file is a
 * length and a reference to the sequence; it is read like any other element, through
 * the tensor's own chunks, and the length says how long the .npy file will be.  The
 * length promised here and the length of the sequence that is read later are compared,
 * in whichever order the two come.
 */
#include "tensor/text_private.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "tensor/read.h"

#define RECORD_MAX 64

/* ---- the two sources of a length are compared ---------------------------- */

/* Counts that were seen last, of any text: enough that those of a read in progress are
 * still there. */
#define COUNTS 1024
static struct {
	pthread_mutex_t lock;
	struct count {
		uint64_t set, sample, n;
	} at[COUNTS];
} counts = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool text_counts_differ(const struct text *x, uint64_t sample, uint64_t n,
			uint64_t *before)
{
	uint64_t slot = (x->set.id * 2654435761u + sample) % COUNTS;
	struct count *c = &counts.at[slot];
	lock_scope(&counts.lock);

	if (c->set == x->set.id && c->sample == sample) {
		*before = c->n;
		return c->n != n;
	}
	*c = (struct count){x->set.id, sample, n};
	return false;
}

int text_counts_error(const struct text *x, uint64_t sample, uint64_t heap,
		      uint64_t index, struct error *err)
{
	return error_set(err, -EBADMSG,
			 "%s: sequence %llu: the heap has %llu elements where "
			 "the index says %llu",
			 x->t->name, (unsigned long long)sample,
			 (unsigned long long)heap, (unsigned long long)index);
}

/* ---- the length in the index ------------------------------------------------- */

/* Read the element of a sample as it is stored. */
static int sequence_read_record(struct text *x, uint64_t sample,
				struct pinner *p, unsigned char *to,
				size_t size, struct error *err)
{
	struct tensor *t = x->t;
	struct box b;

	text_whole_box(t, &b);
	for (unsigned i = t->rank; i-- > 0;) {
		b.start[i] = sample % t->shape[i];
		b.count[i] = 1;
		sample /= t->shape[i];
	}
	return tensor_read(t, &b, 0, to, size, p, err);
}

/*
 * Set *n to the length of a sequence, from its element in the file: u32 length, address
 * of the heap, u32 number there.  Without an address there is no sequence, as libhdf5
 * sees it (H5T_vlen_disk_isnull).
 */
static int sequence_count(struct text *x, uint64_t sample, struct pinner *p,
			  uint64_t *n, struct error *err)
{
	const struct tensor *t = x->t;
	size_t size = t->field ? t->field->type.size : t->stored.size;
	unsigned char record[RECORD_MAX] = {0};
	bool null = true;
	int r;

	if (size < 8 || size > sizeof record || size != t->dtype.size)
		return error_set(err, -ENOTSUP,
				 "%s: a sequence is stored as %zu bytes, which "
				 "is not supported",
				 t->name, size);
	r = sequence_read_record(x, sample, p, record, size, err);
	if (r < 0)
		return r;
	for (size_t i = 4; i < size - 4; i++)
		null &= !record[i];
	*n = null ? 0 : load_le32(record);
	return 0;
}

/* ---- the length by itself ---------------------------------------------------- */

static int text_known_bytes(struct text *x, uint64_t sample, uint64_t *bytes,
			    struct error *err)
{
	struct tensor *t = x->t;
	struct mosaic_piece piece;
	struct box whole, one;
	int64_t part;
	int r;

	text_whole_box(t, &whole);
	r = tensor_find(t, &whole, sample, &part, &piece, err);
	if (r < 0 || part < 0)
		return r < 0 ? r : 0;
	box_front(&piece.from, t->rank, piece.skip, 1, &one);
	return t->ops->length(t, (uint32_t)part, &one, bytes, err);
}

int text_known_size(struct text *x, uint64_t sample, uint64_t *size,
		    struct error *err)
{
	uint64_t n;
	int r = 0;

	if (x->style >= LINES_NPY && x->t->ops->length)
		r = text_known_bytes(x, sample, size, err);
	if (r <= 0 || x->style != LINES_NPY)
		return r;
	n = *size / x->sequence.bytes;
	if (*size % x->sequence.bytes || !sequence_size(&x->sequence, n, size))
		return error_set(err, -EBADMSG,
				 "%s: sequence %llu does not have a whole "
				 "number of elements",
				 x->t->name, (unsigned long long)sample);
	return 1;
}

/* ---- the file ---------------------------------------------------------------- */

int text_sequence_size(struct text *x, uint64_t sample, struct pinner *p,
		       uint64_t *size, struct error *err)
{
	uint64_t n = 0, heap;
	int r = sequence_count(x, sample, p, &n, err);

	if (r < 0)
		return r;
	if (text_counts_differ(x, sample, n, &heap))
		return text_counts_error(x, sample, heap, n, err);
	if (!sequence_size(&x->sequence, n, size))
		return error_set(err, -EBADMSG,
				 "%s: sequence %llu claims %llu elements of "
				 "%llu bytes",
				 x->t->name, (unsigned long long)sample,
				 (unsigned long long)n,
				 (unsigned long long)x->sequence.bytes);
	return 0;
}
