#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the seeds of fuzz-stream into corpus/stream beside it: what the tools of
bzip2, xz, zstd and lz4 write, several frames and streams, and seek points.  The
output depends on the versions of the tools, not on when or where it runs.
"""
import os
import random
import struct
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
BZIP2, XZ, ZSTD, LZ4 = range(4)
r = random.Random(1)
TEXT = b"".join(r.choice([b"tensor ", b"archive ", b"window\n", b"a ", b"of "])
                for _ in range(3000))
NOISE = bytes(r.randrange(256) for _ in range(3000))
MIXED = TEXT[:4000] + NOISE + TEXT[:4000]


def tool(data, *cmd):
    return subprocess.run(cmd, input=data, stdout=subprocess.PIPE,
                          check=True).stdout


def save(name, form, data, window=2, points=(), state=b""):
    directory = os.path.join(HERE, "corpus", "stream")
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, name), "wb") as f:
        f.write(bytes([form, window, len(points), len(state)]) +
                b"".join(struct.pack("<HBHIBB", *p) for p in points) +
                state + data)


def kinds(name, form, *cmd):
    save(name, form, tool(MIXED, *cmd))
    save(name + "-empty", form, tool(b"", *cmd))
    save(name + "-two", form, tool(TEXT[:700], *cmd) + tool(NOISE[:300], *cmd))
    save(name + "-cut", form, tool(TEXT, *cmd)[:-7])


kinds("bzip2", BZIP2, "bzip2", "-1")
save("bzip2-runs", BZIP2, tool(bytes(300000) + TEXT, "bzip2", "-1"))
save("bzip2-garbage", BZIP2, tool(TEXT, "bzip2") + b"garbage")
kinds("xz", XZ, "xz", "-0")
kinds("xz-blocks", XZ, "xz", "-0", "-T1", "--block-size=1000")
kinds("xz-sizes", XZ, "xz", "-0", "-T2", "--block-size=3000", "-Ccrc32")
save("xz-x86", XZ, tool(MIXED, "xz", "--x86", "--lzma2=preset=0", "-Csha256"))
save("xz-zeros", XZ, tool(bytes(500000), "xz", "-0"))
kinds("zstd", ZSTD, "zstd", "-q")
save("zstd-raw", ZSTD, tool(NOISE, "zstd", "-q", "--no-check"))
save("zstd-long", ZSTD, tool(MIXED, "zstd", "-q", "--long=31"))
save("zstd-zeros", ZSTD, tool(bytes(700000), "zstd", "-q"), 0)
save("zstd-skippable", ZSTD, b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc" +
     tool(TEXT, "zstd", "-q"))
kinds("lz4", LZ4, "lz4", "-q", "-c")
kinds("lz4-linked", LZ4, "lz4", "-q", "-c", "-B4", "-BD", "-BX",
      "--content-size")
kinds("lz4-legacy", LZ4, "lz4", "-q", "-c", "-l")
save("lz4-blocks", LZ4, tool(bytes(100000) + NOISE * 40, "lz4", "-q", "-c",
                             "-B4", "-BD"))
# Points: in, state, size of it, size of the window (less one), bits, flags.
save("bzip2-index", BZIP2, tool(MIXED, "bzip2"), 2,
     [(4, 0, 0, 10999, 0, 2), (5, 0, 0, 10, 3, 0)])
save("xz-index", XZ, tool(MIXED, "xz", "-0", "-T1", "--block-size=1000"), 2,
     [(0, 0, 0, 999, 0, 2), (900, 0, 0, 99, 0, 4), (960, 0, 5, 99, 0, 0)],
     struct.pack("<I", 1) + b"\x04")
save("zstd-index", ZSTD, tool(MIXED, "zstd", "-q"), 2,
     [(0, 0, 0, 3999, 0, 2), (0, 0, 0, 999, 0, 4), (20, 0, 0, 99, 0, 4)])
save("lz4-index", LZ4, tool(MIXED, "lz4", "-q", "-c", "-B4", "-BD"), 2,
     [(0, 0, 0, 3999, 0, 2), (7, 0, 26, 3999, 0, 0)],
     struct.pack("<I", 22) + b"\x02\x10" + TEXT[:20])
