/* SPDX-License-Identifier: BSD-2-Clause */
/* What log lines look like on stderr, and how repeats are folded. */
#include "base/log.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

/* The program's own clock_gettime wins over the library's: a clock to turn. */
static time_t seconds = 1000;
int clock_gettime(clockid_t id, struct timespec *ts)
{
	(void)id;
	*ts = (struct timespec){.tv_sec = seconds};
	return 0;
}

static int capture, real_stderr;

static void capture_begin(void)
{
	fflush(stderr);
	CHECK_OK(ftruncate(capture, 0));
	lseek(capture, 0, SEEK_SET);
	CHECK(dup2(capture, STDERR_FILENO) >= 0);
}

/* What was written since, compared with `want`. */
static void capture_end(const char *want)
{
	static char got[65536];
	ssize_t n;

	fflush(stderr);
	CHECK(dup2(real_stderr, STDERR_FILENO) >= 0);
	n = pread(capture, got, sizeof got - 1, 0);
	CHECK(n >= 0);
	got[n] = '\0';
	CHECK_STR(got, want);
	seconds += 1000;
}

TEST(levels)
{
	capture_begin();
	log_error("no file '%s'", "a.h5");
	log_warn("chunk %d is odd", 7);
	log_info("not said");
	capture_end("tensorfs: error: no file 'a.h5'\n"
		    "tensorfs: warning: chunk 7 is odd\n");
	log_set_level(LOG_LEVEL_INFO);
	capture_begin();
	log_info("mounted");
	capture_end("tensorfs: mounted\n");
	log_set_level(LOG_LEVEL_ERROR);
	capture_begin();
	log_warn("not said");
	capture_end("");
	log_set_level(LOG_LEVEL_WARN);
}

TEST(hostile_names)
{
	capture_begin();
	log_warn("bad '%s'", "a\ntensorfs: error: forged\x1b[2J\x7f");
	capture_end(
		"tensorfs: warning: bad 'a?tensorfs: error: forged?[2J?'\n");
}

TEST(long_lines)
{
	char text[5000], want[1200];

	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	snprintf(want, sizeof want, "tensorfs: warning: %.1023s\n", text);
	capture_begin();
	log_warn("%s", text);
	capture_end(want);
}

TEST(repeats_are_folded)
{
	capture_begin();
	for (unsigned i = 0; i < 100; i++) {
		log_warn("chunk 1 does not decode");
		log_warn("chunk 2 does not decode");
	}
	seconds += 59;
	log_warn("chunk 1 does not decode");
	capture_end("tensorfs: warning: chunk 1 does not decode\n"
		    "tensorfs: warning: chunk 2 does not decode\n");
	capture_begin();
	log_warn("chunk 1 does not decode");
	capture_end("tensorfs: warning: message repeated 100 times: chunk 1 "
		    "does not decode\n"
		    "tensorfs: warning: message repeated 99 times: chunk 2 "
		    "does not decode\n"
		    "tensorfs: warning: chunk 1 does not decode\n");
	/* Forgotten when its time is over: a level is part of the line. */
	capture_begin();
	log_warn("chunk 1 does not decode");
	log_error("chunk 1 does not decode");
	capture_end("tensorfs: warning: chunk 1 does not decode\n"
		    "tensorfs: error: chunk 1 does not decode\n");
}

TEST(pushed_out_repeats_are_told)
{
	capture_begin();
	log_warn("first");
	log_warn("first");
	seconds++;
	for (unsigned i = 0; i < 3; i++)
		log_warn("other %u", i);
	capture_end("tensorfs: warning: first\n"
		    "tensorfs: warning: other 0\n"
		    "tensorfs: warning: other 1\n"
		    "tensorfs: warning: other 2\n");
	seconds -= 1000;
	capture_begin();
	for (unsigned i = 3; i < 16; i++)
		log_warn("other %u", i);
	capture_end("tensorfs: warning: other 3\n"
		    "tensorfs: warning: other 4\n"
		    "tensorfs: warning: other 5\n"
		    "tensorfs: warning: other 6\n"
		    "tensorfs: warning: other 7\n"
		    "tensorfs: warning: other 8\n"
		    "tensorfs: warning: other 9\n"
		    "tensorfs: warning: other 10\n"
		    "tensorfs: warning: other 11\n"
		    "tensorfs: warning: other 12\n"
		    "tensorfs: warning: other 13\n"
		    "tensorfs: warning: other 14\n"
		    "tensorfs: warning: message repeated 1 times: first\n"
		    "tensorfs: warning: other 15\n");
}

TEST(debug_modules)
{
	CHECK_STR(log_modules(), "archive,cache,hdf5,fuse,prefetch");
	CHECK_OK(log_set_debug("all"));
	CHECK_EQ_U(log_debug_mask, 31);
	CHECK_OK(log_set_debug(log_modules()));
	CHECK_EQ_U(log_debug_mask, 31);
	CHECK_OK(log_set_debug("hdf5,cache"));
	CHECK_EQ_U(log_debug_mask, 1u << DEBUG_HDF5 | 1u << DEBUG_CACHE);
	CHECK_EQ_I(log_set_debug("hdf5,nonsense"), -1);
	CHECK_EQ_I(log_set_debug("hdf"), -1);
	CHECK_EQ_I(log_set_debug("hdf5,,fuse"), -1);
	CHECK_EQ_U(log_debug_mask, 1u << DEBUG_HDF5 | 1u << DEBUG_CACHE);
	capture_begin();
	log_debug(DEBUG_FUSE, "not said");
	capture_end("");
	CHECK_OK(log_set_debug(""));
	CHECK_EQ_U(log_debug_mask, 0);
}

int main(void)
{
	char path[] = "/tmp/tensorfs-base-log-XXXXXX";

	capture = mkstemp(path);
	CHECK(capture >= 0);
	unlink(path);
	real_stderr = dup(STDERR_FILENO);
	fcntl(real_stderr, F_SETFD, FD_CLOEXEC);
	RUN(levels);
	RUN(hostile_names);
	RUN(long_lines);
	RUN(repeats_are_folded);
	RUN(pushed_out_repeats_are_told);
	RUN(debug_modules);
	return test_done();
}
