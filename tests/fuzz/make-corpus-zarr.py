#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The corpus of fuzz-zarr: metadata and a chunk for each kind of array.

Usage: make-corpus-zarr.py DIRECTORY"""
import gzip
import json
import os
import struct
import sys

import numcodecs
import numpy as np

out = sys.argv[1]
os.makedirs(out, exist_ok=True)
a = np.arange(24, dtype="<i4").reshape(4, 6)
n = numcodecs


def put(name, doc, chunk):
    with open(os.path.join(out, name), "wb") as f:
        f.write(b"%d" % doc["zarr_format"] + json.dumps(doc).encode() + b"\0" + bytes(chunk))


def v2(name, comp=None, filters=(), order="C", dtype="<i4", chunk=None, fill=0):
    b = a.tobytes(order) if chunk is None else chunk
    for c in list(filters) + [comp] * (comp is not None):
        b = np.frombuffer(c.encode(b), "u1").tobytes()
    put(name, {"zarr_format": 2, "shape": [7, 9], "chunks": [4, 6], "dtype": dtype,
               "order": order, "fill_value": fill, "dimension_separator": ".",
               "compressor": comp.get_config() if comp else None,
               "filters": [f.get_config() for f in filters] or None}, b)


def v3(name, codecs, chunk, **more):
    put(name, dict({
        "zarr_format": 3, "node_type": "array", "shape": [7, 9], "data_type": "int32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 6]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": codecs, "fill_value": 0}, **more), chunk)


v2("v2-raw")
v2("v2-order", order="F", dtype=">i4", fill=-3)
for c in (n.Zlib(), n.GZip(), n.Zstd(), n.LZ4(), n.BZ2(), n.LZMA(), n.Blosc()):
    v2("v2-" + c.codec_id, c)
v2("v2-filters", n.Zlib(), [n.Delta("<i4", astype="<i2"), n.Shuffle(2), n.CRC32()])
v2("v2-adler32", None, [n.Adler32()])
v2("v2-struct", dtype=[["a", "<i2"], ["b", [["c", ">u1"], ["d", "|S1"]]]],
   fill="AQIDBA==")
v2("v2-date", dtype="<M8[ns]", chunk=bytes(192))
little = {"name": "bytes", "configuration": {"endian": "little"}}
turned = {"name": "transpose", "configuration": {"order": [1, 0]}}
v3("v3-raw", [little], a.tobytes())
v3("v3-gzip", [turned, little, {"name": "gzip", "configuration": {"level": 1}}],
   gzip.compress(a.T.tobytes()))
for first in (False, True):
    index = b"".join(struct.pack("<QQ", 24 * i + 64 * first, 24) for i in range(2)) + \
        b"\xff" * 16 + struct.pack("<QQ", 64 * first, 24)
    body = a.tobytes()
    v3("v3-shard-%d" % first, [{"name": "sharding_indexed", "configuration": {
        "chunk_shape": [2, 3], "codecs": [little],
        "index_codecs": [little], "index_location": "start" if first else "end"}}],
       index + body if first else body + index)
v3("v3-float", [little], bytes(192), data_type="complex64", fill_value=["NaN", "Infinity"])
v3("v3-raw-bits", [{"name": "bytes"}], bytes(48), data_type="r16", fill_value=[1, 2])
