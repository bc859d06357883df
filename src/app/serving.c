/* SPDX-License-Identifier: BSD-2-Clause */
/* What `mount` and `run` have in common: they name the sources, open them and mount
 * them. */
#include "app/serving.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/options_fit.h"
#include "app/order_file.h"
#include "base/cleanup.h"
#include "base/system.h"
#include "stream/stream.h"

/* The share 1/KEEP_SHARE of the cache is for bytes that a first pass decodes. */
#define KEEP_SHARE 2
/* The seconds that the ending process waits for threads that still decode.  A build with
 * a sanitizer decodes ten times slower, and ThreadSanitizer reports threads that are
 * left. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifdef SANITIZED
#define END_SECONDS 60
#else
#define END_SECONDS 2
#endif

char *path_absolute(struct settings *s, const char *path)
{
	cleanup_free char *cwd = NULL;
	cleanup_free char *joined = NULL;

	if (path[0] == '/')
		return settings_keep(s, path);
	cwd = getcwd(NULL, 0);
	if (!cwd)
		return NULL;
	if (asprintf(&joined, "%s/%s", strcmp(cwd, "/") ? cwd : "", path) < 0) {
		joined = NULL;
		errno = ENOMEM;
		return NULL;
	}
	return settings_keep(s, joined);
}

/* Return the length of NAME in NAME=SOURCE, 0 if the operand is a path. */
static size_t name_length(const char *operand)
{
	size_t n = strcspn(operand, "=/");

	if (operand[n] != '=' || !operand[n + 1] ||
	    access(operand, F_OK) == 0 || !strncmp(operand, ".=", 2) ||
	    !strncmp(operand, "..=", 3))
		return 0;
	return n;
}

static int say_no_directory(const struct command *c, const char *path)
{
	int r = errno == ENOMEM ? CLI_MEMORY : CLI_SOURCE;

	cli_say(c, "'%s': cannot find the working directory: %s", path,
		strerror(errno));
	return r;
}

static int prepare_source(const struct command *c, struct settings *s,
			  const char **name, char **path)
{
	size_t n = name_length(*path);
	char *absolute;

	if (n > 0) {
		char *copy = settings_keep(s, *path);

		if (!copy) {
			cli_say(c, "out of memory for the name of a source");
			return CLI_MEMORY;
		}
		copy[n] = '\0';
		*name = copy;
		*path = copy + n + 1;
	}
	absolute = path_absolute(s, *path);
	if (!absolute)
		return say_no_directory(c, *path);
	*path = absolute;
	return 0;
}

int sources_prepare(const struct command *c, struct settings *s, char **paths,
		    size_t n)
{
	const char *none = NULL;
	const char **places[] = {&s->index, &s->shm_dir, &s->stage.to,
				 &s->order};
	struct order_spec spec;
	int r = options_check(c, s);

	if (r != 0)
		return r;
	s->names = calloc(n, sizeof *s->names);
	if (!s->names) {
		cli_say(c, "out of memory for the names of the sources");
		return CLI_MEMORY;
	}
	if (s->index && !strcmp(s->index, "none"))
		places[0] = &none;
	if (s->order && order_spec_parse(s->order, &spec, NULL) == 0 &&
	    !spec.file)
		places[3] = &none;
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		const char *given = *places[i];

		if (given && !(*places[i] = path_absolute(s, given)))
			return say_no_directory(c, given);
	}
	for (size_t i = 0; i < n && r == 0; i++) {
		r = prepare_source(c, s, &s->names[i], &paths[i]);
		if (r == 0 && s->joined && s->names[i])
			r = cli_usage(c,
				      "'%s=' names a directory, but --union "
				      "makes no directories",
				      s->names[i]);
	}
	return r;
}

void serving_threads(struct settings *s)
{
	if (s->single)
		s->threads = 1;
	if (s->threads == 0)
		s->threads = 2 * system_cores();
}

static char *describe_source(char *const *paths, size_t n)
{
	char *text;

	if (n == 1)
		return strdup(paths[0]);
	if (asprintf(&text, "%s (+%zu)", paths[0], n - 1) < 0)
		return NULL;
	return text;
}

int mount_open(const struct settings *s, char *const *paths, size_t n,
	       const char *point, struct session **session,
	       struct fuse_face **face, struct error *err)
{
	cleanup_free char *fsname = describe_source(paths, n);
	struct fuse_face_options fo = {
		.mountpoint = point,
		.fsname = fsname,
		.allow_other = s->allow_other,
		.allow_root = s->allow_root && !s->allow_other,
		.check_modes =
			s->allow_other || s->allow_root || s->fmask || s->dmask,
		.debug = s->debug_fuse,
		.prefetch = !s->no_prefetch,
		.threads = s->threads,
		.timeout = s->timeout,
	};
	struct shared *shared;
	int r;

	if (!fsname) {
		error_no_memory(err, "the name of the mount");
		return CLI_MEMORY;
	}
	if (session_share(&shared, s, err) < 0) {
		error_prefix(err, "shm-cache: ");
		return CLI_MEMORY;
	}
	/* After a mount without an index, what was just decoded is usually read soon. */
	stream_first_pass_limit(s->cache_size / KEEP_SHARE, true);
	r = session_open_shared(session, paths, n, s,
				s->single ? 0 : system_cores(), shared, err);
	if (r < 0)
		return r == -EEXIST ? CLI_USAGE : cli_source_exit(r);
	/* Return the memory that building the tree used temporarily. */
	malloc_trim(0);
	r = s->order ? order_open(&(*session)->order, s->order,
				  (*session)->tree, err)
		     : 0;
	if (r < 0) {
		session_free(*session);
		*session = NULL;
		return cli_source_exit(r);
	}
	cost_warn(*session, s);
	fo.order = s->order ? &(*session)->order : NULL;
	r = fuse_face_mount(face, &fo, (*session)->fs, err);
	if (r == 0)
		return 0;
	session_free(*session);
	*session = NULL;
	return r == -ENOMEM ? CLI_MEMORY : CLI_MOUNT;
}

static void *exit_after_wait(void *code)
{
	sleep(END_SECONDS);
	_exit((int)(intptr_t)code);
}

void session_end(struct session *s, int code)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, exit_after_wait,
			   (void *)(intptr_t)code) == 0)
		pthread_detach(thread);
	session_free(s);
}
