#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the seeds of fuzz-npyhead, fuzz-pnm and fuzz-csv into corpus/ beside it."""
import io
import os

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


def write(kind, name, data):
    folder = os.path.join(HERE, "corpus", kind)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data)


def npy(a, version=None):
    f = io.BytesIO()
    np.lib.format.write_array(f, a, version)
    return f.getvalue()


def arrays():
    for name, a in (("f4", np.zeros((3, 4), "f4")), ("0d", np.array(1.5)),
                    ("fortran", np.zeros((2, 3), ">c8", order="F")),
                    ("empty", np.zeros((4, 0, 2), "?")),
                    ("bytes", np.array([b"abc"])), ("void", np.zeros(2, "V300")),
                    ("text", np.array(["a"])), ("date", np.zeros(1, "M8[s]")),
                    ("structure", np.zeros(1, "i4,f4")),
                    ("titles", np.zeros(1, [(("a\\'", "x"), "<f4"), ("y\n", "S3")])),
                    ("nested", np.zeros(2, [("p", np.dtype("u1,f8", align=True),
                                             (2, 3)), ("\xe9\xad", "?")])),
                    ("names", np.zeros(1, [("\u03b1\u2028", ">i2")]))):
        write("npyhead", name, npy(a))
    write("npyhead", "version2", npy(np.zeros(3, "i2"), (2, 0)))
    write("npyhead", "version3", npy(np.zeros(3, "i2"), (3, 0)))
    for name, text in (
            ("dict-python2", "{\"shape\":(7L,),'fortran_order':True,'descr':'<f4'}"),
            ("dict-twice", "{'descr': 'f4', 'descr': 'f4', 'shape': ()}"),
            ("dict-huge", "{'descr': '<f8', 'fortran_order': False, "
                          "'shape': (4294967296, 4294967296, 1)}"),
            ("dict-zero", "{'descr': '<f8', 'fortran_order': False, "
                          "'shape': (4294967296, 4294967296, 0)}"),
            ("dict-rank", "{'descr': '<f8', 'fortran_order': False, 'shape': (%s)}"
             % ("1, " * 33)),
            ("dict-cut", "{'descr': '<f8', 'fortran_order': Fal"),
            ("dict-escape", "{'de\\x73cr': '<f8'}")):
        write("npyhead", name, text.encode())


def images():
    for name, data in (
            ("p5", b"P5\n3 2\n255\nabcdef"), ("p6", b"P6 1 1 65535 abcdef"),
            ("p2", b"P2\n# c\n3 2 # d\n255\n1 2 3\n4 5 # e\n6"),
            ("p3", b"P3\n1 2\n1000\n1 20 300 1000 0 7\n"),
            ("few", b"P2 3 2 9 1 2 3 4 5"), ("many", b"P2 1 1 9 1 2"),
            ("above", b"P2 1 1 9 10"), ("word", b"P2 1 1 9 x"),
            ("pbm", b"P4 1 1 a"), ("huge", b"P6 2147483647 2147483647 65535 a"),
            ("number", b"P5 99999999999999999999 1 1 a"), ("cut", b"P5 1 #")):
        write("pnm", name, data)


def lists():
    for name, data in (
            ("plain", b"a/1.npy,cat\na/2.npy,dog\n"),
            ("quoted", b'"a,""b\nc",1\r\n"x",""\r\n'),
            ("mark", b"\xef\xbb\xbfpath,label\r\n\r\nx,1"),
            ("open", b'a,"b\n'), ("behind", b'"a"b,c\n'), ("nul", b"a\0,b\n"),
            ("many", b"," * 300), ("comma", b"a,"), ("cr", b"a\r,b\r\n\"c\"\r")):
        write("csv", name, data)


arrays()
images()
lists()
