/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of staged trees: JSON files, replaced in one step, checked when they are
 * read. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/system.h"
#include "staging/private.h"

#define VERSION 2

/* ---- bytes as JSON ------------------------------------------------------- */

/* Encode bytes as JSON: a string if they are UTF-8, else {"hex": digits}, since a path
 * may have any bytes.  Return NULL if there is no memory. */
static json_t *bytes_json(const char *s)
{
	static const char digits[] = "0123456789abcdef";
	json_t *v = json_string(s), *o;
	size_t n = strlen(s);
	char *hex;

	if (v)
		return v;
	hex = malloc(2 * n + 1);
	if (!hex)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		hex[2 * i] = digits[(unsigned char)s[i] >> 4];
		hex[2 * i + 1] = digits[(unsigned char)s[i] & 15];
	}
	hex[2 * n] = '\0';
	o = json_pack("{s:s}", "hex", hex);
	free(hex);
	return o;
}

static int record_hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
				      : -1;
}

/* Decode bytes_json into a string that the caller frees.  Return NULL if `v` has another
 * form or there is no memory. */
static char *json_bytes(const json_t *v)
{
	const char *text = json_string_value(v);
	char *out;
	size_t n;

	if (text)
		return strlen(text) == json_string_length(v) ? strdup(text)
							     : NULL;
	text = json_string_value(json_object_get(v, "hex"));
	if (!text || strlen(text) % 2)
		return NULL;
	n = strlen(text) / 2;
	out = malloc(n + 1);
	for (size_t i = 0; out && i < n; i++) {
		int hi = record_hex_digit(text[2 * i]),
		    lo = record_hex_digit(text[2 * i + 1]);

		if (hi < 0 || lo < 0 || !(hi | lo)) {
			free(out);
			return NULL;
		}
		out[i] = (char)(hi << 4 | lo);
	}
	if (out)
		out[n] = '\0';
	return out;
}

static json_t *number_json(uint64_t v)
{
	return json_integer((json_int_t)v);
}

static uint64_t json_u64(const json_t *o, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(o, key));
}

/* ---- files --------------------------------------------------------------- */

/* Write JSON through a buffer, because json_dumpfd makes many small writes.  Return 0, or
 * -1; errno may be 0 then. */
static int record_dump_json(json_t *o, int fd, bool sync)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0), r;
	FILE *f = copy < 0 ? NULL : fdopen(copy, "w");

	if (!f) {
		if (copy >= 0)
			close(copy);
		return -1;
	}
	errno = 0; /* jansson does not always set errno */
	r = json_dumpf(o, f, JSON_COMPACT);
	if (r == 0 && (fflush(f) || (sync && fsync(fd) < 0)))
		r = -1;
	fclose(f);
	return r;
}

/* Write or replace a JSON file in one step, by renaming.  Return 0 or -errno. */
static int write_json(const struct staging *s, const char *name, json_t *o,
		      struct error *err)
{
	char fresh[PLACE_FILE + 1];
	cleanup_close int fd = -1;
	int r = 0;

	snprintf(fresh, sizeof fresh, "%s~", name);
	fd = openat(s->control.fd, fresh,
		    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	if (fd < 0 || record_dump_json(o, fd, !s->memory) < 0 ||
	    renameat(s->control.fd, fresh, s->control.fd, name) < 0) {
		r = errno ? -errno : -EIO;
		unlinkat(s->control.fd, fresh, 0);
		return error_errno(err, r, "cannot write '%s/%s'",
				   s->control.path, name);
	}
	return 0;
}

static int read_json(const struct staging *s, const char *name, json_t **out)
{
	cleanup_close int fd =
		openat(s->control.fd, name,
		       O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	FILE *f;

	*out = NULL;
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -EBADMSG;
	f = fdopen(fd, "r");
	if (!f)
		return -errno;
	fd = -1;
	*out = json_loadf(f, 0, NULL);
	fclose(f);
	return *out ? 0 : -EBADMSG;
}

/* ---- records ------------------------------------------------------------- */

bool record_name_ok(const char *name)
{
	return *name && *name != '.' && !strchr(name, '/') &&
	       strlen(name) <= 255;
}

void record_free(struct record *r)
{
	free(r->name);
	free(r->source);
	free(r->options);
	*r = (struct record){.name = NULL};
}

static bool record_get_text(const json_t *o, const char *key, char **out)
{
	*out = json_bytes(json_object_get(o, key));
	return *out != NULL;
}

static bool record_get_key(const json_t *o, const char *key,
			   char out[STAGING_KEY])
{
	const char *text = json_string_value(json_object_get(o, key));

	if (!text || strlen(text) != STAGING_KEY - 1)
		return false;
	memcpy(out, text, STAGING_KEY);
	return true;
}

int record_read(const struct staging *s, const char *id, struct record *out)
{
	char name[PLACE_FILE];
	json_t *o;
	int r;

	*out = (struct record){.name = NULL};
	place_file(name, id, "json");
	r = read_json(s, name, &o);
	if (r < 0)
		return r;
	memcpy(out->id, id, STAGING_ID);
	out->dev = json_u64(o, "dev");
	out->ino = json_u64(o, "ino");
	out->born = json_u64(o, "born");
	out->made = (int64_t)json_u64(o, "made");
	out->transient = json_is_true(json_object_get(o, "transient"));
	out->result = (struct staging_result){
		.files = json_u64(o, "files"),
		.bytes = json_u64(o, "bytes"),
		.space = json_u64(o, "space"),
		.chunks = json_u64(o, "chunks_decoded"),
		.verified = json_is_true(json_object_get(o, "verified"))};
	/* Records of other versions are listed, held and removed like those of this
	 * version: name, dev, ino, born and transient have the same meaning in all.
	 * They are never reused, since the key is computed differently: it is left
	 * empty. */
	if (!record_get_text(o, "name", &out->name) ||
	    !record_name_ok(out->name) ||
	    !record_get_text(o, "source", &out->source) ||
	    !record_get_text(o, "options", &out->options) || !out->ino)
		r = -EBADMSG;
	else if (json_u64(o, "version") != VERSION)
		out->key[0] = '\0';
	else if (!record_get_key(o, "key", out->key))
		r = -EBADMSG;
	if (r < 0)
		record_free(out);
	json_decref(o);
	return r;
}

int record_write(const struct staging *s, const struct record *r,
		 struct error *err)
{
	char name[PLACE_FILE];
	json_t *o = json_pack(
		"{s:i, s:s, s:o, s:o, s:o, s:b, s:b}", "version", VERSION,
		"key", r->key, "name", bytes_json(r->name), "source",
		bytes_json(r->source), "options", bytes_json(r->options),
		"transient", r->transient, "verified", r->result.verified);
	int ret;

	if (!o)
		return error_no_memory(err, "the record of the staged tree");
	json_object_set_new(o, "dev", number_json(r->dev));
	json_object_set_new(o, "ino", number_json(r->ino));
	json_object_set_new(o, "born", number_json(r->born));
	json_object_set_new(o, "made", number_json((uint64_t)r->made));
	json_object_set_new(o, "files", number_json(r->result.files));
	json_object_set_new(o, "bytes", number_json(r->result.bytes));
	json_object_set_new(o, "space", number_json(r->result.space));
	json_object_set_new(o, "chunks_decoded", number_json(r->result.chunks));
	place_file(name, r->id, "json");
	ret = write_json(s, name, o, err);
	json_decref(o);
	return ret;
}

/* ---- announcements of trees being made ----------------------------------- */

/* A decimal number with all its digits, so that it can be overwritten in place. */
#define LEFT_FORMAT "%020" PRIu64
#define LEFT_DIGITS 20
/* The offset of the digits in the file, which begins with {"left":" */
#define LEFT_AT 9

int record_announce(int fd, const struct staging_want *w, struct error *err)
{
	char left[LEFT_DIGITS + 1], group[256];
	json_t *o;
	int r;

	snprintf(left, sizeof left, LEFT_FORMAT, UINT64_C(0));
	system_group(group);
	o = json_pack("{s:s, s:o, s:o, s:o}", "left", left, "group",
		      bytes_json(group), "name", bytes_json(w->name), "source",
		      bytes_json(w->source));
	r = o && json_dumpfd(o, fd, JSON_COMPACT) == 0
		    ? 0
		    : error_set(err, -ENOSPC,
				"cannot write the lock file of the staged "
				"tree: there is no memory or no space left");
	json_decref(o);
	return r;
}

void record_announce_left(int fd, uint64_t left)
{
	char text[LEFT_DIGITS + 1];

	snprintf(text, sizeof text, LEFT_FORMAT, left);
	/* A failure is ignored: staging goes on without the announcement. */
	if (pwrite(fd, text, LEFT_DIGITS, LEFT_AT) != LEFT_DIGITS)
		return;
}

void record_announced(const struct staging *s, const char *id,
		      struct announced *out)
{
	char file[PLACE_FILE];
	const char *left;
	json_t *o = NULL;

	*out = (struct announced){.name = NULL};
	place_file(file, id, "use");
	if (read_json(s, file, &o) < 0)
		return;
	out->name = json_bytes(json_object_get(o, "name"));
	out->source = json_bytes(json_object_get(o, "source"));
	out->group = json_bytes(json_object_get(o, "group"));
	left = json_string_value(json_object_get(o, "left"));
	out->left = left ? strtoull(left, NULL, 10) : 0;
	json_decref(o);
}

void announced_free(struct announced *a)
{
	free(a->name);
	free(a->source);
	free(a->group);
	*a = (struct announced){.name = NULL};
}
