#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""HDF5 files as programs other than h5py write them.

What h5py reads from the file at test time is what the mount has to show.
"""
import errno
import io
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t

import lib
from checks import check, equal, fails_with, read, same_bytes
from lib import Mount, case, exits, tensorfs

work = None


def path(name):
    return os.path.join(work, name)


def info(m, name):
    return json.loads(read(m / (name + "/info.json")))


def array(m, name):
    return np.load(io.BytesIO(read(m / (name + "/array.npy"))))


def same_array(m, name, want):
    """Values and the size of their type; the order of bytes may differ."""
    got = array(m, name)
    want = want.astype(want.dtype.newbyteorder("<"))
    equal(got.dtype, want.dtype, name + ": dtype")
    same_bytes(got.tobytes(), want.tobytes(), name)


def float_type(size, esize, msize, bias, at=0, norm=None, big=False):
    """A sign, `esize` bits of exponent and `msize` of mantissa, from bit `at`."""
    t = (h5t.IEEE_F64BE if big else h5t.IEEE_F64LE).copy()
    if size > 8:
        t.set_size(size)
        t.set_precision(size * 8)
    t.set_fields(at + esize + msize, at + msize, esize, at, msize)
    t.set_ebias(bias)
    if size <= 8:
        t.set_precision(at + 1 + esize + msize)
        t.set_size(size)
    if norm is not None:
        t.set_norm(norm)
    return t


FLOATS = {
    # bytes, bits of exponent and mantissa, bias
    "e11m20": (4, 11, 20, 1023),   # float32 would be inf, or lose small ones
    "e5m26": (4, 5, 26, 15),       # float32 would lose bits
    "e8m23_bias": (4, 8, 23, 100),  # reaches further than float32
    "e8m23_same": (4, 8, 23, 127, 0),
    "e5m10_bias": (2, 5, 10, 9),
    "e6m9": (2, 6, 9, 31),
    "e3m4": (1, 3, 4, 3),
    "e9m14": (3, 9, 14, 255),
    "e7m16": (3, 7, 16, 63),
    "e11m48": (8, 11, 48, 1023, 4),
    "e12m51": (8, 12, 51, 2047),   # float64 would be inf
    "e5m58": (8, 5, 58, 15),       # float64 would lose bits
}


def float_patterns(size, esize, msize, at):
    """Numbers of all kinds as integers: normal, below that, infinite, none."""
    rng = np.random.default_rng(7)
    top, ones = (1 << esize) - 1, (1 << msize) - 1
    pairs = [(0, 0), (0, 1), (0, ones), (1, 0), (1, 1), (top // 2, 1),
             (top - 1, ones), (top, 0), (top, 1 << (msize - 1))]
    pairs += [(int(rng.integers(0, top)), int(rng.integers(0, 1 << msize)))
              for _ in range(60)]
    out = [(e << msize | m) << at for e, m in pairs]
    sign = 1 << (at + esize + msize)
    return [v.to_bytes(size, "little") for v in out + [v | sign for v in out]]


@case
def floats_in_a_type_that_holds_them():
    src = path("floats.h5")
    with h5py.File(src, "w") as f:
        for name, (size, e, m, bias, *at) in FLOATS.items():
            raws = float_patterns(size, e, m, *at or (0,))
            t = float_type(size, e, m, bias, *at)
            for chunks in (None, (50,)):
                p = h5p.create(h5p.DATASET_CREATE)
                n = name + ("_chunked" if chunks else "")
                if chunks:
                    p.set_chunk(chunks)
                    p.set_deflate(1)
                d = h5d.create(f.id, n.encode(), t,
                               h5s.create_simple((len(raws),)), p)
                d.write(h5s.ALL, h5s.ALL,
                        np.frombuffer(b"".join(raws), "V%d" % size).copy(),
                        mtype=t)
    with Mount(src) as m, h5py.File(src) as f:
        for n in f:
            same_array(m, n, f[n][()])
            check("converted" in info(m, n).get("stored_type", "") or
                  n.startswith("e8m23_same"), n + ": stored_type")
    exits(tensorfs("verify", src), 0, "verify")


@case
def floats_that_no_type_holds():
    """binary128 on x86-64: said, and never rounded; in attributes as bytes."""
    src = path("quad.h5")
    t = float_type(16, 15, 112, 16383)
    one = (16383 << 112 | 1).to_bytes(16, "little")
    with h5py.File(src, "w") as f:
        f["x"] = np.arange(3)
        d = h5d.create(f.id, b"quad", t, h5s.create_simple((2,)))
        d.write(h5s.ALL, h5s.ALL, np.frombuffer(one * 2, "V16").copy(),
                mtype=t)
        a = h5py.h5a.create(f["x"].id, b"quad", t, h5s.create(h5s.SCALAR))
        a.write(np.frombuffer(one, "V16")[0:1].reshape(()).copy(), mtype=t)
    with Mount(src) as m:
        same_array(m, "x", np.arange(3))
        if np.finfo(np.longdouble).nmant >= 112:
            same_bytes(read(m / "quad/array.bin"), one * 2, "quad")
            return
        equal(os.listdir(m / "quad"), ["info.json"], "files of quad")
        check("no NumPy type of this machine holds" in
              info(m, "quad")["not_shown"], "not_shown")
        equal(info(m, "x")["attributes"]["quad"], one.hex(), "attribute")
    p = exits(tensorfs("verify", src), 0, "verify")
    check("not checked: /quad" in p.stdout, "verify: " + p.stdout)


@case
def user_blocks_of_any_length():
    """HDF5 looks for the superblock at 0 and at each power of two from 512 on."""
    d = path("blocks")
    os.mkdir(d)
    for size in (512, 8192, 16384, 32768, 1 << 20):
        src = os.path.join(d, "b%d.h5" % size)
        with h5py.File(src, "w", userblock_size=size) as f:
            f["x"] = np.arange(size, size + 7)
            f.create_dataset("c", data=np.arange(50), chunks=(10,),
                             compression="gzip")
        with open(src, "r+b") as f:
            f.write(b"SIMPLE  =                    T")
        exits(tensorfs("verify", src), 0, "verify, block of %d" % size)
        with Mount(src) as m:
            same_array(m, "x", np.arange(size, size + 7))
            same_array(m, "c", np.arange(50))
    # In a directory, and as parts of one tensor.
    with Mount(d, opts=["-o", "recursive"]) as m:
        same_array(m, "b32768.h5/x", np.arange(32768, 32768 + 7))
    one = path("one")
    os.mkdir(one)
    for i in range(2):
        with h5py.File(one + "/p%d.h5" % i, "w", userblock_size=32768) as f:
            f["x"] = np.arange(4) + 4 * i
    with Mount(one, opts=["-o", "concat=0"]) as m:
        same_array(m, "x", np.arange(8))


@case
def n_bit_of_structures():
    """5 members have 36 parameters, more than our own decoder takes."""
    src = path("nbit.h5")
    with h5py.File(src, "w") as f:
        for n in (4, 5, 40):
            dt = np.dtype([("m%d" % i, "<i4") for i in range(n)])
            p = h5p.create(h5p.DATASET_CREATE)
            p.set_chunk((3,))
            p.set_filter(h5py.h5z.FILTER_NBIT, h5py.h5z.FLAG_OPTIONAL, ())
            d = h5d.create(f.id, b"c%d" % n, h5t.py_create(dt),
                           h5s.create_simple((7,)), p)
            a = np.zeros(7, dt)
            for i, k in enumerate(dt.names):
                a[k] = np.arange(7) * 1000 - i
            d.write(h5s.ALL, h5s.ALL, a)
    exits(tensorfs("verify", src), 0, "verify")
    with Mount(src) as m, h5py.File(src) as f:
        for n in f:
            same_bytes(array(m, n).tobytes(), f[n][()].tobytes(), n)


@case
def scale_offset_with_a_stray_sign():
    """The sign is for integers; libhdf5 leaves anything in it for floats."""
    src = path("sofloat.h5")
    with h5py.File(src, "w") as f:
        p = h5p.create(h5p.DATASET_CREATE)
        p.set_chunk((4,))
        p.set_filter(h5py.h5z.FILTER_SCALEOFFSET, h5py.h5z.FLAG_OPTIONAL,
                     (0, 2) + (0,) * 18)
        d = h5d.create(f.id, b"x", h5t.IEEE_F64LE, h5s.create_simple((4,)), p)
        d.write(h5s.ALL, h5s.ALL, np.array([1.25, 2.5, 3.75, 100]))
    with open(src, "r+b") as f:
        b = f.read()
        at = b.find(np.array([0, 2, 4, 1, 8, 0], "<u4").tobytes())
        check(at > 0, "the parameters are not where they were")
        f.seek(at + 20)
        f.write(np.array([148433160], "<u4").tobytes())
    exits(tensorfs("verify", src), 0, "verify")
    with Mount(src) as m, h5py.File(src) as f:
        same_array(m, "x", f["x"][()])


@case
def groups_nested_too_deeply():
    src = path("deep.h5")
    with h5py.File(src, "w") as f:
        g = f
        for _ in range(150):
            g = g.create_group("g")
        g["x"] = np.arange(3)
        f["top"] = np.arange(4)
        f["g/beside"] = np.arange(5)
    with Mount(src) as m:
        same_array(m, "top", np.arange(4))
        same_array(m, "g/beside", np.arange(5))
        last = "/".join(["g"] * 100)
        equal(os.listdir(m / last), ["info.json"], "the group at the limit")
        check("nested deeper than 100" in info(m, last)["not_shown"],
              "not_shown")
    p = exits(tensorfs("verify", src), 0, "verify")
    check("not checked: /g/g" in p.stdout, "verify: " + p.stdout)
    with Mount(src, opts=["-o", "dataset=/" + last]) as m:
        same_array(m, "/".join(["g"] * 50) + "/x", np.arange(3))


def lookup3(data):
    """The checksum of object headers (Bob Jenkins, hashlittle)."""
    v = [(0xdeadbeef + len(data)) & 0xffffffff] * 3

    def rot(x, k):
        return (x << k | x >> (32 - k)) & 0xffffffff

    def take(part):
        for i, k in enumerate(np.frombuffer(part.ljust(12, b"\0"), "<u4")):
            v[i] = (v[i] + int(k)) & 0xffffffff

    while len(data) > 12:
        take(data[:12])
        data = data[12:]
        for i, n in enumerate((4, 6, 8, 16, 19, 4)):
            a, b, c = i % 3, (i + 1) % 3, (i + 2) % 3
            v[a] = (v[a] - v[c]) & 0xffffffff ^ rot(v[c], n)
            v[c] = (v[c] + v[b]) & 0xffffffff
    if data:
        take(data)
        for i, n in enumerate((14, 11, 25, 16, 4, 14, 24)):
            a, b = (i + 2) % 3, (i + 1) % 3
            v[a] = ((v[a] ^ v[b]) - rot(v[b], n)) & 0xffffffff
    return v[2]


def newer_type(src, name, sums=False):
    """Make the float64 type of attribute `name` one of version 5 (HDF5 2.0)."""
    with open(src, "r+b") as f:
        b = bytearray(f.read())
        at = b.find(name + b"\0") + len(name) + 1
        at = b.find(b"\x11\x20\x3f\x00\x08", at)
        check(0 < at < b.find(name + b"\0") + 32, "no type follows the name")
        b[at] = 0x51
        if sums:
            fix_sum(b, at)
        f.seek(0)
        f.write(b)


def fix_sum(b, at):
    """The checksum of the block of the object header that byte `at` is in."""
    start = max(b.rfind(b"OHDR", 0, at), b.rfind(b"OCHK", 0, at))
    for end in range(at + 1, min(at + 4096, len(b) - 3)):
        old = bytearray(b[start:end])
        old[at - start] = 0x11
        if lookup3(bytes(old)) == int.from_bytes(b[end:end + 4], "little"):
            b[end:end + 4] = lookup3(bytes(b[start:end])).to_bytes(4, "little")
            return
    check(False, "no checksum behind the attribute")


@case
def an_attribute_that_cannot_be_decoded():
    for libver in ("earliest", "latest"):
        src = path("attr-%s.h5" % libver)
        with h5py.File(src, "w", libver=libver) as f:
            for o in (f, f.create_group("g"),
                      f.create_dataset("g/x", data=np.arange(4))):
                for i in range(3):
                    o.attrs["a%d" % i] = i
                o.attrs["bad" + o.name[-1:]] = np.float64(1.2345)
                o.attrs["text"] = "words"
            f["other"] = np.arange(3)
        for n in (b"bad/", b"badg", b"badx"):
            newer_type(src, n, libver == "latest")
        want = {"a0": 0, "a1": 1, "a2": 2, "text": "words"}
        with Mount(src) as m:
            same_array(m, "g/x", np.arange(4))
            os.stat(m / "g/x/info.json")
            x = info(m, "g/x")
            why = x["unreadable_attributes"]["badx"]
            check("version number" in why, "why: " + why)
            check(why in x["attributes"].pop("badx"), "value of badx")
            equal(x["attributes"], want, "attributes of g/x")
            for d, bad in (("", "bad/"), ("g", "badg"), ("g/x", "badx")):
                got = json.loads(os.getxattr(m / d, "user.tensorfs.attrs"))
                check("cannot be read" in got.pop(bad), bad)
                equal(got, want, "attributes of /" + d)
            read(m / ".zarr/.zmetadata")
        p = exits(tensorfs("verify", src), 1, "verify")
        for line in ("bad: /@bad/: ", "bad: /g@badg: ", "bad: /g/x@badx: "):
            check(line in p.stdout, "verify: %s not in %s" % (line, p.stdout))
        check("3 bad" in p.stdout, "verify: " + p.stdout)


@case
def attributes_in_a_heap_that_cannot_be_decoded():
    """More than 8 are in a heap: which is bad is not found out, but said."""
    src = path("dense.h5")
    with h5py.File(src, "w", libver="latest") as f:
        d = f.create_dataset("x", data=np.arange(4))
        for i in range(20):
            d.attrs["a%02d" % i] = i
        d.attrs["bad"] = np.float64(1.2345)
    newer_type(src, b"bad")
    with Mount(src) as m:
        same_array(m, "x", np.arange(4))
        x = info(m, "x")
        check("(others)" in x["unreadable_attributes"], "others")
        for k, v in x["attributes"].items():
            check(k == "(others)" or v == int(k[1:]), "attribute " + k)
    p = exits(tensorfs("verify", src), 1, "verify")
    check("bad: /x@(others): " in p.stdout, "verify: " + p.stdout)


@case
def the_sentence_of_a_file_that_cannot_be_looked_up():
    """Its own user.tensorfs.error cannot be asked for: the directory has it."""
    src = path("gone.h5")
    with h5py.File(src, "w") as f:
        f["x"] = np.arange(4)
    with Mount(src) as m:
        os.listdir(m / "x")
        with open(src, "r+b") as f:
            f.truncate(100)
        fails_with((errno.ESTALE, errno.EIO, errno.ENODATA),
                   lambda: os.stat(m / "x/info.json"), "stat")
        why = os.getxattr(m / "x", "user.tensorfs.error").decode()
        check("gone.h5" in why, "the sentence of the directory: " + why)


def filter_nobody_has(f, name, mask, **kw):
    """A dataset with filter 32099, its two chunks written as they are."""
    p = h5p.create(h5p.DATASET_CREATE)
    p.set_chunk((4,))
    p.set_shuffle()
    d = h5d.create(f.id, name, h5t.STD_I32LE, h5s.create_simple((8,)), p)
    for i in range(2):
        d.write_direct_chunk((4 * i,), np.arange(4 * i, 4 * i + 4,
                                                 dtype="<i4").tobytes(), mask)


def rename_filter(src):
    """Shuffle (2) becomes 32099, which no plugin registers."""
    with open(src, "r+b") as f:
        b = f.read()
        for at in [i for i in range(len(b)) if
                   b.startswith(b"shuffle\0", i)]:
            f.seek(at - 8)
            f.write((32099).to_bytes(2, "little"))


@case
def filters_that_nobody_has():
    src = path("unknown.h5")
    with h5py.File(src, "w") as f:
        filter_nobody_has(f, b"skipped", 1)
        filter_nobody_has(f, b"needed", 0)
        f["plain"] = np.arange(5)
    rename_filter(src)
    with Mount(src) as m:
        same_array(m, "skipped", np.arange(8, dtype="<i4"))
        fails_with(errno.ENOTSUP, lambda: array(m, "needed"), "needed")
        check("32099" in info(m, "needed")["not_shown"], "not_shown")
        with h5py.File(io.BytesIO(read(m / "merged.h5"))) as f:
            check("needed" not in f, "needed is in merged.h5")
            same_bytes(f["plain"][()].tobytes(), np.arange(5).tobytes(),
                       "plain in merged.h5")
        left = os.getxattr(m / "merged.h5", "user.tensorfs.left_out")
        check(b"/needed: filter" in left, "left out: %r" % left)
        check("not_shown" not in info(m, "skipped"), "skipped is not shown")
        fails_with(errno.ENODATA, lambda: os.getxattr(
            m / "skipped", "user.tensorfs.error"), "error of skipped")


@case
def what_info_says():
    src = path("info.h5")
    values = [53.23, 0.1, 1e22, 1.5, -0.0, 5e-324, 1 / 3, 2.0 ** 70]
    with h5py.File(src, "w") as f:
        d = h5d.create(f.id, b"odd", float_type(4, 11, 20, 1023),
                       h5s.create_simple((5,)))
        d.write(h5s.ALL, h5s.ALL, np.zeros(5, "<f4"))
        f["odd"].attrs["v"] = values
        f["odd"].attrs["text"] = "53.229999999999997, \"1.0e5\""
        f.create_dataset("vast", (2 ** 62, 2), "<f8", chunks=(1024, 2))
        t = np.dtype([("a long name of a member %d" % i, "<i4")
                      for i in range(9)])
        f["wide"] = np.zeros(2, t)
    with Mount(src) as m:
        odd = info(m, "odd")
        equal(odd["layout"], "contiguous", "layout of odd")
        check("chunks" not in odd, "chunks of what has none")
        equal(odd["attributes"]["v"], values, "numbers")
        equal(odd["attributes"]["text"],
              "53.229999999999997, \"1.0e5\"", "text")
        raw = read(m / "odd/info.json").decode()
        for want in ("53.23,", "0.1,", "0.3333333333333333,"):
            check(want in raw, "%s is not in info.json" % want)
        check("nbytes" not in info(m, "vast"), "bytes of what is too large")
        check(not info(m, "wide")["type"].endswith(("member", "mem")),
              "type: " + info(m, "wide")["type"])


@case
def soft_links_up():
    """'..' is a name like any other in HDF5, so these lead nowhere."""
    src = path("up.h5")
    with h5py.File(src, "w") as f:
        f["g/a"] = np.arange(3)
        f["g/up"] = h5py.SoftLink("../g/a")
        f["out"] = h5py.SoftLink("../../../../../../etc/hostname")
        f["abs"] = h5py.SoftLink("/g/../g/a")
        for n in ("g/up", "out", "abs"):
            check(f.get(n) is None, "h5py finds " + n)
    with Mount(src) as m:
        for n in ("g/up", "out", "abs"):
            check(os.path.islink(m / n), n + " is no symlink")
            check(".." not in os.readlink(m / n).split("/") or n == "abs",
                  "%s: %s" % (n, os.readlink(m / n)))
            check(not os.path.exists(m / n), n + " leads somewhere")


# TAIL
if __name__ == "__main__":
    work = lib.setup()
    lib.main()
