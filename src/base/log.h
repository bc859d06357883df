/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines for people: stderr or syslog, levels, repeats folded. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO };
/* A new process logs to stderr at LOG_LEVEL_WARN.  All of these are thread-safe. */
void log_to_syslog(const char *ident);
void log_set_level(enum log_level level);
/* Enable the debug lines of these modules ("cache,hdf5" or "all").  Return -1 for an
 * unknown module. */
int log_set_debug(const char *modules);
/* The known modules, comma-separated, for help. */
const char *log_modules(void);
/* A line that was printed less than a minute ago is counted, not printed. */
void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

enum log_module {
	DEBUG_ARCHIVE,
	DEBUG_CACHE,
	DEBUG_HDF5,
	DEBUG_FUSE,
	DEBUG_PREFETCH,
	DEBUG_MODULES
};
extern unsigned log_debug_mask;
void log_debug_line(enum log_module m, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
#define log_debug(m, ...)                               \
	do {                                            \
		if (log_debug_mask & (1u << (m)))       \
			log_debug_line(m, __VA_ARGS__); \
	} while (0)

#endif
