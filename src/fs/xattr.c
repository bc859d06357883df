/* SPDX-License-Identifier: BSD-2-Clause */
/* Extended attributes: what the daemon knows about a file or about itself. */
/*
 *     root         user.tensorfs.stats    counters as JSON
 *                  user.tensorfs.errors   the last failures, newest first
 *                  user.tensorfs.config   the options in force
 *                  user.tensorfs.version
 *     any node     user.tensorfs.list     names of its attributes
 *                  user.tensorfs.name     the stored name, if it was escaped
 *                  user.tensorfs.error    the last failure, if there was one
 *                  and those of its `files`: shape, dtype, chunks, ...
 *
 * A missing attribute in user.* is ENODATA.  Other name spaces are ENOTSUP: `ls -l` asks
 * every file for system.posix_acl_access, and after this answer it stops asking for the
 * rest of the file system.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/counters.h"
#include "base/system.h"
#include "fs/fs_private.h"

#define PREFIX "user.tensorfs."
#define PREFIX_LEN (sizeof PREFIX - 1)
/* The kernel's limit for a value, in bytes (XATTR_SIZE_MAX, linux/limits.h). */
#define VALUE_MAX 65536
/* Bytes added to the length that is reported of a value that grows, so that a caller that
 * asks for the length first has room for the value of a moment later. */
#define VALUE_SLACK 512

static void stats_put(json_t *o, const char *key, uint64_t v)
{
	json_object_set_new(o, key, json_integer((json_int_t)v));
}

static void stats_put_shared(const struct shared *sh, json_t *o)
{
	struct shared_usage u;

	shared_usage(sh, &u);
	stats_put(o, "shared_budget", u.limit);
	stats_put(o, "shared_bytes", u.bytes);
	stats_put(o, "shared_entries", u.entries);
	stats_put(o, "shared_mapped_bytes", u.mapped);
}

static void stats_put_usage(struct fs *fs, json_t *o)
{
	struct cache_usage c;
	unsigned open_now, limit;
	uint64_t dirs, bytes;

	cache_usage(store_cache(fs->store), &c);
	stats_put(o, "cache_budget", c.budget);
	stats_put(o, "cache_bytes", c.bytes);
	stats_put(o, "cache_beside_bytes", atomic_load(&buf_extra_bytes));
	stats_put(o, "cache_entries", c.entries);
	stats_put(o, "cache_evictions", c.evictions);
	stats_put(o, "cache_hits", c.hits);
	stats_put(o, "cache_misses", c.misses);
	if (store_shared(fs->store))
		stats_put_shared(store_shared(fs->store), o);
	handles_usage(store_handles(fs->store), &open_now, &limit);
	stats_put(o, "handles_open", open_now);
	stats_put(o, "handles_limit", limit);
	stats_put(o, "source_files", handles_count(store_handles(fs->store)));
	tree_usage(fs->tree, &dirs, &bytes);
	stats_put(o, "directories", dirs);
	stats_put(o, "directory_bytes", bytes);
	stats_put(o, "resident_bytes", system_resident());
}

char *fs_stats_json(struct fs *fs)
{
	json_t *o = json_object();
	struct timespec now;
	uint64_t served = counter_get(COUNT_BYTES_SERVED);
	uint64_t decoded = counter_get(COUNT_BYTES_DECODED);
	char *text;
	int i;

	if (!o)
		return NULL;
	clock_gettime(CLOCK_MONOTONIC, &now);
	json_object_set_new(o, "version", json_string(fs->options.version));
	stats_put(o, "uptime_seconds",
		  (uint64_t)(now.tv_sec - fs->started.tv_sec));
	for (i = 0; i < COUNTER_COUNT; i++)
		stats_put(o, counter_info[i].name, counter_get(i));
	json_object_set_new(
		o, "read_amplification",
		json_real(served ? (double)decoded / (double)served : 0.0));
	stats_put_usage(fs, o);
	text = json_dumps(o, JSON_INDENT(1) | JSON_PRESERVE_ORDER |
				     JSON_REAL_PRECISION(6));
	json_decref(o);
	return text;
}

/* Return a value, or with n = 0 its length, as getxattr(2) does. */
static ssize_t xattr_deliver(const char *value, size_t len, size_t slack,
			     char *buf, size_t n)
{
	if (len > VALUE_MAX)
		len = VALUE_MAX;
	if (n == 0)
		return (ssize_t)(len + slack < VALUE_MAX ? len + slack
							 : VALUE_MAX);
	if (len > n)
		return -ERANGE;
	memcpy(buf, value, len);
	return (ssize_t)len;
}

static void name_inode(void *ctx, uint64_t ino, char *buf, size_t n)
{
	struct fs *fs = ctx;

	if (tree_path(fs->tree, ino, buf, n) < 0)
		snprintf(buf, n, "inode %" PRIu64, ino);
}

static ssize_t get_stats(struct fs *fs, char *buf, size_t n)
{
	cleanup_free char *text = fs_stats_json(fs);

	if (!text)
		return -ENOMEM;
	return xattr_deliver(text, strlen(text), VALUE_SLACK, buf, n);
}

static ssize_t get_errors(struct fs *fs, char *buf, size_t n)
{
	cleanup_free char *text = malloc(VALUE_MAX);

	if (!text)
		return -ENOMEM;
	return xattr_deliver(
		text, errors_print(fs->errors, text, VALUE_MAX, name_inode, fs),
		VALUE_SLACK, buf, n);
}

/* Get an attribute that only the root has; -ENODATA if `key` is not one of them. */
static ssize_t get_of_root(struct fs *fs, const char *key, char *buf, size_t n)
{
	const struct fs_options *o = &fs->options;

	if (!strcmp(key, "stats"))
		return get_stats(fs, buf, n);
	if (!strcmp(key, "errors"))
		return get_errors(fs, buf, n);
	if (!strcmp(key, "config"))
		return xattr_deliver(o->config, strlen(o->config), 0, buf, n);
	if (!strcmp(key, "version"))
		return xattr_deliver(o->version, strlen(o->version), 0, buf, n);
	return -ENODATA;
}

static void print_key(FILE *f, const char *key)
{
	fprintf(f, PREFIX "%s\n", key);
}

/* Print the names of the user.tensorfs attributes of node `nd`, one on each line. */
static void print_keys(struct fs *fs, const struct node *nd, FILE *f)
{
	static const char *const of_root[] = {"stats", "errors", "config",
					      "version"};
	const char *keys = NULL, *k;
	bool has_error = false;
	size_t len = 0;

	for (size_t i = 0;
	     nd->ino == TREE_ROOT && i < sizeof of_root / sizeof *of_root; i++)
		print_key(f, of_root[i]);
	if (tree_stored_name(fs->tree, nd))
		print_key(f, "name");
	if (nd->files && nd->files->ops->xattr_keys)
		keys = nd->files->ops->xattr_keys(nd->files, nd->node, &len);
	for (k = keys; k && k < keys + len; k += strlen(k) + 1) {
		has_error = has_error || !strcmp(k, "error");
		print_key(f, k);
	}
	if (!has_error && errors_find(fs->errors, nd->ino, NULL, 0))
		print_key(f, "error");
}

static ssize_t get_list(struct fs *fs, const struct node *nd, char *buf,
			size_t n)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return -ENOMEM;
	print_keys(fs, nd, f);
	return fclose(f) == 0 ? xattr_deliver(text, len, 0, buf, n) : -ENOMEM;
}

/* Get an attribute that is stored with a member, by its full name. */
static ssize_t get_stored(const struct node *nd, const char *name, char *buf,
			  size_t n)
{
	if (nd->files && nd->files->ops->stored_xattr)
		return nd->files->ops->stored_xattr(nd->files, nd->node, name,
						    buf, n);
	return strncmp(name, "user.", 5) ? -ENOTSUP : -ENODATA;
}

static ssize_t get_of_node(struct fs *fs, const struct node *nd,
			   const char *full, char *buf, size_t n)
{
	const char *key = full + PREFIX_LEN;
	char text[sizeof((struct error *)0)->text];
	const char *name;
	ssize_t r;

	if (!strcmp(key, "error") &&
	    errors_find(fs->errors, nd->ino, text, sizeof text))
		return xattr_deliver(text, strlen(text), 0, buf, n);
	if (!strcmp(key, "list"))
		return get_list(fs, nd, buf, n);
	name = strcmp(key, "name") ? NULL : tree_stored_name(fs->tree, nd);
	if (name)
		return xattr_deliver(name, strlen(name), 0, buf, n);
	r = -ENODATA;
	if (nd->files && nd->files->ops->xattr)
		r = nd->files->ops->xattr(nd->files, nd->node, key,
					  store_pinner(fs->store), buf, n);
	if (r == -ENODATA)
		return get_stored(nd, full, buf, n);
	if (r == -ERANGE || r == -ENOMEM || r == -ESTALE || r == -EBADMSG)
		return r;
	return r < 0 ? -EIO : r;
}

ssize_t fs_getxattr(struct fs *fs, uint64_t ino, const char *name, char *buf,
		    size_t n)
{
	struct node nd;
	ssize_t r;

	r = tree_node(fs->tree, ino, &nd);
	if (r < 0)
		return r;
	if (strncmp(name, PREFIX, PREFIX_LEN))
		return get_stored(&nd, name, buf, n);
	r = -ENODATA;
	if (ino == TREE_ROOT)
		r = get_of_root(fs, name + PREFIX_LEN, buf, n);
	if (r == -ENODATA)
		r = get_of_node(fs, &nd, name, buf, n);
	return r;
}

/* Only attributes stored in the source are listed.  Programs that copy attributes would
 * copy ours, too, which belong to the mount, change while they are read, and may be too
 * long for the target file system.  user.tensorfs.list names those. */
ssize_t fs_listxattr(struct fs *fs, uint64_t ino, char *buf, size_t n)
{
	const struct files_ops *ops;
	struct node nd;
	ssize_t want;
	int r = tree_node(fs->tree, ino, &nd);

	if (r < 0)
		return r;
	ops = nd.files ? nd.files->ops : NULL;
	if (!ops || !ops->stored_xattr_list)
		return 0;
	want = ops->stored_xattr_list(nd.files, nd.node, NULL, 0);
	if (want <= 0 || n == 0)
		return want > 0 ? want : 0;
	return (size_t)want > n
		       ? -ERANGE
		       : ops->stored_xattr_list(nd.files, nd.node, buf, n);
}
