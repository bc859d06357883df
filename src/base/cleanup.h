/* SPDX-License-Identifier: BSD-2-Clause */
/* Scope-bound ownership: free, close and unlock when a variable dies. */
#ifndef BASE_CLEANUP_H
#define BASE_CLEANUP_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_free_fn(void *p)
{
	free(*(void **)p);
}
static inline void cleanup_close_fn(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}
static inline void cleanup_fclose_fn(FILE **f)
{
	if (*f)
		fclose(*f);
}
static inline void cleanup_unlock_fn(pthread_mutex_t **m)
{
	if (*m)
		pthread_mutex_unlock(*m);
}
static inline pthread_mutex_t *cleanup_lock(pthread_mutex_t *m)
{
	pthread_mutex_lock(m);
	return m;
}

/* `cleanup_free char *p = ...;` frees p at the end of the scope. */
#define cleanup_free __attribute__((cleanup(cleanup_free_fn)))
/* `cleanup_close int fd = -1;` closes fd at the end of the scope. */
#define cleanup_close __attribute__((cleanup(cleanup_close_fn)))
#define cleanup_fclose __attribute__((cleanup(cleanup_fclose_fn)))

#define CLEANUP_CAT_(a, b) a##b
#define CLEANUP_CAT(a, b) CLEANUP_CAT_(a, b)
/* Hold mutex `m` until the end of the enclosing scope. */
#define lock_scope(m)                                                         \
	__attribute__((cleanup(cleanup_unlock_fn), unused)) pthread_mutex_t * \
	CLEANUP_CAT(lock_, __LINE__) = cleanup_lock(m)

/* Hand over what a cleanup variable owns: return it and leave NULL (or -1) behind. */
#define steal_pointer(pp)                          \
	__extension__({                            \
		__typeof__(*(pp)) stolen_ = *(pp); \
		*(pp) = NULL;                      \
		stolen_;                           \
	})
static inline int steal_fd(int *fd)
{
	int stolen = *fd;

	*fd = -1;
	return stolen;
}

#endif
