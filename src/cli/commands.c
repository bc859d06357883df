/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of commands, of options that several commands share, and of mount options'
 * aliases. */
#include "cli/option_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/against.h"
#include "base/home.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/system.h"

/* Copy a list and make its colons commas, because a comma would end the option inside -o.
 * The settings own the copy; NULL when out of memory. */
static char *keep_colon_list(struct settings *s, const char *value)
{
	char *list = settings_keep(s, value);

	for (char *p = list; p && *p; p++)
		if (*p == ':')
			*p = ',';
	return list;
}

static int set_debug(struct settings *s, const char *value, struct error *err)
{
	const char *list = value ? keep_colon_list(s, value) : "all";

	if (!list)
		return error_no_memory(err, "the list of modules");
	if (log_set_debug(list) < 0)
		return error_set(
			err, -EINVAL,
			"'%s' is not a list of modules; the modules are %s",
			value, log_modules());
	log_set_level(LOG_LEVEL_INFO);
	s->debug = true;
	s->debug_fuse = !value || strstr(list, "fuse") || strstr(list, "all");
	return 0;
}

int option_set_views(struct settings *s, const char *value, struct error *err)
{
	const char *list = keep_colon_list(s, value);

	if (!list)
		return error_no_memory(err, "the list of views");
	s->stage.views_given = true;
	return source_views_parse(&s->views, &s->member_views, list, err);
}

int option_set_cache(struct settings *s, const char *value, struct error *err)
{
	s->stage.cache_given = true;
	return parse_size(value, system_memory(), &s->cache_size, err);
}

/* Only check the value: the size of the file system, which a percentage refers to, is not
 * known yet. */
int option_set_reserve(struct settings *s, const char *value, struct error *err)
{
	uint64_t bytes;

	s->stage.reserve = value;
	return parse_size(value, UINT64_MAX / 128, &bytes, err);
}

static int set_progress(struct settings *s, const char *value,
			struct error *err)
{
	if (strcmp(value, "auto") && strcmp(value, "plain") &&
	    strcmp(value, "none"))
		return error_set(err, -EINVAL,
				 "'%s' is not auto, plain or none", value);
	s->progress = value;
	return 0;
}

static int set_private(struct settings *s, const char *value, struct error *err)
{
	if (!value || !strcmp(value, "yes"))
		s->private_mount = PRIVATE_YES;
	else if (!strcmp(value, "no"))
		s->private_mount = PRIVATE_NO;
	else if (!strcmp(value, "auto"))
		s->private_mount = PRIVATE_AUTO;
	else
		return error_set(err, -EINVAL, "'%s' is not auto, yes or no",
				 value);
	return 0;
}

static int set_stage_first(struct settings *s, const char *value,
			   struct error *err)
{
	s->stage.first = value ? STAGE_IF_IT_FITS : STAGE_ALL;
	if (!value || !strcmp(value, "fit"))
		return 0;
	return error_set(err, -EINVAL, "'%s' is not fit", value);
}

const struct option options_common[] = {
	FLAG("help", 'h', help, "print this help"),
	FLAG("version", 'V', version,
	     "print the versions of the program and its libraries"),
	END};

/* Options of a mount at a mount point that the user chooses, served by a daemon that goes
 * on when the command has ended. */
const struct option options_place[] = {
	FLAG("foreground", 'f', foreground,
	     "stay in the foreground, log to stderr"),
	UINT("timeout", "SECONDS", "0, never",
	     "unmount when it was not used for this long", timeout, 0,
	     1u << 30),
	{"notify_pipe", 0, OPTION_TEXT, "FIFO", NULL,
	 "write s to this FIFO when the mount is ready, f if it failed",
	 AT(notify_pipe), 0, 0, NULL},
	FLAG("nonempty", 0, nonempty,
	     "mount over a directory that is not empty"),
	FLAG("force", 0, force,
	     "allow a mount point on a network file system, where only this "
	     "node sees the mount"),
	END};

const struct option options_run[] = {
	CALL("private", 0, "[auto|yes|no]", "auto",
	     "mount in a namespace of the run, without fusermount3; auto: if "
	     "fusermount3 is missing",
	     set_private),
	END};

/* What `run` and `mount` may do before they mount. */
const struct option options_first[] = {
	CALL("stage", 0, "[fit]", "no",
	     "copy the sources to shared memory first, and use the copy; fit: "
	     "if it does not fit, mount with a cache that does",
	     set_stage_first),
	CALL("reserve", 0, "SIZE", "25%",
	     "with --stage: space to leave free in the file system; % is of "
	     "its size",
	     option_set_reserve),
	{"to", 0, OPTION_TEXT, "DIR", "/dev/shm/tensorfs-UID",
	 "with --stage: directory of the staged trees", AT(stage.to), 0, 0,
	 NULL},
	END};

const struct option options_mount[] = {
	CALL("debug", 'd', "[MODULE,...]", NULL,
	     "stay in the foreground, and log debug lines of these modules (or "
	     "of all)",
	     set_debug),
	FLAG("nothreads", 's', single,
	     "answer one request at a time, prefetch nothing"),
	FLAG("allow_other", 0, allow_other, "let other users access the mount"),
	FLAG("allow_root", 0, allow_root, "let root access the mount"),
	CALL("cache-size", 0, "SIZE", "25%",
	     "memory for decoded chunks; % is of the memory that this process "
	     "may use",
	     option_set_cache),
	UINT("threads", "N", "2 x cores", "threads that answer requests",
	     threads, 1, 1024),
	CALL("prefetch", 0, "on|off", "on",
	     "read and decode ahead what will probably be needed next",
	     option_set_prefetch),
	CALL("order", 0, "ORDER", NULL,
	     "order in which samples will be read: "
	     "torch:seed=S:world=W:rank=R, with "
	     ":batch=B:workers=N:drop_last:no-shuffle, as DistributedSampler "
	     "computes it, or a file of names",
	     option_set_order),
	UINT("uid", "N", "yours, or as stored", "owner of all files", uid, 0,
	     UINT32_MAX - 1),
	UINT("gid", "N", "yours, or as stored", "group of all files", gid, 0,
	     UINT32_MAX - 1),
	{"fmask", 0, OPTION_MODE, "MODE", "0",
	 "permission bits to remove from files, octal", AT(fmask), 0, 0, NULL},
	{"dmask", 0, OPTION_MODE, "MODE", "0",
	 "permission bits to remove from directories, octal", AT(dmask), 0, 0,
	 NULL},
	/* Decoded chunks in shared memory. */
	{"shm-cache", 0, OPTION_SIZE, "SIZE", "0, none",
	 "shared memory for decoded chunks, which all your mounts on this "
	 "machine use",
	 AT(shm_cache), 0, 0, NULL},
	{"shm-dir", 0, OPTION_TEXT, "DIR", SHM_DEFAULT,
	 "directory of the shared chunks, on a tmpfs", AT(shm_dir), 0, 0, NULL},
	END};

const struct option options_views[] = {
	CALL("sample-axes", 0, "K", "1, or as the file says",
	     "a sample has one index for each of the first K axes",
	     option_set_sample_axes),
	CALL("views", 0, "LIST", "array,bin,text,blocks,samples",
	     "views of a tensor to list; the others can be opened, too",
	     option_set_views),
	OPTION_LABELS,
	CALL("shards", 0, "N|size=SIZE|count=N", NULL,
	     "shards/ has N tars, or tars of at most SIZE, or of N samples",
	     option_set_shards),
	CALL("shard-size", 0, "SIZE", "1G",
	     "largest tar in shards/, unless one sample is larger",
	     option_set_shard_size),
	CALL("shard-count", 0, "N", NULL, "most samples of a tar in shards/",
	     option_set_shard_count),
	CALL("dtype-order", 0, "ORDER", "little",
	     "byte order of numbers: little, or source as stored",
	     option_set_dtype_order),
	{"dataset", 0, OPTION_TEXT, "PATH", NULL,
	 "show only this dataset or group of an HDF5 file, as the root",
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
	CALL("zarr-root", 0, "NAME", ".zarr",
	     "name of the directory that shows everything as Zarr; listed "
	     "unless it begins with a dot",
	     option_set_zarr_root),
	CALL("missing", 0, "WHAT", "error",
	     "what reading a missing part gives: an error, or (fill) fill "
	     "values",
	     option_set_missing),
	END};

#define INDEX                                                               \
	{                                                                   \
		"index", 0, OPTION_TEXT, "PATH", "beside the archive",      \
			"where the index of an archive is kept: a file, a " \
			"directory, or none",                               \
			AT(index), 0, 0, NULL                               \
	}
#define OFFSET                                                                \
	{                                                                     \
		"offset", 0, OPTION_SIZE, "BYTES", "0",                       \
			"where in its file an archive begins", AT(offset), 0, \
			0, NULL                                               \
	}
#define SUBDIR                                                                 \
	{                                                                      \
		"subdir", 0, OPTION_TEXT, "PATH", NULL,                        \
			"show only this directory of an archive, as the root", \
			AT(subdir), 0, 0, NULL                                 \
	}
#define VERSIONS                                                       \
	FLAG("versions", 0, versions,                                  \
	     "show members of an archive that later ones replace, as " \
	     "NAME.versions/1 and so on")

const struct option options_archive[] = {
	INDEX,
	OFFSET,
	SUBDIR,
	FLAG("union", 0, joined,
	     "show several archives as one tree; the last of equal names wins"),
	FLAG("recursive", 0, nested,
	     "show archives and HDF5 files inside archives as directories"),
	VERSIONS,
	END};

/* Archive options of commands that do not mount.  --nested has another name for `mount`,
 * because --recursive means something else for `ls`. */
const struct option options_archive_look[] = {
	INDEX,
	OFFSET,
	SUBDIR,
	FLAG("nested", 0, nested,
	     "show archives and HDF5 files inside archives as directories"),
	VERSIONS,
	END};

const struct option options_umount[] = {
	FLAG("lazy", 'z', lazy, "detach now, finish when no process uses it"),
	FLAG("all", 0, all, "unmount all tensorfs mounts of this user"),
	FLAG("dead", 0, dead, "with --all: only those whose daemon has died"),
	END};

const struct option options_ls[] = {
	FLAG("long", 'l', long_list, "list mode, owner, size and time, too"),
	FLAG("recursive", 'R', recursive, "list all directories below, too"),
	FLAG("json", 0, json, "print a JSON array, one object per line"), END};

const struct option options_info[] = {
	FLAG("json", 0, json, "print JSON"),
	FLAG("map", 0, map,
	     "print which stored bytes make up LENGTH bytes at OFFSET of a "
	     "file"),
	END};

static int set_against(struct settings *s, const char *value, struct error *err)
{
	s->against = value;
	return against_check_reader(value, err);
}

const struct option options_verify[] = {
	FLAG("json", 0, json, "print JSON"),
	CALL("against", 0, "READER", NULL,
	     "mount the source, and compare it with what h5py, tar, zip, "
	     "squashfs, zarr, numpy, parquet or arrow reads; auto: the reader "
	     "of its format",
	     set_against),
	END};

/* Options of work that takes long: verifying a source, reading an archive for the first
 * time. */
const struct option options_progress[] = {
	CALL("progress", 0, "HOW", "auto",
	     "auto (on a terminal, a line that is updated), plain, none",
	     set_progress),
	FLAG("quiet", 'q', quiet, "print no progress, only errors"), END};

/* mount(8) passes most options of /etc/fstab on to this program. */
const struct option_alias option_aliases[] = {
	{"cachesize", "cache-size", NULL},
	{"cache", "cache-size", NULL},
	{"workers", "threads", NULL},
	{"max-threads", "threads", NULL},
	{"single", "nothreads", NULL},
	{"idle-timeout", "timeout", NULL},
	{"index-file", "index", NULL},
	{"nested", "recursive", NULL},
	{"x-*", NULL, NULL},
	{"comment", NULL, NULL},
	{"defaults", NULL, NULL},
	{"rw", NULL, NULL},
	{"ro", NULL, NULL},
	{"suid", NULL, NULL},
	{"nosuid", NULL, NULL},
	{"dev", NULL, NULL},
	{"nodev", NULL, NULL},
	{"exec", NULL, NULL},
	{"noexec", NULL, NULL},
	{"sync", NULL, NULL},
	{"async", NULL, NULL},
	{"dirsync", NULL, NULL},
	{"atime", NULL, NULL},
	{"noatime", NULL, NULL},
	{"diratime", NULL, NULL},
	{"nodiratime", NULL, NULL},
	{"relatime", NULL, NULL},
	{"norelatime", NULL, NULL},
	{"strictatime", NULL, NULL},
	{"nostrictatime", NULL, NULL},
	{"lazytime", NULL, NULL},
	{"nolazytime", NULL, NULL},
	{"auto", NULL, NULL},
	{"noauto", NULL, NULL},
	{"user", NULL, NULL},
	{"users", NULL, NULL},
	{"nouser", NULL, NULL},
	{"owner", NULL, NULL},
	{"group", NULL, NULL},
	{"nofail", NULL, NULL},
	{"_netdev", NULL, NULL},
	{"default_permissions", NULL, NULL},
	{"kernel_cache", NULL, NULL},
	{NULL, NULL, NULL}};

static const struct option *const tables_mount[] = {
	options_place,    options_first, options_mount,  options_archive,
	options_progress, options_views, options_common, NULL};
static const struct option *const tables_run[] = {
	options_run,      options_first, options_mount,  options_archive,
	options_progress, options_views, options_common, NULL};
static const struct option *const tables_umount[] = {options_umount,
						     options_common, NULL};
static const struct option *const tables_ls[] = {
	options_ls,    options_archive_look, options_progress,
	options_views, options_common,       NULL};
static const struct option *const tables_cat[] = {
	options_archive_look, options_progress, options_views, options_common,
	NULL};
static const struct option *const tables_info[] = {
	options_info,  options_archive_look, options_progress,
	options_views, options_common,       NULL};
static const struct option *const tables_verify[] = {
	options_verify, options_archive_look, options_progress,
	options_views,  options_common,       NULL};
static const struct option *const tables_stats[] = {options_stats,
						    options_common, NULL};
static const struct option *const tables_help[] = {options_common, NULL};

const struct command command_table[] = {
	{"mount", "SOURCE|NAME=SOURCE... MOUNTPOINT",
	 "mount sources; return when the mount is usable",
	 "A single source is the root of the mount; of several, each is a "
	 "directory that is named after its file, or NAME. The mount is "
	 "read-only. `tensorfs SOURCE... MOUNTPOINT' is the same, so that "
	 "mount -t fuse.tensorfs and /etc/fstab work.",
	 2, 0, tables_mount, cmd_mount, true},
	{"run", "SOURCE|NAME=SOURCE... -- COMMAND [ARG...]",
	 "mount while a command runs, and leave nothing behind",
	 "Each {} in the command's arguments becomes the path of the mount, "
	 "which is also in $TENSORFS_MOUNT. The exit status is the command's, "
	 "or 128+N if signal N ended it.",
	 1, 0, tables_run, cmd_run, true},
	{"umount", "MOUNTPOINT...", "unmount, even if the daemon is dead", NULL,
	 0, 0, tables_umount, cmd_umount, false},
	{"ls", "SOURCE[:PATH]...",
	 "list what a mount would show, without mounting", NULL, 1, 0,
	 tables_ls, cmd_ls, true},
	{"cat", "SOURCE:PATH...",
	 "write the bytes of a file that a mount would show, without mounting",
	 NULL, 1, 0, tables_cat, cmd_cat, false},
	{"info", "SOURCE[:PATH] | --map SOURCE:PATH OFFSET LENGTH",
	 "explain a source: shapes, chunks, filters, sizes, and what they "
	 "cost",
	 NULL, 1, 3, tables_info, cmd_info, false},
	{"verify", "SOURCE[:PATH]",
	 "read and decode everything once; list every bad block", NULL, 1, 1,
	 tables_verify, cmd_verify, false},
	{"stats", "MOUNTPOINT", "print counters of a running mount", NULL, 1, 1,
	 tables_stats, cmd_stats, false},
	{"stage", "SOURCE[:PATH]...",
	 "copy sources to plain files in shared memory; print where",
	 "Each source becomes a directory with what a mount would show. The "
	 "directory appears when it is complete, and stays until `tensorfs "
	 "unstage'. What is already staged is used again unless its source has "
	 "changed.",
	 0, 0, tables_stage, cmd_stage, true},
	{"staged", "", "list what is staged", NULL, 0, 0, tables_staged,
	 cmd_staged, false},
	{"unstage", "PATH|NAME...", "remove what was staged", NULL, 0, 0,
	 tables_unstage, cmd_unstage, false},
	{"pack", "DIR OUT | SOURCE.h5[:PATH] OUT.h5",
	 "pack a directory into one file that mounts well; rechunk a tensor",
	 "OUT's suffix, or --format, decides the format: a tar, plain or "
	 "compressed in independent blocks, a squashfs image, or an HDF5 "
	 "tensor. OUT appears when all of it is safely stored.",
	 2, 2, tables_pack, cmd_pack, false},
	{"create", "PATTERN",
	 "make the files of a distributed tensor, to be filled with write",
	 "PATTERN has one {}, which becomes ALL in the name of the main file, "
	 "and the range of rows in the name of each part.",
	 1, 1, tables_create, cmd_create, false},
	{"write", "TARGET[:PATH] [INPUT.npy|-]",
	 "fill rows of a distributed tensor; many processes may do so at once",
	 "TARGET is the main file or a part. Data and flags of a part are "
	 "replaced together, when both are safely stored; without INPUT only "
	 "flags are set.",
	 1, 2, tables_write, cmd_write, false},
	{"merge", "MAIN", "make one file of the files of a distributed tensor",
	 NULL, 1, 1, tables_merge, cmd_merge, false},
	{"help", "[COMMAND]", "explain a command", NULL, 0, 1, tables_help,
	 cmd_help, false},
	{NULL, NULL, NULL, NULL, 0, 0, NULL, NULL, false}};

const struct command *command_find(const char *name)
{
	for (const struct command *c = command_table; c->name; c++)
		if (!strcmp(c->name, name))
			return c;
	return NULL;
}
