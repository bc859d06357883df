/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the files of directory trees in shuffled order, as training does. */

/*
 * An epoch opens every regular file once, asks its size (fstat), reads it to
 * the end and closes it.  N readers share one shuffled list: each takes the
 * next file.  With several directories the epochs alternate between them, so
 * that whatever else the machine does hits all of them alike; the order of the
 * names is the same in each directory for one epoch and differs between epochs.
 *
 * One epoch in the order of names comes first, untimed: it warms every cache.
 * --list times how long finding the files takes, with an lstat of everything that
 * is found, as `find -size` does; without it only names are asked for.  --limit ends
 * an epoch early, for who cannot wait; `files` then says how many were read.
 *
 * With --wait the program then prints "warm" and waits for a line on stdin, and
 * again ("done") after the last epoch: whoever started it can look at counters
 * at exactly these moments.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DIRS_MAX 8
#define BUFFER (1u << 20)

struct list {
	char **path;
	size_t n, room;
};
/* One epoch in progress; readers take the next number. */
struct epoch {
	const struct list *files;
	const size_t *order;
	double until; /* 0: to the end */
	_Atomic size_t next, done;
	_Atomic uint64_t bytes;
};

static void die(const char *what)
{
	fprintf(stderr, "bench-epoch: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void *need(void *p)
{
	if (!p)
		die("memory");
	return p;
}

static void list_add(struct list *l, char *path)
{
	if (l->n == l->room) {
		l->room = l->room ? l->room * 2 : 1024;
		l->path = need(realloc(l->path, l->room * sizeof *l->path));
	}
	l->path[l->n++] = path;
}

/* All regular files below `dir`, which is not a symlink. */
static void list_walk(struct list *l, const char *dir, bool all)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	struct stat st;

	if (!d)
		die(dir);
	while ((e = readdir(d))) {
		char *path;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (asprintf(&path, "%s/%s", dir, e->d_name) < 0)
			die("memory");
		if (all && lstat(path, &st) < 0)
			die(path);
		if (e->d_type == DT_REG) {
			list_add(l, path);
			continue;
		}
		if (e->d_type == DT_DIR)
			list_walk(l, path, all);
		free(path);
	}
	closedir(d);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* xorshift64*: the same epochs everywhere. */
static uint64_t random_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

static void shuffle(size_t *order, size_t n, uint64_t seed)
{
	uint64_t state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;

	for (size_t i = 0; i < n; i++)
		order[i] = i;
	for (size_t i = n; i > 1; i--) {
		size_t j = random_next(&state) % i, t = order[i - 1];

		order[i - 1] = order[j];
		order[j] = t;
	}
}

static uint64_t read_file(const char *path, char *buf)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t bytes = 0;
	struct stat st;
	ssize_t r;

	if (fd < 0 || fstat(fd, &st) < 0)
		die(path);
	while ((r = read(fd, buf, BUFFER)) > 0)
		bytes += (uint64_t)r;
	if (r < 0)
		die(path);
	if (bytes != (uint64_t)st.st_size) {
		fprintf(stderr, "bench-epoch: %s: %llu bytes of %llu\n", path,
			(unsigned long long)bytes,
			(unsigned long long)st.st_size);
		exit(1);
	}
	close(fd);
	return bytes;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void *reader(void *arg)
{
	struct epoch *e = arg;
	char *buf = need(malloc(BUFFER));
	uint64_t bytes = 0;
	size_t i, done = 0;

	while ((i = atomic_fetch_add(&e->next, 1)) < e->files->n) {
		if (e->until > 0 && now() > e->until)
			break;
		bytes += read_file(e->files->path[e->order[i]], buf);
		done++;
	}
	atomic_fetch_add(&e->bytes, bytes);
	atomic_fetch_add(&e->done, done);
	free(buf);
	return NULL;
}

/* Seconds that one epoch takes; `e` says what to read, and what was read. */
static double epoch_run(struct epoch *e, unsigned threads, double limit)
{
	pthread_t *t = need(calloc(threads, sizeof *t));
	double start = now();

	e->until = limit > 0 ? start + limit : 0;
	for (unsigned i = 0; i < threads; i++)
		if ((errno = pthread_create(&t[i], NULL, reader, e)))
			die("thread");
	for (unsigned i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	start = now() - start;
	free(t);
	return start;
}

static void pause_at(const char *word)
{
	int c;

	puts(word);
	fflush(stdout);
	do
		c = getchar();
	while (c != '\n' && c != EOF);
}

static const char help[] =
	"Usage: bench-epoch [OPTIONS] DIR...\n"
	"Read all files of each DIR in shuffled order, in turns.\n"
	"  --threads=N  readers (default 1)\n"
	"  --epochs=N   timed epochs of each DIR (default 5)\n"
	"  --seed=N     of the shuffling (default 1)\n"
	"  --cold       no warming epoch first\n"
	"  --list       time the listing, with an lstat of everything\n"
	"  --limit=S    end an epoch after S seconds\n"
	"  --json       one JSON object a line\n"
	"  --wait       print \"warm\" and \"done\", each time wait for a "
	"line\n";

struct args {
	unsigned long threads, epochs, seed;
	double limit;
	bool cold, list, json, wait;
};

/* Options into *a; what main should exit with, -1: go on. */
static int parse(struct args *a, int argc, char **argv)
{
	static const struct option options[] = {
		{"threads", required_argument, NULL, 't'},
		{"epochs", required_argument, NULL, 'e'},
		{"seed", required_argument, NULL, 's'},
		{"cold", no_argument, NULL, 'c'},
		{"list", no_argument, NULL, 'l'},
		{"limit", required_argument, NULL, 'L'},
		{"json", no_argument, NULL, 'j'},
		{"wait", no_argument, NULL, 'w'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 't')
			a->threads = strtoul(optarg, NULL, 10);
		else if (c == 'e')
			a->epochs = strtoul(optarg, NULL, 10);
		else if (c == 's')
			a->seed = strtoul(optarg, NULL, 10);
		else if (c == 'c')
			a->cold = true;
		else if (c == 'l')
			a->list = true;
		else if (c == 'L')
			a->limit = strtod(optarg, NULL);
		else if (c == 'j')
			a->json = true;
		else if (c == 'w')
			a->wait = true;
		else
			break;
	}
	if (c == 'h') {
		fputs(help, stdout);
		return 0;
	}
	if (c != -1 || optind == argc || argc - optind > DIRS_MAX ||
	    a->threads < 1 || a->threads > 1024) {
		fputs(help, stderr);
		return 2;
	}
	return -1;
}

static void timed_epoch(const struct args *a, const struct list *files, int dir,
			unsigned long epoch, size_t *order)
{
	struct epoch e = {.files = files, .order = order};
	double s;

	shuffle(order, files->n, a->seed + epoch);
	s = epoch_run(&e, (unsigned)a->threads, a->limit);
	printf(a->json ? "{\"dir\": %d, \"epoch\": %lu, \"files_per_s\": %.0f, "
			 "\"mb_per_s\": %.1f, \"files\": %zu}\n"
		       : "dir %d epoch %lu: %.0f files/s, %.1f MB/s (%zu "
			 "files)\n",
	       dir, epoch, (double)e.done / s, (double)e.bytes / s / 1e6,
	       e.done);
	fflush(stdout);
}

static void find_files(const struct args *a, struct list *files, int dir,
		       const char *path)
{
	double s = now();

	list_walk(files, path, a->list);
	s = now() - s;
	if (!files->n) {
		errno = ENOENT;
		die(path);
	}
	qsort(files->path, files->n, sizeof *files->path, by_name);
	if (a->list)
		printf(a->json ? "{\"dir\": %d, \"list_s\": %.6f, \"files\": "
				 "%zu}\n"
			       : "dir %d listed in %.3f s (%zu files)\n",
		       dir, s, files->n);
}

int main(int argc, char **argv)
{
	struct args a = {.threads = 1, .epochs = 5, .seed = 1};
	struct list files[DIRS_MAX] = {{0}};
	size_t *order, most = 0;
	int r = parse(&a, argc, argv);
	int dirs = argc - optind;

	if (r >= 0)
		return r;
	for (int d = 0; d < dirs; d++) {
		find_files(&a, &files[d], d, argv[optind + d]);
		most = files[d].n > most ? files[d].n : most;
	}
	order = need(calloc(most, sizeof *order));
	for (size_t i = 0; i < most; i++)
		order[i] = i;
	for (int d = 0; d < dirs && !a.cold; d++) {
		struct epoch e = {.files = &files[d], .order = order};

		epoch_run(&e, 1, 0);
	}
	if (a.wait)
		pause_at("warm");
	for (unsigned long e = 0; e < a.epochs; e++)
		for (int d = 0; d < dirs; d++)
			timed_epoch(&a, &files[d], d, e, order);
	if (a.wait)
		pause_at("done");
	free(order);
	return 0;
}
