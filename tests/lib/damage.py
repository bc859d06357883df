# SPDX-License-Identifier: BSD-2-Clause
"""Damaged copies of HDF5 files: truncations, flipped bits, odd numbers.

Where h5py says that no elements are, four of five hits go.  Most metadata of
newer files has checksums, and a flip there always fails in the same way: so they
are often put right afterwards, as somebody who means harm would.
"""
import re
import struct

import h5py
import numpy as np


def raw_ranges(path):
    """Where h5py says that elements are stored: all else is metadata."""
    out = []

    def visit(_name, d):
        if not isinstance(d, h5py.Dataset) or not d.shape:
            return
        if d.chunks is None:
            at = d.id.get_offset()
            if at is not None:
                out.append((at, at + d.id.get_storage_size()))
            return
        for i in range(min(d.id.get_num_chunks(), 200)):
            c = d.id.get_chunk_info(i)
            if c.byte_offset is not None:
                out.append((c.byte_offset, c.byte_offset + c.size))
    try:
        with h5py.File(path, "r") as f:
            f.visititems(visit)
    except Exception:  # (a zoo file may be one that h5py cannot read)
        pass
    return out


def metadata(path, data):
    """Positions outside of elements, without long runs of zeros."""
    keep = np.ones(len(data), bool)
    for b, e in raw_ranges(path):
        keep[b:e] = False
    a = np.frombuffer(data, "u1") != 0
    near = a.copy()
    for k in range(1, 9):
        near[k:] |= a[:-k]
        near[:-k] |= a[k:]
    return np.flatnonzero(keep & near)


def lookup3(data):
    """The checksum of HDF5's metadata: Jenkins' lookup3, initial value 0."""
    m, n = 0xffffffff, len(data)
    v = [(0xdeadbeef + n) & m] * 3

    def rot(x, k):
        return x << k & m | x >> (32 - k)
    at = 0
    while n - at > 12:
        for i, x in enumerate(struct.unpack_from("<III", data, at)):
            v[i] = v[i] + x & m
        for i, k in enumerate((4, 6, 8, 16, 19, 4)):
            p, q, r = i % 3, (i + 2) % 3, (i + 1) % 3
            v[p] = (v[p] - v[q] & m) ^ rot(v[q], k)
            v[q] = v[q] + v[r] & m
        at += 12
    if at == n:
        return v[2]
    for i, x in enumerate(struct.unpack("<III", (data[at:] +
                                                 bytes(12))[:12])):
        v[i] = v[i] + x & m
    for i, k in enumerate((14, 11, 25, 16, 4, 14, 24)):
        p, q = (i + 2) % 3, (i + 1) % 3
        v[p] = (v[p] ^ v[q]) - rot(v[q], k) & m
    return v[2]


def sealed(data):
    """[begin, end) of what has a checksum behind it, as far as that is easy to
    find: flips in there would otherwise all fail in the same way."""
    out = []
    for m in re.finditer(rb"OHDR|OCHK|BTHD|BTIN|BTLF|FRHP|FHDB|FHIB|FAHD|FADB|"
                         rb"EAHD|EAIB|EADB|SMTB|SMLI|FSHD|\x89HDF\r\n\x1a\n",
                         data):
        at = m.start()
        sizes = range(8, 400)
        if m.group() == b"OHDR" and at + 12 <= len(data):
            flags = data[at + 5]
            head = 6 + 16 * (flags >> 5 & 1) + 4 * (flags >> 4 & 1)
            width = 1 << (flags & 3)
            size = int.from_bytes(data[at + head:at + head + width], "little")
            sizes = [head + width + size]
        for n in sizes:
            end = data[at + n:at + n + 4]
            if len(end) == 4 and end != bytes(4) and \
                    struct.unpack("<I", end)[0] == lookup3(data[at:at + n]):
                out.append((at, at + n))
                break
    return out


class Victim:
    """A file of the zoo, and where to hit it."""

    def __init__(self, group, name, path):
        self.group, self.name, self.path = group, name, path
        self.targets = [path]  # one is mounted
        self.intact = {}       # what h5py read of them before
        with open(path, "rb") as f:
            self.data = f.read()
        self.metadata = metadata(path, self.data)
        self.sealed = sealed(self.data)

    def position(self, rng):
        if len(self.metadata) and rng.random() < 0.8:
            return int(rng.choice(self.metadata))
        return rng.randrange(len(self.data))

    def damaged(self, rng):
        """(what was done, the bytes)."""
        b = bytearray(self.data)
        if rng.random() < 0.12:
            cut = rng.choice((rng.randrange(len(b)), self.position(rng)))
            return "cut at %d of %d" % (cut, len(b)), bytes(b[:cut])
        done = []
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            at = self.position(rng)
            done.append(self.hit(rng, b, at))
        resealed = rng.random() < 0.7
        for begin, end in self.sealed if resealed else ():
            if b[begin:end] != self.data[begin:end]:
                b[end:end + 4] = struct.pack("<I", lookup3(bytes(
                    b[begin:end])))
                done.append("sealed")
        return ", ".join(done), bytes(b)

    def hit(self, rng, b, at):
        how = rng.randrange(4)
        if how < 2:
            bit = rng.randrange(8)
            b[at] ^= 1 << bit
            return "bit %d of %d" % (bit, at)
        width = rng.choice((1, 2, 4, 8)) if how == 2 else 1
        old = int.from_bytes(b[at:at + width], "little")
        top = 1 << 8 * width
        new = rng.choice((0, top - 1, top // 2, old + 1, old - 1, old * 2,
                          rng.randrange(top))) % top
        b[at:at + width] = new.to_bytes(width, "little")[:len(b) - at]
        return "%d:%d = %#x" % (at, width, new)
