#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the seeds of fuzz-tar, fuzz-pax and fuzz-sparse into corpus/ beside it,
from the corner cases of the mount tests."""
import os
import struct
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import tar_cases as t  # noqa: E402

WANTED = """hardlinks hardlink-to-nothing v7-hardlink-with-size link-filled
ustar-hardlink-with-size pax-hardlink-to-nothing-with-body symlink-in-the-way
denormal absolute redundant-L K-and-L prefix full-folder-then-file
file-folder-file v7 gnu-dumpdir star label multi-volume solaris-acl
base-256-size size-negative pax-mtime pax-global pax-malformed-length
xattr-both sparse-old-extended sparse-star sparse-0.0 sparse-0.1 sparse-1.0
sparse-10-gib devices lone-zero-block concatenated damaged-header cut-1411
trailing-text""".split()


def write(kind, name, data):
    folder = os.path.join(HERE, "corpus", kind)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data)


def tars():
    with tempfile.TemporaryDirectory() as tmp:
        for name, path, _ in t.cases(tmp):
            if name in WANTED:
                with open(path, "rb") as f:
                    data = f.read()
                write("tar", name, bytes([4]) + data)
                if name in ("sparse-1.0", "pax-global", "hardlinks"):
                    write("tar", name + "-fails", bytes([1]) + data)
                    write("tar", name + "-slowly", bytes([2]) + data)


def records():
    r = t.record
    write("pax", "names", r(b"path", b"a/b") + r(b"linkpath", b"c") +
          r(b"GNU.sparse.name", b"d") + r(b"path", b""))
    write("pax", "numbers", r(b"size", b"1234") + r(b"uid", b"-1") +
          r(b"gid", b"99999999999999999999") + r(b"SCHILY.devmajor", b"8") +
          r(b"SCHILY.devminor", b"1") + r(b"SCHILY.realsize", b"77"))
    write("pax", "times", r(b"mtime", b"-1.25") + r(b"mtime", b"1.5x") +
          r(b"mtime", b"17.123456789123"))
    write("pax", "sparse", r(b"GNU.sparse.major", b"1") +
          r(b"GNU.sparse.map", b"0,1,5,6") + r(b"GNU.sparse.offset", b"1") +
          r(b"GNU.sparse.numbytes", b"2"))
    write("pax", "attributes", r(b"SCHILY.xattr.user.a%3D", b"\0\1=\n") +
          r(b"LIBARCHIVE.xattr.user.b%20", b"QUJD") +
          r(b"SCHILY.xattr.user.b ", b""))
    write("pax", "malformed", r(b"mtime", b"1") + b"4 x=\n" + b"3 a")
    write("pax", "huge", b"99999999999999999999 a=b\n")


def maps():
    def seed(name, kind, data, size=5000, pos=512, stored=612):
        write("sparse", name,
              bytes([kind]) + struct.pack("<III", size, pos, stored) + data)
    seed("list", 0, b"0,512,4096,100,5000,0")
    seed("list-unsorted", 0, b"4096,100,0,512")
    seed("list-overlap", 0, b"0,512,100,100")
    seed("list-half", 0, b"0,512,4096")
    seed("lines", 1, b"# comment\n2\n0\n512\n4096\n100\n" + b"\0" * 40)
    seed("lines-too-many", 1, b"99999999999999999999\n")
    pairs = t.sparse_map((0, 512), (4096, 100), (5000, 0))
    seed("more", 2, pairs.ljust(504, b"\0") + b"\1" + b"\0" * 7)
    gnu = (b"\0" * 41 + pairs.ljust(96, b"\0") + b"\0" +
           t.number(5000, 12)).ljust(167, b"\0")
    seed("header", 3, t.header(b"f", b"S", magic=t.GNU, prefix=gnu[:155],
                               pad=gnu[155:]))
    star = (b"\0" * 11 + pairs.ljust(96, b"\0") + t.number(5000, 12) +
            b"\0" * 36 + b"\0" * 8 + b"tar\0")
    seed("star", 3, t.header(b"f", b"S", prefix=star[:155], pad=star[155:]))


tars()
records()
maps()
