/* SPDX-License-Identifier: BSD-2-Clause */
/* Sources inside sources: grafts that open a format when they are first looked up. */
#include "formats/registry/nest.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/vec.h"
#include "formats/bundles.h"
#include "formats/hdf5/hdf5.h"
#include "formats/registry/nest_around.h"
#include "formats/zarr/zarr.h"
#include "tree/graft.h"

/*
 * Which members are sources?  Looking into each of a million members would cost too much,
 * so only those with a likely name are considered (nest_likely).  If a member's bytes lie
 * in the file as they are, its first bytes are read as well, for PROBES_MAX members at
 * most.  If they would have to be decoded, the name alone decides, and a member that is
 * not a source reports that when it is looked up.
 *
 * Archives are opened when they are looked up.  HDF5 files are opened at once, because
 * libhdf5 is trusted only in processes that are forked before the tree is served
 * (formats/hdf5/worker/worker.c); those in archives that are opened later stay files.
 */
#define PROBES_MAX 4096
/* A source inside this many others shows the sources in it as files.  An archive can
 * contain itself, and each level may decode windows of the level above several times:
 * without the limit the recursion would have no end. */
#define NEST_DEPTH 16
#define PROBE_BYTES SOURCE_HEAD

struct members_nest {
	struct nest nest; /* first member */
	struct handles *handles;
	struct pinner *pinner;
	struct archive_options archive;
	struct view_options views;
	char *prefix;
	struct nest_table table; /* the members that may be sources */
	struct source_kept kept; /* members that were copied to memory */
	char *path;              /* of the archive, for error sentences */
};

/* A source: a member, or a file or directory on disk, of which only `path` is used. */
struct nested {
	struct graft graft; /* first member */
	struct nest_around around;
	struct members_nest *nest; /* borrowed */
	char *path; /* for error sentences; on disk, the path to open */
	bool is_file;
	struct backing bytes;
	const struct source_ops *ops; /* by its first bytes, or NULL */
	struct source *source;        /* NULL until it is open */
	bool tried; /* opening was tried; eager sources are tried only once */
};

static void members_nest_close(struct nest *nest)
{
	struct members_nest *n = (struct members_nest *)nest;

	vec_free(&n->nest.shown);
	vec_free(&n->kept.v);
	free(n->prefix);
	free(n->path);
	free(n);
}

static struct members_nest *members_nest_new(const struct source_args *a)
{
	struct members_nest *n = calloc(1, sizeof *n);

	if (!n)
		return NULL;
	n->nest.ops = &nest_in_members;
	n->handles = a->handles;
	n->pinner = a->pinner;
	n->archive = *a->archive;
	n->archive.offset = 0;
	n->archive.subdir = NULL;
	n->archive.progress = NULL;
	n->archive.depth++;
	if (n->archive.depth >= NEST_DEPTH)
		n->archive.nest = NULL;
	n->views = a->views;
	n->path = strdup(a->path ? a->path : "");
	n->prefix = a->prefix ? strdup(a->prefix) : NULL;
	if (n->path && (n->prefix || !a->prefix))
		return n;
	members_nest_close(&n->nest);
	return NULL;
}

int nest_open_apart(struct graft *g, struct source **source, struct tree **tree,
		    struct error *err)
{
	struct nested *x = (struct nested *)g;
	struct source_args a = {
		.path = x->path,
		.inside = x->is_file ? NULL : &x->bytes,
		.like = &g->attr,
		.around = x->is_file ? NULL : &x->around.is,
		.handles = x->nest->handles,
		.pinner = x->nest->pinner,
		.archive = &x->nest->archive,
		.tree = tree_builder_new(),
		.views = x->nest->views,
		.prefix = x->nest->prefix,
	};
	int r;

	*source = NULL;
	*tree = NULL;
	if (g->eager && x->tried) {
		tree_builder_free(a.tree);
		*err = g->failure;
		return err->code;
	}
	x->tried = true;
	if (!a.tree)
		return error_no_memory(err,
				       "the tree of a source in an archive");
	r = source_open(&a, source, err);
	if (r == 0)
		r = tree_finish(a.tree, tree, err);
	tree_builder_free(a.tree);
	if (r == 0)
		r = bundles_add(*tree, err);
	if (r < 0) {
		tree_free(*tree);
		*tree = NULL;
		source_close(*source);
		*source = NULL;
	}
	return r;
}

void nest_inside(const struct graft *g, struct nest_inside *out)
{
	const struct nested *x = (const struct nested *)g;

	*out = (struct nest_inside){x->path, x->bytes.size, x->ops, x->source};
}

static int nested_open(struct graft *g, struct tree **out, struct error *err)
{
	struct nested *x = (struct nested *)g;
	struct source *source;
	int r = nest_open_apart(g, &source, out, err);

	if (r < 0)
		return r;
	/* A source is open already if its tree could not be numbered before. */
	source_close(x->source);
	x->source = source;
	return 0;
}

static void nested_free(struct graft *g)
{
	struct nested *x = (struct nested *)g;

	source_close(x->source);
	free(x->path);
	free(x);
}

static const struct graft_ops nested_ops = {.open = nested_open,
					    .free = nested_free};

/* ---- which --------------------------------------------------------------- */

enum looks { LOOKS_NOTHING, LOOKS_ARCHIVE, LOOKS_HDF5 };

static const char *const archive_suffixes[] = {
	".tar",    ".tar.gz", ".tgz",      ".tar.bz2", ".tbz2",     ".tbz",
	".tar.xz", ".txz",    ".tar.zst",  ".tzst",    ".tar.zstd", ".tar.lz4",
	".tlz4",   ".sqfs",   ".squashfs", ".sqsh",    ".squash",   ".sfs",
	".sif",    ".snap",   ".zip",      ".zspy",    NULL};
/* Programs that use directories of such files read them themselves, so they are
 * directories only if nested sources were asked for. */
static const char *const sample_suffixes[] = {".npz", NULL};
static const char *const hdf5_suffixes[] = {
	".h5", ".hdf5", ".hdf", ".he5", ".hspy", ".nxs", ".nx", ".nc4", NULL};

static bool has_suffix(const char *name, const char *const *suffixes)
{
	size_t n = strlen(name);

	for (const char *const *s = suffixes; *s; s++) {
		size_t len = strlen(*s);

		if (n > len && !strcasecmp(name + n - len, *s))
			return true;
	}
	return false;
}

bool nest_likely(const char *name)
{
	return has_suffix(name, archive_suffixes) ||
	       has_suffix(name, sample_suffixes) ||
	       has_suffix(name, hdf5_suffixes);
}

/* A member that may be shown as a directory. */
struct candidate {
	char *path; /* NULL: out of memory */
	struct backing bytes;
	const struct source_ops *ops; /* by its first bytes, or NULL */
};

/* Judge what a member is by its first bytes or, unless `read`, by its name. */
static enum looks looks_like(struct candidate *c, bool read)
{
	unsigned char head[PROBE_BYTES];
	size_t n = c->bytes.size < sizeof head ? (size_t)c->bytes.size
					       : sizeof head;

	if (!read)
		return has_suffix(c->path, hdf5_suffixes) ? LOOKS_HDF5
							  : LOOKS_ARCHIVE;
	if (backing_read(&c->bytes, 0, head, n, NULL) < 0)
		return LOOKS_NOTHING;
	c->ops = source_probe(head, n, c->path);
	if (!c->ops && has_suffix(c->path, hdf5_suffixes) &&
	    hdf5_is_behind(&c->bytes))
		c->ops = &source_hdf5;
	return !c->ops           ? LOOKS_NOTHING
	       : c->ops->archive ? LOOKS_ARCHIVE
				 : LOOKS_HDF5;
}

/* Return true if member i is below `root`, has a likely name, and only one name, because
 * a directory cannot have several. */
static bool is_candidate(const struct members_nest *nest,
			 const struct members *m, uint64_t i, uint64_t root)
{
	const struct member_record *r = &m->at[i];
	const char *name = member_name(m, r);
	uint64_t up;

	if (!S_ISREG(r->mode) || r->kind == MEMBER_LINK ||
	    member_common(m, r)->nlink != 1 || !r->size || !nest_likely(name))
		return false;
	if (!nest->archive.nest && has_suffix(name, sample_suffixes))
		return false;
	for (up = i; up != root && up != 0; up = m->at[up].parent)
		;
	return up == root;
}

/* Set the attributes of a directory to those of the member that it stands for. */
static void nest_directory_attr(const struct members *m,
				const struct member_record *r, struct attr *out)
{
	const struct member_common *common = member_common(m, r);

	memset(out, 0, sizeof *out);
	out->mode = S_IFDIR | (r->mode & 0666) | ((r->mode & 0444) >> 2);
	out->nlink = 1; /* the number of subdirectories is not known */
	out->mtime = member_mtime(m, r);
	out->nsec = member_nsec(r);
	out->uid = common->uid;
	out->gid = common->gid;
	out->stored = true;
}

static int nest_add_graft(struct members_nest *n, struct tree_builder *b,
			  uint32_t dir, const struct members *m, uint64_t i,
			  uint64_t root, const struct candidate *c, bool eager,
			  struct error *err)
{
	const struct member_record *r = &m->at[i];
	struct nested *x = c->path ? calloc(1, sizeof *x) : NULL;
	int code;

	if (!x || (S_ISREG(r->mode) && !vec_push(&n->nest.shown, i))) {
		free(x);
		free(c->path);
		return error_no_memory(err, "a source in an archive");
	}
	x->graft.ops = &nested_ops;
	nest_directory_attr(m, r, &x->graft.attr);
	x->graft.eager = eager;
	x->nest = n;
	nest_around_init(&x->around, &n->table, &n->archive, &n->kept, n->path,
			 i);
	x->path = c->path;
	x->is_file = r->kind == MEMBER_FILE || r->kind == MEMBER_DIR;
	x->bytes = c->bytes;
	x->ops = c->ops;
	code = tree_add_graft(b, dir, r->parent == root ? 0 : r->parent, i,
			      member_name(m, r), &x->graft);
	return code < 0 ? error_no_memory(err, "a source in an archive") : 0;
}

static char *nest_member_path(const struct members_nest *n,
			      const struct members *m, uint64_t i,
			      const char *path, const struct backing *bytes)
{
	char inside[1024];
	char *text;

	if (m->at[i].kind == MEMBER_FILE)
		return strdup(handles_path(n->handles, bytes->file));
	members_path(m, i, inside, sizeof inside);
	return asprintf(&text, "%s:%s", path, inside) < 0 ? NULL : text;
}

/* Set c->path if member i is a Zarr store on disk, whose directory was not read; else to
 * NULL.  `dir` is the path of the source. */
static int find_store(const struct members *m, uint64_t i, const char *dir,
		      struct candidate *c, struct error *err)
{
	const struct member_record *r = &m->at[i];
	cleanup_free char *path = NULL;
	char inside[PATH_MAX];

	*c = (struct candidate){.ops = &source_zarr};
	if (r->kind != MEMBER_DIR || r->size)
		return 0;
	members_path(m, i, inside, sizeof inside);
	if (asprintf(&path, "%s/%s", dir, inside) < 0) {
		path = NULL;
		return error_no_memory(err, "the path of a Zarr store");
	}
	if (zarr_is_store(path))
		c->path = realpath(path, NULL); /* NULL if deleted */
	return 0;
}

/* Add grafts for the Zarr stores among the subdirectories. */
static int nest_stores(struct members_nest *n, struct tree_builder *b,
		       uint32_t dir, const struct members *m, const char *path,
		       struct error *err)
{
	int r = 0;

	for (uint64_t i = 1; i < m->n && r == 0; i++) {
		struct candidate c;

		r = find_store(m, i, path, &c, err);
		if (r == 0 && c.path)
			r = nest_add_graft(n, b, dir, m, i, 0, &c, false, err);
	}
	return r;
}

static int nest_add_members(struct members_nest *n, struct tree_builder *b,
			    uint32_t dir, uint64_t root, struct error *err)
{
	const struct nest_table *t = &n->table;
	const struct members *m = t->m;
	unsigned probes = 0;
	int r = t->n_volumes ? 0 : nest_stores(n, b, dir, m, n->path, err);

	for (uint64_t i = 1; i < m->n && r == 0; i++) {
		struct candidate c = {0};
		enum looks looks;

		if (!is_candidate(n, m, i, root) ||
		    (m->at[i].kind != MEMBER_FILE &&
		     member_common(m, &m->at[i])->volume >= t->n_volumes))
			continue;
		c.bytes = member_backing(n->handles, n->pinner, m, i,
					 t->volumes, t->files);
		c.path = nest_member_path(n, m, i, n->path, &c.bytes);
		looks = c.path ? looks_like(&c, backing_is_plain(&c.bytes) &&
							probes++ < PROBES_MAX)
			       : LOOKS_ARCHIVE;
		/* libhdf5 must not read files in this process once threads run. */
		if (looks == LOOKS_NOTHING ||
		    (looks == LOOKS_HDF5 && source_isolated())) {
			free(c.path);
			continue;
		}
		r = nest_add_graft(n, b, dir, m, i, root, &c,
				   looks == LOOKS_HDF5, err);
	}
	return r;
}

static int members_nest_open(struct nest **out, const struct source_args *a,
			     const struct members *m,
			     const struct volume *volumes, unsigned n_volumes,
			     struct files *files, uint64_t root,
			     struct error *err)
{
	struct members_nest *n = members_nest_new(a);
	int r;

	*out = NULL;
	if (!n)
		return error_no_memory(err, "the sources in an archive");
	n->table = (struct nest_table){n->handles, n->pinner, m,
				       volumes,    n_volumes, files};
	r = nest_add_members(n, a->tree, a->dir, root, err);
	if (r < 0)
		members_nest_close(&n->nest);
	else
		*out = &n->nest;
	return r;
}

const struct nest_ops nest_in_members = {
	.open = members_nest_open,
	.close = members_nest_close,
};
