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
	CLI_MEMORY = 5  /* out of memory or shared memory */
};

#define OWNER_DEFAULT UINT32_MAX

/* `stats --wait`: a number of the daemon's answer that is to become large enough. */
struct stats_wait {
	const char *name;
	uint64_t least; /* at most INT64_MAX */
};

/* Every option of every command; what a command does not offer keeps its
 * default.  Strings point into argv or into `owned`. */
struct settings {
	bool help, version;
	struct view_options views;
	struct beside_options beside;
	const char *dataset, *prefix;
	const char *zarr_root; /* NULL: .zarr */
	bool concat_given;
	int concat;      /* axis */
	const char *raw; /* as raw_parse, or NULL */
	/* archives */
	const char *index, *subdir;
	uint64_t offset;
	bool joined, versions, nested;
	bool within; /* nested unasked: the source may be in an archive */
	bool as_is;  /* files of a directory are files, whatever they hold */
	bool looks; /* nothing is mounted: indexes stay out of the data's place */
	bool shared; /* by other sources, which are opened by themselves */
	/* mount */
	bool foreground, allow_other, allow_root, nonempty, single;
	bool no_prefetch;  /* nothing is guessed */
	const char *order; /* as order_open; NULL: not known */
	bool debug, debug_fuse;
	uint64_t cache_size;
	uint32_t threads; /* 0: not given */
	uint32_t timeout;
	uint32_t uid, gid; /* OWNER_DEFAULT: not given */
	uint32_t fmask, dmask;
	const char *notify_pipe;
	bool force; /* mount where only this node sees it */
	/* chunks in shared memory */
	uint64_t shm_cache; /* bytes; 0: none */
	const char *shm_dir;
	/* umount */
	bool lazy, all, dead;
	/* ls, info, verify, stats */
	bool long_list, recursive, json, map, quiet;
	const char
		*against; /* verify: compare with this reader; NULL: do not */
	const char **
		given; /* names of the n_given options that were given.  Owned */
	size_t n_given;
	const char *progress;
	bool prometheus, watch;
	double interval;
	uint64_t count;
	struct stats_wait *waits; /* n_waits of them.  Owned */
	size_t n_waits;
	double wait_seconds; /* 0: not given */

	/* run, and names of sources: of the directories that they become, NULL: as
	 * the file; or there are none.  Owned */
	const char **names;
	char **command; /* after "--"; ends with NULL */
	enum { PRIVATE_AUTO, PRIVATE_YES, PRIVATE_NO } private_mount;
	/* stage, staged, unstage */
	struct {
		const char *to, *name, *files_from, *reserve;
		bool null, verify, force, views_given, cache_given;
		bool skip_missing, older_given, chunks;
		uint64_t older; /* seconds */
		/* run and mount: before they begin */
		enum { STAGE_NOT, STAGE_ALL, STAGE_IF_IT_FITS } first;
	} stage;

	/* pack, create, write, merge */
	struct {
		const char *format, *files_from, *order, *output;
		const char **exclude; /* n_exclude, and NULL.  Owned */
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
		/* tensors; texts as given */
		const char *shape, *block, *dtype, *chunk, *labels;
		const char *rows, *flag, *check_flag;
		uint64_t block_number;
		bool block_given, delete_parts, no_lock;
		/* Of the other objects of a file whose tensor gets other chunks. */
		enum { KEEP_NOT_GIVEN, KEEP_ALL, KEEP_MOST, KEEP_NONE } keep;
	} pack;

	char **owned; /* copies that values point into */
	size_t n_owned;
};
/* Defaults; asks the system for memory and user ids. */
void settings_init(struct settings *s);
void settings_free(struct settings *s);
/* A copy of `text` that lives as long as the settings; NULL: out of memory. */
char *settings_keep(struct settings *s, const char *text);

struct option;
struct command {
	const char *name, *operands, *summary;
	const char *details; /* paragraph for --help, may be NULL */
	unsigned min_operands, max_operands; /* max 0: no limit */
	const struct option *const *tables;  /* NULL-terminated */
	int (*run)(const struct command *c, struct settings *s, int argc,
		   char **argv);
	bool sources; /* operands are sources, as many as there are */
};
/* Rows end with a NULL name. */
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

/* One line on stderr: "tensorfs COMMAND: ..."; NULL command: "tensorfs: ...". */
void cli_say(const struct command *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The same for wrong usage, with a pointer to --help; returns CLI_USAGE. */
int cli_usage(const struct command *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Exit code for a failure to open a source. */
int cli_source_exit(int code);
/* Flush stdout: CLI_DONE, or CLI_INCOMPLETE with a sentence. */
int cli_flush(const struct command *c);
/* As cli_flush, for commands whose result is files and whose output only reports on them:
 * CLI_DONE as well if standard output was closed when the program started. */
int cli_flush_report(const struct command *c);
/* Look at the operands of any command.  An empty one is wrong usage: it is a variable that
 * is not set, and as a path it would be the working directory.  Index files among several
 * sources, as `images.tar*` finds them, are left out with a note.  0; CLI_USAGE. */
int operands_check(const struct command *c, char **argv, int *n);
/* Bytes of a JSON string, as json_put_text. */
static inline void cli_json_string(FILE *out, const char *s)
{
	json_put_text(out, s);
}
/* The program's version, and all libraries and filters. */
extern const char cli_version[];
void version_print(FILE *out);

struct shared;
/* Sources opened and wired: tree, store, fs.  No thread is running yet. */
struct session {
	struct handles *handles;
	struct tree *tree;
	struct store *store;
	struct shared *shared; /* NULL: none */
	struct fs *fs;
	struct follow_order order; /* if it is given */
	struct source **sources;
	size_t n_sources;
	struct classes *classes; /* labels of a file */
	bool labels_found;       /* labels of a dataset or attribute are used */
	char *config;
};
/* One source is the root of the tree, several are a directory each, as is one that
 * s->names has a name for (or, with s->joined, one tree).  `prefetch`
 * threads are started by session_start only.  0 or -errno with a sentence. */
int session_open(struct session **out, char *const *paths, size_t n,
		 const struct settings *s, unsigned prefetch,
		 struct error *err);
/* The same with `shared` (taken over, may be NULL) for decoded chunks. */
int session_open_shared(struct session **out, char *const *paths, size_t n,
			const struct settings *s, unsigned prefetch,
			struct shared *shared, struct error *err);
/* The store of shared chunks that the settings ask for; NULL: they do not. */
int session_share(struct shared **out, const struct settings *s,
		  struct error *err);
int session_start(struct session *s, struct error *err);
void session_free(struct session *s);
/* Warn of tensors whose samples decode more than the cache holds. */
void cost_warn(struct session *session, const struct settings *s);
/* The last part of a path, slashes at the end ignored; malloc'ed. */
char *session_base_name(const char *path);

/* "SOURCE[:PATH]", split; both malloc'ed. */
struct operand {
	char *source, *path;
};
/* False: out of memory. */
bool operand_split(const char *text, struct operand *out);
void operand_free(struct operand *o);
/* Split, open, walk: 0 with all three set, else an exit code and a sentence on
 * stderr. */
int operand_open(const struct command *c, const struct settings *s,
		 const char *text, unsigned prefetch, struct operand *o,
		 struct session **session, struct node *node);
/* The operand's path in a session of its source: 0; else an exit code and a sentence on
 * stderr. */
int operand_find(const struct command *c, const struct operand *o,
		 struct session *session, struct node *node);
/* Say why `ino` could not be read, unless fs has already logged it. */
void cli_read_failed(const struct command *c, struct fs *fs, uint64_t ino,
		     const char *path, int code);

#endif
