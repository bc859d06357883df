/* SPDX-License-Identifier: BSD-2-Clause */
/* The option table of pack, and the rows that pack and merge share. */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/system.h"
#include "cli/option_rows.h"
#include "pack/comp.h"

static int pack_set_comp(struct settings *s, const char *value,
			 struct error *err)
{
	s->pack.comp_given = true;
	return comp_parse(value, &s->pack.comp, err);
}

/* Paths of scanned entries have no "./" in front, and directories no '/' at the end.
 * Strip both from the pattern (`tar -C DIR .` and shell completion write them), or it
 * would match nothing. */
static int set_exclude(struct settings *s, const char *value, struct error *err)
{
	size_t n = s->pack.n_exclude, len;
	const char **grown = realloc(s->pack.exclude, (n + 2) * sizeof *grown);
	char *pattern = grown ? settings_keep(s, value) : NULL;

	if (grown)
		s->pack.exclude = grown;
	if (!pattern)
		return error_no_memory(err, "the patterns of --exclude");
	while (!strncmp(pattern, "./", 2))
		pattern += 2;
	for (len = strlen(pattern); len && pattern[len - 1] == '/'; len--)
		pattern[len - 1] = '\0';
	if (!*pattern)
		return error_set(err, -EINVAL, "'%s' excludes everything",
				 value);
	grown[n] = pattern;
	grown[n + 1] = NULL;
	s->pack.n_exclude = n + 1;
	return 0;
}

static int set_shuffle(struct settings *s, const char *value, struct error *err)
{
	s->pack.shuffle = true;
	return parse_count(value, 0, UINT64_MAX, &s->pack.seed, err);
}

static bool parse_owner_number(const char *text, uint32_t *out)
{
	uint64_t n;
	struct error ignored = {0};

	if (parse_count(text, 0, UINT32_MAX - 1, &n, &ignored) < 0)
		return false;
	*out = (uint32_t)n;
	return true;
}

/* Set the owner from "USER:GROUP", names or numbers.  A user name without a group also
 * sets the group, to the user's primary one; a number without a group leaves groups as
 * they are. */
static int set_owner(struct settings *s, const char *value, struct error *err)
{
	char *user = settings_keep(s, value);
	char *group = user ? strchr(user, ':') : NULL;

	if (!user)
		return error_no_memory(err, "the owner");
	if (group)
		*group++ = '\0';
	if (*user && !parse_owner_number(user, &s->pack.uid)) {
		const struct passwd *p = getpwnam(user);

		if (!p)
			return error_set(err, -EINVAL, "there is no user '%s'",
					 user);
		s->pack.uid = p->pw_uid;
		if (!group)
			s->pack.gid = p->pw_gid;
	}
	if (group && *group && !parse_owner_number(group, &s->pack.gid)) {
		const struct group *g = getgrnam(group);

		if (!g)
			return error_set(err, -EINVAL, "there is no group '%s'",
					 group);
		s->pack.gid = g->gr_gid;
	}
	return 0;
}

static int set_shards(struct settings *s, const char *value, struct error *err)
{
	uint64_t *size = &s->pack.shard_size;
	int r;

	if (!strncmp(value, "count=", 6))
		return parse_count(value + 6, 1, UINT64_MAX,
				   &s->pack.shard_count, err);
	if (strncmp(value, "size=", 5))
		return parse_count(value, 1, UINT64_MAX, &s->pack.shards, err);
	r = parse_size(value + 5, system_memory(), size, err);
	return r < 0 || *size
		       ? r
		       : error_set(err, -EINVAL, "a shard cannot have 0 bytes");
}

static int set_keep(struct settings *s, const char *value, struct error *err)
{
	s->pack.keep = !strcmp(value, "all")    ? KEEP_ALL
		       : !strcmp(value, "most") ? KEEP_MOST
		       : !strcmp(value, "none") ? KEEP_NONE
						: KEEP_NOT_GIVEN;
	return s->pack.keep ? 0
			    : error_set(err, -EINVAL,
					"'%s' is not all, most or none", value);
}

static int set_mtime(struct settings *s, const char *value, struct error *err)
{
	return parse_time(value, &s->pack.mtime, err);
}

#define TEXT(name, key, arg, fallback, help, member)                           \
	{                                                                      \
		name, key, OPTION_TEXT, arg, fallback, help, AT(member), 0, 0, \
			NULL                                                   \
	}
#define COUNT(name, arg, help, member)                                 \
	{                                                              \
		name, 0, OPTION_COUNT, arg, NULL, help, AT(member), 1, \
			UINT64_MAX, NULL                               \
	}
#define SIZE(name, arg, fallback, help, member)                              \
	{                                                                    \
		name, 0, OPTION_SIZE, arg, fallback, help, AT(member), 0, 0, \
			NULL                                                 \
	}

const struct option options_make[] = {
	CALL("comp", 0, "CODEC[:LEVEL]", "auto",
	     "compression: zstd, lz4, gzip, xz, lzf, none; auto: by the format",
	     pack_set_comp),
	FLAG("force", 0, pack.force, "replace an existing file"),
	FLAG("json", 0, json, "print a summary as JSON"), END};

const struct option options_effort[] = {
	UINT("jobs", "N", "4, far away 16",
	     "threads that read files and directories", pack.jobs, 1, 256),
	UINT("threads", "N", "cores", "threads that compress", threads, 1,
	     1024),
	SIZE("memory", "SIZE", "25%", "memory for data in transit",
	     pack.memory),
	END};

static const struct option options_pack[] = {
	TEXT("format", 0, "FORMAT", "by the suffix",
	     "tar, tar.gz, tar.zst, squashfs, h5", pack.format),
	SIZE("block-size", "SIZE", "the format's",
	     "bytes that are compressed together", pack.block_size),
	CALL("exclude", 0, "PATTERN", NULL,
	     "leave out what matches, as with tar; may be repeated",
	     set_exclude),
	TEXT("files-from", 'T', "FILE", NULL,
	     "pack only what FILE (-: standard input) names, one per line",
	     pack.files_from),
	FLAG("null", '0', pack.null,
	     "names in lists end with NUL, not with a newline"),
	TEXT("order", 0, "FILE", "sorted",
	     "put what FILE names first, in its order", pack.order),
	FLAG("one-file-system", 0, pack.one_file_system,
	     "do not go into other file systems"),
	CALL("owner", 0, "USER[:GROUP]", "as it is",
	     "owner of everything: names or numbers", set_owner),
	FLAG("numeric-owner", 0, pack.numeric_owner,
	     "store no names of users and groups in a tar"),
	CALL("mtime", 0, "TIME", "as it is",
	     "modification time of everything: @SECONDS, "
	     "YYYY-MM-DD[THH:MM:SS[Z]]",
	     set_mtime),
	FLAG("no-index", 0, pack.no_index,
	     "do not write a tar's index beside it"),
	FLAG("no-xattrs", 0, pack.no_xattrs, "leave out extended attributes"),
	FLAG("verify", 0, pack.verify,
	     "read the result back and compare it with the directory"),
	END};

static const struct option options_shards[] = {
	CALL("shards", 0, "N|size=SIZE|count=N", NULL,
	     "make WebDataset shards: N tars, or tars of at most SIZE, or of N "
	     "samples; OUT has a %06d",
	     set_shards),
	SIZE("shard-size", "SIZE", NULL,
	     "begin a new shard before one gets larger", pack.shard_size),
	COUNT("shard-count", "N", "begin a new shard after N samples",
	      pack.shard_count),
	CALL("shuffle", 0, "SEED", "sorted",
	     "shuffle the samples, with this seed", set_shuffle),
	END};

static const struct option options_tensor[] = {
	TEXT("shape", 0, "N,...", NULL,
	     "shape of a sample in files without a header", pack.shape),
	TEXT("dtype", 0, "TYPE", NULL,
	     "data type of files without a header: float32, <u2, ...",
	     pack.dtype),
	TEXT("chunk", 0, "N,...|sample", "a sample",
	     "shape of a chunk; sample: one sample", pack.chunk),
	CALL("keep", 0, "all|most|none", "all",
	     "with other chunks: which other objects of the tensor's file are "
	     "copied (most: without those that cannot be)",
	     set_keep),
	TEXT("labels", 0, "dirs|FILE.csv", NULL,
	     "a label for each sample: its directory's name, or from FILE",
	     pack.labels),
	TEXT("dataset", 0, "PATH", "data", "name of the tensor", dataset),
	END};

const struct option *const tables_pack[] = {
	options_pack,   options_shards,   options_tensor, options_make,
	options_effort, options_progress, options_common, NULL};
