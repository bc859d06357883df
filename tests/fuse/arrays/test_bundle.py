#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""tensor.safetensors, read by a parser written from the format's published rules
(huggingface/safetensors, README and tensor.rs); what it gives compared with h5py, torch."""
import errno
import json
import mmap
import os
import sys
import tarfile
import zipfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import lib
import numpy as np
import torch
import zarr
from checks import check, equal, fails_with, read
from lib import Mount, case

work = None
rng = np.random.default_rng(13)
NAME = "tensor.safetensors"
COLUMNS = lib.COLUMNS
# In the order of tensor.rs, "in increasing alignment".
TYPES = {"BOOL": "?", "U8": "u1", "I8": "i1", "F8_E5M2": "u1", "F8_E4M3": "u1", "F8_E8M0": "u1",
         "I16": "<i2", "U16": "<u2", "F16": "<f2",
         "BF16": "<u2", "I32": "<i4", "U32": "<u4", "F32": "<f4", "C64": "<c8", "F64": "<f8",
         "I64": "<i8", "U64": "<u8"}
ORDER = list(TYPES)


def unique(pairs):
    equal(len({k for k, _ in pairs}), len(pairs), "a key twice")
    return dict(pairs)


def load(path):
    """{name: (type, array)}; every rule is checked."""
    size = os.stat(path).st_size
    with open(path, "rb") as f:
        data = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
    equal(len(data), size, "size")
    n = int.from_bytes(data[:8], "little")
    check(n <= 100_000_000 and 8 + n <= size, "length of the header")
    equal((8 + n) % 4096, 0, "data begins with a page")
    text = data[8:8 + n]
    check(text[:1] == b"{" and text.rstrip(b" ")[-1:] == b"}", "header")
    header = json.loads(text.decode("utf-8"), object_pairs_hook=unique)
    header.pop("__metadata__", None)
    out, end, before = {}, 0, None
    for name, e in sorted(header.items(), key=lambda x: (x[1]["data_offsets"], list(header).index(x[0]))):
        equal(sorted(e), ["data_offsets", "dtype", "shape"], name)
        first, last = e["data_offsets"]
        equal(first, end, name + ": a hole, or an overlap")
        end = last
        dtype = np.dtype(TYPES[e["dtype"]])
        equal(last - first, int(np.prod(e["shape"], dtype=object)) * dtype.itemsize, name)
        equal(first % dtype.itemsize, 0, name + ": alignment")
        key = (-ORDER.index(e["dtype"]), name.encode())
        check(before is None or before < key, name + ": order")
        before = key
        out[name] = e["dtype"], np.frombuffer(
            data, dtype, offset=8 + n + first,
            count=(last - first) // dtype.itemsize).reshape(e["shape"]).copy()
    equal(8 + n + end, size, "covered")
    return out


def same(got, want):
    equal(sorted(got), sorted(want), "names")
    for k, a in want.items():
        b = got[k][1]
        equal(b.shape, a.shape, k)
        little = a.astype(a.dtype.newbyteorder("<"))
        equal(b.dtype, little.dtype, k)
        check(b.tobytes() == little.tobytes(), k + ": other bytes")


def numbers(dtype, shape):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind == "c":
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    if dtype.kind == "f":
        return rng.normal(size=shape).astype(dtype)
    return rng.integers(0, 100, shape).astype(dtype)


@case
def of_a_group():
    path = os.path.join(work, "group.h5")
    want = {"t%02d_%s" % (i, np.dtype(t).str[1:]): numbers(t, tuple(rng.integers(1, 9, i % 4)))
            for i, t in enumerate(["?", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4",
                                   "f8", "c8", ">f4", ">i2", ">u8"])}
    want["many"] = numbers("f4", (300, 40, 17))
    want['q"u\\ote Ä'] = numbers("i4", (3,))
    want["none"] = np.zeros((0, 5), "f8")
    want["nothing"] = np.zeros((0,), "u1")
    with h5py.File(path, "w") as f:
        for top in ("", "a/b/"):
            for k, v in want.items():
                chunks = {"chunks": (7, 9, 5), "compression": "gzip", "shuffle": True}
                f.create_dataset(top + k, data=v, **(chunks if k == "many" else {}))
        f["a/words"] = [b"x", b"y"]  # no tensor that it could have
        f["a/c16"] = numbers("c16", (3,))
        f["a/s"] = np.zeros(3, [("x", "i4")])
        f.create_group("e")
    with Mount(path) as m:
        same(load(m.path + "/" + NAME), want)
        same(load(m.path + "/a/b/" + NAME), want)
        for k, v in want.items():
            same(load("%s/%s/%s" % (m.path, k, NAME)), {k: v})
        check(NAME not in os.listdir(m.path) + os.listdir(m.path + "/many"), "not listed")
        for k in ("a", "e", "a/words", "a/c16", "a/s"):
            fails_with(errno.ENOENT, lambda: os.stat("%s/%s/%s" % (m.path, k, NAME)), k)
        whole = read(m.path + "/" + NAME)
        with open(m.path + "/" + NAME, "rb", buffering=0) as f:
            for _ in range(60):
                at = int(rng.integers(0, len(whole)))
                f.seek(at)
                got = f.read(int(rng.integers(1, 40000)))
                check(got and whole[at:at + len(got)] == got, "at %d" % at)
    with Mount(path, opts=["--views=safetensors"]) as m:
        equal(os.listdir(m.path + "/many"), ["info.json", NAME], "listed")
    with Mount(path, opts=["--dataset=/a/b/many"]) as m:
        same(load(m.path + "/" + NAME), {"many": want["many"]})
    with Mount(path, opts=["--dtype-order=source"]) as m:  # the format has one order
        same(load(m.path + "/" + NAME),
             {k: v for k, v in want.items() if not v.dtype.str.startswith(">")})


@case
def bfloat16():
    t = torch.randn(40, 3).to(torch.bfloat16)
    bits = t.view(torch.int16).numpy().view("u2")
    path = os.path.join(work, "bf16.h5")
    with h5py.File(path, "w") as f:
        for name, base in (("le", h5py.h5t.IEEE_F16LE), ("be", h5py.h5t.IEEE_F16BE)):
            kind = base.copy()
            kind.set_fields(15, 7, 8, 0, 7)
            kind.set_ebias(127)
            d = h5py.h5d.create(f.id, name.encode(), kind, h5py.h5s.create_simple(bits.shape))
            d.write(h5py.h5s.ALL, h5py.h5s.ALL,
                    np.ascontiguousarray(bits if name == "le" else bits.byteswap()), kind)
        f["plain"] = bits
    with Mount(path) as m:
        got = load(m.path + "/" + NAME)
        equal({k: v[0] for k, v in got.items()}, {"le": "BF16", "be": "BF16", "plain": "U16"}, "types")
        for k in ("le", "be"):
            back = torch.from_numpy(got[k][1].view("i2").copy()).view(torch.bfloat16)
            check(torch.equal(back, t), k)


@case
def distributed():
    d = os.path.join(work, "parts")
    os.makedirs(d, exist_ok=True)
    data = rng.normal(size=(30, 8)).astype("f4")
    layout = h5py.VirtualLayout((30, 8), "f4")
    for i in range(3):
        with h5py.File("%s/p%d.h5" % (d, i), "w") as f:
            f["d"] = data[10 * i:10 * i + 10]
        layout[10 * i:10 * i + 10] = h5py.VirtualSource("p%d.h5" % i, "d", (10, 8))
    with h5py.File(d + "/all.h5", "w", libver="latest") as f:
        f.create_virtual_dataset("v", layout)
        f["x"], f["w"] = np.arange(7.0), data.T.copy()
    with Mount(d + "/all.h5") as m:
        same(load(m.path + "/" + NAME), {"v": data, "x": np.arange(7.0), "w": data.T})
    os.unlink(d + "/p1.h5")
    with Mount(d + "/all.h5") as m:  # never zeros
        fails_with((errno.EIO, errno.ENODATA), lambda: read(m.path + "/" + NAME), "a part is gone")


@case
def names_of_others():
    """A dataset that is called like it, or like the format's own key, keeps its bytes."""
    path = os.path.join(work, "names.h5")
    with h5py.File(path, "w") as f:
        f[NAME], f["__metadata__"], f["x"] = np.arange(3), np.arange(4), np.arange(5.0)
        for i in range(2000):
            f["g/%05d" % i] = np.full((3,), i, "i8")
    with Mount(path) as m:
        check((np.load(m.path + "/" + NAME + "/array.npy") == np.arange(3)).all(), "the dataset")
        got = load(m.path + "/g/" + NAME)
        equal(len(got), 2000, "many")
        check(all((v[1] == int(k)).all() for k, v in got.items()), "of many")


def members():
    """Names and arrays, and what the format has no type for."""
    want = {"w": numbers("f4", (30, 41)), "b": numbers("i8", (5,)), "m": numbers("?", (3, 2)),
            "f": np.asfortranarray(numbers("f8", (6, 7))), "big": numbers(">i2", (4,)),
            "none": np.zeros((0, 3), "f2"), "one": np.array(3, "u1")}
    return want, {"c16": numbers("c16", (3,)), "s": np.zeros(2, [("x", "i4")])}


def write_npys(path, *more):
    os.makedirs(path)
    for some in more:
        for k, v in some.items():
            np.save("%s/%s.npy" % (path, k), v)


@case
def of_zarr_groups():
    want, others = members()
    path = os.path.join(work, "g.zarr")
    g = zarr.open(path, "w")
    for top in ("", "a/b/"):
        for k, v in {**want, **others}.items():
            g.array(top + k, v, chunks=(4,) * v.ndim)
    g.create_group("empty")
    for source in (path, work + "/zarrs"):
        if source != path:
            os.makedirs(source)
            os.rename(path, source + "/g.zarr")
        with Mount(source) as m:
            root = m.path if source == path else m.path + "/g.zarr"
            same(load(root + "/" + NAME), want)
            same(load(root + "/a/b/" + NAME), want)
            for k in ("a", "empty", "s"):
                fails_with(errno.ENOENT, lambda: os.stat("%s/%s/%s" % (root, k, NAME)), k)


@case
def of_npz():
    want, others = members()
    for save in (np.savez, np.savez_compressed):
        path = os.path.join(work, save.__name__ + ".npz")
        save(path, **want, **others, **{"a/x": want["w"]})
        with Mount(path) as m:
            same(load(m.path + "/" + NAME), {**want, "a:x": want["w"]})
            check(NAME not in os.listdir(m.path), "not listed")
    with zipfile.ZipFile(path, "a") as z:
        z.writestr(NAME, b"a member")
    with Mount(path) as m:
        equal(read(m.path + "/" + NAME), b"a member", "a member of this name")


@case
def of_safetensors():
    """As it was written by the rules, whatever order the file has; names as they are."""
    want = {"model.0/w": numbers("f4", (3, 4)), "other/w": numbers("f4", (2,)),
            "h": numbers("u2", (5,)), "e": numbers("u1", (4,))}
    kinds = {"model.0/w": "F32", "other/w": "F32", "h": "BF16", "e": "F8_E4M3"}
    header, data = {}, b""
    for k in ("e", "h", "other/w", "model.0/w"):
        raw = want[k].tobytes()
        header[k] = {"dtype": kinds[k], "shape": list(want[k].shape),
                     "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path = os.path.join(work, "m.safetensors")
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + data)
    with Mount(path) as m:
        got = load(m.path + "/" + NAME)
        same(got, want)
        equal({k: v[0] for k, v in got.items()}, kinds, "types")


@case
def of_columns():
    for name in ("batches.arrow", "zstd.parquet"):
        with Mount(os.path.join(COLUMNS, name)) as m:
            got = load(m.path + "/" + NAME)
            check(len(got) > 4 and "i4" in got and "bool" in got, name)
            for k, (_, a) in got.items():
                one = np.load("%s/%s/array.npy" % (m.path, k))
                equal((a.dtype, a.tobytes()), (one.dtype, one.tobytes()), name + " " + k)


@case
def of_files():
    """.npy files side by side, in directories and archives."""
    want, others = members()
    d = os.path.join(work, "npys")
    write_npys(d, want, others, {"words": np.array(["a", "b"])})
    np.save(d + "/objects.npy", np.array([{}], object))
    os.mkdir(d + "/sub")
    np.save(d + "/sub/deep.npy", np.arange(3))
    for name, mode in (("n.tar", "w"), ("n.tar.gz", "w:gz")):
        with tarfile.open(os.path.join(work, name), mode) as t:
            t.add(d, ".")
    for source, opts in ((d, []), (work + "/n.tar", []), (work + "/n.tar.gz", [])):
        with Mount(source, opts=opts) as m:
            same(load(m.path + "/" + NAME), want)
            fails_with(errno.ENOENT, lambda: os.stat(m.path + "/sub/" + NAME), "only in the root")
            check(NAME not in os.listdir(m.path), "not listed")
    with open(d + "/cut.npy", "wb") as f:
        f.write(read(d + "/w.npy")[:200])
    with Mount(d) as m:  # nobody would miss it
        fails_with(errno.EBADMSG, lambda: os.stat(m.path + "/" + NAME), "one is cut off")


work = lib.setup()
lib.main()
