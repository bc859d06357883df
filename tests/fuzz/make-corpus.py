#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the seeds of fuzz-codec and fuzz-pipeline into corpus/ beside it.

Encoders: zlib, liblzf, liblz4 and libzstd (through ctypes), and h5py, whose
read_direct_chunk gives chunks as HDF5 stores them.  Run it again after a codec
was added or the input format of a target changed; the output does not depend
on when or where it runs.
"""
import ctypes
import os
import struct
import tempfile
import zlib

import h5py
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
# Positions in codec_table.
DEFLATE, SHUFFLE, FLETCHER32, LZF, LZ4, ZSTD, UNKNOWN = range(7)

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

deflated = hdf5_chunk(compression="gzip", shuffle=True, fletcher32=True)
pipeline("shuffle-deflate-fletcher32", [SHUFFLE, DEFLATE, FLETCHER32],
         deflated, n)
pipeline("shuffle-lzf", [SHUFFLE, LZF], lzf(shuffle(PLAIN, 2)), n)
pipeline("shuffle-zstd", [SHUFFLE, ZSTD], zstd(shuffle(PLAIN, 2)), n)
pipeline("shuffle-lz4", [SHUFFLE, LZ4], lz4(shuffle(PLAIN, 2), 200), n)
pipeline("deflate-twice", [DEFLATE, DEFLATE],
         zlib.compress(zlib.compress(PLAIN)), n)
pipeline("zstd-of-lzf", [LZF, ZSTD], zstd(lzf(PLAIN)), n)
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
