#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the seeds of fuzz-safetensors into corpus/ beside it."""
import json
import os
import struct

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


safetensors()
