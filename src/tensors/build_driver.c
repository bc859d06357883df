/* SPDX-License-Identifier: BSD-2-Clause */
/* The file driver that shows libhdf5 chunks which are already in the file. */

/*
 * Chunks are written before libhdf5 opens the file.  It is told of each with
 * H5Dwrite_chunk, which asks the driver for room, writes, and puts the address into the
 * index.  The driver returns the place where the chunk is, and drops the write:
 *
 *   0      4096                        chunks_end              eoa
 *   | super |  chunks, any order          | metadata, other data |
 *             ^
 *   H5Dwrite_chunk(len, dummy) --> alloc(DRAW, len) = pos    spot.asked   = 1
 *                              --> write(DRAW, pos, len)     spot.written = 1
 *
 * Exactly that must happen, once for each chunk.  Anything else, and any write to the
 * range of the chunks, is a failure.  The driver offers none of the optional features, so
 * the library neither aggregates small data nor delays metadata, and asks only for room
 * that it needs.
 *
 * A failure (a full disk) is remembered, and from then on writes do nothing, because the
 * library cannot close a file that does not accept its metadata.
 */
#include "tensors/build_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "extent/file.h"
#include "formats/hdf5/file/driver.h"

#if H5_VERSION_GE(1, 14, 0)
#include <H5FDdevelop.h>
#endif

/* Half of the range, because the library adds two addresses. */
#define ADDRESS_MAX ((haddr_t)INT64_MAX / 2)

static struct build *build_of(const H5FD_t *file)
{
	return ((const struct build_file *)(const void *)file)->b;
}

/* Remember the first failure, and push it to the library's error stack. */
static void build_driver_fail(struct build *b, int code, const char *what)
{
	if (!b)
		return;
	if (!b->failure.code) {
		if (what)
			error_set(&b->failure, code, "%s: libhdf5 %s",
				  file_shown(b->path), what);
		else
			error_errno(&b->failure, code, "cannot write '%s'",
				    file_shown(b->path));
	}
	H5Epush2(H5E_DEFAULT, __FILE__, "build_driver", __LINE__, H5E_ERR_CLS,
		 H5E_IO, H5E_WRITEERROR, "%s", b->failure.text);
}

static H5FD_t *build_driver_open(const char *name, unsigned flags, hid_t fapl,
				 haddr_t maxaddr)
{
	struct build *const *info = H5Pget_driver_info(fapl);
	struct build_file *f;

	(void)flags, (void)maxaddr;
	if (!info || !*info || strcmp(name, (*info)->path))
		/* Opened by the library, by a link from another file. */
		return NULL;
	f = calloc(1, sizeof *f);
	if (!f)
		return NULL;
	f->b = *info;
	f->b->file = f;
	f->b->eoa = 0;
	return &f->pub;
}

static herr_t build_driver_close(H5FD_t *file)
{
	struct build_file *f = (void *)file;

	if (f->b && f->b->file == f)
		f->b->file = NULL;
	free(f);
	return 0;
}

static herr_t build_driver_query(const H5FD_t *file, unsigned long *flags)
{
	(void)file;
	*flags = 0;
	return 0;
}

static haddr_t build_driver_get_eoa(const H5FD_t *file, H5FD_mem_t type)
{
	const struct build *b = build_of(file);

	(void)type;
	return b ? b->eoa : HADDR_UNDEF;
}

static herr_t build_driver_set_eoa(H5FD_t *file, H5FD_mem_t type, haddr_t addr)
{
	struct build *b = build_of(file);

	(void)type;
	if (!b)
		return -1;
	b->eoa = addr;
	return 0;
}

/* 0 at first, so that the library begins a new file. */
static haddr_t build_driver_get_eof(const H5FD_t *file, H5FD_mem_t type)
{
	return build_driver_get_eoa(file, type);
}

static haddr_t build_driver_alloc(H5FD_t *file, H5FD_mem_t type, hid_t dxpl,
				  hsize_t size)
{
	struct build *b = build_of(file);
	uint64_t at;

	(void)dxpl;
	if (!b)
		return HADDR_UNDEF;
	if (type == H5FD_MEM_DRAW && b->spot.on) {
		if (b->spot.asked++ || size != b->spot.len) {
			build_driver_fail(b, -ENOTSUP,
					  "asks for room in an unknown way");
			return HADDR_UNDEF;
		}
		if (b->eoa < b->chunks_end)
			b->eoa = b->chunks_end;
		return b->spot.pos;
	}
	at = b->eoa;
	if (at > b->first || size > b->first - at || type != H5FD_MEM_SUPER)
		at = at < b->chunks_end ? b->chunks_end : at;
	if (size > ADDRESS_MAX - at) {
		build_driver_fail(b, -EFBIG,
				  "asks for more room than a file can have");
		return HADDR_UNDEF;
	}
	b->eoa = at + size;
	return at;
}

static herr_t build_driver_read(H5FD_t *file, H5FD_mem_t type, hid_t dxpl,
				haddr_t addr, size_t size, void *buf)
{
	struct build *b = build_of(file);
	ssize_t n;

	(void)dxpl, (void)type;
	if (!b)
		return -1;
	n = file_read(b->fd, addr, buf, size);
	if (n < 0) {
		build_driver_fail(b, (int)n, NULL);
		return -1;
	}
	/* Bytes that were allocated and not written yet are zeros. */
	memset((char *)buf + n, 0, size - (size_t)n);
	return 0;
}

static herr_t build_driver_write_all(struct build *b, uint64_t pos,
				     const char *data, size_t n)
{
	while (n > 0) {
		ssize_t done = pwrite(b->fd, data, n, (off_t)pos);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			build_driver_fail(b, done < 0 ? -errno : -EIO, NULL);
			return -1;
		}
		pos += (uint64_t)done;
		data += done;
		n -= (size_t)done;
	}
	return 0;
}

static herr_t build_driver_write(H5FD_t *file, H5FD_mem_t type, hid_t dxpl,
				 haddr_t addr, size_t size, const void *buf)
{
	struct build *b = build_of(file);

	(void)dxpl;
	if (!b || b->failure.code)
		return 0;
	if (b->stop && atomic_load(b->stop)) {
		error_set(&b->failure, -EINTR, "interrupted");
		return -1;
	}
	if (b->spot.on && type == H5FD_MEM_DRAW && addr == b->spot.pos &&
	    size == b->spot.len) {
		b->spot.written++;
		return 0;
	}
	if (addr < b->chunks_end &&
	    (addr > b->first || size > b->first - addr)) {
		build_driver_fail(b, -ENOTSUP, "writes over chunks");
		return -1;
	}
	return build_driver_write_all(b, addr, buf, size);
}

/* No fapl_get: files that the library opens by itself would inherit this driver. */
static const H5FD_class_t driver_class = {
#if H5_VERSION_GE(1, 14, 0)
	.version = H5FD_CLASS_VERSION,
	.value = (H5FD_class_value_t)510, /* 256 to 511 are for private use */
#endif
	.name = "tensorfs-build",
	.maxaddr = ADDRESS_MAX,
	.fc_degree = H5F_CLOSE_STRONG,
	.fapl_size = sizeof(struct build *),
	.open = build_driver_open,
	.close = build_driver_close,
	.query = build_driver_query,
	.alloc = build_driver_alloc,
	.get_eoa = build_driver_get_eoa,
	.set_eoa = build_driver_set_eoa,
	.get_eof = build_driver_get_eof,
	.read = build_driver_read,
	.write = build_driver_write,
	.fl_map = H5FD_FLMAP_DICHOTOMY,
};

int build_driver_create(struct build *b, hid_t fcpl, hid_t *file,
			struct error *err)
{
	/* Guarded by the library's lock. */
	static hid_t driver = H5I_INVALID_HID;
	hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), f = H5I_INVALID_HID;
	char why[256];

	if (driver < 0)
		driver = H5FDregister(&driver_class);
	if (fapl >= 0 && driver >= 0 && H5Pset_driver(fapl, driver, &b) >= 0 &&
	    H5Pset_fclose_degree(fapl, H5F_CLOSE_STRONG) >= 0)
		f = H5Fcreate(b->path, H5F_ACC_TRUNC, fcpl, fapl);
	if (f < 0)
		hdf5_why(why, sizeof why);
	if (fapl >= 0)
		H5Pclose(fapl);
	if (f < 0 && b->failure.code)
		return error_set(err, b->failure.code, "%s", b->failure.text);
	if (f < 0)
		return error_set(err, -EIO, "cannot make '%s': %s",
				 file_shown(b->path), why);
	*file = f;
	return 0;
}
