#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Zarr stores of version 2: zarr writes them, numpy compares what a mount shows."""
import base64
import errno
import json
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import dask.array as da
import lib
import numcodecs
import numpy as np
import xarray
import zarr
from checks import check, equal, fails_with, read
from lib import Mount, case, exits, tensorfs

work = None
rng = np.random.default_rng(11)


def numbers(dtype, shape):
    dtype = np.dtype(dtype)
    if dtype.names:
        out = np.zeros(shape, dtype)
        for n in dtype.names:
            d, sub = dtype[n].base, dtype[n].shape
            out[n] = numbers(d, tuple(shape) + sub)
        return out
    if dtype.kind in "SV":
        return rng.integers(65, 91, tuple(shape) + (dtype.itemsize,),
                            dtype="u1").view(dtype).reshape(shape)
    if dtype.kind in "Mm":
        return rng.integers(0, 10 ** 9, shape).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind == "c":
        return (rng.random(shape) + 1j * rng.random(shape)).astype(dtype)
    if dtype.kind == "f":
        return rng.normal(size=shape).astype(dtype)
    i = np.iinfo(dtype)
    return rng.integers(i.min, i.max, shape, dtype=dtype.newbyteorder("="),
                        endpoint=True).astype(dtype)


def path_of(name):
    return os.path.join(work, name)


def native(a):
    """Little-endian, as it is served."""
    if a.dtype.kind in "Mm":
        return a.astype(a.dtype.newbyteorder("<")).view("<i8")
    return a.astype(a.dtype.newbyteorder("<"))


def same(got, want, what):
    want = native(np.asarray(want))
    equal((got.dtype, got.shape), (want.dtype, want.shape), what)
    check(got.tobytes() == want.tobytes(), what + ": other values")


def compare(store, root, only=None):
    """Each array of a store that zarr opened, in the mount."""
    n = 0

    def visit(name, a):
        nonlocal n
        if isinstance(a, zarr.Array):
            n += 1
            d = os.path.join(root, name)
            same(np.load(d + "/array.npy"), a[...], name)
            if a.ndim and a.shape[0]:
                k = a.shape[0] - 1
                s = os.listdir(d + "/samples")
                equal(len([x for x in s if x.endswith(".npy")]), a.shape[0],
                      name + ": samples")
                same(np.load("%s/samples/%s" % (d, sorted(s)[k])),
                     np.asarray(a[...])[k:].reshape(a.shape[1:]),
                     name + ": last sample")
    store.visititems(visit)
    check(n, "no arrays")
    return n


# --- types, orders, chunks ------------------------------------------------------

@case
def types():
    p = path_of("types.zarr")
    g = zarr.open_group(p, mode="w")
    kinds = ["|b1", "|i1", "|u1", "|S5", "|V3", "<M8[ns]", ">m8[s]"] + [
        o + k for o in "<>" for k in ("i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4",
                                      "f8", "c8", "c16")] + [
        [("a", "<i4"), ("b", ">f8", (2, 3)), ("c", [("x", ">u2"), ("s", "S3")])]]
    for i, k in enumerate(kinds):
        a = numbers(k, (13, 7))
        for order in "CF":
            g.create_dataset("t%d%s" % (i, order), data=a, chunks=(5, 3), order=order)
    with Mount(p) as m:
        equal(compare(g, m.path), 2 * len(kinds), "arrays")
        info = json.loads(read(m / "t5C/info.json"))
        check("datetime64[ns]" in info["stored_type"], info["stored_type"])
    exits(tensorfs("verify", p), 0, "verify")


@case
def shapes():
    p = path_of("shapes.zarr")
    g = zarr.open_group(p, mode="w")
    for i, (shape, chunks) in enumerate([
            ((), ()), ((1,), (1,)), ((100,), (7,)), ((100,), (1000,)), ((0,), (4,)),
            ((5, 0, 2), (2, 1, 2)), ((4, 5), (4, 5)), ((3, 4, 5, 6), (2, 4, 2, 5)),
            ((2, 2, 2, 2, 2, 2), (1, 2, 1, 2, 1, 2)), ((70, 90), (64, 33))]):
        for order in "CF":
            for comp in (None, numcodecs.Zlib()):
                name = "s%d%s%d" % (i, order, comp is None)
                z = g.create_dataset(name, shape=shape, chunks=chunks, dtype=">i4",
                                     order=order, compressor=comp, fill_value=0)
                if all(shape):
                    z[...] = numbers(">i4", shape)
    with Mount(p) as m:
        compare(g, m.path)
    exits(tensorfs("verify", p), 0, "verify")


@case
def codecs():
    p = path_of("codecs.zarr")
    g = zarr.open_group(p, mode="w")
    n = numcodecs
    comps = [None, n.Zlib(5), n.GZip(3), n.Zstd(3), n.LZ4(), n.BZ2(), n.LZMA(),
             n.LZMA(format=2)] + [
        n.Blosc(c, 5, s) for c in ("lz4", "zstd", "zlib", "blosclz", "lz4hc")
        for s in (n.Blosc.NOSHUFFLE, n.Blosc.SHUFFLE, n.Blosc.BITSHUFFLE)]
    filters = [None, [n.Shuffle(4)], [n.Delta("<i4")], [n.CRC32()], [n.Adler32()],
               [n.Delta("<i4", astype="<i2"), n.Shuffle(2), n.CRC32()],
               [n.Zlib(), n.Adler32()]]
    a = np.cumsum(rng.integers(-100, 100, (33, 40)), axis=1).astype("<i4")
    for i, c in enumerate(comps):
        # The standard tier has each compressor alone and with one of the filters.
        for j, f in enumerate(filters) if lib.full() else \
                ((0, None), (1 + i % 6, filters[1 + i % 6])):
            g.create_dataset("c%d_%d" % (i, j), data=a, chunks=(10, 40), compressor=c,
                             filters=f)
    g.create_dataset("float", data=numbers("f4", (50, 9)), chunks=(20, 9),
                     filters=[n.Delta("<f4")], compressor=n.Zstd())
    g.create_dataset("wrap", data=numbers("u1", (50,)), chunks=(20,),
                     filters=[n.Delta("u1")])
    g.create_dataset("big", data=numbers(">i8", (50,)), chunks=(20,),
                     filters=[n.Delta(">i8")])
    g.create_dataset("round", data=numbers("f4", (50,)), filters=[n.BitRound(8)])
    with Mount(p) as m:
        compare(g, m.path)
    exits(tensorfs("verify", p), 0, "verify")


@case
def filters_and_orders():
    p = path_of("orders.zarr")
    g = zarr.open_group(p, mode="w")
    n, made, tried = numcodecs, 0, 0
    for t in "<i2", ">u4", "|u1", "<i8", ">f4":
        a = np.cumsum(rng.integers(0, 9, (9, 7, 5)), axis=0).astype(t)
        size, wide = a.dtype.itemsize, t if "f" in t else "<i8"
        for f in ([n.Delta(t)], [n.Delta(t, astype=wide)], [n.Shuffle(size)], [n.Shuffle(4)],
                  [n.Delta(t), n.Shuffle(size)], [n.Shuffle(size), n.Delta("|u1")],
                  [n.Delta(t), n.Delta(t)], [n.Delta(t), n.Adler32()], [n.Zlib(), n.CRC32()]):
            for order in "CF":
                for comp in None, n.Blosc("lz4", 5, n.Blosc.BITSHUFFLE):
                    tried += 1
                    # The standard tier has one order and compressor for each filter.
                    if not lib.full() and tried % 4 != tried // 4 % 4:
                        continue
                    g.create_dataset("a%03d" % made, data=a, chunks=(4, 7, 3), order=order,
                                     filters=f, compressor=comp)
                    made += 1
    with Mount(p) as m:
        equal(compare(g, m.path), made, "arrays")


@case
def separators():
    a = numbers("f8", (20, 30, 4))
    for i, store in enumerate([zarr.DirectoryStore, zarr.NestedDirectoryStore,
                               lambda q: zarr.storage.FSStore(q, dimension_separator="/")]):
        p = path_of("sep%d.zarr" % i)
        g = zarr.open_group(store(p), mode="w")
        g.create_dataset("x/y", data=a, chunks=(7, 8, 4))
        g.create_dataset("scalar", data=np.float32(3))
        with Mount(p) as m:
            compare(g, m.path)
        # Before zarr 2.8 the metadata did not say.
        doc = p + "/x/y/.zarray"
        with open(doc) as f:
            o = json.load(f)
        o.pop("dimension_separator", None)
        with open(doc, "w") as f:
            json.dump(o, f)
        with Mount(p) as m:
            same(np.load(m / "x/y/array.npy"), a, "without dimension_separator")


# --- what was never written -----------------------------------------------------

@case
def fill_values():
    p = path_of("fill.zarr")
    g = zarr.open_group(p, mode="w")
    nan = float("nan")
    fills = [("f2", 1.5), ("f4", nan), (">f8", -float("inf")), ("<i8", -2 ** 63),
             (">u8", 2 ** 64 - 1), ("i1", -3), ("b1", True), ("<c8", 1 + 2j),
             (">c16", 2.5 - 1e300j), ("S4", b"ab"), ("V2", b"\1\2"),
             ("f4", 7), ("u2", 0)]
    for i, (t, f) in enumerate(fills):
        t = np.dtype(t)
        z = g.create_dataset("f%d" % i, shape=(17, 6), chunks=(4, 4), dtype=t,
                             fill_value=f)
        z[4:8, :] = numbers(t, (4, 6))
        g.create_dataset("none%d" % i, shape=(6,), chunks=(4,), dtype=t, fill_value=f)
    z = g.create_dataset("null", shape=(6,), chunks=(3,), dtype="i4", fill_value=None)
    with open(p + "/null/.zarray") as f:
        check(json.load(f)["fill_value"] is None, "a fill value")
    z[:] = 4
    # zarr 2.13 cannot make these, and reads them.
    t = np.dtype([("a", "<i4"), ("b", ">f4")])
    g.create_dataset("struct", shape=(6,), chunks=(4,), dtype=t)
    with open(p + "/struct/.zarray") as f:
        o = json.load(f)
    o["fill_value"] = base64.b64encode(np.array((3, 2.5), t).tobytes()).decode()
    with open(p + "/struct/.zarray", "w") as f:
        json.dump(o, f)
    g = zarr.open_group(p, mode="r")
    equal(g["struct"][5].tolist(), (3, 2.5), "struct")
    with Mount(p) as m:
        compare(g, m.path)
        check("no fill value" in json.loads(read(m / "null/info.json"))["note"], "note")


@case
def fill_values_exact():
    """Against zarr and, where it rounds, against numpy's own reading of the text."""
    p = path_of("exact.zarr")
    g = zarr.open_group(p, mode="w")
    texts = [("<f4", "-0.0"), (">f8", "-0.0"), ("<f2", "0.1"), (">f2", "-65504.0"),
             ("<f4", "16777217"), ("<f4", "0.1"), (">f8", "9007199254740993"),
             ("<f8", "5e-324"), (">f4", "1e-45"), ("<f8", "123456789012345678901234567890"),
             ("<f8", "-9223372036854775809"), ("<i8", "9007199254740993"),
             (">i8", "-9007199254740993"), ("<u8", "9223372036854775809"),
             (">u8", "18446744073709551615"), ("<i8", "-9223372036854775808"),
             ("|b1", "true"), ("|b1", "false"), ("<f4", '"-Infinity"'), ("<f2", '"NaN"'),
             (">c16", '["NaN", 2.5]'), ("<c8", '["-Infinity", 16777217]'),
             ("|S4", '"AP8A/w=="'), ("|V3", '"/wD+"'), ("<M8[s]", "-9223372036854775808"),
             (">M8[D]", "9007199254740993"), ("<f4", "NaN"), ("<f8", "-Infinity")]
    for i, (t, text) in enumerate(texts):
        zero = b"" if t[1] in "SV" else 0
        z = g.create_dataset("e%02d" % i, shape=(7,), chunks=(3,), dtype=t, fill_value=zero)
        z[:3] = numbers(t, (3,))
        doc = "%s/e%02d/.zarray" % (p, i)
        with open(doc) as f:
            o = json.load(f)
        o["fill_value"] = "HERE"
        with open(doc, "w") as f:
            f.write(json.dumps(o).replace('"HERE"', text))
    with Mount(p) as m:
        equal(compare(zarr.open_group(p, mode="r"), m.path), len(texts), "arrays")


@case
def wrong_fill_values():
    for t, text in [("<i4", '"NaN"'), ("<u8", "18446744073709551616"), ("<u8", "-1"),
                    ("|i1", "128"), ("<f8", '"1-2"'), ("<f8", '"-"'), ("|S2", '"abc"'),
                    ("|S2", '"AAAA"'), ("<i8", "1e19"), ("|b1", "2"), ("<c8", "[1]")]:
        p = path_of("wrong.zarr")
        zarr.open(p, mode="w", shape=(4,), chunks=(3,), dtype=t)
        with open(p + "/.zarray") as f:
            o = json.load(f)
        o["fill_value"] = "HERE"
        with open(p + "/.zarray", "w") as f:
            f.write(json.dumps(o).replace('"HERE"', text))
        out = exits(tensorfs("cat", p + ":data/info.json"), (0, 1), t).stdout
        check("fill_value" in json.loads(out)["not_shown"], t + " " + text + out)
        shutil.rmtree(p)


@case
def missing_chunk_or_missing_array():
    p = path_of("gone.zarr")
    a = numbers("i4", (12, 5))
    z = zarr.open(p, mode="w", shape=a.shape, chunks=(3, 5), dtype="i4", fill_value=9)
    z[...] = a
    os.unlink(p + "/1.0")
    with Mount(p) as m:
        want = a.copy()
        want[3:6] = 9
        same(np.load(m / "data/samples/000003.npy"), want[3], "fill value")
        same(np.load(m / "data/array.npy"), want, "all")
    with Mount(p) as m:
        same(np.load(m / "data/samples/000000.npy"), want[0], "first")
        os.rename(p, p + ".away")
        fails_with((errno.EIO,), lambda: read(m / "data/samples/000004.npy"), "gone")
        os.rename(p + ".away", p)
    os.unlink(p + "/3.0")
    with Mount(p) as m:
        os.makedirs(p + "/1.0")
        fails_with((errno.EIO,), lambda: read(m / "data/samples/000003.npy"), "directory")
        os.rmdir(p + "/1.0")
        z.resize(24, 5)
        fails_with((errno.EIO, errno.ESTALE), lambda: read(m / "data/samples/000010.npy"),
                   "an array that became larger")


@case
def written_meanwhile():
    p = path_of("later.zarr")
    z = zarr.open(p, mode="w", shape=(12,), chunks=(3,), dtype="i4", fill_value=1)
    z[:6] = 5
    with Mount(p) as m:
        z[6:9] = 7
        equal(np.load(m / "data/samples/000000.npy")[()], 5, "old chunk")
        fails_with((errno.ESTALE, errno.EIO), lambda: read(m / "data/samples/000006.npy"),
                   "a chunk of later")
    with Mount(p) as m:
        equal(np.load(m / "data/array.npy").tolist(), z[:].tolist(), "mounted again")


# --- metadata -------------------------------------------------------------------

@case
def attributes_and_axes():
    p = path_of("xr.zarr")
    ds = xarray.Dataset({"t": (("time", "y", "x"), numbers("f4", (5, 6, 7)),
                               {"units": "K", "gain": 2.5})},
                        coords={"time": np.arange(5), "x": np.linspace(0, 1, 7)})
    ds["t"].encoding["chunks"] = (2, 6, 7)
    ds.to_zarr(p, consolidated=True)
    zarr.open(p)["t"].attrs.update(nan=float("nan"), ns=1600000000000000001)
    with Mount(p) as m:
        equal(sorted(os.listdir(m.path)), ["t", "time", "x"], "arrays")
        info = json.loads(read(m / "t/info.json"))
        equal(info["attributes"], {"units": "K", "gain": 2.5, "nan": "NaN",
                                     "ns": 1600000000000000001}, "attributes")
        equal([a["name"] for a in info["axes"]], ["time", "y", "x"], "axes")
        equal(info["zarr"]["version"], 2, "version")
        equal(info["zarr"]["compressor"]["id"], "blosc", "compressor")
        same(np.load(m / "t/array.npy"), ds["t"].values, "t")
        same(np.load(m / "x/array.npy"), ds["x"].values, "x")


@case
def only_consolidated():
    p = path_of("cons.zarr")
    g = zarr.open_group(p, mode="w")
    a, b = numbers("u2", (30, 8)), numbers("f4", (9,))
    g.create_dataset("one/a", data=a, chunks=(8, 8))
    g["one/a"].attrs["k"] = [1, 2]
    g.create_dataset("b", data=b, chunks=(4,), fill_value=0)
    g.attrs["root"] = float("nan")
    g["one"].attrs["unit"] = "m"
    with Mount(p) as m:
        equal(json.loads(os.getxattr(m.path, "user.tensorfs.attrs")), {"root": "NaN"}, "root")
        equal(json.loads(os.getxattr(m / "one", "user.tensorfs.attrs")), {"unit": "m"}, "one")
    zarr.consolidate_metadata(p)
    for d, _, names in os.walk(p):
        for n in names:
            if n in (".zarray", ".zgroup", ".zattrs"):
                os.unlink(os.path.join(d, n))
    os.unlink(p + "/b/1")
    b[4:8] = 0
    with Mount(p) as m:
        same(np.load(m / "one/a/array.npy"), a, "a")
        same(np.load(m / "b/array.npy"), b, "b")
        equal(json.loads(read(m / "one/a/info.json"))["attributes"], {"k": [1, 2]}, "attrs")
        equal(json.loads(os.getxattr(m / "one", "user.tensorfs.attrs")), {"unit": "m"}, "one")


@case
def consolidated_and_gone():
    """Arrays that only consolidated metadata have: no chunk was written, as zarr says."""
    p = path_of("left.zarr")
    g = zarr.open_group(p, mode="w")
    for i, name in enumerate(("g/a", "h/b/c", "one", "y", "k/z")):
        kw = {"compressor": None, "chunks": (20,)} if name == "one" else {"chunks": (4,)}
        g.create_dataset(name, data=np.arange(20), fill_value=i + 5, **kw)
    zarr.consolidate_metadata(p)
    for name in "g/a", "h", "one", "y", "k":
        shutil.rmtree(os.path.join(p, name))
    for name in "y", "k":
        with open(os.path.join(p, name), "w") as f:
            f.write("x")
    want = zarr.open_consolidated(p)
    with Mount(p) as m:
        for name in "g/a", "h/b/c", "one":
            same(np.load(m / (name + "/array.npy")), want[name][...], name)
        for name in "y", "k":
            check("not a directory" in json.loads(read(m / (name + "/info.json")))
                  ["not_shown"].lower(), name)
    exits(tensorfs("verify", p), range(1, 9), "verify")


@case
def part_of_a_store():
    p = path_of("part.zarr")
    g = zarr.open_group(p, mode="w")
    a = numbers("u2", (30, 8))
    g.create_dataset("one/two/a", data=a, chunks=(8, 8))
    with Mount(p, opts=["--dataset=/one/two"]) as m:
        same(np.load(m / "a/array.npy"), a, "group")
    with Mount(p, opts=["--dataset=one/two/a"]) as m:
        same(np.load(m / "array.npy"), a, "array")
    p2 = tensorfs("ls", "--dataset=one/x", p)
    check(p2.returncode != 0 and "/one/x" in p2.stderr, p2.stderr)


@case
def byte_order_of_the_source():
    p = path_of("order.zarr")
    g = zarr.open_group(p, mode="w")
    a = numbers(">i4", (9, 4))
    for i, kw in enumerate([{}, {"compressor": None}, {"order": "F"},
                            {"compressor": None, "chunks": (9, 4)}]):
        g.create_dataset("a%d" % i, data=a, **dict({"chunks": (4, 4)}, **kw))
    with Mount(p, opts=["--dtype-order=source"]) as m:
        for i in range(4):
            got = np.load(m / ("a%d/array.npy" % i))
            equal(got.dtype, a.dtype, "type")
            check(got.tobytes() == a.tobytes(), "a%d" % i)


@case
def directories_without_metadata():
    """OME-Zarr plates: only the root and the fields of view have metadata; zarr finds
    the arrays by their paths."""
    for version in ("directory", "zip", "consolidated"):
        store = path_of("plate-%s.zarr" % version)
        root = zarr.open_group(store, "w")
        want = {}
        for n in ("A/1/0/0", "A/1/0/1", "B/12/0/0"):
            want[n] = numbers("<u2", (6, 8))
            root.create_dataset(n, data=want[n], chunks=(4, 4))
        if version == "consolidated":
            zarr.consolidate_metadata(store)
        for d, _, files in os.walk(store):
            if d != store and ".zgroup" in files:
                os.unlink(os.path.join(d, ".zgroup"))
        os.makedirs(store + "/empty/nothing/below")
        os.makedirs(store + "/loop")
        os.symlink("..", store + "/loop/up")
        z = zarr.open_group(store, "r")
        if version == "zip":
            shutil.rmtree(store + "/loop")
            store = shutil.make_archive(path_of("plate"), "zip", store)
        with Mount(store) as m:
            for n, a in want.items():
                equal(z[n][:].tolist(), a.tolist(), "zarr reads " + n)
                same(np.load(m / (n + "/array.npy")), a, version + " " + n)
            check(not os.path.exists(m / "empty"), "a directory without arrays")
            check("A" in os.listdir(m.path), "A is not listed")
            check(not os.path.exists(m / "loop"), "a symlink that leads back up")
        p = exits(tensorfs("verify", "--json", store), 0, "verify")
        equal(json.loads(p.stdout)["datasets"], 3, "datasets")


@case
def hyperspy_store():
    import hyperspy.api as hs
    a = numbers("f4", (4, 3, 8, 6))
    s = hs.signals.Signal2D(a)
    s.metadata.General.title = "scan"
    s.axes_manager[0].name = "x"
    p = path_of("scan.zspy")
    s.save(p)
    with Mount(p) as m:
        found = [d for d, _, f in os.walk(m.path) if "info.json" in f and
                 d.endswith("/data")]
        equal(len(found), 1, "signals")
        same(np.load(found[0] + "/array.npy"), a, "data")
        equal(sum(len(f) for _, _, f in os.walk(found[0] + "/samples")), 12,
              "navigation axes")
        info = json.loads(read(found[0] + "/info.json"))
        equal(info["metadata"]["General"]["title"], "scan", "title")
        equal([x["navigate"] for x in info["axes"]], [True, True, False, False], "axes")


@case
def stores_in_a_directory():
    d = path_of("many")
    a, b = numbers("i2", (9, 5)), numbers("f4", (9, 5))
    zarr.open_group(d + "/deep/one.zarr", mode="w").create_dataset("g/a", data=a,
                                                                   chunks=(4, 5))
    z = zarr.open(d + "/two", mode="w", shape=b.shape, chunks=(2, 5), dtype="f4")
    z[...] = b
    os.makedirs(d + "/empty")
    os.makedirs(d + "/plain/c")
    with open(d + "/plain/c/x", "w") as f:
        f.write("x")
    old = os.getcwd()
    os.chdir(os.path.dirname(d))
    try:
        with Mount("many") as m:
            equal(sorted(os.listdir(m.path)), ["deep", "empty", "plain", "two"], "root")
            same(np.load(m / "deep/one.zarr/g/a/array.npy"), a, "group")
            same(np.load(m / "two/data/array.npy"), b, "array")
            equal(read(m / "plain/c/x"), b"x", "file")
            equal(len([1 for _, _, f in os.walk(m.path) if "info.json" in f]), 2, "walk")
    finally:
        os.chdir(old)
    exits(tensorfs("verify", d), 0, "verify")
    check("zarr" in exits(tensorfs("info", d), 0, "info").stdout, "info")
    os.unlink(d + "/two/1.0")
    with open(d + "/two/0.0", "wb") as f:
        f.write(b"no chunk")
    exits(tensorfs("verify", d), range(1, 9), "verify of what is damaged")


# --- readers --------------------------------------------------------------------

@case
def several_threads():
    p = path_of("threads.zarr")
    a = numbers("f4", (64, 50, 40))
    zarr.save(p, a)
    zarr.open(p, mode="w", shape=a.shape, chunks=(4, 25, 40), dtype="f4")[...] = a
    with Mount(p, opts=["--cache-size=1M"]) as m:
        with ThreadPoolExecutor(8) as pool:
            got = list(pool.map(
                lambda i: np.load(m / ("data/samples/%06d.npy" % i)),
                list(range(64)) * 2))
        for i, x in enumerate(got):
            same(x, a[i % 64], "sample %d" % i)
        check(np.allclose(da.from_npy_stack(m / "data/stack").sum().compute(),
                          da.from_zarr(p).sum().compute()), "dask")


# --- what is wrong --------------------------------------------------------------

def broken(name, **change):
    p = path_of(name)
    shutil.rmtree(p, ignore_errors=True)
    g = zarr.open_group(p, mode="w")
    g.create_dataset("good", data=np.arange(6), chunks=(4,))
    g.create_dataset("bad", data=np.arange(60).reshape(6, 10), chunks=(4, 10))
    doc = p + "/bad/.zarray"
    with open(doc) as f:
        o = json.load(f)
    o.update(change)
    for k in [k for k, v in o.items() if v is Ellipsis]:
        del o[k]
    with open(doc, "w") as f:
        json.dump(o, f)
    return p


@case
def metadata_that_is_wrong():
    n = 0
    for change, word in [
            ({"shape": [6]}, "axes"), ({"shape": [-6, 10]}, "shape"),
            ({"shape": "6"}, "shape"), ({"chunks": [0, 10]}, "chunks"),
            ({"chunks": [2 ** 62, 2 ** 62]}, "large"), ({"chunks": [2 ** 40, 1]}, "large"),
            ({"shape": [2 ** 62, 2 ** 62], "chunks": [1, 1]}, "large"),
            ({"shape": [1] * 40, "chunks": [1] * 40}, "axes"),
            ({"dtype": "<q9"}, "type"), ({"dtype": "|O"}, "objects"),
            ({"dtype": "<U5"}, "text"), ({"dtype": [["a"]]}, "field"),
            ({"dtype": [["a", "<i4"], ["a", "<i4"]]}, "two fields"),
            ({"dtype": "|V2000000"}, "bytes"), ({"order": "K"}, "order"),
            ({"fill_value": "x"}, "fill_value"), ({"fill_value": 2 ** 64}, "fill_value"),
            ({"compressor": {"id": "zfpy"}}, "zfpy"), ({"compressor": {}}, "id"),
            ({"filters": [{"id": "fixedscaleoffset", "scale": 1}]}, "fixedscaleoffset"),
            ({"filters": [{"id": "shuffle", "elementsize": -1}]}, "elementsize"),
            ({"filters": [{"id": "zlib"}] * 12}, "codecs"),
            ({"dimension_separator": "-"}, "dimension_separator"),
            ({"zarr_format": 7}, "version"), ({"zarr_format": ...}, "zarr_format"),
            ({"shape": ...}, "shape"), ({"dtype": ...}, "dtype")]:
        p = broken("bad.zarr", **change)
        got = json.loads(exits(tensorfs("cat", p + ":bad/info.json"), 0,
                               str(change)).stdout)
        check(word in got["not_shown"], "%s: %s" % (change, got["not_shown"]))
        n += 1
    with Mount(p) as m:
        equal(np.load(m / "good/array.npy").tolist(), list(range(6)), "good")
        equal(os.listdir(m / "bad"), ["info.json"], "bad")
    for text in ("", "[]", "{", "[" * 100000, '{"shape": NaN'):
        with open(p + "/bad/.zarray", "w") as f:
            f.write(text)
        got = json.loads(exits(tensorfs("cat", p + ":bad/info.json"), 0, text[:9]).stdout)
        check("JSON" in got["not_shown"], got["not_shown"])
    with open(p + "/.zgroup", "w") as f:
        f.write("{")
    check("JSON" in exits(tensorfs("ls", p), range(1, 9), "damaged root").stderr, "root")


@case
def chunks_that_are_wrong():
    n = numcodecs
    p = path_of("wrong.zarr")
    for comp in (None, n.Zlib(), n.GZip(), n.Zstd(), n.LZ4(), n.BZ2(), n.LZMA(), n.Blosc()):
        for filters in (None, [n.CRC32()])[comp is None:]:
            z = zarr.open(p, mode="w", shape=(40, 100), chunks=(10, 100), dtype="<i4",
                          compressor=comp, filters=filters)
            z[...] = np.arange(4000).reshape(40, 100)
            other = (n.Zlib().encode(b"x" * 3999), b"", open(p + "/0.0", "rb").read()[:-5],
                     b"\xff" * 4000)
            what = "%s %s" % (comp, filters)
            for i, b in enumerate(other):
                with open(p + "/%d.0" % i, "wb") as f:
                    f.write(b)
            exits(tensorfs("verify", p), range(1, 9), what)
            with Mount(p) as m:
                for i in range(4):
                    fails_with((errno.EBADMSG, errno.EIO),
                               lambda: read(m / ("data/samples/%06d.npy" % (10 * i))),
                               "%s: %d" % (what, i))


@case
def one_chunk_without_codecs():
    p = path_of("whole.zarr")
    a = numbers(">u2", (40, 50))
    z = zarr.open(p, mode="w", shape=a.shape, chunks=a.shape, dtype=">u2", compressor=None)
    z[...] = a
    with Mount(p) as m:
        equal(json.loads(read(m / "data/info.json"))["layout"], "contiguous", "layout")
        same(np.load(m / "data/array.npy"), a, "data")
    os.truncate(p + "/0.0", 100)
    p = exits(tensorfs("cat", p + ":data/info.json"), 0, "info.json")
    check("truncated" in json.loads(p.stdout)["not_shown"], p.stdout)


work = lib.setup()
lib.main()
