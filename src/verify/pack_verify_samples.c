/* SPDX-License-Identifier: BSD-2-Clause */
/* Compare the rows of a packed tensor with the samples in the directory. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "app/interrupt.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "pack/hdf5/sample.h"
#include "tree/tree.h"
#include "verify/pack_verify.h"

struct comparer {
	struct verifier *v;
	uint64_t at;   /* position in array.bin, in bytes */
	uint64_t size; /* size of array.bin in bytes */
	const char *path;
	bool bad; /* this sample differs */
	/* The array is shown as lines of text (array.txt). */
	bool lines;
	/* bytes of an element, and those of the present one that were seen */
	uint32_t element, within;
	uint32_t nuls; /* NULs that may be padding */
};

static bool sample_bytes_equal(const char *have, const char *want, size_t n)
{
	if (want)
		return !memcmp(have, want, n);
	for (size_t i = 0; i < n; i++)
		if (have[i])
			return false;
	return true;
}

/* Compare the next n bytes that the tensor has to show; `data` NULL means zeros. */
static void compare_bytes(struct comparer *k, const void *data, uint64_t n)
{
	struct verifier *v = k->v;

	for (uint64_t done = 0; done < n && !k->bad;) {
		size_t part = min_u64(n - done, VERIFY_WINDOW);
		const char *want = data ? (const char *)data + done : NULL;
		ssize_t got = fs_read_copy(v->session->fs, v->ino, k->at + done,
					   v->buf, part);
		char why[400];

		if (got < 0) {
			fs_last_error(v->session->fs, v->ino, why, sizeof why);
			verify_differs(v, k->path,
				       *why ? why : strerror((int)-got));
			k->bad = true;
		} else if ((size_t)got != part ||
			   !sample_bytes_equal(v->buf, want, part)) {
			verify_differs(v, k->path, "its row differs");
			k->bad = true;
		}
		done += part;
	}
	k->at += n;
}

/* Compare strings.  A mount shows them as lines without their padding, with newlines as
 * \n. */
static void compare_strings(struct comparer *k, const char *data, uint64_t n)
{
	static const char zeros[256];
	char text[1024];
	size_t used = 0;

	for (uint64_t i = 0; i < n; i++) {
		char c = data ? data[i] : '\0';

		k->nuls += !c;
		for (; c && k->nuls; used = 0) {
			uint32_t part = k->nuls < 256 ? k->nuls : 256;

			compare_bytes(k, text, used);
			compare_bytes(k, zeros, part);
			k->nuls -= part;
		}
		if (c == '\n' || c == '\\')
			text[used++] = '\\';
		if (c)
			text[used++] = c == '\n' ? 'n' : c;
		if (++k->within == k->element) {
			text[used++] = '\n';
			k->within = k->nuls = 0;
		}
		if (used > sizeof text - 4) {
			compare_bytes(k, text, used);
			used = 0;
		}
	}
	compare_bytes(k, text, used);
}

/* Compare elements of a sample with those in the tensor. */
static int sample_compare(void *ctx, const void *data, uint64_t n,
			  struct error *err)
{
	struct comparer *k = ctx;

	(void)err;
	if (k->lines)
		compare_strings(k, data, n);
	else
		compare_bytes(k, data, n);
	return 0;
}

/* Return "DATASET/array.bin" as a mount names it, in memory that the caller frees; NULL
 * if memory is short. */
static char *array_path(const char *dataset)
{
	size_t room = strlen(dataset) + 1;
	char *path, *to, name[FILES_NAME_MAX + 1];

	for (const char *at = dataset; *at; at++)
		room += *at == '/' ? FILES_NAME_MAX + 1 : 0;
	room += FILES_NAME_MAX + sizeof "/array.bin";
	path = to = malloc(room);
	for (const char *at = dataset + strspn(dataset, "/"); path && *at;) {
		size_t n = strcspn(at, "/");
		cleanup_free char *part = strndup(at, n);

		if (!part)
			return free(path), NULL;
		tree_escape(part, name);
		to = stpcpy(stpcpy(to, name), "/");
		at += n + (at[n] == '/');
	}
	if (path)
		strcpy(to, "array.bin");
	return path;
}

static int sample_find_array(struct comparer *k, struct error *err)
{
	struct verifier *v = k->v;
	const char *dataset = v->args->dataset ? v->args->dataset : "data";
	cleanup_free char *path = array_path(dataset);
	struct entry e;
	int r;

	if (!path)
		return error_no_memory(err, "the path of the array");
	r = verify_find(v, path, &e);
	if (r == -ENOENT) {
		strcpy(path + strlen(path) - strlen("bin"), "txt");
		r = verify_find(v, path, &e);
		k->lines = r == 0;
	}
	v->ino = r == 0 ? e.st.st_ino : 0;
	k->size = r == 0 ? (uint64_t)e.st.st_size : 0;
	if (r == -ENOENT) {
		/* Without elements neither file exists. */
		*strrchr(path, '/') = '\0';
		r = verify_find(v, path, &e);
	}
	return r < 0 ? error_set(err, -EIO, "'%s' has no '%s'", v->args->path,
				 path)
		     : 0;
}

static int sample_compare_all(struct comparer *k, struct sample_reader *reader,
			      struct feed *f, struct error *err)
{
	struct verifier *v = k->v;
	struct feed_unit u;
	uint64_t done = 0;
	int r;

	while ((r = feed_next(f, &u, err)) > 0) {
		done += u.size;
		progress_update(&v->progress, done);
		if (!sample_is(reader->list, u.entry))
			continue;
		k->path = u.path;
		if (u.first) {
			k->bad = false;
			r = sample_begin(reader, &u, err);
			k->element = reader->form.dtype.size;
			k->within = k->nuls = 0;
		}
		if (r >= 0)
			r = sample_put(reader, &u, sample_compare, k, err);
		if (r < 0)
			return r;
	}
	return r;
}

int verify_samples(struct verifier *v, const char *top,
		   const struct feed_options *o, struct error *err)
{
	struct sample_reader reader = {.memory = v->args->memory};
	uint64_t problems = v->scan->n_problems;
	struct comparer k = {.v = v};
	/* its notes were reported while packing */
	struct sink_args silent = *v->args;
	struct sample_list list;
	struct feed *f = NULL;
	int r;

	silent.note = NULL;
	r = sample_list_init(&list, &silent, err);
	reader.list = &list;
	if (r == 0)
		r = sample_find_array(&k, err);
	if (r == 0)
		r = feed_new(&f, v->scan, top, o, &interrupted, err);
	if (r == 0)
		r = sample_compare_all(&k, &reader, f, err);
	feed_close(f);
	sample_reader_free(&reader);
	if (r == 0 && k.at != k.size && !(k.lines && v->differences))
		verify_differs(v, v->args->path,
			       "its number of samples differs from that of the "
			       "directory");
	if (r == 0 && v->scan->n_problems > problems)
		v->differences++; /* the caller reports them */
	return r;
}
