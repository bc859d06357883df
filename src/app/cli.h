/* SPDX-License-Identifier: BSD-2-Clause */
/* What the commands share: exit codes, settings, sessions, the command table. */
#ifndef APP_CLI_H
#define APP_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/json.h"
#include "formats/source.h"
#include "fs/fs.h"
#include "pack/sink.h"
#include "readahead/follow.h"

/* Exit codes, as the manual lists them. */
enum cli_exit {
	CLI_DONE = 0,
	CLI_INCOMPLETE = 1, /* the work was not, or not fully, done */
	CLI_USAGE = 2,
	CLI_SOURCE = 3, /* missing, malformed or unsupported */
	CLI_MOUNT = 4,  /* the mount was refused */
	CLI_MEMORY = 5  /* memory or shared memory ran out */
};

#define OWNER_DEFAULT UINT32_MAX

/* `stats --wait`: a number in the daemon's answer, and the value that it must reach. */
struct stats_wait {
	const char *name;
	uint64_t least; /* at most INT64_MAX */
};

/* The values of every option of every command.  An option that a command does not offer
 * keeps its default.  Strings point into argv or into `owned`. */
struct settings {
	bool help, version;
	struct view_options views;
	struct member_view_options member_views;
	const char *dataset, *prefix;
	const char *zarr_root; /* NULL stands for ".zarr" */
	bool concat_given;
	int concat;      /* the axis */
	const char *raw; /* text for raw_parse, or NULL */
	/* archives */
	const char *index, *subdir;
	uint64_t offset;
	bool joined, versions, nested;
	/* archives in archives are opened on demand, although `nested` was not given */
	bool within;
	/* files of a directory are served as files, whatever their contents */
	bool as_is;
	bool looks; /* nothing is mounted: index files are not written beside the data */
	bool shared; /* these settings also serve other sources, each opened separately */
	/* mount */
	bool foreground, allow_other, allow_root, nonempty, single;
	bool no_prefetch; /* read-ahead does not guess */
	const char
		*order; /* text for order_open; NULL: the order is not known */
	bool debug, debug_fuse;
	uint64_t cache_size;
	uint32_t threads; /* 0 if it was not given */
	uint32_t timeout;
	uint32_t uid, gid; /* OWNER_DEFAULT: not given */
	uint32_t fmask, dmask;
	const char *notify_pipe;
	bool force; /* mount even where only this node sees the mount */
	/* decoded chunks in shared memory */
	uint64_t shm_cache; /* in bytes; 0 for none */
	const char *shm_dir;
	/* umount */
	bool lazy, all, dead;
	/* ls, info, verify, stats */
	bool long_list, recursive, json, map, quiet;
	const char
		*against; /* verify: the reader to compare with; NULL: none */
	const char **
		given; /* names of the n_given options that were given; owned */
	size_t n_given;
	const char *progress;
	bool prometheus, watch;
	double interval;
	uint64_t count;
	struct stats_wait *waits; /* n_waits entries; owned */
	size_t n_waits;
	double wait_seconds; /* 0: not given */

	/* run; and the names of the directories that the sources become.  `names` is NULL
	 * if no names were given, an entry is NULL if the directory is named after its
	 * source.  Owned. */
	const char **names;
	char **command; /* after "--"; ends with NULL */
	enum { PRIVATE_AUTO, PRIVATE_YES, PRIVATE_NO } private_mount;
	/* stage, staged, unstage */
	struct {
		const char *to, *name, *files_from, *reserve;
		bool null, verify, force, views_given, cache_given;
		bool skip_missing, older_given, chunks;
		uint64_t older; /* seconds */
		/* run and mount: whether the sources are staged first */
		enum { STAGE_NOT, STAGE_ALL, STAGE_IF_IT_FITS } first;
	} stage;

	/* pack, create, write, merge */
	struct {
		const char *format, *files_from, *order, *output;
		const char **exclude; /* n_exclude entries and a NULL; owned */
		size_t n_exclude;
		bool null, one_file_system, numeric_owner, verify, force;
		bool no_xattrs;
		struct pack_comp comp;
		bool comp_given;
		uint64_t block_size, memory; /* 0: not given */
		uint32_t jobs;               /* 0: not given */
		uint32_t level;
		uint32_t uid, gid; /* OWNER_DEFAULT: as they are */
		int64_t mtime;     /* INT64_MIN: as it is */
		bool no_index;
		/* shards */
		uint64_t shards, shard_size, shard_count; /* 0: not given */
		uint64_t seed;
		bool shuffle;
		/* tensors; the texts are as the user gave them */
		const char *shape, *block, *dtype, *chunk, *labels;
		const char *rows, *flag, *check_flag;
		uint64_t block_number;
		bool block_given, delete_parts, no_lock;
		/* pack SOURCE OUT.h5: what becomes of the objects of the file other than
		 * the tensor whose chunks are changed. */
		enum { KEEP_NOT_GIVEN, KEEP_ALL, KEEP_MOST, KEEP_NONE } keep;
	} pack;

	char **owned; /* copies that values point into */
	size_t n_owned;
};
/* Set the defaults; some come from the system's memory size and user ids. */
void settings_init(struct settings *s);
void settings_free(struct settings *s);
/* Return a copy of `text` that lives as long as the settings, NULL if out of memory. */
char *settings_keep(struct settings *s, const char *text);

struct option;
struct command {
	const char *name, *operands, *summary;
	const char *details; /* a paragraph for --help, or NULL */
	unsigned min_operands, max_operands; /* max_operands 0: no limit */
	const struct option *const *tables;  /* NULL-terminated */
	int (*run)(const struct command *c, struct settings *s, int argc,
		   char **argv);
	bool sources; /* all operands are sources, without a limit to their number */
};
/* The table ends with a row whose name is NULL. */
extern const struct command command_table[];
const struct command *command_find(const char *name);

int cmd_mount(const struct command *c, struct settings *s, int argc,
	      char **argv);
int cmd_umount(const struct command *c, struct settings *s, int argc,
	       char **argv);
int cmd_ls(const struct command *c, struct settings *s, int argc, char **argv);
int cmd_cat(const struct command *c, struct settings *s, int argc, char **argv);
int cmd_info(const struct command *c, struct settings *s, int argc,
	     char **argv);
int cmd_verify(const struct command *c, struct settings *s, int argc,
	       char **argv);
int cmd_stats(const struct command *c, struct settings *s, int argc,
	      char **argv);
int cmd_run(const struct command *c, struct settings *s, int argc, char **argv);
int cmd_stage(const struct command *c, struct settings *s, int argc,
	      char **argv);
int cmd_staged(const struct command *c, struct settings *s, int argc,
	       char **argv);
int cmd_unstage(const struct command *c, struct settings *s, int argc,
		char **argv);
int cmd_pack(const struct command *c, struct settings *s, int argc,
	     char **argv);
int cmd_create(const struct command *c, struct settings *s, int argc,
	       char **argv);
int cmd_write(const struct command *c, struct settings *s, int argc,
	      char **argv);
int cmd_merge(const struct command *c, struct settings *s, int argc,
	      char **argv);
int cmd_help(const struct command *c, struct settings *s, int argc,
	     char **argv);

/* Print one line on stderr: "tensorfs COMMAND: ...", or "tensorfs: ..." if `c` is NULL. */
void cli_say(const struct command *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Print a line about wrong usage and point to --help.  Return CLI_USAGE. */
int cli_usage(const struct command *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Return the exit code for a source that could not be opened for reason `code` (-errno). */
int cli_source_exit(int code);
/* Flush stdout.  Return CLI_DONE, or CLI_INCOMPLETE after a sentence on stderr. */
int cli_flush(const struct command *c);
/* As cli_flush, for commands whose result is files and whose output only reports on
 * them: returns CLI_DONE also if standard output was closed when the program started. */
int cli_flush_report(const struct command *c);
/* Check the operands of any command.  An empty one is wrong usage: it is usually an unset
 * variable, and as a path it would be the working directory.  Index files among several
 * sources, as `images.tar*` finds them, are left out with a note, and *n is reduced.
 * Return 0 or CLI_USAGE. */
int operands_check(const struct command *c, char **argv, int *n);
/* Print a JSON string, as json_put_text does. */
static inline void cli_json_string(FILE *out, const char *s)
{
	json_put_text(out, s);
}
/* The program's version; version_print also lists all libraries and filters. */
extern const char cli_version[];
void version_print(FILE *out);

struct shared;
/* Opened sources with their tree, store and file system. session_start starts the
 * threads of the store. */
struct session {
	struct handles *handles;
	struct tree *tree;
	struct store *store;
	struct shared *shared; /* NULL if there is none */
	struct fs *fs;
	struct follow_order order; /* empty if order= was not given */
	struct source **sources;
	size_t n_sources;
	struct classes *classes; /* labels read from a file */
	bool labels_found;       /* labels of a dataset or attribute are used */
	char *config;
};
/* Open sources.  A single source is the root of the tree.  Several sources become a
 * directory each, as does a single one that s->names has a name for; with s->joined they
 * become one tree.  The `prefetch` threads are not started before session_start.  Return
 * 0, or -errno with a sentence. */
int session_open(struct session **out, char *const *paths, size_t n,
		 const struct settings *s, unsigned prefetch,
		 struct error *err);
/* As session_open, with a store of decoded chunks in shared memory.  Takes over `shared`
 * (also on failure); NULL if there is none. */
int session_open_shared(struct session **out, char *const *paths, size_t n,
			const struct settings *s, unsigned prefetch,
			struct shared *shared, struct error *err);
/* Open the store of shared chunks that the settings ask for; *out is NULL if they ask
 * for none. */
int session_share(struct shared **out, const struct settings *s,
		  struct error *err);
int session_start(struct session *s, struct error *err);
void session_free(struct session *s);
/* Log a warning for tensors whose samples decode more bytes than the cache holds. */
void cost_warn(struct session *session, const struct settings *s);
/* Return the last part of a path, ignoring slashes at its end (malloc'ed). */
char *session_base_name(const char *path);

/* "SOURCE[:PATH]", split; both strings are malloc'ed. */
struct operand {
	char *source, *path;
};
/* Return false if out of memory. */
bool operand_split(const char *text, struct operand *out);
void operand_free(struct operand *o);
/* Split an operand, open its source and look up its path.  Return 0 with all three set,
 * else an exit code after a sentence on stderr. */
int operand_open(const struct command *c, const struct settings *s,
		 const char *text, unsigned prefetch, struct operand *o,
		 struct session **session, struct node *node);
/* Look up the operand's path in a session of its source.  Return 0, else an exit code
 * after a sentence on stderr. */
int operand_find(const struct command *c, const struct operand *o,
		 struct session *session, struct node *node);
/* Print why `ino` could not be read, unless fs has logged it already. */
void cli_read_failed(const struct command *c, struct fs *fs, uint64_t ino,
		     const char *path, int code);

#endif
