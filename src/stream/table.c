/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of stream formats: finding one by first bytes or name, and their
 * suffixes. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "stream/frame.h"

const struct stream_format *const stream_table[] = {
	&stream_gzip,
#if HAVE_BZIP2
	&stream_bzip2,
#endif
#if HAVE_LZMA
	&stream_xz,
#endif
	&stream_zstd,  &stream_lz4, NULL,
};

const struct stream_format *stream_probe(const unsigned char *head, size_t n)
{
	const struct stream_format *best = NULL;
	int most = 0;

	for (unsigned i = 0; stream_table[i]; i++) {
		const struct stream_format *f = stream_table[i];
		int bid = f->frames ? frame_probe(f->frames, head, n)
				    : f->probe(head, n);

		if (bid > most) {
			most = bid;
			best = f;
		}
	}
	return best;
}

const struct stream_format *stream_find(const char *name)
{
	for (unsigned i = 0; stream_table[i]; i++)
		if (!strcmp(stream_table[i]->name, name))
			return stream_table[i];
	return NULL;
}

const char *stream_format_name(const struct stream_format *f)
{
	return f->name;
}

char *stream_decoded_name(const struct stream_format *f, const char *name)
{
	size_t len = strlen(name);

	for (unsigned i = 0; f->suffixes[i]; i++) {
		const char *suffix = f->suffixes[i], *to = strchr(suffix, '=');
		size_t n = (size_t)(to - suffix);
		char *decoded;

		/* A file that is named ".gz" has no suffix. */
		if (len <= n || strncasecmp(name + len - n, suffix, n) != 0)
			continue;
		if (asprintf(&decoded, "%.*s%s", (int)(len - n), name, to + 1) <
		    0)
			return NULL;
		return decoded;
	}
	return strdup(name);
}

static char names[128];

static void stream_make_names(void)
{
	size_t n = 0;

	for (unsigned i = 0; stream_table[i] && n < sizeof names; i++)
		n += (size_t)snprintf(names + n, sizeof names - n, "%s%s",
				      i ? ", " : "", stream_table[i]->name);
}

const char *stream_format_names(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, stream_make_names);
	return names;
}
