/* SPDX-License-Identifier: BSD-2-Clause */
/* Text in array.h5 and merged.h5: copied, where it is not much. */

/*
 * Values may come from any number of files (the flags of a distributed tensor do), so
 * they are read where parts are known, and go with the request to the worker that makes
 * the file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/hdf5/export/monolith.h"
#include "formats/hdf5/type/type.h"

/* Limit of strings of a dataset. */
#define ELEMENTS_MAX (UINT64_C(1) << 20)

struct reading {
	vec(char) out;
	size_t begin; /* of this dataset's values */
	int code;     /* error that ended the reading, or 0 */
};

/* ---- reading ------------------------------------------------------------- */

static bool text_append(struct reading *x, const void *data, size_t n)
{
	size_t room = x->out.room ? x->out.room : 4096;
	char *more;

	while (room - x->out.n < n)
		room *= 2; /* both are bounded */
	if (room != x->out.room) {
		more = realloc(x->out.at, room);
		if (!more)
			return false;
		x->out.at = more;
		x->out.room = room;
	}
	if (n)
		memcpy(x->out.at + x->out.n, data, n);
	x->out.n += n;
	return true;
}

static void text_keep_value(void *ctx, const char *s, size_t len)
{
	struct reading *x = ctx;
	uint64_t n = len;

	if (x->code)
		return;
	if (len > MONOLITH_TEXT_MAX ||
	    x->out.n - x->begin > MONOLITH_TEXT_MAX - len ||
	    x->begin > MONOLITH_MAX)
		x->code = -EFBIG;
	else if (!text_append(x, &n, sizeof n) || !text_append(x, s, len))
		x->code = -ENOMEM;
}

static int text_read_part(struct reading *x, struct tensor *t, uint32_t part,
			  unsigned rank, const struct mosaic_piece *piece,
			  uint64_t n, struct error *err)
{
	uint64_t skip = piece->skip;
	struct box b;

	while (n && !x->code) {
		uint64_t took = box_front(&piece->from, rank, skip, n, &b);
		int r = t->ops->values(t, part, &b, text_keep_value, x, err);

		if (r < 0)
			return r;
		skip += took;
		n -= took;
	}
	return 0;
}

/* Read elements [at, at + n) of box b. */
static int text_read_box(struct reading *x, struct tensor *t,
			 const struct box *b, uint64_t at, uint64_t n,
			 struct error *err)
{
	int r = 0;

	while (n && !r && !x->code) {
		const struct layout *l = NULL;
		struct mosaic_piece piece;
		uint64_t run;
		int64_t part;

		r = tensor_find(t, b, at, &part, &piece, err);
		if (r < 0)
			return r;
		run = min_u64(n, piece.run);
		if (part >= 0 && t->mosaic)
			l = atomic_load(&t->parts[part].layout);
		if (part < 0)
			for (uint64_t i = 0; i < run; i++)
				text_keep_value(x, "", 0);
		else if (l && l->kind == LAYOUT_NESTED)
			r = text_read_box(x, l->nested, &piece.from, piece.skip,
					  run, err);
		else
			r = text_read_part(x, t, (uint32_t)part,
					   l ? l->grid->rank : t->rank, &piece,
					   run, err);
		at += run;
		n -= run;
	}
	return r;
}

static bool text_is_too_long(const struct tensor *t)
{
	uint64_t bytes;

	return t->elements > ELEMENTS_MAX ||
	       mul_overflows(t->elements, t->dtype.vlen ? 1 : t->dtype.size,
			     &bytes) ||
	       bytes > MONOLITH_TEXT_MAX;
}

static int text_read_dataset(struct reading *x, struct tensor *t,
			     struct error *err)
{
	struct box whole = {.start = {0}};
	int r;

	for (unsigned i = 0; i < t->rank; i++)
		whole.count[i] = t->shape[i];
	x->begin = x->out.n;
	x->code = text_is_too_long(t) ? -EFBIG : 0;
	r = text_read_box(x, t, &whole, 0, t->elements, err);
	if (!r && x->code)
		r = x->code == -EFBIG
			    ? error_set(err, x->code,
					"the text is too long to be copied")
			    : error_no_memory(err, "the text of a dataset");
	return r;
}

static int text_read_item(struct reading *x, size_t i, struct tensor *t,
			  struct error *err)
{
	struct monolith_text head = {.item = i};
	struct error why = {0};
	size_t at = x->out.n;
	int r;

	if (!text_append(x, &head, sizeof head))
		return error_no_memory(err, "the text of a dataset");
	r = text_read_dataset(x, t, &why);
	if (r == -ENOMEM || r == -ESTALE)
		return error_set(err, r, "%s", why.text);
	if (r < 0) {
		head.lost = 1;
		x->out.n = x->begin;
		if (!text_append(x, why.text, strlen(why.text)))
			return error_no_memory(err, "the text of a dataset");
	}
	head.bytes = x->out.n - x->begin;
	memcpy(x->out.at + at, &head, sizeof head);
	return 0;
}

int hdf5_texts_read(struct hdf5_source *s, const struct hdf5_tensor *of,
		    char **text, size_t *len, struct error *err)
{
	const struct making m = {.s = s, .of = of};
	struct reading x = {.out = VEC_EMPTY};
	int r = 0;

	for (size_t i = 0; i < s->items.n && !r; i++) {
		struct hdf5_tensor *h = s->items.at[i].tensor;

		if (h && monolith_has(&m, h) && !h->t.why_not &&
		    h->t.dtype.kind == DTYPE_STRING)
			r = text_read_item(&x, i, &h->t, err);
	}
	if (r < 0)
		vec_free(&x.out);
	*text = x.out.at;
	*len = x.out.n;
	return r;
}

/* ---- writing ------------------------------------------------------------- */

static const char *text_find_item(const struct making *m, size_t i,
				  struct monolith_text *head)
{
	for (size_t at = 0; m->text_len - at >= sizeof *head;) {
		memcpy(head, m->text + at, sizeof *head);
		at += sizeof *head;
		if (head->bytes > m->text_len - at)
			return NULL;
		if (head->item == i)
			return m->text + at;
		at += head->bytes;
	}
	return NULL;
}

bool monolith_text_find(const struct making *m, size_t i, const char **why,
			size_t *len)
{
	struct monolith_text head;
	const char *text = text_find_item(m, i, &head);

	*why = "its text was not read";
	*len = strlen(*why);
	if (text && head.lost) {
		*why = text;
		*len = head.bytes;
	}
	return text && !head.lost;
}

/* The strings of a dataset while they are written. */
struct strings {
	bool vlen;
	size_t width; /* of one */
	int pad;
	char *elements; /* n of `width`, or pointers to copies */
};

static bool text_store_string(struct strings *s, uint64_t i, const char *value,
			      size_t len)
{
	char *copy;

	if (!s->vlen) {
		memset(s->elements + i * s->width, s->pad, s->width);
		memcpy(s->elements + i * s->width, value,
		       min_u64(len, s->width));
		return true;
	}
	copy = calloc(1, len + 1);
	if (copy)
		memcpy(copy, value, len);
	memcpy(s->elements + i * s->width, &copy, sizeof copy);
	return copy != NULL;
}

/* Store n strings. Return 0, -ENOMEM, or -EIO if there are not exactly n values. */
static int text_store_strings(struct strings *s, const char *at, uint64_t left,
			      uint64_t n)
{
	uint64_t len;

	for (uint64_t i = 0; i < n; i++) {
		if (left < sizeof len)
			return -EIO;
		memcpy(&len, at, sizeof len);
		at += sizeof len;
		left -= sizeof len;
		if (len > left)
			return -EIO;
		if (!text_store_string(s, i, at, len))
			return -ENOMEM;
		at += len;
		left -= len;
	}
	return left ? -EIO : 0;
}

static void text_free_strings(struct strings *s, uint64_t n)
{
	char *copy;

	for (uint64_t i = 0; s->vlen && s->elements && i < n; i++) {
		memcpy(&copy, s->elements + i * s->width, sizeof copy);
		free(copy);
	}
	free(s->elements);
}

int monolith_text_write(struct making *m, size_t i, const char *path,
			hid_t type, hid_t dset)
{
	uint64_t n = m->s->items.at[i].tensor->t.elements, dims[RANK_MAX];
	struct monolith_text head = {0};
	const char *text = text_find_item(m, i, &head);
	unsigned rank;
	hid_t leaf = hdf5_type_member(type, NULL, &rank, dims);
	struct strings s = {.vlen = H5Tis_variable_str(leaf) > 0};
	int r = 0;

	s.width = s.vlen ? sizeof(char *) : H5Tget_size(leaf);
	s.pad = H5Tget_strpad(leaf) == H5T_STR_SPACEPAD ? ' ' : '\0';
	s.elements = calloc(max_u64(n, 1), max_u64(s.width, 1));
	if (!s.elements || leaf < 0 || !text)
		r = -ENOMEM;
	else
		r = text_store_strings(&s, text, head.bytes, n);
	if (r < 0)
		error_set(m->err, r, "%s: its text cannot be copied", path);
	else if (n && H5Dwrite(dset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT,
			       s.elements) < 0)
		r = monolith_failed(m, path, "its text cannot be written");
	text_free_strings(&s, n);
	if (leaf >= 0)
		H5Tclose(leaf);
	return r;
}
