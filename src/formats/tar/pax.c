/* SPDX-License-Identifier: BSD-2-Clause */
/* pax records, such as "27 mtime=1700000000.125\n", one after the other (POSIX.1
 * pax, "pax Extended Header"). */
#include <errno.h>
#include <string.h>

#include "base/number.h"
#include "formats/tar/private.h"

void tar_pax_clear(struct tar_pax *p)
{
	p->set = p->dropped = 0;
	p->has_off = false;
	p->xattr.n = 0;
	tar_text_clear(&p->path);
	tar_text_clear(&p->link);
	tar_text_clear(&p->name);
	tar_text_clear(&p->bytes);
	tar_sparse_clear(&p->sparse);
}

void tar_pax_free(struct tar_pax *p)
{
	free(p->path.at);
	free(p->link.at);
	free(p->name.at);
	free(p->bytes.at);
	vec_free(&p->sparse.run);
	vec_free(&p->xattr);
}

/* ---- values -------------------------------------------------------------- */

/* Parse digits and move *v behind them.  Return false if there are none.  A number
 * that is too large becomes UINT64_MAX. */
static bool parse_pax_digits(const char **v, uint64_t *out)
{
	const char *p = *v;
	uint64_t x = 0;

	for (; *p >= '0' && *p <= '9'; p++)
		if (mul_overflows(x, 10, &x) ||
		    add_overflows(x, (uint64_t)(*p - '0'), &x))
			x = UINT64_MAX;
	if (p == *v)
		return false;
	*v = p;
	*out = x;
	return true;
}

/* Parse a value that must be a number and nothing else.  Return 0, -EINVAL or
 * -ERANGE. */
static int parse_pax_number(const char *v, size_t n, int64_t *out)
{
	const char *p = v;
	bool minus = *p == '-';
	uint64_t x;

	p += minus;
	if (!parse_pax_digits(&p, &x) || p != v + n)
		return -EINVAL;
	if (x > INT64_MAX)
		return -ERANGE;
	*out = minus ? -(int64_t)x : (int64_t)x;
	return 0;
}

/* Parse a time in seconds.  What follows the number is ignored, because some
 * writers leave bytes there. */
static int parse_pax_time(struct tar_pax *p, const char *v)
{
	bool minus = *v == '-';
	uint64_t sec, nsec = 0;

	v += minus;
	if (!parse_pax_digits(&v, &sec))
		return -EINVAL;
	sec = min_u64(sec, INT64_MAX - 1);
	if (*v == '.') {
		uint64_t place = 100000000;

		for (v++; *v >= '0' && *v <= '9' && place; v++, place /= 10)
			nsec += (uint64_t)(*v - '0') * place;
	}
	p->mtime = minus ? -(int64_t)sec : (int64_t)sec;
	/* `nsec` counts upwards, whatever the sign of the seconds. */
	if (minus && nsec) {
		p->mtime--;
		nsec = 1000000000 - nsec;
	}
	p->nsec = (uint32_t)nsec;
	return 0;
}

/* ---- keys ---------------------------------------------------------------- */

struct value {
	const char *at; /* ends with a NUL; bytes in it may be NUL, too */
	size_t n;
};

static int pax_set_text(struct tar_text *t, const struct value *v)
{
	tar_text_clear(t);
	/* A name ends at its first NUL. */
	return tar_text_add(t, v->at, strlen(v->at)) ? 0 : -ENOMEM;
}

static int pax_set_path(struct tar_pax *p, const struct value *v)
{
	return pax_set_text(&p->path, v);
}

static int pax_set_link(struct tar_pax *p, const struct value *v)
{
	return pax_set_text(&p->link, v);
}

static int pax_set_name(struct tar_pax *p, const struct value *v)
{
	return pax_set_text(&p->name, v);
}

static int pax_set_natural(const struct value *v, int64_t *out)
{
	int64_t x;
	int r = parse_pax_number(v->at, v->n, &x);

	if (r == 0 && x < 0)
		r = -ERANGE;
	if (r == 0)
		*out = x;
	return r;
}

static int pax_set_size(struct tar_pax *p, const struct value *v)
{
	return pax_set_natural(v, &p->size);
}

static int pax_set_real(struct tar_pax *p, const struct value *v)
{
	return pax_set_natural(v, &p->real);
}

static int pax_set_uid(struct tar_pax *p, const struct value *v)
{
	return parse_pax_number(v->at, v->n, &p->uid);
}

static int pax_set_gid(struct tar_pax *p, const struct value *v)
{
	return parse_pax_number(v->at, v->n, &p->gid);
}

static int pax_set_mtime(struct tar_pax *p, const struct value *v)
{
	return parse_pax_time(p, v->at);
}

static int pax_set_major(struct tar_pax *p, const struct value *v)
{
	return pax_set_natural(v, &p->major);
}

static int pax_set_minor(struct tar_pax *p, const struct value *v)
{
	return pax_set_natural(v, &p->minor);
}

/* With major version 1 the map precedes the data. */
static int pax_set_sparse_major(struct tar_pax *p, const struct value *v)
{
	int64_t major;
	int r = parse_pax_number(v->at, v->n, &major);

	if (r == 0 && major != 1)
		p->dropped |= PAX_SPARSE_1;
	return r;
}

static int pax_set_map(struct tar_pax *p, const struct value *v)
{
	tar_sparse_clear(&p->sparse);
	return tar_sparse_list(&p->sparse, v->at, v->n);
}

/* Sparse format 0.0 repeats two keys for each run. */
static int pax_set_offset(struct tar_pax *p, const struct value *v)
{
	int r = pax_set_natural(v, &p->off);

	p->has_off = r == 0;
	p->sparse.bad |= r < 0;
	return r;
}

static int pax_set_numbytes(struct tar_pax *p, const struct value *v)
{
	int64_t n = -1;
	int r = pax_set_natural(v, &n);

	if (r < 0 || !p->has_off) {
		p->sparse.bad = true;
		return -EINVAL;
	}
	p->has_off = false;
	r = tar_sparse_add(&p->sparse, p->off, n);
	return r == -EBADMSG ? -ERANGE : r;
}

static const struct key {
	const char *name;
	unsigned bit; /* 0: the key sets nothing by itself */
	int (*set)(struct tar_pax *p, const struct value *v);
} keys[] = {
	{"path", PAX_PATH, pax_set_path},
	{"linkpath", PAX_LINK, pax_set_link},
	{"size", PAX_SIZE, pax_set_size},
	{"mtime", PAX_MTIME, pax_set_mtime},
	{"uid", PAX_UID, pax_set_uid},
	{"gid", PAX_GID, pax_set_gid},
	{"GNU.sparse.offset", PAX_MAP, pax_set_offset},
	{"GNU.sparse.numbytes", PAX_MAP, pax_set_numbytes},
	{"GNU.sparse.map", PAX_MAP, pax_set_map},
	{"GNU.sparse.major", PAX_SPARSE_1, pax_set_sparse_major},
	{"GNU.sparse.size", PAX_REAL, pax_set_real},
	{"GNU.sparse.realsize", PAX_REAL, pax_set_real},
	{"SCHILY.realsize", PAX_REAL, pax_set_real},
	{"GNU.sparse.name", PAX_NAME, pax_set_name},
	{"SCHILY.devmajor", PAX_MAJOR, pax_set_major},
	{"SCHILY.devminor", PAX_MINOR, pax_set_minor},
};

static const struct key *find_pax_key(const char *name)
{
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (strcmp(keys[i].name, name) == 0)
			return &keys[i];
	return NULL;
}

/* ---- records ------------------------------------------------------------- */

static int apply_pax_record(struct tar_pax *p, const char *name,
			    const struct value *v, struct members_builder *b)
{
	const struct key *key = find_pax_key(name);
	char shown[TAR_SHOWN];
	int r;

	if (!key) {
		r = tar_xattr_record(p, name, v->at, v->n, b);
		return r < 0 ? r : 0;
	}
	/* With an empty value it is as if neither this nor a global header had the
	 * key. */
	if (v->n == 0) {
		p->set &= ~key->bit;
		p->dropped |= key->bit;
		return 0;
	}
	p->dropped &= ~key->bit;
	r = key->set(p, v);
	if (r == 0)
		p->set |= key->bit & ~p->dropped;
	if (r == -EINVAL || r == -ERANGE)
		members_damage(
			b, "extended header",
			"%s=%s in an extended header is invalid: ignored", name,
			tar_shown(v->at, shown));
	return r == -ENOMEM ? r : 0;
}

/* Parse the length that begins a record: digits and a blank.  Return the bytes it
 * takes, or 0 if it is malformed. */
static size_t pax_record_length(const char *data, size_t n, uint64_t *out)
{
	size_t i = 0;
	uint64_t v = 0;

	for (; i < n && data[i] >= '0' && data[i] <= '9'; i++)
		if (mul_overflows(v, 10, &v) ||
		    add_overflows(v, (uint64_t)(data[i] - '0'), &v))
			return 0;
	*out = v;
	return i && i < n && data[i] == ' ' ? i + 1 : 0;
}

/* Split a record at '=' and apply it.  `data` is changed: '=' and the newline
 * become NULs. */
static int split_pax_record(struct tar_pax *p, char *data, size_t n,
			    struct members_builder *b)
{
	char *equals = memchr(data, '=', n);

	if (!equals)
		return -EINVAL;
	if (data[n - 1] != '\n')
		return -EINVAL;
	*equals = '\0';
	data[n - 1] = '\0';
	return apply_pax_record(
		p, data,
		&(struct value){equals + 1,
				(size_t)(data + n - 1 - (equals + 1))},
		b);
}

int tar_pax_records(struct tar_pax *p, char *data, size_t n,
		    struct members_builder *b)
{
	int r = 0;

	while (n > 0 && data[0] != '\0') {
		uint64_t len;
		size_t head = pax_record_length(data, n, &len);

		if (!head || len > n || len <= head)
			r = -EINVAL;
		else
			r = split_pax_record(p, data + head, len - head, b);
		if (r < 0)
			break;
		data += len;
		n -= len;
	}
	if (r == -EINVAL) {
		members_damage(b, "extended header",
			       "an extended header has a malformed record: it "
			       "and those behind it are ignored");
		r = 0;
	}
	return r;
}
