#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""netCDF-3 files: those of netCDF4 and scipy, against these, and damaged ones."""
import errno
import json
import os
import struct
import sys
import tarfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import lib
import netCDF4
import numpy as np
import scipy.io
import xarray
from checks import check, equal, fails_with, read
from lib import Mount, case, exits, tensorfs

work = None
rng = np.random.default_rng(3)
FORMATS = {"NETCDF3_CLASSIC": "netCDF-3 classic",
           "NETCDF3_64BIT_OFFSET": "netCDF-3 64-bit offset",
           "NETCDF3_64BIT_DATA": "netCDF-3 64-bit data"}
TYPES = ["i1", "S1", "i2", "i4", "f4", "f8"]
MORE_TYPES = ["u1", "u2", "u4", "i8", "u8"]
SHAPES = {"scalar": (), "line": ("x",), "plane": ("y", "x"), "records": ("time",),
          "lines": ("time", "x"), "frames": ("time", "y", "wide")}
LENGTHS = {"time": 7, "x": 3, "y": 5, "wide": 1100}


def types(kind):
    return TYPES + (MORE_TYPES if kind == "NETCDF3_64BIT_DATA" else [])


def random(dtype, shape):
    if dtype == "S1":
        return rng.integers(97, 123, shape, dtype="u1").view("S1").reshape(shape)
    n = int(np.prod(shape, dtype=int)) * np.dtype(dtype).itemsize
    a = np.frombuffer(rng.bytes(n), dtype).reshape(shape)
    return np.nan_to_num(a) if dtype[0] == "f" else a


def path_of(name):
    return os.path.join(work, name)


def dataset(name, kind, lengths=None):
    d = netCDF4.Dataset(path_of(name), "w", format=kind)
    d.set_fill_off()
    for key, n in (lengths or LENGTHS).items():
        d.createDimension(key, None if key == "time" else n)
    return d


def put(d, name, dtype, dims, data, **attrs):
    v = d.createVariable(name, dtype, dims)
    v.setncatts(attrs)
    v.set_auto_maskandscale(False)
    v[...] = data


def loaded(m, name):
    return np.load(m / (name + "/array.npy"))


def same(got, want, what):
    equal((got.dtype.str, got.shape), (want.dtype.str, want.shape), what)
    equal(got.tobytes(), want.tobytes(), what)


def little(a):
    return a.astype(a.dtype.newbyteorder("<"))


def compare_with_netcdf4(m, path):
    with netCDF4.Dataset(path) as d:
        d.set_auto_maskandscale(False)
        equal(sorted(os.listdir(m.path)), sorted(d.variables), "names")
        for name, v in d.variables.items():
            v.set_auto_chartostring(False)
            want = np.asarray(v[...])
            same(loaded(m, name), little(want), name)
            info = json.loads(read(m / (name + "/info.json")))
            equal([a["name"] for a in info["axes"]], list(v.dimensions), name)
            if want.ndim and len(want):
                i = len(want) - 1
                got = np.load(m / (name + "/samples/%06d.npy" % i))
                same(got, little(np.asarray(want[i])), name)


# ---- files of other programs ---------------------------------------------------


@case
def every_type_and_shape():
    for kind, called in FORMATS.items():
        path = path_of(kind + ".nc")
        with dataset(kind + ".nc", kind) as d:
            for t in types(kind):
                for name, dims in SHAPES.items():
                    put(d, t + "_" + name, t, dims,
                        random(t, tuple(LENGTHS[x] for x in dims)))
        with Mount(path) as m:
            compare_with_netcdf4(m, path)
        exits(tensorfs("verify", path), 0, "verify")
        exits(tensorfs("ls", path), 0, "ls")
        p = exits(tensorfs("info", "--json", path), 0, "info")
        equal(json.loads(p.stdout)["format"], called, "format")


@case
def order_of_the_source():
    for kind in ("NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET"):
        path = path_of(kind + ".nc")
        with Mount(path, opts=["--dtype-order=source"]) as m, \
                scipy.io.netcdf_file(path, mmap=False) as s:
            for name, v in s.variables.items():
                same(loaded(m, name), np.array(v.data).reshape(v.shape), name)


@case
def files_of_scipy():
    for version in (1, 2):
        path = path_of("scipy%d.nc" % version)
        with scipy.io.netcdf_file(path, "w", version=version) as f:
            f.title = "made by scipy"
            for key, n in LENGTHS.items():
                f.createDimension(key, None if key == "time" else n)
            for t in TYPES:
                for name, dims in SHAPES.items():
                    if not dims:
                        continue  # scipy puts them behind the records: netCDF refuses that
                    big = "c" if t == "S1" else np.dtype(t).newbyteorder(">")
                    v = f.createVariable(t + "_" + name, big, dims)
                    v[:] = random(t, tuple(LENGTHS[x] for x in dims))
        with Mount(path) as m:
            compare_with_netcdf4(m, path)
            equal(json.loads(os.getxattr(m.path, "user.tensorfs.attrs")),
                  {"title": "made by scipy"}, "attributes of the file")


@case
def one_variable_with_records_has_no_padding():
    for kind in FORMATS:
        for t in types(kind):
            for dims in (("time",), ("time", "x"), ("time", "y", "wide")):
                path = path_of("one.nc")
                with dataset("one.nc", kind) as d:
                    put(d, "v", t, dims, random(t, tuple(LENGTHS[x] for x in dims)))
                    put(d, "fixed", t, ("x",), random(t, 3))
                with Mount(path) as m:
                    compare_with_netcdf4(m, path)
                    info = json.loads(read(m / "v/info.json"))
                    equal(info["layout"], "contiguous", "layout of " + t)


@case
def no_records():
    for kind in FORMATS:
        path = path_of("zero.nc")
        with dataset("zero.nc", kind) as d:
            for name, dims in SHAPES.items():
                v = d.createVariable(name, "i2", dims)
                if "time" not in dims:
                    v[...] = 3
        with Mount(path) as m:
            compare_with_netcdf4(m, path)
            equal(loaded(m, "frames").shape, (0, 5, 1100), "shape")
        exits(tensorfs("verify", path), 0, "verify")
    with dataset("none.nc", kind):
        pass
    with Mount(path_of("none.nc")) as m:
        equal(os.listdir(m.path), [], "variables of an empty file")


@case
def many_short_records():
    n = 30000
    path = path_of("many.nc")
    with dataset("many.nc", "NETCDF3_64BIT_OFFSET") as d:
        put(d, "t", "f8", ("time",), random("f8", (n,)))
        put(d, "b", "i1", ("time", "x"), random("i1", (n, 3)))
    with Mount(path) as m:
        compare_with_netcdf4(m, path)
        t = loaded(m, "t")
        with open(m / "t/array.bin", "rb") as f:
            for at in (0, 65535, 65536, 8 * n - 5, 100001):
                f.seek(at)
                equal(f.read(17), t.tobytes()[at:at + 17], "bytes at %d" % at)
    exits(tensorfs("verify", path), 0, "verify")


@case
def short_pieces_of_long_records():
    lengths = {"time": 0, "wide": 300000}
    path = path_of("long.nc")
    with dataset("long.nc", "NETCDF3_64BIT_DATA", lengths) as d:
        put(d, "t", "f8", ("time",), random("f8", (9,)))
        put(d, "w", "f4", ("time", "wide"), random("f4", (9, 300000)))
    with Mount(path) as m:
        compare_with_netcdf4(m, path)
        a, w = xarray.open_zarr(m / ".zarr", mask_and_scale=False), loaded(m, "w")
        check(np.array_equal(a["w"].values, w), "w of .zarr")
        with open(m / "w/array.bin", "rb") as f:
            for at in (1199999, 1200000, 5 * 1200000 - 2):
                f.seek(at)
                equal(f.read(11), w.tobytes()[at:at + 11], "bytes at %d" % at)
    exits(tensorfs("verify", path), 0, "verify")


@case
def attributes():
    for kind in FORMATS:
        more = {"large": np.uint64(2**63), "byte": np.uint8(255)} \
            if kind == "NETCDF3_64BIT_DATA" else {}
        values = {"text": "h\u00e4llo", "short": np.int16(-3), "pi": np.float32(3.25),
                  "list": np.array([1, -2, 3], "i4"), "nan": np.float64("nan"),
                  "bytes": np.array([-1, 2], "i1"), "long": "x" * 300000,
                  "vast": np.zeros(140000, "i1"), **more}
        with dataset("attrs.nc", kind) as d:
            d.setncatts(values)
            put(d, "v", "i2", ("x",), [1, -9, 2], _FillValue=np.int16(-9), units="m")
        want = {"text": "h\u00e4llo", "short": -3, "pi": 3.25, "list": [1, -2, 3],
                "nan": "NaN", "bytes": [-1, 2], "long": "x" * 300000,
                "vast": "(140000 values of type int8)"}
        if more:
            want.update({"large": str(2**63), "byte": 255})
        with Mount(path_of("attrs.nc")) as m:
            got = json.loads(os.getxattr(m.path, "user.tensorfs.attrs"))
            del want["long"], got["long"]  # more than an xattr may have
            equal(got, want, "attributes of the file")
            of_v = {"_FillValue": -9, "units": "m"}
            equal(json.loads(os.getxattr(m / "v", "user.tensorfs.attrs")), of_v, "v")
            equal(json.loads(read(m / "v/info.json"))["attributes"], of_v, "v")
            same(loaded(m, "v"), np.array([1, -9, 2], "<i2"), "a fill value stays")


@case
def xarray_reads_the_zarr_view():
    for kind in FORMATS:
        path = path_of(kind + ".nc")
        with Mount(path) as m:
            a = xarray.open_zarr(m / ".zarr", mask_and_scale=False, decode_times=False)
            b = xarray.open_dataset(path, engine="netcdf4", mask_and_scale=False,
                                    decode_times=False)
            for name in b.variables:
                equal(a[name].dims, b[name].dims, name)
                check(np.array_equal(a[name].values, b[name].values), name)
            b.close()


@case
def a_member_of_an_archive():
    path = path_of("in.tar")
    with tarfile.open(path, "w") as t:
        t.add(path_of("NETCDF3_CLASSIC.nc"), "a.nc")
    with Mount(path) as m:
        equal(read(m / "a.nc"), read(path_of("NETCDF3_CLASSIC.nc")), "the member")


# ---- files made by hand, and damage --------------------------------------------


def number(version, n):
    return struct.pack(">Q" if version == 5 else ">I", n)


def padded(b):
    return b + bytes(-len(b) % 4)


def name_of(version, name):
    return number(version, len(name)) + padded(name)


def listed(version, tag, elements):
    return struct.pack(">I", tag if elements else 0) + number(version, len(elements)) + \
        b"".join(elements)


def attr(version, name=b"a", kind=2, n=1, values=b"x"):
    return name_of(version, name) + struct.pack(">I", kind) + number(version, n) + \
        padded(values)


def var(version, name=b"v", dims=(0,), kind=4, begin=0, attrs=()):
    return name_of(version, name) + number(version, len(dims)) + \
        b"".join(number(version, i) for i in dims) + listed(version, 12, attrs) + \
        struct.pack(">I", kind) + number(version, 0) + \
        struct.pack(">I" if version == 1 else ">Q", begin)


def header(version, dims=((b"x", 4),), attrs=(), variables=(), records=0):
    return b"CDF" + bytes([version]) + number(version, records) + \
        listed(version, 10, [name_of(version, n) + number(version, k) for n, k in dims]) + \
        listed(version, 12, attrs) + listed(version, 11, variables)


def write(name, data):
    with open(path_of(name), "wb") as f:
        f.write(data)
    return path_of(name)


def not_shown(m, name):
    check(not os.path.exists(m / (name + "/array.npy")), name + " is shown")
    return json.loads(read(m / (name + "/info.json")))["not_shown"]


@case
def odd_names():
    names = [b"a/b", b"..", b"a b", "\u00e9".encode(), b"\xff\xfe", b"q\"\\"]
    variables = [var(1, n, begin=0) for n in names]
    path = write("names.nc", header(1, variables=variables))
    with Mount(path) as m:
        found = os.listdir(os.fsencode(m.path))
        equal(len(found), len(names), "a directory each")
        check(b"a%2Fb" in found and b"a b" in found, found)
        for name in found:
            read(os.path.join(os.fsencode(m.path), name, b"array.npy"))
            json.loads(read(os.path.join(os.fsencode(m.path), name, b"info.json")))


@case
def streamed():
    for version in (1, 2, 5):
        dims = ((b"t", 0), (b"x", 3))
        most = 2**64 - 1 if version == 5 else 2**32 - 1

        def head(begin):
            return header(version, dims, variables=[
                var(version, b"s", (0,), 3, begin),
                var(version, b"b", (0, 1), 1, begin + 4)], records=most)
        begin = len(head(0))
        data = b"".join(struct.pack(">hxxbbbx", i, i, -i, 2 * i) for i in range(5))
        path = write("stream%d.nc" % version, head(begin) + data + b"abc")
        with Mount(path) as m:
            same(loaded(m, "s"), np.arange(5, dtype="<i2"), "s")
            same(loaded(m, "b"), np.array([[i, -i, 2 * i] for i in range(5)], "i1"), "b")


@case
def bad_headers():
    for v in (1, 2, 5):
        ok = header(v, attrs=[attr(v)], variables=[var(v)])
        cases = [(ok[:n], "truncated") for n in range(4, len(ok), 4)]
        most = 2**64 - 1 if v == 5 else 2**32 - 1
        record = ((b"t", 0), (b"x", 3))
        cases += [
            (header(v, variables=[var(v, kind=0)]), "unknown type 0"),
            (header(v, variables=[var(v, kind=12)]), "unknown type 12"),
            (header(v, attrs=[attr(v, kind=99)]), "unknown type 99"),
            (header(v, variables=[var(v, dims=(1,))]), "unknown dimension 1"),
            (header(v, variables=[var(v, dims=(most,))]), "unknown dimension"),
            (header(v, record, variables=[var(v, dims=(1, 0))]), "behind another"),
            (header(v, record + ((b"u", 0),)), "two record dimensions"),
            (header(v, variables=[var(v), var(v)]), "name \"v\""),
            (header(v, ((b"", 4),)), "empty"),
            (header(v, ((b"a\0b", 4),)), "NUL"),
            (header(v, attrs=[attr(v, n=most)]), "truncated"),
            (header(v, attrs=[attr(v, kind=6, n=most // 8 + 1)]), "truncated"),
            (b"CDF" + bytes([v]) + number(v, 0) + struct.pack(">I", 10) +
             number(v, most), "truncated"),
            (b"CDF" + bytes([v]) + number(v, 0) + struct.pack(">I", 11) +
             number(v, 1), "tag 11"),
            (b"CDF" + bytes([v]) + number(v, 0) + struct.pack(">I", 10) +
             number(v, 1) + number(v, most) + b"abcd", "truncated")]
        if v != 5:
            cases.append((header(v, variables=[var(v, kind=7)]), "unknown type 7"))
        for i, (data, word) in enumerate(cases):
            path = write("bad.nc", data)
            commands = ["ls"] if word == "truncated" else ["ls", "info", "verify"]
            for command in commands:
                p = exits(tensorfs(command, path), 3, "%d: %d: %s" % (v, i, command))
                check(word in p.stderr and "bad.nc" in p.stderr,
                      "%d: %d: %s" % (v, i, p.stderr))


@case
def a_bad_variable_does_not_hide_others():
    for v in (1, 2, 5):
        far = 2**32 - 4 if v == 1 else 2**64 - 4
        long = 2**64 - 1 if v == 5 else 2**32 - 1
        dims = ((b"x", 4), (b"long", long), (b"t", 0), (b"one", 1))
        variables = [
            (b"good", (0,), 3, 0), (b"behind", (0,), 4, far),
            (b"long", (1,), 1, 4), (b"product", (1, 1, 1), 6, 0),
            (b"records", (2, 0), 2, far), (b"axes", (3,) * 40, 1, 0)]
        path = write("others.nc", header(
            v, dims, variables=[var(v, *x) for x in variables], records=long - 1))
        with Mount(path) as m:
            same(loaded(m, "good"),
                 np.frombuffer(read(path)[:8], ">i2").astype("<i2"), "good")
            for name in ("behind", "long", "product", "records"):
                why = not_shown(m, name)
                check("truncated" in why or "too large" in why, why)
            check("32 axes" in not_shown(m, "axes"), "axes")
        p = exits(tensorfs("verify", path), 1, "verify")
        for name in ("behind", "long", "product", "records"):
            check(name in p.stdout + p.stderr, p.stdout + p.stderr)
        exits(tensorfs("info", path), 0, "info")


@case
def records_that_are_too_large():
    dims = ((b"t", 0), (b"x", 2**62))
    variables = [var(5, b"a", (0, 1), 1), var(5, b"b", (0, 1), 6), var(5, b"c", (0,), 3),
                 var(5, b"fixed", (), 3)]
    path = write("large.nc", header(5, dims, variables=variables, records=1))
    with Mount(path) as m:
        for name in "abc":
            check("too large" in not_shown(m, name), name)
        equal(loaded(m, "fixed").shape, (), "fixed")


@case
def truncated_data():
    for kind in FORMATS:
        with dataset("whole.nc", kind) as d:
            put(d, "fixed", "i4", ("x",), [1, 2, 3])
            put(d, "first", "f8", ("time",), np.arange(5.0))
            put(d, "last", "f4", ("time", "y", "wide"), np.zeros((5, 5, 1100)))
        path = write("cut.nc", read(path_of("whole.nc"))[:-1])
        with Mount(path) as m:
            same(loaded(m, "fixed"), np.array([1, 2, 3], "<i4"), "fixed")
            same(loaded(m, "first"), np.arange(5.0), "first")
            check("truncated" in not_shown(m, "last"), "last")
            fails_with(errno.ENOENT, lambda: read(m / "last/array.npy"), "last")
        p = exits(tensorfs("verify", path), 1, "verify")
        check("last" in p.stdout + p.stderr, p.stdout + p.stderr)


@case
def changed_under_the_mount():
    path = path_of("shrinks.nc")
    with dataset("shrinks.nc", "NETCDF3_CLASSIC",
                 {"time": 0, "wide": 1100, "vast": 200000}) as d:
        put(d, "fixed", "f8", ("wide",), np.arange(1100.0))
        put(d, "t", "f8", ("time",), np.arange(9.0))
        put(d, "w", "f8", ("time", "wide"), np.zeros((9, 1100)))
        put(d, "v", "f8", ("time", "vast"), np.zeros((9, 200000)))
    with Mount(path) as m:
        os.truncate(path, 2000)
        for name in ("fixed", "t", "w", "v"):
            fails_with((errno.EIO, errno.ESTALE, errno.ENODATA),
                       lambda: read(m / (name + "/array.npy")), name)


work = lib.setup()
lib.main()
