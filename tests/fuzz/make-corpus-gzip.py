#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the seeds of fuzz-gzip into corpus/gzip beside it: files of zlib's ways to
write, headers with all fields, several members, and seek points.  The output does
not depend on when or where it runs.
"""
import os
import random
import struct
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
r = random.Random(1)
TEXT = b"".join(r.choice([b"tensor ", b"archive ", b"window\n", b"a ", b"of "])
                for _ in range(9000))
NOISE = bytes(r.randrange(256) for _ in range(3000))


def member(data, level=6, strategy=0, mem=8, flags=0, fields=b"", flush=None):
    c = zlib.compressobj(level, zlib.DEFLATED, -15, mem, strategy)
    body = b""
    for at in range(0, len(data), flush or len(data) or 1):
        body += c.compress(data[at:at + (flush or len(data))])
        if flush:
            body += c.flush(zlib.Z_SYNC_FLUSH)
    head = bytes([0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 3]) + fields
    if flags & 2:
        head += struct.pack("<H", zlib.crc32(head) & 0xffff)
    return head + body + c.flush() + struct.pack(
        "<II", zlib.crc32(data), len(data) & 0xffffffff)


def save(name, data, points=(), state=b""):
    directory = os.path.join(HERE, "corpus", "gzip")
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, name), "wb") as f:
        f.write(bytes([len(points), len(state)]) +
                b"".join(struct.pack("<HBHIBB", *p) for p in points) +
                state + data)


save("empty", b"")
save("nothing", member(b""))
save("text", member(TEXT))
save("text-fast", member(TEXT, 1))
save("text-fixed", member(TEXT[:3000], strategy=4))
save("text-huffman", member(TEXT[:5000], strategy=2))
save("text-small-blocks", member(TEXT[:9000], mem=1))
save("zeros", member(bytes(300000), 9))
save("noise", member(NOISE))
save("stored", member(NOISE, 0))
save("flushed", member(TEXT[:4000], flush=500))
save("fields", member(b"some", flags=0x1e,
                      fields=b"\x06\x00BC\x02\x00\x1b\x00name\x00comment\x00"))
save("members", member(b"one") + member(b"") + member(NOISE[:300]) +
     member(TEXT[:40000]))
save("padded", member(b"one") + bytes(100) + member(b"two") + bytes(30))
save("garbage", member(b"one") + b"something else")
save("cut", member(TEXT)[:-20])
save("bad-checksum", member(TEXT[:40000])[:-5] + b"\x00" * 5 + member(b"two"))
# Points: in, state, size of it, size of the window (less one), bits, flags.
stored = member(TEXT, 0)  # blocks of stored bytes; the first one begins at 10
save("index", stored, [(0, 0, 0, 999, 0, 2), (10, 0, 12, 4999, 0, 0),
                       (1000, 12, 12, 999, 0, 0)],
     struct.pack("<IQ", 8, 2 ** 64 - 1) + struct.pack("<IQ", 8, 80))
coded = member(TEXT)
save("index-coded", coded, [(0, 0, 0, 29999, 0, 2), (40, 0, 32, 9999, 3, 0)],
     struct.pack("<IQ", 28, 80) + TEXT[:20])
