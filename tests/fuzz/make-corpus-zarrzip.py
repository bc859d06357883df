#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the seeds of fuzz-zarrzip into corpus/zarrzip beside it: stores that zarr makes, as
zips and as lists of members; those of version 3 by hand."""
import io
import json
import os
import zipfile

import numcodecs
import numpy as np
import zarr

HERE = os.path.dirname(os.path.abspath(__file__))


def save(name, data):
    directory = os.path.join(HERE, "corpus", "zarrzip")
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, name), "wb") as f:
        f.write(data)


def listed(members):
    out = b""
    for name, data in members.items():
        name, data = name.encode(), bytes(data)
        out += bytes([len(name)]) + name + len(data).to_bytes(2, "little") + data
    return out


def zipped(members, compression):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as z:
        for name, data in members.items():
            z.writestr(zipfile.ZipInfo(name), bytes(data), compression)
    return out.getvalue()


def both(name, members):
    save(name + ".list", listed(members))
    save(name + ".stored", zipped(members, zipfile.ZIP_STORED))
    save(name + ".deflated", zipped(members, zipfile.ZIP_DEFLATED))


def v2():
    s = {}
    g = zarr.group(s)
    g.attrs["title"] = "x"
    x = np.arange(60, dtype="<i4").reshape(6, 10)
    for name, codec in (("zlib", numcodecs.Zlib()), ("blosc", numcodecs.Blosc("lz4")),
                        ("zstd", numcodecs.Zstd()), ("none", None)):
        g.create_dataset(name, data=x, chunks=(4, 4), compressor=codec)
    g.create_dataset("deep/one", data=x[0], chunks=(10,), compressor=None, order="F",
                     filters=[numcodecs.Delta("<i4")], dimension_separator="/")
    g.create_dataset("s", data=np.zeros(3, [("a", "<f4"), ("b", ">i2", (2,))]), chunks=2)
    return s


def v3(codecs, chunk, data):
    array = {"zarr_format": 3, "node_type": "array", "shape": [4, 6], "data_type": "int16",
             "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
             "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
             "fill_value": 7, "codecs": codecs, "dimension_names": ["y", None]}
    return {"zarr.json": json.dumps({"zarr_format": 3, "node_type": "group",
                                     "attributes": {"a": 1}}).encode(),
            "x/zarr.json": json.dumps(array).encode(), "x/c/0/0": data}


little = {"name": "bytes", "configuration": {"endian": "little"}}
both("v2", v2())
both("v3", v3([little], [4, 6], np.arange(24, dtype="<i2").tobytes()))
both("v3zstd", v3([{"name": "transpose", "configuration": {"order": [1, 0]}}, little,
                   {"name": "zstd", "configuration": {"level": 1, "checksum": False}}], [2, 6],
                  numcodecs.Zstd().encode(np.arange(12, dtype="<i2").tobytes())))
inner = np.arange(12, dtype="<i2").tobytes()
index = np.array([0, 12, 12, 12], "<u8").tobytes()
both("v3shard", v3([{"name": "sharding_indexed", "configuration": {
    "chunk_shape": [2, 3], "codecs": [little], "index_codecs": [little],
    "index_location": "end"}}], [2, 6], inner + index))
save("not", listed({".zarray": b"{}", "0": b"x"}))
