#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Files that are no source are called by their names."""
import io
import os
import pickle
import sqlite3
import subprocess
import sys
import tempfile

from PIL import Image

TENSORFS = os.path.abspath(os.environ.get("TENSORFS", "./tensorfs"))


def image(kind):
    out = io.BytesIO()
    Image.new("RGB", (8, 8), (1, 2, 3)).save(out, kind)
    return out.getvalue()


def sqlite():
    with tempfile.NamedTemporaryFile() as f:
        c = sqlite3.connect(f.name)
        c.execute("create table t (a)")
        c.commit()
        c.close()
        return open(f.name, "rb").read()


WHAT = {
    "a.png": (image("PNG"), "a PNG image"),
    "a.jpg": (image("JPEG"), "a JPEG image"),
    "a.gif": (image("GIF"), "a GIF image"),
    "a.tif": (image("TIFF"), "a TIFF file"),
    "a.pkl": (pickle.dumps([1, 2]), "a Python pickle"),
    "a.db": (sqlite(), "an SQLite database"),
    "a.mat": (b"MATLAB 5.0 MAT-file, Platform: GLNXA64".ljust(128),
              "-v7.3, which is HDF5"),
    "a.nc": (b"CDF\x01" + bytes(28) + b"\1", "nccopy -k nc4"),
    "a.h4": (b"\x0e\x03\x13\x01" + bytes(99), "an HDF4 file"),
    "a.fits": (b"SIMPLE  =                    T".ljust(2880), "a FITS file"),
    "empty": (b"", "is empty"),
    "a.html": (b"<!DOCTYPE html><html>404", "a web page"),
    "a.lfs": (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    "a.csv": (b"a,b\n1,2\n", "a table as text"),
    "a.xyz": (b"nobody knows\n", "neither an HDF5 file nor an archive (tar"),
    "b.7z": (b"7z\xbc\xaf\x27\x1c" + bytes(99), "tensorfs pack"),
}

failed = 0
with tempfile.TemporaryDirectory() as work:
    for name, (data, want) in WHAT.items():
        path = os.path.join(work, name)
        with open(path, "wb") as f:
            f.write(data)
        p = subprocess.run([TENSORFS, "info", path], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
        if p.returncode != 3 or want not in p.stderr or path not in p.stderr or \
                p.stderr.count("\n") != 1:
            print("FAIL %s: %d %s" % (name, p.returncode, p.stderr))
            failed += 1
sys.exit(failed > 0)
