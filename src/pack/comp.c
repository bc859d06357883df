/* SPDX-License-Identifier: BSD-2-Clause */
/* Parsing of --comp, and the HDF5 filters that it stands for. */
#include "pack/comp.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"

enum { DEFLATE = 1, SHUFFLE = 2, LZF = 32000, LZ4 = 32004, ZSTD = 32015 };
#define DEFLATE_LEVEL 4 /* h5py's default */
#define ZSTD_LEVEL 3    /* libzstd's default */
/* What h5py stores with lzf: its filter's version and liblzf's. */
#define LZF_FILTER 4
#define LZF_LIBRARY 0x0105

static const struct word {
	const char *name;
	enum pack_codec codec;
	unsigned levels; /* levels are 1 to this; 0: the codec has no levels */
} words[] = {
	{"auto", PACK_AUTO, 0},
	{"none", PACK_NONE, 0},
	{"gzip", PACK_GZIP, 9},
	{"zstd", PACK_ZSTD, 22},
	{"lz4", PACK_LZ4, 12},
	{"xz", PACK_XZ, 9},
	/* HDF5's name for gzip */
	{"lzf", PACK_LZF, 0},
	{"deflate", PACK_GZIP, 9},
};
#define N_WORDS (sizeof words / sizeof *words)

int comp_parse(const char *text, struct pack_comp *out, struct error *err)
{
	size_t n = strcspn(text, ":");
	const struct word *w = NULL;
	uint64_t level = 0;

	for (size_t i = 0; i < N_WORDS; i++)
		if (strlen(words[i].name) == n &&
		    !memcmp(words[i].name, text, n))
			w = &words[i];
	if (!w)
		return error_set(err, -EINVAL,
				 "'%.*s' is not a compression; use auto, none, "
				 "gzip, zstd, lz4, xz or lzf",
				 (int)(n < 40 ? n : 40), text);
	if (text[n] && !w->levels)
		return error_set(err, -EINVAL, "compression '%s' has no levels",
				 w->name);
	if (text[n] && parse_count(text + n + 1, 1, w->levels, &level, err) < 0)
		return error_set(
			err, -EINVAL,
			"'%.40s' is not a level of %s; its levels are 1 to %u",
			text + n + 1, w->name, w->levels);
	out->codec = w->codec;
	out->level = (int)level;
	return 0;
}

void comp_describe(const struct pack_comp *c, char *buf, size_t n)
{
	const char *name = "auto";

	for (size_t i = N_WORDS; i-- > 0;)
		if (words[i].codec == c->codec)
			name = words[i].name;
	if (c->level)
		snprintf(buf, n, "%s:%d", name, c->level);
	else
		snprintf(buf, n, "%s", name);
}

static int comp_add_filter(struct pipeline *p, uint32_t id, const uint32_t *cd,
			   unsigned n_cd, uint32_t elem, struct error *err)
{
	return pipeline_add(p, id, NULL, cd, n_cd, elem, err);
}

/* Append the compressor itself, behind a shuffle. */
static int comp_add_codec(const struct pack_comp *c, uint32_t elem,
			  uint64_t chunk, struct pipeline *p, struct error *err)
{
	uint32_t level = (uint32_t)c->level, none = 0;
	uint32_t lzf[] = {LZF_FILTER, LZF_LIBRARY, (uint32_t)chunk};

	switch (c->codec) {
	case PACK_AUTO:
	case PACK_GZIP:
		level = level ? level : DEFLATE_LEVEL;
		return comp_add_filter(p, DEFLATE, &level, 1, elem, err);
	case PACK_ZSTD:
		level = level ? level : ZSTD_LEVEL;
		return comp_add_filter(p, ZSTD, &level, 1, elem, err);
	case PACK_LZ4:
		if (level)
			return error_set(
				err, -EINVAL,
				"lz4 has no levels in HDF5; use --comp=lz4");
		return comp_add_filter(p, LZ4, &none, 1, elem, err);
	case PACK_LZF:
		return comp_add_filter(p, LZF, lzf, 3, elem, err);
	case PACK_XZ:
	case PACK_NONE:
		break;
	}
	return error_set(
		err, -EINVAL,
		"HDF5 has no filter for xz; use gzip, zstd, lz4, lzf or none");
}

int comp_pipeline(const struct pack_comp *c, uint32_t elem, uint64_t chunk,
		  struct pipeline *out, struct error *err)
{
	int r = 0;

	memset(out, 0, sizeof *out);
	if (c->codec == PACK_NONE)
		return 0;
	if (chunk > UINT32_MAX)
		return error_set(err, -EINVAL,
				 "chunks of %llu bytes are too large: HDF5 "
				 "chunks have less than 4 GiB",
				 (unsigned long long)chunk);
	if (c->codec != PACK_LZF && elem > 1)
		r = comp_add_filter(out, SHUFFLE, &elem, 1, elem, err);
	return r < 0 ? r : comp_add_codec(c, elem, chunk, out, err);
}
