#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the seeds of fuzz-safetensors, fuzz-arrow, fuzz-parquet and fuzz-columns into corpus/ beside it."""
import json
import os
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import arrows as A
import parquets as P

HERE = os.path.dirname(os.path.abspath(__file__))


def write(kind, name, data):
    folder = os.path.join(HERE, "corpus", kind)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data)


def safetensors():
    a = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
    b = {"dtype": "BF16", "shape": [], "data_offsets": [24, 26]}
    for name, n, header in (
            ("two", 26, {"b": b, "a": a}), ("none", 0, {}),
            ("metadata", 24, {"__metadata__": {"format": "pt"}, "a": a}),
            ("hole", 30, {"a": a, "b": {**b, "data_offsets": [28, 30]}}),
            ("overlap", 26, {"a": a, "b": {**b, "data_offsets": [23, 25]}}),
            ("f4", 2, {"a": {"dtype": "F4", "shape": [4], "data_offsets": [0, 2]}}),
            ("huge", 0, {"a": {**a, "shape": [2**40, 2**40]}}),
            ("axes", 4, {"a": {"dtype": "U8", "shape": [1] * 40 + [4],
                               "data_offsets": [0, 4]}}),
            ("twice", 24, '{"a": %s, "a": %s}' % (json.dumps(a), json.dumps(a))),
            ("escape", 24, '{"\\u0061\\"": %s}   ' % json.dumps(a)),
            ("deep", 0, '{"a": ' + '{"a": ' * 50), ("cut", 0, '{"a\\')):
        if not isinstance(header, str):
            header = json.dumps(header)
        write("safetensors", name, struct.pack("<H", n) + header.encode())


def arrow_messages(path):
    """The metadata of the messages of a stream or a file."""
    with open(path, "rb") as f:
        data = f.read()
    at = 8 if data.startswith(b"ARROW1") else 0
    while True:
        mark, n = struct.unpack_from("<II", data, at)
        if mark != 0xffffffff or not n:
            return
        metadata = data[at + 8:at + 8 + n]
        root, = struct.unpack_from("<I", metadata)
        table = root - struct.unpack_from("<i", metadata, root)[0]
        fields = struct.unpack_from("<H", metadata, table)[0] // 2 - 2
        body = struct.unpack_from("<H", metadata, table + 4 + 6)[0] if fields > 3 else 0
        if body:
            body, = struct.unpack_from("<q", metadata, root + body)
        yield metadata
        at += 8 + n + body


def arrow():
    folder = os.path.join(HERE, "..", "lib", "columns")
    for name in ("batches.arrows", "zstd.arrow", "dictionary.arrow", "binary.arrow"):
        schema, *others = arrow_messages(os.path.join(folder, name))
        write("arrow", name, struct.pack("<H", len(schema)) + schema + others[-1])
        write("arrow", name + "-cut", struct.pack("<H", len(schema)) +
              schema + others[-1][:len(others[-1]) // 2])


def parquet():
    folder = os.path.join(HERE, "..", "lib", "columns")
    for name in ("pages1", "pages2", "zstd", "binary1"):
        with open(os.path.join(folder, name + ".parquet"), "rb") as f:
            data = f.read()
        n, = struct.unpack("<I", data[-8:-4])
        footer = data[-8 - n:-8]
        write("parquet", name, b"\x80" + footer)
        write("parquet", name + "-cut", b"\x80" + footer[:n // 2])
    # Pages of polars that are not compressed: INT32 (a dictionary first), text.
    with open(os.path.join(folder, "uncompressed.parquet"), "rb") as f:
        data = f.read()
    for kind in (1, 2, 3, 9, 10, 11):
        write("parquet", "page-%d" % kind, bytes([kind]) + data[4:2000])
    # A header by hand: data page 1, of 8 bytes, 2 values.
    for kind, encoding in ((0, 0), (0, 6), (1, 0), (1, 16), (4, 0)):
        write("parquet", "made-%d-%d" % (kind, encoding), bytes(
            [kind, 0x15, 0, 0x15, 16, 0x15, 16, 0x2c, 0x15, 4, 0x15, encoding,
             0x15, 6, 0x15, 6, 0, 0]) + b"\1\0\0\0\3\0\0\0")
    numbers = [3, -5, 2**31, 7, 7, 7, 0, -2**40] * 20
    texts = [b"", b"ab", b"abc", b"abcd"] * 3
    prefixes = [0, 0, 2, 3, 0, 0, 2, 3, 0, 0, 2, 3]
    suffixes = [t[p:] for p, t in zip(prefixes, texts)]
    levels = P.runs([1] * 12, 1)
    for name, kind, page in (
            ("delta-4", 1, P.page1(P.delta(numbers, bits=32), 160, P.DELTA)),
            ("delta-8", 2, P.page2(P.delta(numbers, 256, 8), 160, P.DELTA)),
            ("lengths", 11, P.page2(P.delta(map(len, texts)) + b"".join(texts), 12,
                                    P.DELTA_LENGTHS, levels)),
            ("prefixes", 3, P.page1(P.delta(prefixes) + P.delta(map(len, suffixes)) +
                                    b"".join(suffixes), 12, P.DELTA_BYTES)),
            ("split", 2, P.page1(bytes(range(80)), 10, P.SPLIT)),
            ("levels-2", 9, P.page2(bytes(48), 12, P.PLAIN, P.runs(
                [1] * 11 + [0], 1, True)))):
        write("parquet", name, bytes([kind]) + page)
    # Two values and two nulls, the row or what it is in.
    page = b"\x08\0\0\0\x04\x02\x02\0\x02\x01\x04\x02" + b"\1\0\0\0a\0\0\0\0" * 2
    write("parquet", "made-nulls", bytes(
        [23, 0x15, 0, 0x15, 2 * len(page), 0x15, 2 * len(page), 0x2c, 0x15, 12, 0x15, 0,
         0x15, 6, 0x15, 6, 0, 0]) + page)
    # Lists of numbers: of two, none, null; one that has a null.
    numbers = struct.pack("<iii", 7, -8, 9)
    page = b"\6\0\0\0\2\0\2\1\x06\0" + b"\x0a\0\0\0\4\3\2\1\2\0\2\2\2\3" + numbers
    for kind in (32 + 1 + 5 * 5, 64 + 32):
        kind += (1 - kind) % 5
        write("parquet", "made-lists-%d" % kind, bytes(
            [kind, 0x15, 0, 0x15, 2 * len(page), 0x15, 2 * len(page), 0x2c, 0x15, 12,
             0x15, 0, 0x15, 6, 0x15, 6, 0, 0]) + page)


# Whole files, of each kind of writer, codec and column; fewer and small ones fuzz better.
WHOLE = ("dictionary.arrow", "nested.arrow", "nested.arrows", "nested-uncompressed.arrow",
         "nested-zstd.arrow", "lz4.arrow", "brotli.parquet", "nested.parquet",
         "nested1.parquet", "nested2.parquet", "nested-duck.parquet",
         "binary-one.parquet", "gzip.parquet", "snappy.parquet")


def columns():
    for name in WHOLE:
        with open(os.path.join(HERE, "..", "lib", "columns", name), "rb") as f:
            write("columns", name, f.read())
    kind = A.schema([A.field("kind", A.UTF8, {}, dictionary=(7, -8)), A.int32("y")])

    def words(*values, delta=False):
        ends = [sum(map(len, values[:i])) for i in range(len(values) + 1)]
        return A.values(7, *A.plain(len(values), b"", struct.pack(
            "<%di" % len(ends), *ends), b"".join(values)), delta=delta)

    def rows(*numbers):
        n = len(numbers)
        return A.plain(n, b"", bytes(numbers), b"", struct.pack("<%di" % n, *numbers),
                       nodes=[(n, 0)] * 2)
    some = [words(b"a", b"bc"), rows(0, 1), words(b"d", delta=True), rows(2, 0)]
    write("columns", "delta.arrows", A.stream(kind, *some, words(b"e"), rows(0)))
    write("columns", "delta.arrow", A.file(kind, *some))
    item = A.field("item", A.UTF8_VIEW, {})
    schema = A.schema([A.field("l", A.LIST_VIEW, {}, [item])])
    long = b"0123456789abcdef"
    views = struct.pack("<i12si4sii", 2, b"ab", len(long), long[:4], 0, 1)
    write("columns", "views.arrows", A.stream(schema, A.plain(
        2, b"\2", struct.pack("<ii", 1, 0), struct.pack("<ii", 1, 2), b"", views,
        b"-" + long, nodes=[(2, 1), (2, 0)], more=[1])))


safetensors()
arrow()
parquet()
columns()
