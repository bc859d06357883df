#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""tensor.safetensors, read by a parser written from the format's published rules
(huggingface/safetensors, README and tensor.rs); what it gives compared with h5py, torch."""
import errno
import json
import mmap
import os
import sys

sys.dont_write_bytecode = True

import h5py
import lib
import numpy as np
import torch
from checks import check, equal, fails_with, read
from lib import Mount, case

work = None
rng = np.random.default_rng(13)
NAME = "tensor.safetensors"
# In the order of tensor.rs, "in increasing alignment".
TYPES = {"BOOL": "?", "U8": "u1", "I8": "i1", "I16": "<i2", "U16": "<u2", "F16": "<f2",
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
        same(load(m.path + "/" + NAME), {NAME: np.arange(3), "x": np.arange(5.0)})
        check((np.load(m.path + "/" + NAME + "~2/array.npy") == np.arange(3)).all(), "the dataset")
        got = load(m.path + "/g/" + NAME)
        equal(len(got), 2000, "many")
        check(all((v[1] == int(k)).all() for k, v in got.items()), "of many")


work = lib.setup()
lib.main()
