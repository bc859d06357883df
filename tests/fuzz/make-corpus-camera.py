#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the seeds of fuzz-camera into corpus/camera beside it."""
import os
import struct

HERE = os.path.dirname(os.path.abspath(__file__))


def save(name, kind, data):
    directory = os.path.join(HERE, "corpus", "camera")
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, name), "wb") as f:
        f.write(bytes([kind]) + data)


blo = struct.pack("<6sHIIIHHHH", b"IMGBLO", 0x102, 1000, 4096, 0, 12, 0, 5, 3)
save("blo", 0, blo)
save("blo-cut", 0, blo[:-3])
tvips = struct.pack("<13I", 256, 2, 14, 10, 16, 0, 0, 1, 1, 1, 200, 0, 76)
save("tvips", 1, tvips)
save("tvips-wide", 1, tvips[:8] + b"\xff" * 44)
mib = b"MQ1,000001,00384,01,0256,0256,U16,   1x1,01"
save("mib", 2, mib)
save("mib-raw", 2, mib.replace(b"U16", b"R64"))
save("mib-large", 2, mib.replace(b"0256", b"99999999"))
seq = bytearray(600)
struct.pack_into("<I24sII", seq, 0, 0xfeed, "Norpix seq".encode("utf-16-le"),
                 5, 1024)
struct.pack_into("<9I", seq, 548, 20, 10, 16, 14, 400, 100, 7, 0, 512)
save("seq", 3, bytes(seq))
save("raw", 4, b"dtype=>u2,shape=256x256,header=64,footer=1K,offset=8E,order=F,"
     b"count=9")
save("raw-bad", 4, b"dtype=u2,shape=x,=,a=b,count=-1")
