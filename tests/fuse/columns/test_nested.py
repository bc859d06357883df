#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Dictionaries, views, nested lists and structures, as apache-arrow (JavaScript), polars,
DuckDB and arrow-rs wrote them (columns/nested.mjs): every row against the formula that it
was made by."""
import errno
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import lib
import numpy as np
from checks import check, equal, fails_with, read
from lib import Mount, case, exits, tensorfs

work = None
rng = np.random.default_rng(11)
HERE = lib.COLUMNS
ROWS = range(60)
ARROW = ("nested.arrow", "nested.arrows")
POLARS = ("nested-uncompressed.arrow", "nested-zstd.arrow", "nested.parquet")
RUST = ("nested1.parquet", "nested2.parquet")
DUCK = "nested-duck.parquet"

JSON = {
    "tags": lambda i: None if i % 9 == 4 else
    [None if k == 2 else "t%d-%d" % (i, k) for k in range(i % 4)],
    "grid": lambda i: [[i] * (k + i % 2) for k in range(i % 3)],
    "st": lambda i: {"a": i, "b": 'q\u00e9"%d' % i if i % 6 else None,
                     "c": [i / 2] * (i % 2)},
    "pairs": lambda i: [{"p": i, "q": k % 2 == 0} for k in range(i % 3)],
    "maybe": lambda i: "m%d" % (i % 2) if i % 5 else None,
    "holes": lambda i: i if i % 4 else None,
    "three": lambda i: ["a%d" % i, "", "c"],
    "words": lambda i: ["w%d" % ((i + k) % 4) for k in range(i % 3)],
    "map": lambda i: [{"key": "xyz"[i % 3], "value": i % 3}]}
TEXT = {"kind": lambda i: "xyz"[i % 3],
        "view": lambda i: "short%d" % i if i % 2 else
        "a text of more than twelve bytes, %d" % i}
NUMBERS = {"code": np.array([i % 4 * 1000 for i in ROWS], "<i4"),
           "label": np.array([i % 3 for i in ROWS], "<i8")}
BLOBS = {"blob": lambda i: bytes([i % 2, 255]),
         "bview": lambda i: bytes([i, 0] if i % 2 else
                                  [(k + i) & 255 for k in range(20 + i)])}
NESTED = ("tags", "grid", "st", "pairs", "maybe", "holes")
COLUMNS = {
    **{f: [*NESTED, "three", *TEXT, *NUMBERS, *BLOBS] for f in ARROW},
    **{f: [*NESTED, "words", *TEXT, "label"] for f in POLARS},
    **{f: [*NESTED, "label"] for f in RUST},
    DUCK: [*NESTED, "words", "map", *TEXT, "label"]}


def fixture(name):
    return os.path.join(HERE, name)


def copy(name, data):
    path = os.path.join(work, name)
    with open(path, "wb") as f:
        f.write(data)
    return path


def check_lines(m, column, of, parse):
    lines = read(m / (column + "/array.txt")).decode().split("\n")
    equal(lines.pop(), "", column)
    equal([parse(x) for x in lines], [of(i) for i in ROWS], column)
    for i in rng.permutation(ROWS)[:12]:
        path = m / ("%s/samples/%06d.txt" % (column, i))
        equal(os.stat(path).st_size, len(read(path)), path)
        equal(read(path).decode(), lines[i] + "\n", path)


@case
def structures_of_one_field():
    """As DuckDB's to_json has the rows: their names are not dropped."""
    want = {"a": lambda i: [{"u": i}, {"u": i + 1}], "b": lambda i: {"z": [i, 2]},
            "d": lambda i: {"z": None}, "e": lambda i: [None],
            "g": lambda i: [[i]], "h": lambda i: {"s": {"t": [float(i)]}}}
    with Mount(fixture("nested-one.parquet")) as m:
        for name, f in want.items():
            rows = read(m / (name + "/array.txt")).decode().splitlines()
            equal([json.loads(r) for r in rows], [f(i) for i in range(5)], name)
            equal(json.loads(read(m / (name + "/samples/000003.txt"))), f(3), name)
        # A list of numbers stays a sequence.
        equal(os.listdir(m / "f/samples")[0], "000000.npy", "a list of numbers")
    p = tensorfs("verify", fixture("nested-one.parquet"))
    check("bad: f: " in p.stdout and "list of row 0" in p.stdout, p.stdout)


@case
def a_sentence_where_stat_fails():
    """How long a list with a null would be as an array nobody can say."""
    with Mount(fixture("nested-one.parquet")) as m:
        fails_with(errno.EBADMSG, lambda: os.stat(m / "f/samples/000000.npy"),
                   "stat")
        why = os.getxattr(m / "f/samples", "user.tensorfs.error")
        check(b"null" in why and b"row 0" in why, "error: %r" % why)


@case
def every_row():
    for name, columns in COLUMNS.items():
        with Mount(fixture(name)) as m:
            equal(sorted(os.listdir(m.path)), sorted(columns), name)
            for c in columns:
                what = "%s: %s" % (name, c)
                if c in JSON:
                    check_lines(m, c, JSON[c], json.loads)
                elif c in TEXT:
                    check_lines(m, c, TEXT[c], str)
                elif c in NUMBERS:
                    got, want = np.load(m / (c + "/array.npy")), NUMBERS[c]
                    equal((got.dtype, got.tolist()), (want.dtype, want.tolist()), what)
                    equal(int(np.load(m / (c + "/samples/000007.npy"))), want[7], what)
                else:
                    for i in rng.permutation(ROWS):
                        path = m / ("%s/samples/%06d.bin" % (c, i))
                        equal(os.stat(path).st_size, len(BLOBS[c](i)), path)
                        equal(read(path), BLOBS[c](i), path)
        exits(tensorfs("verify", fixture(name)), 0, "verify " + name)


@case
def nulls_are_said():
    for name in (ARROW[0], POLARS[2]):
        with Mount(fixture(name)) as m:
            info = json.loads(read(m / "holes/info.json"))
            equal(info["dtype"], "json", name)
            check("or null" in info["type"] and "nulls" in info["note"], info)
            info = json.loads(read(m / "grid/info.json"))
            check("list of list of int" in info["type"], info)


@case
def strings_as_files():
    with Mount(fixture(ARROW[1]), opts=["-o", "ext=view:md+maybe:txt+kind:cls"]) as m:
        for c, ext, of in (("view", "md", TEXT["view"]), ("kind", "cls", TEXT["kind"]),
                           ("maybe", "txt", lambda i: JSON["maybe"](i) or "")):
            for i in ROWS:
                equal(read(m / ("%s/samples/%06d.%s" % (c, i, ext))).decode(), of(i), c)


@case
def a_codec_that_is_not_there():
    out = exits(tensorfs("info", fixture("brotli.parquet")), 0, "info").stdout
    for column in ("label", "tags"):
        check(column in out, out)
    check("compressed with brotli" in out and "snappy, gzip, zstd" in out, out)


@case
def cut_and_changed():
    """Never a crash, never a hang: a sentence, or other values."""
    for name in (ARROW[1], *POLARS[:2], RUST[0], DUCK):
        whole = read(fixture(name))
        for i in range(24 if lib.full() else 6):
            data = bytearray(whole)
            low = 0 if i % 2 else len(whole) - min(3000, len(whole))
            for at in rng.integers(low, len(whole), 4):
                data[int(at)] = rng.choice([0, 1, 127, 128, 255])
            p = tensorfs("verify", copy("changed-" + name, data))
            exits(p, (0, 1, 3, 4, 5), "%s %d" % (name, i))
        for n in rng.integers(8, len(whole), 6 if lib.full() else 2):
            codes = (0, 3, 4) if name.endswith("s") else (3, 4)
            exits(tensorfs("verify", copy("cut-" + name, whole[:n])), codes,
                  str(n))


@case
def one_number_that_leads_astray():
    """A row whose number its dictionary has not is an error; others are what they are."""
    whole = read(fixture(ARROW[0]))
    at = whole.index(np.array([i % 4 for i in ROWS], "<i2").tobytes())
    for value in (b"\x04\0", b"\xff\xff"):
        data = bytearray(whole)
        data[at + 2 * 20:at + 2 * 21] = value
        with Mount(copy("astray.arrow", data)) as m:
            fails_with(errno.EBADMSG, lambda: read(m / "code/array.npy"), "code")
            check_lines(m, "kind", TEXT["kind"], str)
        exits(tensorfs("verify", copy("astray.arrow", data)), 1, "verify")


work = lib.setup()
lib.main()
