# SPDX-License-Identifier: BSD-2-Clause
"""Filters: each one, combined, skipped by masks, damaged, unknown.

h5py writes what the library and its plugins can; what they cannot (zstd,
bitshuffle with zstd) is encoded here and stored chunk by chunk.  A filter whose
plugin is not installed is one failed case in CI and a notice elsewhere.
"""
import os
import struct
import zlib

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t, h5z

import lib
from checks import check, note
from expect import Want, ZooFile
from frames import fletcher32, lz4, shuffle, zstd
from zoo import boxes, numbers

BZIP2, LZF, BLOSC, LZ4, BSHUF, ZFP, ZSTD, UNKNOWN = (
    307, 32000, 32001, 32004, 32008, 32013, 32015, 40000)
TYPES = ["u1", "<i2", "<u4", ">u4", "<i8", "<f4", ">f8", "<c8"]
EBADMSG, ENOTSUP = 74, 95


def smooth(shape, dtype, seed=1):
    """Counts that compress: small steps, runs, some noise."""
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(seed)
    n = int(np.prod(shape))
    v = np.cumsum(rng.integers(-2, 4, n)) % 100
    v[n // 4:n // 2] = 7
    return v.astype(dtype).reshape(shape)


def low(f, name, dtype, shape, chunks, filters, maxshape=None, fill=None):
    p = h5p.create(h5p.DATASET_CREATE)
    p.set_chunk(chunks)
    for fid, args in filters:
        p.set_filter(fid, h5z.FLAG_OPTIONAL, args)
    if fill is not None:
        p.set_fill_value(np.asarray(fill, dtype))
    lcpl = h5p.create(h5p.LINK_CREATE)
    lcpl.set_create_intermediate_group(True)
    t = dtype if isinstance(dtype, h5t.TypeID) else \
        h5t.py_create(np.dtype(dtype), logical=True)
    s = h5s.create_simple(shape, maxshape or shape)
    return h5py.Dataset(h5d.create(f.id, name.encode(), t, s, p, lcpl))


def stored(ds, value, chunks, encode):
    """Store each chunk, zero-padded, as (bytes, mask) = encode(k, raw)."""
    for k, (start, box) in enumerate(boxes(value.shape, chunks)):
        full = np.zeros(chunks, value.dtype)
        full[tuple(slice(0, b.stop - b.start) for b in box)] = value[box]
        data, mask = encode(k, full.tobytes())
        ds.id.write_direct_chunk(start, data, mask)


BLOSCS = {"blosclz": 0, "lz4": 1, "lz4hc": 2, "zlib": 4, "zstd": 5}
PIPES = {
    "gzip1": dict(compression="gzip", compression_opts=1),
    "gzip9_shuffle": dict(compression="gzip", compression_opts=9,
                          shuffle=True),
    "gzip0": dict(compression="gzip", compression_opts=0),
    "shuffle": dict(shuffle=True),
    "fletcher32": dict(fletcher32=True),
    "gzip_shuffle_fletcher32": dict(compression="gzip", shuffle=True,
                                    fletcher32=True),
    "lzf": dict(compression="lzf"),
    "lzf_shuffle": dict(compression="lzf", shuffle=True),
    "lzf_fletcher32": dict(compression="lzf", fletcher32=True),
    "szip_nn8": dict(compression="szip", compression_opts=("nn", 8)),
    "szip_ec16": dict(compression="szip", compression_opts=("ec", 16)),
    "szip_nn32": dict(compression="szip", compression_opts=("nn", 32)),
    "szip_shuffle_fletcher32": dict(
        compression="szip", compression_opts=("nn", 8), shuffle=True,
        fletcher32=True),
    "bzip2": dict(compression=BZIP2, compression_opts=(9,)),
    "bzip2_shuffle": dict(compression=BZIP2, compression_opts=(1,),
                          shuffle=True),
    "lz4": dict(compression=LZ4, compression_opts=(0,)),
    "lz4_blocks": dict(compression=LZ4, compression_opts=(64,)),
    "lz4_shuffle": dict(compression=LZ4, compression_opts=(0,), shuffle=True),
    "bitshuffle": dict(compression=BSHUF, compression_opts=(0, 0)),
    "bitshuffle_lz4": dict(compression=BSHUF, compression_opts=(0, 2)),
    "bitshuffle_lz4_16": dict(compression=BSHUF, compression_opts=(16, 2)),
    "bitshuffle_fletcher32": dict(compression=BSHUF, compression_opts=(0, 2),
                                  fletcher32=True),
    "blosc_fletcher32": dict(
        compression=BLOSC, compression_opts=(0, 0, 0, 0, 5, 1, 0),
        fletcher32=True),
}
for codec, number in BLOSCS.items():
    for mode, word in ((0, "plain"), (1, "byte"), (2, "bit")):
        PIPES["blosc_%s_%s" % (codec, word)] = dict(
            compression=BLOSC, compression_opts=(0, 0, 0, 0, 5, mode, number))


def refuses_complex(pipe, t):
    """szip, as the library has it, knows integers and floats."""
    return pipe.startswith("szip") and np.dtype(t).kind == "c"


FULL = ("gzip_shuffle_fletcher32", "lzf_shuffle", "szip_nn8", "bzip2",
        "lz4_shuffle", "bitshuffle", "bitshuffle_lz4", "blosc_lz4_byte",
        "blosc_blosclz_bit")


def some(values, i):
    """All values in the full tier, else one: with i = 0, 1, ... each has its turn."""
    return values if lib.full() else [values[i % len(values)]]


def types_of(pipe, i):
    """The element types that a pipe is tried with: always <i2, and others."""
    more = [t for t in (TYPES if pipe in FULL else ("<i2", ">f8"))
            if t != "<i2" and not refuses_complex(pipe, t)]
    return ["<i2", *some(more, i)]


def pipes(f, z, missing, every=True):
    """`every`: all types and shapes, not <i2 alone."""
    shapes = (("noise", numbers((50, 40), "<u2", 7), (17, 40)),
              ("odd", smooth((1009,), "<u2"), (503,)),
              ("large", smooth((200, 300), "<u4"), (200, 150)))
    for i, (pipe, kw) in enumerate(PIPES.items()):
        fid = kw.get("compression")
        if isinstance(fid, int) and not h5z.filter_avail(fid):
            missing.add(fid)
            continue
        turn = FULL.index(pipe) if pipe in FULL else i
        for t in types_of(pipe, turn) if every else ("<i2",):
            n = "%s/%s%s" % (pipe, t.strip("<>"), "be" * (t[0] == ">"))
            v = smooth((37, 29), t)
            f.create_dataset(n, data=v, chunks=(10, 13), **kw)
            z[n] = Want(value=v, chunks=(10, 13))
        for tag, v, c in some(shapes, i) if every else ():
            n = "%s/%s" % (pipe, tag)
            f.create_dataset(n, data=v, chunks=c, **kw)
            z[n] = Want(value=v, chunks=c)


def scaleoffset(f, z):
    """Lossy ones by what h5py reads back."""
    for i, t in enumerate(("u1", "i1", "<i2", "<u2", ">i4", "<u4", "<i8", ">u8")):
        for bits in some((0, 5, 7), i):
            n = "scaleoffset/%s%s_%d" % (t.strip("<>"), "be" * (t[0] == ">"),
                                         bits)
            v = (smooth((31, 20), t) % 30).astype(t)
            if np.dtype(t).kind == "i":
                v -= 12
            f.create_dataset(n, data=v, chunks=(8, 9), scaleoffset=bits)
            z[n] = Want(chunks=(8, 9))
    for i, t in enumerate(("<f4", ">f4", "<f8", ">f8")):
        for digits in some((0, 2, 4), i):
            n = "scaleoffset/%s%s_%d" % (t.strip("<>"), "be" * (t[0] == ">"),
                                         digits)
            v = (smooth((31, 20), "<i4") / 16.0 - 2).astype(t)
            f.create_dataset(n, data=v, chunks=(8, 9), scaleoffset=digits)
            z[n] = Want(chunks=(8, 9))
    v = smooth((31, 20), "<i4")
    v[5:20, 3:9] = -99
    for tag, kw in (("filled", {}), ("filled_gz", dict(compression="gzip")),
                    ("filled_shuffle", dict(shuffle=True))):
        d = f.create_dataset("scaleoffset/" + tag, shape=v.shape, dtype="<i4",
                             chunks=(8, 9), scaleoffset=0, fillvalue=-99, **kw)
        d[0:17] = v[0:17]
        z["scaleoffset/" + tag] = Want(chunks=(8, 9), sparse=True, fill=-99)
    for tag, v in (("constant", np.full((16, 9), 5, "<i4")),
                   ("full", numbers((16, 9), "<i8", 3)),
                   ("full_u1", numbers((16, 9), "u1", 3))):
        f.create_dataset("scaleoffset/" + tag, data=v, chunks=(8, 9),
                         scaleoffset=0)
        z["scaleoffset/" + tag] = Want(chunks=(8, 9))


def narrow(base, precision, offset):
    t = base.copy()
    t.set_precision(precision)
    t.set_offset(offset)
    return t


def nbit(f, z):
    """Integers of odd precision; the library's reading is the word.  (1.14
    makes no data sets of less than half the bits, without being told so.)"""
    new = h5py.version.hdf5_version_tuple >= (1, 14, 0)
    table = {"u4_12": (narrow(h5t.STD_U32LE, 12, 0), "<u4", 4096),
             "u4_12_5": (narrow(h5t.STD_U32LE, 12, 5), "<u4", 4096),
             "u2be_9_3": (narrow(h5t.STD_U16BE, 9, 3), "<u2", 512),
             "i4_17": (narrow(h5t.STD_I32LE, 17, 4), "<i4", 30000),
             "u1_3": (narrow(h5t.STD_U8LE, 3, 2), "u1", 8),
             "i8_40": (narrow(h5t.STD_I64LE, 40, 0), "<i8", 1 << 30),
             "f4": (h5t.IEEE_F32LE, "<f4", 90), "u2": (h5t.STD_U16LE, "<u2",
                                                      60000)}
    if new:
        table = {k: v for k, v in table.items() if not k.startswith("u4_12")}
    for tag, (t, native, top) in table.items():
        for more, extra in (("", []), ("_gz", [(1, (4,))])):
            v = (numbers((31, 20), "<u4", 5) % top).astype(native)
            if np.dtype(native).kind == "i":
                v -= top // 2
            n = "nbit/" + tag + more
            d = low(f, n, t, v.shape, (8, 9), [(h5z.FILTER_NBIT, ())] + extra)
            d.id.write(h5s.ALL, h5s.ALL, v)
            z[n] = Want(value=v, chunks=(8, 9))
    st = np.dtype([("a", "<i2"), ("b", "<f4"), ("c", "u1")])
    v = np.zeros((31, 20), st)
    v["a"], v["b"], v["c"] = (smooth(v.shape, t) for t in ("<i2", "<f4", "u1"))
    d = low(f, "nbit/compound", st, v.shape, (8, 9), [(h5z.FILTER_NBIT, ())])
    d[...] = v
    z["nbit/compound"] = Want(value=v, chunks=(8, 9))
    v = smooth((10, 6, 3), "<i4")
    t = narrow(h5t.STD_I32LE, 20 if new else 11, 0)
    d = low(f, "nbit/array", h5t.array_create(t, (3,)), (10, 6), (4, 5),
            [(h5z.FILTER_NBIT, ())])
    d.id.write(h5s.ALL, h5s.ALL, v, mtype=h5t.array_create(
        h5t.NATIVE_INT32, (3,)))
    z["nbit/array"] = Want(value=v, chunks=(4, 5, 3))


def bitplanes(raw, width):
    """Bit transpose of whole groups of 8 elements."""
    n = len(raw) // width
    a = np.frombuffer(raw, np.uint8).reshape(n, width)
    bits = np.unpackbits(a, axis=1, bitorder="little")
    return np.packbits(bits.T.reshape(-1), bitorder="little").tobytes()


def bitshuffle(raw, width, block, pack):
    """Bitshuffle's frame: total, block bytes, then (size, data) per block."""
    out = struct.pack(">QI", len(raw), block * width)
    n = len(raw) // width
    whole = n // block * block
    ends = list(range(0, whole, block)) + [whole]
    if (n - whole) // 8:
        ends.append(whole + (n - whole) // 8 * 8)
    for b, e in zip(ends, ends[1:]):
        data = pack(bitplanes(raw[b * width:e * width], width))
        out += struct.pack(">I", len(data)) + data
    return out + raw[ends[-1] * width:]


def bshuf_values(*values):
    """Client data; the plugin, if it is there, puts the first three itself."""
    return values[1:] if h5z.filter_avail(BSHUF) else (0, 3) + values


def encoded(f, z):
    """Chunks encoded here: codecs without an encoder plugin, and masks."""
    v, c = smooth((26, 18), "<i4", 5), (7, 11)
    w = v.itemsize

    def add(name, filters, encode, readable=False, value=v, chunks=c, **kw):
        d = low(f, name, value.dtype, value.shape, chunks, filters)
        stored(d, value, chunks, encode)
        z[name] = Want(value=value, chunks=chunks, readable=readable, **kw)

    add("zstd/plain", [(ZSTD, (3,))], lambda k, r: (zstd(r), 0))
    add("zstd/no_parameter", [(ZSTD, ())], lambda k, r: (zstd(r), 0))
    add("zstd/shuffle", [(2, (w,)), (ZSTD, (3,))],
        lambda k, r: (zstd(shuffle(r, w)), 0))
    add("zstd/shuffle_fletcher32", [(2, (w,)), (ZSTD, (3,)), (3, ())],
        lambda k, r: (fletcher32(zstd(shuffle(r, w))), 0))
    for i, t in enumerate(("u1", "<u2", "<u4", "<f8")):
        b = smooth((40, 33), t)
        for block in some((8, 64, 1024), i):
            add("bitshuffle_zstd/%s_%d" % (t.strip("<"), block), [
                (BSHUF, bshuf_values(b.itemsize, block, 3, 3))],
                lambda k, r, b=b, block=block: (bitshuffle(
                    r, b.itemsize, block, zstd), 0), False, b, (20, 33))
    all_masks = [(2, (w,)), (1, (4,)), (3, ())]

    def masked(k, r):
        m = k % 8
        r = r if m & 1 else shuffle(r, w)
        r = r if m & 2 else zlib.compress(r)
        return (r if m & 4 else fletcher32(r)), m
    add("mask/every", all_masks, masked, True)
    add("mask/all_of_unknown", [(UNKNOWN, (1, 2))], lambda k, r: (r, 1), True)
    add("mask/unknown_then_deflate", [(UNKNOWN, ()), (1, (4,))],
        lambda k, r: (zlib.compress(r), 1), True)
    add("twice/deflate", [(1, (4,)), (1, (4,))],
        lambda k, r: (zlib.compress(zlib.compress(r)), 0), True)
    add("twice/shuffle", [(2, (w,)), (2, (w,))],
        lambda k, r: (shuffle(shuffle(r, w), w), 0), True)
    add("order/fletcher_first", [(3, ()), (1, (4,))],
        lambda k, r: (zlib.compress(fletcher32(r)), 0), True)


def chunk_box(v, chunks, k):
    m = np.zeros(v.shape, bool)
    m[list(boxes(v.shape, chunks))[k][1]] = True
    return m


def damaged(f, z):
    """One chunk of each is wrong: EBADMSG there, all others read."""
    v, c, bad = smooth((26, 18), "<i4", 6), (7, 18), 2
    w, deflate = v.itemsize, [(1, (4,))]
    wide = [(3, ())]

    def flip(b, at):
        return b[:at] + bytes([b[at] ^ 4]) + b[at + 1:]

    def add(name, filters, good, wrong, codes=EBADMSG, words=()):
        d = low(f, name, v.dtype, v.shape, c, filters)
        stored(d, v, c, lambda k, r: wrong(r) if k == bad else good(r))
        z[name] = Want(value=v, chunks=c, bad=chunk_box(v, c, bad),
                       codes=codes, words=words, readable=False)

    gz = lambda r: (zlib.compress(r), 0)
    add("damaged/deflate_short", deflate, gz,
        lambda r: (zlib.compress(r[:len(r) // 2]), 0))
    add("damaged/deflate_long", deflate, gz,
        lambda r: (zlib.compress(r + b"more"), 0))
    add("damaged/deflate_cut", deflate, gz,
        lambda r: (zlib.compress(r)[:-9], 0))
    add("damaged/deflate_flipped", deflate, gz,
        lambda r: (flip(zlib.compress(r), 30), 0))
    add("damaged/deflate_empty", deflate, gz, lambda r: (b"\0", 0))
    add("damaged/fletcher32_flipped", wide, lambda r: (fletcher32(r), 0),
        lambda r: (flip(fletcher32(r), 77), 0))
    add("damaged/fletcher32_sum", wide, lambda r: (fletcher32(r), 0),
        lambda r: (flip(fletcher32(r), len(r) + 1), 0))
    add("damaged/gz_fletcher32", deflate + wide,
        lambda r: (fletcher32(zlib.compress(r)), 0),
        lambda r: (flip(fletcher32(zlib.compress(r)), 20), 0))
    add("damaged/masked_short", deflate, gz, lambda r: (r[:-8], 1))
    add("damaged/masked_long", deflate, gz, lambda r: (r + b"12345678", 1))
    add("damaged/lz4_short", [(LZ4, (0,))], lambda r: (lz4(r), 0),
        lambda r: (lz4(r[:-40]), 0))
    add("damaged/lz4_cut", [(LZ4, (0,))], lambda r: (lz4(r), 0),
        lambda r: (lz4(r)[:-5], 0))
    add("damaged/zstd_short", [(ZSTD, ())], lambda r: (zstd(r), 0),
        lambda r: (zstd(r[:-40]), 0))
    add("damaged/lzf_short", [(LZF, (4, 261, 504))],
        lambda r: (r, 1), lambda r: (b"\x03abcd", 0))
    add("damaged/bzip2", [(BZIP2, (9,))], lambda r: (r, 1),
        lambda r: (b"BZh9not so", 0))
    add("damaged/blosc", [(BLOSC, (2, 2, w, 504, 5, 1, 0))],
        lambda r: (r, 1), lambda r: (b"\2\1\1\4" + b"\xff" * 40, 0))
    add("damaged/bitshuffle", [(BSHUF, bshuf_values(w, 0, 2))],
        lambda r: (r, 1), lambda r: (b"\xff" * 60, 0))
    add("damaged/szip", [(4, (141, 8, 32, 18))],
        lambda r: (r, 1), lambda r: (b"\xff" * 60, 0))
    for name, fid, words in (
            ("unknown", UNKNOWN, ["40000"]),
            ("zfp", ZFP, ["32013", "zfp", "hdf5-filter-plugin-zfp"]),
            ("private", 65000, ["65000"]), ("blosc2", 32026, ["32026"])):
        add("missing/" + name, [(fid, ())], lambda r: (r, 1),
            lambda r: (b"who knows", 0), ENOTSUP, words)


def skipped_lzf(f, z):
    """h5py's LZF leaves chunks raw that do not compress, with mask 1."""
    v = numbers((40, 30), "<u4", 11)
    v[10:20] = 5
    f.create_dataset("mask/lzf_raw", data=v, chunks=(10, 30),
                     compression="lzf")
    z["mask/lzf_raw"] = Want(value=v, chunks=(10, 30))


def absent(missing):
    def run(_m, _zf):
        if not os.environ.get("CI"):
            return note("no HDF5 plugin for filter " + ids)
        check(False, "no HDF5 plugin here for filter " + ids)
    ids = ", ".join(map(str, sorted(missing)))
    return {"plugins": Want("custom", run=run)} if missing else {}


def make(top):
    out = []
    for tag, libver in (("earliest", "earliest"), ("latest", "latest")):
        z, missing = {}, set()
        path = os.path.join(top, "pipes-%s.h5" % tag)
        with h5py.File(path, "w", libver=libver) as f:
            # The filters do not differ between formats: <i2 of each is enough.
            pipes(f, z, missing, tag == "earliest")
        z.update(absent(missing))
        out.append(ZooFile("pipes-" + tag, path, z))
    for fill in (scaleoffset, nbit, encoded, damaged, skipped_lzf):
        z = {}
        path = os.path.join(top, fill.__name__ + ".h5")
        with h5py.File(path, "w") as f:
            fill(f, z)
        out.append(ZooFile(fill.__name__, path, z))
    return out
