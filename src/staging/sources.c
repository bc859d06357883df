/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of a tree's source files: written with the tree, checked before its reuse. */

/*
 * A tree may have been made of a million files, and most readers of its record do not
 * need them: so the list is a file of its own, written and read one row at a time.  A row
 * is one of
 *
 *	1 DEVICE INODE SIZE MTIME CTIME PATH NUL
 *	0 0 0 0 0 0 PATH NUL		the file did not exist
 *
 * and the last row is "end": a list that is cut off or missing counts as out of date.
 * DEVICE to CTIME are decimal; times are in ns.  The list is complete before the record
 * is written, and never changes.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "staging/private.h"

#define WHAT "from"
#define END "end"

bool staging_sources_add(struct staging_sources *d, const char *path,
			 const struct staging_source *one)
{
	struct staging_source copy = *one;

	copy.path = strdup(path);
	if (copy.path && vec_push(&d->list, copy))
		return true;
	free(copy.path);
	return false;
}

void staging_sources_free(struct staging_sources *d)
{
	for (size_t i = 0; i < d->list.n; i++)
		free(d->list.at[i].path);
	vec_free(&d->list);
}

static FILE *open_rows(const struct staging *s, const char *id, int flags,
		       const char *mode)
{
	char name[PLACE_FILE];
	FILE *f;
	int fd;

	place_file(name, id, WHAT);
	fd = openat(s->control.fd, name,
		    flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	f = fd < 0 ? NULL : fdopen(fd, mode);
	if (!f && fd >= 0)
		close(fd);
	return f;
}

static void write_row(FILE *f, const struct staging_source *one)
{
	const struct identity *id = &one->id;

	if (one->there)
		fprintf(f,
			"1 %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
			" %" PRIu64 " %s",
			id->dev, id->ino, id->size, id->mtime, one->changed,
			one->path);
	else
		fprintf(f, "0 0 0 0 0 0 %s", one->path);
	putc('\0', f);
}

int sources_write(const struct staging *s, const char *id,
		  const struct staging_sources *sources, struct error *err)
{
	FILE *f = open_rows(s, id, O_WRONLY | O_CREAT | O_TRUNC, "w");
	int code = f ? 0 : -errno;

	errno = 0;
	for (size_t i = 0; f && i < sources->list.n; i++)
		write_row(f, &sources->list.at[i]);
	if (f) {
		fputs(END, f);
		putc('\0', f);
		if (fflush(f) || ferror(f) || (!s->memory && fsync(fileno(f))))
			code = errno ? -errno : -EIO;
		fclose(f);
	}
	return code < 0 ? error_errno(err, code, "cannot write '%s/%s.%s'",
				      s->control.path, id, WHAT)
			: 0;
}

/* Return whether the file of this row is unchanged. */
static bool row_is_current(const char *row)
{
	struct identity was, is;
	unsigned there;
	uint64_t changed;
	int path = 0;
	struct stat st;

	if (sscanf(row,
		   "%u %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		   "%n",
		   &there, &was.dev, &was.ino, &was.size, &was.mtime, &changed,
		   &path) != 6 ||
	    row[path] != ' ' || row[path + 1] != '/')
		return false;
	if (stat(row + path + 1, &st) < 0)
		return !there;
	identity_of(&st, &is);
	return there && identity_equal(&was, &is) && changed &&
	       changed == file_time(&st.st_ctim);
}

bool sources_are_current(const struct staging *s, const char *id)
{
	FILE *f = open_rows(s, id, O_RDONLY, "r");
	bool current = f, whole = false;
	char *row = NULL;
	size_t room = 0;
	ssize_t n;

	while (current && !whole && (n = getdelim(&row, &room, '\0', f)) > 0) {
		if (row[n - 1])
			break; /* the list is cut off */
		whole = !strcmp(row, END);
		current = whole || row_is_current(row);
	}
	free(row);
	if (f)
		fclose(f);
	return current && whole;
}

void sources_forget(const struct staging *s, const char *id)
{
	char name[PLACE_FILE];

	place_file(name, id, WHAT);
	unlinkat(s->control.fd, name, 0);
}
