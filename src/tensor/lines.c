/* SPDX-License-Identifier: BSD-2-Clause */
/* Values written one after another, and where each sample's bytes are. */
/*
 * Strings become lines: a backslash and a newline inside a string are written as \\ and
 * \n, so that one line is one value.  Newlines in JSON never matter, so they become
 * spaces.  A sequence becomes a whole .npy file.
 *
 * A value that cannot be read must not make its neighbours unreadable, so a single
 * sample may have failed: its bytes are then an errno and a sentence, and bit 63 of its
 * offset is set.
 */
#include "tensor/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "tensor/grid.h"

#define FAILED (UINT64_C(1) << 63)

/* ---- sequences ----------------------------------------------------------- */

/* Make the header of a sequence of `n` elements.  Return false when its shape is too
 * long. */
static bool sequence_header(const struct sequence *s, uint64_t n,
			    struct npy_header *out)
{
	uint64_t shape[RANK_MAX + 1] = {n};

	for (unsigned i = 0; i < s->of->rank; i++)
		shape[i + 1] = s->of->dims[i];
	return dtype_npy_header(&s->of->type, s->descr, s->of->rank + 1, shape,
				out);
}

bool sequence_size(const struct sequence *s, uint64_t n, uint64_t *size)
{
	struct npy_header h;
	uint64_t bytes;

	return sequence_header(s, n, &h) &&
	       !mul_overflows(n, s->bytes, &bytes) && bytes <= INT64_MAX &&
	       !add_overflows(bytes, h.total, size) && *size <= INT64_MAX;
}

/* Set s->descr if the elements are structures. */
static int sequence_descr(struct sequence *s, struct error *err)
{
	size_t n;

	if (s->of->type.kind != DTYPE_STRUCT)
		return 0;
	n = dtype_descr(&s->of->type, NULL, 0) + 1;
	s->descr = malloc(n);
	if (!s->descr)
		return error_no_memory(err,
				       "the type of a sequence's elements");
	dtype_descr(&s->of->type, s->descr, n);
	return 0;
}

int sequence_init(struct sequence *s, const struct dtype *ragged,
		  struct error *err)
{
	const struct dtype_field *of = ragged->nfields ? ragged->fields : NULL;
	bool fits = of && dtype_is_binary(&of->type) && of->rank <= RANK_MAX;
	struct npy_header h;
	int r;

	*s = (struct sequence){.of = of, .bytes = fits ? of->type.size : 0};
	for (unsigned i = 0; fits && i < of->rank; i++)
		fits = !mul_overflows(s->bytes, of->dims[i], &s->bytes);
	if (!fits || !s->bytes)
		return error_set(err, -ENOTSUP,
				 "sequences of such elements are not "
				 "supported");
	r = sequence_descr(s, err);
	if (r == 0 && !sequence_header(s, UINT32_MAX, &h))
		r = error_set(err, -ENOTSUP,
			      "the elements have too many axes for a .npy");
	if (r < 0)
		sequence_free(s);
	return r;
}

void sequence_free(struct sequence *s)
{
	free(s->descr);
	s->descr = NULL;
}

/* ---- appending ----------------------------------------------------------- */

int lines_init(struct lines *l, enum lines_style style, uint64_t samples,
	       uint64_t per_sample, struct error *err)
{
	*l = (struct lines){.style = style,
			    .samples = samples,
			    .per_sample = per_sample,
			    .err = err};
	l->offset = samples < SIZE_MAX / sizeof *l->offset
			    ? calloc(samples + 1, sizeof *l->offset)
			    : NULL;
	return l->offset ? 0 : error_no_memory(err, "the offsets of values");
}

void lines_free(struct lines *l)
{
	free(l->offset);
	free(l->data);
	l->offset = NULL;
	l->data = NULL;
}

/* Return room for `more` bytes, which then count as used; NULL without memory, with the
 * error in l->code. */
static unsigned char *lines_room(struct lines *l, uint64_t more)
{
	unsigned char *grown;
	uint64_t need, room;

	if (add_overflows(l->used, more, &need) || need > SIZE_MAX / 4)
		goto none;
	if (need > l->room || !l->data) {
		/* A large value is usually the only one, so leave no room for others. */
		room = more > (4 << 20) ? need : need + need / 2 + 256;
		grown = realloc(l->data, room);
		if (!grown)
			goto none;
		l->data = grown;
		l->room = room;
	}
	grown = l->data + l->used;
	l->used = need;
	return grown;
none:
	l->code = error_set(l->err, -ENOMEM,
			    "a value of %llu bytes does not fit in memory",
			    (unsigned long long)more);
	return NULL;
}

/* Replace the bytes of a failed sample by the reason. */
static void lines_fail_sample(struct lines *l, uint64_t sample)
{
	size_t len = strlen(l->why.text);
	int32_t code = l->why.code;
	unsigned char *to;

	l->used = l->offset[sample] & ~FAILED;
	to = lines_room(l, sizeof code + len);
	if (!to)
		return;
	memcpy(to, &code, sizeof code);
	memcpy(to + sizeof code, l->why.text, len);
	l->offset[sample] |= FAILED;
	l->failed++;
	l->why.code = 0;
}

/* Count a value, and finish its sample if this was the last value of it. */
static void lines_end_value(struct lines *l)
{
	uint64_t sample = l->values / l->per_sample;

	if (++l->values % l->per_sample)
		return;
	if (l->why.code)
		lines_fail_sample(l, sample);
	else
		/* may be set from before a rewind */
		l->offset[sample] &= ~FAILED;
	l->offset[sample + 1] = l->used;
}

static void lines_put_text(struct lines *l, const char *s, size_t len)
{
	unsigned char *to = lines_room(l, 2 * (uint64_t)len + 1), *end = to;

	if (!to)
		return;
	for (size_t i = 0; i < len; i++) {
		char c = s[i];

		if (c == '\\' || c == '\n') {
			*end++ = '\\';
			c = c == '\n' ? 'n' : c;
		}
		*end++ = (unsigned char)c;
	}
	*end++ = '\n';
	l->used = (size_t)(end - l->data);
}

/* A newline between tokens of JSON means the same as a space; inside strings there are
 * no newlines. */
static void lines_put_json(struct lines *l, const char *s, size_t len)
{
	unsigned char *to = lines_room(l, (uint64_t)len + 1);

	if (!to)
		return;
	for (size_t i = 0; i < len; i++)
		to[i] = s[i] == '\n' ? ' ' : (unsigned char)s[i];
	to[len] = '\n';
}

static void lines_put_blob(struct lines *l, const char *s, size_t len)
{
	unsigned char *to = lines_room(l, len);

	if (to && len)
		memcpy(to, s, len);
}

static void lines_put_sequence(struct lines *l, const char *s, size_t len)
{
	uint64_t n = len / l->sequence->bytes;
	struct npy_header h;
	unsigned char *to;

	if (len % l->sequence->bytes || !sequence_header(l->sequence, n, &h)) {
		l->code =
			error_set(l->err, -EBADMSG,
				  "a sequence of %zu bytes is not a whole "
				  "number of elements of %llu bytes",
				  len, (unsigned long long)l->sequence->bytes);
		return;
	}
	to = lines_room(l, (uint64_t)len + h.total);
	if (!to)
		return;
	dtype_npy_write(&h, to);
	if (len)
		memcpy(to + h.total, s, len);
}

void lines_put(struct lines *l, const char *s, size_t len)
{
	if (l->code)
		return;
	if (l->values >= l->samples * l->per_sample) {
		l->code = error_set(l->err, -EIO,
				    "there are more values than elements");
		return;
	}
	if (l->why.code)
		; /* the sample has failed already */
	else if (l->style == LINES_TEXT)
		lines_put_text(l, s, len);
	else if (l->style == LINES_JSON)
		lines_put_json(l, s, len);
	else if (l->style == LINES_BLOB)
		lines_put_blob(l, s, len);
	else
		lines_put_sequence(l, s, len);
	if (!l->code)
		lines_end_value(l);
}

void lines_put_empty(struct lines *l, uint64_t n)
{
	const char *nothing = l->style == LINES_JSON ? "null" : "";

	while (n-- && !l->code)
		lines_put(l, nothing, strlen(nothing));
}

void lines_put_failed(struct lines *l, uint64_t n, const struct error *why)
{
	while (n-- && !l->code) {
		if (!l->why.code)
			l->why = *why;
		lines_put(l, "", 0);
	}
}

void lines_mark(const struct lines *l, struct lines_mark *mark)
{
	mark->used = l->used;
	mark->values = l->values;
	mark->failed = l->failed;
	mark->why = l->why;
}

/* A failed sample may have overwritten an earlier part of itself.  That part is lost,
 * but the sample is still known to have failed. */
void lines_rewind(struct lines *l, const struct lines_mark *mark)
{
	l->used = mark->used;
	l->values = mark->values;
	l->failed = mark->failed;
	l->why = mark->why;
	l->code = 0;
}

/* ---- the buffer ---------------------------------------------------------- */

int lines_pack(struct lines *l, _Atomic uint64_t *gauge, struct buf **out,
	       struct error *err)
{
	uint64_t head[2] = {l->samples, l->failed};
	size_t at = lines_head(l->samples);
	struct buf *b;

	if (l->values != l->samples * l->per_sample)
		return error_set(
			err, -EIO, "there are %llu values instead of %llu",
			(unsigned long long)l->values,
			(unsigned long long)(l->samples * l->per_sample));
	b = buf_new(at + l->used, gauge);
	if (!b)
		return error_no_memory(err, "a segment of values");
	memcpy(b->data, head, sizeof head);
	memcpy(b->data + sizeof head, l->offset, at - sizeof head);
	if (l->used)
		memcpy(b->data + at, l->data, l->used);
	*out = b;
	return 0;
}

int lines_slice(const struct buf *b, uint64_t n, size_t *off, size_t *len)
{
	const uint64_t *head = (const void *)b->data, *offset = head + 2;
	int32_t code = 0;

	*off = *len = 0;
	if (n >= head[0])
		return -EIO;
	*off = lines_head(head[0]) + (offset[n] & ~FAILED);
	*len = (offset[n + 1] & ~FAILED) - (offset[n] & ~FAILED);
	if (!(offset[n] & FAILED))
		return 0;
	memcpy(&code, b->data + *off, sizeof code);
	*off += sizeof code;
	*len -= sizeof code;
	return code;
}

int lines_slice_error(const struct buf *b, int code, size_t off, size_t len,
		      struct error *err)
{
	if (!len)
		return error_set(err, code, "there is no such sample");
	return error_set(err, code, "%.*s", (int)len,
			 (const char *)b->data + off);
}

int lines_first_error(const struct buf *b, struct error *err)
{
	const uint64_t *head = (const void *)b->data;
	size_t off, len;

	for (uint64_t i = 0; head[1] && i < head[0]; i++) {
		int r = lines_slice(b, i, &off, &len);

		if (r < 0)
			return lines_slice_error(b, r, off, len, err);
	}
	return 0;
}
