/* SPDX-License-Identifier: BSD-2-Clause */
/* The option tables of stage, staged and unstage. */
#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "base/system.h"
#include "cli/option_rows.h"

/* Views that open any name but list none, and a path to name instead. */
#define ENDLESS 2
static const char *const endless[ENDLESS][2] = {
	{"slice", "slice/0:10.npy"}, {"epochs", "epochs/0/rank-0-of-2"}};

static int refuse_endless(const char *list, struct error *err)
{
	while (*list) {
		size_t n = strcspn(list, ",+");

		for (unsigned i = 0; i < ENDLESS; i++)
			if (strlen(endless[i][0]) == n &&
			    !memcmp(list, endless[i][0], n))
				return error_set(
					err, -EINVAL,
					"%s/ has no end, so it cannot be "
					"staged as a whole: name an entry, as "
					"in SOURCE:DATASET/%s",
					endless[i][0], endless[i][1]);
		list += n + (list[n] != 0);
	}
	return 0;
}

static int set_stage_view(struct settings *s, const char *value,
			  struct error *err)
{
	char *list = settings_keep(s, value);

	if (!list)
		return error_no_memory(err, "the list of views");
	/* Other programs say raw where mounts say bin. */
	for (char *p = list; (p = strstr(p, "raw")); p += 3)
		memcpy(p, "bin", 3);
	for (char *p = list; (p = strchr(p, ':')); p++)
		*p = ',';
	s->stage.views_given = true;
	if (refuse_endless(list, err) < 0 ||
	    view_options_parse(&s->views, list, err) < 0)
		return err->code;
	for (unsigned i = 0; i < ENDLESS; i++) /* "all" includes them */
		s->views.views &=
			~view_rows(endless[i][0], strlen(endless[i][0]));
	return 0;
}

static int set_stage_missing(struct settings *s, const char *value,
			     struct error *err)
{
	s->stage.skip_missing = !strcmp(value, "skip");
	if (s->stage.skip_missing) {
		s->views.missing = MISSING_ERROR;
		return 0;
	}
	return option_set_missing(s, value, err) < 0
		       ? error_set(err, -EINVAL,
				   "'%s' is not error, fill or skip", value)
		       : 0;
}

static int set_older(struct settings *s, const char *value, struct error *err)
{
	s->stage.older_given = true;
	return parse_age(value, &s->stage.older, err);
}

static const struct option options_stage[] = {
	{"name", 0, OPTION_TEXT, "NAME", "the source's, without suffix",
	 "name of the directory", AT(stage.name), 0, 0, NULL},
	{"files-from", 0, OPTION_TEXT, "FILE", NULL,
	 "read from FILE (-: standard input) what to stage, one per line",
	 AT(stage.files_from), 0, 0, NULL},
	FLAG("null", '0', stage.null,
	     "names that --files-from reads end with NUL, not with a newline"),
	CALL("reserve", 0, "SIZE", "25%",
	     "space to leave free in the file system; % is of its size",
	     option_set_reserve),
	FLAG("verify", 0, stage.verify,
	     "read the source a second time and compare"),
	FLAG("force", 0, stage.force, "stage again what is already staged"),
	CALL("cache-size", 0, "SIZE", "25%, at most 512M",
	     "memory for decoded chunks while staging", option_set_cache),
	UINT("threads", "N", "cores", "threads that decode and write", threads,
	     1, 1024),
	END};

static const struct option options_stage_views[] = {
	CALL("view", 0, "LIST", "samples",
	     "which views of a tensor to stage: samples, blocks, array, raw, "
	     "text, others that mount lists, or all",
	     set_stage_view),
	CALL("sample-axes", 0, "K", "1, or as the file says",
	     "a sample has one index for each of the first K axes",
	     option_set_sample_axes),
	OPTION_LABELS,
	CALL("dtype-order", 0, "ORDER", "little",
	     "byte order of numbers: little, or source as stored",
	     option_set_dtype_order),
	{"dataset", 0, OPTION_TEXT, "PATH", NULL,
	 "stage only this dataset or group of an HDF5 file, as the root",
	 AT(dataset), 0, 0, NULL},
	CALL("concat", 0, "AXIS", NULL,
	     "show the .npy or HDF5 files of a directory as one tensor, side "
	     "by side along an axis",
	     option_set_concat),
	OPTION_RAW,
	OPTION_EXT,
	{"prefix", 0, OPTION_TEXT, "DIR[:DIR...]", NULL,
	 "more directories with files that an HDF5 file refers to", AT(prefix),
	 0, 0, NULL},
	CALL("missing", 0, "WHAT", "error",
	     "a missing part is an error, becomes fill values (fill), or "
	     "leaves out what it is part of (skip)",
	     set_stage_missing),
	FLAG("union", 0, joined,
	     "show several archives as one tree; the last of equal names wins"),
	END};

static const struct option options_stage_place[] = {
	{"to", 0, OPTION_TEXT, "DIR", "/dev/shm/tensorfs-UID",
	 "directory of the staged trees", AT(stage.to), 0, 0, NULL},
	END};

static const struct option options_staged[] = {
	FLAG("json", 0, json, "print JSON"), END};

static const struct option options_unstage[] = {
	FLAG("all", 0, all, "remove everything that is staged there"),
	CALL("older-than", 0, "AGE", NULL,
	     "only what was last requested so long ago: 30m, 2h, 1d",
	     set_older),
	FLAG("chunks", 0, stage.chunks,
	     "remove the chunks that mounts share (shm-cache)"),
	FLAG("force", 0, stage.force, "remove also what is in use"), END};

const struct option *const tables_stage[] = {options_stage,
					     options_stage_place,
					     options_stage_views,
					     options_archive_look,
					     options_progress,
					     options_common,
					     NULL};
const struct option *const tables_staged[] = {
	options_staged, options_stage_place, options_common, NULL};
const struct option *const tables_unstage[] = {
	options_unstage, options_stage_place, options_common, NULL};
