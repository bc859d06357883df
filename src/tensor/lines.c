/* SPDX-License-Identifier: BSD-2-Clause */
/* Values written as lines, with where each sample's lines end. */
#include "tensor/lines.h"

#include <stdlib.h>

void lines_put(void *ctx, const char *s, size_t len)
{
	struct lines *l = ctx;
	size_t need = l->used + 2 * len + 1;

	if (l->failed)
		return;
	if (need > l->room) {
		size_t room = need + need / 2 + 256;
		char *grown = room > UINT32_MAX ? NULL : realloc(l->text, room);

		if (!grown) {
			l->failed = true;
			return;
		}
		l->text = grown;
		l->room = room;
	}
	for (size_t i = 0; i < len; i++) {
		char c = s[i];

		if (c == '\\' || c == '\n') {
			l->text[l->used++] = '\\';
			c = c == '\n' ? 'n' : c;
		}
		l->text[l->used++] = c;
	}
	l->text[l->used++] = '\n';
	if (++l->values % l->sample_values == 0)
		l->offset[l->values / l->sample_values] = (uint32_t)l->used;
}
