/* SPDX-License-Identifier: BSD-2-Clause */
/* The input of a write: a .npy file, or bytes of standard input. */
#include "tensors/rows/hdf5_write.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "extent/file.h"

#define MAGIC "\x93NUMPY"
#define MAGIC_BYTES 6
#define TICK_MS 200
/* Bytes of magic, version, and the longer form of the header length. */
#define FRONT 12

/* Wait until there is input, or *stop is set: a signal between a check of *stop and
 * read() would not interrupt the read. */
static bool wait_for_more(int fd, const _Atomic int *stop)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int r = 0;

	while (!*stop && (r == 0 || (r < 0 && errno == EINTR)))
		r = poll(&p, 1, TICK_MS);
	return !*stop;
}

/* Read the next bytes.  Return their number, less than `n` only at the end, or -errno. */
static ssize_t read_on(int fd, void *buf, size_t n, const _Atomic int *stop)
{
	size_t done = 0;

	while (done < n) {
		ssize_t r;

		if (!wait_for_more(fd, stop))
			return -EINTR;
		r = read(fd, (char *)buf + done, n - done);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0)
			break;
		done += (size_t)r;
	}
	return (ssize_t)done;
}

static int write_input_failed(const struct write_input *in, int code,
			      struct error *err)
{
	return code == -EINTR
		       ? error_set(err, code, "interrupted")
		       : error_errno(err, code, "cannot read %s", in->name);
}

/* Return the length of the header, from its first bytes; 0 if this is not a .npy file. */
static size_t header_length(const unsigned char *front, size_t n)
{
	if (n < FRONT || memcmp(front, MAGIC, MAGIC_BYTES))
		return 0;
	return front[6] == 1 ? 10 + (size_t)load_le16(front + 8)
			     : 12 + (size_t)load_le32(front + 8);
}

/* Read a header whose first bytes, `front`, were read already. */
static int input_read_header(struct write_input *in, const unsigned char *front,
			     const _Atomic int *stop, struct error *err)
{
	size_t n = header_length(front, FRONT);
	cleanup_free unsigned char *text = NULL;
	ssize_t r;

	if (n < FRONT || n > NPY_HEADER_MOST)
		return error_set(
			err, -EBADMSG,
			"%s begins like a .npy file, but its header is damaged",
			in->name);
	text = malloc(n);
	if (!text)
		return error_no_memory(err, "the header of the .npy file");
	memcpy(text, front, FRONT);
	r = read_on(in->fd, text + FRONT, n - FRONT, stop);
	if (r < 0)
		return write_input_failed(in, (int)r, err);
	if (npy_read(text, (size_t)r + FRONT, NULL, &in->head, err) < 0)
		return error_prefix(err, "%s: ", in->name);
	if (in->head.data != n)
		return error_set(err, -EBADMSG, "%s: its header is damaged",
				 in->name);
	in->npy = true;
	return 0;
}

/* Set the position and size of the elements of a file. */
static int input_measure(struct write_input *in, uint64_t pos,
			 struct error *err)
{
	struct stat st;

	if (fstat(in->fd, &st) < 0)
		return write_input_failed(in, -errno, err);
	in->pos = pos;
	in->size = (uint64_t)st.st_size > pos ? (uint64_t)st.st_size - pos : 0;
	return 0;
}

int write_input_open(struct write_input *in, const char *path,
		     const _Atomic int *stop, struct error *err)
{
	bool standard = !strcmp(path, "-");
	unsigned char front[FRONT] = {0};
	struct stat st = {0};
	ssize_t n;
	int r = 0;

	*in = (struct write_input){.name = standard ? "standard input" : path,
				   .fd = STDIN_FILENO};
	if (!standard)
		r = file_open(AT_FDCWD, path, &in->fd, &st, err);
	else if (fstat(STDIN_FILENO, &st) < 0)
		r = write_input_failed(in, -errno, err);
	if (r == 0 && standard && isatty(STDIN_FILENO))
		r = error_set(err, -EINVAL,
			      "standard input is a terminal: give it a file or "
			      "a pipe");
	if (r < 0)
		return r;
	in->stream = !S_ISREG(st.st_mode);
	in->pos = in->stream ? 0 : (uint64_t)lseek(in->fd, 0, SEEK_CUR);
	n = read_on(in->fd, front, FRONT, stop);
	if (n < 0)
		return write_input_failed(in, (int)n, err);
	if (n >= MAGIC_BYTES && !memcmp(front, MAGIC, MAGIC_BYTES)) {
		r = n < FRONT
			    ? error_set(err, -EBADMSG,
					"%s: its header is truncated", in->name)
			    : input_read_header(in, front, stop, err);
		return r < 0 || in->stream
			       ? r
			       : input_measure(in, in->pos + in->head.data,
					       err);
	}
	if (!standard)
		return error_set(err, -EBADMSG,
				 "'%s' is not a .npy file; give plain bytes on "
				 "standard input (-)",
				 path);
	memcpy(in->early, front, (size_t)n);
	in->n_early = in->stream ? (unsigned)n : 0;
	return in->stream ? 0 : input_measure(in, in->pos, err);
}

/* ---- does it fit? ------------------------------------------------------------ */

static bool same_kind(const struct dtype *a, const struct dtype *b)
{
	return a->kind == b->kind && a->size == b->size;
}

static int input_check_type(const struct write_input *in,
			    const struct dtype *wanted, struct error *err)
{
	char is[64], should[64], descr[64];

	if (same_kind(&in->head.dtype, wanted))
		return 0;
	dtype_name(&in->head.dtype, is, sizeof is);
	dtype_name(wanted, should, sizeof should);
	dtype_descr(wanted, descr, sizeof descr);
	return error_set(err, -EINVAL,
			 "%s has %s, but the tensor has %s; convert it with "
			 "a.astype('%s')",
			 in->name, is, should, descr);
}

/* Check the shape; a single row may come without the first axis. */
static int input_check_shape(const struct write_input *in, unsigned rank,
			     const uint64_t *shape, uint64_t rows,
			     struct error *err)
{
	const struct npy_file *h = &in->head;
	uint64_t want[RANK_MAX];
	char is[200], should[200];
	size_t bytes = rank * sizeof *want;

	memcpy(want, shape, bytes);
	want[0] = rows;
	if (h->rank == rank && !memcmp(h->shape, want, bytes))
		return 0;
	if (rows == 1 && h->rank == rank - 1 &&
	    !memcmp(h->shape, want + 1, bytes - sizeof *want))
		return 0;
	dtype_shape_text(h->shape, h->rank, is, sizeof is);
	dtype_shape_text(want, rank, should, sizeof should);
	return error_set(
		err, -EINVAL,
		"%s has the shape %s, but the rows to be written have %s",
		in->name, is, should);
}

/* Has more than one axis more than one element, so that the order matters? */
static bool has_order(const struct npy_file *h)
{
	unsigned n = 0;

	for (unsigned i = 0; i < h->rank; i++)
		n += h->shape[i] != 1;
	return n > 1;
}

int write_input_check(struct write_input *in, const struct dtype *wanted,
		      unsigned rank, const uint64_t *shape, uint64_t rows,
		      struct error *err)
{
	uint64_t bytes = wanted->size;
	int r;

	in->rows = rows;
	if (in->fd < 0)
		return 0;
	for (unsigned i = 0; i < rank; i++)
		bytes *= i ? shape[i] : rows;
	if (in->npy) {
		r = input_check_type(in, wanted, err);
		if (r == 0)
			r = input_check_shape(in, rank, shape, rows, err);
		if (r < 0)
			return r;
		if (in->head.fortran && has_order(&in->head))
			return error_set(err, -EINVAL,
					 "%s is in Fortran order: save "
					 "np.ascontiguousarray(a)",
					 in->name);
	}
	if (!in->stream && in->size != bytes)
		return error_set(err, in->npy ? -EBADMSG : -EINVAL,
				 "%s has %" PRIu64
				 " bytes of elements, but %" PRIu64
				 " rows have %" PRIu64,
				 in->name, in->size, rows, bytes);
	return 0;
}

/* ---- reading ----------------------------------------------------------------- */

static int input_too_short(const struct write_input *in, struct error *err)
{
	return error_set(err, -EBADMSG,
			 "%s ended before the %" PRIu64 " rows were complete",
			 in->name, in->rows);
}

int write_input_read(struct write_input *in, uint64_t at, void *buf, size_t n,
		     const _Atomic int *stop, struct error *err)
{
	size_t early = min_u64(in->n_early, n);
	ssize_t r;

	if (!in->stream) {
		r = file_read(in->fd, in->pos + at, buf, n);
		if (*stop)
			return error_set(err, -EINTR, "interrupted");
		if (r < 0)
			return write_input_failed(in, (int)r, err);
		return (size_t)r < n ? input_too_short(in, err) : 0;
	}
	memcpy(buf, in->early, early);
	memmove(in->early, in->early + early, in->n_early - early);
	in->n_early -= (unsigned)early;
	r = read_on(in->fd, (char *)buf + early, n - early, stop);
	if (r < 0)
		return write_input_failed(in, (int)r, err);
	return (size_t)r < n - early ? input_too_short(in, err) : 0;
}

int write_input_end(struct write_input *in, const _Atomic int *stop,
		    struct error *err)
{
	char more;
	ssize_t r = in->n_early ? 1 : 0;

	if (in->fd < 0 || !in->stream)
		return 0;
	if (!r)
		r = read_on(in->fd, &more, 1, stop);
	if (r < 0)
		return write_input_failed(in, (int)r, err);
	return r ? error_set(err, -EBADMSG,
			     "%s has more than the %" PRIu64
			     " rows to be written",
			     in->name, in->rows)
		 : 0;
}

void write_input_close(struct write_input *in)
{
	if (in->fd > STDIN_FILENO)
		close(in->fd);
	in->fd = -1;
}
