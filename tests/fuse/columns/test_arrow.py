#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Arrow IPC files that apache-arrow (JavaScript) and polars wrote (columns/make.mjs):
every column against the formula that it was made by."""
import concurrent.futures
import errno
import json
import os
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import arrows as A
import lib
import numpy as np
from checks import check, equal, fails_with, read
from lib import Mount, case, exits, tensorfs

work = None
rng = np.random.default_rng(3)
HERE = lib.COLUMNS
I = np.arange(100)
NUMBERS = {**{t: (I % 100).astype(t)
              for t in ("i1", "u1", "i2", "u2", "i4", "u4", "f4", "f8")},
           "i8": I.astype("i8") * -10000000000, "u8": I.astype("u8") * 10000000000,
           "f2": (I / 2).astype("f2"), "bool": I % 3 == 0,
           "bools": np.stack([I % 2 == 0, I % 3 == 0, I % 5 == 0], 1),
           "vector": np.stack([I, I + 0.25, I + 0.5, -1.0 * I], 1).astype("f4"),
           "matrix": np.array([[[i, 1, 2], [3, 4, -i]] for i in I], "i2"),
           "day": I.astype("i4"),
           "time": (1700000000000 + I) * 1000,
           "fixed": np.array([bytes([i, 1, 2]) for i in I], "S3").view("V3")}
POLARS = {"i4": (I * 3 - 7).astype("i4"), "i8": (I * 3 - 7).astype("i8"),
          "f4": (I / 4).astype("f4"), "f8": I / 4, "few": (I % 3).astype("i4"),
          "bool": I % 3 == 0}
VARYING = {"bytes", "ragged"}  # test_binary.py has more of these


def fixture(name):
    return os.path.join(HERE, name)


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
        for i in (0, 4, 5, 69, 70, 99):
            got = np.load(m / ("%s/samples/%06d.npy" % (name, i)))
            equal(got.tobytes(), want[i].tobytes(), "%s: row %d" % (name, i))


def check_text(m):
    lines = [("row %d \u00e9" % i if i % 7 else "") for i in I]
    equal(read(m / "text/array.txt").decode(), "".join(x + "\n" for x in lines),
          "strings")
    for i in (0, 1, 69, 70):
        equal(read(m / ("text/samples/%06d.txt" % i)).decode(), lines[i] + "\n",
              "string %d" % i)
    equal(read(m / "large/array.txt").decode(),
          "".join("line\\n%d\n" % i for i in I), "large strings")


@case
def files_and_streams():
    for name in ("one.arrow", "batches.arrow", "batches.arrows"):
        with Mount(fixture(name)) as m:
            equal(sorted(os.listdir(m.path)),
                  sorted([*NUMBERS, *VARYING, "nulls", "text", "large"]), name)
            check_numbers(m, NUMBERS)
            check_text(m)
            for i in (0, 4, 5, 99):
                equal(read(m / ("bytes/samples/%06d.bin" % i)), bytes([i, 0, 10]), str(i))
                got = np.load(m / ("ragged/samples/%06d.npy" % i))
                equal(got.tolist(), [i % 100] * (i % 3), "list %d" % i)
            info = json.loads(read(m / "time/info.json"))
            check("microseconds" in info["note"], info)
        exits(tensorfs("verify", fixture(name)), 0, "verify " + name)


@case
def compressed_buffers():
    for name in ("uncompressed", "lz4", "zstd"):
        with Mount(fixture(name + ".arrow")) as m:
            for column, want in POLARS.items():
                got = np.load(m / (column + "/array.npy"))
                equal((got.dtype, got.tobytes()), (want.dtype, want.tobytes()),
                      "%s: %s" % (name, column))
        exits(tensorfs("verify", fixture(name + ".arrow")), 0, "verify " + name)


@case
def one_large_batch_of_texts():
    """Compressed in one piece, and asked for a few at a time, by many; the buffers of
    the three columns are more than are kept decoded."""
    n, filler = 60000, "x" * 160
    reads = 200 if lib.full() else 40
    columns = {name: ["%s %d %s" % (name, i * 7919 % n, filler) for i in range(n)]
               for name in "abc"}

    def zstd(data):
        return struct.pack("<q", len(data)) + subprocess.run(
            ["zstd", "-q", "-1", "-c"], input=data, stdout=subprocess.PIPE,
            check=True).stdout

    buffers = []
    for texts in columns.values():
        ends = np.cumsum([0] + [len(t) for t in texts]).astype("<i4")
        buffers += [b"", zstd(ends.tobytes()), zstd("".join(texts).encode())]
    schema = A.schema([A.field(name, 5, {}) for name in columns])
    path = copy("texts.arrow", A.file(schema, A.plain(
        n, *buffers, nodes=[(n, 0)] * 3, codec=1)))
    with Mount(path) as m:
        def some(seed):
            for i in np.random.default_rng(seed).integers(0, n, reads):
                for name, texts in columns.items():
                    equal(read(m / ("%s/samples/%06d.txt" % (name, i))).decode(),
                          texts[i] + "\n", "%s %d" % (name, i))
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            list(pool.map(some, range(3)))
        for name, texts in columns.items():
            equal(read(m / (name + "/array.txt")).decode(),
                  "".join(t + "\n" for t in texts), name)


@case
def nulls_are_lines_of_json():
    for name in ("batches.arrow", "one.arrow", "zstd.arrow", "lz4.arrow"):
        with Mount(fixture(name)) as m:
            lines = read(m / "nulls/array.txt").decode().split("\n")
            equal(lines, [str(i) if i % 2 else "null" for i in I] + [""], name)
            equal(read(m / "nulls/samples/000008.txt"), b"null\n", name)
    with Mount(fixture("dictionary.arrow")) as m:
        equal(read(m / "kind/array.txt"), b"a\nb\na\n", "dictionary")


@case
def refused():
    p = exits(tensorfs("ls", copy("old.feather", b"FEA1" + bytes(60))), 3, "ls")
    check("version 2" in p.stderr, p.stderr)


@case
def in_place():
    """Numbers that are not compressed cost no memory: a batch is a part."""
    out = exits(tensorfs("info", fixture("batches.arrow")), 0, "info").stdout
    line = next(x for x in out.split("\n") if x.startswith("vector "))
    check("contiguous" in line and "3 of 3 parts" in line, line)


@case
def cut_anywhere():
    for name in ("batches.arrow", "batches.arrows", "zstd.arrow"):
        whole = read(fixture(name))
        for n in [*range(8, 400, 56 if lib.full() else 112),
                  *rng.integers(400, len(whole), 12 if lib.full() else 4)]:
            p = tensorfs("verify", copy("cut-" + name, whole[:n]))
            # A stream may end behind any of its messages.
            exits(p, (0, 3, 4) if name.endswith("s") else (3, 4), "%d" % n)


@case
def bytes_changed_at_random():
    """Never a crash, never a hang: a sentence, or other numbers."""
    for name in ("batches.arrow", "batches.arrows", "lz4.arrow"):
        whole = read(fixture(name))
        for i in range(40 if lib.full() else 10):
            data = bytearray(whole)
            for at in rng.integers(0, len(whole), 3) if i % 2 else \
                    rng.integers(0, 12, 3) * -64 % len(whole) + rng.integers(0, 64, 3):
                data[int(at) % len(whole)] = rng.choice([0, 1, 127, 128, 255])
            p = tensorfs("verify", copy("changed-" + name, data))
            exits(p, (0, 1, 3, 4, 5), "%s %d" % (name, i))


@case
def strings_that_lead_astray():
    whole = read(fixture("one.arrow"))
    # The offsets of `text`: 101 numbers from 0 on.
    lengths = [len(("row %d \u00e9" % i).encode()) if i % 7 else 0 for i in I]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype("<i4").tobytes()
    at = whole.index(offsets)
    for value in (b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff", b"\0\0\0\0"):
        data = bytearray(whole)
        data[at + 4 * 50:at + 4 * 51] = value
        with Mount(copy("astray.arrow", data)) as m:
            fails_with((errno.EIO, errno.EBADMSG),
                       lambda: read(m / "text/array.txt"), "offsets")
            check_numbers(m, {"f4": NUMBERS["f4"]})


work = lib.setup()
lib.main()
