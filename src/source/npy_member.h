/* SPDX-License-Identifier: BSD-2-Clause */
/* A .npy that is a member of something as a tensor. */
#ifndef SOURCE_NPY_MEMBER_H
#define SOURCE_NPY_MEMBER_H

#include "archive/backing.h"
#include "source/arrays.h"

/* Reads its header.  -EBADMSG, -ENOTSUP: it is no array, or none that can be shown. */
int npy_member(struct arrays *s, const struct backing *b, const char *name,
	       struct array **out, struct error *err);

#endif
