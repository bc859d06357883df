#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the seeds of fuzz-codec, fuzz-pipeline, fuzz-heap, fuzz-header and fuzz-index
into corpus/ beside it.

Encoders: zlib, bz2, liblzf, liblz4, libzstd and libblosc (through ctypes), and
h5py, whose read_direct_chunk gives chunks as HDF5 and its plugins (Debian
package bitshuffle) store them.  Run it again after a codec was added or the
input format of a target changed; the output does not depend on when or where it
runs.
"""
import bz2
import ctypes
import os
import struct
import tempfile
import zlib

import h5py
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
# Positions in fuzz-codec's ids, and in the codec_table of a build that has all
# libraries.
(DEFLATE, SHUFFLE, FLETCHER32, LZF, LZ4, ZSTD, BITSHUFFLE, NBIT, SCALEOFFSET,
 SZIP, BZIP2, BLOSC, UNKNOWN) = range(13)

counts = (np.random.RandomState(1).poisson(0.5, 256) * 37).astype("<u2")
PLAIN = counts.tobytes()
NOISE = np.random.RandomState(2).bytes(200)
ZEROS = bytes(3000)


def shuffle(data, elem):
    n = len(data) // elem
    body = np.frombuffer(data[:n * elem], "u1").reshape(n, elem)
    return body.T.tobytes() + data[n * elem:]


def fletcher32(data):
    a = b = 0
    padded = data + bytes(len(data) % 2)
    for (word,) in struct.iter_unpack(">H", padded):
        a += word
        b += a
    fold = lambda x: x and (x - 1) % 65535 + 1
    return data + struct.pack("<I", fold(b) << 16 | fold(a))


def library(name, function):
    f = getattr(ctypes.CDLL(name), function)
    f.restype = ctypes.c_size_t
    return f


def lzf(data):
    out = ctypes.create_string_buffer(len(data) * 2 + 16)
    f = getattr(ctypes.CDLL("liblzf.so.1"), "lzf_compress")
    f.restype = ctypes.c_uint
    return out.raw[:f(data, len(data), out, len(out))]


def lz4(data, block):
    f = getattr(ctypes.CDLL("liblz4.so.1"), "LZ4_compress_default")
    result = struct.pack(">QI", len(data), block)
    for i in range(0, len(data), block):
        part = data[i:i + block]
        out = ctypes.create_string_buffer(len(part) * 2 + 16)
        stored = out.raw[:f(part, out, len(part), len(out))]
        if len(stored) >= len(part):
            stored = part
        result += struct.pack(">I", len(stored)) + stored
    return result


def zstd(data, level=3):
    out = ctypes.create_string_buffer(len(data) * 2 + 128)
    f = library("libzstd.so.1", "ZSTD_compress")
    return out.raw[:f(out, ctypes.c_size_t(len(out)), data,
                      ctypes.c_size_t(len(data)), level)]


def hdf5_chunk(**filters):
    with tempfile.TemporaryDirectory() as directory:
        with h5py.File(os.path.join(directory, "x.h5"), "w") as f:
            d = f.create_dataset("x", data=counts, chunks=counts.shape,
                                 **filters)
            return d.id.read_direct_chunk((0,))[1]


def hdf5_filtered(data, set_filter, precision=None):
    """Client data and bytes of a chunk written through one filter."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk(data.shape)
    set_filter(plist)
    kind = h5py.h5t.py_create(data.dtype).copy()
    if precision:
        kind.set_precision(precision)
    with tempfile.TemporaryDirectory() as directory:
        with h5py.File(os.path.join(directory, "x.h5"), "w") as f:
            space = h5py.h5s.create_simple(data.shape)
            d = h5py.h5d.create(f.id, b"x", kind, space, plist)
            d.write(space, space, data)
            f.flush()
            mask, chunk = d.read_direct_chunk((0,) * data.ndim)
            assert mask == 0
            return d.get_create_plist().get_filter(0)[2], chunk


def blosc(data, compressor, how, elem, block=0):
    out = ctypes.create_string_buffer(len(data) + 16)
    f = ctypes.CDLL("libblosc.so.1").blosc_compress_ctx
    size = ctypes.c_size_t
    n = f(5, how, size(elem), size(len(data)), data, out, size(len(out)),
          compressor, size(block), 1)
    assert n > 0
    return out.raw[:n]


def save(target, name, data):
    directory = os.path.join(HERE, "corpus", target)
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, name), "wb") as f:
        f.write(data)


def codec(name, which, stored, cap, elem=2, cd=()):
    head = struct.pack("<BBHB", which, elem, cap, len(cd))
    save("codec", name, head + struct.pack("<%dI" % len(cd), *cd) + stored)


def pipeline(name, filters, stored, size, mask=0):
    head = bytes([len(filters)])
    for f in filters:
        head += bytes(f if isinstance(f, tuple) else (f, 2))
    save("pipeline", name, head + struct.pack("<BH", mask, size) + stored)


n = len(PLAIN)
for name, which, encode in (("deflate", DEFLATE, zlib.compress),
                            ("lzf", LZF, lzf), ("zstd", ZSTD, zstd)):
    codec(name, which, encode(PLAIN), n)
    codec(name + "-zeros", which, encode(ZEROS), len(ZEROS))
    codec(name + "-noise", which, encode(NOISE), len(NOISE))
    codec(name + "-small-room", which, encode(PLAIN), n - 1)
    codec(name + "-cut", which, encode(PLAIN)[:-5], n)
    codec(name + "-empty", which, b"", 10)
codec("deflate-stored", DEFLATE, zlib.compress(NOISE, 0), len(NOISE))
codec("deflate-trailing", DEFLATE, zlib.compress(PLAIN) + b"tail", n)
codec("zstd-frames", ZSTD, zstd(PLAIN) + zstd(NOISE, 19), n + len(NOISE))
codec("lz4-blocks", LZ4, lz4(PLAIN, 100), n)
codec("lz4-raw", LZ4, lz4(NOISE, 64), len(NOISE))
codec("lz4-total", LZ4, b"\xff" * 8 + lz4(PLAIN, 100)[8:], n)
codec("lz4-no-block", LZ4, lz4(PLAIN, 512)[:8] + bytes(8), n)
for elem in (1, 2, 3, 4, 8, 16):
    codec("shuffle-%d" % elem, SHUFFLE, shuffle(PLAIN[:-1], elem), n,
          cd=(elem,))
codec("fletcher32", FLETCHER32, fletcher32(PLAIN), n)
codec("fletcher32-odd", FLETCHER32, fletcher32(NOISE[:99]), 99)

counts32 = counts.astype("<u4").reshape(16, 16)
ramp = np.arange(256, dtype="<f8").reshape(8, 32) / 8
for name, data, how, block, precision in (
        ("nn", counts, 32, 8, None), ("ec", counts, 4, 16, None),
        ("lines", counts[:247].reshape(19, 13), 32, 4, None),
        ("bytes", counts.astype("u1"), 32, 32, None),
        ("big-endian", counts.astype(">u2"), 32, 10, None),
        ("12-bit", counts, 32, 8, 12), ("20-bit", counts32, 32, 8, 20),
        ("32-bit", counts32, 32, 8, None), ("double", ramp, 32, 16, None),
        ("zeros", np.zeros(3000, "u1"), 32, 8, None)):
    cd, chunk = hdf5_filtered(data, lambda p: p.set_szip(how, block), precision)
    codec("szip-" + name, SZIP, chunk, data.nbytes, cd=cd)
codec("szip-cut", SZIP, chunk[:-1], data.nbytes, cd=cd)
codec("szip-trailing", SZIP, chunk + b"tail", data.nbytes, cd=cd)
codec("szip-odd-block", SZIP, chunk, data.nbytes, cd=(169, 7) + cd[2:])
codec("szip-no-parameters", SZIP, chunk, data.nbytes)

for level, data in ((9, PLAIN), (1, ZEROS), (5, NOISE), (1, b"")):
    codec("bzip2-%d" % len(data), BZIP2, bz2.compress(data, level), len(data))
codec("bzip2-small-room", BZIP2, bz2.compress(PLAIN), n - 1)
codec("bzip2-cut", BZIP2, bz2.compress(PLAIN)[:-3], n)
codec("bzip2-two", BZIP2, bz2.compress(PLAIN) * 2, 2 * n)

for compressor in (b"blosclz", b"lz4", b"lz4hc", b"snappy", b"zlib", b"zstd"):
    for how, word in enumerate(("plain", "bytes", "bits")):
        codec("blosc-%s-%s" % (compressor.decode(), word), BLOSC,
              blosc(PLAIN * 3, compressor, how, 2, 512 * (how == 2)), 3 * n)
codec("blosc-noise", BLOSC, blosc(NOISE, b"lz4", 1, 4), len(NOISE))
codec("blosc-empty", BLOSC, blosc(b"", b"lz4", 1, 4), 10)
codec("blosc-empty-huge-blocks", BLOSC, bytes.fromhex(
    "0201330400000000010000d410000000"), 10)
codec("blosc-blocks", BLOSC, blosc(PLAIN * 4, b"blosclz", 1, 2, 300), 4 * n)
codec("blosc-small-room", BLOSC, blosc(PLAIN, b"zstd", 1, 2), n - 1)
codec("blosc-cut", BLOSC, blosc(PLAIN, b"zstd", 1, 2)[:-2], n)
codec("blosc-wide", BLOSC, blosc(bytes(20000), b"lz4", 2, 16, 4096), 20000)

for name, which, data, set_filter, precision in (
        ("bitshuffle", BITSHUFFLE, counts,
         lambda p: p.set_filter(32008, 0, (0, 0)), None),
        ("bitshuffle-lz4", BITSHUFFLE, counts32.reshape(256)[:251],
         lambda p: p.set_filter(32008, 0, (64, 2)), None),
        ("nbit", NBIT, counts, lambda p: p.set_filter(5, 0, ()), 12),
        ("scaleoffset-int", SCALEOFFSET, counts,
         lambda p: p.set_scaleoffset(2, 0), None),
        ("scaleoffset-float", SCALEOFFSET, ramp,
         lambda p: p.set_scaleoffset(0, 3), None)):
    cd, chunk = hdf5_filtered(data, set_filter, precision)
    codec(name, which, chunk, data.nbytes, data.itemsize, cd)

deflated = hdf5_chunk(compression="gzip", shuffle=True, fletcher32=True)
pipeline("shuffle-deflate-fletcher32", [SHUFFLE, DEFLATE, FLETCHER32],
         deflated, n)
pipeline("shuffle-lzf", [SHUFFLE, LZF], lzf(shuffle(PLAIN, 2)), n)
pipeline("shuffle-zstd", [SHUFFLE, ZSTD], zstd(shuffle(PLAIN, 2)), n)
pipeline("shuffle-lz4", [SHUFFLE, LZ4], lz4(shuffle(PLAIN, 2), 200), n)
pipeline("deflate-twice", [DEFLATE, DEFLATE],
         zlib.compress(zlib.compress(PLAIN)), n)
pipeline("zstd-of-lzf", [LZF, ZSTD], zstd(lzf(PLAIN)), n)
pipeline("bzip2-of-shuffle", [SHUFFLE, BZIP2], bz2.compress(shuffle(PLAIN, 2)),
         n)
pipeline("blosc-of-fletcher32", [FLETCHER32, BLOSC],
         blosc(fletcher32(PLAIN), b"lz4", 1, 2), n)
pipeline("fletcher32-deflate", [FLETCHER32, DEFLATE],
         zlib.compress(fletcher32(PLAIN)), n)
pipeline("fletcher32-shuffle", [FLETCHER32, (SHUFFLE, 8)],
         shuffle(fletcher32(PLAIN), 8), n)
pipeline("fletcher32-twice", [FLETCHER32, FLETCHER32],
         fletcher32(fletcher32(NOISE)), len(NOISE))
pipeline("masked", [SHUFFLE, LZF], shuffle(PLAIN, 2), n, mask=2)
pipeline("unknown-masked", [UNKNOWN, DEFLATE], zlib.compress(PLAIN), n, mask=1)
pipeline("unknown", [UNKNOWN], PLAIN, n)
pipeline("verbatim", [], NOISE, len(NOISE))
pipeline("identity", [(SHUFFLE, 1)], NOISE, len(NOISE))
pipeline("short", [DEFLATE], zlib.compress(PLAIN), n + 1)
pipeline("eight", [SHUFFLE] * 7 + [DEFLATE], zlib.compress(PLAIN), n)


# --- fuzz-heap: elements, then what they refer to ----------------------------

def collection(objects, length=8, size=None):
    """{index: bytes} as libhdf5 would lay them out."""
    head = 8 + length + (8 + length) % -8 % 8
    pad = lambda b: b + bytes(-len(b) % 8)
    part = lambda n: n.to_bytes(length, "little")
    body = b"".join(pad(struct.pack("<HHI", i, 1, 0) + part(len(v))) + pad(v)
                    for i, v in objects)
    free = pad(struct.pack("<HHI", 0, 0, 0) + part(head + 8)) + bytes(8)
    n = head + len(body) + len(free)
    return pad(b"GCOL\1\0\0\0" + part(size or n)) + body + free


def heap(name, elements, after, each=1, address=0, length=0, base=0, where=0):
    """elements: [(count, index)], or bytes; all in the collection that comes
    `where` bytes behind them."""
    width = (8, 8, 4, 2, 16, 32, 1, 0)[address]
    at = len(elements) * (8 + width) + where - 256 * base
    if not isinstance(elements, bytes):
        n = len(elements)
        elements = b"".join(struct.pack("<I", c) + at.to_bytes(
            width, "little") + struct.pack("<I", i) for c, i in elements)
    else:
        n = len(elements) // (8 + width)
    save("heap", name, bytes((address, length, each - 1, base, n)) +
         elements + after)


def from_h5py(dtype, values):
    """(the elements' bytes with addresses made to fit, the collection)."""
    with tempfile.NamedTemporaryFile(suffix=".h5") as t:
        with h5py.File(t.name, "w") as f:
            d = f.create_dataset("d", (len(values),), dtype)
            for i, v in enumerate(values):
                d[i] = v
            at = d.id.get_offset()
        data = open(t.name, "rb").read()
    raw = data[at:at + 16 * len(values)]
    begin = data.index(b"GCOL")
    size, = struct.unpack_from("<Q", data, begin + 8)
    here = struct.pack("<Q", begin), struct.pack("<Q", len(raw))
    return raw.replace(*here), data[begin:begin + size]


words = [(i, w) for i, w in enumerate((b"one", b"", b"three of them",
                                       b"12345678"), 1)]
some = [(len(w), i) for i, w in words]
heap("words", some, collection(words))
heap("words-short", some, collection(words, 4), address=2, length=2)
heap("words-wide", some, collection(words, 16), address=4, length=4)
heap("items", [(2, 1), (1, 2)], collection([(1, bytes(8)), (2, b"abcd")]), 4)
heap("base", some, bytes(300) + collection(words), base=1, where=300)
heap("other-length", [(4, 1), (2, 1), (2 ** 32 - 1, 3)], collection(words))
heap("no-such-object", [(3, 0), (3, 9), (3, 65535), (3, 65536)],
     collection(words))
heap("twice", [(3, 1), (5, 2)], collection([(1, b"one"), (1, b"two"),
                                           (2, b"three")]))
heap("far-index", [(3, 65535)], collection([(65535, b"end")]))
heap("beyond", some, collection(words, size=1 << 20))
heap("huge", some, collection(words, size=1 << 62))
heap("cut", some, collection(words, size=70))
heap("nowhere", struct.pack("<IQI", 3, 0, 1), collection(words))
heap("h5py-text", *from_h5py(h5py.string_dtype(), ["a", "", "longer " * 9]))
heap("h5py-sequences", *from_h5py(h5py.vlen_dtype("<i4"), [
    np.arange(n, dtype="<i4") for n in (3, 1, 40)]), 4)


# --- fuzz-header: an object of a file, and which of its attributes to hide ----

def header(name, hide=0x55, cut=None, change=lambda data, at: data, at=None,
           widths=(0, 0), attributes=3, **kw):
    """A dataset that h5py wrote with some attributes, a file of the library's."""
    with tempfile.NamedTemporaryFile(suffix=".h5") as t:
        with h5py.File(t.name, "w", **kw) as f:
            d = f.create_dataset("d", (2,), "u1", track_times=False)
            for i in range(attributes):
                d.attrs["a%d" % i] = np.arange(i % 5 + 1, dtype="u1")
            where = h5py.h5o.get_info(d.id).addr
        data = open(t.name, "rb").read()
    base = kw.get("userblock_size", 0)
    data = change(bytearray(data), where + base)[:cut]
    at = where if at is None else at
    save("header", name, bytes((*widths, base // 256, hide)) +
         struct.pack("<I", at) + data)


def put(offset, *values):
    def change(data, at):
        data[at + offset:at + offset + len(values)] = bytes(values)
        return data
    return change


for v in "earliest", "latest":
    header(v, libver=v)
    header(v + "-all", hide=255, libver=v)
    # The library continues a header in another block when there is no room left.
    header(v + "-continued", libver=v, attributes=8 if v == "latest" else 12)
    header(v + "-cut", libver=v, cut=-1900 if v == "earliest" else 60)
    header(v + "-size", libver=v, change=put(8, 255, 255, 255, 1))
    header(v + "-version", libver=v, change=put(0 if v == "earliest" else 4, 3))
header("userblock", userblock_size=512)
header("checksum", libver="latest", change=put(6, 1))
header("beyond", at=1 << 31)
header("narrow", widths=(2, 3))
header("too-wide", widths=(5, 0))


# Indexes: the head as members/index_private.h has it, the sections as members.c.
(NONE, DIR, SYMLINK, LINK, RANGE, SPARSE, BLOCKS, FRAGMENT) = range(8)
IFDIR, IFREG, IFLNK, IFIFO = 0o40755, 0o100644, 0o120777, 0o10644


def table(members, extents=(), blocks=(), xattrs=b"", block_size=0, notes=b"",
          since=0):
    """members: (name, parent, kind, mode, size, data, xattrs)."""
    names, records, common = b"\0", b"", []
    for name, parent, kind, mode, size, data, xattr in members:
        if kind == SYMLINK:
            size, data, names = len(data), len(names), names + data + b"\0"
        owner = struct.pack("<qIIIIHHHH", since, 3, 4, 1, xattr, 0, 0, 0, 0)
        if owner not in common:
            common.append(owner)
        records += struct.pack("<QQQIIIBBH", size, data, 1 << 30 | 2, parent,
                               common.index(owner), len(names), 0, kind, mode)
        names += name + b"\0"
    return [(1, struct.pack("<II", block_size, 0)), (2, records), (3, names),
            (4, b"".join(struct.pack("<QQQ", *x) for x in extents)),
            (5, b"".join(struct.pack("<QIIII", *b, 0) for b in blocks)),
            (6, xattrs), (7, notes), (8, b"".join(common))]


def index(name, sections, lazy=0):
    save("index", name, bytes((2 | lazy << 4,)) + b"".join(
        struct.pack("<BH", i, len(s)) + s for i, s in sections))


def index_file(name, sections, how, magic=b"tfsidx\r\n", cut=None):
    """The same as the bytes of a file; the target makes the head fit."""
    entries, body, at = b"", b"", 640
    for i, s in sections:
        pad = -(at + len(body)) % 64
        body += bytes(pad) + s
        entries += struct.pack("<IIQQQ", i, 0, at + len(body) - len(s), len(s),
                               0)
    head = (magic + struct.pack("<IIQ", 0x01020304, 1, at + len(body)) +
            b"fuzz 1".ljust(32, b"\0") + bytes(44) +
            struct.pack("<I", len(sections)) + bytes(24))
    data = head + entries.ljust(512, b"\0") + body
    save("index", name, bytes((how,)) + data[:cut])


def xattr(*pairs):
    body = b"".join(struct.pack("<II", len(k), len(v)) + k + v +
                    bytes(-len(k + v) % 4) for k, v in pairs)
    return struct.pack("<I", len(pairs)) + body


root = (b"", 0, DIR, IFDIR, 3, 1, 0)
tree = table([root, (b"a", 0, DIR, IFDIR, 2, 4, 1),
              (b"b", 0, RANGE, IFREG, 700, 512, 1),
              (b"c", 0, LINK, IFREG, 700, 2, 0),
              (b"d", 1, SYMLINK, IFLNK, 0, b"../b", 0),
              (b"e", 1, NONE, IFIFO, 0, 0, 0)],
             xattrs=xattr((b"user.k", b"value"), (b"user.empty", b"")),
             notes=b"one name was shortened\n")
sparse = table([root[:4] + (2,) + root[5:],
                (b"s", 0, SPARSE, IFREG, 9000, 0, 0),
                (b"t", 0, SPARSE, IFREG, 10, 3, 0)],
               extents=[(2, 0, 0), (100, 50, 512), (8000, 1000, 1024),
                        (0, 0, 0)])
blocked = table([root[:4] + (4,) + root[5:],
                 (b"f", 0, FRAGMENT, IFREG, 100, 1 << 20 | 20, 0),
                 (b"g", 0, BLOCKS, IFREG, 4096 * 2 + 30, 2, 0),
                 (b"h", 0, BLOCKS, IFREG, 4096 + 4, 5, 0),
                 (b"i", 0, NONE, IFREG, 0, 0, 0)], block_size=4096,
                blocks=[(0, 90, 300, 0), (96, 200, 300, 0),
                        (300, 900, 4096, 0), (0, 0, 4096, 0),
                        (1 << 20 | 5, 0, 30, 2), (500, 4096, 4096, 1),
                        (4600, 4, 4, 1)])
index("root", table([root[:4] + (0,) + root[5:]]))
index("tree", tree)
index("tree-lazy", tree + [(128 + 65, bytes(300)), (128 + 64, b"more")], 1)
index("sparse", sparse)
index("blocks", blocked)
index("link-to-directory", table([root[:4] + (2,) + root[5:],
                                  (b"x", 0, DIR, IFDIR, 0, 3, 0),
                                  (b"y", 0, LINK, IFDIR, 0, 1, 0)]))
index("own-parent", table([root[:4] + (1,) + root[5:],
                           (b"x", 1, DIR, IFDIR, 1, 1, 0)]))
index("ancient", table([root[:4] + (1,) + root[5:], (b"x", 0, NONE, IFREG, 0, 0, 0)],
                      since=-1 << 34))
index("no-time", table([root[:4] + (0,) + root[5:]], since=5))
index("no-common", tree[:-1])
index("no-sections", [])
index_file("file", tree, 0)
index_file("file-repaired", tree, 1)
index_file("file-lazy", blocked, 0x11)
index_file("file-magic", tree, 0, b"TFSIDX\r\n")
index_file("file-cut", tree, 1, cut=700)
index_file("file-short", tree, 1, cut=100)
