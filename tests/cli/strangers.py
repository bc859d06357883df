#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Files that are no source are called by their names, and so are those that are one."""
import bz2
import gzip
import io
import json
import lzma
import os
import pickle
import shutil
import sqlite3
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib

import h5py
import numpy as np
import zarr
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
    "a.h4": (b"\x0e\x03\x13\x01" + bytes(99), "an HDF4 file"),
    "a.fits": (b"SIMPLE  =                    T".ljust(2880), "a FITS file"),
    "empty": (b"", "is empty"),
    "a.html": (b"<!DOCTYPE html><html>404", "a web page"),
    "a.lfs": (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    "a.csv": (b"a,b\n1,2\n", "a table as text"),
    "a.xyz": (b"nobody knows\0", "neither an HDF5 file nor an archive (tar"),
    "a.txt": ("words, ä\n".encode(), "is a text: neither an HDF5 file"),
    "a.npy": (bytes(99), "not what its name says: neither an HDF5 file"),
    "a.H5": (b"\x89HDG\r\n\x1a\n" + bytes(99), "not what its name says"),
    "a.tar.lzma": (lzma.compress(b"words" * 99, lzma.FORMAT_ALONE), "make it xz"),
    "b.tlz": (lzma.compress(b"words" * 99, lzma.FORMAT_ALONE, filters=[
        {"id": lzma.FILTER_LZMA1, "lc": 0, "dict_size": 1 << 16}]), "an LZMA file"),
    "a.tar.lzo": (b"\x89LZO\0\r\n\x1a\n" + bytes(99), "lzop -dc"),
    "a.tar.zz": (zlib.compress(bytes(range(256)) * 4), "pigz -dc"),
    "x.txt": (b"x\x5e2 + 1", "is a text: neither an HDF5 file"),
    "b.7z": (b"7z\xbc\xaf\x27\x1c" + bytes(99), "tensorfs pack"),
}

COLUMNS = os.path.join(os.environ.get("srcdir", "."), "tests/lib/columns")
A = np.arange(24, dtype="<u2").reshape(4, 2, 3)


def tar():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        member = tarfile.TarInfo("a/b.txt")
        member.size = 6
        t.addfile(member, io.BytesIO(b"words\n"))
    return out.getvalue()


def blo():
    head = bytearray(4096)
    struct.pack_into("<6sHIIIHHHH", head, 0, b"IMGBLO", 0x102, 1000, 4096, 0, 4, 0, 1, 2)
    return bytes(head) + 2 * (b"\xaa\x55" + bytes(4 + 16))


def seq():
    head = bytearray(1024)
    struct.pack_into("<I24sII", head, 0, 0xfeed, "Norpix seq".encode("utf-16-le"), 4, 1024)
    struct.pack_into("<9I", head, 548, 3, 2, 16, 14, 12, 100, 1, 0, 512)
    return bytes(head) + bytes(512)


def stores(work):
    """(format, path, more arguments) of small files of every kind."""
    def put(name, data):
        path = os.path.join(work, name)
        with open(path, "wb") as f:
            f.write(data)
        return path

    def by(tool, name, *argv):
        path = os.path.join(work, name)
        subprocess.run([tool, *argv], check=True, stdout=subprocess.DEVNULL)
        return path

    with h5py.File(os.path.join(work, "a.h5"), "w") as f:
        f["data"] = A
    yield "HDF5", os.path.join(work, "a.h5")
    np.save(os.path.join(work, "a.npy"), A)
    yield "npy", os.path.join(work, "a.npy")
    np.savez_compressed(os.path.join(work, "a.npz"), x=A)
    yield "npz (zip)", os.path.join(work, "a.npz")
    zarr.save_array(os.path.join(work, "a.zarr"), A)
    yield "Zarr v2", os.path.join(work, "a.zarr")
    with zarr.ZipStore(os.path.join(work, "a.zarr.zip"), mode="w") as store:
        zarr.save_array(store, A)
    yield "Zarr v2", os.path.join(work, "a.zarr.zip")
    os.mkdir(os.path.join(work, "b.zarr"))
    put("b.zarr/zarr.json", b'{"zarr_format": 3, "node_type": "group"}')
    yield "Zarr v3", os.path.join(work, "b.zarr")
    header = json.dumps({"x": {"dtype": "U16", "shape": [4, 2, 3],
                               "data_offsets": [0, A.nbytes]}}).encode()
    yield "safetensors", put("a.safetensors", struct.pack("<Q", len(header)) + header +
                             A.tobytes())
    # No records, dimensions or attributes; a scalar "v" of 32 bits, 0 attributes, at byte 64.
    yield "netCDF-3 classic", put("a.nc", b"CDF\1" + struct.pack(
        ">8I4s6I", 0, 0, 0, 0, 0, 11, 1, 1, b"v", 0, 0, 0, 4, 4, 64) + bytes(4))
    yield "arrow", os.path.join(COLUMNS, "one.arrow")
    yield "parquet", os.path.join(COLUMNS, "zstd.parquet")
    yield "raw", put("a.raw", A.tobytes()), "--raw=dtype=u2,shape=2x3"
    yield "blo", put("a.blo", blo())
    yield "mib", put("a.mib", b"MQ1,000001,00384,01,0003,0002,U16,   1x1,01,"
                     .ljust(384, b"\0") + bytes(12))
    yield "tvips", put("a_000.tvips", struct.pack(
        "<13I", 256, 2, 3, 2, 16, 0, 0, 1, 1, 1, 200, 0, 76) + b"TVIPS " * 34 + bytes(88))
    yield "seq", put("a.seq", seq())
    yield "directory", os.path.join(work, "b.zarr/..")
    yield "tar", put("a.tar", tar())
    yield "tar.gz", put("a.tar.gz", gzip.compress(tar()))
    yield "tar.bz2", put("a.tar.bz2", bz2.compress(tar()))
    yield "tar.xz", put("a.tar.xz", lzma.compress(tar()))
    yield "gz", put("notes.gz", gzip.compress(b"words"))
    if shutil.which("zstd"):
        yield "tar.zst", by("zstd", "a.tar.zst", "-q", os.path.join(work, "a.tar"))
    if shutil.which("lz4"):
        yield "tar.lz4", by("lz4", "a.tar.lz4", "-q", os.path.join(work, "a.tar"),
                            os.path.join(work, "a.tar.lz4"))
    if shutil.which("mksquashfs"):
        yield "squashfs (gzip)", by("mksquashfs", "a.sqfs", COLUMNS,
                                    os.path.join(work, "a.sqfs"), "-comp", "gzip")
    with zipfile.ZipFile(os.path.join(work, "a.zip"), "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("a.txt", "words")
    yield "zip", os.path.join(work, "a.zip")


def info(*argv):
    return subprocess.run([TENSORFS, "info", *argv], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)


def named(work):
    """Formats that `info` calls otherwise."""
    wrong = 0
    for want, path, *options in stores(work):
        p, q = info(*options, path), info("--json", *options, path)
        lines = p.stdout.splitlines()
        said = lines and (lines[0].startswith("%s: %s, " % (path, want)) or
                          lines[1].split(None, 1) == ["format", want])
        is_json = q.returncode == 0 and json.loads(q.stdout).get("format") == want
        if p.returncode or not said or not is_json:
            print("FAIL %s: not %s: %d %s %s" % (path, want, p.returncode, lines[:2],
                                                 p.stderr + q.stderr + q.stdout[:99]))
            wrong += 1
    return wrong


failed = 0
with tempfile.TemporaryDirectory() as work:
    failed += named(work)
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
