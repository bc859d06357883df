#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Dictionaries, views and lists of Arrow IPC files by hand (arrows.py): replaced, added
to, in any order, empty, and such as lead astray."""
import decimal
import json
import os
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import arrows as A
import lib
import numpy as np
from checks import check, equal, read
from lib import Mount, case, exits, tensorfs

work = None


def path(name, data):
    p = os.path.join(work, name)
    with open(p, "wb") as f:
        f.write(data)
    return p


def ints(values, kind="<i4"):
    return np.array(values, kind).tobytes()


def texts(*values):
    """Offsets and bytes."""
    ends = np.cumsum([0] + [len(v) for v in values])
    return ints(ends), "".join(values).encode()


def words(number, *values, delta=False):
    return A.values(number, *A.plain(len(values), b"", *texts(*values)), delta=delta)


def rows(*numbers):
    return A.plain(len(numbers), b"", ints(numbers, "i1"))


KIND = A.schema([A.field("kind", A.UTF8, {}, dictionary=(7, -8))])


def lines(data, column="kind", name="x.arrows"):
    with Mount(path(name, data)) as m:
        got = read(m / (column + "/array.txt")).decode().split("\n")[:-1]
        for i, line in enumerate(got):
            sample = m / ("%s/samples/%06d.txt" % (column, i))
            equal(read(sample).decode(), line + "\n", "%s %d" % (name, i))
        return got


def is_damaged(name, data, word=""):
    out = tensorfs("verify", path(name, data))
    exits(out, (1, 3), name)
    check((out.stderr.strip() or "bad" in out.stdout) and
          word in out.stderr + out.stdout, (name, out.stdout, out.stderr))


@case
def replaced_and_added_to():
    data = A.stream(KIND, words(7, "a", "b"), rows(0, 1, 1),
                    words(7, "c", "d", delta=True), rows(3, 0, 2),
                    words(7, "new"), rows(0), words(7, "er", delta=True), rows(1, 0))
    equal(lines(data), ["a", "b", "b", "d", "a", "c", "new", "er", "new"], "stream")


@case
def in_a_file_the_order_means_nothing():
    some = [rows(3, 0), words(7, "a", "b"), words(7, "c", "d", delta=True), rows(2, 1)]
    equal(lines(A.file(KIND, *some), name="x.arrow"), ["d", "a", "c", "b"], "file")
    is_damaged("twice.arrow", A.file(KIND, words(7, "a"), words(7, "b"), rows(0)), "twice")


@case
def numbers_that_lead_nowhere():
    for name, data in {
            "beyond": [words(7, "a", "b"), rows(0, 2)],
            "negative": [words(7, "a", "b"), rows(0, -1)],
            "too-early": [words(7, "a"), rows(1), words(7, "b", delta=True)],
            "replaced": [words(7, "a", "b"), words(7, "c"), rows(1)],
            "none": [rows(0)], "other": [words(8, "a"), rows(0)],
            "delta-first": [words(7, "a", delta=True), rows(0)],
            "empty": [words(7), rows(0)],
            "short": [words(7, "a"), A.plain(2, b"", b"\0")]}.items():
        is_damaged(name + ".arrows", A.stream(KIND, *data))
    # Neighbours of such a row are what they are.
    with Mount(path("beyond.arrows", A.stream(KIND, words(7, "a", "b"),
                                              rows(1, 2, 0)))) as m:
        for i, want in ((0, b"b\n"), (2, b"a\n")):
            equal(read(m / ("kind/samples/%06d.txt" % i)), want, str(i))
    wide = A.schema([A.field("kind", A.UTF8, {}, dictionary=(7, 64))])
    is_damaged("wide.arrows", A.stream(wide, words(7, "a"),
                                       A.plain(1, b"", b"\xff" * 8)))


@case
def nulls_in_numbers_and_in_values():
    some = A.plain(4, b"\x0b", ints([1, 0, 99, 1], "i1"), nodes=[(4, 1)])
    equal(lines(A.stream(KIND, words(7, "a", "b"), some)), ['"b"', '"a"', "null", '"b"'],
          "number")
    hole = A.values(7, *A.plain(2, b"\x02", *texts("", "b"), nodes=[(2, 1)]))
    is_damaged("hole.arrows", A.stream(KIND, hole, rows(1, 0)), "missing")


@case
def dictionaries_in_lists_and_in_dictionaries():
    item = A.field("item", A.UTF8, {}, dictionary=(1, 16))
    schema = A.schema([A.field("l", A.LIST, {}, [item], dictionary=(2, -8))])
    inner = words(1, "x", "y", "z")
    outer = A.values(2, *A.plain(3, b"", ints([0, 2, 2, 3]), b"",
                                 ints([2, 1, 0], "<u2"), nodes=[(3, 0), (3, 0)]))
    for order in ((inner, outer), (outer, inner)):
        equal(lines(A.stream(schema, *order, rows(2, 0, 1, 0)), "l"),
              ['["x"]', '["z","y"]', "[]", '["z","y"]'], "nested")


def view(value, buffer=0, at=0, n=None):
    value = value.encode()
    n = len(value) if n is None else n
    if n <= 12:
        return struct.pack("<i12s", n, value)
    return struct.pack("<i4sii", n, value[:4], buffer, at)


LONG = "0123456789abcdefghij"
VIEWS = A.schema([A.field("v", A.UTF8_VIEW, {}), A.field("w", A.UTF8_VIEW, {}),
                  A.int32("n")])


def views(*v, more=(2, 0), buffers=(b"--" + LONG.encode(), LONG.encode())):
    n = len(v)
    return A.plain(n, b"", b"".join(v), *buffers, b"", b"".join(view("w")
                   for _ in v), b"", ints(range(n)), nodes=[(n, 0)] * 3, more=more)


@case
def views_of_strings():
    some = views(view("short"), view(LONG, 0, 2), view(""), view(LONG, 1),
                 view(LONG[2:16], 1, 2), view("0123456789ab"))
    data = A.stream(VIEWS, some, some)
    want = ["short", LONG, "", LONG, LONG[2:16], "0123456789ab"] * 2
    equal(lines(data, "v"), want, "views")
    equal(lines(data, "w"), ["w"] * 12, "behind the others")
    with Mount(path("v.arrows", data), opts=["-o", "ext=v:txt"]) as m:
        equal(np.load(m / "n/array.npy").tolist(), [*range(6)] * 2, "numbers")
        for i, v in enumerate(want):
            p = m / ("v/samples/%06d.txt" % i)
            equal((os.stat(p).st_size, read(p).decode()), (len(v), v), p)


@case
def views_far_apart():
    """Some bytes of a large buffer: not all of it is read, and none is mixed up."""
    far = bytearray(3 << 20)
    far[-20:], far[:20], far[1 << 20:(1 << 20) + 20] = (x * 20 for x in (b"z", b"a", b"m"))
    some = views(view("z" * 20, 0, len(far) - 20), view("a" * 20), view("m" * 20, 0, 1 << 20),
                 buffers=(bytes(far), b""))
    equal(lines(A.stream(VIEWS, some), "v"), ["z" * 20, "a" * 20, "m" * 20], "far")


@case
def views_that_lead_nowhere():
    for name, some in {
            "buffer": views(view(LONG, 2)), "negative": views(view(LONG, -1)),
            "behind": views(view(LONG, 0, 4)), "before": views(view(LONG, 0, -2)),
            "length": views(view(LONG, n=2**31 - 1)), "minus": views(view("", n=-1)),
            "counts": views(view("a"), more=(3, 0)), "few": views(view("a"), more=(2,)),
            "huge": views(view("a"), more=(2**63 - 1, 2)),
            "wraps": views(view("a"), more=(-1, 3))}.items():
        is_damaged(name + ".arrows", A.stream(VIEWS, some))


@case
def lists_as_views():
    schema = A.schema([A.field("l", A.LIST_VIEW, {}, [A.int32("item")])])
    items = ints([10, 11, 12, 13])

    def some(offsets, sizes, valid=b"", nulls=0):
        n = len(offsets)
        return A.plain(n, valid, ints(offsets), ints(sizes), b"", items,
                       nodes=[(n, nulls), (4, 0)])

    equal(lines(A.stream(schema, some([2, 0, 0, 9], [2, 3, 0, 0])), "l"),
          ["[12,13]", "[10,11,12]", "[]", "[]"], "views")
    equal(lines(A.stream(schema, some([2, 99], [1, 99], b"\x01", 1)), "l"),
          ["[12]", "null"], "with a null")
    for name, (offsets, sizes) in {"behind": ([3], [2]), "before": ([-1], [1]),
                                   "size": ([0], [-1])}.items():
        is_damaged(name + "-l.arrows", A.stream(schema, some(offsets, sizes)))


@case
def lists_of_strings_that_lead_nowhere():
    schema = A.schema([A.field("l", A.LIST, {}, [A.field("item", A.UTF8, {})])])

    def some(ends, n=2, offsets=(0, 1, 2)):
        return A.plain(2, b"", ints(ends), b"", ints(offsets), b"ab",
                       nodes=[(2, 0), (n, 0)])

    equal(lines(A.stream(schema, some([0, 0, 2])), "l"), ["[]", '["a","b"]'], "right")
    for name, batch in {
            "back": some([0, 2, 1]), "beyond": some([0, 1, 3]), "items": some([0, 1, 2], 1),
            "many": some([0, 1, 3], 3), "negative": some([-1, 0, 1]),
            "text": some([0, 1, 2], offsets=(0, 1, 3)),
            "text-back": some([0, 1, 2], offsets=(1, 0, 2))}.items():
        is_damaged(name + "-s.arrows", A.stream(schema, batch))


@case
def without_end():
    """Rows that take no bytes, many times: a sentence, and soon."""
    null = A.field("item", 1, {})
    schema = A.schema([A.field("l", A.FIXED_LIST, {0: ("i", 2**31 - 1)}, [null])])
    data = A.stream(schema, A.plain(2, b"", nodes=[(2, 0), (2**32 - 2, 0)]))
    is_damaged("null.arrows", data, "cannot be shown as JSON")
    long = "x" * (1 << 20)
    many = A.stream(KIND, words(7, long), *[rows(*[0] * 120)] * 40)
    exits(tensorfs("verify", path("many.arrows", many)), (0, 1), "many")


@case
def what_is_not_shown():
    union = A.field("u", A.UNION, {0: ("h", 0), 1: ("i", [(0,)])}, [A.int32("x")])
    data = A.file(A.schema([union, A.int32("n")]),
                  A.plain(2, b"\0\0", b"", ints([1, 2]), b"", ints([3, 4]),
                          nodes=[(2, 0)] * 3))
    out = exits(tensorfs("info", path("union.arrow", data)), 0, "info").stdout
    check("unions" in out, out)
    with Mount(path("union.arrow", data)) as m:
        equal(np.load(m / "n/array.npy").tolist(), [3, 4], "beside a union")


@case
def decimals_with_nulls():
    """Their digits, as Python's decimal has them; without nulls the integers."""
    def kind(bits, scale):
        return A.field("d", A.DECIMAL, {0: ("i", 9), 1: ("i", scale), 2: ("i", bits)})
    values = [0, 1, -1, 12345, -12345, 2 ** 31 - 1, -2 ** 31]
    for bits in (32, 64, 128, 256):
        more = [2 ** (bits - 1) - 1, -2 ** (bits - 1)]
        body = b"".join(v.to_bytes(bits // 8, "little", signed=True)
                        for v in values + more)
        n = len(values + more)
        for scale in (0, 2, 12, 50, -3):
            schema = A.schema([kind(bits, scale)])
            there = (2 ** n - 1).to_bytes(2, "little")
            got = lines(A.stream(schema, A.plain(n + 1, there, body + bytes(bits // 8),
                                                 nodes=[(n + 1, 1)])), "d")
            with decimal.localcontext() as c:
                c.prec = 200
                want = [format(decimal.Decimal(v).scaleb(-scale), "f")
                        for v in values + more]
            equal([json.loads(x) for x in got], want + [None], (bits, scale))
    with Mount(path("d.arrows", A.stream(A.schema([kind(128, 2)]), A.plain(
            1, b"", (150).to_bytes(16, "little"))))) as m:
        equal(bytes(np.load(m / "d/array.npy")[0]), (150).to_bytes(16, "little"),
              "plain")
        check("10^2" in json.loads(read(m / "d/info.json"))["note"], "note")


@case
def before_0_15():
    """Messages that begin with their length, as Arrow 0.8 to 0.14 wrote them: columns,
    dictionaries, files and streams; what is older is refused, and called so."""
    schema = A.schema([A.int32("n"), A.field("t", A.UTF8, {}),
                       A.field("kind", A.UTF8, {}, dictionary=(7, -8))])
    batch = A.plain(3, b"", ints([1, 2, 3]), b"", *texts("x", "", "yz"),
                    b"", ints([0, 1, 0], "i1"), nodes=[(3, 0)] * 3)
    try:
        A.framing.update(version=3, continued=False)
        made = {"old.arrow": A.file(schema, words(7, "a", "b"), batch),
                "old.arrows": A.stream(schema, words(7, "a", "b"), batch)}
        made["unended.arrows"] = made["old.arrows"][:-4]
        A.framing.update(version=1)
        older = [A.file(schema, batch), A.stream(schema, batch)]
    finally:
        A.framing.update(version=4, continued=True)
    for name, data in made.items():
        with Mount(path(name, data)) as m:
            equal(np.load(m / "n/array.npy").tolist(), [1, 2, 3], name)
            equal(read(m / "t/array.txt"), b"x\n\nyz\n", name)
            equal(read(m / "kind/array.txt"), b"a\nb\na\n", name)
    for data in older:
        p = exits(tensorfs("ls", path("older", data)), 3, "metadata of version 2")
        check("written by Arrow before 0.8" in p.stderr, p.stderr)


work = lib.setup()
lib.main()
