/* SPDX-License-Identifier: BSD-2-Clause */
/* tensorfs ls: list the tree of a mount without mounting. */

/*
 * Directories may have millions of entries, and a hostile file may nest them without
 * limit.  So entries are printed as they are read, and -R keeps one small frame for each
 * level in a growable array instead of recursing.  Subdirectories are found by a second
 * pass over a directory, which is skipped if the first one saw none.
 */
#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "app/cli.h"
#include "base/cleanup.h"
#include "base/vec.h"

#define FIRST_ENTRY 2 /* after "." and ".." */

struct listing {
	const struct command *c;
	const struct settings *s;
	struct fs *fs;
	time_t now;
	uid_t uid;
	gid_t gid;
	char owner[64], group[64]; /* names of uid and gid */
	bool named;
	const char *dir; /* path of the directory being listed */
	bool comma, blank, saw_dir, terminal;
	int result;
};

/* Print a name.  On a terminal, control characters become question marks, because the
 * terminal would obey them. */
static void ls_print_name(const struct listing *l, const char *name)
{
	if (!l->terminal) {
		fputs(name, stdout);
		return;
	}
	for (; *name; name++)
		putchar((unsigned char)*name < 0x20 || *name == 0x7f ? '?'
								     : *name);
}

/* Types of files: the letter of ls(1), and the word of the JSON output. */
static const struct kind {
	mode_t type;
	char letter;
	const char *word;
} kinds[] = {{S_IFREG, '-', "file"},         {S_IFDIR, 'd', "directory"},
	     {S_IFLNK, 'l', "symlink"},      {S_IFCHR, 'c', "char device"},
	     {S_IFBLK, 'b', "block device"}, {S_IFIFO, 'p', "fifo"},
	     {S_IFSOCK, 's', "socket"}};

static const struct kind *ls_kind_of(mode_t mode)
{
	for (size_t i = 1; i < sizeof kinds / sizeof kinds[0]; i++)
		if ((mode & S_IFMT) == kinds[i].type)
			return &kinds[i];
	return &kinds[0];
}

static bool is_device(mode_t mode)
{
	return S_ISCHR(mode) || S_ISBLK(mode);
}

static void mode_text(mode_t mode, char out[11])
{
	const char *letters = "rwxrwxrwx";

	out[0] = ls_kind_of(mode)->letter;
	for (int i = 0; i < 9; i++)
		out[i + 1] = mode & (0400 >> i) ? letters[i] : '-';
	if (mode & S_ISUID)
		out[3] = mode & S_IXUSR ? 's' : 'S';
	if (mode & S_ISGID)
		out[6] = mode & S_IXGRP ? 's' : 'S';
	if (mode & S_ISVTX)
		out[9] = mode & S_IXOTH ? 't' : 'T';
	out[10] = '\0';
}

static void name_owner(struct listing *l, const struct stat *st)
{
	struct passwd *pw;
	struct group *gr;

	if (l->named && st->st_uid == l->uid && st->st_gid == l->gid)
		return;
	pw = getpwuid(st->st_uid);
	gr = getgrgid(st->st_gid);
	snprintf(l->owner, sizeof l->owner, "%u", (unsigned)st->st_uid);
	snprintf(l->group, sizeof l->group, "%u", (unsigned)st->st_gid);
	if (pw)
		snprintf(l->owner, sizeof l->owner, "%s", pw->pw_name);
	if (gr)
		snprintf(l->group, sizeof l->group, "%s", gr->gr_name);
	l->uid = st->st_uid;
	l->gid = st->st_gid;
	l->named = true;
}

static void print_long(struct listing *l, const char *name,
		       const struct stat *st)
{
	char mode[11], when[32] = "?", size[32];
	const char *target = NULL;
	time_t age = l->now - st->st_mtime;
	struct tm tm;

	mode_text(st->st_mode, mode);
	name_owner(l, st);
	if (localtime_r(&st->st_mtime, &tm))
		strftime(when, sizeof when,
			 age < 0 || age > 182 * 86400 ? "%b %e  %Y"
						      : "%b %e %H:%M",
			 &tm);
	if (is_device(st->st_mode))
		snprintf(size, sizeof size, "%u, %u", major(st->st_rdev),
			 minor(st->st_rdev));
	else
		snprintf(size, sizeof size, "%jd", (intmax_t)st->st_size);
	printf("%s %2lu %s %s %12s %s ", mode, (unsigned long)st->st_nlink,
	       l->owner, l->group, size, when);
	ls_print_name(l, name);
	if (S_ISLNK(st->st_mode) &&
	    fs_readlink(l->fs, st->st_ino, &target) == 0) {
		printf(" -> ");
		ls_print_name(l, target);
	}
	putchar('\n');
}

static void ls_print_json(struct listing *l, const char *name,
			  const struct stat *st)
{
	const char *target = NULL;

	printf("%s\n{\"name\": ", l->comma ? "," : "");
	l->comma = true;
	cli_json_string(stdout, name);
	printf(", \"dir\": ");
	cli_json_string(stdout, l->dir);
	printf(", \"type\": \"%s\", \"size\": %jd, \"mtime\": %jd, "
	       "\"mode\": \"%04o\", \"ino\": %ju, \"nlink\": %ju, "
	       "\"uid\": %u, \"gid\": %u",
	       ls_kind_of(st->st_mode)->word, (intmax_t)st->st_size,
	       (intmax_t)st->st_mtime, (unsigned)(st->st_mode & 07777),
	       (uintmax_t)st->st_ino, (uintmax_t)st->st_nlink,
	       (unsigned)st->st_uid, (unsigned)st->st_gid);
	if (is_device(st->st_mode))
		printf(", \"major\": %u, \"minor\": %u", major(st->st_rdev),
		       minor(st->st_rdev));
	if (S_ISLNK(st->st_mode) &&
	    fs_readlink(l->fs, st->st_ino, &target) == 0) {
		printf(", \"target\": ");
		cli_json_string(stdout, target);
	}
	putchar('}');
}

static bool print_entry(void *ctx, const char *name, const struct entry *e,
			uint64_t next)
{
	struct listing *l = ctx;
	struct entry whole = *e;

	(void)next;
	if (S_ISDIR(e->st.st_mode))
		l->saw_dir = true;
	if (!l->s->long_list && !l->s->json) {
		ls_print_name(l, name);
		putchar('\n');
		return !ferror(stdout);
	}
	if (!e->attr_known) {
		int r = fs_getattr(l->fs, e->st.st_ino, &whole);

		if (r < 0) {
			cli_read_failed(l->c, l->fs, e->st.st_ino, name, r);
			l->result = CLI_INCOMPLETE;
			whole = *e;
		}
	}
	if (l->s->json)
		ls_print_json(l, name, &whole.st);
	else
		print_long(l, name, &whole.st);
	return !ferror(stdout);
}

static void list_one(struct listing *l, uint64_t ino, const char *path,
		     bool heading)
{
	int r;

	if (heading && !l->s->json) {
		fputs(l->blank ? "\n" : "", stdout);
		ls_print_name(l, path);
		puts(":");
		l->blank = true;
	}
	l->dir = path;
	l->saw_dir = false;
	r = fs_readdir(l->fs, ino, FIRST_ENTRY, l->s->long_list || l->s->json,
		       print_entry, l);
	if (r < 0) {
		cli_read_failed(l->c, l->fs, ino, path, r);
		l->result = CLI_INCOMPLETE;
	}
}

/* The next subdirectory from a position on; ino is 0 until one is found. */
struct finding {
	uint64_t ino, next;
	char name[FILES_NAME_MAX + 1];
};

static bool find_dir(void *ctx, const char *name, const struct entry *e,
		     uint64_t next)
{
	struct finding *f = ctx;

	if (!S_ISDIR(e->st.st_mode))
		return true;
	f->ino = e->st.st_ino;
	f->next = next;
	snprintf(f->name, sizeof f->name, "%s", name);
	return false;
}

struct frame {
	uint64_t ino, pos;
	size_t path_len; /* length of this directory's path, in bytes */
};

/* Make `path`, a buffer of `room` bytes that is grown as needed, hold its first `len`
 * bytes, a slash and `name`.  Return false when out of memory. */
static bool path_enter(char **path, size_t *room, size_t len, const char *name)
{
	size_t need = len + strlen(name) + 2;

	if (need > *room) {
		char *grown = realloc(*path, 2 * need);

		if (!grown)
			return false;
		*path = grown;
		*room = 2 * need;
	}
	if (len > 0 && (*path)[len - 1] == '/')
		len--;
	snprintf(*path + len, *room - len, "/%s", name);
	return true;
}

static int list_recursive(struct listing *l, uint64_t ino, const char *top)
{
	vec(struct frame) stack = VEC_EMPTY;
	cleanup_free char *path = strdup(top);
	size_t room = strlen(top) + 1;
	struct frame first = {ino, FIRST_ENTRY, room - 1};
	bool good = path && vec_push(&stack, first);

	if (good)
		list_one(l, ino, path, true);
	if (good && !l->saw_dir)
		stack.n = 0;
	while (good && stack.n > 0 && !ferror(stdout)) {
		struct frame *f = &stack.at[stack.n - 1];
		struct finding found = {.ino = 0};

		if (fs_readdir(l->fs, f->ino, f->pos, false, find_dir, &found) <
			    0 ||
		    found.ino == 0) {
			stack.n--;
			continue;
		}
		f->pos = found.next;
		good = path_enter(&path, &room, f->path_len, found.name);
		if (!good)
			break;
		list_one(l, found.ino, path, true);
		if (l->saw_dir) {
			struct frame below = {found.ino, FIRST_ENTRY,
					      strlen(path)};

			good = vec_push(&stack, below);
		}
	}
	vec_free(&stack);
	if (!good)
		cli_say(l->c, "out of memory for the path of a directory");
	return good ? 0 : CLI_MEMORY;
}

static int list_operand(struct listing *l, const char *text, bool heading)
{
	struct session *session;
	struct operand o;
	struct node node;
	struct entry e;
	cleanup_free char *name = NULL;
	int r = operand_open(l->c, l->s, text, 0, &o, &session, &node);

	if (r != 0)
		return r;
	l->fs = session->fs;
	name = session_base_name(o.path);
	if (node.type == S_IFDIR && l->s->recursive) {
		r = list_recursive(l, node.ino, *o.path ? o.path : "/");
	} else if (node.type == S_IFDIR) {
		list_one(l, node.ino,
			 heading   ? text
			 : *o.path ? o.path
				   : "/",
			 heading);
	} else {
		l->dir = o.path;
		r = fs_getattr(l->fs, node.ino, &e);
		if (r == 0)
			print_entry(l, l->s->json && name ? name : o.path, &e,
				    0);
		else
			cli_read_failed(l->c, l->fs, node.ino, o.path, r);
		r = r < 0 ? CLI_INCOMPLETE : 0;
	}
	session_free(session);
	operand_free(&o);
	return r;
}

int cmd_ls(const struct command *c, struct settings *s, int argc, char **argv)
{
	struct listing l = {.c = c, .s = s, .now = time(NULL)};
	int worst = CLI_DONE;

	l.terminal = isatty(STDOUT_FILENO);
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	if (s->json)
		putchar('[');
	for (int i = 0; i < argc; i++) {
		int r = list_operand(&l, argv[i], argc > 1);

		worst = r > worst ? r : worst;
	}
	if (s->json)
		puts("\n]");
	if (worst == CLI_DONE)
		worst = l.result;
	if (cli_flush(c) != CLI_DONE && worst == CLI_DONE)
		worst = CLI_INCOMPLETE;
	return worst;
}
