/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of filters: those we decode, and those we only know by name. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "codec/codec.h"

#include <errno.h>
#include <pthread.h>

/* A filter whose library was missing at build time is known by name only. */
const struct codec *const codec_table[] = {
	&codec_deflate,
	&codec_shuffle,
	&codec_fletcher32,
	&codec_lzf,
	&codec_lz4,
	&codec_zstd,
	&codec_bitshuffle,
	&codec_nbit,
	&codec_scaleoffset,
#if HAVE_SZIP
	&codec_szip,
#endif
#if HAVE_BZIP2
	&codec_bzip2,
#endif
#if HAVE_BLOSC
	&codec_blosc,
#endif
	NULL,
};

/*
 * Filters of the HDF5 library and of the HDF Group's registry.  A package is named where
 * Debian has an HDF5 plugin that works: hdf5-plugin-lzf cannot be loaded (lzf_decompress
 * is missing in it), but the bitshuffle package has an LZF plugin.
 */
struct known {
	uint32_t id;
	const char *name, *package;
};
static const struct known known_filters[] = {
	{1, "deflate", NULL},
	{2, "shuffle", NULL},
	{3, "fletcher32", NULL},
	{4, "szip", NULL},
	{5, "nbit", NULL},
	{6, "scaleoffset", NULL},
	{305, "lzo", NULL},
	{307, "bzip2", "hdf5-filter-plugin"},
	{32000, "lzf", "bitshuffle"},
	{32001, "blosc", "hdf5-filter-plugin-blosc-serial"},
	{32002, "mafisc", NULL},
	{32003, "snappy", NULL},
	{32004, "lz4", "hdf5-filter-plugin"},
	{32005, "apax", NULL},
	{32006, "cbf", NULL},
	{32007, "jpeg-xr", NULL},
	{32008, "bitshuffle", "bitshuffle"},
	{32009, "spdp", NULL},
	{32010, "lpc-rice", NULL},
	{32011, "ccsds-123", NULL},
	{32012, "jpeg-ls", NULL},
	{32013, "zfp", "hdf5-filter-plugin-zfp-serial"},
	{32014, "fpzip", NULL},
	{32015, "zstd", NULL},
	{32016, "b3d", NULL},
	{32017, "sz", NULL},
	{32018, "fcidecomp", NULL},
	{32019, "jpeg", NULL},
	{32020, "vbz", NULL},
	{32021, "fapec", NULL},
	{32022, "bitgroom", NULL},
	{32023, "granular-bitround", NULL},
	{32024, "sz3", NULL},
	{32025, "delta-rice", NULL},
	{32026, "blosc2", NULL},
	{32027, "flac", NULL},
	{32028, "sperr", NULL},
	{32029, "terse-prolix", NULL},
	{32030, "ffmpeg", NULL},
};

static const struct known *known_find(uint32_t id)
{
	size_t n = sizeof known_filters / sizeof *known_filters;

	for (size_t i = 0; i < n; i++)
		if (known_filters[i].id == id)
			return &known_filters[i];
	return NULL;
}

const struct codec *codec_by_id(uint32_t id)
{
	for (size_t i = 0; codec_table[i]; i++)
		if (codec_table[i]->id == id)
			return codec_table[i];
	return NULL;
}

const char *codec_name_of_id(uint32_t id)
{
	const struct known *k = known_find(id);

	return k ? k->name : NULL;
}

const char *codec_package_of_id(uint32_t id)
{
	const struct known *k = known_find(id);

	return k ? k->package : NULL;
}

/*
 * Memory kept for each thread.  A codec that keeps something (a decompressor, scratch
 * memory) registers a function that frees it.  A pthread key, set to anything but NULL,
 * makes the C library call it when the thread ends.  The main thread ends with the
 * process and frees nothing unless it calls the cleanup itself.
 */
#define CLEANUP_MAX 16

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static int key_error;
static _Thread_local codec_cleanup_fn *cleanups[CLEANUP_MAX];
static _Thread_local unsigned n_cleanups;

static void thread_ends(void *arg)
{
	(void)arg;
	codec_thread_cleanup();
}

static void make_cleanup_key(void)
{
	key_error = pthread_key_create(&key, thread_ends);
}

int codec_thread_at_exit(codec_cleanup_fn *fn)
{
	for (unsigned i = 0; i < n_cleanups; i++)
		if (cleanups[i] == fn)
			return 0;
	pthread_once(&key_once, make_cleanup_key);
	if (key_error || n_cleanups == CLEANUP_MAX ||
	    pthread_setspecific(key, cleanups))
		return -ENOMEM;
	cleanups[n_cleanups++] = fn;
	return 0;
}

void codec_thread_cleanup(void)
{
	while (n_cleanups)
		cleanups[--n_cleanups]();
}
