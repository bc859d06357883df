/* SPDX-License-Identifier: BSD-2-Clause */
/* The directory of a group: it has attributes but no files of its own. */

/*
 * The value of an xattr has at most 64 KiB (XATTR_SIZE_MAX).  Attributes that do not fit
 * are replaced by their length.
 */
#include "formats/group_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"

#define VALUE_MAX 65536
#define DUMP (JSON_COMPACT | JSON_ENCODE_ANY)

struct group_files {
	struct files files;
	group_attributes_fn *attributes;
	void *source;
	const char *object;
	int64_t mtime;
	uint32_t file;
};

static uint64_t group_files_count(const struct files *f, uint64_t dir)
{
	(void)f, (void)dir;
	return 0;
}

static uint64_t group_files_child(const struct files *f, uint64_t dir,
				  uint64_t i, uint32_t *type)
{
	(void)f, (void)dir, (void)i;
	*type = S_IFDIR;
	return 0;
}

static int group_files_name(const struct files *f, uint64_t dir, uint64_t i,
			    char *buf, size_t n)
{
	(void)f, (void)dir, (void)i, (void)buf, (void)n;
	return -ENOENT;
}

static int group_files_find(const struct files *f, uint64_t dir,
			    const char *name, uint64_t *node)
{
	(void)f, (void)dir, (void)name, (void)node;
	return -ENOENT;
}

static int group_files_parent(const struct files *f, uint64_t node,
			      uint64_t *dir)
{
	(void)f, (void)node, (void)dir;
	return -ENOENT;
}

static bool group_files_attr_is_slow(const struct files *f, uint64_t node)
{
	(void)f, (void)node;
	return false;
}

static int group_files_attr(struct files *f, uint64_t node, struct pinner *p,
			    struct attr *out, struct error *err)
{
	const struct group_files *g = (const struct group_files *)f;

	(void)p;
	if (node)
		return error_set(err, -ENOENT, "no such file");
	*out = (struct attr){
		.mtime = g->mtime, .mode = S_IFDIR | 0555, .nlink = 2};
	return 0;
}

static int group_files_map(const struct files *f, uint64_t node, uint64_t off,
			   struct plan *p, struct error *err)
{
	(void)f, (void)node, (void)off, (void)p;
	return error_set(err, -EISDIR, "a group has no bytes");
}

/* Return the bytes that a key takes in JSON, with its colon and comma. */
static size_t key_length(const char *key)
{
	json_t *j = json_string(key);
	cleanup_free char *s = json_exact(j, DUMP);

	json_decref(j);
	return s ? strlen(s) + 2 : SIZE_MAX / 2;
}

/* Return the attributes that fit; each of the others is replaced by its length. */
static char *group_attributes_shorten(const char *text)
{
	json_t *all = json_loads(text, JSON_DECODE_ANY, NULL);
	json_t *v, *out = json_object();
	size_t left = VALUE_MAX - 64, dropped = 0;
	const char *key;
	char *dump;

	json_object_foreach(all, key, v)
	{
		cleanup_free char *s = json_exact(v, DUMP);
		size_t len = s ? strlen(s) : SIZE_MAX / 2;
		size_t room = key_length(key);
		char words[64];

		snprintf(words, sizeof words, "(%zu bytes: too long to list)",
			 len);
		if (room <= left && len <= left - room) {
			json_object_set(out, key, v);
			left -= room + len;
		} else if (room + strlen(words) + 2 <= left) {
			json_object_set_new(out, key, json_string(words));
			left -= room + strlen(words) + 2;
		} else {
			dropped++;
		}
	}
	if (dropped)
		json_object_set_new(out, "(not listed)",
				    json_integer((json_int_t)dropped));
	dump = json_exact(out, DUMP);
	json_decref(all);
	json_decref(out);
	return dump;
}

ssize_t group_attributes_value(char *text, const struct error *err, char *buf,
			       size_t n)
{
	cleanup_free char *all = text;
	size_t len;

	if (all && strlen(all) > VALUE_MAX) {
		char *shorter = group_attributes_shorten(all);

		free(all);
		all = shorter;
	}
	if (!all)
		return err->code ? err->code : -ENOMEM;
	len = strlen(all);
	if (n && len > n)
		return -ERANGE;
	if (n)
		memcpy(buf, all, len);
	return (ssize_t)len;
}

static ssize_t group_files_xattr(struct files *f, uint64_t node,
				 const char *key, struct pinner *p, char *buf,
				 size_t n)
{
	const struct group_files *g = (const struct group_files *)f;
	struct error err = {.code = 0};

	(void)p;
	if (node || strcmp(key, "attrs"))
		return -ENODATA;
	return group_attributes_value(
		g->attributes(g->source, g->file, g->object, &err), &err, buf,
		n);
}

static const char *group_files_xattr_keys(const struct files *f, uint64_t node,
					  size_t *len)
{
	static const char keys[] = "attrs";

	(void)f;
	*len = node ? 0 : sizeof keys;
	return keys;
}

static void group_files_free(struct files *f)
{
	free(f);
}

static const struct files_ops group_ops = {
	.count = group_files_count,
	.child = group_files_child,
	.name = group_files_name,
	.find = group_files_find,
	.parent = group_files_parent,
	.attr_is_slow = group_files_attr_is_slow,
	.attr = group_files_attr,
	.map = group_files_map,
	.xattr = group_files_xattr,
	.xattr_keys = group_files_xattr_keys,
	.free = group_files_free,
};

struct files *group_files_new(group_attributes_fn *attributes, void *source,
			      uint32_t file, const char *object, int64_t mtime)
{
	struct group_files *g = malloc(sizeof *g);

	if (!g)
		return NULL;
	*g = (struct group_files){.files = {&group_ops},
				  .attributes = attributes,
				  .source = source,
				  .object = object,
				  .mtime = mtime,
				  .file = file};
	return &g->files;
}
