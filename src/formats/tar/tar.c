/* SPDX-License-Identifier: BSD-2-Clause */
/* tar: scan all headers of an archive, one after the other. */
/*
 * The scanner reads headers and what belongs to them (long names, extended headers,
 * sparse maps), and passes over everything else; the input decides what that costs.
 *
 *	 x    records | header  data ...  | L    name | header  data | 0 0
 *	 ^    ^         ^       ^
 *	 |    |         |       its position goes into the table; passed over
 *	 |    |         tar_entry: the header, and what the context says
 *	 to the context ----^
 *
 * A block that should be a header but is damaged is passed over, and so are those
 * behind it up to the next header or the end of the input.  No byte is read twice,
 * so this costs no more than reading the archive.  A member whose bytes end early
 * is in the table, and reading it is an error.
 *
 * Blocks of zeros end an archive.  If a header follows them, another archive was
 * appended, and its members are added to those of the first.
 */
#include "formats/tar/tar.h"

#include <errno.h>
#include <string.h>

#include "base/number.h"
#include "formats/tar/private.h"

/* Limit in bytes of an extended header, a long name or a sparse map that is kept. */
#define KEEP_MAX ((uint64_t)64 << 20)
/* Bytes of zeros behind an archive that are searched for another archive. */
#define ZEROS_MAX ((uint64_t)64 << 20)
/* Bytes in front of the first header that are passed over at most. */
#define FRONT_MAX ((uint64_t)1 << 20)
/* so_far is called once for this many headers. */
enum { TELL_EVERY = 1024 };

struct scanner {
	struct input *in;
	struct members_builder *b;
	struct tar_scanned *out;
	void (*so_far)(void *ctx, uint64_t at);
	void *ctx;
	struct error *err;
	struct tar_context c;
	struct tar_text text;
	union {
		struct tar_header h;
		char bytes[TAR_BLOCK];
	} block;
	/* The block was only looked at: next_tar_block returns it again. */
	bool held;
	bool pax; /* extended headers were seen */
	bool ended;
	bool rest; /* the input ended within a block that was not zeros */
};

/* ---- blocks -------------------------------------------------------------- */

static uint64_t tar_position(const struct scanner *s)
{
	return s->in->at - (s->held ? TAR_BLOCK : 0);
}

/* The input failed.  Return its error if nothing was found, else note it and return
 * 0: the members found so far are shown. */
static int input_failed(struct scanner *s, const struct error *why)
{
	if (why->code == -ENOMEM || s->out->headers == 0) {
		if (s->err)
			*s->err = *why;
		return why->code;
	}
	members_damage(s->b, "damaged",
		       "nothing can be read behind byte %llu: %s",
		       (unsigned long long)s->in->at, why->text);
	s->out->damaged = s->ended = true;
	return 0;
}

static int cut_short(struct scanner *s, const char *what)
{
	members_damage(s->b, "cut short",
		       "the archive ends within %s (byte %llu)", what,
		       (unsigned long long)s->in->at);
	s->out->damaged = s->ended = true;
	return 0;
}

/* Read the next block.  Return 1, 0 if there is none, or -errno. */
static int next_tar_block(struct scanner *s)
{
	struct error why;
	size_t have = 0;

	if (s->held) {
		s->held = false;
		return 1;
	}
	while (have < TAR_BLOCK && !s->ended) {
		ssize_t n = input_read(s->in, s->block.bytes + have,
				       TAR_BLOCK - have, &why);

		if (n < 0)
			return input_failed(s, &why);
		if (n == 0)
			break;
		have += (size_t)n;
	}
	if (have == TAR_BLOCK)
		return 1;
	memset(s->block.bytes + have, 0, TAR_BLOCK - have);
	s->rest = !tar_is_zero(s->block.bytes);
	s->ended = true;
	return 0;
}

/* Pass over the data of a member.  Return 1, 0 if they end early, or -errno. */
static int pass_body(struct scanner *s, uint64_t size)
{
	uint64_t padded = size + (-size & (TAR_BLOCK - 1)), left = padded;
	struct error why;
	int64_t n;

	if (padded < size || (s->ended && size))
		return s->out->damaged ? 0 : cut_short(s, "a member");
	if (s->held && left) {
		s->held = false;
		left -= TAR_BLOCK;
	}
	n = left ? input_skip(s->in, left, &why) : 0;
	if (n < 0)
		return input_failed(s, &why);
	/* Padding that is missing at the end of the archive is not damage. */
	if (left - (uint64_t)n > padded - size)
		return cut_short(s, "a member");
	return 1;
}

/* Read the data of a header into s->text.  Return as pass_body; *kept is false if
 * it was too long and passed over. */
static int read_body(struct scanner *s, uint64_t size, bool *kept)
{
	tar_text_clear(&s->text);
	*kept = size <= KEEP_MAX;
	if (!*kept)
		return pass_body(s, size);
	/* Memory grows with the bytes that come, not with the size that the header
	 * claims. */
	while (size > 0) {
		size_t n = (size_t)min_u64(size, TAR_BLOCK);
		int r = next_tar_block(s);

		if (r == 0 && !s->out->damaged)
			return cut_short(s, "an extended header");
		if (r <= 0)
			return r;
		if (!tar_text_add(&s->text, s->block.bytes, n))
			return error_no_memory(s->err, "a tar header");
		size -= n;
	}
	return 1;
}

/* ---- headers about other headers ----------------------------------------- */

/* Note that a header that is too large is ignored.  Return 1. */
static int note_ignored_header(struct scanner *s, const char *what,
			       uint64_t size)
{
	members_note(s->b, "left out", "%s of %llu bytes: ignored", what,
		     (unsigned long long)size);
	return 1;
}

static int keep_long_name(struct scanner *s, char type)
{
	struct tar_text *to = type == 'L' ? &s->c.long_name : &s->c.long_link;

	tar_text_clear(to);
	if (!tar_text_add(to, s->text.at ? s->text.at : "",
			  s->text.at ? strlen(s->text.at) : 0))
		return error_no_memory(s->err, "a tar header");
	*(type == 'L' ? &s->c.has_name : &s->c.has_link) = true;
	return 1;
}

static int keep_pax_records(struct scanner *s, char type)
{
	struct tar_pax *p = type == 'g' ? &s->c.global : &s->c.local;

	s->pax = true;
	/* A member has one extended header: a second one replaces the first. */
	if (type != 'g')
		tar_pax_clear(p);
	if (s->text.n && tar_pax_records(p, s->text.at, s->text.n, s->b) < 0)
		return error_no_memory(s->err, "a tar header");
	/* Attributes and sparse maps in a global header are ignored: they cannot
	 * mean all members. */
	if (type == 'g') {
		p->xattr.n = 0;
		tar_text_clear(&p->bytes);
		tar_sparse_clear(&p->sparse);
	}
	return 1;
}

/* Handle a header that says something about other headers.  Return 1 if it was one,
 * 2 if not, 0 at the end of the input, or -errno. */
static int scan_extension(struct scanner *s)
{
	const char type = s->block.h.type;
	char label[sizeof s->block.h.name + 1], shown[TAR_SHOWN];
	int64_t size;
	bool kept;
	int r = tar_number(s->block.h.size, sizeof s->block.h.size, &size);

	if (!type || !strchr("LKxXgVMA", type))
		return 2;
	if (r < 0 || size < 0) {
		members_damage(s->b, "size",
			       "the size of a header of type '%c' is damaged",
			       type);
		s->out->damaged = true;
		return 1;
	}
	if (!strchr("VMA", type)) {
		r = read_body(s, (uint64_t)size, &kept);
		if (r <= 0)
			return r;
		if (!kept)
			return note_ignored_header(s, "an extended header",
						   (uint64_t)size);
		return type == 'L' || type == 'K' ? keep_long_name(s, type)
						  : keep_pax_records(s, type);
	}
	memcpy(label, s->block.h.name, sizeof label - 1);
	label[sizeof label - 1] = '\0';
	tar_shown(label, shown);
	if (type == 'V')
		members_note(s->b, "label", "the volume is called \"%s\"",
			     shown);
	if (type == 'M')
		members_left_out(s->b, "continued",
				 "\"%s\" is continued from another volume: "
				 "left out",
				 shown);
	if (type != 'A')
		tar_context_clear(&s->c);
	return pass_body(s, (uint64_t)size);
}

/* ---- members ------------------------------------------------------------- */

/* Read the sparse map in a header of type 'S' and in the blocks that continue it. */
static int read_sparse_blocks(struct scanner *s, struct tar_entry *e)
{
	int64_t size;
	bool more;
	int r = tar_sparse_header(&s->c.sparse, &s->block.h, &size, &more);

	if (!(s->c.local.set & PAX_REAL))
		e->real = (uint64_t)size;
	while (r == 0 && more) {
		r = next_tar_block(s);
		if (r == 0)
			s->c.sparse.bad = true;
		if (r <= 0)
			return r;
		r = tar_sparse_more(&s->c.sparse, s->block.bytes, &more);
	}
	return r < 0 ? error_no_memory(s->err, "a tar header") : 1;
}

/* Read the sparse map in front of the data. */
static int read_sparse_lines(struct scanner *s, struct tar_entry *e)
{
	struct tar_sparse_lines l = {0};
	int r = 0;

	while (r == 0) {
		if (e->stored < TAR_BLOCK) {
			s->c.sparse.bad = true;
			return 1;
		}
		r = next_tar_block(s);
		if (r == 0)
			s->c.sparse.bad = true;
		if (r <= 0)
			return r;
		e->stored -= TAR_BLOCK;
		r = tar_sparse_text(&s->c.sparse, &l, s->block.bytes,
				    TAR_BLOCK);
	}
	return r == -ENOMEM ? error_no_memory(s->err, "a tar header") : 1;
}

/*
 * Decide whether data follow a hard link or the directory of an old archive; set
 * e->stored to 0 if not.  In an archive with extended headers the size of a ustar
 * hard link is right.  Other writers stored a size and no data: then data follow
 * only if the next block is neither a header nor zeros, and never behind a hard
 * link of GNU tar or V7.
 */
static int decide_body(struct scanner *s, struct tar_entry *e,
		       enum tar_dialect dialect)
{
	bool link = e->m.kind == MEMBER_LINK;
	int r;

	if (e->stored == 0 || (link && dialect == TAR_USTAR && s->pax))
		return 1;
	if (!link || dialect == TAR_USTAR) {
		r = next_tar_block(s);
		if (r < 0)
			return r;
		s->held = r > 0;
		if (r > 0 && !tar_is_zero(s->block.bytes) &&
		    !tar_is_header(&s->block.h))
			return 1;
	}
	e->stored = 0;
	return 1;
}

static int scan_tar_member(struct scanner *s)
{
	struct tar_entry e;
	enum tar_dialect dialect = tar_dialect(&s->block.h);
	int r = tar_entry(&e, &s->c, &s->block.h, s->b);

	if (r == -EBADMSG) {
		s->out->damaged = true;
		tar_context_clear(&s->c);
		return 1;
	}
	if (r < 0)
		return error_no_memory(s->err, "a tar header");
	if (e.body == TAR_BODY_PERHAPS)
		r = decide_body(s, &e, dialect);
	else if (e.type == 'S')
		r = read_sparse_blocks(s, &e);
	else
		r = e.lines ? read_sparse_lines(s, &e) : 1;
	if (r < 0)
		return r;
	/* Add it even if its bytes end early: the archive had this member. */
	if (tar_entry_add(&e, &s->c, tar_position(s), s->b, s->err) < 0)
		return -ENOMEM;
	tar_context_clear(&s->c);
	return pass_body(s, e.stored);
}

/* ---- blocks that are not headers ----------------------------------------- */

/* Pass over blocks of zeros.  Return 1 if another archive follows, whose header is
 * in s->block, 0 if not, or -errno. */
static int pass_zeros(struct scanner *s)
{
	uint64_t from = tar_position(s) - TAR_BLOCK;
	int r;

	do {
		s->out->end = tar_position(s);
		r = s->out->end - from > ZEROS_MAX ? 0 : next_tar_block(s);
	} while (r > 0 && tar_is_zero(s->block.bytes));
	if (r <= 0)
		return r;
	if (!tar_is_header(&s->block.h)) {
		members_note(s->b, "trailing bytes",
			     "the bytes behind the archive's end at byte %llu "
			     "are not an archive: ignored",
			     (unsigned long long)s->out->end);
		return 0;
	}
	members_note(s->b, "concatenated",
		     "another archive follows at byte %llu: its members are "
		     "shown, too",
		     (unsigned long long)s->out->end);
	tar_context_clear(&s->c);
	tar_pax_clear(&s->c.global);
	s->pax = false;
	return 1;
}

/* Pass over what is not a header.  Return 1 if the next header was found and is in
 * s->block, 0 if not, or -errno. */
static int find_header(struct scanner *s)
{
	uint64_t from = tar_position(s) - TAR_BLOCK;
	int r;

	do {
		if (s->out->headers == 0 && tar_position(s) - from > FRONT_MAX)
			return 0;
		r = next_tar_block(s);
	} while (r > 0 && !tar_is_header(&s->block.h));
	members_damage(s->b, "damaged header",
		       "no header where there should be one, at byte %llu: %s "
		       "%llu bytes were passed over",
		       (unsigned long long)from,
		       r > 0 ? "the next one was found;" : "none follows;",
		       (unsigned long long)(tar_position(s) - from -
					    (r > 0 ? TAR_BLOCK : 0)));
	s->out->damaged = true;
	tar_context_clear(&s->c);
	return r;
}

/* ---- the whole archive --------------------------------------------------- */

static int scan_archive(struct scanner *s)
{
	bool zeros;
	int r;

	for (;;) {
		zeros = false;
		r = next_tar_block(s);
		if (r > 0 && tar_is_zero(s->block.bytes)) {
			zeros = true;
			r = pass_zeros(s);
		} else if (r > 0 && !tar_is_header(&s->block.h)) {
			r = find_header(s);
		}
		if (r <= 0)
			break;
		s->out->headers++;
		if (s->so_far && s->out->headers % TELL_EVERY == 0)
			s->so_far(s->ctx, s->in->at);
		r = scan_extension(s);
		if (r == 2)
			r = scan_tar_member(s);
		if (r <= 0)
			break;
	}
	if (r == 0 && s->rest && !zeros && !s->out->damaged)
		cut_short(s, "a header");
	if (r == 0 && s->out->headers && !zeros && !s->out->damaged)
		members_note(s->b, "no end",
			     "the archive has no end-of-archive mark: it may "
			     "be truncated");
	if (!zeros)
		s->out->end = tar_position(s);
	if (r == 0 && !s->out->headers && !zeros && s->in->at)
		r = error_set(s->err, -EBADMSG, "no tar header was found");
	return r;
}

int tar_scan(struct input *in, struct members_builder *b,
	     struct tar_scanned *out, void (*so_far)(void *ctx, uint64_t at),
	     void *ctx, struct error *err)
{
	struct scanner s = {.in = in,
			    .b = b,
			    .out = out,
			    .so_far = so_far,
			    .ctx = ctx,
			    .err = err};
	int r;

	*out = (struct tar_scanned){0};
	r = scan_archive(&s);
	tar_context_free(&s.c);
	free(s.text.at);
	return r;
}

int tar_probe(const unsigned char *head, size_t n)
{
	struct tar_header h;
	size_t at = 0;

	while (n - at >= TAR_BLOCK && tar_is_zero(head + at))
		at += TAR_BLOCK;
	/* Only zeros: an empty archive, unless the file goes on. */
	if (n - at < TAR_BLOCK)
		return at && n < TAR_PROBE ? 10 : 0;
	memcpy(&h, head + at, sizeof h);
	if (!tar_is_header(&h))
		return 0;
	if (at)
		return 30;
	return tar_dialect(&h) == TAR_V7 ? 60 : 95;
}
