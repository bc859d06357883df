/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes in which libhdf5 may crash without taking the mount with it. */
#ifndef FORMATS_HDF5_WORKER_WORKER_H
#define FORMATS_HDF5_WORKER_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

/* Processes at most. */
#define HDF5_WORKERS_MAX 2

struct hdf5_worker {
	bool busy;
	int fd; /* -1: no process yet */
	pid_t pid;
};

/*
 * Start the process that workers are forked from.  Once, when the sources are
 * open and no thread is running.  Standard error is kept or goes to /dev/null.
 */
int hdf5_isolate_start(bool keep_stderr, struct error *err);
/* End all of them.  Nobody is calling; nothing happens if none was started. */
void hdf5_isolate_stop(void);
bool hdf5_isolated(void);
/* No file shall be open in a process that has nothing to do: what was deleted takes room
 * as long as it is.  They end; others are started when they are needed. */
void hdf5_isolate_let_go(void);

/* A worker for the caller alone, started if need be; waits for a free one. */
int hdf5_worker_take(struct hdf5_worker **out, struct error *err);
/* All bytes, or -EPIPE: the worker is gone, -ETIMEDOUT: it does not answer. */
int hdf5_worker_send(struct hdf5_worker *w, const void *data, size_t n);
int hdf5_worker_receive(struct hdf5_worker *w, void *data, size_t n);
/* Let others have it. */
void hdf5_worker_give(struct hdf5_worker *w);
/* End the process and give the place back; `how` (may be NULL) says how it had
 * ended before: "Segmentation fault". */
void hdf5_worker_end(struct hdf5_worker *w, char *how, size_t n);

/* formats/hdf5/worker/serve.c: answer requests from a descriptor until it is closed. */
void hdf5_worker_serve(int fd);
/* Whole reads and writes of a blocking descriptor. */
bool hdf5_read_all(int fd, void *data, size_t n);
bool hdf5_write_all(int fd, const void *data, size_t n);

#endif
