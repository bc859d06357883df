/* SPDX-License-Identifier: BSD-2-Clause */
/* The file driver behind array.h5 and merged.h5: memory, but for the data. */

/*
 * Once `placing` is set, room for raw data begins on a page and what is written there is
 * dropped; the library asks for nothing else then.  Without the features that a driver
 * may offer it neither collects small data nor holds back metadata.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "formats/hdf5/export/monolith.h"

#if H5_VERSION_GE(1, 14, 0)
#include <H5FDdevelop.h>
#endif

/* Limit of addresses, such that libhdf5 can add two. */
#define ADDRESS_MAX ((haddr_t)INT64_MAX / 2)
#define NAME "tensorfs-monolith"

struct memory_file {
	H5FD_t pub; /* the library's part, first */
	struct monolith_image *image;
};

static struct monolith_image *image_of(const H5FD_t *file)
{
	return ((const struct memory_file *)(const void *)file)->image;
}

/* Push an error on the library's stack, where hdf5_why finds it. */
static herr_t push_driver_error(const char *what)
{
	H5Epush2(H5E_DEFAULT, __FILE__, "monolith", __LINE__, H5E_ERR_CLS,
		 H5E_IO, H5E_WRITEERROR, "%s", what);
	return -1;
}

static H5FD_t *memory_file_open(const char *name, unsigned flags, hid_t fapl,
				haddr_t maxaddr)
{
	struct monolith_image *const *info = H5Pget_driver_info(fapl);
	struct memory_file *f;

	(void)flags, (void)maxaddr;
	if (!info || strcmp(name, NAME))
		return NULL; /* opened from within another file */
	f = calloc(1, sizeof *f);
	if (!f)
		return NULL;
	f->image = *info;
	return &f->pub;
}

static herr_t memory_file_close(H5FD_t *file)
{
	free(file);
	return 0;
}

static herr_t memory_file_query(const H5FD_t *file, unsigned long *flags)
{
	(void)file;
	*flags = 0;
	return 0;
}

static haddr_t memory_file_get_eoa(const H5FD_t *file, H5FD_mem_t type)
{
	(void)type;
	return image_of(file)->eoa;
}

static herr_t memory_file_set_eoa(H5FD_t *file, H5FD_mem_t type, haddr_t addr)
{
	(void)type;
	image_of(file)->eoa = addr;
	return 0;
}

static haddr_t memory_file_alloc(H5FD_t *file, H5FD_mem_t type, hid_t dxpl,
				 hsize_t size)
{
	struct monolith_image *i = image_of(file);
	uint64_t at = i->eoa;

	(void)dxpl;
	if (i->placing && type != H5FD_MEM_DRAW) {
		push_driver_error(
			"libhdf5 allocates room for other things than data");
		return HADDR_UNDEF;
	}
	if (i->placing)
		at = div_up(at, MONOLITH_PAGE) * MONOLITH_PAGE;
	if (at > ADDRESS_MAX || size > ADDRESS_MAX - at) {
		push_driver_error("it would be larger than a file can be");
		return HADDR_UNDEF;
	}
	i->eoa = at + size;
	return at;
}

/* Bytes that were not written read as zeros. */
static herr_t memory_file_read(H5FD_t *file, H5FD_mem_t type, hid_t dxpl,
			       haddr_t addr, size_t size, void *buf)
{
	const struct monolith_image *i = image_of(file);
	size_t n = addr < i->size ? (size_t)min_u64(size, i->size - addr) : 0;

	(void)type, (void)dxpl;
	if (n)
		memcpy(buf, i->data + addr, n);
	memset((char *)buf + n, 0, size - n);
	return 0;
}

static herr_t memory_file_write(H5FD_t *file, H5FD_mem_t type, hid_t dxpl,
				haddr_t addr, size_t size, const void *buf)
{
	struct monolith_image *i = image_of(file);
	size_t end, room;
	char *more;

	(void)dxpl;
	if (i->placing && type == H5FD_MEM_DRAW && addr >= i->front)
		return 0;
	if (addr > MONOLITH_MAX || size > MONOLITH_MAX - addr)
		return push_driver_error(
			"groups, attributes and text are too large");
	end = addr + size;
	if (end > i->room) {
		room = 2 * end;
		more = realloc(i->data, room);
		if (!more)
			return push_driver_error(
				"out of memory for the HDF5 file that is made");
		memset(more + i->room, 0, room - i->room);
		i->data = more;
		i->room = room;
	}
	if (size)
		memcpy(i->data + addr, buf, size);
	i->size = end > i->size ? end : i->size;
	return 0;
}

/* No fapl_get: what the library opens by itself would inherit our file. */
static const H5FD_class_t driver_class = {
#if H5_VERSION_GE(1, 14, 0)
	.version = H5FD_CLASS_VERSION,
	.value = (H5FD_class_value_t)509, /* 256 to 511: for private use */
#endif
	.name = NAME,
	.maxaddr = ADDRESS_MAX,
	.fc_degree = H5F_CLOSE_STRONG,
	.fapl_size = sizeof(struct monolith_image *),
	.open = memory_file_open,
	.close = memory_file_close,
	.query = memory_file_query,
	.alloc = memory_file_alloc,
	.get_eoa = memory_file_get_eoa,
	.set_eoa = memory_file_set_eoa,
	.get_eof = memory_file_get_eoa,
	.read = memory_file_read,
	.write = memory_file_write,
	.fl_map = H5FD_FLMAP_DICHOTOMY,
};

hid_t monolith_create(struct monolith_image *image, hid_t fcpl)
{
	static hid_t driver = H5I_INVALID_HID; /* the library's lock */
	hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), f = H5I_INVALID_HID;

	if (driver < 0)
		driver = H5FDregister(&driver_class);
	if (fapl >= 0 && driver >= 0 && fcpl >= 0 &&
	    H5Pset_driver(fapl, driver, &image) >= 0 &&
	    H5Pset_fclose_degree(fapl, H5F_CLOSE_STRONG) >= 0 &&
	    H5Pset_libver_bounds(fapl, H5F_LIBVER_V18, H5F_LIBVER_V18) >= 0 &&
	    H5Pset_sieve_buf_size(fapl, 0) >= 0)
		f = H5Fcreate(NAME, H5F_ACC_TRUNC, fcpl, fapl);
	if (fapl >= 0)
		H5Pclose(fapl);
	return f;
}
