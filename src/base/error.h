/* SPDX-License-Identifier: BSD-2-Clause */
/* One failure: a code for machines and a sentence for people. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

/*
 * The lowest level that knows what went wrong writes the sentence, its callers prefix it
 * with where they are ("run7.h5: "), and only the edges (fs, cli) print or log it.  A
 * function that takes a `struct error *` returns 0 or -errno and sets the error exactly
 * when it returns an error.  `e` may be NULL.
 */
struct error {
	int code;       /* 0 or -errno */
	char text[504]; /* one line; control characters are question marks */
};

/* Set code (a negative errno) and sentence; returns `code`. */
int error_set(struct error *e, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* As error_set, with ": " and the text of errno `-code` appended. */
int error_errno(struct error *e, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Set -ENOMEM and "out of memory for WHAT"; returns -ENOMEM. `what` is a noun in the
 * words of the user's world: "the table of members", not the name of a variable. */
int error_no_memory(struct error *e, const char *what);

/* Put text in front of the sentence; returns the code that was set. */
int error_prefix(struct error *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The errno's name, such as "ENODATA", for the codes that readers see; "EIO" for any
 * other. */
const char *error_name(int code);

#endif
