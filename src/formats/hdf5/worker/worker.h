/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes in which libhdf5 may crash without taking the mount with it. */
#ifndef FORMATS_HDF5_WORKER_WORKER_H
#define FORMATS_HDF5_WORKER_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

/* Limit of worker processes. */
#define HDF5_WORKERS_MAX 2

struct hdf5_worker {
	bool busy;
	int fd; /* -1: no process yet */
	pid_t pid;
};

/* Start the process that workers are forked from. Call it once, when the sources are
 * open and no thread is running. With `keep_stderr` workers keep standard error;
 * else it goes to /dev/null. */
int hdf5_isolate_start(bool keep_stderr, struct error *err);
/* End all processes. No call may be running. Does nothing if none was started. */
void hdf5_isolate_stop(void);
bool hdf5_isolated(void);
/* End idle workers, so that they hold no deleted file open, which would keep its
 * disk space. Others are started when they are needed. */
void hdf5_isolate_let_go(void);

/* Set *out to a worker for the caller alone. Starts one if needed; blocks until one
 * is free. */
int hdf5_worker_take(struct hdf5_worker **out, struct error *err);
/* Send or receive exactly n bytes. -EPIPE: the worker is gone; -ETIMEDOUT: it does
 * not answer. */
int hdf5_worker_send(struct hdf5_worker *w, const void *data, size_t n);
int hdf5_worker_receive(struct hdf5_worker *w, void *data, size_t n);
/* Give a worker back. */
void hdf5_worker_give(struct hdf5_worker *w);
/* End the process and give the place back. `how` (may be NULL) receives how it had
 * ended before: "Segmentation fault". */
void hdf5_worker_end(struct hdf5_worker *w, char *how, size_t n);

/* Answer requests from a descriptor until it is closed (serve.c). */
void hdf5_worker_serve(int fd);
/* Read or write exactly n bytes of a blocking descriptor; false on errors and at the
 * end of file. */
bool hdf5_read_all(int fd, void *data, size_t n);
bool hdf5_write_all(int fd, const void *data, size_t n);

#endif
