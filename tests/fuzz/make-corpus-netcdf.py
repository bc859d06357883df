#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the seeds of fuzz-netcdf into corpus/netcdf beside it."""
import os
import struct
import tempfile

import netCDF4
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


def save(name, data, more=0):
    directory = os.path.join(HERE, "corpus", "netcdf")
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, name), "wb") as f:
        f.write(struct.pack("<H", more) + data)


def made(kind, types):
    with tempfile.NamedTemporaryFile(suffix=".nc") as t:
        with netCDF4.Dataset(t.name, "w", format=kind) as d:
            d.createDimension("t", None)
            d.createDimension("x", 3)
            d.title = "a title"
            d.list = np.array([1, 2, 3], "i2")
            for i, kind in enumerate(types):
                dims = (("t", "x"), ("x",), ())[i % 3]
                v = d.createVariable(kind, kind, dims)
                v.units = "m"
            d.variables[types[0]][:] = np.zeros((2, 3))
        return t.read()


TYPES = ["i1", "S1", "i2", "i4", "f4", "f8"]
classic = made("NETCDF3_CLASSIC", TYPES)
save("classic", classic)
save("offset", made("NETCDF3_64BIT_OFFSET", TYPES))
data = made("NETCDF3_64BIT_DATA", TYPES + ["u1", "u2", "u4", "i8", "u8"])
save("data", data)
save("one-record-variable", made("NETCDF3_CLASSIC", ["i1", "i2"]))
save("streamed", classic[:4] + b"\xff" * 4 + classic[8:], 999)
save("streamed-data", data[:4] + b"\xff" * 8 + data[12:], 999)
save("cut", classic[:200], 9)
save("cut-at-the-end", classic[:200])
save("empty", classic[:4] + bytes(28))
save("count", b"CDF\1" + bytes(4) + struct.pack(">II", 10, 2**32 - 1), 999)
save("count-data", b"CDF\5" + bytes(8) + struct.pack(">IQ", 11, 2**64 - 1), 999)
save("large-dimensions", data.replace(b"x\0\0\0" + struct.pack(">Q", 3),
                                      b"x\0\0\0" + struct.pack(">Q", 2**63)))
