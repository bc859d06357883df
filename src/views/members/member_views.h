/* SPDX-License-Identifier: BSD-2-Clause */
/* Member views: entries beside the members of an archive or directory, found by name. */
#ifndef VIEWS_MEMBERS_MEMBER_VIEWS_H
#define VIEWS_MEMBERS_MEMBER_VIEWS_H

#include <stdio.h>

#include "members/members.h"
#include "shards/cut.h"
#include "tree/files.h"

/*
 * In the root of an archive or directory there are, beside its members, files and
 * directories that are computed from them: epochs/, files.txt, ...  They are found by
 * name, and listed only if option views= names them.  If a member has the same name,
 * the view does not exist.
 *
 * A view is a row of member_view_table and a `struct files` of its own, made at the first
 * lookup.  In these files node 0 is the view itself (a directory or a file), and others
 * are numbers below `numbers`.  An entry that a view lists or finds may also be a
 * member: its node is MEMBER_VIEW_MEMBER | record, and it is the member's file under another
 * name.
 */
#define MEMBER_VIEW_MEMBER (UINT64_C(1) << 63)

struct member_views;
struct member_views_args;
struct member_view_ops {
	const char *name;    /* the word for option views= */
	const char *summary; /* text for help */
	const char *top;     /* its name in the root */
	uint32_t type;       /* S_IFDIR or S_IFREG */
	/* Return true if the view exists for these members; it may still be empty. */
	bool (*fits)(const struct member_views_args *a);
	/* Return an upper bound of its node numbers. */
	uint64_t (*numbers)(const struct member_views_args *a);
	/* Make its files, which the caller owns; they may refer to `b`, which lives as
	 * long.  Returns 0 or -errno. */
	int (*make)(struct member_views *b, struct files **out,
		    struct error *err);
};
/* All views; the last row is NULL. */
extern const struct member_view_ops *const member_view_table[];
#define MEMBER_VIEW_MAX 24

/* Options of member views. */
struct member_view_options {
	uint32_t listed; /* bit i: row i is listed */
	/* Size of the shards in shards/; zeros: the usual size. */
	struct shards_cut shards;
};
/* Return the rows that option views= calls `name` (of `len` bytes), a bit for each;
 * "all" gives all of them.  0 if there are none. */
uint32_t member_view_rows(const char *name, size_t len);
/* Return the comma-separated names of all views, for help. */
const char *member_view_names(void);

/*
 * Put views beside `members`, the files of `m` under record `root`.  They are owned by
 * *out from now on, also after a failure.  Node n is record n, as in `members`.
 * `source` names the archive in messages.  Returns 0 or -ENOMEM.
 */
struct member_views_args {
	const struct members *m;
	struct files *members;
	uint64_t root;
	const char *source; /* copied; NULL if there are several sources */
	bool tar;           /* the members are those of tars */
	struct member_view_options options;
};
int member_views_new(struct files **out, const struct member_views_args *a,
		     struct error *err);
/* Declare that these records (ascending; borrowed) are shown as directories, because
 * they are sources themselves.  Call this before the tree is served. */
void member_views_hide(struct files *f, const uint64_t *records, size_t n);
/* Return true if this node is that of a view, with nothing stored. */
bool member_views_is_view(const struct files *f, uint64_t node);
/* Return true if the files are members with views. */
bool member_views_are(const struct files *f);

/* ---- for views ----------------------------------------------------------- */

/* Return the arguments that a view was created with. */
const struct member_views_args *member_views_args(const struct member_views *b);
/* Return true if a record is a regular file (or another name of one), and shown as one. */
bool member_view_is_file(const struct member_views *b, uint64_t record);
/* Return the node of a record; if it is a hard link, the node of the record that has
 * the bytes. */
uint64_t member_view_node(const struct member_views *b, uint64_t record);
/*
 * Set *out to the records of all files under the root, in order of their paths (by
 * bytes).  The first call makes the list, 4 bytes a file; `b` owns it.  Returns 0 or
 * -ENOMEM.
 */
struct member_view_list {
	uint64_t n;
	uint32_t at[];
};
int member_view_list(struct member_views *b,
		     const struct member_view_list **out, struct error *err);
/* Write the path of a record from the shown root, "a/b/c.jpg", into p->at, which grows
 * and which the caller frees.  Returns its length in bytes, or -ENOMEM. */
struct member_view_path {
	char *at;
	size_t room;
};
ssize_t member_view_path(const struct member_views *b, uint64_t record,
			 struct member_view_path *p);
/* Write a line with the path of a file to `out`, unless that is NULL.  Returns 0,
 * -EINVAL if the path has a newline, or -ENOMEM. */
int member_view_put_path(const struct member_views *b, uint64_t record,
			 struct member_view_path *p, FILE *out,
			 struct error *err);
/* Return the part of a name from the first dot on that is not the first character
 * (".tar.gz"), or "". */
const char *member_view_extension(const char *name);
/* Set the attributes of a view's own directory or file; the size is left as it is. */
void member_view_attr(const struct member_views *b, uint32_t type,
		      struct attr *out);

#endif
