#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Arrow IPC files by hand (arrows.py) that say one thing and hold another: a sentence,
never other numbers, and never long."""
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import arrows as A
import lib
import numpy as np
from checks import check, equal, read
from lib import Mount, case, exits, tensorfs

work = None
V = np.arange(100, 108, dtype="i4")
BODY = V.tobytes()
SCHEMA = A.schema([A.int32("x")])


def path(name, data):
    p = os.path.join(work, name)
    with open(p, "wb") as f:
        f.write(data)
    return p


def one(rows=8, nodes=((8, 0),), buffers=((0, 0), (0, 32)), body=BODY, codec=None):
    return A.batch(rows, list(nodes), list(buffers), codec), body


@case
def files_by_hand_are_right():
    plain = (b"\xff" * 8 + BODY, ((0, 0), (0, 40)), 1)
    for name, data in (
            ("file.arrow", A.file(SCHEMA, one(), one())),
            ("stream.arrows", A.stream(SCHEMA, one(), one())),
            ("plain.arrow", A.file(SCHEMA, *[one(body=plain[0], buffers=plain[1],
                                                 codec=plain[2])] * 2))):
        with Mount(path(name, data)) as m:
            equal(np.load(m / "x/array.npy").tobytes(), 2 * BODY, name)


@case
def batches_that_lie():
    for name, batch in {
            "rows": one(rows=9), "rows-negative": one(rows=-1),
            "nodes": one(nodes=((7, 0),)), "nodes-two": one(nodes=((8, 0), (8, 0))),
            "nulls-many": one(nodes=((8, 9),)), "nulls-unknown": one(nodes=((8, -1),)),
            "buffer-behind": one(buffers=((0, 0), (8, 32))),
            "buffer-before": one(buffers=((0, 0), (-8, 32))),
            "buffer-negative": one(buffers=((0, 0), (0, -1))),
            "buffer-wraps": one(buffers=((0, 0), (2**63 - 8, 2**63 - 1))),
            "buffer-short": one(buffers=((0, 0), (0, 31))),
            "buffers-few": one(buffers=((0, 32),)),
            "rows-huge": one(rows=2**62, nodes=((2**62, 0),)),
            "prefix": one(codec=1), "codec": one(codec=2),
            "prefix-none": one(codec=1, buffers=((0, 0), (0, 7))),
            "prefix-short": one(codec=0, body=b"\xff" * 8 + BODY[:-1],
                                buffers=((0, 0), (0, 39)))}.items():
        for kind in ("arrow", "arrows"):
            p = path("%s.%s" % (name, kind), A.file(SCHEMA, batch) if kind == "arrow"
                     else A.stream(SCHEMA, batch))
            out = tensorfs("verify", p)
            exits(out, (1, 3), name)
            check(out.stderr.strip() or "bad:" in out.stdout, (name, out.stdout))


@case
def batches_named_often():
    """A footer may not name a batch many times, so that the file has no end."""
    p = path("again.arrow", A.file(SCHEMA, one(), repeat=100))
    check("longer than the file" in exits(tensorfs("ls", p), 3, "ls").stderr, "again")


@case
def texts_shared_often():
    """Columns that share one name, or one list of attributes: the sum is what counts."""
    text = "x" * 100_000
    pairs = [A.Table({0: "key", 1: text})] * 20_000
    few = [A.Table({0: "key", 1: "value"})] * 3
    for name, columns, ok in (
            ("few", [A.int32("c%d" % i, metadata=few) for i in range(200)], True),
            ("names", [A.int32(text)] * 20_000, False),
            ("attributes", [A.int32("c", metadata=pairs)] * 20_000, False)):
        p = path(name + ".arrows", A.stream(A.schema(columns)))
        out = exits(tensorfs("ls", p), 0 if ok else 3, name)
        check(ok or "schema is damaged" in out.stderr, (name, out.stderr))


@case
def units_are_said():
    columns = {
        "decimal": (A.DECIMAL, {0: ("i", 9), 1: ("i", 2), 2: ("i", 64)},
                    "decimal: an integer of 64 bits, to be divided by 10^2"),
        "stamp": (A.TIMESTAMP, {0: ("h", 3), 1: "Europe/Berlin"},
                  "time since 1970-01-01: nanoseconds, Europe/Berlin")}
    data = A.file(A.schema([A.field(k, v[0], v[1]) for k, v in columns.items()]), (
        A.batch(4, [(4, 0)] * 2, [(0, 0), (0, 32)] * 2), BODY))
    with Mount(path("units.arrow", data)) as m:
        for name, (_, _, note) in columns.items():
            equal(json.loads(read(m / (name + "/info.json")))["note"], note, name)


work = lib.setup()
lib.main()
