/* SPDX-License-Identifier: BSD-2-Clause */
/* Sparse maps of tar: four formats that say which bytes of a file are stored. */
/*
 * The stored bytes of a sparse file follow each other in the archive; a map says
 * where in the file each run of them belongs.  Old GNU tar stores the map in the
 * header and in blocks behind it, formats 0.0 and 0.1 in the extended header,
 * format 1.0 in front of the data (GNU tar manual, "Storing Sparse Files").  All
 * become the same list of runs, which is checked once: no run may reach beyond the
 * file or the stored bytes, and no byte may be in two runs.
 */
#include <errno.h>
#include <string.h>

#include "base/number.h"
#include "formats/tar/private.h"

/* Runs of one file at most: with 4 KiB each and as long a hole behind each, a file
 * of 32 GiB. */
#define RUNS_MAX ((size_t)1 << 22)

void tar_sparse_clear(struct tar_sparse *m)
{
	m->run.n = 0;
	m->bad = false;
}

int tar_sparse_add(struct tar_sparse *m, int64_t off, int64_t len)
{
	if (m->run.n == 0 && !vec_push(&m->run, ((struct member_extent){0})))
		return -ENOMEM;
	if (off < 0 || len < 0 || m->run.n > RUNS_MAX) {
		m->bad = true;
		return -EBADMSG;
	}
	/* The end of a map is marked by a run of 0 bytes. */
	if (len == 0)
		return 0;
	if (!vec_push(&m->run, ((struct member_extent){(uint64_t)off,
						       (uint64_t)len, 0})))
		return -ENOMEM;
	return 0;
}

/* ---- maps in headers ----------------------------------------------------- */

enum { ENTRY = 24, IN_HEADER = 4, IN_MORE = 21, MORE_FLAG = 504 };

static int add_map_entries(struct tar_sparse *m, const char *p, unsigned n)
{
	for (; n > 0; n--, p += ENTRY) {
		int64_t off, len;
		int r;

		if (p[12] == '\0')
			break;
		if (tar_number(p, 12, &off) < 0 ||
		    tar_number(p + 12, 12, &len) < 0)
			off = len = -1;
		r = tar_sparse_add(m, off, len);
		if (r < 0)
			return r == -EBADMSG ? 0 : r;
	}
	return 0;
}

int tar_sparse_header(struct tar_sparse *m, const struct tar_header *h,
		      int64_t *size, bool *more)
{
	const char *p = (const char *)h;
	/* star stores the map at another position, and its name at the end of the
	 * block. */
	bool star =
		tar_dialect(h) == TAR_USTAR && memcmp(p + 508, "tar", 4) == 0;
	int r = add_map_entries(m, p + (star ? 356 : 386), IN_HEADER);

	if (r < 0)
		return r;
	if (tar_number(p + (star ? 452 : 483), 12, size) < 0)
		*size = -1;
	if (*size < 0) {
		m->bad = true;
		*size = 0;
	}
	*more = p[star ? 355 : 482] != 0 && p[star ? 355 : 482] != '0';
	return 0;
}

int tar_sparse_more(struct tar_sparse *m, const void *block, bool *more)
{
	const char *p = block;

	*more = p[MORE_FLAG] != 0 && p[MORE_FLAG] != '0';
	return add_map_entries(m, p, IN_MORE);
}

/* ---- maps as text -------------------------------------------------------- */

/* Append a digit to a number.  Return false if it becomes too large. */
static bool add_digit(uint64_t *v, char c)
{
	return !mul_overflows(*v, 10, v) &&
	       !add_overflows(*v, (uint64_t)(c - '0'), v) && *v <= INT64_MAX;
}

int tar_sparse_list(struct tar_sparse *m, const char *text, size_t n)
{
	uint64_t v[2] = {0, 0};
	unsigned which = 0;
	bool digits = false;

	for (size_t i = 0; i <= n; i++) {
		if (i < n && text[i] >= '0' && text[i] <= '9') {
			digits = true;
			if (add_digit(&v[which], text[i]))
				continue;
		} else if (digits && (i == n ? which == 1 : text[i] == ',')) {
			int r = which ? tar_sparse_add(m, (int64_t)v[0],
						       (int64_t)v[1])
				      : 0;

			if (r < 0)
				return r == -EBADMSG ? 0 : r;
			which = !which;
			v[which] = 0;
			digits = false;
			continue;
		}
		/* An empty list, or a comma at its end, is accepted. */
		if (i < n || which || digits)
			m->bad = true;
		break;
	}
	return 0;
}

/* Parse one complete line.  Return 1 if it was the last one, 0 or an error. */
static int parse_map_line(struct tar_sparse *m, struct tar_sparse_lines *l)
{
	int r = 0;

	if (l->comment) {
		l->comment = false;
		return 0;
	}
	if (!l->digits)
		return -EBADMSG;
	if (!l->counted) {
		l->left = l->value;
		l->counted = true;
	} else if (!l->half) {
		l->off = l->value;
		l->half = true;
	} else {
		r = tar_sparse_add(m, (int64_t)l->off, (int64_t)l->value);
		l->half = false;
		l->left--;
	}
	l->value = 0;
	l->digits = false;
	return r < 0 ? r : l->counted && !l->left;
}

int tar_sparse_text(struct tar_sparse *m, struct tar_sparse_lines *l,
		    const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char c = text[i];
		int r = 0;

		if (c == '\n')
			r = parse_map_line(m, l);
		else if (c == '#' && !l->digits)
			l->comment = true;
		else if (!l->comment) {
			l->digits = true;
			if (c < '0' || c > '9' || !add_digit(&l->value, c))
				r = -EBADMSG;
		}
		if (r == -EBADMSG)
			m->bad = true;
		if (r)
			return r;
	}
	return 0;
}

/* ---- checks -------------------------------------------------------------- */

static int compare_run_offsets(const void *a, const void *b)
{
	const struct member_extent *x = a, *y = b;

	return x->off < y->off ? -1 : x->off > y->off;
}

/* Set the positions of the runs in the order of the map, and *sorted if they are in
 * order of their offsets. */
static int place_runs(struct tar_sparse *m, uint64_t size, uint64_t pos,
		      uint64_t stored, bool *sorted)
{
	uint64_t end, last = 0;

	*sorted = true;
	for (size_t i = 1; i < m->run.n; i++) {
		struct member_extent *x = &m->run.at[i];

		if (add_overflows(x->off, x->len, &end) || end > size ||
		    x->len > stored)
			return -EBADMSG;
		x->pos = pos;
		pos += x->len;
		stored -= x->len;
		*sorted = *sorted && x->off >= last;
		last = x->off;
	}
	return 0;
}

int tar_sparse_place(struct tar_sparse *m, uint64_t size, uint64_t pos,
		     uint64_t stored)
{
	struct member_extent *run;
	size_t to = 0;
	bool sorted;

	if (m->bad || place_runs(m, size, pos, stored, &sorted) < 0)
		return -EBADMSG;
	if (m->run.n == 0 && !vec_push(&m->run, ((struct member_extent){0})))
		return -ENOMEM;
	run = m->run.at;
	if (!sorted)
		qsort(run + 1, m->run.n - 1, sizeof *run, compare_run_offsets);
	for (size_t i = 1; i < m->run.n; i++) {
		uint64_t end = to ? run[to].off + run[to].len : 0;

		if (run[i].off < end)
			return -EBADMSG;
		if (to && run[i].off == end &&
		    run[i].pos == run[to].pos + run[to].len)
			run[to].len += run[i].len;
		else
			run[++to] = run[i];
	}
	m->run.n = to + 1;
	run[0] = (struct member_extent){.off = to};
	return 0;
}

bool tar_sparse_dense(const struct tar_sparse *m, uint64_t size)
{
	return m->run.n == 2 && m->run.at[1].off == 0 &&
	       m->run.at[1].len == size;
}
