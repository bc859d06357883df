# SPDX-License-Identifier: BSD-2-Clause
"""A small writer of Parquet files, after parquet-format's documents: pages as a test
wants them, also such as no writer makes."""
import struct

import numpy as np

BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTES, FIXED = range(8)
PLAIN, PLAIN_DICTIONARY, RLE, BIT_PACKED, DELTA, DELTA_LENGTHS, DELTA_BYTES, \
    RLE_DICTIONARY, SPLIT = 0, 2, 3, 4, 5, 6, 7, 8, 9


# ---- Thrift's compact protocol: values are (kind, value), structures {id: value} ----

def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def zigzag(n):
    return varint(2 * n if n >= 0 else -2 * n - 1)


def i32(n):
    return 5, zigzag(n)


def i64(n):
    return 6, zigzag(n)


def text(s):
    s = s.encode() if isinstance(s, str) else s
    return 8, varint(len(s)) + s


def flag(b):
    return (1 if b else 2), b""


def struct_of(fields):
    out, last = b"", 0
    for i, (kind, data) in sorted(fields.items()):
        out += bytes([(i - last) << 4 | kind]) + data
        last = i
    return 12, out + b"\0"


def list_of(values):
    kind = values[0][0] if values else 12
    head = bytes([len(values) << 4 | kind]) if len(values) < 15 else \
        bytes([0xf0 | kind]) + varint(len(values))
    return 9, head + b"".join(v for _, v in values)


# ---- encodings ----

def runs(values, width, packed=False):
    """Runs, or groups of eight packed ones."""
    values, out, n = list(values), b"", (width + 7) // 8
    if packed:
        bits = sum(v << i * width for i, v in enumerate(values))
        groups = -(-len(values) // 8)
        return varint(groups << 1 | 1) + bits.to_bytes(groups * width, "little")
    while values:
        same = next((i for i, v in enumerate(values) if v != values[0]), len(values))
        out += varint(same << 1) + values[0].to_bytes(n, "little")
        values = values[same:]
    return out


def long(data):
    return struct.pack("<I", len(data)) + data


def delta(values, block=128, minis=4, bits=64):
    values = [int(v) for v in values]
    out = varint(block) + varint(minis) + varint(len(values)) + \
        zigzag(values[0] if values else 0)
    steps = [(b - a + 2**(bits - 1)) % 2**bits - 2**(bits - 1)
             for a, b in zip(values, values[1:])]
    per = block // minis
    for i in range(0, len(steps), block):
        some = steps[i:i + block]
        least = min(some)
        widths, data = [], b""
        for k in range(0, block, per):
            mini = [s - least for s in some[k:k + per]]
            widths.append(max(mini, default=0).bit_length())
            if mini:
                data += sum(v << j * widths[-1] for j, v in enumerate(mini)).to_bytes(
                    per * widths[-1] // 8, "little")
        out += zigzag(least) + bytes(widths) + data
    return out


def split(a):
    a = np.ascontiguousarray(a)
    return a.view("u1").reshape(len(a), -1).T.tobytes()


# ---- pages and files ----

def page(kind, fields, data, stored=None, size=None, crc=None):
    stored = data if stored is None else stored
    head = {1: i32({5: 0, 7: 2, 8: 3}[kind]), 2: i32(len(data) if size is None else size),
            3: i32(len(stored)), kind: struct_of(fields)}
    if crc is not None:
        head[4] = i32(crc)
    return struct_of(head)[1] + stored


def page1(data, n, encoding=PLAIN, **how):
    return page(5, {1: i32(n), 2: i32(encoding), 3: i32(RLE), 4: i32(RLE)}, data, **how)


def page2(data, n, encoding=PLAIN, levels=b"", repeats=b"", nulls=0, rows=None, **how):
    return page(8, {1: i32(n), 2: i32(nulls), 3: i32(n if rows is None else rows),
                    4: i32(encoding), 5: i32(len(levels)), 6: i32(len(repeats)),
                    7: flag(False)}, repeats + levels + data, **how)


def dictionary(data, n, **how):
    return page(7, {1: i32(n), 2: i32(PLAIN)}, data, **how)


class Column:
    """`pages`: bytes, or those of each row group."""

    def __init__(self, name, kind, pages, optional=False, encoding=PLAIN, codec=0,
                 nulls=None, values=None, short=0, **element):
        self.short = short  # bytes that the footer does not count
        self.name, self.kind, self.codec, self.nulls = name, kind, codec, nulls
        self.pages = [pages] if isinstance(pages, bytes) else pages
        self.encoding, self.values = encoding, values
        self.element = {1: i32(kind), 3: i32(1 if optional else 0), 4: text(name),
                        **{int(k[1:]): v for k, v in element.items()}}


def write(path, columns, *rows, total=None):
    """One row group for each number of rows; `total` is what the footer says."""
    out, groups = b"PAR1", []
    for g, n in enumerate(rows):
        chunks = []
        for c in columns:
            about = {1: i32(c.kind), 2: list_of([i32(c.encoding)]),
                     3: list_of([text(c.name)]), 4: i32(c.codec),
                     5: i64(c.values[g] if c.values else n),
                     6: i64(len(c.pages[g]) - c.short),
                     7: i64(len(c.pages[g]) - c.short),
                     9: i64(len(out))}
            if c.nulls is not None:
                about[12] = struct_of({3: i64(c.nulls)})
            chunks.append(struct_of({2: i64(len(out)), 3: struct_of(about)}))
            out += c.pages[g]
        groups.append(struct_of({1: list_of(chunks), 2: i64(len(out)), 3: i64(n)}))
    schema = [struct_of({4: text("schema"), 5: i32(len(columns))}),
              *[struct_of(c.element) for c in columns]]
    footer = struct_of({1: i32(2), 2: list_of(schema), 3: i64(sum(rows) if total is None else total),
                        4: list_of(groups)})[1]
    with open(path, "wb") as f:
        f.write(out + footer + struct.pack("<I", len(footer)) + b"PAR1")
    return path
