/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading from backing files, with their identity compared afterwards. */
#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/number.h"
#include "extent/file.h"
#include "extent/handles_private.h"

static int read_pinned(struct handles *h, const struct handle *pin,
		       uint64_t pos, void *data, size_t len, struct error *err)
{
	const char *path = handles_path(h, pin->file);
	uint64_t end;
	ssize_t n;
	int r;

	if (add_overflows(pos, len, &end) || end > pin->size)
		return error_set(err, -EIO,
				 "%llu bytes at %llu lie beyond the end of %s "
				 "(%llu bytes): truncated?",
				 (unsigned long long)len,
				 (unsigned long long)pos, file_shown(path),
				 (unsigned long long)pin->size);
	n = file_read(pin->fd, pin->base + pos, data, len);
	/* If the file changed, that explains any other error. */
	r = handles_check(h, pin, err);
	if (r < 0)
		return r;
	if (n < 0)
		return file_fail_errno(err, path, (int)-n);
	if ((size_t)n < len)
		return error_set(err, -EIO,
				 "%s ended after %llu of %llu bytes at %llu, "
				 "though it is %llu bytes long",
				 file_shown(path), (unsigned long long)n,
				 (unsigned long long)len,
				 (unsigned long long)pos,
				 (unsigned long long)pin->size);
	return 0;
}

static int handles_read_one(struct handles *h, uint32_t file, uint64_t pos,
			    void *data, size_t len, struct error *err)
{
	struct handle pin;
	int r;

	r = handles_get(h, file, &pin, err);
	if (r < 0)
		return r;
	r = read_pinned(h, &pin, pos, data, len, err);
	handles_put(h, &pin);
	return r;
}

/* As handles_length_before, for a row that is one file. */
static uint64_t handles_before_in_file(struct handles *h, uint32_t file,
				       uint64_t pos, uint64_t n, int whence)
{
	uint64_t none = whence == SEEK_DATA ? 0 : n, found = none;
	struct error ignored;
	struct handle pin;
	off_t at;

	if (handles_get(h, file, &pin, &ignored) < 0)
		return none; /* reading will say why */
	if (pos <= pin.size && n <= pin.size - pos) {
		at = lseek(pin.fd, (off_t)(pin.base + pos), whence);
		if (at < 0 && errno == ENXIO && whence == SEEK_DATA)
			found = n; /* a hole up to the end of the file */
		else if (at >= 0 && (uint64_t)at >= pin.base + pos)
			found = min_u64((uint64_t)at - pin.base - pos, n);
	}
	handles_put(h, &pin);
	return found;
}

int handles_read(struct handles *h, uint32_t file, uint64_t pos, void *data,
		 size_t len, struct error *err)
{
	unsigned char *to = data;
	int r = 0;

	if (!atomic_load(&h->any_joined))
		return handles_read_one(h, file, pos, data, len, err);
	do {
		struct handles_piece p;
		size_t n;

		if (!handles_piece_at(h, file, pos, &p))
			return error_set(err, -EIO,
					 "byte %llu of %s is in none of its "
					 "files: damaged?",
					 (unsigned long long)pos,
					 handles_name(h, file));
		n = (size_t)min_u64(len, p.size - (pos - p.begin));
		r = handles_read_one(h, p.file, pos - p.begin, to, n, err);
		pos += n;
		to += n;
		len -= n;
	} while (len && !r);
	return r;
}

uint64_t handles_length_before(struct handles *h, uint32_t file, uint64_t pos,
			       uint64_t n, int whence)
{
	uint64_t done = 0;

	while (done < n) {
		struct handles_piece p;
		uint64_t at = pos + done, part, found;

		/* No file has this byte: reading it reports that. */
		if (!handles_piece_at(h, file, at, &p))
			return whence == SEEK_DATA ? done : n;
		part = min_u64(n - done, p.size - (at - p.begin));
		found = handles_before_in_file(h, p.file, at - p.begin, part,
					       whence);
		done += found;
		if (found < part)
			break;
	}
	return done;
}
