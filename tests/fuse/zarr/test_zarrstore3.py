#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Zarr stores of version 3: written here by the specification (zarr 2.13 has none), with
numpy, gzip and numcodecs' Blosc and Zstd; numpy compares what a mount shows."""
import errno
import gzip
import itertools
import json
import os
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import lib
import numcodecs
import numpy as np
from checks import check, equal, fails_with, read
from lib import Mount, case, exits, tensorfs

work = None
rng = np.random.default_rng(12)
NONE = 2 ** 64 - 1


def crc32c(data):
    c = 0xffffffff
    for b in data:
        c ^= b
        for _ in range(8):
            c = c >> 1 ^ (0x82f63b78 if c & 1 else 0)
    return c ^ 0xffffffff


def crc(data):
    return data + struct.pack("<I", crc32c(data))


def codec(name, **config):
    return {"name": name, "configuration": config} if config else {"name": name}


LITTLE, BIG = codec("bytes", endian="little"), codec("bytes", endian="big")
GZIP, ZSTD = codec("gzip", level=3), codec("zstd", level=3, checksum=False)
BLOSC = codec("blosc", cname="lz4", clevel=5, shuffle="shuffle", typesize=4, blocksize=0)
CRC = codec("crc32c")


def transpose(*order):
    return codec("transpose", order=list(order))


def shard(chunk, codecs, index=(LITTLE, CRC), **more):
    return codec("sharding_indexed", chunk_shape=list(chunk), codecs=list(codecs),
                 index_codecs=list(index), **more)


def encode_shard(a, c, fill):
    """The chunks in some order, with gaps between, and the index."""
    inner = c["chunk_shape"]
    grid = [n // k for n, k in zip(a.shape, inner)]
    first = c.get("index_location") == "start"
    checked = any(x["name"] == "crc32c" for x in c["index_codecs"])
    head = 16 * int(np.prod(grid)) + 4 * checked
    index = np.full(grid + [2], NONE, "u8")
    body = b""
    places = list(itertools.product(*map(range, grid)))
    for at in reversed(places):
        part = a[tuple(slice(i * k, i * k + k) for i, k in zip(at, inner))]
        if (part == fill).all():
            continue
        b = encode(part, c["codecs"], fill)
        body += b"gap"
        index[at] = (len(body) + (head if first else 0), len(b))
        body += b
    if (index == NONE).all():
        return None
    endian = "<" if c["index_codecs"][0] == LITTLE else ">"
    i = index.astype(endian + "u8").tobytes()
    i = crc(i) if checked else i
    return i + body if first else body + i


def encode(a, codecs, fill=0):
    """A chunk through its codecs; None: nothing but fill value in a shard."""
    for x in codecs:
        name, c = x["name"], x.get("configuration", {})
        if name == "transpose":
            a = a.transpose(c["order"])
        elif name == "bytes":
            order = {"big": ">"}.get(c.get("endian"), "<")
            a = a.astype(a.dtype.newbyteorder(order)).tobytes()
        elif name == "sharding_indexed":
            a = encode_shard(a, c, fill)
        elif name == "gzip":
            a = gzip.compress(a, c["level"])
        elif name == "zstd":
            a = numcodecs.Zstd(c["level"]).encode(a)
        elif name == "blosc":
            a = numcodecs.Blosc(c["cname"], c["clevel"], numcodecs.Blosc.SHUFFLE).encode(
                np.frombuffer(a, "u%d" % c["typesize"]))
        elif name == "crc32c":
            a = crc(a)
        elif name == "numcodecs.shuffle":
            a = np.frombuffer(numcodecs.Shuffle(c["elementsize"]).encode(a), "u1").tobytes()
        elif name == "numcodecs.zlib":
            a = numcodecs.Zlib(c["level"]).encode(a)
        elif name in ("bitround", "numcodecs.bitround"):
            rounded = numcodecs.BitRound(c["keepbits"]).encode(a)
            a = rounded.view(a.dtype).reshape(a.shape)
        elif name == "numcodecs.delta":
            a = numcodecs.Delta(c["dtype"]).encode(a).reshape(a.shape)
        else:
            raise ValueError(name)
    return a


def dump(path, doc):
    os.makedirs(path, exist_ok=True)
    with open(path + "/zarr.json", "w") as f:
        json.dump(doc, f)


def group(path, **more):
    dump(path, dict({"zarr_format": 3, "node_type": "group", "attributes": {}}, **more))


TYPES = {"b1": "bool", "c8": "complex64", "c16": "complex128"}


def type_name(t):
    t = np.dtype(t)
    if t.kind == "V":
        return "r%d" % (8 * t.itemsize)
    return TYPES.get(t.str[1:], t.name)


def write(path, a, chunks, codecs, fill=0, fill_json=None, keys=("default", None),
          skip=(), **more):
    enc = codec(keys[0], **({"separator": keys[1]} if keys[1] else {}))
    sep = keys[1] or ("/" if keys[0] == "default" else ".")
    dump(path, dict({
        "zarr_format": 3, "node_type": "array", "shape": list(a.shape),
        "data_type": type_name(a.dtype),
        "chunk_grid": codec("regular", chunk_shape=list(chunks)),
        "chunk_key_encoding": enc, "codecs": list(codecs),
        "fill_value": fill_json if fill_json is not None else fill,
        "attributes": {"k": 1}}, **more))
    grid = [-(-n // c) for n, c in zip(a.shape, chunks)]
    for at in itertools.product(*map(range, grid)):
        if at in skip:
            continue
        part = np.full(chunks, fill, a.dtype)
        have = a[tuple(slice(i * c, i * c + c) for i, c in zip(at, chunks))]
        part[tuple(map(slice, have.shape))] = have
        b = encode(part, codecs, fill)
        if b is None:
            continue
        key = sep.join((["c"] if keys[0] == "default" else []) + [str(i) for i in at])
        key = key or "0"
        os.makedirs(os.path.dirname(path + "/" + key), exist_ok=True)
        with open(path + "/" + key, "wb") as f:
            f.write(b)


def numbers(t, shape):
    t = np.dtype(t)
    if t.kind == "V":
        return rng.integers(0, 256, tuple(shape) + (t.itemsize,), dtype="u1").view(
            t).reshape(shape)
    if t.kind == "b":
        return rng.integers(0, 2, shape).astype(t)
    if t.kind == "c":
        return (rng.random(shape) + 1j * rng.random(shape)).astype(t)
    if t.kind == "f":
        return rng.normal(size=shape).astype(t)
    i = np.iinfo(t)
    return rng.integers(i.min, i.max, shape, dtype=t, endpoint=True)


def same(path, want, what):
    got = np.load(path + "/array.npy")
    equal((got.dtype, got.shape), (want.dtype, want.shape), what)
    check(got.tobytes() == want.tobytes(), what + ": other values")
    for i in range(0, want.shape[0] if want.ndim else 0, 5):
        s = np.load("%s/samples/%06d.npy" % (path, i))
        check(s.tobytes() == want[i].tobytes(), "%s: sample %d" % (what, i))


def store(name):
    p = os.path.join(work, name)
    group(p)
    return p


# --- what there is --------------------------------------------------------------

@case
def types_and_codecs():
    p, want = store("types.zarr"), {}
    for t in ("b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8",
              "c8", "c16", "V3"):
        a = numbers(t, (11, 6))
        one = np.dtype(t).itemsize == 1 or t == "V3"
        lists = [[codec("bytes") if one else LITTLE], [BIG, GZIP],
                 [transpose(1, 0), LITTLE, ZSTD, CRC],
                 [transpose(1, 0), transpose(1, 0), LITTLE, CRC, GZIP]]
        if np.dtype(t).itemsize % 4 == 0:
            lists.append([LITTLE, BLOSC])
        for i, c in enumerate(lists):
            n = "%s_%d" % (t, i)
            if t == "V3" and i:
                c = [codec("bytes"), GZIP]
            write("%s/sub/%s" % (p, n), a, (4, 4), c,
                  fill=np.zeros((), t)[()], fill_json=[0, 0, 0] if t == "V3" else
                  False if t == "b1" else [0, 0] if t[0] == "c" else 0)
            want[n] = a
    group(p + "/sub")
    with Mount(p) as m:
        equal(sorted(os.listdir(m / "sub")), sorted(want), "arrays")
        for n in want:
            same(m / ("sub/" + n), want[n], n)
    exits(tensorfs("verify", p), 0, "verify")


@case
def axes_and_keys():
    p, want = store("axes.zarr"), {}
    a = numbers("i4", (6, 7, 8))
    for order in itertools.permutations(range(3)):
        n = "t" + "".join(map(str, order))
        write(p + "/" + n, a, (4, 3, 5), [transpose(*order), LITTLE])
        want[n] = a
    write(p + "/two", a, (4, 3, 5), [transpose(1, 2, 0), transpose(0, 2, 1), BIG])
    want["two"] = a
    for i, keys in enumerate([("default", "."), ("default", "/"), ("v2", None),
                              ("v2", "/"), ("v2", ".")]):
        write(p + "/k%d" % i, a, (4, 3, 5), [LITTLE], keys=keys,
              dimension_names=["z", None, "x"])
        want["k%d" % i] = a
        s = numbers("f8", ())
        write(p + "/s%d" % i, s, (), [LITTLE, GZIP], keys=keys)
        want["s%d" % i] = s
    d = np.cumsum(numbers("u2", (50,))).astype("i4")
    write(p + "/numcodecs", d, (20,), [codec("numcodecs.delta", dtype="<i4"), LITTLE,
          codec("numcodecs.shuffle", elementsize=4), codec("numcodecs.zlib", level=4)])
    want["numcodecs"] = d
    with Mount(p) as m:
        for n in want:
            same(m / n, want[n], n)
        info = json.loads(read(m / "k0/info.json"))
        equal(info["axes"], [{"name": "z"}, None, {"name": "x"}], "axes")
        equal(info["attributes"], {"k": 1}, "attributes")
        equal(info["zarr"], {"version": 3, "codecs": [LITTLE]}, "codecs")


@case
def fill_values():
    p, want = store("fill.zarr"), {}
    nan, inf = float("nan"), float("inf")
    for i, (t, fill, text) in enumerate([
            ("f4", nan, "NaN"), ("f8", -inf, "-Infinity"), ("f2", 1.5, 1.5),
            ("f2", nan, "NaN"), ("f8", -0.0, -0.0), ("f2", -0.0, "0x8000"),
            ("f4", struct.unpack("<f", b"\1\0\xc0\x7f")[0], "0x7fc00001"), ("i8", -2 ** 63, None),
            ("u8", 2 ** 64 - 1, None), ("b1", True, True), ("c8", 1 + 2j, [1, 2.0]),
            ("c16", complex(inf, nan), ["Infinity", "NaN"]), ("V2", b"\1\2", [1, 2])]):
        a = np.full((9, 5), np.array(fill, t)[()], t)
        if text == "0x7fc00001":
            a = np.full((9, 5), 0x7fc00001, "u4").view("f4")
        a[4:6] = numbers(t, (2, 5))
        n = "f%d" % i
        write(p + "/" + n, a, (2, 5), [codec("bytes", endian="little"), GZIP],
              fill=a[0, 0], fill_json=int(fill) if t in ("i8", "u8") else text,
              skip=[(0, 0), (1, 0), (3, 0), (4, 0)])
        want[n] = a
    with Mount(p) as m:
        for n in want:
            same(m / n, want[n], n)


@case
def shards():
    p, want = store("shards.zarr"), {}
    a = numbers("i4", (20, 18, 5))
    a[8:12, 4:8] = 7
    a[16:, 12:] = 7
    for i, (c, more) in enumerate([
            ([LITTLE, GZIP], {}), ([BIG], {"index": (LITTLE,)}),
            ([transpose(2, 0, 1), LITTLE, BLOSC, CRC], {"index_location": "start"}),
            ([LITTLE], {"index": (BIG, CRC), "index_location": "end"}),
            ([LITTLE, ZSTD], {"index": (BIG,), "index_location": "start"})]):
        for chunk, size in (((2, 3, 5), (8, 6, 5)), ((4, 4, 1), (16, 16, 4))):
            n = "a%d_%d" % (i, chunk[0])
            write(p + "/" + n, a, size, [shard(chunk, c, **more)], fill=7,
                  skip=[(1, 2, 0)] if size[0] == 8 else ())
            w = a.copy()
            if size[0] == 8:
                w[8:16, 12:18] = 7
            want[n] = w
    one = numbers("f8", (64, 64))
    write(p + "/one", one, (64, 64), [shard((8, 8), [LITTLE])])
    want["one"] = one
    with Mount(p) as m:
        for n in want:
            same(m / n, want[n], n)
            info = json.loads(read(m / (n + "/info.json")))
            check(info["chunks"][0] in (2, 4, 8), "chunks: %s" % info["chunks"])
    exits(tensorfs("verify", p), 0, "verify")


@case
def consolidated():
    p, a = store("cons.zarr"), numbers("f4", (9, 4))
    group(p + "/g", attributes={"x": 1})
    write(p + "/g/a", a, (4, 4), [LITTLE])
    docs = {}
    for n in ("g", "g/a"):
        with open("%s/%s/zarr.json" % (p, n)) as f:
            docs[n] = json.load(f)
        os.unlink("%s/%s/zarr.json" % (p, n))
    docs["../evil"] = docs["g"]
    group(p, consolidated_metadata={"kind": "inline", "must_understand": False,
                                    "metadata": docs})
    with Mount(p) as m:
        equal(os.listdir(m.path), ["g"], "root")
        same(m / "g/a", a, "a")


@case
def root_is_an_array():
    p, a = os.path.join(work, "root.zarr"), numbers("f4", (9, 4))
    write(p, a, (4, 4), [LITTLE, GZIP])
    with Mount(p) as m:
        same(m / "data", a, "data")


# --- what is wrong --------------------------------------------------------------

def shown(p):
    got = json.loads(exits(tensorfs("cat", p + "/info.json"), 0, p).stdout)
    return got.get("not_shown", "")


@case
def bit_rounding():
    """By both names that it is registered under; decoding it changes nothing."""
    a = numbers("f4", (8, 6))
    for name in ("bitround", "numcodecs.bitround"):
        p = store(name + ".zarr")
        write(p + "/x", a, (4, 3), [codec(name, keepbits=4), LITTLE, ZSTD])
        with Mount(p) as m:
            want = numcodecs.BitRound(4).encode(a).view("f4").reshape(a.shape)
            equal(np.load(m / "x/array.npy").tobytes(), want.tobytes(), name)


@case
def dates():
    """numpy.datetime64 and numpy.timedelta64 of zarr-extensions, as their int64."""
    a = np.arange(-4, 44, dtype="i8").reshape(8, 6)
    p = store("dates.zarr")
    for name, unit, factor, called in (
            ("datetime64", "ns", 1, "datetime64[ns]"), ("timedelta64", "s", 25,
                                                        "timedelta64[25s]"),
            ("datetime64", "generic", 1, "datetime64")):
        write(p + "/d", a, (4, 3), [LITTLE], skip=[(1, 1)], fill=-2 ** 63,
              fill_json="NaT", data_type=codec("numpy." + name, unit=unit, scale_factor=factor))
        want = a.copy()
        want[4:, 3:] = -2 ** 63
        with Mount(p) as m:
            equal(np.load(m / "d/array.npy").tolist(), want.tolist(), called)
            said = json.loads(read(m / "d/info.json"))["stored_type"]
            equal(said, called + ", shown as int64", called)
    write(p + "/d", a, (4, 3), [LITTLE], fill=7,
          data_type=codec("numpy.datetime64", unit="year"))
    check("unit" in shown(p + ":d"), shown(p + ":d"))


@case
def codecs_that_are_unknown():
    """They are called so, wherever they are."""
    a = numbers("f4", (8, 6))
    p = store("unknown.zarr")
    for name in ("numcodecs.quantize", "numcodecs.packbits", "numcodecs.pcodec", "zfp"):
        for codecs in ([codec(name), LITTLE], [LITTLE, codec(name)]):
            write(p + "/x", a, (4, 3), [LITTLE])
            with open(p + "/x/zarr.json") as f:
                doc = json.load(f)
            dump(p + "/x", dict(doc, codecs=codecs))
            said = shown(p + ":x")
            check("'%s' is not supported" % name.replace("numcodecs.", "") in said,
                  said)


@case
def metadata_that_is_wrong():
    p = store("bad.zarr")
    a = numbers("i4", (8, 6))
    sh = shard((2, 3), [LITTLE])

    def with_config(c, **change):
        return dict(c, configuration=dict(c["configuration"], **change))
    for codecs, more, word in [
            ([GZIP], {}, "place"), ([LITTLE, LITTLE], {}, "place"), ([], {}, "codecs"),
            ([transpose(0, 0), LITTLE], {}, "permutation"), ([transpose(0), LITTLE], {}, "perm"),
            ([codec("numcodecs.delta", dtype="<i4"), transpose(1, 0), LITTLE], {}, "behind"),
            ([LITTLE, transpose(1, 0)], {}, "place"), ([codec("bytes")], {}, "endian"),
            ([codec("bytes", endian="up")], {}, "endian"), ([LITTLE, codec("pcodec")], {},
                                                            "pcodec"),
            ([codec("vlen-utf8")], {}, "vlen-utf8"), ([{}], {}, "name"),
            ([sh, GZIP], {}, "behind"), ([transpose(1, 0), sh], {}, "in front"),
            ([shard((2, 3), [shard((1, 1), [LITTLE])])], {}, "shards in shards"),
            ([shard((3, 3), [LITTLE])], {}, "multiple"), ([shard((0, 3), [LITTLE])], {}, "multiple"),
            ([shard((2,), [LITTLE])], {}, "axes"),
            ([with_config(sh, index_codecs=[LITTLE, GZIP])], {}, "gzip"),
            ([with_config(sh, index_codecs=[])], {}, "index_codecs"),
            ([with_config(sh, index_location="middle")], {}, "index_location"),
            ([LITTLE], {"data_type": "string"}, "string"),
            ([LITTLE], {"data_type": {"name": "numpy.datetime64"}}, "datetime64"),
            ([LITTLE], {"data_type": "r12"}, "r12"), ([LITTLE], {"data_type": 4}, "data_type"),
            ([LITTLE], {"chunk_grid": codec("rectangular")}, "rectangular"),
            ([LITTLE], {"chunk_key_encoding": codec("other")}, "other"),
            ([LITTLE], {"storage_transformers": [{"name": "x"}]}, "storage_transformers"),
            ([LITTLE], {"new": {"name": "x"}}, "new"), ([LITTLE], {"fill_value": None}, "fill"),
            ([LITTLE], {"fill_value": "0x00"}, "fill"), ([LITTLE], {"zarr_format": 4}, "version"),
            ([LITTLE], {"shape": [2 ** 63, 6]}, "shape"), ([LITTLE], {"shape": [8]}, "axes"),
            ([LITTLE], {"node_type": "thing"}, "node_type")]:
        write(p + "/bad", a, (4, 3), [LITTLE])
        with open(p + "/bad/zarr.json") as f:
            doc = json.load(f)
        doc.update(codecs=codecs)
        doc.update(more)
        dump(p + "/bad", doc)
        why = shown(p + ":bad")
        check(word in why, "%s %s: %s" % (codecs, more, why))
    doc.update(node_type="array", new={"must_understand": False})
    dump(p + "/bad", doc)
    equal(shown(p + ":bad"), "", "must_understand")


@case
def shards_that_are_wrong():
    a = numbers("i4", (8, 8))
    p = os.path.join(work, "wrong.zarr")
    key = p + "/c/0/0"

    def put(b):
        with open(key, "wb") as f:
            f.write(b)
    for codecs, index in (([LITTLE], (LITTLE, CRC)), ([LITTLE, GZIP], (LITTLE,))):
        checked = len(index) == 2
        write(p, a, (8, 8), [shard((4, 4), codecs, index)])
        with open(key, "rb") as f:
            good = f.read()
        n = 4 * 16 + 4 * checked
        body, index = good[:-n], good[len(good) - n:]

        def moved(pos, size):
            i = struct.pack("<QQ", pos, size) + index[16:64]
            return body + (crc(i) if checked else i)
        bad = [b"", good[:10], good[:-1], moved(len(good), 64), moved(2 ** 63, 2 ** 63),
               moved(0, 2 ** 64 - 1), moved(2 ** 64 - 2, 64), moved(3, 63), moved(3, 0)]
        if checked:
            bad.append(body + bytes([index[0] ^ 1]) + index[1:])
        for i, b in enumerate(bad):
            put(b)
            with Mount(p) as m:
                fails_with((errno.EBADMSG, errno.EIO),
                           lambda: read(m / "data/samples/000000.npy"), "bad %d" % i)
            exits(tensorfs("verify", p), range(1, 9), "verify %d" % i)
        put(good)
        with Mount(p) as m:
            same(m / "data", a, "good")


work = lib.setup()
lib.main()
