/* SPDX-License-Identifier: BSD-2-Clause */
/* Open an archive: load its index or scan it, then publish its tree. */
#include "formats/archive/archive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "formats/archive/npy_views.h"

/*
 * An archive is opened in the same steps whatever its format is:
 *
 *	load the index            if it exists and is valid, its table is used
 *	else scan                 the format reads the archive once and makes the table
 *	save the index            for the next mount; a failure is only logged
 *	publish                   a directory of the tree shows the table
 *
 * Refused paths, links to nothing and damage are notes in the table, so that each
 * mount logs them, also one that uses the index.
 */

/* Larger sections (states of decoders) stay in the index file until they are
 * needed, in bytes. */
#define LAZY (UINT64_C(4) << 20)
/* Options that change the table. */
#define OPTION_VERSIONS 1

void archive_progress(const struct archive *a, uint64_t done)
{
	if (a->options && a->options->progress)
		a->options->progress(a->options->progress_ctx, a->path, done,
				     a->stored.size);
}

void archive_close(struct source *source)
{
	struct archive *a = (struct archive *)source;

	if (!a)
		return;
	if (a->volume.blocks)
		squashfs_blocks_free(a->volume.blocks);
	if (a->nest)
		a->nest->ops->close(a->nest);
	members_free(&a->members);
	stream_free(a->stream);
	zip_free(a->zip);
	free(a->path);
	free(a->format);
	free(a->damage);
	free(a->index);
	free(a);
}

void archive_usage(const struct source *source, uint64_t *bytes,
		   uint64_t *inodes)
{
	const struct archive *a = (const struct archive *)source;

	*bytes = a->stored.size;
	*inodes = a->members.n - a->members.counts[3] - 1;
}

/* ---- the file ------------------------------------------------------------ */

int archive_find_bytes(struct archive *a, const struct source_args *args,
		       struct error *err)
{
	uint64_t offset = args->archive ? args->archive->offset : 0;
	cleanup_free char *real = NULL;
	struct stat st;
	uint32_t file;

	if (args->inside) {
		a->stored = *args->inside;
		a->mtime = args->like->mtime;
		a->mode = args->like->mode & 0777;
		a->uid = args->like->uid;
		a->gid = args->like->gid;
		return 0;
	}
	real = realpath(args->path, NULL);
	if (!real || stat(real, &st) < 0)
		return error_errno(err, -errno, "%s", args->path);
	a->mtime = st.st_mtime;
	a->mode = st.st_mode & 0777;
	a->uid = st.st_uid;
	a->gid = st.st_gid;
	file = handles_add(args->handles, real);
	if (file == UINT32_MAX)
		return error_no_memory(err, "the path of the archive");
	return backing_file(&a->stored, args->handles, args->pinner, file,
			    offset, err);
}

/* ---- index --------------------------------------------------------------- */

static void archive_index_key(const struct archive *a, struct index_key *key)
{
	key->source = &a->stored;
	key->path = a->inside ? NULL : a->path;
	key->maker = a->kind->maker;
	key->options = a->options->versions ? OPTION_VERSIONS : 0;
}

/* Free what was loaded from an index that turned out to be damaged. */
static void forget_archive_index(struct archive *a, struct index *x)
{
	stream_free(a->stream);
	a->stream = NULL;
	zip_free(a->zip);
	a->zip = NULL;
	free(a->format);
	a->format = NULL;
	free(a->damage);
	a->damage = NULL;
	a->is_tar = false;
	index_free(x);
}

/* Load the index.  Return 0 if the archive is complete now, -ENOENT or -ESTALE if
 * there is no valid index, -ENOMEM, or another error: the index is damaged. */
static int load_archive_index(struct archive *a, struct error *err)
{
	const struct index_options where = {a->options->index,
					    a->options->looks};
	struct index_key key;
	struct index *x;
	char *path;
	int r;

	archive_index_key(a, &key);
	r = index_load(&key, &where, LAZY, &x, err);
	if (r < 0)
		return r;
	path = strdup(index_path(x));
	r = path ? 0 : error_no_memory(err, "the path of an index file");
	if (r == 0 && a->kind->load)
		r = a->kind->load(a, x, err);
	if (r == 0)
		r = members_of_index(&a->members, x, err);
	if (r < 0) {
		free(path);
		error_prefix(err, "%s: ", index_path(x));
		forget_archive_index(a, x);
		return r == -ENOMEM ? r : -EBADMSG;
	}
	a->index = path;
	a->indexed = true;
	log_debug(DEBUG_ARCHIVE, "%s: index %s", a->path, index_path(x));
	return 0;
}

int archive_save_index(struct archive *a, struct error *err)
{
	struct index_section s[INDEX_SECTIONS_MAX];
	const struct index_options where = {a->options->index,
					    a->options->looks};
	unsigned n = members_sections(&a->members, s);
	struct index_key key;

	if (a->kind->sections)
		n += a->kind->sections(a, s + n);
	archive_index_key(a, &key);
	return index_save(&key, &where, s, n, &a->index, err);
}

static void save_archive_index(struct archive *a)
{
	struct error err = {0};

	if (archive_save_index(a, &err) < 0) {
		/* If the user chose where the index is, a failure is a warning. */
		if (a->options->index)
			log_warn("%s: no index was saved: %s", a->path,
				 err.text);
		else
			log_info("%s: no index was saved: %s", a->path,
				 err.text);
	} else if (a->index) {
		log_debug(DEBUG_ARCHIVE, "%s: saved %s", a->path, a->index);
	}
}

/* ---- opening ------------------------------------------------------------- */

static int fill_member_table(struct archive *a, struct error *err)
{
	const struct members_options o = {a->options->versions};
	struct error why = {0};
	int r = a->inside ? -ENOENT : load_archive_index(a, &why);

	if (r == 0)
		return 0;
	if (r == -ENOMEM)
		return error_set(err, r, "%s", why.text);
	if (r != -ENOENT && r != -ESTALE)
		log_info("%s: rebuilding its index: %s", a->path, why.text);
	r = a->kind->scan(a, &o, err);
	if (r == 0 && !a->inside)
		save_archive_index(a);
	return r;
}

/* Set a->volume: ranges of members are positions in the decoded stream, where there
 * is one. */
static int find_volume(struct archive *a, struct error *err)
{
	a->volume.backing = a->stored;
	if (a->stream) {
		a->volume.backing.stream = a->stream;
		a->volume.backing.pos = 0;
		a->volume.backing.size = stream_size(a->stream);
	}
	if (a->zip)
		a->volume = zip_volume(a->zip);
	if (a->members.n_blocks)
		return squashfs_blocks_new(&a->volume.blocks, &a->members,
					   &a->stored, &a->info, err);
	return 0;
}

void archive_log_notes(const struct members *m, const char *path)
{
	const char *at = m->notes, *end = at ? at + m->notes_size : NULL;

	while (at && at < end) {
		const char *line = memchr(at, '\n', (size_t)(end - at));
		size_t n = line ? (size_t)(line - at) : (size_t)(end - at);

		log_warn("%s%s%.*s", path ? path : "", path ? ": " : "",
			 (int)(n < 400 ? n : 400), at);
		at += n + 1;
	}
}

int archive_load(const struct archive_kind *kind,
		 const struct source_args *args, struct archive **out,
		 struct error *err)
{
	static const struct archive_options none;
	struct archive *a = calloc(1, sizeof *a);
	int r;

	*out = NULL;
	if (!a)
		return error_no_memory(err, "the archive");
	a->source.ops = kind->ops;
	a->kind = kind;
	a->inside = args->inside != NULL;
	a->options = args->archive ? args->archive : &none;
	a->versions = a->options->versions;
	a->path = strdup(args->path);
	r = a->path ? archive_find_bytes(a, args, err)
		    : error_no_memory(err, "the path of the archive");
	if (r == 0)
		r = fill_member_table(a, err);
	if (r == 0)
		r = find_volume(a, err);
	if (r < 0) {
		if (!strstr(err->text, args->path))
			error_prefix(err, "%s: ", args->path);
		archive_close(&a->source);
		return r;
	}
	archive_log_notes(&a->members, a->path);
	if (a->damage)
		log_warn("%s", a->damage);
	a->options = NULL;
	*out = a;
	return 0;
}

int archive_scan_again(const struct archive *a, const struct archive_options *o,
		       struct archive **out, struct error *err)
{
	const struct members_options mo = {a->versions};
	struct archive *b = calloc(1, sizeof *b);
	int r;

	*out = NULL;
	if (!b || !(b->path = strdup(a->path))) {
		free(b);
		return error_no_memory(err, "scanning the archive again");
	}
	b->source.ops = a->source.ops;
	b->kind = a->kind;
	b->stored = a->stored;
	b->mtime = a->mtime;
	b->mode = a->mode;
	b->uid = a->uid;
	b->gid = a->gid;
	b->versions = a->versions;
	b->options = o;
	r = b->kind->scan(b, &mo, err);
	b->options = NULL;
	if (r < 0)
		archive_close(&b->source);
	else
		*out = b;
	return r;
}

int archive_show_nested(struct nest **out, const struct nest_ops *ops,
			const struct source_args *args, const struct members *m,
			const struct volume *volumes, unsigned n,
			struct files *f, uint64_t root, struct error *err)
{
	int r = ops->open(out, args, m, volumes, n, f, root, err);

	if (r == 0)
		member_views_hide(f, (*out)->shown.at, (*out)->shown.n);
	return r;
}

int archive_files(struct files **out, const struct source_args *args,
		  const struct members *m, const struct volume *volumes,
		  unsigned n, uint64_t root, bool tar, struct error *err)
{
	struct member_views_args a = {.m = m,
				      .root = root,
				      .source = args->path ? args->path
							   : "a union",
				      .tar = tar};
	int r = member_files_new(&a.members, m, volumes, n, root, err);

	*out = NULL;
	if (args->archive)
		a.options = args->archive->member_views;
	if (r == 0)
		r = member_views_new(out, &a, err);
	if (r < 0)
		return r;
	r = npy_views_add(args, m, volumes, n, root, *out, err);
	if (r < 0)
		(*out)->ops->free(*out);
	return r;
}

int archive_load_as(const struct source_ops *ops, const struct source_args *a,
		    struct source **out, struct error *err)
{
	struct archive *archive;
	int r = ops->archive ? archive_load(ops->archive, a, &archive, err)
			     : error_set(err, -ENOTSUP, "%s: not an archive",
					 a->path);

	*out = r == 0 ? &archive->source : NULL;
	return r;
}

/* Find the record that `subdir` names, without following links. */
static int find_subdir(const struct members *m, const char *subdir,
		       uint64_t *root, struct error *err)
{
	cleanup_free char *copy = strdup(subdir ? subdir : "");
	char *save = NULL;

	*root = 0;
	if (!copy)
		return error_no_memory(err, "the path in subdir=");
	for (char *part = strtok_r(copy, "/", &save); part;
	     part = strtok_r(NULL, "/", &save)) {
		if (!strcmp(part, "."))
			continue;
		if (members_find(m, *root, part, root) < 0)
			return error_set(err, -ENOENT,
					 "there is no directory '%s' in it "
					 "(subdir=)",
					 subdir);
	}
	return m->at[*root].kind == MEMBER_DIR
		       ? 0
		       : error_set(err, -ENOTDIR,
				   "'%s' is not a directory (subdir=)", subdir);
}

/* Return true for a compressed file that is not a tar. */
static bool holds_one_file(const struct archive *a)
{
	return a->stream && !a->is_tar;
}

int archive_publish(struct archive *a, const struct source_args *args,
		    struct source **out, struct error *err)
{
	const struct archive_kind *kind = a->kind;
	struct files *f;
	uint64_t root;
	int r = find_subdir(&a->members,
			    args->archive ? args->archive->subdir : NULL, &root,
			    err);

	*out = NULL;
	if (r == 0)
		r = holds_one_file(a)
			    ? member_files_new(&f, &a->members, &a->volume, 1,
					       root, err)
			    : archive_files(&f, args, &a->members, &a->volume,
					    1, root,
					    kind == &archive_tar ||
						    kind == &archive_stream,
					    err);
	if (r < 0) {
		error_prefix(err, "%s: ", args->path);
		archive_close(&a->source);
		return r;
	}
	tree_set_files(args->tree, args->dir, f);
	if (args->archive && args->archive->nest)
		r = archive_show_nested(&a->nest, args->archive->nest, args,
					&a->members, &a->volume, 1, f, root,
					err);
	if (r < 0) {
		archive_close(&a->source);
		return r;
	}
	*out = &a->source;
	return 0;
}

int archive_open(const struct archive_kind *kind,
		 const struct source_args *args, struct source **out,
		 struct error *err)
{
	struct archive *a;
	int r = archive_load(kind, args, &a, err);

	*out = NULL;
	return r < 0 ? r : archive_publish(a, args, out, err);
}
