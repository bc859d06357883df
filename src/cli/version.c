/* SPDX-License-Identifier: BSD-2-Clause */
/* The versions of the program and its libraries, and the lists of filters and formats. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0.1.0"
#endif

#include <jansson.h>
#include <libdeflate.h>
#include <lz4.h>
#include <zstd.h>

#include "app/cli.h"
#include "codec/codec.h"
#include "formats/hdf5/file/driver.h"
#include "fuse/fuse.h"

const char cli_version[] = PACKAGE_VERSION;

void version_print(FILE *out)
{
	unsigned major = 0, minor = 0, release = 0;

	hdf5_lock();
	if (H5get_libversion(&major, &minor, &release) < 0)
		major = minor = release = 0;
	hdf5_unlock();
	fprintf(out, "tensorfs %s\n", cli_version);
	fprintf(out, "libfuse %s\n", fuse_face_version());
	fprintf(out, "HDF5 %u.%u.%u\n", major, minor, release);
	fprintf(out, "libdeflate %s\n", LIBDEFLATE_VERSION_STRING);
	fprintf(out, "zstd %s\n", ZSTD_versionString());
	fprintf(out, "lz4 %s\n", LZ4_versionString());
	fprintf(out, "jansson %s\n", JANSSON_VERSION);
	fprintf(out, "filters:");
	for (const struct codec *const *c = codec_table; *c; c++)
		fprintf(out, " %s", (*c)->name);
	fprintf(out, "\nformats:");
	for (const struct source_ops *const *o = source_table; *o; o++)
		fprintf(out, " %s", (*o)->name);
	putc('\n', out);
}
