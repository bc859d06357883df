/* SPDX-License-Identifier: BSD-2-Clause */
/* The reason that libhdf5 gave for this thread's last failed call. */
#include "formats/hdf5/file/driver_private.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* H5Ewalk2 calls this with the innermost entry first.  An entry of the plugin loader
 * ("can't open directory") is kept only if there is no other. */
static herr_t complaint_note(unsigned n, const H5E_error2_t *e, void *arg)
{
	struct hdf5_complaint *c = arg;

	(void)n;
	if (c->seen++ > 0 && (!c->plugin || e->maj_num == H5E_PLUGIN))
		return 0;
	c->plugin = e->maj_num == H5E_PLUGIN;
	c->minor = e->min_num;
	snprintf(c->where, sizeof c->where, "%s",
		 e->func_name ? e->func_name : "");
	snprintf(c->text, sizeof c->text, "%s", e->desc ? e->desc : "");
	return 0;
}

void hdf5_complaint_get(struct hdf5_complaint *c)
{
	c->seen = 0;
	c->minor = H5I_INVALID_HID;
	c->where[0] = c->text[0] = '\0';
	H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, complaint_note, c);
}

bool hdf5_complaint_equal(const struct hdf5_complaint *a,
			  const struct hdf5_complaint *b)
{
	return a->minor == b->minor && !strcmp(a->where, b->where) &&
	       !strcmp(a->text, b->text);
}

void hdf5_why(char *buf, size_t n)
{
	struct hdf5_complaint c;

	hdf5_complaint_get(&c);
	snprintf(buf, n, "%s", c.text[0] ? c.text : "no reason given");
}

int hdf5_why_errno(const char *why)
{
	const char *number = strstr(why, "errno = ");
	long code = number ? strtol(number + strlen("errno = "), NULL, 10) : 0;

	return code > 0 && code < INT_MAX ? (int)code : 0;
}
