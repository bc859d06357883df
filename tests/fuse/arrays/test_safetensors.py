#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""safetensors files: written here by the published rules, against numpy and torch."""
import errno
import json
import os
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import lib
import numpy as np
import torch
from checks import check, equal, fails_with, read
from lib import Mount, case, exits, tensorfs

work = None
rng = np.random.default_rng(11)
TYPES = {"BOOL": "?", "U8": "u1", "I8": "i1", "I16": "<i2", "U16": "<u2",
         "F16": "<f2", "I32": "<i4", "U32": "<u4", "F32": "<f4", "C64": "<c8",
         "F64": "<f8", "I64": "<i8", "U64": "<u8"}
AS_BITS = {"BF16": "<u2", "F8_E4M3": "u1", "F8_E5M2": "u1", "F8_E8M0": "u1"}


def write(name, header, data, pad=8):
    """The file; `header` is text, bytes, or what is made JSON."""
    if not isinstance(header, (str, bytes)):
        header = json.dumps(header)
    if isinstance(header, str):
        header = header.encode()
    header += b" " * (-len(header) % pad)
    path = os.path.join(work, name)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + data)
    return path


def model(name, tensors, metadata=None, pad=8):
    """`tensors`: (name, type, array) in the order of the buffer."""
    header, data = {}, b""
    for key, kind, a in tensors:
        raw = a.tobytes()
        header[key] = {"dtype": kind, "shape": list(a.shape),
                       "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    if metadata is not None:
        header["__metadata__"] = metadata
    items = list(header.items())
    rng.shuffle(items)
    return write(name, dict(items), data, pad)


def bits(dtype, shape):
    n = int(np.prod(shape, dtype=int)) * np.dtype(dtype).itemsize
    raw = rng.integers(0, 2 if dtype == "?" else 256, n, dtype="u1")
    return np.frombuffer(raw.tobytes(), dtype).reshape(shape)


@case
def every_type_and_shape():
    tensors = []
    for kind, dtype in {**TYPES, **AS_BITS}.items():
        for shape in ((), (5,), (3, 4), (2, 0, 3), (2, 3, 1, 2)):
            tensors.append(("%s.%s" % (kind, "x".join(map(str, shape))), kind,
                            bits(dtype, shape)))
    for pad in (1, 8, 4096):
        path = model("types%d.safetensors" % pad, tensors, {"format": "pt"}, pad)
        with Mount(path) as m:
            equal(sorted(os.listdir(m.path)), sorted(t[0] for t in tensors), "names")
            for name, kind, a in tensors:
                got = np.load(m / (name + "/array.npy"))
                equal((got.dtype.str, got.shape), (a.dtype.str, a.shape), name)
                equal(got.tobytes(), a.tobytes(), name)
        exits(tensorfs("verify", path), 0, "verify")


@case
def bfloat16_is_what_torch_means():
    a = torch.arange(-4, 4, 0.37).to(torch.bfloat16)
    path = model("bf16.safetensors",
                 [("w", "BF16", a.view(torch.int16).numpy())], {"a": "b"})
    with Mount(path) as m:
        got = torch.from_numpy(np.load(m / "w/array.npy").view("<i2"))
        check(torch.equal(got.view(torch.bfloat16), a), "bits of bfloat16")
        equal(np.load(m / "w/samples/000003.npy").shape, (), "a sample")
        info = json.loads(read(m / "w/info.json"))
    check("bfloat16, shown as its bits" in json.dumps(info), info)
    equal(info["attributes"], {"a": "b"}, "metadata")


@case
def names():
    one = np.ones(1, "<f4")
    path = model("names.safetensors", [
        (n, "F32", one * i) for i, n in enumerate(
            ("model.layers.0.w", "a/b", "\u00e9 x", "..", "a\"\\"))])
    with Mount(path) as m:
        found = sorted(os.listdir(m.path))
        equal(len(found), 5, "one directory each")
        check("model.layers.0.w" in found and "a%2Fb" in found and
              "\u00e9 x" in found and "a\"\\" in found, found)
        equal(float(np.load(m / "a%2Fb/array.npy")[0]), 1.0, "a/b")


@case
def nothing_in_it():
    path = write("empty.safetensors", "{}", b"")
    with Mount(path) as m:
        equal(os.listdir(m.path), [], "tensors")
    path = write("only.safetensors", '{ "__metadata__" : {} } \n', b"", 1)
    exits(tensorfs("ls", path), 0, "ls")


@case
def elements_smaller_than_a_byte_are_listed():
    path = write("f4.safetensors", {
        "a": {"dtype": "F4", "shape": [4], "data_offsets": [0, 2]},
        "b": {"dtype": "U8", "shape": [2], "data_offsets": [2, 4]}}, b"abcd")
    with Mount(path) as m:
        equal(np.load(m / "b/array.npy").tobytes(), b"cd", "b")
        check(not os.path.exists(m / "a/array.npy"), "a is shown")


def entry(dtype="U8", shape=(4,), offsets=(0, 4)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


@case
def bad_headers():
    ok = json.dumps(entry())
    for i, (header, data, word) in enumerate([
            ({"a": entry()}, b"abc", "truncated"),
            ({"a": entry()}, b"abcde", "the buffer has 5"),
            ({"a": entry(), "b": entry(offsets=(5, 9))}, b"a" * 9, "hole"),
            ({"a": entry(), "b": entry(offsets=(3, 7))}, b"a" * 7, "overlap"),
            ({"a": entry(), "b": entry()}, b"a" * 4, "overlap"),
            ({"a": entry(offsets=(1, 5))}, b"a" * 5, "hole"),
            ('{"a": %s, "a": %s}' % (ok, ok), b"a" * 4, "twice"),
            ('{"a": %s, "\\u0061": %s}' % (ok, ok), b"a" * 4, "twice"),
            ('{"a": {"dtype": "U8", "dtype": "U8", "shape": [4], '
             '"data_offsets": [0, 4]}}', b"a" * 4, "duplicate"),
            ({"a": entry("U16")}, b"a" * 4, "type and shape take 8"),
            ({"a": entry("X9")}, b"a" * 4, "unknown"),
            ({"a": entry(shape=(2**40, 2**40))}, b"a" * 4, "too large"),
            ({"a": entry(shape=(-4,))}, b"a" * 4, "not a number"),
            ({"a": entry(shape=(4.0,))}, b"a" * 4, "not a number"),
            ({"a": entry(offsets=(4, 0))}, b"a" * 4, "data_offsets"),
            ({"a": entry(offsets=(0, 2**63 - 1))}, b"a" * 4, "truncated"),
            ('{"a": {"dtype": "U8", "shape": [4], "data_offsets": '
             '[0, 99999999999999999999]}}', b"a" * 4, "too big"),
            ({"a": entry("F4", (3,), (0, 1))}, b"a", "whole bytes"),
            ({"a": entry(), "__metadata__": {"x": 1}}, b"a" * 4, "not a string"),
            ({"a": 3}, b"", "not a JSON object"),
            ({"a": {}}, b"", "no \"dtype\""),
            ('{"a": ' + ok, b"a" * 4, "not a JSON object"),
            ('{"a": %s,}' % ok, b"a" * 4, "not a JSON object"),
            ('{"a": %s} x' % ok, b"a" * 4, "follows"),
            (b'{"\xff": ' + ok.encode() + b"}", b"a" * 4, "0xff"),
            ('{"a": ' + '{"b": ' * 9000 + "}" * 9001, b"", "")]):
        path = write("bad%d.safetensors" % i, header, data)
        for argv in (["ls", path], ["info", path], ["verify", path]):
            p = exits(tensorfs(*argv), 3, "%d: %s" % (i, argv[0]))
            check(word in p.stderr and os.path.basename(path) in p.stderr,
                  "%d: %s" % (i, p.stderr))


@case
def bad_lengths():
    path = model("good.safetensors", [("a", "U8", np.arange(4, dtype="u1"))])
    whole = read(path)
    for n in (10, 20, len(whole) - 1):
        cut = os.path.join(work, "cut%d.safetensors" % n)
        with open(cut, "wb") as f:
            f.write(whole[:n])
        check("truncated" in exits(tensorfs("ls", cut), 3, str(n)).stderr, n)
    with open(cut, "wb") as f:
        f.write(struct.pack("<Q", 10**8) + whole[8:])
    check("truncated" in exits(tensorfs("ls", cut), 3, "100 MB").stderr, "100 MB")


@case
def changed_under_the_mount():
    a = np.arange(10**6, dtype="<f4")
    path = model("cut.safetensors", [("a", "F32", a)])
    with Mount(path) as m:
        os.truncate(path, 3000000)
        fails_with((errno.EIO, errno.ESTALE, errno.ENODATA),
                   lambda: read(m / "a/array.npy"), "a file cut short")


work = lib.setup()
lib.main()
