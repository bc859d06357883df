#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the seeds of fuzz-journal into corpus/journal beside it: journals that a merge
might leave, as payloads that the target makes records of, and the same cut off or bent.
"""
import os
import struct

HERE = os.path.dirname(os.path.abspath(__file__))
PLAN, TEXTS, CHUNKS, MADE, OTHER = range(5)


def text(s):
    b = s.encode()
    return struct.pack("<I", len(b)) + b


def identity(n):
    return struct.pack("<4Q", 1, n, 1000 + n, 10**18 + n)


def stream(path, shape, chunk, filters, elem=4):
    return text(path) + struct.pack("<2I", len(shape), elem) + b"".join(
        struct.pack("<2Q", a, b) for a, b in zip(shape, chunk)) + \
        struct.pack("<I", len(filters)) + b"".join(
            struct.pack("<%dI" % (2 + len(cd)), f, len(cd), *cd)
            for f, cd in filters)


def plan(streams, parts):
    return identity(7) + text("chunk= comp=0:0:0") + \
        struct.pack("<I", len(streams)) + b"".join(streams) + \
        struct.pack("<I", len(parts)) + b"".join(
            text(p) + identity(i) + struct.pack("<I", i == 1)
            for i, p in enumerate(parts))


def texts(*runs):
    return struct.pack("<I", 1) + text("/flags") + \
        struct.pack("<I", len(runs)) + b"".join(
            struct.pack("<Q", n) + text(s) for n, s in runs)


def chunks(end, *list_):
    return struct.pack("<2Q", end, len(list_)) + b"".join(
        struct.pack("<2I2QI", *c) for c in list_)


def save(name, *records):
    directory = os.path.join(HERE, "corpus", "journal")
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, name), "wb") as f:
        f.write(b"\1" + b"".join(struct.pack("<2H", k, len(p)) + p
                                 for k, p in records))


LZF = [(32000, (4, 261, 800))]
GZIP = [(2, (4,)), (1, (4,)), (3, ())]
TWO = [stream("/data", (40, 20), (10, 20), LZF),
       stream("/g/x", (7, 3, 9), (2, 3, 4), GZIP)]
PARTS = ["/data/t_00-10.h5", "/data/t_10-20.h5"]
FLAGS = texts((10, "OK"), (1, ""), (29, "initialized"))
SOME = chunks(4896, (0, 0, 0, 4096, 300), (0, 1, 2, 4396, 500), (0, 0, 3, 0, 0))
MORE = chunks(5000, (1, 0, 11, 4900, 100))

save("whole", (PLAN, plan(TWO, PARTS)), (TEXTS, FLAGS), (CHUNKS, SOME),
     (CHUNKS, MORE), (MADE, identity(9)))
save("begun", (PLAN, plan(TWO, PARTS)), (TEXTS, FLAGS))
save("nothing", (PLAN, plan([], [])), (TEXTS, struct.pack("<I", 0)))
save("no-plan", (CHUNKS, SOME))
save("two-plans", (PLAN, plan(TWO, PARTS)), (PLAN, plan(TWO, PARTS)))
save("other-version", (PLAN, plan(TWO, PARTS)), (OTHER, b"abc"))
save("end-goes-back", (PLAN, plan(TWO, PARTS)), (CHUNKS, MORE), (CHUNKS, SOME))
save("beyond-grid", (PLAN, plan(TWO, PARTS)),
     (CHUNKS, chunks(4200, (0, 0, 4, 4096, 10))))
save("beyond-end", (PLAN, plan(TWO, PARTS)),
     (CHUNKS, chunks(4200, (0, 0, 1, 4196, 10))))
save("huge-end", (PLAN, plan(TWO, PARTS)),
     (CHUNKS, chunks(2**64 - 1, (0, 0, 1, 2**64 - 5, 10))))
save("other-stream", (PLAN, plan(TWO, PARTS)),
     (CHUNKS, chunks(4200, (2, 0, 1, 4096, 10))))
save("huge-counts", (PLAN, plan(TWO, PARTS)), (CHUNKS, struct.pack(
    "<2Q", 4200, 2**63)))
save("huge-shape", (PLAN, plan([stream("/d", (2**63, 2**63), (1, 1), [])], [])))
save("no-chunk", (PLAN, plan([stream("/d", (5,), (0,), [])], [])))
save("rank-0", (PLAN, plan([stream("/d", (), (), [])], [])))
save("many-filters", (PLAN, plan([stream("/d", (5,), (5,), GZIP * 11)], [])))
save("after-made", (PLAN, plan([], [])), (MADE, identity(1)), (CHUNKS, SOME))
save("short", (PLAN, plan(TWO, PARTS)[:-9]))
with open(os.path.join(HERE, "corpus", "journal", "no-journal"), "wb") as f:
    f.write(b"\0TFM1" + bytes(40))
