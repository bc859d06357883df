#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Zarr stores in a zip: zarr.ZipStore, HyperSpy and zipfile write them, zarr and numpy
compare what a mount shows; damage, duplicates and what is no store."""
import errno
import json
import os
import struct
import sys
import warnings
import zipfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))
warnings.filterwarnings("ignore", "Duplicate name")

import lib
import numcodecs
import numpy as np
import xarray
import zarr
from checks import check, equal, fails_with, read
from lib import Mount, case, exits, tensorfs

work = None
rng = np.random.default_rng(13)
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def path_of(name):
    return os.path.join(work, name)


def same(got, want, what):
    want = np.asarray(want)
    want = want.astype(want.dtype.newbyteorder("<"))
    equal((got.dtype, got.shape), (want.dtype, want.shape), what)
    check(got.tobytes() == want.tobytes(), what + ": other values")


def arrays_of(group):
    found = {}
    group.visititems(lambda n, a: found.update({n: a[...]})
                     if isinstance(a, zarr.Array) else None)
    return found


def compare(m, arrays):
    check(arrays, "no arrays")
    for name, a in arrays.items():
        at = os.path.join(m.path, name)
        same(np.load(at + "/array.npy"), a, name)
        if a.ndim and len(a):
            last = sorted(os.listdir(at + "/samples"))[-1]
            same(np.load("%s/samples/%s" % (at, last)), a[-1], name + ": last sample")


def fill_store(store):
    """Arrays of many kinds, holes among them; as zarr reads them again."""
    g = zarr.open_group(store, mode="w")
    a = rng.integers(-999, 999, (23, 17)).astype("i4")
    n = numcodecs
    for name, kw in {
            "blosc": {}, "zlib": {"compressor": n.Zlib()}, "plain": {"compressor": None},
            "one": {"compressor": None, "chunks": a.shape},
            "oneF": {"compressor": None, "chunks": a.shape, "order": "F"},
            "filters": {"filters": [n.Delta("<i4"), n.Shuffle(4)], "compressor": n.Zstd()},
            "order": {"order": "F", "dimension_separator": "/"}}.items():
        g.create_dataset("x/" + name, data=a, **dict({"chunks": (5, 6)}, **kw))
    big = g.create_dataset("x/big", shape=a.shape, chunks=a.shape, dtype=">i4",
                           compressor=None, fill_value=3)
    big[...] = a
    z = g.create_dataset("y/holes", shape=(40, 9), chunks=(8, 4), dtype="f8",
                         fill_value=-2.5)
    z[9:20, 2:5] = rng.normal(size=(11, 3))
    g.create_dataset("y/none", shape=(7,), chunks=(7,), dtype="u2", fill_value=9,
                     compressor=None)
    g.create_dataset("scalar", data=np.float32(3))
    g["x"].attrs["unit"] = "nm"
    g["x/zlib"].attrs["k"] = [1, 2]
    return g


@case
def written_by_zarr():
    for i, method in enumerate(METHODS):
        p = path_of("w%d.zarr.zip" % i)
        store = zarr.ZipStore(p, mode="w", compression=method)
        fill_store(store)
        store.close()
        with zarr.ZipStore(p, mode="r") as store:
            arrays = arrays_of(zarr.open_group(store, mode="r"))
        equal(len(arrays), 11, "arrays")
        with Mount(p) as m:
            equal(sorted(os.listdir(m.path)), ["scalar", "x", "y"], "root")
            compare(m, arrays)
            equal(json.loads(os.getxattr(m / "x", "user.tensorfs.attrs")),
                  {"unit": "nm"}, "attributes of a group")
            equal(json.loads(read(m / "x/zlib/info.json"))["attributes"], {"k": [1, 2]},
                  "attributes")
            z = zarr.open(m / ".zarr", "r")
            same(z["x/order"][...], arrays["x/order"], ".zarr")
        exits(tensorfs("verify", p), 0, "verify")
        out = exits(tensorfs("info", p), 0, "info").stdout
        check("11 datasets" in out, out)


@case
def chunk_in_place():
    """An array that is one stored member is not copied."""
    p = path_of("place.zip")
    a = rng.integers(0, 99, (6, 5)).astype("<i4")
    with zarr.ZipStore(p, mode="w", compression=zipfile.ZIP_STORED) as store:
        zarr.open_group(store, mode="w").create_dataset("a", data=a, chunks=a.shape,
                                                        compressor=None)
    out = exits(tensorfs("info", "--map", p + ":a/array.npy", "0", "1k"), 0, "map").stdout
    check("place.zip" in out, out)
    info = json.loads(exits(tensorfs("info", "--json", p), 0, "info").stdout)
    equal(info["datasets"][0]["layout"], "contiguous", "layout")
    with zipfile.ZipFile(p) as z, open(p, "rb") as f:
        check(a.tobytes() in f.read() and z.testzip() is None, "stored")


def zip_of(path, p, top="", method=zipfile.ZIP_STORED):
    """A directory as a zip, its files in order of names."""
    with zipfile.ZipFile(p, "w", method) as z:
        for d, dirs, names in os.walk(path):
            dirs.sort()
            for n in sorted(names):
                full = os.path.join(d, n)
                z.write(full, top + os.path.relpath(full, path))
    return p


@case
def one_directory_in_front():
    d = path_of("front.zarr")
    arrays = arrays_of(fill_store(zarr.DirectoryStore(d)))
    for method in METHODS:
        p = zip_of(d, path_of("front.zip"), "front.zarr/", method)
        with Mount(p) as m:
            compare(m, arrays)
        with Mount(p, opts=["--dataset=/x/order"]) as m:
            same(np.load(m / "array.npy"), arrays["x/order"], "dataset=")
        os.unlink(p)


@case
def consolidated():
    d = path_of("cons.zarr")
    arrays = arrays_of(fill_store(zarr.DirectoryStore(d)))
    zarr.consolidate_metadata(d)
    for dirpath, _, names in os.walk(d):
        for n in names:
            if n in (".zarray", ".zgroup", ".zattrs"):
                os.unlink(os.path.join(dirpath, n))
    with Mount(zip_of(d, path_of("cons.zip"))) as m:
        compare(m, arrays)


@case
def xarray_dataset():
    p = path_of("xr.zarr.zip")
    ds = xarray.Dataset({"t": (("time", "x"), rng.normal(size=(5, 7)), {"units": "K"})},
                        coords={"x": np.linspace(0, 1, 7)})
    with zarr.ZipStore(p, mode="w") as store:
        ds.to_zarr(store, consolidated=True)
    with Mount(p) as m:
        compare(m, {"t": ds["t"].values, "x": ds["x"].values})
        axes = json.loads(read(m / "t/info.json"))["axes"]
        equal([a["name"] for a in axes], ["time", "x"], "axes")


@case
def version_3():
    a = rng.integers(0, 9999, (7, 10)).astype("<u2")

    def doc(**kw):
        return json.dumps(dict({"zarr_format": 3}, **kw))
    array = dict(node_type="array", shape=[7, 10], data_type="uint16", fill_value=7,
                 chunk_grid={"name": "regular", "configuration": {"chunk_shape": [4, 5]}},
                 chunk_key_encoding={"name": "default"})
    order = {"name": "bytes", "configuration": {"endian": "little"}}
    full = np.full((8, 10), 7, "<u2")
    full[:7] = a
    chunks = {(i, j): full[4 * i:4 * i + 4, 5 * j:5 * j + 5].tobytes()
              for i in range(2) for j in range(2)}
    index, at = b"", 0
    for c in chunks.values():
        index, at = index + struct.pack("<QQ", at, len(c)), at + len(c)
    p = path_of("v3.zip")
    for method in METHODS:
        with zipfile.ZipFile(p, "w", method) as z:
            z.writestr("zarr.json", doc(node_type="group", attributes={"a": 1}))
            z.writestr("g/zarr.json", doc(node_type="group"))
            z.writestr("g/a/zarr.json", doc(codecs=[order], **array))
            for (i, j), c in chunks.items():
                if (i, j) != (1, 0):
                    z.writestr("g/a/c/%d/%d" % (i, j), c)
            shard = dict(array, chunk_grid={"name": "regular", "configuration": {
                "chunk_shape": [8, 10]}})
            z.writestr("g/s/zarr.json", doc(codecs=[
                {"name": "sharding_indexed", "configuration": {
                    "chunk_shape": [4, 5], "codecs": [order],
                    "index_codecs": [order], "index_location": "end"}}], **shard))
            z.writestr("g/s/c/0/0", b"".join(chunks.values()) + index)
        want = a.copy()
        want[4:, :5] = 7
        with Mount(p) as m:
            compare(m, {"g/a": want, "g/s": a})
        exits(tensorfs("verify", p), 0, "verify")


@case
def hyperspy_zip():
    import hyperspy.api as hs
    a = rng.normal(size=(4, 3, 8, 6)).astype("f4")
    s = hs.signals.Signal2D(a)
    s.metadata.General.title = "scan"
    p = path_of("scan.zspy")
    from hyperspy.io_plugins import zspy
    zspy.file_writer(zarr.ZipStore(p, mode="w"), s)
    with zipfile.ZipFile(p) as z:
        check(len(z.namelist()) > len(set(z.namelist())), "no name twice")
    with Mount(p) as m:
        at = m / "Experiments/scan/data"
        same(np.load(at + "/array.npy"), a, "data")
        equal(sum(len(f) for _, _, f in os.walk(at + "/samples")), 12, "navigation axes")
        info = json.loads(read(at + "/info.json"))
        equal(info["metadata"]["General"]["title"], "scan", "title")
        equal([x["navigate"] for x in info["axes"]], [True, True, False, False], "axes")


@case
def last_of_a_name():
    p = path_of("twice.zip")
    with zarr.ZipStore(p, mode="w") as store:
        z = zarr.open(store, mode="w", shape=(12,), chunks=(4,), dtype="i4")
        z[:] = 1
        z[4:] = np.arange(8)
        z[4:8] = 70
    want = [1] * 4 + [70] * 4 + [4, 5, 6, 7]
    with zarr.ZipStore(p, mode="r") as store:
        equal(zarr.open(store, mode="r")[:].tolist(), want, "zarr")
    with Mount(p) as m:
        equal(np.load(m / "data/array.npy").tolist(), want, "tensorfs")


ARRAY = {"zarr_format": 2, "shape": [66000], "chunks": [1], "dtype": "<u2", "order": "C",
         "compressor": None, "fill_value": 5, "filters": None}


@case
def zip64():
    p = path_of("64.zip")
    with zipfile.ZipFile(p, "w") as z:
        with z.open("a/.zarray", "w", force_zip64=True) as f:
            f.write(json.dumps(ARRAY).encode())
        z.writestr(".zgroup", '{"zarr_format": 2}')
        for i in range(1, 66000):
            z.writestr("a/%d" % i, struct.pack("<H", i % 60000))
    with Mount(p) as m:
        want = np.arange(66000) % 60000
        want[0] = 5
        same(np.load(m / "a/array.npy"), want.astype("<u2"), "zip64")


@case
def inside_of_others():
    d = path_of("in.zarr")
    g = zarr.open_group(d, mode="w")
    a = rng.integers(0, 99, (6, 5)).astype("<i4")
    g.create_dataset("a", data=a, chunks=(2, 5))
    g.create_dataset("b", data=a, chunks=a.shape, compressor=None)
    for method in METHODS:
        top = path_of("outer%d" % method)
        os.makedirs(top)
        zip_of(d, top + "/in.zarr.zip", method=METHODS[0])
        with Mount(top, opts=["--nested"]) as m:
            compare(m, {"in.zarr.zip/a": a, "in.zarr.zip/b": a})
        outer = zip_of(top, path_of("outer%d.zip" % method), method=method)
        with Mount(outer, opts=["--nested"]) as m:
            compare(m, {"in.zarr.zip/a": a, "in.zarr.zip/b": a})
        exits(tensorfs("verify", "--nested", outer), 0, "verify")


# --- what is no store -------------------------------------------------------------

@case
def other_zips():
    p = path_of("other.zip")
    with zipfile.ZipFile(p, "w") as z:
        z.writestr("one/.zgroup", '{"zarr_format": 2}')
        z.writestr("two/x", b"x")
    with Mount(p) as m:
        equal(read(m / "two/x"), b"x", "a member")
        equal(read(m / "one/.zgroup"), b'{"zarr_format": 2}', "a member")
    out = tensorfs("ls", "--dataset=x", p)
    check(out.returncode != 0 and "subdir=" in out.stderr, out.stderr)
    q = path_of("members.zip")
    with zarr.ZipStore(q, mode="w") as store:
        zarr.open_group(store, mode="w").create_dataset("g/a", data=np.arange(3))
    with Mount(q, opts=["--subdir=g"]) as m:
        check("zarr_format" in read(m / "a/.zarray").decode(), "members, if asked for")


# --- damage -----------------------------------------------------------------------

def patched(p, name, change):
    """A member, changed: change(data, where its headers and bytes are)."""
    with zipfile.ZipFile(p) as z:
        i = z.getinfo(name)
    with open(p, "rb") as f:
        data = bytearray(f.read())
    entry = data.rindex(name.encode()) - 46
    body = i.header_offset + 30 + sum(struct.unpack_from("<HH", data, i.header_offset + 26))
    change(data, i.header_offset, entry, body)
    with open(p, "wb") as f:
        f.write(data)


def flip(data, local, entry, body):
    data[body + 3] ^= 0x55


def encrypt(data, local, entry, body):
    data[local + 6] |= 1
    data[entry + 8] |= 1


def method(data, local, entry, body):
    struct.pack_into("<H", data, local + 8, 12)
    struct.pack_into("<H", data, entry + 10, 12)


@case
def damage():
    a = np.arange(40, dtype="<i4").reshape(4, 10)
    for method_of, (name, change, code) in [(k, c) for k in METHODS for c in [
            ("g/a/1.0", flip, errno.EBADMSG), ("g/a/1.0", encrypt, errno.ENOTSUP),
            ("g/a/1.0", method, errno.ENOTSUP)]]:
        p = path_of("bad.zip")
        with zarr.ZipStore(p, mode="w", compression=method_of) as store:
            g = zarr.open_group(store, mode="w")
            g.create_dataset("g/a", data=a, chunks=(2, 10), compressor=None)
            g.create_dataset("g/b", data=a, chunks=(2, 10))
        patched(p, name, change)
        with Mount(p) as m:
            same(np.load(m / "g/a/samples/000001.npy"), a[1], "before")
            fails_with((code, errno.EIO), lambda: read(m / "g/a/samples/000002.npy"), name)
            same(np.load(m / "g/b/array.npy"), a, "beside")
        out = exits(tensorfs("verify", p), range(1, 9), "verify").stdout
        check("a/1.0" in out or "/g/a" in out, out)
        os.unlink(p)


@case
def damaged_documents():
    a = np.arange(40, dtype="<i4").reshape(4, 10)
    for change in flip, encrypt, method:
        p = path_of("doc.zip")
        with zarr.ZipStore(p, mode="w") as store:
            g = zarr.open_group(store, mode="w")
            g.create_dataset("g/a", data=a, chunks=(2, 10))
            g.create_dataset("g/b", data=a, chunks=(2, 10))
        patched(p, "g/a/.zarray", change)
        with Mount(p) as m:
            same(np.load(m / "g/b/array.npy"), a, "beside")
            check(os.listdir(m / "g/a") == ["info.json"], "listed with the reason")
        with open(p, "rb") as f:
            data = f.read()
        with open(p, "wb") as f:
            f.write(data[:-30])
        out = tensorfs("ls", p)
        check(out.returncode != 0 and "zip" in out.stderr, out.stderr)
        os.unlink(p)


work = lib.setup()
lib.main()
