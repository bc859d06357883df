#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the seeds of fuzz-parts into corpus/ beside it: chunks as HDF5's own filters
stored them, of few bytes although they are very large, whole and damaged."""
import os
import struct
import tempfile

import h5py
import hdf5plugin
import numpy as np

MOST = 60000  # bytes of a seed
LEAST = 2 << 20

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "parts")


def stored(data, **filters):
    """The bytes of the only chunk, and the parameters of its filter."""
    with tempfile.TemporaryDirectory() as tmp:
        with h5py.File(os.path.join(tmp, "a.h5"), "w") as f:
            d = f.create_dataset("d", data=data, chunks=data.shape, **filters)
            plist = d.id.get_create_plist()
            return plist.get_filter(0)[2], d.id.read_direct_chunk((0,))[1]


def seed(name, codec, elem, data, values, chunk):
    room = -(-(data.nbytes - LEAST) // 32768)
    head = struct.pack("<BBBB", codec, elem, room, len(values))
    head += b"".join(struct.pack("<I", v & 0xffffffff) for v in values)
    assert 0 <= room < 256 and len(values) < 6 and len(head + chunk) <= MOST, name
    for what, bad in (("", chunk), ("-cut", chunk[:len(chunk) * 2 // 3]),
                      ("-size", chunk[:len(chunk) // 2] + b"\xff\xff" +
                       chunk[len(chunk) // 2 + 2:])):
        with open(os.path.join(here, name + what), "wb") as f:
            f.write(head + bad)


def main():
    os.makedirs(here, exist_ok=True)
    for dtype in ("u2", "f8"):
        n = (LEAST + 700000) // np.dtype(dtype).itemsize + 5
        data = np.zeros(n, dtype)
        data[::n // 50] = 1
        size = data.itemsize
        values, chunk = stored(data, **hdf5plugin.LZ4(nbytes=1 << 16))
        seed("lz4-" + dtype, 0, size, data, values, chunk)
        values, chunk = stored(data, **hdf5plugin.Bitshuffle(nelems=0, cname="lz4"))
        seed("bitshuffle-" + dtype, 1, size, data, values[:5], chunk)
        for shuffle in (0, 1, 2):
            values, chunk = stored(data, **hdf5plugin.Blosc(
                cname="lz4", clevel=5, shuffle=shuffle))
            seed("blosc-%d-%s" % (shuffle, dtype), 2, size, data, (), chunk)


if __name__ == "__main__":
    main()
