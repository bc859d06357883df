#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tensors and files as Zarr: read by zarr, dask and xarray, compared with h5py."""
import errno
import functools
import itertools
import json
import os
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import dask.array as da
import h5py
import lib
import numcodecs
import numpy as np
import xarray
import zarr
from checks import check, equal, fails_with, read
from frames import shuffle, zstd
from lib import Mount, case, tensorfs
from zoo_filters import BLOSC, BLOSCS, BSHUF, LZ4, ZSTD, low, smooth, stored

work = None
rng = np.random.default_rng(11)


def path_of(name):
    return os.path.join(work, name)


def numbers(dtype, shape):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind == "c":
        return (rng.random(shape) + 1j * rng.random(shape)).astype(dtype)
    if dtype.kind == "f":
        return np.round(rng.normal(size=shape), 2).astype(dtype)
    i = np.iinfo(dtype)
    return rng.integers(max(i.min, -99), min(i.max, 99), shape).astype(dtype)


def equal_arrays(got, want, what):
    got, want = np.asarray(got), np.asarray(want)
    equal(got.shape, want.shape, what + ": shape")
    equal((got.dtype.kind, got.dtype.itemsize),
          (want.dtype.kind, want.dtype.itemsize), what + ": dtype")
    little = got.astype(got.dtype.newbyteorder("<"))
    check(little.tobytes() == want.astype(want.dtype.newbyteorder("<"))
          .tobytes(), what + ": other values")


def absent(path):
    fails_with((errno.ENOENT,), lambda: os.stat(path), path)


def under(m, *names):
    return os.path.join(m.path, *names)


def fails_with_any(f, what):
    try:
        f()
    except Exception:
        return
    check(False, what + " went unnoticed")


def meta(path):
    return json.loads(read(path))


# --- a file with much of what HDF5 can do ------------------------------------------

FILTERS = {
    "none": {}, "shuffle": {"shuffle": True}, "fletcher": {"fletcher32": True},
    "gzip": {"compression": "gzip", "compression_opts": 4},
    "shuffle_gzip": {"shuffle": True, "compression": "gzip"},
    "gzip_fletcher": {"compression": "gzip", "fletcher32": True},
    "shuffle_gzip_fletcher": {"shuffle": True, "compression": "gzip", "fletcher32": True},
    "lzf": {"compression": "lzf"}, "scaleoffset": {"scaleoffset": 0},
}
STORED = ("gzip", "shuffle_gzip", "shuffle", "gzip_fletcher",
          "shuffle_gzip_fletcher", "fletcher")
SHAPES = {"full": ((8, 12), (4, 6)), "edge": ((10, 13), (4, 6)),
          "one": ((11,), (3,)), "cube": ((3, 14, 5), (2, 2, 5))}


@functools.lru_cache(None)
def matrix():
    """Filters x shapes x orders of bytes, some of the chunks missing."""
    path = path_of("matrix.h5")
    with h5py.File(path, "w") as f:
        for (name, kw), (shape, (dims, chunks)), order, holes in \
                itertools.product(FILTERS.items(), SHAPES.items(), "<>",
                                  (False, True)):
            if name == "scaleoffset" and order == ">":
                continue
            d = f.create_dataset(
                "g/%s_%s_%s_%s" % (name, shape, "le" if order == "<" else "be",
                                   "holes" if holes else "all"),
                dims, order + "i4", chunks=chunks, fillvalue=-7, **kw)
            x = numbers("i4", dims)
            if holes:
                first = tuple(slice(0, c) for c in chunks)
                d[first] = x[first]
            else:
                d[...] = x
    return path


@case
def every_filter():
    path = matrix()
    with Mount(path) as m, h5py.File(path) as f:
        for name, d in f["g"].items():
            at = under(m, "g", name, "zarr")
            z = zarr.open(at, "r")
            equal_arrays(z[...], d[...], name)
            equal(z.fill_value, -7 if name.endswith("_holes") and z.nchunks > 1 else None,
                  name + ": fill value")
            equal(z.chunks, d.chunks, name + ": chunks")
            check(("compressor" in meta(at + "/.zarray")), name)


@case
def stored_bytes():
    """What Zarr has codecs for is served as it is in the file."""
    path = matrix()
    with Mount(path) as m, h5py.File(path) as f:
        for name, d in f["g"].items():
            kind = next(k for k in sorted(FILTERS, key=len, reverse=True)
                        if name.startswith(k + "_"))
            at = under(m, "g", name, "zarr")
            if kind not in STORED:
                equal(meta(at + "/.zarray")["compressor"], None, name)
            if kind not in STORED:
                continue
            present = set(os.listdir(at)) - {".zarray", ".zattrs"}
            for k in range(d.id.get_num_chunks()):
                info = d.id.get_chunk_info(k)
                key = ".".join(str(o // c) for o, c in zip(info.chunk_offset, d.chunks))
                raw = d.id.read_direct_chunk(info.chunk_offset)[1]
                if "fletcher" in kind:
                    raw = raw[:-4]
                check(read(at + "/" + key) == raw, name + " " + key)
                equal(os.stat(at + "/" + key).st_size, len(raw), key)
                check(key in present, key + " is not listed")
                present.remove(key)
            equal(present, set(), name + ": listed, and not there")


@case
def big_endian_is_as_stored():
    path = matrix()
    with Mount(path) as m:
        for name, dtype in (("gzip_full_be_all", ">i4"),
                            ("none_full_be_all", ">i4"),
                            ("lzf_full_be_all", "<i4"),
                            ("gzip_full_le_all", "<i4")):
            equal(meta(under(m, "g", name, "zarr", ".zarray"))["dtype"], dtype,
                  name)


@case
def codecs_that_are_named():
    """Blosc by its plugin, zstd encoded here, LZ4 and bitshuffle: no codecs of Zarr."""
    path = path_of("codecs.h5")
    x = smooth((50, 40), "<f4")
    filters = {"blosc_" + c: [(BLOSC, (0, 0, 0, 0, 5, 1, n))]
               for c, n in BLOSCS.items()}
    filters["lz4"], filters["bitshuffle"] = [(LZ4, ())], [(BSHUF, (0, 2))]
    with h5py.File(path, "w") as f:
        for k, v in filters.items():
            low(f, k, "<f4", x.shape, (16, 40), v)[...] = x
        stored(low(f, "zstd", "<f4", x.shape, (16, 40), [(ZSTD, (3,))]), x,
               (16, 40), lambda k, r: (zstd(r), 0))
        stored(low(f, "zstd_shuffle", "<f4", x.shape, (16, 40),
                   [(2, (4,)), (ZSTD, (3,))]), x, (16, 40),
               lambda k, r: (zstd(shuffle(r, 4)), 0))
        stored(low(f, "zstd_mixed", "<f4", x.shape, (16, 40), [(ZSTD, (3,))]), x,
               (16, 40), lambda k, r: (r, 1) if k == 1 else (zstd(r), 0))
        stored(low(f, "zstd_be", ">f4", x.shape, (16, 40), [(ZSTD, (3,))]), x.astype(">f4"),
               (16, 40), lambda k, r: (zstd(r), 0))
    with Mount(path) as m, h5py.File(path) as f:
        for k, d in f.items():  # v3: one compressor is named, its chunks are as stored
            at = under(m, k, "zarr3")
            word = k.split("_")[0] if k not in ("zstd_shuffle", "zstd_mixed") else ""
            equal([c["name"] for c in meta(at + "/zarr.json")["codecs"][1:]],
                  [word] if word in ("blosc", "zstd") else [], k)
            equal_arrays(zarr3(at), x.astype(">f4") if k == "zstd_be" else x, k + ": v3")
            if word in ("blosc", "zstd"):
                check(read(at + "/c/1/0") == d.id.read_direct_chunk((16, 0))[1], k + ": stored")
        for k in list(filters) + ["zstd", "zstd_shuffle"]:
            at = under(m, k, "zarr")
            equal_arrays(zarr.open(at, "r")[...], x, k)
            c = meta(at + "/.zarray")["compressor"]
            word = k.split("_")[0]
            equal(c and c["id"], word if word in ("blosc", "zstd") else None, k)
        equal(meta(under(m, "blosc_lz4hc", "zarr", ".zarray"))["compressor"]["cname"], "lz4hc", "")


@case
def masks_are_mixed():
    """One chunk that was stored without its filters, and all are decoded."""
    path = path_of("masks.h5")
    x = numbers("i2", (40, 10))
    with h5py.File(path, "w") as f:
        d = f.create_dataset("a", data=x, chunks=(10, 10), shuffle=True,
                             compression="gzip")
        d.id.write_direct_chunk((10, 0), x[10:20].tobytes(), 3)
        sparse = f.create_dataset("b", (10000, 10), "i2", chunks=(10, 10),
                                  compression="gzip", fillvalue=3)
        sparse[:20] = x[:20]
        sparse.id.write_direct_chunk((500, 0), x[:10].tobytes(), 1)
        f.create_dataset("c", (10000, 10), "i2", chunks=(10, 10),
                         compression="gzip", fillvalue=3)[500:520] = x[:20]
    with Mount(path) as m, h5py.File(path) as f:
        for k, compressed in (("a", False), ("b", False), ("c", True)):
            z = zarr.open(under(m, k, "zarr"), "r")
            equal_arrays(z[...], f[k][...], k)
            equal(z.compressor is not None, compressed, k)
        equal(len(os.listdir(under(m, "c", "zarr"))), 2 + 2, "c")


@case
def edges_without_filters():
    path = path_of("edges.h5")
    x = numbers("i4", (10, 10))
    with h5py.File(path, "w", libver="latest") as f:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((4, 4))
        plist.set_deflate(4)
        if not hasattr(plist, "set_chunk_opts"):
            return
        plist.set_chunk_opts(2)
        space = h5py.h5s.create_simple((10, 10))
        d = h5py.h5d.create(f.id, b"a", h5py.h5t.NATIVE_INT32, space, plist)
        h5py.Dataset(d)[...] = x
    with Mount(path) as m:
        equal_arrays(zarr.open(under(m, "a", "zarr"), "r")[...], x, "a")


@case
def checksums_are_checked():
    path = path_of("sums.h5")
    x = numbers("i4", (20, 10))
    with h5py.File(path, "w") as f:
        d = f.create_dataset("a", data=x, chunks=(10, 10), fletcher32=True)
        info = d.id.get_chunk_info(1)
    with open(path, "r+b") as f:
        f.seek(info.byte_offset + 20)
        b = f.read(1)
        f.seek(info.byte_offset + 20)
        f.write(bytes([b[0] ^ 1]))
    with Mount(path) as m:
        check(read(under(m, "a", "zarr", "0.0")) == x[:10].tobytes(), "chunk 0")
        fails_with((errno.EBADMSG,),
                   lambda: read(under(m, "a", "zarr", "1.0")), "chunk 1")


# --- other layouts, types and shapes -----------------------------------------------


@functools.lru_cache(None)
def layouts():
    path = path_of("layouts.h5")
    x = numbers("f8", (100, 7, 3))
    with h5py.File(path, "w") as f:
        f["contiguous"] = x
        f["contiguous_be"] = x.astype(">f8")
        f["large"] = numbers("u2", (900, 200, 100))
        f["wide"] = numbers("u1", (3, 5000, 3000))
        f["scalar"] = 4.5
        f["empty"] = np.zeros((0, 5), "i4")
        f["nothing"] = np.zeros((4, 0), "i4")
        f.create_dataset("unwritten", (40, 40), "f4", fillvalue=2.5)
        f.create_dataset("unwritten_chunks", (40, 40), "f4", chunks=(9, 9),
                         fillvalue=np.nan, compression="gzip")
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_layout(h5py.h5d.COMPACT)
        d = h5py.h5d.create(f.id, b"compact", h5py.h5t.IEEE_F64LE,
                            h5py.h5s.create_simple((7, 3)), plist)
        h5py.Dataset(d)[...] = x[0]
    parts = []
    for i in range(4):
        part = path_of("part%d.h5" % i)
        with h5py.File(part, "w") as f:
            f.create_dataset("data", data=x[i * 25:i * 25 + 25], chunks=True,
                             compression="gzip")
        parts.append(part)
    v = h5py.VirtualLayout((110, 7, 3), "f8")
    for i, part in enumerate(parts):
        v[i * 25:i * 25 + 25] = h5py.VirtualSource(part, "data", (25, 7, 3))
    with h5py.File(path, "a") as f:
        f.create_virtual_dataset("virtual", v, fillvalue=-1)
    return path


@case
def every_layout():
    path = layouts()
    with Mount(path) as m, h5py.File(path) as f:
        for name, d in f.items():
            z = zarr.open(under(m, name, "zarr"), "r")
            equal_arrays(z[()], d[()], name)
        equal(sorted(os.listdir(under(m, "unwritten", "zarr"))),
              [".zarray", ".zattrs"], "unwritten")
        absent(under(m, "unwritten", "zarr", "0.0"))
        absent(under(m, "unwritten_chunks", "zarr", "1.1"))
        absent(under(m, "empty", "zarr", "0.0"))
        chunks = meta(under(m, "large", "zarr", ".zarray"))["chunks"]
        equal(chunks[1:], [200, 100], "trailing axes of large")
        check(1 < chunks[0] < 900, "large in several chunks: %s" % chunks)
        raw = read(under(m, "large", "zarr", "0.0.0"))
        check(raw == f["large"][:chunks[0]].tobytes(), "a run of the source")
        y = da.from_zarr(under(m, "virtual", "zarr"))
        equal_arrays((y + 1).compute(), f["virtual"][...] + 1, "dask")
        absent(under(m, "virtual", "zarr", "9.0.0"))


@case
def every_type():
    path = path_of("types.h5")
    mixed = np.zeros(5, np.dtype({"names": ["a", "b", "c"], "formats": [
        "<i2", ("<f4", (2,)), "S3"], "offsets": [0, 4, 12], "itemsize": 16}))
    mixed["a"], mixed["b"], mixed["c"] = range(5), 1.5, b"xy"
    with h5py.File(path, "w") as f:
        for d in ("b1", "i1", "u1", "<i2", ">u2", "<i8", ">u8", "<f2", ">f4",
                  "<f8", "<c8", ">c16"):
            f.create_dataset(d.replace("<", "l").replace(">", "b"),
                             data=numbers(d, (9, 4)), chunks=(4, 4),
                             compression="gzip", shuffle=True)
        f["mixed"] = mixed
        f["opaque"] = np.array([b"abc", b"def"], "V3")
        f["text"] = ["no array"]
    with Mount(path) as m, h5py.File(path) as f:
        for name, d in f.items():
            if name == "text":
                absent(under(m, name, "zarr"))
                continue
            z = zarr.open(under(m, name, "zarr"), "r")[...]
            if name == "mixed":
                for k in mixed.dtype.names:
                    equal_arrays(z[k], mixed[k], "mixed " + k)
                continue
            if name == "opaque":
                equal(z.tobytes(), b"abcdef", name)
                continue
            equal_arrays(z, d[...], name)
        equal_arrays(zarr.open(under(m, "mixed", "fields", "b", "zarr"),
                               "r")[...], mixed["b"], "a field")


FILLS = {"nan": ("f4", np.nan), "inf": ("f8", np.inf), "ninf": ("f2", -np.inf),
         "negzero": ("f8", -0.0), "tenth": ("f4", np.float32(0.1)),
         "third": ("f8", 1 / 3), "huge": ("u8", 2 ** 64 - 1),
         "least": ("i8", -2 ** 63), "minus": (">i2", -2), "yes": ("b1", True),
         "be": (">f4", 6.25), "tiny": ("f8", 2.2250738585072014e-308)}


@case
def fill_values():
    path = path_of("fills.h5")
    with h5py.File(path, "w") as f:
        for k, (d, v) in FILLS.items():
            f.create_dataset(k, (6,), d, chunks=(4,), fillvalue=v)
        f.create_dataset("complex", (6,), "c8", chunks=(4,),
                         fillvalue=np.complex64(1.5 - 2j))
    with Mount(path) as m, h5py.File(path) as f:
        for k, d in f.items():
            equal_arrays(zarr.open(under(m, k, "zarr"), "r")[...], d[...], k)
            if k != "complex":
                equal_arrays(zarr3(under(m, k, "zarr3")), d[...], k + " v3")
    p = tensorfs("info", "--map", path + ":complex/zarr/1", "0", "10")
    check(p.returncode == 1 and "no such file" in p.stderr, p.stderr)


# --- names -------------------------------------------------------------------------


@case
def names_and_listing():
    path = path_of("names.h5")
    with h5py.File(path, "w") as f:
        f.create_dataset("a", data=numbers("u1", (23, 12)), chunks=(2, 1))
    with Mount(path) as m:
        at = under(m, "a", "zarr")
        names = [e.name for e in os.scandir(at)]
        equal(names, sorted(names), "order of names")
        equal(set(names), {".zarray", ".zattrs"} | {
            "%d.%d" % (i, j) for i in range(12) for j in range(12)}, "names")
        check("zarr" not in os.listdir(under(m, "a")), "zarr is not listed")
        for bad in ("12.0", "0.12", "0", "0.0.0", "00.0", "0.00", "0.", ".0",
                    "0.0 ", "-1.0", "+0.0", "0,0", "", ".zgroup", "0.1e0",
                    "99999999999999999999.0"):
            if bad:
                absent(os.path.join(at, bad))
        at = under(m, "a", "zarr3")
        equal(sorted(os.listdir(at)), ["c", "zarr.json"], "zarr3")
        equal([e.name for e in os.scandir(at + "/c")],
              sorted(map(str, range(12))), "c")
        check(os.path.isdir(at + "/c/11"), "c/11")
        for bad in ("c/12", "c/0/12", "c/00", "c/0/0/0", "d", "zarr.json/0"):
            fails_with((errno.ENOENT, errno.ENOTDIR),
                       lambda: os.stat(os.path.join(at, bad)), bad)
    with Mount(path, opts=["-o", "views=zarr+zarr3"]) as m:
        equal(sorted(os.listdir(under(m, "a"))), ["info.json", "zarr", "zarr3"],
              "listed")
        n = sum(len(files) for _, _, files in os.walk(under(m, "a")))
        equal(n, 1 + 2 + 144 + 1 + 144, "a walk")


@case
def copied():
    """A copy of the directory is a Zarr array, missing chunks and all."""
    path = matrix()
    with Mount(path) as m, h5py.File(path) as f:
        for name in ("gzip_edge_be_holes", "lzf_cube_le_holes"):
            for v in ("zarr", "zarr3"):
                to = path_of("copy_%s_%s" % (name, v))
                shutil.copytree(under(m, "g", name, v), to)
                got = zarr.open(to, "r")[...] if v == "zarr" else zarr3(to)
                equal_arrays(got, f["g"][name][...], to)


# --- v3: Debian's zarr does not know it; a decoder after the specification ----------

TYPES3 = {"bool": "b1", "int8": "i1", "uint8": "u1"}
for bits in (16, 32, 64):
    TYPES3["int%d" % bits] = "i%d" % (bits // 8)
    TYPES3["uint%d" % bits] = "u%d" % (bits // 8)
    TYPES3["float%d" % bits] = "f%d" % (bits // 8)
TYPES3["complex64"], TYPES3["complex128"] = "c8", "c16"
KEYS3 = {"zarr_format", "node_type", "shape", "data_type", "chunk_grid",
         "chunk_key_encoding", "fill_value", "codecs"}


def number3(v, dtype):
    if isinstance(v, list):
        return complex(number3(v[0], None), number3(v[1], None))
    if isinstance(v, str) and v.startswith("0x"):
        raw = int(v, 16).to_bytes(dtype.itemsize, "little")
        return np.frombuffer(raw, dtype.newbyteorder("<"))[0]
    return {"NaN": np.nan, "Infinity": np.inf,
            "-Infinity": -np.inf}.get(v, v) if isinstance(v, str) else v


def decoder3(codecs, at):
    """Of codecs from bytes to bytes: Zarr v3's blosc, and zstd of zarr-extensions."""
    check(len(codecs) < 2, at)
    for c in codecs:
        config = c["configuration"]
        if c["name"] == "zstd":
            equal({k: type(v) for k, v in config.items()}, {"level": int, "checksum": bool}, at)
            return numcodecs.Zstd().decode
        equal([c["name"], *sorted(config)],
              ["blosc", "blocksize", "clevel", "cname", "shuffle", "typesize"], at)
        check(config["cname"] in BLOSCS and 0 <= config["clevel"] <= 9 and config["typesize"] and
              config["shuffle"] in ("noshuffle", "shuffle", "bitshuffle"), config)
        return numcodecs.Blosc().decode
    return lambda raw: raw


def zarr3(at):
    j = meta(at + "/zarr.json")
    check(KEYS3 <= set(j), "keys of %s: %s" % (at, sorted(j)))
    check(set(j) <= KEYS3 | {"attributes", "dimension_names"}, "other keys")
    equal((j["zarr_format"], j["node_type"]), (3, "array"), at)
    equal(len(j.get("dimension_names", j["shape"])), len(j["shape"]), at)
    equal(j["chunk_grid"]["name"], "regular", at)
    equal(j["chunk_key_encoding"], {"name": "default", "configuration": {
        "separator": "/"}}, at)
    equal(j["codecs"][0]["name"], "bytes", at)
    decoder = decoder3(j["codecs"][1:], at)
    dtype = np.dtype(TYPES3[j["data_type"]])
    if dtype.itemsize > 1:
        dtype = dtype.newbyteorder({"little": "<", "big": ">"}[
            j["codecs"][0]["configuration"]["endian"]])
    shape, chunk = j["shape"], j["chunk_grid"]["configuration"]["chunk_shape"]
    equal(len(chunk), len(shape), at)
    full = [-(-n // c) * c for n, c in zip(shape, chunk)]
    out = np.full(full, number3(j["fill_value"], dtype), dtype)
    seen = 0
    for at_i in itertools.product(*(range(n // c) for n, c in
                                    zip(full, chunk))):
        key = "/".join(["c"] + [str(i) for i in at_i])
        if not os.path.exists(os.path.join(at, key)):
            continue
        seen += 1
        raw = decoder(read(os.path.join(at, key)))
        equal(len(raw), int(np.prod(chunk, dtype=int)) * dtype.itemsize, key)
        out[tuple(slice(i * c, i * c + c) for i, c in zip(at_i, chunk))] = \
            np.frombuffer(raw, dtype).reshape(chunk)
    listed = sum(len(f) for d, _, f in os.walk(at)
                 if not os.path.samefile(d, at))
    equal(listed, seen if shape else 0, "files listed in " + at)
    return out[tuple(slice(0, n) for n in shape)]


@case
def version_3():
    for path in (matrix(), layouts()):
        with Mount(path) as m, h5py.File(path) as f:
            top = f["g"] if "g" in f else f
            for name, d in top.items():
                if name in ("large", "wide"):
                    continue
                equal_arrays(zarr3(under(m, d.name[1:], "zarr3")), d[()], name)


# --- attributes and dimensions -----------------------------------------------------


@case
def attributes_and_dimensions():
    path = path_of("attrs.h5")
    with h5py.File(path, "w") as f:
        d = f.create_dataset("t", data=numbers("f4", (4, 5)), chunks=(2, 5))
        d.attrs["units"] = "K"
        d.attrs["n"] = 3
        d.attrs["list"] = [1.5, 2.5]
        f["y"], f["x"] = np.arange(4.0), np.arange(5.0)
        f["y"].make_scale("y")
        f["x"].make_scale("x")
        d.dims[0].attach_scale(f["y"])
        d.dims[1].attach_scale(f["x"])
        f["plain"] = numbers("i4", (2, 2, 3))
    with Mount(path) as m:
        a = meta(under(m, "t", "zarr", ".zattrs"))
        equal(a, {"units": "K", "n": 3, "list": [1.5, 2.5],
                  "_ARRAY_DIMENSIONS": ["y", "x"]}, "t")
        equal(meta(under(m, "x", "zarr", ".zattrs"))["_ARRAY_DIMENSIONS"],
              ["x"], "a scale")
        equal(len(set(meta(under(m, "plain", "zarr", ".zattrs"))
                      ["_ARRAY_DIMENSIONS"])), 3, "names are unlike")
        j = meta(under(m, "t", "zarr3", "zarr.json"))
        equal(j["dimension_names"], ["y", "x"], "v3")
        equal(j["attributes"]["units"], "K", "v3")


# --- a whole file ------------------------------------------------------------------


@functools.lru_cache(None)
def whole():
    path = path_of("whole.h5")
    with h5py.File(path, "w") as f:
        f.attrs["title"] = "all of it"
        g = f.create_group("deep/er")
        g.attrs["k"] = 1
        g.create_dataset("t", data=numbers("f4", (4, 5)), chunks=(2, 5),
                         compression="gzip", shuffle=True, fillvalue=np.nan)
        g["y"], g["x"] = np.arange(4.0), np.arange(5.0) + 0.5
        g["y"].make_scale("y")
        g["x"].make_scale("x")
        g["t"].dims[0].attach_scale(g["y"])
        g["t"].dims[1].attach_scale(g["x"])
        g["t"].attrs["units"] = "K"
        f["flat"] = numbers("i4", (12, 3))
        f["other"] = numbers("i4", (9,))
        f["text"] = ["not", "shown"]
        f.create_group("nothing")
        f["again"] = h5py.SoftLink("/flat")
    return path


def walk_arrays(group, prefix=""):
    for name, x in group.items():
        if isinstance(x, h5py.Group):
            yield from walk_arrays(x, prefix + name + "/")
        elif x.dtype.kind != "O":
            yield prefix + name, x


@case
def attributes_beyond_ascii():
    """zarr writes escapes, and some of its versions read nothing else."""
    path = path_of("units.h5")
    with h5py.File(path, "w") as f:
        d = f.create_dataset("d\u00e5ta", data=np.arange(4.0))
        d.attrs["units"] = "\u00b5m"
        d.attrs["\u00c5"] = "\u00b0\U0001d11e"
    with Mount(path) as m:
        for where in ("d\u00e5ta/zarr/.zattrs", ".zarr/.zmetadata",
                      "d\u00e5ta/zarr3/zarr.json"):
            text = read(m / where)
            check(text.isascii(), where + " is not ASCII")
            check("\u00b5m" in json.dumps(json.loads(text), ensure_ascii=False),
                  where)
        z = zarr.open_consolidated(m / ".zarr", mode="r")
        equal(z["d\u00e5ta"].attrs["units"], "\u00b5m", "units")


@case
def hierarchy():
    path = whole()
    with Mount(path) as m, h5py.File(path) as f:
        at = under(m, ".zarr")
        check(".zarr" not in os.listdir(m.path), ".zarr is listed")
        equal(os.stat(at).st_ino, os.stat(at).st_ino, "inode")
        equal(os.path.realpath(at + "/deep/../.."), os.path.realpath(m.path),
              "..")
        z = zarr.open_group(at, "r")
        c = zarr.open_consolidated(zarr.DirectoryStore(at), mode="r")
        for root in (z, c):
            equal(dict(root.attrs), {"title": "all of it"}, "attributes")
            equal(dict(root["deep/er"].attrs), {"k": 1}, "attributes")
            equal(sorted(root.groups())[0][0], "deep", "groups")
            equal(sorted(k for k, _ in root.groups()), ["deep", "nothing"],
                  "groups")
            for name, d in walk_arrays(f):
                equal_arrays(root[name][...], d[...], name)
        equal(sorted(os.listdir(at + "/deep/er")),
              [".zattrs", ".zgroup", ".zmetadata", "t", "x", "y"], "deep/er")
        for d in ("", "/deep", "/deep/er", "3", "3/deep/er"):
            names = os.listdir(at + d)
            equal(names, sorted(names), "order of names in .zarr" + d)
        equal(sorted(os.listdir(at + "/deep/er/t")),
              [".zarray", ".zattrs", "0.0", "1.0"], "deep/er/t")
        for bad in ("deep/er/t/2.0", "deep/er/t/t", "text", "deep/.zarray",
                    "flat/.zgroup", "deep/er/q"):
            absent(os.path.join(at, bad))
        m2 = meta(at + "/.zmetadata")
        keys = {os.path.relpath(os.path.join(d, k), at)
                for d, _, ks in os.walk(at) for k in ks
                if k in (".zgroup", ".zarray", ".zattrs")}
        equal(set(m2["metadata"]), keys, "keys of .zmetadata")
        for k in keys:
            equal(m2["metadata"][k], meta(os.path.join(at, k)), k)
        to = path_of("whole_copy")
        shutil.copytree(at, to)
        equal_arrays(zarr.open(to, "r")["deep/er/t"][...], f["deep/er/t"][...],
                     "a copy")
        check(read(at + "/deep/er/t/1.0") ==
              f["deep/er/t"].id.read_direct_chunk((2, 0))[1], "stored bytes")


@case
def xarray_opens_it():
    path = whole()
    with Mount(path) as m, h5py.File(path) as f:
        at = under(m, ".zarr")
        x = xarray.open_zarr(at + "/deep/er")
        equal(x["t"].dims, ("y", "x"), "dims")
        equal(x["t"].attrs["units"], "K", "units")
        check("x" in x.coords, "x is no coordinate")
        equal_arrays(x["t"].values, f["deep/er/t"][...], "t")
        equal_arrays(x["t"].sel(x=2.5).values, f["deep/er/t"][:, 2], "sel")
        # axes without names, of different lengths, in one group
        x = xarray.open_zarr(at, mask_and_scale=False)
        equal_arrays(x["flat"].values, f["flat"][...], "flat")
        equal_arrays(x["other"].values, f["other"][...], "other")
        y = da.from_zarr(at, component="flat")
        equal_arrays(y.sum(axis=0).compute(), f["flat"][...].sum(axis=0),
                     "dask")


@case
def hierarchy_of_version_3():
    path = whole()
    with Mount(path) as m, h5py.File(path) as f:
        at = under(m, ".zarr3")
        for d, dirs, names in os.walk(at):
            rel = os.path.relpath(d, at)
            if "/c" in "/" + rel:
                continue
            check("zarr.json" in names, "no zarr.json in " + rel)
            j = meta(d + "/zarr.json")
            if j["node_type"] == "group":
                equal(sorted(j), ["attributes", "node_type", "zarr_format"],
                      rel)
        for name, d in walk_arrays(f):
            equal_arrays(zarr3(os.path.join(at, name)), d[...], name)
        equal(meta(at + "/zarr.json")["attributes"], {"title": "all of it"},
              "attributes")


@case
def names_of_the_root():
    path = whole()
    with Mount(path, opts=["-o", "zarr_root=all.zarr"]) as m:
        check({"all.zarr", "all.zarr3"} < set(os.listdir(m.path)), "listed")
        absent(under(m, ".zarr"))
        equal(zarr.open(under(m, "all.zarr"), "r")["other"].shape, (9,), "other")
        equal(os.stat(m.path).st_nlink, 1, "links")
    with Mount(path, opts=["--zarr-root", ".z"]) as m:
        check(".z" not in os.listdir(m.path), "listed")
        equal(zarr.open(under(m, ".z"), "r")["other"].shape, (9,), "other")
        absent(under(m, ".zarr"))
    for bad in ("a/b", "", ".", "..", "n" * 300):
        p = tensorfs("ls", "--zarr-root=" + bad, path)
        equal(p.returncode, 2, "zarr-root=%s: %s" % (bad[:9], p.stderr))
    with Mount(path, opts=["-o", "dataset=/deep/er/t"]) as m:
        equal(zarr.open(under(m, ".zarr"), "r").shape, (4, 5), "a dataset")
        equal(sorted(os.listdir(under(m, ".zarr"))),
              [".zarray", ".zattrs", "0.0", "1.0"], "a dataset")
    with Mount(path, opts=["-o", "dataset=/text"]) as m:
        absent(under(m, ".zarr"))
    with Mount(None, sources=["one=" + path, "two=" + matrix()]) as m:
        z = zarr.open(under(m, ".zarr"), "r")
        equal(sorted(z.group_keys()), ["one", "two"], "two files")
        equal(z["one/other"].shape, (9,), "two files")
    tar = path_of("some.tar")
    lib.exits(lib.run("tar", "-cf", tar, "-C", work, "whole.h5"), 0, "tar")
    with Mount(tar) as m:
        absent(under(m, ".zarr"))
    for below in ("", "/.zgroup"):
        p = tensorfs("ls", tar + ":.zarr" + below)
        check(p.returncode == 1 and "there is no '.zarr' in /" in p.stderr, p.stderr)


# --- sources that change, and damage -----------------------------------------------


@case
def source_shrinks():
    """What is gone is an error, and what is stored is served as long as it is there."""
    path = path_of("shrinks.h5")
    x = numbers("i4", (64, 1024))
    with h5py.File(path, "w") as f:
        d = f.create_dataset("a", data=x, chunks=(8, 1024),
                             compression="gzip")
        last = max((d.id.get_chunk_info(k) for k in range(8)),
                   key=lambda c: c.byte_offset)
        raw = d.id.read_direct_chunk(last.chunk_offset)[1]
    key = "%d.0" % (last.chunk_offset[0] // 8)
    with Mount(path) as m:
        at = under(m, ".zarr", "a")
        equal(os.stat(at + "/" + key).st_size, len(raw), "size")
        os.truncate(path, last.byte_offset + 5)
        fails_with((errno.ESTALE, errno.EIO), lambda: read(at + "/" + key),
                   "a chunk that is gone")


@case
def index_is_damaged():
    """A chunk's size in the index, changed: an error, never other numbers."""
    path = path_of("index.h5")
    x = numbers("i4", (64, 64))
    with h5py.File(path, "w") as f:
        d = f.create_dataset("a", data=x, chunks=(8, 64), compression="gzip",
                             shuffle=True)
        size = d.id.get_chunk_info(3).size
    with open(path, "rb") as f:
        data = f.read()
    # A key of the B-tree: bytes, filter mask, offsets (24, 0, 0).
    was = b"".join(v.to_bytes(n, "little") for v, n in (
        (size, 4), (0, 4), (24, 8), (0, 8), (0, 8)))
    equal(data.count(was), 1, "the key of chunk 3")
    for bad, n in ((0xfffffff0, 4), (0, 4), (size - 3, 4)):
        with open(path, "wb") as f:
            f.write(data.replace(was, bad.to_bytes(n, "little") + was[4:]))
        with Mount(path) as m:
            at = under(m, "a", "zarr")
            if bad != size - 3: # the index cannot be read at all
                for k in (".zarray", "1.0", "3.0"):
                    fails_with((errno.EIO, errno.EBADMSG),
                               lambda: read(at + "/" + k), k)
                continue
            z = zarr.open(at, "r")
            fails_with_any(lambda: z[24:32], "a chunk that is cut short")
            equal_arrays(z[:24], x[:24], "the chunks before")
            equal_arrays(z[32:], x[32:], "the chunks behind")


work = lib.setup()
lib.main()
