#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Parquet files that polars and arrow-rs wrote (columns/make.mjs): every column against
the formula that it was made by."""
import errno
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import lib
import numpy as np
import parquets as P
from checks import check, equal, read
from lib import Mount, case, exits, tensorfs

work = None
rng = np.random.default_rng(4)
HERE = lib.COLUMNS
I = np.arange(100)
POLARS = {"i4": (I * 3 - 7).astype("i4"), "i8": (I * 3 - 7).astype("i8"),
          "f4": (I / 4).astype("f4"), "f8": I / 4, "few": (I % 3).astype("i4"),
          "bool": I % 3 == 0}
RUST = {**{t: I.astype(t) for t in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8",
                                    "f4", "f8")},
        "negative": (-I).astype("i1"), "bool": I % 3 == 0, "day": I.astype("i4"),
        "fixed": np.array([bytes([i, 1, 2]) for i in I], "S3").view("V3")}


def fixture(name):
    return os.path.join(HERE, name + ".parquet")


def copy(name, data):
    path = os.path.join(work, name)
    with open(path, "wb") as f:
        f.write(data)
    return path


def check_numbers(m, columns):
    for name, want in columns.items():
        got = np.load(m / (name + "/array.npy"))
        equal((got.dtype, got.shape), (want.dtype, want.shape), name)
        equal(got.tobytes(), want.tobytes(), name)
        for i in (0, 29, 30, 99):
            got = np.load(m / ("%s/samples/%06d.npy" % (name, i)))
            equal(got.tobytes(), want[i].tobytes(), "%s: row %d" % (name, i))


def check_text(m, column, lines):
    equal(read(m / (column + "/array.txt")).decode(),
          "".join(x + "\n" for x in lines), column)
    for i in (0, 1, 29, 30, 64, 99):
        equal(read(m / ("%s/samples/%06d.txt" % (column, i))).decode(),
              lines[i] + "\n", "%s: row %d" % (column, i))


@case
def codecs():
    for name in ("uncompressed", "snappy", "gzip", "zstd", "lz4"):
        with Mount(fixture(name)) as m:
            check_numbers(m, POLARS)
            check_text(m, "text", ["row %d \u00e9 and more" % i if i % 7 else ""
                                   for i in I])
        exits(tensorfs("verify", fixture(name)), 0, "verify " + name)


@case
def row_groups_and_pages():
    """Four row groups of many pages, versions 1 and 2, plain, by dictionary, delta."""
    for name in ("pages1", "plain1", "pages2", "delta2"):
        with Mount(fixture(name)) as m:
            equal(sorted(os.listdir(m.path)),
                  sorted([*RUST, "ragged", "bytes", "text", "few"]), name)
            check_numbers(m, RUST)
            check_text(m, "text", ["row %d \u00e9" % i if i % 7 else "" for i in I])
            check_text(m, "few", ["abc"[i % 3] for i in I])
        exits(tensorfs("verify", fixture(name)), 0, "verify " + name)


@case
def nulls_are_lines_of_json():
    for name in ("zstd", "uncompressed"):
        with Mount(fixture(name)) as m:
            lines = read(m / "nulls/array.txt").decode().split("\n")
            equal(lines, [str(i) if i % 2 else "null" for i in I] + [""], name)


@case
def a_codec_of_one_column():
    """It is named; other columns are what they are."""
    v = np.arange(8, dtype="<i4")
    path = P.write(os.path.join(work, "codecs.parquet"), [
        P.Column(name, P.INT32, P.page1(v.tobytes(), 8), codec=codec)
        for name, codec in (("good", 0), ("brotli", 4), ("lzo", 3), ("old", 5),
                            ("new", 77))], 8)
    with Mount(path) as m:
        equal(np.load(m / "good/array.npy").tolist(), v.tolist(), "good")
    for name, codec in (("brotli", "brotli"), ("lzo", "lzo"), ("old", "lz4 in its"),
                        ("new", "an unknown codec")):
        out = exits(tensorfs("info", path + ":" + name), 0, name).stdout
        check("compressed with " + codec in out, out)


@case
def cut_anywhere():
    for name in ("pages1", "zstd"):
        whole = read(fixture(name))
        for n in [4, 8, 11, 12, *rng.integers(12, len(whole), 12 if lib.full() else 4),
                  len(whole) - 1]:
            p = tensorfs("verify", copy("cut.parquet", whole[:n]))
            exits(p, 3, str(n))
            check("cut.parquet" in p.stderr, p.stderr)
    p = tensorfs("ls", copy("e.parquet", whole[:-4] + b"PARE"))
    check("encrypted" in exits(p, 3, "encrypted").stderr, p.stderr)


@case
def bytes_changed_at_random():
    """Never a crash, never a hang: a sentence, or other numbers."""
    for name in ("pages1", "pages2", "gzip", "snappy", "lz4"):
        whole = read(fixture(name))
        for i in range(14 if lib.full() else 4):
            data = bytearray(whole)
            low = 0 if i % 2 else len(whole) - 2500
            for at in rng.integers(low, len(whole), 3):
                data[int(at)] = rng.choice([0, 1, 127, 128, 255])
            p = tensorfs("verify", copy("changed.parquet", data))
            exits(p, (0, 1, 3, 4, 5), "%s %d" % (name, i))


@case
def damage_in_a_page_is_an_error():
    data = bytearray(read(fixture("gzip")))
    at = data.index(b"\x1f\x8b")
    data[at + 12] ^= 0x55
    with Mount(copy("damage.parquet", data)) as m:
        failed = 0
        for column, want in POLARS.items():
            try:
                equal(np.load(m / (column + "/array.npy")).tobytes(),
                      want.tobytes(), column)
            except OSError as e:
                check(e.errno in (errno.EIO, errno.EBADMSG), e)
                failed += 1
        equal(failed, 1, "columns with a damaged page")


work = lib.setup()
lib.main()
