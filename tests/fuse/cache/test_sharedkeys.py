#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Chunks in shared memory that are not stored as they are: none is taken for that of
another array, part, file or reading of the same bytes.

Arrays of equal names, shapes and types and of other contents are read through one
store, in both orders, and compared with what they were written from.
"""
import os
import shutil
import struct
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import numpy as np

import lib
from checks import check, same_bytes
from lib import Mount, exits, run
from quietlib import again
from sharedlib import settled

ROWS = 40000                    # of bytes: a chunk that is worth it
work = None
builders = []
rng = np.random.default_rng(21)


def where(*name):
    return os.path.join(work, *name)


def put(name, data):
    with open(where(name), "wb") as f:
        f.write(data)
    return where(name)


def stores(f):
    """f makes files and gives lists of views, each for a store of its own."""
    builders.append(f)
    return f


def memory():
    """A tmpfs of its own (root), or else a directory of /dev/shm, which others may have
    filled."""
    if not lib.ROOT:
        return tempfile.mkdtemp(prefix="shm-", dir="/dev/shm")
    base = tempfile.mkdtemp(prefix="shm-", dir=work)
    exits(run("mount", "-t", "tmpfs", "-o", "size=256m,mode=1777", "none", base), 0,
          "a tmpfs for the test")
    return base


def shared(views):
    """views: (source, options, {path of an array: its elements}).  Each by a mount of
    its own, there and back, all with one store."""
    base = memory()
    found = refused = 0
    try:
        for turn in (views, views[::-1]):
            for source, opts, arrays in turn:
                with Mount(source, opts=["-o", "shm-cache=48M,shm-dir=" + base,
                                         *opts]) as m:
                    for path, want in (list(arrays.items()) if turn is views
                                       else list(arrays.items())[::-1]):
                        got = np.load(m / (path + "/array.npy"))
                        same_bytes(got.tobytes(), want.tobytes(),
                                   "%s of %s %s" % (path, source, opts))
                    s = m.stats()
                    found += s["shared_hits"]
                    refused += s["shared_refused"]
        if refused and not found:
            again("all of %d chunks were refused" % refused)
        check(found > 0, "nothing was shared")
    finally:
        if lib.ROOT:
            exits(run("umount", base), 0, "umount of the tmpfs")
            os.rmdir(base)
        else:
            shutil.rmtree(base)


# ---- Parquet: row groups, and columns of one name ------------------------------

def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def zigzag(n):
    return varint(n << 1 ^ n >> 63)


def thrift(fields):
    """A struct of Thrift's compact protocol; fields: (number, value)."""
    out, last = b"", 0
    for number, v in fields:
        kind, body = thrift_value(v)
        out += bytes([number - last << 4 | kind]) + body
        last = number
    return out + b"\0"


def thrift_value(v):
    if isinstance(v, tuple):                   # ("i32" or "i64", n)
        return {"i32": 5, "i64": 6}[v[0]], zigzag(v[1])
    if isinstance(v, bytes):
        return 8, varint(len(v)) + v
    if isinstance(v, dict):
        return 12, thrift(v.items())
    kinds, bodies = zip(*map(thrift_value, v))
    n = len(v)
    return 9, (bytes([n << 4 | kinds[0]]) if n < 15 else
               bytes([240 | kinds[0]]) + varint(n)) + b"".join(bodies)


def i32(n):
    return ("i32", n)


def i64(n):
    return ("i64", n)


def parquet(groups):
    """groups: lists of (name, float64 array): required, plain, not compressed."""
    out, rows = b"PAR1", []
    for columns in groups:
        chunks = []
        for name, a in columns:
            data, at = a.astype("<f8").tobytes(), len(out)
            out += thrift({1: i32(0), 2: i32(len(data)), 3: i32(len(data)),
                           5: {1: i32(len(a)), 2: i32(0), 3: i32(3),
                               4: i32(3)}}.items()) + data
            size = len(out) - at
            chunks.append({2: i64(at), 3: {
                1: i32(5), 2: [i32(0)], 3: [name], 4: i32(0), 5: i64(len(a)),
                6: i64(size), 7: i64(size), 9: i64(at)}})
        rows.append({1: chunks, 2: i64(len(out)), 3: i64(len(columns[0][1]))})
    leaves = [{1: i32(5), 3: i32(0), 4: name} for name, _ in groups[0]]
    foot = thrift({1: i32(1), 2: [{4: b"schema", 5: i32(len(leaves))}, *leaves],
                   3: i64(sum(len(g[0][1]) for g in groups)),
                   4: rows}.items())
    return out + foot + struct.pack("<I", len(foot)) + b"PAR1"


# ---- Arrow: batches of booleans ------------------------------------------------

class Table(dict):
    """{slot: ("h", 4), or a Table, bytes, or a list of Tables or packed structs}"""


def flat(root):
    out = bytearray(4)

    def pad():
        out.extend(bytes(-len(out) % 8))

    def put_at(at, to):
        struct.pack_into("<I", out, at, to - at)

    def emit(v):
        pad()
        if isinstance(v, bytes):
            at = len(out)
            out.extend(struct.pack("<I", len(v)) + v + b"\0")
            return at
        if isinstance(v, list) and (not v or isinstance(v[0], bytes)):
            out.extend(bytes(4))               # structs have i64: aligned to 8
            at = len(out)
            out.extend(struct.pack("<I", len(v)) + b"".join(v))
            return at
        if isinstance(v, list):
            at = len(out)
            out.extend(struct.pack("<I", len(v)) + bytes(4 * len(v)))
            for i, x in enumerate(v):
                put_at(at + 4 + 4 * i, emit(x))
            return at
        places, size = {}, 8
        for slot, x in v.items():
            n = struct.calcsize(x[0]) if isinstance(x, tuple) else 4
            size += -size % n
            places[slot] = size
            size += n
        slots = max(v, default=-1) + 1
        vtable = len(out)
        out.extend(struct.pack("<%dH" % (2 + slots), 4 + 2 * slots, size,
                               *(places.get(i, 0) for i in range(slots))))
        pad()
        at = len(out)
        out.extend(struct.pack("<i", at - vtable) + bytes(size - 4))
        for slot, x in v.items():
            if isinstance(x, tuple):
                struct.pack_into("<" + x[0], out, at + places[slot], x[1])
        for slot, x in v.items():
            if not isinstance(x, tuple):
                put_at(at + places[slot], emit(x))
        return at

    put_at(0, emit(root))
    pad()
    return bytes(out)


def arrow_message(kind, header, body=b""):
    meta = flat(Table({0: ("h", 4), 1: ("B", kind), 2: header,
                       3: ("q", len(body))}))
    return struct.pack("<Ii", 0xffffffff, len(meta)) + meta + body


def arrow(batches):
    """Batches of columns (name, booleans), as a stream."""
    fields = [Table({0: name, 1: ("B", 0), 2: ("B", 6), 3: Table(), 5: []})
              for name, _ in batches[0]]
    out = arrow_message(1, Table({1: fields}))
    for columns in batches:
        body, nodes, buffers = b"", [], []
        for _, a in columns:
            bits = np.packbits(a, bitorder="little").tobytes()
            nodes.append(struct.pack("<qq", len(a), 0))
            buffers += [struct.pack("<qq", len(body), 0),
                        struct.pack("<qq", len(body), len(bits))]
            body += bits + bytes(-len(bits) % 8)
        out += arrow_message(3, Table({0: ("q", len(columns[0][1])), 1: nodes,
                                       2: buffers}), body)
    return out + struct.pack("<Ii", 0xffffffff, 0)


# ---- cases ---------------------------------------------------------------------

@stores
def row_groups_and_columns():
    groups = [[(n, rng.random(ROWS // 8)) for n in (b"x", b"y")]
              for _ in range(3)]
    path = put("a.parquet", parquet(groups))
    return [[(path, [], {n: np.concatenate([dict(g)[n.encode()] for g in groups])
                         for n in "xy"})]]


@stores
def batches():
    parts = [[(n, rng.random(ROWS) < 0.5) for n in (b"x", b"y")]
             for _ in range(3)]
    path = put("a.arrows", arrow(parts))
    return [[(path, [], {n: np.concatenate([dict(g)[n.encode()] for g in parts])
                         for n in "xy"})]]


@stores
def members_of_archives():
    """Deflated members of .npz, and these in a tar and in a squashfs."""
    os.mkdir(where("npz"))
    arrays = {}
    for name in "ab":
        one = {k: rng.integers(0, 9, (200, 300)).astype("<i4") for k in "xy"}
        one["z"] = np.asfortranarray(one["x"][::-1] + one["y"])
        np.savez_compressed(where("npz", name + ".npz"), **one)
        arrays.update({name + ".npz/" + k: v for k, v in one.items()})
    exits(run("tar", "-C", where("npz"), "-cf", where("n.tar"), "."), 0, "tar")
    exits(run("mksquashfs", where("npz"), where("n.sqfs"), "-quiet",
              "-no-progress", "-comp", "gzip"), 0, "mksquashfs")
    index = ["-o", "recursive,index=" + work]
    return [[(where("npz", n + ".npz"), ["-o", "index=" + work],
              {k: arrays["%s.npz/%s" % (n, k)] for k in "xyz"}) for n in "ab"],
            [(where("n.tar"), index, arrays)],
            [(where("n.sqfs"), index, arrays)]]


@stores
def readings_of_raw_bytes():
    """Fortran order: frames are made, and options say from which bytes."""
    data = rng.integers(0, 256, 40 * 66000).astype("u1").tobytes()
    path = put("frames", data)

    def reading(dtype, offset=0, header=0):
        size = 128 * 256 * 2
        n = (len(data) - offset) // (header + size)
        want = np.stack([np.frombuffer(
            data, dtype, 128 * 256,
            offset + i * (header + size) + header).reshape(256, 128).T
            for i in range(n)])
        return (path, ["--raw", "dtype=%s,shape=128x256,order=F,offset=%d,"
                       "header=%d,count=%d" % (dtype, offset, header, n)],
                {"data": want.astype(want.dtype.newbyteorder("<"))})
    return [[reading("<u2"), reading("<u2", 2), reading("<u2", 0, 8),
             reading(">u2"), reading("<i2")]]


@stores
def arrays_in_fortran_order():
    """Of one tensor from several files, and of each of them."""
    os.mkdir(where("parts"))
    parts = [rng.integers(0, 99, (96, 80, 3)).astype("<i4") for _ in range(2)]
    for i, a in enumerate(parts):
        np.save(where("parts", "p%d.npy" % i), np.asfortranarray(a.astype(">i4")))
    return [[(where("parts"), ["-o", "concat=%d" % k],
              {"data": np.concatenate(parts, k)}) for k in range(3)] +
            [(where("parts", "p%d.npy" % i), [], {"data": a})
             for i, a in enumerate(parts)]]


@stores
def datasets_and_fields():
    """What libhdf5 makes: by path and by field."""
    odd = h5py.h5t.STD_I32LE.copy()
    odd.set_size(3)
    both = h5py.h5t.create(h5py.h5t.COMPOUND, 6)
    both.insert(b"a", 0, odd)
    both.insert(b"b", 3, odd)
    want = {}
    with h5py.File(where("odd.h5"), "w") as f:
        for path in ("x", "g/x", "g/y"):
            if "/" in path:
                f.require_group("g")
            a = rng.integers(-8000, 8000, (64, 32, 32)).astype("<i4")
            h5py.h5d.create(f.id, path.encode(), odd,
                            h5py.h5s.create_simple(a.shape), chunked()).write(
                                h5py.h5s.ALL, h5py.h5s.ALL, a)
            want[path] = a
        s = np.zeros((64, 32, 32), [("a", "<i4"), ("b", "<i4")])
        for k in "ab":
            s[k] = rng.integers(-8000, 8000, s.shape)
            want["s/fields/" + k] = s[k]
        h5py.h5d.create(f.id, b"s", both, h5py.h5s.create_simple(s.shape),
                        chunked()).write(h5py.h5s.ALL, h5py.h5s.ALL, s)
    return [[(where("odd.h5"), [], want),
             (where("odd.h5"), ["-o", "dtype-order=source"], want),
             (where("odd.h5"), ["--dataset", "/g"],
              {k[2:]: v for k, v in want.items() if k.startswith("g/")})]]


def chunked():
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((8, 32, 32))
    plist.set_deflate(4)
    return plist


@stores
def stored_chunks():
    """Of HDF5 and of Zarr: equal shapes and sizes, in files of one directory."""
    import zarr
    views = []
    for name in ("1.h5", "2.h5"):
        with h5py.File(where(name), "w") as f:
            arrays = {}
            for k in "xy":
                a = rng.integers(0, 9, (64, 64, 32)).astype(">i2")
                f.create_dataset(k, data=a, chunks=(8, 64, 32),
                                 compression="gzip")
                arrays[k] = a.astype("<i2")
        views.append((where(name), [], arrays))
    for name in ("1.zarr", "2.zarr"):
        g = zarr.open_group(where(name), "w")
        arrays = {k: rng.integers(0, 9, (64, 64, 32)).astype("<i2")
                  for k in "xy"}
        for k, a in arrays.items():
            g.array(k, a, chunks=(8, 64, 32))
        views.append((where(name), [], arrays))
    return [views]


def start():
    global work
    work = lib.setup()
    made = [(f.__name__, f()) for f in builders]
    settled(*(where(n) for n in os.listdir(work)))
    for name, several in made:
        def look(several=several):
            for views in several:
                shared(views)
        look.__name__ = name
        lib.case(look)


start()
lib.main()
