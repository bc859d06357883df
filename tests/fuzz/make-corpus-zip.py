#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the seeds of fuzz-zip into corpus/zip beside it: what Python's zipfile makes,
whole and broken."""
import io
import os
import struct
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
TEXT = b"one two three four " * 60


def save(name, data):
    directory = os.path.join(HERE, "corpus", "zip")
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, name), "wb") as f:
        f.write(data)


def make(members, compression=zipfile.ZIP_DEFLATED, stream=False, comment=b""):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as z:
        z.comment = comment
        for name, data, mode in members:
            i = zipfile.ZipInfo(name, (2020, 2, 2, 2, 2, 2))
            i.external_attr = mode << 16
            i.compress_type = compression
            if stream:
                with z.open(i, "w", force_zip64=True) as f:
                    f.write(data)
            else:
                z.writestr(i, data)
    return out.getvalue()


TREE = [("d/", b"", 0o40755), ("d/a", TEXT, 0o100644), ("e", b"", 0o100600),
        ("l", b"d/a", 0o120777), ("Grüße", b"x" * 9, 0o100644)]
save("deflated", make(TREE))
save("stored", make(TREE, zipfile.ZIP_STORED))
save("zip64", make(TREE[1:2], stream=True))
save("bzip2", make(TREE, zipfile.ZIP_BZIP2))
save("empty", make([]))
save("comment", make(TREE[:2], comment=b"a comment PK\5\6"))
save("in-front", b"#!/bin/sh\n" + make(TREE))
save("large", make([("zeros", bytes(17 << 20), 0o100644)]))
good = make(TREE)
at = good.index(b"PK\1\2")
save("cut", good[:-30])
save("overlap", good[:at + 20] + struct.pack("<I", 9999) + good[at + 24:])
save("encrypted", good[:at + 8] + b"\1\0" + good[at + 10:])
save("short", b"PK!\6P")
save("program", b"MZ" + bytes(9) + make(TREE, comment=good[-22:]))
