/* SPDX-License-Identifier: BSD-2-Clause */
/* Sizes, counts and modes: what is accepted, what is refused, and the words. */
#include "base/parse.h"

#include <errno.h>

#include "test.h"

static uint64_t size_of(const char *text, uint64_t whole)
{
	uint64_t v = 0;

	CHECK_OK(parse_size(text, whole, &v, NULL));
	return v;
}

static void refuse_size(const char *text, uint64_t whole, const char *word)
{
	struct error err = {0};
	uint64_t v = 77;

	CHECK_EQ_I(parse_size(text, whole, &v, &err), -EINVAL);
	CHECK_EQ_I(err.code, -EINVAL);
	CHECK_EQ_U(v, 77);
	if (!strstr(err.text, word))
		CHECK_STR(err.text, word);
}

TEST(sizes)
{
	CHECK_EQ_U(size_of("0", 0), 0);
	CHECK_EQ_U(size_of("4096", 0), 4096);
	CHECK_EQ_U(size_of("12B", 0), 12);
	CHECK_EQ_U(size_of("1K", 0), 1024);
	CHECK_EQ_U(size_of("512M", 0), UINT64_C(512) << 20);
	CHECK_EQ_U(size_of("512MB", 0), UINT64_C(512) << 20);
	CHECK_EQ_U(size_of("512MiB", 0), UINT64_C(512) << 20);
	CHECK_EQ_U(size_of("512mib", 0), UINT64_C(512) << 20);
	CHECK_EQ_U(size_of("2g", 0), UINT64_C(2) << 30);
	CHECK_EQ_U(size_of("3T", 0), UINT64_C(3) << 40);
	CHECK_EQ_U(size_of("1.5G", 0), UINT64_C(3) << 29);
	CHECK_EQ_U(size_of("0.25K", 0), 256);
	CHECK_EQ_U(size_of("0.3K", 0), 307);
	CHECK_EQ_U(size_of("1.2 GiB", 0), 1288490188);
	CHECK_EQ_U(size_of("0.99999999999999999999999999K", 0), 1023);
	CHECK_EQ_U(size_of("16777215T", 0), UINT64_C(16777215) << 40);
	CHECK_EQ_U(size_of("18446744073709551615", 0), UINT64_MAX);
}

TEST(percents)
{
	CHECK_EQ_U(size_of("25%", 1000), 250);
	CHECK_EQ_U(size_of("0%", 1000), 0);
	CHECK_EQ_U(size_of("12.5%", 1000), 125);
	CHECK_EQ_U(size_of("100%", UINT64_MAX), UINT64_MAX);
	CHECK_EQ_U(size_of("50%", UINT64_C(1) << 62), UINT64_C(1) << 61);
	refuse_size("25%", 0, "512M");
	refuse_size("101%", 1000, "100%");
	refuse_size("100.01%", 1000, "100%");
	refuse_size("99999999999999%", 1000, "100%");
}

TEST(sizes_refused)
{
	refuse_size("", 1, "not a size");
	refuse_size("K", 1, "not a size");
	refuse_size("-1", 1, "not a size");
	refuse_size("+1", 1, "not a size");
	refuse_size(" 1", 1, "not a size");
	refuse_size(".5G", 1, "not a size");
	refuse_size("1.G", 1, "digits");
	refuse_size("1.5", 1, "must be whole");
	refuse_size("1,5G", 1, "unknown unit");
	refuse_size("12Q", 1, "unknown unit");
	refuse_size("1Ki", 1, "unknown unit");
	refuse_size("1iB", 1, "unknown unit");
	refuse_size("1KK", 1, "unknown unit");
	refuse_size("1 ", 1, "unknown unit");
	refuse_size("1% ", 1, "unknown unit");
	refuse_size("0x10", 1, "unknown unit");
	refuse_size("18446744073709551616", 1, "too large");
	refuse_size("16777216T", 1, "too large");
}

TEST(counts)
{
	struct error err = {0};
	uint64_t v = 0;

	CHECK_OK(parse_count("7", 1, 7, &v, &err));
	CHECK_EQ_U(v, 7);
	CHECK_OK(parse_count("18446744073709551615", 0, UINT64_MAX, &v, &err));
	CHECK_EQ_U(v, UINT64_MAX);
	CHECK_EQ_I(parse_count("8", 1, 7, &v, &err), -EINVAL);
	CHECK_STR(err.text, "8 is not between 1 and 7");
	CHECK_EQ_I(parse_count("0", 1, 7, &v, &err), -EINVAL);
	CHECK_EQ_I(parse_count("18446744073709551616", 0, UINT64_MAX, &v, &err),
		   -EINVAL);
	CHECK_EQ_I(parse_count("7x", 1, 7, &v, &err), -EINVAL);
	CHECK_STR(err.text, "'7x' is not a whole number");
	CHECK_EQ_I(parse_count("", 0, 7, &v, &err), -EINVAL);
	CHECK_EQ_I(parse_count("-1", 0, 7, &v, &err), -EINVAL);
}

TEST(modes)
{
	unsigned v = 0;

	CHECK_OK(parse_mode("022", &v, NULL));
	CHECK_EQ_U(v, 022);
	CHECK_OK(parse_mode("777", &v, NULL));
	CHECK_EQ_U(v, 0777);
	CHECK_OK(parse_mode("0", &v, NULL));
	CHECK_EQ_U(v, 0);
	CHECK_EQ_I(parse_mode("", &v, NULL), -EINVAL);
	CHECK_EQ_I(parse_mode("8", &v, NULL), -EINVAL);
	CHECK_EQ_I(parse_mode("1000", &v, NULL), -EINVAL);
	CHECK_EQ_I(parse_mode("77777777777777777777", &v, NULL), -EINVAL);
	CHECK_EQ_I(parse_mode("22x", &v, NULL), -EINVAL);
}

static void check_format(uint64_t bytes, const char *want)
{
	char text[32];

	format_size(bytes, text, sizeof text);
	CHECK_STR(text, want);
}

TEST(formats)
{
	check_format(0, "0 B");
	check_format(1023, "1023 B");
	check_format(1024, "1 KiB");
	check_format(1536, "1.5 KiB");
	check_format((1 << 20) - 1, "1.0 MiB");
	check_format(UINT64_C(64) << 20, "64 MiB");
	check_format(1288490188, "1.2 GiB");
	check_format(UINT64_MAX, "16.0 EiB");
}

TEST(times)
{
	static const struct {
		const char *text;
		int64_t seconds;
	} good[] = {{"@0", 0},
		    {"@-5", -5},
		    {"@1600000000", 1600000000},
		    {"1970-01-02", 86400},
		    {"2024-02-29", 1709164800},
		    {"2026-11-22T08:30:01", 1795336201},
		    {"2026-11-22 08:30:01", 1795336201},
		    {"2026-11-22T08:30:01Z", 1795336201},
		    {"9999-12-31T23:59:59", 253402300799}};
	static const char *const bad[] = {"",
					  "@",
					  "@ 5",
					  "@1.5",
					  "@-9223372036854775808",
					  "@9223372036854775807",
					  "@99999999999999999999",
					  "now",
					  "2026-02-29",
					  "2026-04-31",
					  "2026-13-01",
					  " 2026-02-01",
					  "20-01-01",
					  "2026-02-01T25:00:00",
					  "2026-02-01T23:59:60",
					  "2026-02-01T10:00:00+02:00"};
	struct error err = {0};
	int64_t t;

	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		CHECK_EQ_I(parse_time(good[i].text, &t, &err), 0);
		CHECK_EQ_I(t, good[i].seconds);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK_EQ_I(parse_time(bad[i], &t, &err), -EINVAL);
}

TEST(mount_fields)
{
	char plain[] = "/mnt/data", blank[] = "/a\\040b\\134c\\011";
	char odd[] = "\\40 \\400 \\08x \\";

	parse_mount_field(plain);
	CHECK(!strcmp(plain, "/mnt/data"));
	parse_mount_field(blank);
	CHECK(!strcmp(blank, "/a b\\c\t"));
	parse_mount_field(odd); /* these are not escapes of the kernel */
	CHECK(!strcmp(odd, "\\40 \\400 \\08x \\"));
}

int main(void)
{
	RUN(sizes);
	RUN(percents);
	RUN(sizes_refused);
	RUN(counts);
	RUN(modes);
	RUN(formats);
	RUN(times);
	RUN(mount_fields);
	return test_done();
}
