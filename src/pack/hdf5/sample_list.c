/* SPDX-License-Identifier: BSD-2-Clause */
/* Which files of a directory are samples. */
#include "pack/hdf5/sample.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/number.h"
#include "base/parse.h"
#include "tensor/dtype_parse.h"

int sample_parse_shape(const char *option, const char *text, unsigned *rank,
		       uint64_t *shape, struct error *err)
{
	char number[24];
	unsigned n = 0;

	for (const char *at = text;; at++) {
		size_t len = strcspn(at, ",");

		if (n == RANK_MAX)
			return error_set(err, -EINVAL,
					 "%s=%.100s has more than %d axes",
					 option, text, RANK_MAX);
		snprintf(number, sizeof number, "%.*s",
			 (int)min_u64(len, sizeof number - 1), at);
		if (parse_count(number, 1, INT64_MAX, &shape[n], NULL) < 0)
			return error_set(
				err, -EINVAL,
				"%s=%.100s is not a shape; give sizes of axes "
				"with commas between them, like 64,64",
				option, text);
		n++;
		at += len;
		if (!*at)
			break;
	}
	*rank = n;
	return 0;
}

static int read_raw_form(const struct sink_args *a, struct sample_form *f,
			 struct error *err)
{
	int r;

	if (!a->shape || !a->dtype)
		return error_set(err, -EINVAL,
				 "--shape and --dtype must be given together: "
				 "they describe files without a header");
	r = sample_parse_shape("--shape", a->shape, &f->rank, f->shape, err);
	if (r == 0 && dtype_parse(a->dtype, &f->dtype, err) < 0)
		return error_prefix(err, "--dtype: ");
	if (r < 0)
		return r;
	f->bytes = f->dtype.size;
	for (unsigned i = 0; i < f->rank; i++)
		if (mul_overflows(f->bytes, f->shape[i], &f->bytes) ||
		    f->bytes > INT64_MAX)
			return error_set(err, -EINVAL,
					 "--shape=%.100s is too large: a "
					 "sample would have 2^63 bytes or more",
					 a->shape);
	return 0;
}

/* ---- suffixes ---------------------------------------------------------------- */

static const char *sample_suffix(const char *path)
{
	const char *base = strrchr(path, '/');
	const char *dot;

	base = base ? base + 1 : path;
	dot = strrchr(base, '.');
	return dot && dot != base ? dot : "";
}

static bool sample_has_suffix(const struct sample_list *l, const char *path)
{
	const char *s = sample_suffix(path);

	switch (l->kind) {
	case SAMPLE_NPY:
		return !strcasecmp(s, ".npy");
	case SAMPLE_PNM:
		return !strcasecmp(s, ".pgm") || !strcasecmp(s, ".ppm") ||
		       !strcasecmp(s, ".pnm");
	case SAMPLE_RAW:
		break;
	}
	return !strcmp(s, l->suffix);
}

bool sample_is(const struct sample_list *l, uint64_t entry)
{
	return S_ISREG(l->scan->list.at[entry].mode) &&
	       sample_has_suffix(l, scan_path(l->scan, entry));
}

static uint64_t sample_list_count(const struct sample_list *l, uint64_t *first)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < l->scan->list.n; i++)
		if (sample_is(l, i) && n++ == 0)
			*first = i;
	return n;
}

/* ---- choosing samples
 * ---------------------------------------------------------------- */

static int choose_raw(struct sample_list *l, struct error *err)
{
	const struct scan *s = l->scan;
	uint64_t files = 0, other = 0;

	for (uint64_t i = 0; i < s->list.n; i++) {
		const struct scan_entry *e = &s->list.at[i];

		if (!S_ISREG(e->mode))
			continue;
		if (e->size == l->raw.bytes) {
			l->suffix = sample_suffix(scan_path(s, i));
			l->n = sample_list_count(l, &other);
			return 0;
		}
		if (files++ == 0)
			other = i;
	}
	if (files == 0)
		return error_set(err, -ENODATA, "there are no files to pack");
	return error_set(
		err, -ENODATA,
		"no file has the %" PRIu64
		" bytes that --shape and --dtype require ('%s' has %" PRIu64
		")",
		l->raw.bytes, scan_path(s, other), s->list.at[other].size);
}

static int sample_list_choose(struct sample_list *l, struct error *err)
{
	uint64_t npy, pnm, first_npy = 0, first_pnm = 0;

	l->kind = SAMPLE_PNM;
	pnm = sample_list_count(l, &first_pnm);
	l->kind = SAMPLE_NPY;
	npy = sample_list_count(l, &first_npy);
	if (npy && pnm)
		return error_set(err, -ENOTSUP,
				 "there are both arrays ('%s') and images "
				 "('%s'): pack them separately, with --exclude",
				 scan_path(l->scan, first_npy),
				 scan_path(l->scan, first_pnm));
	if (!npy && !pnm)
		return error_set(
			err, -ENODATA,
			"there are no .npy, .pgm or .ppm files to "
			"pack; for files without a header give --shape "
			"and --dtype");
	if (pnm)
		l->kind = SAMPLE_PNM;
	l->n = npy ? npy : pnm;
	return 0;
}

/* ---- other entries
 * -------------------------------------------------------------------- */

/* Refuse symbolic links with the suffix of samples, because they would be missing. */
static int check_links(const struct sample_list *l, struct error *err)
{
	for (uint64_t i = 0; i < l->scan->list.n; i++)
		if (S_ISLNK(l->scan->list.at[i].mode) &&
		    sample_has_suffix(l, scan_path(l->scan, i)) &&
		    *sample_suffix(scan_path(l->scan, i)))
			return error_set(
				err, -ENOTSUP,
				"'%s' is a symbolic link, and these "
				"are not followed; pack what it points "
				"to, or leave it out with --exclude",
				scan_path(l->scan, i));
	return 0;
}

/* Tell the user how many files are left out, and the first three names. */
static void note_others(const struct sample_list *l, const struct sink_args *a)
{
	char text[400];
	uint64_t n = 0;
	int used = 0;

	if (!a->note)
		return;
	for (uint64_t i = 0; i < l->scan->list.n; i++) {
		if (S_ISDIR(l->scan->list.at[i].mode) || sample_is(l, i))
			continue;
		if (n++ < 3)
			used += snprintf(text + used,
					 sizeof text - (size_t)used,
					 "%s'%.100s'", n > 1 ? ", " : "",
					 scan_path(l->scan, i));
	}
	if (n > 0) {
		char sentence[500];

		snprintf(sentence, sizeof sentence,
			 "%" PRIu64 " %s left out: %s%s", n,
			 n == 1 ? "file is not a sample and was"
				: "files are not samples and were",
			 text, n > 3 ? ", ..." : "");
		a->note(a->note_ctx, sentence);
	}
}

int sample_list_init(struct sample_list *l, const struct sink_args *a,
		     struct error *err)
{
	int r;

	*l = (struct sample_list){.scan = a->scan, .kind = SAMPLE_NPY};
	if (a->shape || a->dtype) {
		l->kind = SAMPLE_RAW;
		l->suffix = "";
		r = read_raw_form(a, &l->raw, err);
		if (r == 0)
			r = choose_raw(l, err);
	} else {
		r = sample_list_choose(l, err);
	}
	if (r == 0)
		r = check_links(l, err);
	if (r == 0)
		note_others(l, a);
	return r;
}
