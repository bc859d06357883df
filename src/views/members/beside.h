/* SPDX-License-Identifier: BSD-2-Clause */
/* Views of a member table: entries beside the members, found by name. */
#ifndef VIEWS_MEMBERS_BESIDE_H
#define VIEWS_MEMBERS_BESIDE_H

#include <stdio.h>

#include "members/members.h"
#include "shards/cut.h"
#include "tree/files.h"

/*
 * In the root of an archive or directory there are, beside its members, files and
 * directories that are worked out from them: epochs/, files.txt, ...  They are found by
 * name, and listed only where option views= says so; a member of the same name wins, and
 * then there is no such view.
 *
 * A view is a row of beside_table and a `struct files` of its own, made when somebody first
 * asks for it.  In these node 0 is the view itself (a directory or a file), others are
 * numbers below `numbers`.  What is listed or found in them may also be a member: its node
 * is BESIDE_MEMBER | record, and it is the member's file, under another name.
 */
#define BESIDE_MEMBER (UINT64_C(1) << 63)

struct beside;
struct beside_args;
struct beside_ops {
	const char *name;    /* of option views= */
	const char *summary; /* for help */
	const char *top;     /* name in the root */
	uint32_t type;       /* S_IFDIR or S_IFREG */
	/* Is it for these members?  What it finds in them may still be nothing. */
	bool (*fits)(const struct beside_args *a);
	/* Upper bound of its nodes' numbers. */
	uint64_t (*numbers)(const struct beside_args *a);
	/* Its files, which may keep `b` (alive as long as they are).  -ENOMEM. */
	int (*make)(struct beside *b, struct files **out, struct error *err);
};
/* Rows end with NULL. */
extern const struct beside_ops *const beside_table[];
#define BESIDE_MAX 24

/* What option views= says, and others. */
struct beside_options {
	uint32_t listed;          /* bit i: row i */
	struct shards_cut shards; /* of shards/; zeros: usual ones */
};
/* Rows that are called `name` (of `len` bytes); "all": all.  0: none. */
uint32_t beside_rows(const char *name, size_t len);
/* Comma-separated names of all views, for help. */
const char *beside_names(void);

/*
 * Put views beside `members` (files of `m` under record `root`; owned from now on, also after
 * a failure).  Node n is record n, as in these. `source` is for sentences.
 */
struct beside_args {
	const struct members *m;
	struct files *members;
	uint64_t root;
	const char *source; /* copied; NULL: several */
	bool tar;           /* members are those of tars */
	struct beside_options options;
};
int beside_new(struct files **out, const struct beside_args *a,
	       struct error *err);
/* These records (ascending; borrowed) are shown as directories: sources inside.  Before the
 * tree is served. */
void beside_hide(struct files *f, const uint64_t *records, size_t n);
/* Is this node a view's, with nothing that is stored? */
bool beside_is_view(const struct files *f, uint64_t node);
/* Are these members with views? */
bool beside_are(const struct files *f);

/* ---- for views ----------------------------------------------------------- */

/* What a view is of. */
const struct beside_args *beside_args(const struct beside *b);
/* Is a record a regular file (or another name of one), and shown as that? */
bool beside_is_file(const struct beside *b, uint64_t record);
/* The node of a record: of another name of an inode, the inode's. */
uint64_t beside_node(const struct beside *b, uint64_t record);
/*
 * All such files under the root, in order of their paths (bytes): records.  Made when it is
 * first asked for, 4 bytes a file.  -ENOMEM.
 */
struct beside_list {
	uint64_t n;
	uint32_t at[];
};
int beside_list(struct beside *b, const struct beside_list **out,
		struct error *err);
/* "a/b/c.jpg", from the root that is shown, into *buf (malloc'ed, grows); its length, or
 * -ENOMEM. */
struct beside_path {
	char *at;
	size_t room;
};
ssize_t beside_path(const struct beside *b, uint64_t record,
		    struct beside_path *p);
/* A line with the path of a file, to `out` unless that is NULL.  -EINVAL: there is a newline
 * in it. */
int beside_put_path(const struct beside *b, uint64_t record,
		    struct beside_path *p, FILE *out, struct error *err);
/* From the first dot on that is not the first character (".tar.gz"), or "". */
const char *beside_extension(const char *name);
/* Attributes of a view's own directory or file, of size 0. */
void beside_attr(const struct beside *b, uint32_t type, struct attr *out);

#endif
