# SPDX-License-Identifier: BSD-2-Clause
"""A small writer of Arrow IPC files, after Schema.fbs, Message.fbs and File.fbs: as a
test wants them, also such as no writer makes."""
import struct

INT, BINARY, UTF8, DECIMAL, TIMESTAMP, LIST, STRUCT, UNION, FIXED_LIST = \
    2, 4, 5, 7, 10, 12, 13, 14, 16
BINARY_VIEW, UTF8_VIEW, LIST_VIEW = 23, 24, 25


class Table:
    """A FlatBuffers table: {field: (struct's letter, number)}, or another table, a list
    of these, text, or (letters, rows) for a list of structures.  What is the same
    object is stored once."""

    def __init__(self, fields):
        self.fields = fields


def flat(root):
    """Front to back: what is pointed to comes behind all that point to it first."""
    out, where, links = bytearray(4), {}, [(0, root)]

    def put(o):
        out.extend(bytes(-len(out) % 8))
        if isinstance(o, Table):
            n = max(o.fields, default=-1) + 1
            sizes = [o.fields.get(i) for i in range(n)]
            offsets, at = [], 8
            for f in sizes:
                offsets.append(at if f is not None else 0)
                at += 8 if f is not None else 0
            table = struct.pack("<HH%dH" % n, 4 + 2 * n, at, *offsets)
            out.extend(table + bytes(-len(table) % 8))
            start = len(out)
            out.extend(struct.pack("<i", len(table) + -len(table) % 8) + bytes(at - 4))
            for f, offset in zip(sizes, offsets):
                if isinstance(f, tuple) and isinstance(f[1], int):
                    struct.pack_into("<" + f[0], out, start + offset, f[1])
                elif f is not None:
                    links.append((start + offset, f))
            return start
        start = len(out)
        if isinstance(o, tuple):
            out.extend(struct.pack("<II", 0, len(o[1])))
            start += 4
            for row in o[1]:
                out.extend(struct.pack("<" + o[0], *row))
        elif isinstance(o, str):
            data = o.encode()
            out.extend(struct.pack("<I", len(data)) + data + b"\0")
        else:
            out.extend(struct.pack("<I", len(o)) + bytes(4 * len(o)))
            links.extend((start + 4 + 4 * i, x) for i, x in enumerate(o))
        return start

    # In rounds: all links of one are known before what they lead to is put.
    while links:
        now, links = links, []
        for at, o in now:
            if id(o) not in where or where[id(o)] <= at:
                where[id(o)] = put(o)
            struct.pack_into("<I", out, at, where[id(o)] - at)
    return bytes(out)


def field(name, kind, type_fields, children=(), metadata=None, dictionary=None):
    """`dictionary`: its id, and the bits of its numbers."""
    f = {0: name, 1: ("B", 0), 2: ("B", kind), 3: Table(type_fields), 5: list(children)}
    if dictionary:
        f[4] = Table({0: ("q", dictionary[0]),
                      1: Table({0: ("i", abs(dictionary[1])),
                                1: ("B", dictionary[1] < 0)})})
    if metadata:
        f[6] = metadata
    return Table(f)


def int32(name, **more):
    return field(name, INT, {0: ("i", 32), 1: ("B", 1)}, **more)


def schema(fields):
    return Table({0: ("h", 0), 1: fields})


def batch(rows, nodes, buffers, codec=None, more=None):
    t = {0: ("q", rows), 1: ("qq", nodes), 2: ("qq", buffers)}
    if codec is not None:
        t[3] = Table({0: ("b", codec), 1: ("b", 0)})
    if more is not None:
        t[4] = ("q", [(n,) for n in more])
    return Table(t)


def values(number, table, body, delta=False):
    """A batch for `stream` and `file` that is of a dictionary."""
    return Table({0: ("q", number), 1: table, 2: ("B", delta)}), body, 2


def plain(rows, *buffers, nodes=None, **how):
    """A batch of such buffers, one after the other; nodes of as many rows, no nulls."""
    body, at = b"", []
    for b in buffers:
        at.append((len(body), len(b)))
        body += b + bytes(-len(b) % 8)
    return batch(rows, nodes or [(rows, 0)], at, **how), body


# Version of the metadata, as Schema.fbs numbers them (4 is V5); and whether a message
# begins as since Arrow 0.15.
framing = {"version": 4, "continued": True}


def end_of(stream):
    return stream + (struct.pack("<II", 0xffffffff, 0) if framing["continued"]
                     else struct.pack("<I", 0))


def message(kind, header, body=b"", length=None):
    meta = flat(Table({0: ("h", framing["version"]), 1: ("B", kind), 2: header,
                       3: ("q", len(body) if length is None else length)}))
    if not framing["continued"]:
        meta += bytes(-(len(meta) + 4) % 8)
        return struct.pack("<I", len(meta)) + meta + body
    meta += bytes(-len(meta) % 8)
    return struct.pack("<II", 0xffffffff, len(meta)) + meta + body


def kind_of(batch):
    return batch[2] if len(batch) > 2 else 3


def stream(schema, *batches):
    """Batches: (table, body), or as `values` makes them."""
    return end_of(message(1, schema) +
                  b"".join(message(kind_of(b), b[0], b[1]) for b in batches))


def file(schema, *batches, repeat=1):
    out, blocks = b"ARROW1\0\0" + message(1, schema), {2: [], 3: []}
    for b in batches:
        m = message(kind_of(b), b[0], b[1])
        blocks[kind_of(b)] += [(len(out), len(m) - len(b[1]), 0, len(b[1]))] * repeat
        out += m
    footer = flat(Table({0: ("h", framing["version"]), 1: schema,
                         2: ("qiiq", blocks[2]),
                         3: ("qiiq", blocks[3])}))
    return out + footer + struct.pack("<I", len(footer)) + b"ARROW1"
