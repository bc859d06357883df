/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects by path, through links into other files, which libhdf5 must not follow. */
#include "formats/hdf5/file/find.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "formats/hdf5/file/driver.h"
#include "formats/hdf5/file/resolve.h"

#define LINKS_MAX 40

static int find_no_memory(struct error *err)
{
	return error_no_memory(err, "a path in an HDF5 file");
}

int hdf5_find_external(struct hdf5_source *s, hid_t group, uint32_t file,
		       const char *name, uint32_t *to, char **object,
		       struct error *err)
{
	char value[2 * PATH_MAX];
	const char *path, *target;
	unsigned flags;
	H5L_info_t info;
	int r;

	if (H5Lget_info(group, name, &info, H5P_DEFAULT) < 0 ||
	    info.u.val_size > sizeof value ||
	    H5Lget_val(group, name, value, sizeof value, H5P_DEFAULT) < 0 ||
	    H5Lunpack_elink_val(value, info.u.val_size, &flags, &path,
				&target) < 0)
		return -EIO;
	r = hdf5_resolve(s, file, path, HDF5_PREFIX_LINK, to, err);
	if (r < 0)
		return r;
	/* A relative target starts at the root of the other file, too. */
	if (asprintf(object, "/%s", target + strspn(target, "/")) < 0) {
		*object = NULL;
		return find_no_memory(err);
	}
	return 0;
}

/* How far the search has come: a path in a file that is open. */
struct search {
	struct hdf5_source *s;
	hid_t id;    /* the open file */
	hid_t first; /* the file where the search began; the caller closes it */
	uint32_t file;
	char *path; /* malloc'ed; "" for the root */
	struct error *err;
};

static int object_missing(const struct search *x, const char *name)
{
	return error_set(x->err, -ENOENT, "there is no '%s' in %s of %s", name,
			 *x->path ? x->path : "/",
			 handles_name(x->s->handles, x->file));
}

/* Fail because `path` exists and cannot be opened, or looked up in. */
static int object_unreadable(const struct search *x, const char *path)
{
	char why[256];

	hdf5_why(why, sizeof why);
	return error_set(x->err, -EIO, "%s of %s cannot be read: %s",
			 *path ? path : "/",
			 handles_name(x->s->handles, x->file), why);
}

/* Fail because the lookup of `full` failed: tell a link that is missing from a group
 * that is damaged. */
static int link_unfound(const struct search *x, const char *full)
{
	const char *group = *x->path ? x->path : "/";
	H5O_info_t info;

	if (H5Lexists(x->id, full, H5P_DEFAULT) == 0)
		return object_missing(x, full);
	if (H5Oget_info_by_name2(x->id, group, &info, H5O_INFO_BASIC,
				 H5P_DEFAULT) >= 0 &&
	    info.type != H5O_TYPE_GROUP)
		return object_missing(x, full);
	return object_unreadable(x, group);
}

/* Close the file that a link led into, when the search goes on in another one. */
static void leave_file(const struct search *x)
{
	if (x->id != x->first)
		H5Fclose(x->id);
}

/* Go where the link `full` leads, perhaps into another file.  *next (malloc'ed) is the
 * target's path followed by `rest`. */
static int follow_link(struct search *x, const char *full, H5L_type_t type,
		       const char *rest, char **next)
{
	cleanup_free char *object = NULL;
	char value[2 * PATH_MAX];
	uint32_t file = x->file;
	bool absolute = true;
	hid_t id;
	int r;

	if (type == H5L_TYPE_EXTERNAL) {
		r = hdf5_find_external(x->s, x->id, x->file, full, &file,
				       &object, x->err);
		if (r == -EIO)
			return error_set(x->err, r,
					 "the external link '%s' of %s cannot "
					 "be read",
					 full,
					 handles_name(x->s->handles, x->file));
		if (!r)
			r = hdf5_open(x->s->handles, file, &id, x->err);
		if (r < 0)
			return r;
		leave_file(x);
		x->id = id;
	} else {
		if (H5Lget_val(x->id, full, value, sizeof value, H5P_DEFAULT) <
		    0)
			return object_missing(x, full);
		value[sizeof value - 1] = '\0';
		object = strdup(value);
		absolute = value[0] == '/';
	}
	if (!object || asprintf(next, "%s/%s", object, rest) < 0) {
		*next = NULL;
		return find_no_memory(x->err);
	}
	x->file = file;
	if (absolute)
		x->path[0] = '\0';
	return 0;
}

/* Take the first component off *rest (malloc'ed, replaced) and go there. */
static int find_component(struct search *x, char **rest, unsigned *links)
{
	char *name = *rest + strspn(*rest, "/"), *next = NULL, *full = NULL;
	size_t n = strcspn(name, "/");
	H5L_info_t info;
	int r = 0;

	if (n == 1 && *name == '.') {
		memmove(*rest, name + n, strlen(name + n) + 1);
		return 0;
	}
	if (asprintf(&full, "%s/%.*s", x->path, (int)n, name) < 0)
		return find_no_memory(x->err);
	if (H5Lget_info(x->id, full, &info, H5P_DEFAULT) < 0) {
		r = link_unfound(x, full);
	} else if (info.type == H5L_TYPE_HARD) {
		free(x->path);
		x->path = steal_pointer(&full);
		next = strdup(name + n);
		r = next ? 0 : find_no_memory(x->err);
	} else if (++*links > LINKS_MAX) {
		r = error_set(x->err, -ELOOP,
			      "'%s' of %s leads through more than %d links",
			      full, handles_name(x->s->handles, x->file),
			      LINKS_MAX);
	} else {
		r = follow_link(x, full, info.type, name + n, &next);
	}
	free(full);
	if (!r) {
		free(*rest);
		*rest = next;
	}
	return r;
}

int hdf5_find_object(struct hdf5_source *s, hid_t file, const char *path,
		     struct hdf5_place *at, hid_t *id, struct error *err)
{
	struct search x = {s, file, file, at->file, strdup(""), err};
	char *rest = strdup(path);
	unsigned links = 0;
	int r = x.path && rest ? 0 : find_no_memory(err);

	while (!r && rest[strspn(rest, "/")])
		r = find_component(&x, &rest, &links);
	if (!r) {
		at->file = x.file;
		at->object = intern_text(&s->intern, x.path);
		*id = H5Oopen(x.id, *x.path ? x.path : "/", H5P_DEFAULT);
		r = !at->object ? find_no_memory(err)
		    : *id < 0   ? object_unreadable(&x, x.path)
				: 0;
	}
	if (r < 0)
		leave_file(&x);
	free(x.path);
	free(rest);
	return r;
}
