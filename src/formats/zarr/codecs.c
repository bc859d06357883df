/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads codecs of Zarr by their names in numcodecs. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include <errno.h>
#include <string.h>

#include "codec/numcodecs.h"
#include "formats/zarr/meta.h"
#include "tensor/dtype_parse.h"

int zarr_add_step(struct zarr_codecs *c, const struct zarr_step *step,
		  struct error *err)
{
	if (c->n == ZARR_STEPS_MAX)
		return error_set(err, -ENOTSUP, "it has more than %d codecs",
				 ZARR_STEPS_MAX);
	c->step[c->n++] = *step;
	return 0;
}

void zarr_turn(struct zarr_codecs *c, unsigned rank, const uint8_t *order)
{
	uint8_t before[RANK_MAX];

	memcpy(before, c->order, sizeof before);
	for (unsigned i = 0; i < rank; i++)
		c->order[i] = c->turned ? before[order[i]] : order[i];
	c->turned = false;
	for (unsigned i = 0; i < rank; i++)
		c->turned |= c->order[i] != i;
	if (!c->turned)
		memset(c->order, 0, sizeof c->order);
}

/* ---- parameters ---------------------------------------------------------- */

static int read_shuffle(const json_t *config, struct zarr_step *s,
			struct error *err)
{
	const json_t *size = json_object_get(config, "elementsize");
	uint64_t n = 4;

	if (size && (!zarr_count(size, &n) || !n || n > ZARR_ELEMENT_MAX))
		return error_set(err, -EBADMSG,
				 "'elementsize' of codec 'shuffle' is not a "
				 "number of bytes");
	s->params.n = 1;
	s->params.cd[0] = (uint32_t)n;
	s->params.elem_size = (uint32_t)n;
	s->from = s->to = 1;
	return 0;
}

#if HAVE_LZMA
static int read_lzma(const json_t *config, struct zarr_step *s,
		     struct error *err)
{
	const json_t *format = json_object_get(config, "format");
	uint64_t n = 1;

	if (format && !json_is_null(format) && !zarr_count(format, &n))
		return error_set(err, -EBADMSG,
				 "'format' of codec 'lzma' is not a number");
	if (n != 1 && n != 2)
		return error_set(err, -ENOTSUP,
				 "codec 'lzma' in a format other than xz and "
				 "alone is not supported");
	s->params.n = 1;
	s->params.cd[0] = (uint32_t)n;
	return 0;
}
#endif

/* Return the type in the form of codec_delta; 0 if differences of it cannot be added
 * up. */
static uint32_t delta_type(const json_t *v)
{
	struct dtype d;
	struct error ignored;
	uint32_t kind;

	if (!json_is_string(v) ||
	    dtype_parse(json_string_value(v), &d, &ignored) < 0)
		return 0;
	kind = d.kind == DTYPE_INT     ? DELTA_INT
	       : d.kind == DTYPE_UINT  ? DELTA_UINT
	       : d.kind == DTYPE_FLOAT ? DELTA_FLOAT
				       : 0;
	return kind && d.size <= 8
		       ? kind | d.size | (d.big_endian ? DELTA_BIG : 0)
		       : 0;
}

static int read_delta(const json_t *config, struct zarr_step *s,
		      struct error *err)
{
	const json_t *of = json_object_get(config, "astype");
	uint32_t *cd = s->params.cd;
	struct error why;

	s->params.n = 2;
	cd[0] = delta_type(json_object_get(config, "dtype"));
	cd[1] = of && !json_is_null(of) ? delta_type(of) : cd[0];
	if (s->codec->check(&s->params, &why) < 0)
		return error_set(err, -ENOTSUP,
				 "codec 'delta' with these types is not "
				 "supported");
	s->from = cd[0] & DELTA_BYTES;
	s->to = cd[1] & DELTA_BYTES;
	return 0;
}

/* Read where the checksum is: by default in front, but behind for CRC-32C. */
static int read_checksum(const json_t *config, struct zarr_step *s,
			 struct error *err)
{
	const json_t *v = json_object_get(config, "location");
	const char *where = json_string_value(v);

	s->params.n = 1;
	s->params.cd[0] = s->codec == &codec_crc32c;
	s->from = s->to = 1;
	s->more = 4;
	if (!v)
		return 0;
	if (!where ||
	    (strcmp(where, "start") != 0 && strcmp(where, "end") != 0))
		return error_set(err, -EBADMSG,
				 "'location' of codec '%s' is neither start "
				 "nor end",
				 s->codec->name);
	s->params.cd[0] = !strcmp(where, "end");
	return 0;
}

static int read_fletcher32(const json_t *config, struct zarr_step *s,
			   struct error *err)
{
	(void)config, (void)err;
	s->from = s->to = 1;
	s->more = 4;
	return 0;
}

/* ---- names --------------------------------------------------------------- */

static const struct {
	const char *name;
	const struct codec *codec; /* NULL: decoding changes nothing */
	int (*read)(const json_t *config, struct zarr_step *s,
		    struct error *err);
} codecs[] = {
	{"zlib", &codec_deflate, NULL},
	{"gzip", &codec_gzip, NULL},
	{"zstd", &codec_zstd, NULL},
	{"lz4", &codec_lz4_sized, NULL},
#if HAVE_BLOSC
	{"blosc", &codec_blosc, NULL},
#endif
#if HAVE_BZIP2
	{"bz2", &codec_bzip2, NULL},
#endif
#if HAVE_LZMA
	{"lzma", &codec_lzma, read_lzma},
#endif
	{"shuffle", &codec_shuffle, read_shuffle},
	{"delta", &codec_delta, read_delta},
	{"crc32", &codec_crc32, read_checksum},
	{"crc32c", &codec_crc32c, read_checksum},
	{"adler32", &codec_adler32, read_checksum},
	{"fletcher32", &codec_fletcher32, read_fletcher32},
	{"bitround", NULL, NULL},
};

bool zarr_has_numcodec(const char *name)
{
	for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++)
		if (!strcmp(codecs[i].name, name))
			return true;
	return false;
}

int zarr_add_numcodec(struct zarr_codecs *c, const char *name,
		      const json_t *config, struct error *err)
{
	size_t i, n = sizeof codecs / sizeof *codecs;
	struct zarr_step s;
	int r;

	for (i = 0; i < n && strcmp(codecs[i].name, name) != 0; i++)
		;
	if (i == n)
		return error_set(err, -ENOTSUP,
				 "codec '%.40s' is not supported", name);
	if (!codecs[i].codec)
		return 0;
	memset(&s, 0, sizeof s);
	s.codec = codecs[i].codec;
	s.params.elem_size = 1;
	r = codecs[i].read ? codecs[i].read(config, &s, err) : 0;
	return r < 0 ? r : zarr_add_step(c, &s, err);
}
