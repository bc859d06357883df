# SPDX-License-Identifier: BSD-2-Clause
"""Types of elements and of attributes.

Numbers that h5py cannot name (3 bytes, bfloat16) are stored as raw bytes with
the file's own type as memory type, and their values known here.
"""
import json
import os

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t

from checks import check, equal, fails_with, pread, read, same_bytes
from expect import (Want, ZooFile, anything, like, little, near, npy, one_of)
from zoo import numbers
from zoo_filters import smooth
from zoo_layouts import mkzoo, without_mkzoo

PRIMITIVE = ["i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2",
             "<f4", "<f8", "<f16", "<c8", "<c16", "<c32", "?", ">i2", ">u2",
             ">i4", ">u4", ">i8", ">u8", ">f2", ">f4", ">f8", ">c8", ">c16"]
STORED = {"contiguous": {}, "chunked": dict(chunks=(3, 2)),
          "gz_shuffle": dict(chunks=(3, 2), compression="gzip", shuffle=True)}
UTF8 = h5py.string_dtype("utf-8")
ASCII = h5py.string_dtype("ascii")


def tag(t):
    return t.strip("<>").replace("?", "bool") + "_be" * (t[0] == ">")


def values(shape, t):
    if t in ("<f16", "<c32"):
        v = numbers(shape, "<f8").astype("<f16") / 3
        return v if t == "<f16" else (v[..., None] * [1, -2]).astype(
            "<f16").view("<c32")[..., 0]
    return numbers(shape, t)


def primitives(f, z):
    for t in PRIMITIVE:
        for how, kw in STORED.items():
            n = "number/%s/%s" % (tag(t), how)
            v = values((7, 5), t)
            f.create_dataset(n, data=v, **kw)
            z[n] = Want(value=v, chunks=kw.get("chunks"))


def raw(f, name, t, data, shape, chunks=None, deflate=False):
    """Store bytes as they are, whatever the type."""
    p = h5p.create(h5p.DATASET_CREATE)
    if chunks:
        p.set_chunk(chunks)
    if deflate:
        p.set_deflate(4)
    lcpl = h5p.create(h5p.LINK_CREATE)
    lcpl.set_create_intermediate_group(True)
    d = h5d.create(f.id, name.encode(), t, h5s.create_simple(shape), p, lcpl)
    if data is not None:
        d.write(h5s.ALL, h5s.ALL, data, mtype=t)
    return d


def sized(base, size, precision=None, offset=0):
    t = base.copy()
    t.set_precision(precision or size * 8)
    if size != t.get_size():
        t.set_size(size)
    t.set_offset(offset)
    return t


def custom_float(size, sign, epos, esize, mpos, msize, bias, big=False):
    t = (h5t.IEEE_F64BE if big else h5t.IEEE_F64LE).copy()
    t.set_fields(sign, epos, esize, mpos, msize)
    t.set_precision(epos + esize + 1)
    t.set_size(size)
    t.set_ebias(bias)
    return t


def odd_integers(f, z):
    """Widths that numpy has not: the value in the next native size."""
    table = {
        "i3": (sized(h5t.STD_I32LE, 3), "<i4", 24, 0, 3, "little"),
        "u3": (sized(h5t.STD_U32LE, 3), "<u4", 24, 0, 3, "little"),
        "i3_be": (sized(h5t.STD_I32BE, 3), "<i4", 24, 0, 3, "big"),
        "u5": (sized(h5t.STD_U64LE, 5), "<u8", 40, 0, 5, "little"),
        "i6_be": (sized(h5t.STD_I64BE, 6), "<i8", 48, 0, 6, "big"),
        "i7": (sized(h5t.STD_I64LE, 7), "<i8", 56, 0, 7, "little"),
        "u4_12_5": (sized(h5t.STD_U32LE, 4, 12, 5), "<u4", 12, 5, 4, "little"),
        "i2_10_0": (sized(h5t.STD_I16LE, 2, 10), "<i2", 10, 0, 2, "little"),
        "i4_20_7_be": (sized(h5t.STD_I32BE, 4, 20, 7), "<i4", 20, 7, 4,
                       "big"),
        "u1_4_2": (sized(h5t.STD_U8LE, 1, 4, 2), "u1", 4, 2, 1, "little"),
    }
    for name, (t, native, bits, at, size, order) in table.items():
        v = numbers((6, 4), "<u8", 21).ravel()
        v = [int(x) & ((1 << bits) - 1) for x in v]
        data = b"".join((x << at).to_bytes(size, order) for x in v)
        if native[-2] == "i":
            v = [x - (1 << bits) if x >> (bits - 1) else x for x in v]
        v = np.array(v, native).reshape(6, 4)
        for how, chunks in (("contiguous", None), ("chunked", (4, 3))):
            n = "odd/%s/%s" % (name, how)
            packed = np.frombuffer(data, "V%d" % size).reshape(6, 4)
            d = raw(f, n, t, packed, (6, 4), chunks, bool(chunks))
            got = np.zeros((6, 4), native)
            d.read(h5s.ALL, h5s.ALL, got, mtype=h5t.py_create(got.dtype))
            check((got == v).all(), "the zoo is wrong: %s" % n)
            z[n] = Want(value=v, chunks=chunks, readable=False)


def odd_floats(f, z):
    bits = np.array([0x3f80, 0x4049, 0xc2f7, 0x0001, 0x7f80, 0xff80, 0x7fc1,
                     0x8000], "<u2").reshape(4, 2)
    t = custom_float(2, 15, 7, 8, 0, 7, 127)
    says = {"type": like("bfloat16")}
    for n, chunks in (("bfloat16/contiguous", None), ("bfloat16/gz", (3, 2))):
        raw(f, n, t, bits, bits.shape, chunks, bool(chunks))
        z[n] = Want(value=bits, readable=False, chunks=chunks, info=says)
    raw(f, "bfloat16/be", custom_float(2, 15, 7, 8, 0, 7, 127, True),
        bits.byteswap(), bits.shape)
    z["bfloat16/be"] = Want(value=bits, readable=False, info=says)
    # Other floats: no numpy type.  What is right is not said; no crash is.
    eight = np.arange(8, dtype="u1").reshape(4, 2)
    raw(f, "float/fp8_e4m3", custom_float(1, 7, 3, 4, 0, 3, 7), eight, (4, 2))
    three = np.frombuffer(bytes(range(24)), "V3").reshape(4, 2)
    raw(f, "float/three", custom_float(3, 23, 16, 7, 0, 16, 63), three, (4, 2))
    z["float/fp8_e4m3"] = Want("any")
    z["float/three"] = Want("any")


def enums(f, z):
    def judge(got):
        return "RED" in json.dumps(got) and "BLUE" in json.dumps(got)
    for t in ("i1", "<i4", ">i2", "<u8"):
        e = h5py.enum_dtype({"RED": 0, "GREEN": 1, "BLUE": 42}, t)
        v = np.array([[0, 1, 42], [42, 0, 1]], t)
        n = "enum/" + tag(t)
        f.create_dataset(n, data=v, dtype=e)
        z[n] = Want(value=v)

        def run(m, _zf, n=n):
            check(judge(json.loads(read(m / (n + "/info.json")))),
                  "info.json does not have the names")
        z[n + "/info.json"] = Want("custom", run=run)
    v = numbers((9, 4), "?")
    f.create_dataset("enum/bool_gz", data=v, chunks=(4, 4),
                     compression="gzip")
    z["enum/bool_gz"] = Want(value=v, chunks=(4, 4))


def strings(f, z):
    words = ["", "a", "gr\u00fcn", "\u6f22\u5b57", "two words", "x" * 3000,
             "a\nb\\n", " lead", "trail ", "\ttab"]
    v = np.array(words, object)
    for n, kw in (("vlen", {}), ("vlen_gz", dict(chunks=(4,),
                                                 compression="gzip"))):
        f.create_dataset("string/" + n, data=v, dtype=UTF8, **kw)
        z["string/" + n] = Want("text", v)
    two = v[:6].reshape(2, 3)
    f.create_dataset("string/vlen_2d", data=two, dtype=UTF8)
    z["string/vlen_2d"] = Want("text", two)
    plain = np.array(["one", "", "three"], object)
    f.create_dataset("string/vlen_ascii", data=plain, dtype=ASCII)
    z["string/vlen_ascii"] = Want("text", plain)
    f.create_dataset("string/scalar", data="just one", dtype=UTF8)
    z["string/scalar"] = Want("text", np.array("just one", object))
    f.create_dataset("string/fixed_scalar", data=np.bytes_(b"fixed"))
    z["string/fixed_scalar"] = Want("text", np.array("fixed", object))
    f.create_dataset("string/never_written", (5,), UTF8, chunks=(2,))
    z["string/never_written"] = Want("text", np.array([""] * 5, object))
    f.create_dataset("string/empty", (0,), UTF8, maxshape=(None,))
    z["string/empty"] = Want("text", np.zeros((0,), object))
    bad = np.array([b"caf\xe9", b"ok"], object)
    f.create_dataset("string/not_utf8", data=bad, dtype=ASCII)
    z["string/not_utf8"] = Want("text", np.array(
        [b.decode("utf-8", "surrogateescape") for b in bad], object))
    fixed = ["ab", "", "exactly8", "u\u00fc", "in side"]
    for pad, stp, byte in (("nullterm", h5t.STR_NULLTERM, b"\0"),
                           ("nullpad", h5t.STR_NULLPAD, b"\0"),
                           ("spacepad", h5t.STR_SPACEPAD, b" ")):
        size = 9 if pad == "nullterm" else 8
        for cset in ("ascii", "utf8"):
            t = h5t.C_S1.copy()
            t.set_size(size)
            t.set_strpad(stp)
            t.set_cset(h5t.CSET_UTF8 if cset == "utf8" else h5t.CSET_ASCII)
            data = np.frombuffer(b"".join(s.encode().ljust(size, byte)
                                          for s in fixed), "V%d" % size)
            for how, chunks in (("", None), ("_gz", (2,))):
                n = "string/%s_%s%s" % (pad, cset, how)
                raw(f, n, t, data, (5,), chunks, bool(chunks))
                z[n] = Want("text", np.array(fixed, object), readable=False)
    t = h5t.C_S1.copy()  # what follows the terminator is nobody's
    t.set_size(6)
    t.set_strpad(h5t.STR_NULLTERM)
    raw(f, "string/after_null", t, np.frombuffer(b"ab\0junXYZ\0zz", "V6"),
        (2,))
    z["string/after_null"] = Want("text", np.array(["ab", "XYZ"], object),
                                  readable=False)


def opaque(f, z):
    for size, chunks in ((5, None), (16, (2,)), (1, None)):
        t = h5t.create(h5t.OPAQUE, size)
        t.set_tag(b"of %d" % size)
        v = np.frombuffer(bytes(range(7, 7 + 4 * size)), "V%d" % size)
        n = "opaque/v%d" % size
        raw(f, n, t, v, (4,), chunks, bool(chunks))
        z[n] = Want(value=v, readable=False, chunks=chunks)
    v = np.array([1, -5, 10**18], "M8[ns]")
    f.create_dataset("opaque/datetime64", data=v.astype(
        h5py.opaque_dtype(v.dtype)))
    z["opaque/datetime64"] = Want(value=v, also=[v.view("V8")])
    for t, base in (("u1", h5t.STD_B8LE), ("<u2", h5t.STD_B16LE),
                    ("<u4", h5t.STD_B32BE), ("<u8", h5t.STD_B64LE)):
        v = numbers((5, 3), t)
        n = "bitfield/" + tag(t)
        raw(f, n, base, v.byteswap() if "BE" in str(base) or t == "<u4" else v,
            v.shape)
        z[n] = Want(value=v, readable=False)


def arrays(f, z):
    for name, base, dims in (("f4_3", "<f4", (3,)), ("i2be_2x4", ">i2",
                                                     (2, 4)),
                             ("nested_bool", "?", (2, 1, 3)),
                             ("string", "S4", (2,))):
        for how, kw in (("contiguous", {}), ("gz", dict(
                chunks=(2, 5), compression="gzip"))):
            n = "array/%s/%s" % (name, how)
            f.create_dataset(n, (5, 6), np.dtype((base, dims)), **kw)
            v = (numbers((5, 6) + dims, base) if base != "S4" else
                 np.array([b"ab", b"", b"four"] * 20, "S4").reshape(5, 6, 2))
            f[n][...] = v
            c = kw.get("chunks") and kw["chunks"] + dims
            if base == "S4":
                z[n] = Want("text", words_of(v))
            else:
                z[n] = Want(value=v, chunks=c)
    f.create_dataset("array/scalar", (), np.dtype(("<f8", (3,))))
    f["array/scalar"][...] = [1.5, 2.5, -1]
    z["array/scalar"] = Want(value=np.array([1.5, 2.5, -1]))
    for how, kw in ELEMENTS.items():
        array_elements(f, z, how, kw)


ELEMENTS = {"contiguous": {}, "scalar": {}, "compact": {}, "unwritten": {},
            "chunked": dict(chunks=(2, 3)),
            "gz": dict(chunks=(4, 3), compression="gzip", shuffle=True),
            "lzf_sum": dict(chunks=(1, 5), compression="lzf",
                            fletcher32=True)}


def words_of(v):
    """An array of bytes, as text."""
    return np.array([x.decode() for x in v.ravel().tolist()],
                    object).reshape(v.shape)


def array_elements(f, z, how, kw):
    """Elements that are arrays of strings and of structures, stored in each
    way: further axes, and fields of these."""
    shape = () if how == "scalar" else (4, 5)
    for name, base, dims in (
            ("strings", h5py.string_dtype("utf-8", 6), (3,)),
            ("more_strings", np.dtype("S3"), (2, 1, 2)),
            ("structures", INNER, (3,)),
            ("of_many", STRUCTS["array_of_struct"], (2, 2)),
            ("of_arrays", STRUCTS["arrays_of_arrays"], (2,))):
        n = "elements/%s/%s" % (name, how)
        t = h5t.array_create(h5t.py_create(base, logical=True), dims)
        p = h5p.create(h5p.DATASET_CREATE)
        if how == "compact":
            p.set_layout(h5d.COMPACT)
        elif kw:
            p = h5py.File("-", "w", driver="core", backing_store=False)[
                "/"].create_dataset("x", shape, base, **kw).id.get_create_plist()
        lcpl = h5p.create(h5p.LINK_CREATE)
        lcpl.set_create_intermediate_group(True)
        d = h5d.create(f.id, n.encode(), t, h5s.create_simple(shape) if shape
                       else h5s.create(h5s.SCALAR), p, lcpl)
        v = np.zeros(shape + dims, base)
        if how != "unwritten":
            if base.names:
                v[...] = fill_struct(base, v.shape)
            else:
                words = ["\u00fcml", "", "abc", "x y", "q", "\\", "r\ns"]
                v.reshape(-1)[:] = [words[i % 7 if base.itemsize > 3 else
                                          2 + i % 5].encode()
                                    for i in range(v.size)]
            d.write(h5s.ALL, h5s.ALL, v, mtype=t)
        if base.names:
            z[n] = Want(value=v, chunks=kw.get("chunks") and
                        kw["chunks"] + dims, blocks=how != "unwritten")
        else:
            z[n] = Want("text", words_of(v))


def deep_samples(path):
    """sample-axes that reach into the elements."""
    z = {}
    with h5py.File(path, "w") as f:
        t = np.dtype(("S3", (2, 3)))
        f.create_dataset("words", (4,), t, chunks=(2,))
        v = np.array([b"%03d" % i for i in range(24)]).reshape(4, 2, 3)
        f["words"][...] = v
        f.create_dataset("pairs", (4,), np.dtype((INNER, (2, 3))))
        p = fill_struct(INNER, (4, 2, 3))
        raw_write(f["pairs"], p)

    def words(m, _zf):
        for i, j in np.ndindex(4, 2):
            same_bytes(read(m / ("words/samples/%06d/%06d.txt" % (i, j))),
                       b"".join(s + b"\n" for s in v[i, j].tolist()), "text")
            same_bytes(read(m / ("pairs/samples/%06d/%06d.npy" % (i, j))),
                       npy(p[i, j]), "structures")
            same_bytes(read(m / ("pairs/fields/q/samples/%06d/%06d.npy" %
                                 (i, j))), npy(p["q"][i, j]), "field")
    z["samples"] = Want("custom", run=words)
    return ZooFile("deep_samples", path, z, ["-o", "sample-axes=2"])


INNER = np.dtype([("p", "<f4"), ("q", "i1", (2,))])
STRUCTS = {
    "packed": np.dtype([("x", "<i4"), ("y", "<f8")]),
    "aligned": np.dtype([("a", "i1"), ("b", "<f8"), ("c", "<i2")],
                        align=True),
    "gaps": np.dtype({"names": ["a", "b"], "formats": ["<u2", "<f4"],
                      "offsets": [3, 9], "itemsize": 20}),
    "big_endian": np.dtype([("a", ">i4"), ("b", ">f8"), ("c", "<i2")]),
    "strings": np.dtype([("name", "S7"), ("n", "<u8")]),
    "subarrays": np.dtype([("v", "<f4", (3,)), ("m", ">i2", (2, 2))]),
    "nested": np.dtype([("id", "<i8"), ("A", INNER), ("ok", "?")]),
    "deep": np.dtype([("l1", [("l2", [("l3", "<i4"), ("s", "S3")]),
                              ("w", "<u2")])]),
    "array_of_struct": np.dtype([("k", "u1"), ("pairs", INNER, (2,))]),
    "array_of_big_struct": np.dtype([
        ("m", [("a", ">f8"), ("b", ">u2", (2,)), ("c", "u1")], (2, 3)),
        ("n", ">i4")]),
    "arrays_of_arrays": np.dtype([
        ("k", "i1"), ("o", [("j", "<u2"), ("i", [
            ("s", "S3"), ("t", "S2", (2,)), ("v", "<i4", (2,))], (3,))],
            (2, 1))]),
    "complex": np.dtype([("z", "<c16"), ("w", "<c8", (2,)), ("h", "<f2")]),
    "half_complex": np.dtype([("r", "<f2"), ("i", "<f2")]),
    "one": np.dtype([("only", "<f4")]),
    "odd_names": np.dtype([("a b", "<i2"), ("\u03b1", "<f4"), (".", "<i4"),
                           ("x/y", "<i4"), ("%41", "u1")]),
}


def fill_struct(t, shape, seed=1):
    """Values for every member."""
    v = np.zeros(shape, t)
    for i, n in enumerate(t.names):
        m = v[n]
        if m.dtype.names:
            m[...] = fill_struct(m.dtype, m.shape, seed + i)
        elif m.dtype.kind == "S":
            m[...] = np.array([b"ab", b"", b"xyz"] * m.size,
                              m.dtype)[:m.size].reshape(m.shape)
        else:
            m[...] = numbers(m.shape, m.dtype, seed + i)
    return v


def compounds(f, z):
    for name, t in STRUCTS.items():
        for how, shape, kw in (
                ("contiguous", (7, 3), {}),
                ("gz", (7, 3), dict(chunks=(3, 2), compression="gzip")),
                ("line", (9,), dict(chunks=(4,), shuffle=True)),
                ("scalar", (), {})):
            n = "compound/%s/%s" % (name, how)
            v = fill_struct(t, shape)
            d = f.create_dataset(n, shape, t, **kw)
            raw_write(d, v)
            z[n] = Want(value=v, chunks=kw.get("chunks"), readable=name not in
                        ("half_complex",))
    e = h5py.enum_dtype({"LO": 0, "HI": 9}, "i1")
    t = np.dtype([("level", e), ("x", "<f4")])
    v = np.zeros(4, t)
    v["level"], v["x"] = [0, 9, 9, 0], [1, 2, 3, 4]
    f.create_dataset("compound/enum_member", data=v)
    z["compound/enum_member"] = Want(value=v)


def converted(f, z):
    """Structures with members that libhdf5 has to convert."""
    three = sized(h5t.STD_I32LE, 3, 24)
    inner = h5t.create(h5t.COMPOUND, 6)
    inner.insert(b"p", 0, three)
    inner.insert(b"s", 3, h5t.py_create(np.dtype("S3")))
    t = h5t.create(h5t.COMPOUND, 24)
    t.insert(b"a", 1, three)
    t.insert(b"many", 4, h5t.array_create(inner, (2,)))
    t.insert(b"f", 18, h5t.IEEE_F32BE)
    v = np.zeros((5, 3), np.dtype([("a", "<i4"), ("many", [
        ("p", "<i4"), ("s", "S3")], (2,)), ("f", ">f4")]))
    v["a"] = np.arange(15).reshape(5, 3) * 9000 - 70000
    v["many"]["p"] = np.arange(30).reshape(5, 3, 2) * -9000
    v["many"]["s"] = [b"ab", b"xyz"]
    v["f"] = np.arange(15).reshape(5, 3) / 4
    for how, chunks in (("contiguous", None), ("gz", (2, 3))):
        n = "converted/" + how
        raw(f, n, t, None, (5, 3), chunks, bool(chunks))
        f[n].id.write(h5s.ALL, h5s.ALL, v)
        z[n] = Want(value=v, chunks=chunks, readable=False)


def paddings(f, z):
    """Strings in structures that end with spaces, or behind a NUL."""
    for name, pad in (("nuls", h5t.STR_NULLPAD), ("after_nul",
                      h5t.STR_NULLTERM), ("spaces", h5t.STR_SPACEPAD)):
        s = h5t.C_S1.copy()
        s.set_size(5)
        s.set_strpad(pad)
        inner = h5t.create(h5t.COMPOUND, 7)
        inner.insert(b"s", 0, s)
        inner.insert(b"i", 5, h5t.STD_I16BE)
        t = h5t.create(h5t.COMPOUND, 40)
        t.insert(b"one", 1, s)
        t.insert(b"two", 6, h5t.array_create(s, (2,)))
        t.insert(b"many", 16, h5t.array_create(inner, (3,)))
        t.insert(b"n", 37, h5t.STD_I16LE)
        words = [b"ab   ", b"abcde", b"     ", b"a\0bc ", b"\0\0x\0\0",
                 b" x \0 ", b"z\0\0\0\0"]
        data = b"".join(b"?" + words[i % 7] + words[i % 6] + words[i % 5] +
                        b"".join(words[(i + k) % 7] + b"\1\2"
                                 for k in range(3)) + b"\7\0?"
                        for i in range(20))
        for how, chunks in (("contiguous", None), ("gz", (3,))):
            n = "padded/%s/%s" % (name, how)
            raw(f, n, t, np.frombuffer(data, "u1"), (20,), chunks,
                bool(chunks))
            z[n] = Want(chunks=chunks)


def raw_write(d, v):
    """Write without h5py's reading of the type (it knows no complex half)."""
    d.id.write(h5s.ALL, h5s.ALL, v, mtype=d.id.get_type())


def obj(values, shape=None):
    out = np.empty(len(values), object)
    out[:] = values
    return out.reshape(shape) if shape else out


def ragged(f, z):
    for t in ("<i4", "<f8", "u1", ">i2", "<f2"):
        v = obj([numbers((n,), t, n) for n in (3, 0, 1, 40, 2, 700)])
        for how, kw in (("contiguous", {}), ("gz", dict(
                chunks=(4,), compression="gzip"))):
            n = "ragged/%s/%s" % (tag(t), how)
            d = f.create_dataset(n, (6,), h5py.vlen_dtype(np.dtype(t)), **kw)
            for i, x in enumerate(v):  # h5py does not look at x's order
                d[i] = little(x)
            z[n] = Want("ragged", v, readable=t[0] != ">")
    v = obj([np.arange(n, dtype="<i4") for n in (1, 2, 0, 4, 5, 6)], (2, 3))
    d = f.create_dataset("ragged/two_axes", (2, 3), h5py.vlen_dtype("<i4"))
    for i in range(2):
        for k in range(3):
            d[i, k] = v[i, k]
    z["ragged/two_axes"] = Want("ragged", v)
    d = f.create_dataset("ragged/never_written", (4,),
                         h5py.vlen_dtype("<f4"), chunks=(2,))
    d[1] = np.array([1, 2], "<f4")
    z["ragged/never_written"] = Want("ragged", obj(
        [np.zeros(n, "<f4") if n == 0 else np.array([1, 2], "<f4")
         for n in (0, 2, 0, 0)]))
    big = obj([smooth((n,), "<f8", n) for n in (200000, 3, 70000)])
    d = f.create_dataset("ragged/large", (3,), h5py.vlen_dtype("<f8"))
    for i, x in enumerate(big):
        d[i] = x
    z["ragged/large"] = Want("ragged", big)

    def sizes(m, _zf):  # stat before anything is read
        for i, x in enumerate(big):
            p = m / ("ragged/large/samples/%06d.npy" % i)
            equal(os.stat(p).st_size, len(npy(x)), "st_size")
            same_bytes(pread(p, 100, len(npy(x)) - 50), npy(x)[-50:], "end")
    z["ragged/large/sizes"] = Want("custom", run=sizes)


def references(f, z):
    f["refs/group/target"] = np.arange(20).reshape(4, 5)
    t = f["refs/group/target"]
    z["refs/group/target"] = Want()
    v = np.array([t.ref, f["refs/group"].ref, h5py.Reference(), f.ref],
                 h5py.ref_dtype)
    f.create_dataset("refs/object", data=v, dtype=h5py.ref_dtype)
    z["refs/object"] = Want("text", obj(["/refs/group/target", "/refs/group",
                                         "", "/"]))
    f.create_dataset("refs/object_gz", data=v[[0, 0, 1]], chunks=(2,),
                     dtype=h5py.ref_dtype, compression="gzip")
    z["refs/object_gz"] = Want("text", obj(["/refs/group/target"] * 2 +
                                           ["/refs/group"]))
    r = np.array([t.regionref[1:3, 0:2], h5py.RegionReference(),
                  t.regionref[:, 4]], h5py.regionref_dtype)
    f.create_dataset("refs/region", data=r, dtype=h5py.regionref_dtype)
    z["refs/region"] = Want("text", obj(["/refs/group/target", "",
                                         "/refs/group/target"]), starts=True,
                            readable=False)
    f.create_dataset("refs/never_written", (3,), h5py.ref_dtype)
    z["refs/never_written"] = Want("text", obj([""] * 3))
    d = f["refs/group"].create_dataset("gone", data=1)
    f.create_dataset("refs/to_deleted", data=np.array([t.ref, d.ref],
                                                      h5py.ref_dtype))
    del f["refs/group/gone"]
    z["refs/to_deleted"] = Want("any")


def compound_text(f, z):
    """Members of variable length: lines of JSON, and the fields."""
    f["mixed/there"] = np.arange(3)
    r = f["mixed/there"].ref
    t = np.dtype([("n", "<i4"), ("s", UTF8), ("f", "S4"), ("x", "<f8", (2,)),
                  ("b", "?")])
    v = np.zeros(3, t)
    v["n"], v["s"] = [1, -2, 3], ["one", "z\u00fc\n\"q\"", ""]
    v["f"], v["x"], v["b"] = [b"ab", b"", b"full"], [[1, 2.5], [0, -1],
                                                    [3, 4]], [1, 0, 1]
    for how, kw in (("strings", {}), ("strings_gz", dict(
            chunks=(2,), compression="gzip"))):
        f.create_dataset("mixed/" + how, data=v, **kw)
        z["mixed/" + how] = Want("json", obj([
            {"n": int(x["n"]), "s": x["s"], "f": x["f"].decode(),
             "x": x["x"].tolist(), "b": bool(x["b"])} for x in v]), fields={
            "n": little(v["n"]), "s": Want("text", obj(list(v["s"]))),
            "f": Want("text", obj(["ab", "", "full"])),
            "x": little(v["x"]), "b": little(v["b"])})
    t = np.dtype([("r", h5py.ref_dtype), ("k", ">i2")])
    v = np.zeros(2, t)
    v["r"], v["k"] = [r, h5py.Reference()], [5, -6]
    f.create_dataset("mixed/reference", data=v, dtype=t)
    z["mixed/reference"] = Want("json", obj([
        {"r": "/mixed/there", "k": 5},
        {"r": one_of("", None), "k": -6}]), fields={
            "r": Want("text", obj(["/mixed/there", ""])),
            "k": little(v["k"])})


ATTRS = {
    "int": (np.int32(-5), -5), "uint64": (np.uint64(2**64 - 1), one_of(
        2**64 - 1, str(2**64 - 1))),
    "int64": (np.int64(-2**63), -2**63), "float": (2.5, 2.5),
    "float32": (np.float32(0.1), near(np.float32(0.1))),
    "half": (np.float16(1.5), 1.5),
    "big_endian": (np.array([1, 256], ">i4"), [1, 256]),
    "array": (np.arange(6).reshape(2, 3), [[0, 1, 2], [3, 4, 5]]),
    "floats": (np.array([1.5, -0.25]), [1.5, -0.25]),
    "nan": (np.array([np.nan, np.inf]), anything),
    "bool": (True, True), "bools": (np.array([True, False]), [True, False]),
    "string": ("gr\u00fcn", "gr\u00fcn"), "empty_string": ("", ""),
    "bytes": (np.bytes_(b"fixed"), "fixed"),
    "strings": (np.array(["a", "", "\u6f22"], object), ["a", "", "\u6f22"]),
    "fixed_strings": (np.array([b"ab", b"c"], "S3"), ["ab", "c"]),
    "quotes": ("a\"b\\\n\tc", "a\"b\\\n\tc"),
    "complex": (1 + 2j, anything), "null": (h5py.Empty("f4"), None),
    "zero_length": (np.zeros((0,), "f4"), []),
    "one": (np.array([7]), [7]),
    "compound": (np.array((3, 1.5, b"x"), [("a", "i4"), ("b", "f8"),
                                           ("c", "S2")]),
                 {"a": 3, "b": 1.5, "c": "x"}),
    "compounds": (np.array([(1, 2)], [("a", "i4"), ("b", "f8")]),
                  [{"a": 1, "b": 2}]),
    "opaque": (np.frombuffer(b"abc", "V3")[0], anything),
    "dense_large": (np.arange(20000), list(range(20000))),
    "\u03b1 name": (1, 1), "": (None, None),
}


def attributes(f, z, large=True):
    """The same attributes on a dataset, on a group and on the root."""
    f["attrs/data"] = np.arange(4)
    f["attrs/few"] = np.arange(4)
    f["attrs/few"].attrs["units"] = "counts"
    e = h5py.enum_dtype({"LO": 0, "HI": 9}, "i1")
    rules = {}
    for name, (v, rule) in ATTRS.items():
        if not name:
            continue
        for o in (f["attrs/data"], f["attrs"]):
            if name == "dense_large" and (o.name == "/attrs" or not large):
                continue  # above 64 KiB: the newer format only, no xattr
            o.attrs[name] = v
        rules[name] = rule
    for o in (f["attrs/data"], f["attrs"]):
        o.attrs.create("enum", 9, dtype=e)
        o.attrs["reference"] = f["attrs/few"].ref
        o.attrs["no_reference"] = h5py.Reference()
        o.attrs["references"] = np.array([f["attrs"].ref, f.ref],
                                         h5py.ref_dtype)
        o.attrs["region"] = f["attrs/data"].regionref[1:3]
        o.attrs.create("ragged", obj([np.array([1, 2]), np.array([3])]),
                       dtype=h5py.vlen_dtype("<i8"))
    rules.update(enum=one_of("HI", 9), reference="/attrs/few",
                 no_reference=one_of("", None),
                 references=["/attrs", "/"], region=lambda g: g["path"] == "/attrs/data",
                 ragged=[[1, 2], [3]])
    z["attrs/data"] = Want(attrs={k: v for k, v in rules.items()
                                  if k != "dense_large"})
    z["attrs/few"] = Want(attrs={"units": "counts"})
    rest = {k: v for k, v in rules.items() if k != "dense_large"}
    z["attrs"] = Want("tree", names=["data", "few"], attrs=rest)
    f.attrs["title"] = "the zoo"
    z["."] = Want("tree", attrs={"title": "the zoo"})

    def many(m, _zf):
        j = json.loads(read(m / "attrs/data/info.json"))
        equal(j["attributes"]["dense_large"], list(range(20000)), "160 KB")
    if large:
        z["attrs/large"] = Want("custom", run=many)


def no_group_info(z):
    def run(m, _zf):
        fails_with(61, lambda: os.getxattr(m / "attrs", "user.nope"),
                   "an unknown xattr of a group")
    z["attrs/unknown"] = Want("custom", run=run)


def source_order(path):
    """dtype-order=source: bytes as they are stored."""
    z = {}
    with h5py.File(path, "w") as f:
        for t in (">i2", ">u4", ">f8", ">c8", "<i4", ">f2"):
            v = numbers((6, 5), t)
            f.create_dataset(tag(t), data=v, chunks=(4, 3))
            z[tag(t)] = Want(value=v, chunks=(4, 3))
        for name in ("big_endian", "subarrays", "nested",
                     "array_of_big_struct"):
            v = fill_struct(STRUCTS[name], (5,))
            f.create_dataset(name, data=v)
            z[name] = Want(value=v)
    for w in z.values():
        w.source_order = True  # no conversion
    return ZooFile("source_order", path, z, ["-o", "dtype-order=source"])


def ragged_arrays(f, z):
    """Arrays of what has no length of its own, in elements and members."""
    seq = [np.arange(n, dtype="<i4") * 7 for n in (3, 0, 1, 2, 5, 4)]
    vlen = h5t.vlen_create(h5t.STD_I32LE)
    for how, kw in (("contiguous", {}), ("gz", dict(chunks=(2,),
                                                    compression="gzip"))):
        n = "sequences/" + how
        d = f.create_dataset(n, (3,), h5t.array_create(vlen, (2,)), **kw)
        d[...] = obj(seq, (3, 2))
        z[n] = Want("ragged", obj(seq, (3, 2)))
    t = np.dtype([("id", "<i2"), ("names", UTF8, (2,)),
                  ("at", h5py.ref_dtype, (2,)), ("more", [
                      ("w", "S3", (2,)), ("v", "<f4"), ("s", UTF8),
                      ("q", h5py.vlen_dtype("<i4"), (2,))], (3,))])
    f["target"] = 1
    v = np.zeros(2, t)
    for i in range(2):
        v[i]["id"] = i - 7
        v[i]["names"][:] = ["n%d" % i, ""]
        v[i]["at"][:] = [f["target"].ref, f.ref]
        v[i]["more"]["w"] = [[b"ab", b""], [b"xyz", b"q"], [b"", b"1"]]
        v[i]["more"]["v"] = np.arange(3) + i
        v[i]["more"]["s"] = ["x", "yy", "z" * i]
        v[i]["more"]["q"][:] = obj(seq, (3, 2))
    f.create_dataset("members", data=v, dtype=t)
    line = [{"id": i - 7, "names": ["n%d" % i, ""], "at": ["/target", "/"],
             "more": [{"w": w, "v": float(k + i), "s": s,
                       "q": [q.tolist() for q in seq[2 * k:2 * k + 2]]}
                      for k, (w, s) in
                      enumerate(zip([["ab", ""], ["xyz", "q"], ["", "1"]],
                                    ["x", "yy", "z" * i]))]}
            for i in range(2)]
    z["members"] = Want("json", obj(line), fields={
        "id": v["id"], "names": Want("text", v["names"]),
        "at": Want("text", obj(["/target", "/"] * 2, (2, 2))),
        "more": Want("json", obj([m for x in line for m in x["more"]], (2, 3)),
                     fields={"w": Want("text", words_of(v["more"]["w"])),
                             "v": v["more"]["v"],
                             "s": Want("text", v["more"]["s"]),
                             "q": Want("ragged", obj(seq * 2, (2, 3, 2)))})})


def from_c(top):
    """What mkzoo wrote; the values are those of its comments."""
    if not mkzoo(top):
        return [without_mkzoo("c")]
    seq = [np.arange(n, dtype="<i4") * 10 for n in (2, 0, 3)]
    lines = [{"id": i, "v": s.tolist(), "r": "/target",
              "w": lambda g: g["path"] == "/target"}
             for i, s in enumerate(seq)]
    st = np.dtype([("a", "<i4"), ("b", "<f8")])
    vst = obj([np.array([(k, k / 2) for k in range(n)], st)
               for n in (1, 3, 0)])
    z = {"mixed": Want("json", obj(lines), fields={
            "id": np.arange(3, dtype="<i4"), "v": Want("ragged", obj(seq)),
            "r": Want("text", obj(["/target"] * 3)),
            "w": Want("text", obj(["/target"] * 3), starts=True)}),
         "ragged_of_compound": Want("ragged", vst, readable=False),
         "ragged_of_array": Want("any"), "ragged_of_strings": Want("any"),
         "ragged_of_ragged": Want("any"),
         "time": Want(value=np.zeros(2, "<i4"), readable=False),
         "user_link": Want("hidden", words=["links of its kind"]),
         "array_of_vlen": Want("text", obj(["p", "", "q", "rr"], (2, 2))),
         "array_of_references": Want("text", obj(["/target"] * 4, (2, 2))),
         "committed": Want(value=np.arange(4, dtype="<i2")),
         "odd_attributes": Want(value=np.arange(4, dtype="<i2"), attrs={
             "bits": one_of(5, "5", "0x0005"), "int3": -2,
             "vlen_of_compound": [{"a": 1, "b": 0.5}],
             "array": [[1, 2, 3]], "time": anything})}
    return [ZooFile("c", os.path.join(top, "types-c.h5"), z)]


def make(top):
    out = []
    for fill in (primitives, odd_integers, odd_floats, enums, strings, opaque,
                 arrays, compounds, converted, paddings, ragged, ragged_arrays,
                 references, compound_text, attributes):
        for libver in ("earliest", "latest"):
            if libver == "latest" and fill not in (attributes, references,
                                                   ragged, compound_text):
                continue
            z = {}
            name = fill.__name__ + ("_latest" if libver == "latest" else "")
            path = os.path.join(top, name + ".h5")
            with h5py.File(path, "w", libver=libver) as f:
                if fill is attributes:
                    fill(f, z, libver == "latest")
                    no_group_info(z)
                else:
                    fill(f, z)
            out.append(ZooFile(name, path, z))
    out.append(source_order(os.path.join(top, "source_order.h5")))
    out.append(deep_samples(os.path.join(top, "deep_samples.h5")))
    return out + from_c(top)
