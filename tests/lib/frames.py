# SPDX-License-Identifier: BSD-2-Clause
"""Encoders for stored chunks, so that tests can write what h5py cannot."""
import ctypes
import struct

import numpy as np


def load(name):
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


def zstd(raw):
    z = load("libzstd.so.1")
    if z is None:
        return None
    z.ZSTD_compressBound.restype = z.ZSTD_compress.restype = ctypes.c_size_t
    z.ZSTD_compressBound.argtypes = [ctypes.c_size_t]
    z.ZSTD_compress.argtypes = [ctypes.c_char_p, ctypes.c_size_t,
                                ctypes.c_char_p, ctypes.c_size_t,
                                ctypes.c_int]
    out = ctypes.create_string_buffer(z.ZSTD_compressBound(len(raw)))
    n = z.ZSTD_compress(out, len(out), raw, len(raw), 3)
    return out.raw[:n]


def lz4(raw, block=None):
    """HDF5's lz4 frame: total, block size, then (size, data) per block; a
    block whose size is not smaller than its plain size is stored raw."""
    z = load("liblz4.so.1")
    if z is None:
        return None
    block = block or len(raw)
    out = struct.pack(">QI", len(raw), block)
    for at in range(0, len(raw), block):
        piece = raw[at:at + block]
        buf = ctypes.create_string_buffer(z.LZ4_compressBound(len(piece)))
        n = z.LZ4_compress_default(piece, buf, len(piece), len(buf))
        packed = buf.raw[:n] if 0 < n < len(piece) else piece
        out += struct.pack(">I", len(packed)) + packed
    return out


def shuffle(raw, width):
    n = len(raw) // width
    a = np.frombuffer(raw[:n * width], np.uint8).reshape(n, width)
    return a.T.tobytes() + raw[n * width:]


def fletcher32(raw):
    """HDF5's checksum: 16-bit big-endian words, sums modulo 65535."""
    if len(raw) % 2:
        words = np.frombuffer(raw[:-1], ">u2").tolist() + [raw[-1] << 8]
    else:
        words = np.frombuffer(raw, ">u2").tolist()
    a = b = 0
    for w in words:
        a += w
        b += a
    a, b = a % 65535 or (65535 if a else 0), b % 65535 or (65535 if b else 0)
    return raw + struct.pack("<I", b << 16 | a)
