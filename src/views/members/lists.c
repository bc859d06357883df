/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of files for programs that read one: paths, sizes, labels. */

/*
 * Files are in order of their paths, so the place of a line is the number that epochs/
 * has for the file.  Texts are made a block at a time (views/members/text.h).  The
 * length of a text is known after all lines were made once, at the first lookup of its
 * attributes.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "members/member_files.h"
#include "views/members/labels.h"
#include "views/members/table.h"
#include "views/members/text.h"

struct view {
	struct files files; /* first member */
	struct member_view_text text;
	struct member_views *b;
	const struct member_view_ops *row;
	const struct member_view_list *list;
	struct member_view_labels *labels; /* of file_list; else NULL */
	struct member_view_blocks *_Atomic blocks;
};

static struct view *lists_self(const struct files *f)
{
	return (struct view *)(uintptr_t)f;
}

static const struct view *lists_view_of_text(const struct member_view_text *t)
{
	return (const struct view *)((const char *)t -
				     offsetof(struct view, text));
}

/* ---- fields -------------------------------------------------------------- */

/* The fields of a line. */
struct file {
	uint64_t id, record, bytes;
	const char *path, *label;
	/* The file that has its bytes; NULL if the record is a file itself. */
	const char *source;
	uint64_t offset; /* in bytes; UINT64_MAX if it has none */
};

static int lists_file_of_line(const struct view *v, uint64_t i,
			      struct member_view_path *path, struct file *out,
			      struct error *err)
{
	const struct member_views_args *a = member_views_args(v->b);
	uint64_t node;

	out->id = i;
	out->record = v->list->at[i];
	node = member_view_node(v->b, out->record);
	if (member_view_path(v->b, out->record, path) < 0)
		return error_no_memory(err, "the path of a file");
	out->path = path->at;
	out->bytes = a->m->at[node].size;
	out->label = member_view_label(v->b, out->record);
	out->source = member_files_place(a->members, node, &out->offset);
	return 0;
}

/* Write a field of CSV, quoted where RFC 4180 requires it or a space could be lost. */
static void lists_put_csv(FILE *out, const char *text)
{
	size_t n = strlen(text);

	if (n && !text[strcspn(text, ",\"\r\n")] && *text != ' ' &&
	    text[n - 1] != ' ') {
		fputs(text, out);
		return;
	}
	if (!n)
		return;
	fputc('"', out);
	for (; *text; text++)
		fprintf(out, *text == '"' ? "\"\"" : "%c", *text);
	fputc('"', out);
}

/* ---- lines --------------------------------------------------------------- */

static int files_line(const struct member_view_text *t, uint32_t text,
		      uint64_t i, struct member_view_path *path, FILE *out,
		      struct error *err)
{
	(void)text;
	return member_view_put_path(lists_view_of_text(t)->b,
				    lists_view_of_text(t)->list->at[i], path,
				    out, err);
}

static int csv_line(const struct member_view_text *t, uint32_t text, uint64_t i,
		    struct member_view_path *path, FILE *out, struct error *err)
{
	struct file x;
	int r;

	(void)text;
	if (i == 0) {
		fputs("id,path,label,nbytes,source,offset\n", out);
		return 0;
	}
	r = lists_file_of_line(lists_view_of_text(t), i - 1, path, &x, err);
	if (r < 0)
		return r;
	fprintf(out, "%" PRIu64 ",", x.id);
	lists_put_csv(out, x.path);
	fputc(',', out);
	lists_put_csv(out, x.label);
	fprintf(out, ",%" PRIu64 ",", x.bytes);
	lists_put_csv(out, x.source ? x.source : "");
	fputc(',', out);
	if (x.offset != UINT64_MAX)
		fprintf(out, "%" PRIu64, x.offset);
	fputc('\n', out);
	return 0;
}

static int jsonl_line(const struct member_view_text *t, uint32_t text,
		      uint64_t i, struct member_view_path *path, FILE *out,
		      struct error *err)
{
	struct file x;
	int r = lists_file_of_line(lists_view_of_text(t), i, path, &x, err);

	(void)text;
	if (r < 0)
		return r;
	fprintf(out, "{\"id\": %" PRIu64 ", \"path\": ", x.id);
	json_put_text(out, x.path);
	fputs(", \"label\": ", out);
	json_put_text(out, x.label);
	fprintf(out, ", \"nbytes\": %" PRIu64 ", \"source\": ", x.bytes);
	if (x.source)
		json_put_text(out, x.source);
	else
		fputs("null", out);
	fputs(", \"offset\": ", out);
	if (x.offset != UINT64_MAX)
		fprintf(out, "%" PRIu64 "}\n", x.offset);
	else
		fputs("null}\n", out);
	return 0;
}

/* Write the path and the number of the label; nothing for a file without a label. */
static int labelled_line(const struct member_view_text *t, uint32_t text,
			 uint64_t i, struct member_view_path *path, FILE *out,
			 struct error *err)
{
	const struct view *v = lists_view_of_text(t);
	uint32_t label;
	int r;

	(void)text;
	if (!member_view_labels_find(v->labels, v->b, v->list->at[i], &label))
		return 0;
	r = member_view_put_path(v->b, v->list->at[i], path, NULL, err);
	if (r == 0)
		fprintf(out, "%s %" PRIu32 "\n", path->at, label);
	return r;
}

static int metadata_line(const struct member_view_text *t, uint32_t text,
			 uint64_t i, struct member_view_path *path, FILE *out,
			 struct error *err)
{
	struct file x;
	int r;

	(void)text;
	if (i == 0) {
		fputs("file_name,label\n", out);
		return 0;
	}
	r = lists_file_of_line(lists_view_of_text(t), i - 1, path, &x, err);
	if (r < 0)
		return r;
	lists_put_csv(out, x.path);
	fputc(',', out);
	lists_put_csv(out, x.label);
	fputc('\n', out);
	return 0;
}

static uint64_t lists_count_files(const struct member_view_text *t,
				  uint32_t text)
{
	(void)text;
	return lists_view_of_text(t)->list->n;
}

static uint64_t lists_count_with_head(const struct member_view_text *t,
				      uint32_t text)
{
	return 1 + lists_count_files(t, text);
}

static void lists_describe(const struct member_view_text *t, uint32_t text,
			   char *buf, size_t n)
{
	(void)text;
	snprintf(buf, n, "%s: %s",
		 member_views_args(lists_view_of_text(t)->b)->source,
		 lists_view_of_text(t)->row->top);
}

/* ---- files --------------------------------------------------------------- */

static int lists_find_blocks(struct view *v, struct error *err)
{
	struct member_view_blocks *none = NULL, *made;

	if (atomic_load(&v->blocks))
		return 0;
	made = member_view_blocks_new(&v->text, 0, err);
	if (!made)
		return err ? err->code : -EIO;
	if (!atomic_compare_exchange_strong(&v->blocks, &none, made))
		free(made);
	return 0;
}

static bool list_file_attr_is_slow(const struct files *f, uint64_t node)
{
	(void)node;
	return !atomic_load(&lists_self(f)->blocks);
}

static int list_file_attr(struct files *f, uint64_t node, struct pinner *p,
			  struct attr *out, struct error *err)
{
	struct view *v = lists_self(f);
	int r = node ? -ENOENT : lists_find_blocks(v, err);

	(void)p;
	if (r < 0)
		return r;
	member_view_attr(v->b, S_IFREG, out);
	out->size = member_view_blocks_size(atomic_load(&v->blocks));
	return 0;
}

static int list_file_prepare(struct files *f, uint64_t node, uint64_t off,
			     uint64_t len, struct error *err)
{
	(void)node;
	(void)off;
	(void)len;
	return lists_find_blocks(lists_self(f), err);
}

static int list_file_map(const struct files *f, uint64_t node, uint64_t off,
			 struct plan *p, struct error *err)
{
	const struct view *v = lists_self(f);
	const struct member_view_blocks *blocks = atomic_load(&v->blocks);

	if (node || !blocks)
		return error_set(err, -EIO, "%s was not prepared", v->row->top);
	member_view_blocks_map(&v->text, 0, blocks, off, p);
	return 0;
}

static uint64_t list_file_count(const struct files *f, uint64_t dir)
{
	(void)f;
	(void)dir;
	return 0;
}

static int list_file_find(const struct files *f, uint64_t dir, const char *name,
			  uint64_t *node)
{
	(void)f;
	(void)dir;
	(void)name;
	(void)node;
	return -ENOENT;
}

static int list_file_parent(const struct files *f, uint64_t node, uint64_t *dir)
{
	(void)f;
	(void)node;
	(void)dir;
	return -ENOENT;
}

static void list_file_free(struct files *f)
{
	struct view *v = lists_self(f);

	free(atomic_load(&v->blocks));
	free(v->labels);
	free(v);
}

static const struct files_ops view_ops = {
	.count = list_file_count,
	.find = list_file_find,
	.parent = list_file_parent,
	.attr_is_slow = list_file_attr_is_slow,
	.attr = list_file_attr,
	.prepare = list_file_prepare,
	.map = list_file_map,
	.free = list_file_free,
};

/* ---- views --------------------------------------------------------------- */

static bool lists_fit(const struct member_views_args *a)
{
	return a->m->counts[0] > 0;
}

static uint64_t lists_numbers(const struct member_views_args *a)
{
	(void)a;
	return 0;
}

static int lists_make(const struct member_view_ops *row,
		      const struct member_view_text_ops *ops,
		      struct member_views *b, struct files **out,
		      struct error *err)
{
	struct view *v = calloc(1, sizeof *v);
	int r;

	if (!v)
		return error_no_memory(err, "a list of files");
	v->files.ops = &view_ops;
	v->b = b;
	v->row = row;
	member_view_text_init(&v->text, ops);
	r = member_view_list(b, &v->list, err);
	if (r == 0 && row == &member_view_file_list &&
	    !(v->labels = member_view_labels_new(b, v->list)))
		r = error_no_memory(err, "the labels of file_list");
	if (r < 0)
		free(v);
	else
		*out = &v->files;
	return r;
}

/* Define a view: its identifier, name for option views=, file name, summary, lines. */
#define LIST(id, called, file, about, count_of, line_of)                 \
	static int make_##id(struct member_views *b, struct files **out, \
			     struct error *err)                          \
	{                                                                \
		static const struct member_view_text_ops ops = {         \
			count_of, line_of, lists_describe};              \
		return lists_make(&member_view_##id, &ops, b, out, err); \
	}                                                                \
	const struct member_view_ops member_view_##id = {                \
		.name = called,                                          \
		.summary = about,                                        \
		.top = file,                                             \
		.type = S_IFREG,                                         \
		.fits = lists_fit,                                       \
		.numbers = lists_numbers,                                \
		.make = make_##id,                                       \
	};
LIST(files_txt, "lists", "files.txt", "files.txt, the paths of all files",
     lists_count_files, files_line)
LIST(manifest_csv, "lists", "manifest.csv",
     "manifest.csv and .jsonl: path, label, size and place of each file",
     lists_count_with_head, csv_line)
LIST(manifest_jsonl, "lists", "manifest.jsonl",
     "manifest.csv and .jsonl: path, label, size and place of each file",
     lists_count_files, jsonl_line)
LIST(file_list, "lists", "file_list", "file_list, paths and labels for DALI",
     lists_count_files, labelled_line)
LIST(metadata, "lists", "metadata.csv",
     "metadata.csv, names and labels for Hugging Face", lists_count_with_head,
     metadata_line)
