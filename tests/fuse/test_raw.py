#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Raw records and the files of cameras, as numpy.memmap reads them with a structured
type; files that are cut off, or not of the shape that was said."""
import os
import random
import struct
import sys

sys.dont_write_bytecode = True

import numpy as np

import arc
from arc import one, scratch
from checks import check, equal
from lib import Mount, exits, tensorfs

SMALL = ["--cache-size=8M"]


def put(data, name="f.raw"):
    path = os.path.join(scratch("raw"), name)
    with open(path, "wb") as f:
        f.write(data)
    return path


def same(m, want, name="data", samples=None):
    got = np.load(m / (name + "/array.npy"))
    equal(got.shape, want.shape, "shape")
    equal(got.dtype, want.dtype.newbyteorder("<"), "type")
    check((got == want).all(), "values")
    d = m / (name + "/samples")
    names = [os.path.join(p, f) for p, _, fs in os.walk(d) for f in fs]
    equal(len(names), samples or len(want), "samples")
    check((np.load(m / (name + "/array.npy"), mmap_mode="r")[-1] ==
           want[-1]).all(), "mapped")


def records(seed=1, n=37, shape=(16, 24), dtype="<u2", header=64, footer=6,
            offset=1024):
    """A file of records, and what numpy.memmap makes of it."""
    r = random.Random(seed)
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    path = put(r.randbytes(offset + n * (header + size + footer)))
    kind = np.dtype([("h", "V%d" % header), ("d", dtype, shape),
                     ("f", "V%d" % footer)] if header and footer else
                    [("d", dtype, shape)])
    want = np.memmap(path, kind, "r", offset, (n,))["d"]
    return path, want


def raw(text, **kw):
    path, want = records(**kw)

    def f(m):
        same(m, np.array(want))
        names = sorted(os.listdir(m / "data/samples"))
        got = np.load(m / ("data/samples/" + names[5]))
        check((got == want[5]).all(), "a sample")
    with Mount(path, opts=SMALL + ["--raw", text]) as m:
        f(m)
    with Mount(path, opts=["-o", "raw=" + text.replace(",", "\\,")]) as m:
        f(m)
    exits(tensorfs("verify", "--raw", text, path), 0, "verify")
    exits(tensorfs("info", "--raw", text, path), 0, "info")


def order():
    path, _ = records(header=0, footer=0)
    size = os.path.getsize(path)
    with open(path, "rb") as f:
        data = f.read()[1024:]
    want = np.frombuffer(data, ">i2").reshape(37, 24, 16).transpose(0, 2, 1)
    with Mount(path, opts=["--raw", "dtype=>i2,shape=16x24,offset=1K,order=F"
                           ]) as m:
        same(m, want)
    with Mount(path, opts=["--raw", "dtype=u1,count=%d" % size]) as m:
        check((np.load(m / "data/array.npy") == np.fromfile(path, "u1")).all(),
              "all bytes")
    with Mount(path, opts=["--raw", "dtype=<f8,offset=1024,count=3,shape=5"
                           ]) as m:
        got = np.load(m / "data/array.npy")
        equal(got.tobytes(), data[:120], "count=")


def bad_text():
    path = put(bytes(1000))
    for text, word in (("shape=2x2", "dtype"), ("dtype=u2,shape=", "shape"),
                       ("dtype=u2,shape=2x", "shape"), ("dtype=O", "O"),
                       ("dtype=u2,shape=0x4", "shape"), ("dtype=u2,x=1", "x"),
                       ("dtype=u2,order=D", "order"), ("dtype=u2,shape=-1",
                                                       "shape"),
                       ("dtype=u2,header=-4", "header"), ("u2", "KEY"),
                       ("dtype=u2,shape=" + "x".join(["2"] * 99), "axes")):
        p = tensorfs("ls", "--raw", text, path)
        exits(p, 2, text)
        check(word in p.stderr, text + ": " + p.stderr)


def bad_file():
    path = put(bytes(1000))
    for text, word in (("dtype=u2,shape=16x16", "left over"),
                       ("dtype=u2,shape=16x16,count=2", "count="),
                       ("dtype=u2,shape=100x100", "truncated"),
                       ("dtype=u2,offset=1T", "truncated"),
                       ("dtype=u8,shape=" + "x".join(["4000000000"] * 4),
                        "size"),
                       ("dtype=u2,header=8E,footer=8E,shape=4", "")):
        p = tensorfs("ls", "--raw", text, path)
        check(p.returncode in (2, 3) and p.stderr.strip(), text)
        check(word in p.stderr, text + ": " + p.stderr)
    p = tensorfs("ls", "--raw", "dtype=u2", os.path.dirname(path))
    exits(p, 3, "a directory")
    path, _ = records()
    with Mount(path, opts=["--raw", "dtype=u2,shape=16x24,header=64,footer=6,"
                           "offset=1024"]) as m:
        os.truncate(path, 5000)
        try:
            np.load(m / "data/array.npy")
            check(False, "what is cut off can be read")
        except OSError:
            pass


def raw_cases():
    one("raw:records",
        raw, "dtype=u2,shape=16x24,header=64,footer=6,offset=1024")
    one("raw:plain", raw, "dtype=<u2,shape=16x24,offset=1024", header=0,
        footer=0)
    one("raw:swapped", raw, "header=3,dtype=>i4,footer=1,shape=7,offset=5",
        dtype=">i4", n=11, shape=(7,), header=3, footer=1, offset=5)
    one("raw:order", order)
    one("raw:bad-text", bad_text)
    one("raw:bad-file", bad_file)


if __name__ == "__main__":
    arc.main((raw_cases,))
