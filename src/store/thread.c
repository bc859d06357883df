/* SPDX-License-Identifier: BSD-2-Clause */
/* What the store knows about the calling thread. */
#include "store/thread.h"

_Thread_local struct store_thread store_thread;
