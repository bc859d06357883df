#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Raw records and the files of cameras, as numpy.memmap reads them with a structured
type; files that are cut off, or not of the shape that was said."""
import io
import json
import os
import random
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

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
    about = json.loads(exits(tensorfs("info", "--json", "--raw", text, path), 0, "info").stdout)
    equal(about["datasets"][0]["shape"], list(want.shape), "info")
    listed = exits(tensorfs("ls", "--raw=" + text, path + ":data/samples"), 0, "ls").stdout
    equal(len(listed.split()), len(want), "ls")
    p = exits(tensorfs("cat", "--raw", text, path + ":data/samples/000005.npy", text=False), 0,
              "cat")
    check((np.load(io.BytesIO(p.stdout)) == want[5]).all(), "cat")


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
    exits(p, 2, "a directory")
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


# --- cameras -----------------------------------------------------------------------

def refused(path, word):
    p = tensorfs("ls", path)
    exits(p, 3, path)
    check(word in p.stderr, "no '%s' in: %s" % (word, p.stderr))


def blo():
    """As the header in hyperspy's blockfile.py has it."""
    r = np.random.RandomState(2)
    want = r.randint(0, 256, (3, 5, 12, 12)).astype("u1")
    head = bytearray(4096)
    struct.pack_into("<6sHIIIHHHH", head, 0, b"IMGBLO", 0x102, 1000, 4096, 0,
                     12, 0, 5, 3)
    body = b"".join(b"\xaa\x55" + struct.pack("<I", i) + f.tobytes()
                    for i, f in enumerate(want.reshape(-1, 12, 12)))
    path = put(bytes(head) + body, "scan.blo")
    with Mount(path, opts=SMALL) as m:
        same(m, want, samples=15)
    refused(put(bytes(head) + body[:-200], "cut.blo"), "left over")
    refused(put(bytes(head) + body[:-150], "stopped.blo"), "positions")
    refused(put(bytes(head[:20]), "head.blo"), "truncated")
    cut = 3 * 150
    refused(put(bytes(head) + body[:cut] + b"\0" + body[cut:-1], "slip.blo"),
            "frame 14 should begin there is no frame")
    struct.pack_into("<H", head, 20, 0)
    refused(put(bytes(head) + body, "zero.blo"), "damaged")


def tvips():
    """Several files, the first with a header."""
    r = np.random.RandomState(3)
    want = r.randint(0, 60000, (9, 10, 14)).astype("<u2")
    head = struct.pack("<13I", 256, 2, 14, 10, 16, 0, 0, 1, 1, 1, 200, 0, 76)
    head += b"TVIPS " * 34
    rec = [struct.pack("<I", i) + bytes(72) + f.tobytes()
           for i, f in enumerate(want)]
    d = scratch("tv")
    for name, data in (("000", head + b"".join(rec[:4])),
                       ("001", b"".join(rec[4:8])), ("002", rec[8])):
        with open(os.path.join(d, "s_%s.tvips" % name), "wb") as f:
            f.write(data)
    with Mount(os.path.join(d, "s_000.tvips"), opts=SMALL) as m:
        same(m, want)
    refused(os.path.join(d, "s_001.tvips"), "s_000.tvips")
    os.rename(os.path.join(d, "s_001.tvips"), os.path.join(d, "t_001.tvips"))
    refused(os.path.join(d, "s_000.tvips"), "s_001.tvips is missing")
    os.rename(os.path.join(d, "t_001.tvips"), os.path.join(d, "s_001.tvips"))
    with open(os.path.join(d, "s_002.tvips"), "r+b") as f:
        f.truncate(100)
    refused(os.path.join(d, "s_000.tvips"), "s_002.tvips")
    refused(put(struct.pack("<2I", 256, 9) + head[8:], "v_000.tvips"),
            "version 9")


def by_hyperspy():
    """Its own test files, and what it reads of them."""
    import hyperspy
    import hyperspy.api as hs
    top = os.path.join(os.path.dirname(hyperspy.__file__), "tests", "io")
    done = 0
    for name in ("blockfile_data/test2.blo",
                 "tvips_files/test_tvips_2345_000.tvips",
                 "tvips_files/test_tvips_2345_split_000.tvips"):
        path = os.path.join(top, name)
        if not os.path.exists(path):
            continue
        want = np.asarray(hs.load(path, lazy=False).data)
        with Mount(path) as m:
            got = np.load(m / "data/array.npy")
            check((got.reshape(-1, *got.shape[-2:]) ==
                   want.reshape(-1, *want.shape[-2:])).all(), name)
        done += 1
    check(done, "hyperspy has none of its test files")


def mib():
    for dtype, name in ((">u2", b"U16"), ("u1", b"U08"), (">u4", b"U32")):
        want = np.random.RandomState(4).randint(0, 200, (6, 8, 16)) \
            .astype(dtype)
        head = b"MQ1,000001,00384,01,0016,0008," + name + b",   1x1,01,"
        rec = b"".join(head.ljust(384, b"\0") + f.tobytes() for f in want)
        path = put(rec, "m.mib")
        kind = np.dtype([("h", "V384"), ("d", dtype, (8, 16))])
        with Mount(path) as m:
            same(m, np.array(np.memmap(path, kind, "r")["d"]))
    refused(put(rec[:-1], "m.mib"), "left over")
    refused(put(rec[:-900] + rec[-800:] + b"x" * 100, "m.mib"), "no frame")
    refused(put(rec.replace(b"U32", b"R64"), "m.mib"), "R64")
    refused(put(rec.replace(b"0016", b"9999"), "m.mib"), "truncated")
    refused(put(b"MQ1,1", "m.mib"), "header")


def seq():
    for version, first in ((4, 1024), (5, 8192)):
        head = bytearray(first)
        struct.pack_into("<I24sII", head, 0, 0xfeed,
                         "Norpix seq".encode("utf-16-le"), version, 1024)
        struct.pack_into("<9I", head, 548, 20, 10, 16, 14, 400, 100, 7, 0, 512)
        want = np.random.RandomState(5).randint(0, 9999, (7, 10, 20)) \
            .astype("<u2")
        body = b"".join(f.tobytes().ljust(512, b"x") for f in want)
        path = put(bytes(head) + body, "s.seq")
        with Mount(path) as m:
            same(m, want)
        equal(exits(tensorfs("info", path), 0, path).stderr, "", "no warning")
        path = put(bytes(head) + body[:-1024], "s.seq")
        with Mount(path) as m:
            same(m, want[:5])
        check("5 frames, but its header says 7" in tensorfs("info", path).stderr,
              "no warning")
        struct.pack_into("<I", head, 564, 800)
        refused(put(bytes(head) + body, "s.seq"), "layout is not known")
        struct.pack_into("<I", head, 564, 400)
        struct.pack_into("<I", head, 580, 399)
        refused(put(bytes(head) + body, "s.seq"), "no room")
        struct.pack_into("<2I", head, 568, 102, 7)
        refused(put(bytes(head) + body, "s.seq"), "format 102")


def camera_cases():
    one("blo", blo)
    one("tvips", tvips)
    one("hyperspy", by_hyperspy)
    one("mib", mib)
    one("seq", seq)


if __name__ == "__main__":
    arc.main((raw_cases, camera_cases))
