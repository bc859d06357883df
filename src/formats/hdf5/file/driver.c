/* SPDX-License-Identifier: BSD-2-Clause */
/* Our read-only HDF5 file driver, the library's lock, and chunk locations. */

/*
 * The public calls that tell where a chunk is stored walk the whole index each
 * time, and for some indexes give wrong answers.  The library itself finds a
 * chunk quickly and correctly whenever it reads one.  So we let it read:
 *
 *   hdf5_locate ---- H5Dread_chunk(offset) ---> libhdf5: exact index lookup
 *       |                                          |
 *       |  spy.on = true                           |  read(DRAW, addr, size)
 *       v                                          v
 *   spy.pos, spy.size <------------------------ driver_read: notes, copies
 *                                               nothing, says "done"
 *
 * Index nodes that the lookup needs are metadata (any type but DRAW) and are
 * read as always.  The driver sees absolute addresses, so a user block needs
 * no special care.  Exactly one read must be seen; the buffer that H5Dread_chunk
 * asks for is never touched.
 *
 * A chunk that was never written makes H5Dread_chunk fail, as a damaged index
 * does.  The two are told apart by the library's innermost complaint.  The
 * complaint about an absent chunk is not written down here but learned in the
 * self-test, so that it is that of the libhdf5 in use.
 *
 * The driver has no lock callbacks, so it neither blocks a process that writes
 * the file nor is blocked by it.  It reports an end beyond that of any file, so
 * that a truncated file can be opened and the part before the cut can be used; a
 * read beyond the real end is an error with a sentence.  It opens nothing but the
 * file that its property list names: the library cannot follow external links or
 * open the sources of virtual datasets with it.
 *
 * All that depends on the version of libhdf5 is in this file.
 */

#include "formats/hdf5/file/driver_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "extent/file.h"
#include "formats/hdf5/file/index.h"
#include "formats/hdf5/file/lost.h"
#include "formats/hdf5/file/members.h"
#include "formats/hdf5/file/vlen.h"

#if H5_VERSION_GE(1, 14, 0)
#include <H5FDdevelop.h>
#endif
#if H5_VERSION_GE(2, 0, 0)
#define read_chunk H5Dread_chunk1
#else
#define read_chunk H5Dread_chunk
#endif

/* Half of INT64_MAX, so that the library can add two addresses without an overflow. */
#define ADDRESS_MAX ((haddr_t)INT64_MAX / 2)
#define WIDE_MAX (HADDR_MAX - 1)

static pthread_mutex_t library_lock = PTHREAD_MUTEX_INITIALIZER;
static bool library_ready; /* guarded by library_lock */
static hid_t driver_id = H5I_INVALID_HID;
/* The driver under the names that libhdf5 requires if a superblock names them. */
static hid_t family_id = H5I_INVALID_HID, multi_id = H5I_INVALID_HID;
static bool initialised; /* guarded by library_lock */
static bool usable;      /* set once, by hdf5_init */

struct driver_file {
	H5FD_t pub; /* libhdf5's part; must come first */
	struct hdf5_driver_info info;
	struct stat st;
	uint64_t base; /* in bytes: where the HDF5 file begins in that file */
	haddr_t eoa;   /* end of allocated space, as the library set it */
};

static _Thread_local struct spy {
	bool on;
	unsigned reads;
	uint64_t pos, size;
} spy;
/* This thread's last failure in the driver; its code is 0 if there was none. */
static _Thread_local struct error failure;
static _Thread_local bool silenced;

void hdf5_lock(void)
{
	pthread_mutex_lock(&library_lock);
	if (!library_ready) {
		/* The library's exit handler crashes when ids are open. */
		H5dont_atexit();
		H5open();
		library_ready = true;
	}
	if (!silenced) {
		H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
		silenced = true;
	}
}

void hdf5_unlock(void)
{
	pthread_mutex_unlock(&library_lock);
}

bool hdf5_driver_ok(void)
{
	return usable;
}

/* ---- the driver ---- */

/* Push the sentence of `failure` onto the library's error stack, where hdf5_why finds
 * it. */
static void file_driver_complain(unsigned line)
{
	H5Epush2(H5E_DEFAULT, __FILE__, "hdf5_driver", line, H5E_ERR_CLS,
		 H5E_IO, H5E_READERROR, "%s", failure.text);
}

static int file_driver_stat(const struct hdf5_driver_info *info,
			    struct stat *st, uint64_t *base)
{
	struct handle pin;
	int r;

	if (!info->handles) {
		r = fstat(info->fd, st) < 0 ? -errno : 0;
		return r < 0 ? error_errno(&failure, r, "self-test") : 0;
	}
	r = handles_get(info->handles, info->file, &pin, &failure);
	if (r < 0)
		return r;
	if (fstat(pin.fd, st) < 0)
		r = error_errno(&failure, -errno, "%s",
				handles_path(info->handles, info->file));
	st->st_size = (off_t)pin.size;
	*base = pin.base;
	handles_put(info->handles, &pin);
	return r;
}

static H5FD_t *file_driver_open(const char *name, unsigned flags, hid_t fapl,
				haddr_t maxaddr)
{
	const struct hdf5_driver_info *info = H5Pget_driver_info(fapl);
	struct driver_file *f = NULL;

	(void)maxaddr;
	if (!info || (info->handles &&
		      strcmp(name, handles_path(info->handles, info->file))))
		error_set(&failure, -EIO,
			  "%s: libhdf5 may not open this file from within "
			  "another one",
			  file_shown(name));
	else if (info->handles && flags & (H5F_ACC_RDWR | H5F_ACC_TRUNC))
		error_set(&failure, -EROFS,
			  "%s: HDF5 files are opened for reading only",
			  file_shown(name));
	else if (!(f = calloc(1, sizeof *f)))
		error_no_memory(&failure, "an open HDF5 file");
	else if (f->info = *info, file_driver_stat(info, &f->st, &f->base) == 0)
		return &f->pub;
	free(f);
	file_driver_complain(__LINE__);
	return NULL;
}

static herr_t file_driver_close(H5FD_t *file)
{
	free(file);
	return 0;
}

static int driver_compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* Compare two open files.  The library shares what it has read between equal ones. */
static int file_driver_cmp(const H5FD_t *one, const H5FD_t *two)
{
	const struct driver_file *a = (const void *)one, *b = (const void *)two;
	int r = driver_compare_numbers((uintptr_t)a->info.handles,
				       (uintptr_t)b->info.handles);

	r = r ? r : driver_compare_numbers(a->st.st_dev, b->st.st_dev);
	r = r ? r : driver_compare_numbers(a->st.st_ino, b->st.st_ino);
	/* Two pieces of one file are different HDF5 files. */
	return r ? r : driver_compare_numbers(a->base, b->base);
}

static herr_t file_driver_query(const H5FD_t *file, unsigned long *flags)
{
	(void)file; /* NULL if only the driver itself is asked about */
	*flags = H5FD_FEAT_SUPPORTS_SWMR_IO;
	return 0;
}

static bool driver_is_wide(const struct driver_file *f)
{
	return hdf5_members_is_wide(f->info.handles, f->info.file);
}

static haddr_t file_driver_get_eoa(const H5FD_t *file, H5FD_mem_t type)
{
	const struct driver_file *f = (const void *)file;

	return driver_is_wide(f) ? hdf5_members_end(f->info.handles,
						    f->info.file, (int)type)
				 : f->eoa;
}

static herr_t file_driver_set_eoa(H5FD_t *file, H5FD_mem_t type, haddr_t addr)
{
	(void)type;
	((struct driver_file *)(void *)file)->eoa = addr;
	return 0;
}

/* Return an end beyond that of any file: the library refuses to open a file that ends
 * before its superblock says, though most of it may be there. */
static haddr_t file_driver_get_eof(const H5FD_t *file, H5FD_mem_t type)
{
	const struct driver_file *f = (const void *)file;

	(void)type;
	if (driver_is_wide(f))
		return WIDE_MAX;
	return f->info.handles ? ADDRESS_MAX : (haddr_t)f->st.st_size;
}

static herr_t file_driver_read(H5FD_t *file, H5FD_mem_t type, hid_t dxpl,
			       haddr_t addr, size_t size, void *buf)
{
	struct driver_file *f = (void *)file;
	uint64_t pos =
		hdf5_members_position(f->info.handles, f->info.file, addr);
	int r;

	(void)dxpl;
	if (spy.on && type == H5FD_MEM_DRAW) {
		spy.reads++;
		spy.pos = pos;
		spy.size = size;
		return 0;
	}
	if (pos > ADDRESS_MAX || size > ADDRESS_MAX)
		r = error_set(&failure, -EIO,
			      "address %llu is beyond the end of any file: "
			      "the HDF5 file is damaged",
			      (unsigned long long)addr);
	else if (f->info.handles)
		r = handles_read(f->info.handles, f->info.file, pos, buf, size,
				 &failure);
	else if (file_read(f->info.fd, addr, buf, size) == (ssize_t)size)
		r = 0;
	else
		r = error_set(&failure, -EIO,
			      "the self-test's file ends too early");
	if (r == 0 && f->info.handles)
		hdf5_lost_overlay(f->info.file, pos, buf, size);
	if (r == 0)
		return hdf5_index_saw(addr, buf, size);
	file_driver_complain(__LINE__);
	return -1;
}

static herr_t file_driver_get_handle(H5FD_t *file, hid_t fapl, void **out)
{
	(void)fapl;
	*out = &((struct driver_file *)(void *)file)->info;
	return 0;
}

static herr_t file_driver_write(H5FD_t *file, H5FD_mem_t type, hid_t dxpl,
				haddr_t addr, size_t size, const void *buf)
{
	const struct driver_file *f = (const void *)file;

	(void)type, (void)dxpl;
	if (!f->info.handles && /* the self-test makes its file */
	    pwrite(f->info.fd, buf, size, (off_t)addr) == (ssize_t)size)
		return 0;
	error_set(&failure, -EROFS, "this HDF5 file is open for reading only");
	file_driver_complain(__LINE__);
	return -1;
}

/* There is no fapl_get: files that the library opens by itself would inherit our
 * property. */
static const H5FD_class_t driver_class = {
#if H5_VERSION_GE(1, 14, 0)
	.version = H5FD_CLASS_VERSION,
	.value = (H5FD_class_value_t)511, /* 256 to 511: for private use */
#endif
	.name = "tensorfs",
	.maxaddr = ADDRESS_MAX,
	.fc_degree = H5F_CLOSE_STRONG,
	.fapl_size = sizeof(struct hdf5_driver_info),
	.open = file_driver_open,
	.close = file_driver_close,
	.cmp = file_driver_cmp,
	.query = file_driver_query,
	.get_eoa = file_driver_get_eoa,
	.set_eoa = file_driver_set_eoa,
	.get_eof = file_driver_get_eof,
	.read = file_driver_read,
	.write = file_driver_write,
	.get_handle = file_driver_get_handle,
	.fl_map = H5FD_FLMAP_DICHOTOMY,
};

static hid_t driver_register_as(hid_t before, const char *name, haddr_t most)
{
	H5FD_class_t class = driver_class;

	if (before >= 0)
		return before;
	class.name = name;
	class.maxaddr = most;
	return H5FDregister(&class);
}

static bool register_drivers(void)
{
	driver_id =
		driver_register_as(driver_id, driver_class.name, ADDRESS_MAX);
	family_id = driver_register_as(family_id, "family", ADDRESS_MAX);
	multi_id = driver_register_as(multi_id, "multi", WIDE_MAX);
	return driver_id >= 0 && family_id >= 0 && multi_id >= 0;
}

/* ---- opening ---- */

uint64_t hdf5_driver_position(hid_t object, uint64_t address)
{
	const struct hdf5_driver_info *info = hdf5_driver_info(object);

	return info ? hdf5_members_position(info->handles, info->file, address)
		    : address;
}

/* H5Fget_vfd_handle returns the property of any file that our driver opened. */
const struct hdf5_driver_info *hdf5_driver_info(hid_t object)
{
	hid_t file = H5Iget_file_id(object);
	void *info = NULL;

	if (file < 0)
		return NULL;
	if (H5Fget_vfd_handle(file, H5P_DEFAULT, &info) < 0)
		info = NULL;
	H5Fclose(file);
	return info;
}

herr_t hdf5_driver_set(hid_t fapl, const struct hdf5_driver_info *info)
{
	struct handles *h = info->handles;
	hid_t id = driver_id;

	if (hdf5_members_is_wide(h, info->file))
		id = multi_id;
	else if (h && handles_is_joined(h, info->file))
		id = family_id;
	return H5Pset_driver(fapl, id, info);
}

/*
 * While a SWMR writer is at work, a checksum can fail for a moment, and the library tries
 * again: a hundred times, sleeping twice as long each time, which takes forever if the
 * file is damaged.  This many tries sleep 1 ms in all.
 */
#define READ_ATTEMPTS 20

hid_t hdf5_driver_fopen(const char *name, const struct hdf5_driver_info *info,
			unsigned flags, char *why)
{
	hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), file = H5I_INVALID_HID;
	unsigned tries = flags ? READ_ATTEMPTS : 1;

	failure.code = 0;
	if (fapl >= 0 && hdf5_driver_set(fapl, info) >= 0 &&
	    H5Pset_metadata_read_attempts(fapl, tries) >= 0 &&
	    H5Pset_fclose_degree(fapl, H5F_CLOSE_STRONG) >= 0)
		file = H5Fopen(name, H5F_ACC_RDONLY | flags, fapl);
	if (file < 0)
		hdf5_why(why, HDF5_WHY);
	if (fapl >= 0)
		H5Pclose(fapl);
	return file;
}

int hdf5_open(struct handles *h, uint32_t file, hid_t *out, struct error *err)
{
	const struct hdf5_driver_info info = {h, file, -1};
	const char *path = handles_path(h, file);
	char why[HDF5_WHY], why_not[HDF5_WHY];
	unsigned flags = 0;
	hid_t id;
	int r;

	r = hdf5_superblock_find(h, file, &flags, err);
	if (r < 0)
		return r;
	id = hdf5_driver_fopen(path, &info, flags, why);
	if (id < 0 && flags) /* the mark of a writer may be damage */
		id = hdf5_driver_fopen(path, &info, 0, why_not);
	if (id >= 0) {
		*out = id;
		return 0;
	}
	if (failure.code == 0)
		return error_set(err, -EIO, "%s: %s", file_shown(path), why);
	r = failure.code == -ESTALE || failure.code == -ENODATA ? failure.code
								: -EIO;
	return error_set(err, r, "%s", failure.text);
}

/* ---- locating ---- */

static struct hdf5_complaint absent[HDF5_ABSENT_KINDS];

enum hdf5_found hdf5_spy(hid_t dset, const hsize_t *offset, void *dummy,
			 struct hdf5_location *out, struct hdf5_complaint *why)
{
	uint32_t mask = 0;
	herr_t r;

	failure.code = 0;
	spy = (struct spy){.on = true};
	r = read_chunk(dset, H5P_DEFAULT, offset, &mask, dummy);
	spy.on = false;
	if (r < 0) {
		hdf5_complaint_get(why);
		return spy.reads ? HDF5_FOUND_ODD : HDF5_FOUND_COMPLAINT;
	}
	if (spy.reads != 1 || spy.pos > INT64_MAX || spy.size == 0 ||
	    spy.size > INT64_MAX - spy.pos)
		return HDF5_FOUND_ODD;
	*out = (struct hdf5_location){spy.pos, spy.size, mask};
	return HDF5_FOUND_CHUNK;
}

int hdf5_locate(hid_t dset, const hsize_t *offset, struct hdf5_location *out,
		struct error *err)
{
	static unsigned char dummy[64]; /* never written */
	struct hdf5_complaint why;

	if (!usable)
		return error_set(err, -ENOTSUP,
				 "this libhdf5 does not tell where chunks are");
	switch (hdf5_spy(dset, offset, dummy, out, &why)) {
	case HDF5_FOUND_CHUNK:
		return 0;
	case HDF5_FOUND_COMPLAINT:
		break;
	default:
		return error_set(err, -EIO, "the chunk index is damaged");
	}
	if (failure.code == -ESTALE || failure.code == -ENODATA)
		return error_set(err, failure.code, "%s", failure.text);
	if (failure.code == 0 && (hdf5_complaint_equal(&why, &absent[0]) ||
				  hdf5_complaint_equal(&why, &absent[1]))) {
		*out = (struct hdf5_location){.pos = HDF5_ABSENT};
		return 0;
	}
	return error_set(err, -EIO, "the chunk index cannot be read: %s",
			 why.text);
}

/* ---- start ---- */

int hdf5_init(struct error *err)
{
	unsigned major = 0, minor = 0, release = 0;
	const char *wrong;
	int r = 0;

	hdf5_lock();
	if (initialised)
		goto out;
	if (!register_drivers())
		r = error_set(err, -EIO,
			      "libhdf5 refuses the file driver of tensorfs");
	else
		r = hdf5_filters_register(err);
	if (r == 0)
		r = hdf5_vlen_register(err);
	if (r < 0)
		goto out;
	initialised = true;
	H5get_libversion(&major, &minor, &release);
	wrong = hdf5_selftest(absent);
	if (wrong)
		log_warn("libhdf5 %u.%u.%u: %s; chunks will be read through "
			 "the library, one at a time",
			 major, minor, release, wrong);
	usable = !wrong;
out:
	hdf5_unlock();
	return r;
}
