#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Columns whose rows vary in length, as apache-arrow (JavaScript) and others wrote them
(columns/binary.mjs): every row against the formula that it was made by."""
import errno
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import lib
import numpy as np
import parquets as P
from checks import check, equal, fails_with, read
from lib import Mount, case, exits, tensorfs

work = None
rng = np.random.default_rng(5)
HERE = lib.COLUMNS
ROWS = range(100)
ARROW = ("binary.arrow", "binary-zstd.arrow")
PARQUET = ("binary1.parquet", "binary2.parquet")
ONE = ("photo", "plain", "meta")  # columns of binary-one.parquet
NULLS = 10  # every tenth row of some columns


def fixture(name):
    return os.path.join(HERE, name)


def copy(name, data):
    path = os.path.join(work, name)
    with open(path, "wb") as f:
        f.write(data)
    return path


def blob(magic, i):
    return b"" if i % 10 == 4 else magic + bytes((i + k) % 256 for k in range(i * 7 % 50))


def photo(i):
    return b"" if i % NULLS == 0 else blob(b"\xff\xd8\xff", i)


def sound(i):
    return b"" if i % NULLS == 0 else blob(b"fLaC", i)


def note(i):
    return b"" if i % NULLS == 0 else b"note %d" % i


BLOBS = {"photo": ("jpg", photo), "plain": ("bin", lambda i: blob(b"", i)),
         "meta": ("json", lambda i: b'{"row":%d}' % i),
         "image": ("jpg", lambda i: blob(b"\xff\xd8\xff", i)),
         "sound": ("flac", sound)}
LISTS = {"floats": lambda i: np.array([i + k / 2 for k in range(i % 4)]
                                      if i % NULLS else [], "<f4"),
         "counts": lambda i: np.array([i * -1000] * (i % 3), "<i8")}


def check_blobs(m, column, ext, of):
    names = ["%06d.%s" % (i, ext) for i in ROWS]
    equal(sorted(os.listdir(m / column)), ["info.json", "samples"], column)
    equal(sorted(os.listdir(m / (column + "/samples"))), names, column)
    for i in rng.permutation(ROWS):
        path = m / ("%s/samples/%s" % (column, names[i]))
        equal(os.stat(path).st_size, len(of(i)), path)
        equal(read(path), of(i), path)


def check_lists(m, column, of):
    for i in rng.permutation(ROWS):
        path = m / ("%s/samples/%06d.npy" % (column, i))
        size = os.stat(path).st_size
        equal(size, len(read(path)), path)
        got = np.load(path)
        equal((got.dtype, got.tolist()), (of(i).dtype, of(i).tolist()), path)


@case
def a_file_a_row():
    for name in (*ARROW, *PARQUET, "binary-one.parquet"):
        with Mount(fixture(name)) as m:
            for column, (ext, of) in BLOBS.items():
                if column in ONE or "one" not in name:
                    check_blobs(m, column, ext, of)
            equal(json.loads(read(m / "photo/info.json"))["dtype"], "bytes", name)
        if name not in PARQUET:  # where `holes` has rows that cannot be
            exits(tensorfs("verify", fixture(name)), 0, "verify " + name)


@case
def encoded_in_any_way():
    for name in ("pages1", "plain1", "pages2", "delta2"):
        with Mount(fixture(name + ".parquet"), opts=["-o", "ext=text:md"]) as m:
            check_blobs(m, "bytes", "bin", lambda i: bytes([i, 0, 10]))
            check_blobs(m, "text", "md",
                        lambda i: ("row %d \u00e9" % i if i % 7 else "").encode())


@case
def a_list_a_row():
    for name in (*ARROW, *PARQUET):
        with Mount(fixture(name)) as m:
            for column, of in LISTS.items():
                check_lists(m, column, of)
    for name in ("pages1", "plain1", "pages2", "delta2"):
        with Mount(fixture(name + ".parquet")) as m:
            check_lists(m, "ragged", lambda i: np.array([i] * (i % 3), "i1"))


@case
def lists_with_nulls():
    """Arrow says that there are some: lines of JSON.  Parquet does not: an error."""
    for name in ARROW:
        with Mount(fixture(name)) as m:
            lines = read(m / "holes/array.txt").decode().split("\n")
            equal(lines, ["[%d]" % i if i % 5 else "[%d,null]" % i for i in ROWS] + [""], name)
    for name in PARQUET:
        with Mount(fixture(name)) as m:
            for i in ROWS:
                path = m / ("holes/samples/%06d.npy" % i)
                if i % 5:
                    equal(np.load(path).tolist(), [i], path)
                else:
                    fails_with(errno.EBADMSG, lambda: read(path), path)
        exits(tensorfs("verify", fixture(name)), 1, "verify " + name)


@case
def lists_over_pages():
    """Pages of version 1 that begin and end within a list, in two row groups."""
    rows = [[1, 2, 3, 4, 5], [], [6, 7], [-8], [], [9] * 300, [10]] * 2
    pages = b""
    levels = [(k > 0, len(x) > 0, x[k] if x else None)
              for x in rows for k in range(max(len(x), 1))]
    for at in range(0, len(levels), 7):
        some = levels[at:at + 7]
        data = [v for _, there, v in some if there]
        pages += P.page1(P.long(P.runs([r for r, _, _ in some], 1)) +
                         P.long(P.runs([d for _, d, _ in some], 1)) +
                         np.array(data, "<i4").tobytes(), len(some))
    path = P.write(os.path.join(work, "split.parquet"),
                   [P.Column("l", 1, [pages, pages], values=[len(levels)] * 2,
                             _3=P.i32(2))], len(rows), len(rows))
    with Mount(path) as m:
        for i in (*rng.permutation(2 * len(rows)), *range(2 * len(rows))):
            got = np.load(m / ("l/samples/%06d.npy" % i))
            equal((got.dtype.str, got.tolist()), ("<i4", rows[i % len(rows)]), str(i))
    exits(tensorfs("verify", path), 0, "verify")
    for count, n in ((1, len(rows)), (0, len(rows) + 1), (0, len(rows) - 1)):
        P.write(path, [P.Column("l", 1, [pages], values=[len(levels) + count],
                                _3=P.i32(2))], n)
        exits(tensorfs("verify", path), (1, 3), "%d, %d" % (count, n))


@case
def structures_of_something_else():
    """Not {bytes, path}: a structure like any other."""
    for name in (*ARROW, *PARQUET):
        data = read(fixture(name)).replace(b"path", b"p\xc3\xa4h")
        with Mount(copy("other-" + name, data)) as m:
            for column in ("image", "sound"):
                of = BLOBS[column][1]
                lines = read(m / (column + "/array.txt")).decode().split("\n")
                rows = [json.loads(x) for x in lines[:-1]]
                for i in ROWS:
                    got = rows[i] and rows[i]["bytes"] or ""
                    equal(got, of(i).hex(), "%s: row %d" % (column, i))
                    check(rows[i] is None or "p\u00e4h" in rows[i], rows[i])


@case
def called_as_one_likes():
    """ext= for all, for one, and for a column of strings, which becomes files."""
    for name in (*ARROW, PARQUET[0]):
        for ext, exts in (("dat", {}), ("photo:jpeg+dat", {"photo": "jpeg"}),
                          ("note:txt+plain:x.y", {"note": "txt", "plain": "x.y"})):
            if name != ARROW[0] and exts and not lib.full():
                continue
            with Mount(fixture(name), opts=["-o", "ext=" + ext]) as m:
                of = dict(BLOBS, note=("", note)) if "note" in exts else BLOBS
                for column, (kind, f) in of.items():
                    if column not in exts and "dat" in ext:
                        kind = "dat"
                    check_blobs(m, column, exts.get(column, kind), f)
    for bad in ("", ".", ".jpg", "a/b", "photo:", ":jpg", "jpg+", "a" * 16, "photo:a b"):
        exits(tensorfs("ls", "--ext=" + bad, fixture(ARROW[0])), 2, bad)


@case
def other_views():
    with Mount(fixture(ARROW[0]), opts=["-o", "views=all"]) as m:
        top = m / "image"
        equal(os.listdir(top + "/shards"), ["image-000000.tar", "image-index.json"], "shards")
        lines = read(os.path.join(top, "files.txt")).decode().split("\n")
        equal(lines[:2], ["samples/000000.jpg", "samples/000001.jpg"], "files.txt")
        names = os.listdir(os.path.join(top, "epochs/0/rank-1-of-3"))
        check(len(names) >= 33 and all(".jpg" in n for n in names), names)
        order = read(os.path.join(top, "epochs/0/rank-1-of-3/order.txt")).decode().split()
        first = next(n for n in sorted(names) if n.startswith("000000"))
        equal(read(os.path.join(top, "epochs/0/rank-1-of-3", first)),
              BLOBS["image"][1](int(order[0])), order[:3])


@case
def one_value_that_leads_astray():
    """A row that cannot be is an error; its neighbours are what they are."""
    whole = read(fixture(ARROW[0]))
    ends = np.cumsum([0] + [len(blob(b"", i)) for i in range(5, 70)]).astype("<i4")
    at = whole.index(ends.tobytes())
    for value in (b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff"):
        data = bytearray(whole)
        data[at + 4 * 20:at + 4 * 21] = value
        with Mount(copy("astray.arrow", data)) as m:
            for i in (24, 25):
                fails_with((errno.EIO, errno.EBADMSG),
                           lambda: read(m / ("plain/samples/%06d.bin" % i)), str(i))
            for i in (4, 5, 23, 26, 69, 70, 99):
                equal(read(m / ("plain/samples/%06d.bin" % i)), blob(b"", i), str(i))
        exits(tensorfs("verify", copy("astray.arrow", data)), 1, "verify")


@case
def bytes_changed_at_random():
    """Never a crash, never a hang: a sentence, or other bytes."""
    for name in (*ARROW, *PARQUET):
        whole = read(fixture(name))
        for i in range(24 if lib.full() else 6):
            data = bytearray(whole)
            low = 0 if i % 2 else len(whole) - 3000
            for at in rng.integers(low, len(whole), 4):
                data[int(at)] = rng.choice([0, 1, 127, 128, 255])
            p = tensorfs("verify", copy("changed-" + name, data))
            exits(p, (0, 1, 3, 4, 5), "%s %d" % (name, i))
        for n in rng.integers(8, len(whole), 8 if lib.full() else 2):
            exits(tensorfs("verify", copy("cut", whole[:n])), (3, 4), str(n))


work = lib.setup()
lib.main()
