#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Parquet pages in every encoding, by arrow-rs (columns/make.mjs) and by hand
(parquets.py), and pages that say one thing and hold another: never other numbers."""
import errno
import json
import os
import sys
import zlib
from concurrent import futures

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import lib
import numpy as np
import parquets as P
from checks import check, equal, fails_with, read
from lib import Mount, case, exits, tensorfs

work = None
rng = np.random.default_rng(11)
HERE = lib.COLUMNS
I = np.arange(1000)
GOLDEN = I.astype("u8") * np.uint64(0x9E3779B97F4A7C15)
WILD = {"d4": GOLDEN.astype("u4").view("i4"), "d8": GOLDEN.view("i8"),
        "slow": (I >> 3).astype("i8"), "u4": GOLDEN.astype("u4"),
        "i1": (I % 256 - 128).astype("i1"), "s4": (I / 7).astype("f4"), "s8": I / 7,
        "mixed": np.where(I < 400, I % 5, I * 17).astype("i4"), "bool": I % 3 == 0}


def path(name):
    return os.path.join(work, name + ".parquet")


def lines(texts):
    return "".join(x + "\n" for x in texts)


@case
def encodings_of_arrow_rs():
    """Delta, split, lengths, prefixes; a dictionary that is given up midway."""
    for name in ("wild1", "wild2"):
        fixture = os.path.join(HERE, name + ".parquet")
        with Mount(fixture) as m:
            for column, want in WILD.items():
                got = np.load(m / (column + "/array.npy"))
                equal((got.dtype, got.tobytes()), (want.dtype, want.tobytes()),
                      name + ": " + column)
            equal(read(m / "length/array.txt").decode(),
                  lines("x" * (i % 50) + str(i) for i in I), name)
            equal(read(m / "prefix/array.txt").decode(),
                  lines("row %d" % (i * i) for i in I), name)
            equal(read(m / "prefix/samples/000999.txt"), b"row 998001\n", name)
        exits(tensorfs("verify", fixture), 0, "verify " + name)


@case
def pages_without_bytes():
    """All null, in pages of version 2: Spark leaves out what snappy makes of nothing, and
    DuckDB reads nulls."""
    for codec in (1, 2, 6, 7):  # snappy, gzip, zstd, lz4
        levels = P.runs([0] * 5, 1)
        page = P.page2(b"", 5, levels=levels, nulls=5)
        c = P.Column("x", P.INT32, page, optional=True, codec=codec, nulls=5)
        with Mount(P.write(path("none%d" % codec), [c], 5)) as m:
            equal(read(m / "x/array.txt"), b"null\n" * 5, "codec %d" % codec)


@case
def footers_without_rows():
    """0 in the footer, 6 in the row group: DuckDB reads 6; any other number is damage."""
    a = np.arange(6, dtype="<i4")
    c = P.Column("x", P.INT32, P.page1(a.tobytes(), 6))
    with Mount(P.write(path("norows"), [c], 6, total=0)) as m:
        equal(np.load(m / "x/array.npy").tolist(), a.tolist(), "rows")
    exits(tensorfs("ls", P.write(path("rows5"), [c], 6, total=5)), 3, "5 rows of 6")


@case
def a_dictionary_header_that_is_not_counted():
    """Chunks of parquet-mr before 1.2.9 are too short by the header of their dictionary
    (nation.dict-malformed.parquet of parquet-testing); DuckDB reads them.  A chunk that
    is too short otherwise is damaged."""
    words = [b"abc", b"d", b"efgh"]
    some = P.dictionary(b"".join(map(P.long, words)), 3)
    data = P.page1(b"\x02" + P.runs([0, 2, 1, 1, 0, 2], 2), 6, P.RLE_DICTIONARY)
    head = len(some) - sum(4 + len(w) for w in words)
    numbers = P.Column("n", P.INT32, P.page1(np.arange(6, dtype="i4").tobytes(), 6))
    for short in (head, head - 1, head + 1, len(data)):
        c = P.Column("x", P.BYTES, some + data, encoding=P.RLE_DICTIONARY, _6=P.i32(0),
                     short=short)
        p = P.write(path("uncounted"), [c, numbers], 6)
        with Mount(p) as m:
            equal(np.load(m / "n/array.npy").tolist(), list(range(6)), "its neighbour")
            if short == head:
                equal(read(m / "x/array.txt"), b"abc\nefgh\nd\nd\nabc\nefgh\n", "words")
            else:
                fails_with(errno.EBADMSG, lambda: read(m / "x/array.txt"), str(short))
        exits(tensorfs("verify", p), 0 if short == head else 1, "verify")


@case
def decimals_in_json():
    """With nulls, or in lists: their digits, whatever they are stored as."""
    values = [150, -7, 0, 2 ** 31 - 1]
    want = [None, "1.50", "-0.07", "0.00", "21474836.47"]
    levels = P.runs([0, 1, 1, 1, 1], 1)
    for name, kind, data, more in (
            ("i4", P.INT32, b"".join(v.to_bytes(4, "little", signed=True)
                                     for v in values), {}),
            ("i8", P.INT64, b"".join(v.to_bytes(8, "little", signed=True)
                                     for v in values), {}),
            ("fixed", P.FIXED, b"".join(v.to_bytes(7, "big", signed=True)
                                        for v in values), {"_2": P.i32(7)})):
        c = P.Column("x", kind, P.page2(data, 5, levels=levels, nulls=1), optional=True,
                     nulls=1, _10=decimal_of(2), **more)
        with Mount(P.write(path(name), [c], 5)) as m:
            equal([json.loads(x) for x in read(m / "x/array.txt").split()], want, name)
            note = json.loads(read(m / "x/info.json")).get("note", "")
            check("divided" not in note, note)


@case
def deltas_of_every_shape():
    """Blocks and miniblocks of other sizes, steps of every width, any count of values."""
    columns, want = [], {}
    for k, (block, minis) in enumerate([(128, 4), (128, 1), (256, 8), (1024, 2)]):
        for bits, kind in ((32, P.INT32), (64, P.INT64)):
            name = "d%d_%d" % (bits, k)
            v = rng.integers(0, 2**bits - 1, 1000, "u8", True) >> \
                np.arange(1000, dtype="u8") * (bits - 1) // 999
            v = v.astype("u%d" % (bits // 8)).view("i%d" % (bits // 8))
            v[:4] = [0, -2**(bits - 1), 2**(bits - 1) - 1, -1]
            want[name] = v
            pages = b"".join(
                P.page1(P.delta(v[a:b], block, minis, bits), b - a, P.DELTA)
                for a, b in ((0, 1), (1, 2), (2, 2), (2, 131), (131, 1000)))
            columns.append(P.Column(name, kind, pages, encoding=P.DELTA))
    with Mount(P.write(path("deltas"), columns, 1000)) as m:
        for name, v in want.items():
            equal(np.load(m / (name + "/array.npy")).tobytes(), v.tobytes(), name)


@case
def bytes_apart():
    a = {"f4": (P.FLOAT, rng.random(1000, "f4")), "f8": (P.DOUBLE, rng.random(1000)),
         "i4": (P.INT32, rng.integers(-9, 99, 1000, "i4")),
         "i8": (P.INT64, rng.integers(-9, 99, 1000, "i8")),
         "v5": (P.FIXED, rng.integers(0, 256, (1000, 5), "u1").view("V5")[:, 0]),
         "v5000": (P.FIXED, rng.integers(0, 256, (7, 5000), "u1").view("V5000")[:, 0])}
    for name, (kind, v) in a.items():
        half = len(v) // 2
        pages = P.page1(P.split(v[:half]), half, P.SPLIT) + \
            P.page2(P.split(v[half:]), len(v) - half, P.SPLIT)
        c = P.Column(name, kind, pages, encoding=P.SPLIT, _2=P.i32(v.dtype.itemsize))
        with Mount(P.write(path(name), [c], len(v))) as m:
            equal(np.load(m / (name + "/array.npy")).tobytes(), v.tobytes(), name)


V = np.arange(100, 108, dtype="i4")
# Eight indices of three bits, of which three are there when two are missing.
FEW = P.dictionary(V.tobytes(), 8)
INDICES = b"\3" + P.runs(range(8), 3, True)
ONES = P.runs([1] * 8, 1)
HOLES = P.runs([1, 1, 0, 0, 1, 1, 1, 1], 1)
LYING = {
    # name: pages, encoding
    "levels1": (P.page1(P.long(HOLES) + V.tobytes(), 8), P.PLAIN),
    "levels1-dictionary": (FEW + P.page1(P.long(HOLES) + INDICES, 8, P.RLE_DICTIONARY),
                           P.RLE_DICTIONARY),
    "levels2": (P.page2(V.tobytes(), 8, levels=HOLES), P.PLAIN),
    "levels2-packed": (P.page2(V.tobytes(), 8, levels=P.runs(
        [1, 1, 1, 1, 1, 1, 1, 0], 1, True)), P.PLAIN),
    "levels2-dictionary": (FEW + P.page2(INDICES, 8, P.RLE_DICTIONARY, HOLES),
                           P.RLE_DICTIONARY),
    "levels2-few": (P.page2(V.tobytes(), 8, levels=P.runs([1] * 7, 1)), P.PLAIN),
    "levels-of-2": (P.page1(P.long(P.runs([2] * 8, 2)) + V.tobytes(), 8), P.PLAIN),
    "nulls2": (P.page2(V.tobytes(), 8, levels=ONES, nulls=1), P.PLAIN),
    "rows2": (P.page2(V.tobytes(), 8, levels=ONES, rows=7), P.PLAIN),
    "repeats2": (P.page2(V.tobytes(), 8, levels=HOLES, repeats=ONES), P.PLAIN),
    "levels-long": (P.page1(b"\xff\xff\xff\x7f" + V.tobytes(), 8), P.PLAIN),
    "index": (P.dictionary(V[:7].tobytes(), 7) + P.page2(
        INDICES, 8, P.RLE_DICTIONARY, ONES), P.RLE_DICTIONARY),
    "no-dictionary": (P.page2(INDICES, 8, P.RLE_DICTIONARY, ONES), P.RLE_DICTIONARY),
    "two-dictionaries": (FEW + FEW + P.page2(INDICES, 8, P.RLE_DICTIONARY, ONES),
                         P.RLE_DICTIONARY),
    "dictionary-short": (P.dictionary(V.tobytes(), 9) + P.page2(
        INDICES, 8, P.RLE_DICTIONARY, ONES), P.RLE_DICTIONARY),
    "few": (P.page2(V[:7].tobytes(), 7), P.PLAIN),
    "short": (P.page2(V[:7].tobytes(), 8), P.PLAIN),
    "many": (P.page2(V.tobytes() + bytes(4), 9), P.PLAIN),
    "behind": (P.page2(V.tobytes(), 8) + P.page2(V.tobytes(), 8), P.PLAIN),
    "size": (P.page2(V.tobytes(), 8, size=2**31 - 1), P.PLAIN),
    "size-negative": (P.page2(V.tobytes(), 8, size=-1), P.PLAIN),
    "crc": (P.page2(V.tobytes(), 8, crc=1), P.PLAIN),
    "split-short": (P.page2(P.split(V)[:-1], 8, P.SPLIT), P.SPLIT),
    "split-long": (P.page2(P.split(V) + b"\0", 8, P.SPLIT), P.SPLIT),
    "delta-count": (P.page2(P.delta(V[:7]), 8, P.DELTA), P.DELTA),
    "delta-more": (P.page2(P.delta(np.arange(9)), 8, P.DELTA), P.DELTA),
    "delta-cut": (P.page2(P.delta(V[::-1] * V % 77)[:-1], 8, P.DELTA), P.DELTA),
    "delta-block-0": (P.page2(b"\0\4\x08\0", 8, P.DELTA), P.DELTA),
    "delta-block-huge": (P.page2(P.varint(2**63) + b"\4\x08\0" + bytes(99), 8, P.DELTA),
                         P.DELTA),
    "delta-minis-0": (P.page2(P.varint(128) + b"\0\x08\0" + bytes(99), 8, P.DELTA),
                      P.DELTA),
    "delta-width": (P.page2(P.varint(128) + b"\4\x08\0\0\x41\0\0\0" + bytes(999), 8,
                            P.DELTA), P.DELTA),
    "delta-of-text": (P.page2(P.delta(V), 8, P.DELTA_LENGTHS), P.DELTA_LENGTHS),
    "rle": (P.page2(P.long(ONES), 8, P.RLE), P.RLE),
}


@case
def what_lies_is_an_error():
    """Each page beside one that is right: EBADMSG for those rows, with a sentence."""
    good = P.Column("good", P.INT32, P.page2(V.tobytes(), 8, levels=ONES), True)
    for name, (pages, encoding) in LYING.items():
        p = P.write(path(name), [P.Column("x", P.INT32, pages, True, encoding, nulls=0),
                                 good], 8)
        with Mount(p) as m:
            equal(np.load(m / "good/array.npy").tobytes(), V.tobytes(), name)
            try:
                got = np.load(m / "x/array.npy")
                check(False, "%s: %r" % (name, got))
            except OSError as e:
                equal(e.errno, errno.EBADMSG, name)
        out = exits(tensorfs("verify", p), 1, name)
        check("bad: x" in out.stdout, (name, out.stdout))


TEXTS = [b"", b"a", b"abc", b"abd", b"", b"abdomen", b"b" * 300, b"b" * 299]
PREFIX = [0, 0, 1, 2, 0, 0, 0, 299]


def prefixed(prefixes, texts, count=8):
    return P.delta(prefixes[:count]) + P.delta(
        [len(t) - p for p, t in zip(prefixes, texts)][:count]) + b"".join(
            t[p:] for p, t in zip(prefixes, texts))


@case
def texts_by_lengths_and_prefixes():
    lengths = P.delta([len(t) for t in TEXTS])
    body = b"".join(TEXTS)
    good = {"lengths": (P.page1(lengths + body, 8, P.DELTA_LENGTHS)),
            "prefixes": (P.page2(prefixed(PREFIX, TEXTS), 8, P.DELTA_BYTES))}
    bad = {"lengths-cut": P.page2(lengths + body[:-1], 8, P.DELTA_LENGTHS),
           "lengths-negative": P.page2(P.delta([3, -1] * 4) + body, 8, P.DELTA_LENGTHS),
           "lengths-few": P.page2(P.delta([3] * 7) + body, 8, P.DELTA_LENGTHS),
           "prefix-first": P.page2(prefixed([1, *PREFIX[1:]], [b"aa", *TEXTS[1:]]), 8,
                                   P.DELTA_BYTES),
           "prefix-long": P.page2(P.delta([0, 9] * 4) + P.delta([1] * 8) + body, 8,
                                  P.DELTA_BYTES),
           "prefix-negative": P.page2(P.delta([0, -1] * 4) + P.delta([1] * 8) + body, 8,
                                      P.DELTA_BYTES)}
    columns = [P.Column(k, P.BYTES, v, _6=P.i32(0)) for k, v in (good | bad).items()]
    with Mount(P.write(path("texts"), columns, 8)) as m:
        for name in good:
            equal(read(m / (name + "/array.txt")).decode(),
                  lines(t.decode() for t in TEXTS), name)
        for name in bad:
            try:
                check(False, (name, read(m / (name + "/array.txt"))))
            except OSError as e:
                equal(e.errno, errno.EBADMSG, name)
    fixed = [b"abc", b"abd", b"abd", b"xyz"]
    for name, texts, ok in (("fixed", fixed, True), ("wide", [*fixed[:3], b"wxyz"], False)):
        c = P.Column("v", P.FIXED, P.page2(prefixed([0, 2, 3, 0], texts, 4), 4,
                                           P.DELTA_BYTES), _2=P.i32(3))
        with Mount(P.write(path(name), [c], 4)) as m:
            try:
                equal((np.load(m / "v/array.npy").tobytes(), ok), (b"".join(fixed), True),
                      name)
            except OSError as e:
                equal((e.errno, ok), (errno.EBADMSG, False), name)


def time_of(unit, utc):
    return P.struct_of({1: P.flag(utc), 2: P.struct_of({unit: P.struct_of({})})})


def decimal_of(scale):
    return P.struct_of({5: P.struct_of({1: P.i32(scale), 2: P.i32(9)})})


@case
def units_are_said():
    """Logical types, and the older converted ones; what numbers cannot show is refused."""
    wide = {"_2": P.i32(4)}
    columns = {
        # name: type, element, note
        "date": (P.INT32, {"_6": P.i32(6)}, "date: days since 1970-01-01"),
        "date2": (P.INT32, {"_10": P.struct_of({6: P.struct_of({})})},
                  "date: days since 1970-01-01"),
        "ms": (P.INT32, {"_6": P.i32(7)}, "time of day: milliseconds, UTC"),
        "us": (P.INT64, {"_6": P.i32(8)}, "time of day: microseconds, UTC"),
        "stamp-ms": (P.INT64, {"_6": P.i32(9)},
                     "time since 1970-01-01: milliseconds, UTC"),
        "stamp-us": (P.INT64, {"_10": P.struct_of({8: time_of(2, True)})},
                     "time since 1970-01-01: microseconds, UTC"),
        "stamp-ns": (P.INT64, {"_10": P.struct_of({8: time_of(3, False)}),
                               "_6": P.i32(10)},
                     "time since 1970-01-01: nanoseconds, local time"),
        "stamp-?": (P.INT64, {"_10": P.struct_of({8: time_of(9, False)})},
                    "time since 1970-01-01: an unknown unit, local time"),
        "ns": (P.INT64, {"_10": P.struct_of({7: time_of(3, True)})},
               "time of day: nanoseconds, UTC"),
        "decimal": (P.INT32, {"_6": P.i32(5), "_7": P.i32(2), "_8": P.i32(9)},
                    "decimal: to be divided by 10^2"),
        "decimal8": (P.INT64, {"_10": decimal_of(4)}, "decimal: to be divided by 10^4"),
        "uuid": (P.FIXED, {"_10": P.struct_of({14: P.struct_of({})}), **wide}, "UUID"),
        "fixed": (P.FIXED, {"_10": decimal_of(1), **wide},
                  "decimal: big-endian, to be divided by 10^1"),
        "plain": (P.INT32, {}, None)}
    refused = {"int96": (P.INT96, {}, "INT96"),
               "bytes": (P.BYTES, {"_6": P.i32(5)}, "decimals")}
    p = P.write(path("units"), [
        P.Column(name, kind, P.page1(bytes(64), 4), **element)
        for name, (kind, element, _) in (columns | refused).items()], 4)
    with Mount(p) as m:
        for name, (_, _, note) in columns.items():
            equal(json.loads(read(m / (name + "/info.json"))).get("note"), note, name)
    out = exits(tensorfs("info", p), 0, "info").stdout
    for name, (_, _, word) in refused.items():
        line = next(x for x in out.split("\n") if x.startswith(name + " "))
        check("not shown" in line and word in line, line)


@case
def rows_that_are_not_there():
    """A footer of 2^40 rows: an error at once, not one for each piece."""
    for n in (2**40, 2**60):
        p = P.write(path("rows"), [P.Column("x", P.INT32, P.page1(V.tobytes(), 8))], n)
        out = exits(tensorfs("verify", p), 1, "verify").stdout
        check("fewer values than rows" in out and len(out) < 1000, out)


N = 5_000_000


def pages_of(v, ends):
    """With checksums; and where each begins."""
    pages = [P.page1(v[a:b].tobytes(), b - a, crc=zlib.crc32(v[a:b].tobytes()))
             for a, b in zip([0, *ends], ends)]
    return pages, np.cumsum([0, *map(len, pages)])


@case
def a_large_row_group_is_in_pieces():
    """Of about 16 MiB, at pages where these are alike; each row is read from its pages
    alone, whatever is wrong with the others."""
    v = np.arange(N, dtype="i8") * 3
    even = [*range(100_000, N, 100_000), N]
    odd = sorted({*rng.integers(1, N, 40).tolist(), N})
    kinds = {"even": even, "odd": odd, "one": [N]}
    columns = [P.Column(k, P.INT64, b"".join(pages_of(v, ends)[0]))
               for k, ends in kinds.items()]
    v4 = (np.arange(N) % 256).astype("i4")
    few = P.dictionary(np.arange(256, dtype="i4").tobytes(), 256) + b"".join(
        P.page1(b"\x08" + P.varint((b - a) // 8 << 1 | 1) +
                v4[a:b].astype("u1").tobytes(), b - a, P.RLE_DICTIONARY)
        for a, b in zip(range(0, N, 200_000), range(200_000, N + 1, 200_000)))
    columns.append(P.Column("few", P.INT32, few, encoding=P.RLE_DICTIONARY))
    p = P.write(path("large"), columns, N)
    out = exits(tensorfs("info", p), 0, "info").stdout
    check("(2000000,)" in out, out)
    with Mount(p) as m:
        for name in kinds:
            check(np.array_equal(np.load(m / (name + "/array.npy")), v), name)
            for i in (0, N - 1, *rng.integers(0, N, 3)):
                equal(np.load(m / ("%s/samples/%07d.npy" % (name, i))), v[i], name)
        check(np.array_equal(np.load(m / "few/array.npy"), v4), "few")
    exits(tensorfs("verify", p), 0, "verify")


@case
def damage_is_of_a_piece():
    v = np.arange(N, dtype="i8") * 3
    ends = [*range(100_000, N, 100_000), N]
    pages, at = pages_of(v, ends)
    for name, where, good, bad in (
            ("value", at[25] + 99, (0, 1_999_999, 4_000_000, N - 1), (2_000_000,)),
            ("header", at[25], (0, 1_999_999), (2_500_000, N - 1))):
        data = bytearray(b"".join(pages))
        data[where] ^= 0xff
        p = P.write(path(name), [P.Column("x", P.INT64, bytes(data))], N)
        with Mount(p) as m:
            for i in good:
                equal(np.load(m / ("x/samples/%07d.npy" % i)), v[i], (name, i))
            for i in bad:
                try:
                    check(False, np.load(m / ("x/samples/%07d.npy" % i)))
                except OSError as e:
                    equal(e.errno, errno.EBADMSG, (name, i))


@case
def texts_of_many_pages():
    """Pages of texts are kept for those who read on, with or without a dictionary; more
    of them than are kept, one that is too large for it, several readers at once."""
    n, per = 36_000, 3000
    texts = [b"%d" % (i * i) if i % 7 else b"" for i in range(n)]
    plain = b"".join(P.page1(b"".join(map(P.long, texts[a:a + per])), per)
                     for a in range(0, n, per))
    few = P.dictionary(b"".join(P.long(b"v%d" % i) for i in range(256)), 256) + b"".join(
        P.page2(b"\x08" + P.varint(per // 8 << 1 | 1) + bytes(
            i % 251 for i in range(a, a + per)), per, P.RLE_DICTIONARY)
        for a in range(0, n, per))
    large = b"".join(P.page1(P.delta([len(t) for t in some]) + b"".join(some), n // 2,
                             P.DELTA_LENGTHS) for some in (
        [b"x" * (i % 8000) for i in range(n // 2)],
        [b"y%d" % i for i in range(n // 2)]))
    want = {"plain": [t.decode() for t in texts],
            "few": ["v%d" % (i % 251) for i in range(n)],
            "large": ["x" * (i % 8000) if i < n // 2 else "y%d" % (i - n // 2)
                      for i in range(n)]}
    columns = [P.Column(k, P.BYTES, v, encoding=e, _6=P.i32(0)) for k, v, e in (
        ("plain", plain, P.PLAIN), ("few", few, P.RLE_DICTIONARY),
        ("large", large, P.DELTA_LENGTHS))]
    with Mount(P.write(path("many"), columns, n)) as m:
        def check_one(name, i):
            equal(read(m / ("%s/samples/%06d.txt" % (name, i))).decode(),
                  want[name][i] + "\n", (name, i))

        def check_column(name):
            for i in (0, per - 1, per, n - 1, *rng.integers(0, n, 30)):
                check_one(name, i)
            equal(read(m / (name + "/array.txt")).decode(), lines(want[name]), name)

        with futures.ThreadPoolExecutor(4) as pool:
            for f in [pool.submit(check_column, k) for k in [*want, "plain"]]:
                f.result()


@case
def texts_at_random():
    """A row group of one page, as DuckDB writes it, and one with a large dictionary:
    what was decoded for a sample serves others; it is not read again for each."""
    n = 200_000
    texts = [b"%060d" % i for i in range(n)]
    one = P.page1(b"".join(map(P.long, texts)), n)
    index = np.arange(n, dtype="<u4")
    bits = (index[:, None] >> np.arange(18)) & 1
    some = P.dictionary(b"".join(map(P.long, texts)), n)
    for a in range(0, n, 8000):
        packed = np.packbits(bits[a:a + 8000].astype("u1").reshape(-1),
                             bitorder="little")
        some += P.page1(b"\x12" + P.varint(1000 << 1 | 1) + packed.tobytes(), 8000,
                        P.RLE_DICTIONARY)
    there = P.varint(1 << 1) + b"\0" + P.varint(n - 1 << 1) + b"\1"  # the first is null
    nulls = P.page1(P.long(there) + b"".join(map(P.long, texts[1:])), n)
    for name, data, encoding, more in (
            ("one", one, P.PLAIN, {}), ("some", some, P.RLE_DICTIONARY, {}),
            ("nulls", nulls, P.PLAIN, {"optional": True, "nulls": 1})):
        p = P.write(path(name), [P.Column("x", P.BYTES, data, encoding=encoding,
                                          _6=P.i32(0), **more)], n)
        line = b'"%060d"\n' if more else b"%060d\n"
        with Mount(p, opts=["-o", "cache-size=16M"]) as m:
            def bytes_read():
                with open("/proc/%d/io" % m.pid) as f:
                    return int(f.readline().split()[1])
            before = bytes_read()
            for i in rng.integers(1, n, 40):
                equal(read(m / ("x/samples/%06d.txt" % i)), line % i, (name, i))
            times = (bytes_read() - before) / os.path.getsize(p)
            check(times < 4, "%s: read %.1f times" % (name, times))


work = lib.setup()
lib.main()
