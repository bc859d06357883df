/* SPDX-License-Identifier: BSD-2-Clause */
/* Where index files are: beside the source, in the cache, or where asked. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "extent/file.h"
#include "members/index_private.h"

#define SUFFIX ".tfsidx"
/* Bytes of the source's name in that of an index elsewhere, which also has a hash:
 * 255 in all. */
enum { NAME_SHOWN = 200 };

bool index_is_file(int dir, const char *path)
{
	const size_t n = strlen(path), suffix = strlen(SUFFIX);
	char magic[sizeof INDEX_MAGIC - 1];
	cleanup_close int fd = -1;
	struct stat st;

	if (n <= suffix || strcmp(path + n - suffix, SUFFIX) != 0)
		return false;
	return file_open(dir, path, &fd, &st, NULL) == 0 &&
	       file_read(fd, 0, magic, sizeof magic) == sizeof magic &&
	       !memcmp(magic, INDEX_MAGIC, sizeof magic);
}

static int no_memory(struct error *err)
{
	return error_set(err, -ENOMEM, "out of memory");
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* "" is the working directory, as "." is; "/" stays. */
static char *dir_name(const char *path)
{
	size_t n = (size_t)(base_name(path) - path);

	if (n == 0)
		return strdup(".");
	return strndup(path, n > 1 ? n - 1 : 1);
}

/* One name for a source, whichever way leads to it. */
static char *cache_name(const char *path)
{
	cleanup_free char *real = realpath(path, NULL);
	const char *id = real ? real : path;
	const char *base = base_name(id);
	int n = (int)strnlen(base, NAME_SHOWN);
	char *name;

	/* Do not end in the middle of a character. */
	while (base[n] && n > 0 && ((unsigned char)base[n] & 0xc0) == 0x80)
		n--;
	if (asprintf(&name, "%.*s-%016" PRIx64 SUFFIX, n, base,
		     (uint64_t)XXH3_64bits(id, strlen(id))) < 0)
		return NULL;
	return name;
}

/* As the XDG base directory specification has it: what is not absolute counts as
 * not set.  *out NULL: there is none. */
static int cache_dir(char **out, struct error *err)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int n = 0;

	*out = NULL;
	if (xdg && xdg[0] == '/')
		n = asprintf(out, "%s/tensorfs", xdg);
	else if (home && home[0] == '/')
		n = asprintf(out, "%s/.cache/tensorfs", home);
	if (n >= 0)
		return 0;
	*out = NULL;
	return no_memory(err);
}

static int places_add(struct index_places *p, char *dir, char *name, bool cache,
		      struct error *err)
{
	p->at[p->n++] = (struct index_place){dir, name, cache, false};
	return dir && name ? 0 : no_memory(err);
}

static int places_asked(struct index_places *p, const struct index_key *key,
			const char *where, struct error *err)
{
	struct stat st;
	int r;

	if (stat(where, &st) == 0 && S_ISDIR(st.st_mode))
		return places_add(p, strdup(where), cache_name(key->path),
				  false, err);
	if (!*base_name(where))
		return error_set(err, -ENOENT, "%s is no directory",
				 *where ? file_shown(where) : "''");
	r = places_add(p, dir_name(where), strdup(base_name(where)), false,
		       err);
	p->at[0].asked = true;
	return r;
}

static int places_usual(struct index_places *p, const struct index_key *key,
			struct error *err)
{
	char *beside, *cache;
	int r;

	if (asprintf(&beside, "%s" SUFFIX, base_name(key->path)) < 0)
		beside = NULL;
	r = places_add(p, dir_name(key->path), beside, false, err);
	if (r == 0)
		r = cache_dir(&cache, err);
	if (r == 0 && cache)
		r = places_add(p, cache, cache_name(key->path), true, err);
	return r;
}

int index_places(const struct index_key *key, const struct index_options *o,
		 struct index_places *out, struct error *err)
{
	int r;

	*out = (struct index_places){.n = 0};
	if (o && o->where)
		r = places_asked(out, key, o->where, err);
	else
		r = places_usual(out, key, err);
	if (r < 0)
		index_places_free(out);
	return r;
}

void index_places_free(struct index_places *p)
{
	for (unsigned i = 0; i < p->n; i++) {
		free(p->at[i].dir);
		free(p->at[i].name);
	}
	p->n = 0;
}

/* The cache directory and the one it is in, for nobody else: names of files tell
 * things.  Whether they could be made shows when one is opened. */
static int make_cache(const char *dir, struct error *err)
{
	cleanup_free char *above = dir_name(dir);

	if (!above)
		return no_memory(err);
	(void)mkdir(above, 0700);
	(void)mkdir(dir, 0700);
	return 0;
}

int index_place_open(const struct index_place *p, struct error *err)
{
	int fd, r = p->cache ? make_cache(p->dir, err) : 0;

	if (r < 0)
		return r;
	fd = open(p->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return error_errno(err, -errno, "%s", file_shown(p->dir));
	return fd;
}
