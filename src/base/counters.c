/* SPDX-License-Identifier: BSD-2-Clause */
/* What the daemon has done so far: atomic counters with names. */
#include "base/counters.h"

const struct counter_info counter_info[COUNTER_COUNT] = {
#define X(sym, name, help) [COUNT_##sym] = {name, help},
	COUNTERS(X)
#undef X
};
_Atomic uint64_t counter_values[COUNTER_COUNT];
