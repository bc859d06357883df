#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""verify says "all good" only of what has checksums: where it does, a changed byte is
found wherever it is; where it says "readable", a byte can change unnoticed."""
import json
import os
import shutil
import struct
import subprocess
import sys
import zipfile
import zlib

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import arrows as A
import h5py
import lib
import numpy as np
import parquets as P
import zarr
from checks import check, equal
from lib import case, tensorfs

work = None
# Each value occurs once in a file, and nothing compresses it away.
A24 = np.random.default_rng(5).integers(0, 2**63, (40, 24), "i8")


def path(name):
    p = os.path.join(work, name)
    os.makedirs(os.path.dirname(p), exist_ok=True)
    return p


def sh(*argv, **kw):
    return subprocess.run([str(a) for a in argv], check=True, **kw)


def verdict(p, *opts):
    """(exit status, "good", "readable" or "bad")"""
    q = tensorfs("verify", "--index=none", *opts, p)
    if q.returncode == 3:
        return 3, "bad"
    check(q.returncode in (0, 1), "%s: %d %s" % (p, q.returncode, q.stderr))
    last = q.stdout.splitlines()[-1]
    says = "bad" if " bad" in last else "readable" if "without checksums" in last \
        else "good" if last == "all good" else last
    j = tensorfs("verify", "--json", "--index=none", *opts, p)
    doc = json.loads(j.stdout)
    equal(doc["ok"], says != "bad", "ok of " + p)
    if says != "bad":
        equal(doc["all_checksums"], says == "good", "all_checksums of " + p)
    return q.returncode, says


def changed(p, at, *opts):
    """The verdict on a copy with the byte at `at` changed."""
    copy = path("changed/" + os.path.basename(p))
    shutil.copyfile(p, copy)
    with open(copy, "r+b") as f:
        f.seek(at)
        b = f.read(1)[0]
        f.seek(at)
        f.write(bytes([b ^ 0x10]))
    return verdict(copy, *opts)[1]


def is_good(p, places, *opts):
    """Places are those of stored data."""
    equal(verdict(p, *opts), (0, "good"), p)
    for at in places:
        equal(changed(p, at, *opts), "bad", "%s: byte %d" % (p, at))


def is_readable(p, at, *opts):
    equal(verdict(p, *opts), (0, "readable"), p)
    equal(changed(p, at, *opts), "readable", "%s: byte %d" % (p, at))


def find(p, what, more=3):
    with open(p, "rb") as f:
        at = f.read().find(what)
    check(at >= 0, "the data of %s are not where they are thought" % p)
    return at + more


def dataset(name, data=A24, **how):
    p = path(name + ".h5")
    with h5py.File(p, "w") as f:
        f.create_dataset("d", data=data, **how)
        if how.get("chunks"):
            c = f["d"].id.get_chunk_info(0)
            return p, c.byte_offset + c.size // 2
        return p, f["d"].id.get_offset()


@case
def hdf5():
    is_readable(*dataset("contiguous"))
    is_readable(*dataset("plain", chunks=(10, 24)))
    for how in ({"compression": "lzf"}, {"scaleoffset": 0}):
        p, _ = dataset("odd", A24 & 1, chunks=(10, 24), **how)
        equal(verdict(p), (0, "readable"), str(how))
    for name, how in (("gzip", {"compression": "gzip"}), ("sum", {"fletcher32": True}),
                      ("both", {"compression": "gzip", "shuffle": True})):
        p, at = dataset(name, chunks=(10, 24), **how)
        is_good(p, [at, at + 1, at - 7])
    # Texts of variable length are in heaps, whatever the filters.
    p, _ = dataset("texts", np.array(["words %d" % i for i in range(9)], object),
                   dtype=h5py.string_dtype(), chunks=(9,), compression="gzip")
    is_readable(p, find(p, b"words 5", 6))


@case
def arrays():
    p = path("a.npy")
    np.save(p, A24)
    is_readable(p, 500)
    p = path("a.raw")
    A24.tofile(p)
    is_readable(p, 500, "--raw=dtype=i8,shape=24")
    np.savez(path("a.npz"), x=A24)
    is_good(path("a.npz"), [find(path("a.npz"), A24.tobytes()), 3000])
    np.savez_compressed(path("c.npz"), x=A24)
    is_good(path("c.npz"), [3000])
    head = json.dumps({"x": {"dtype": "I64", "shape": [40, 24],
                             "data_offsets": [0, A24.nbytes]}}).encode()
    with open(path("a.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(head)) + head + A24.tobytes())
    is_readable(path("a.safetensors"), 1000)


@case
def columns():
    a = A24[0]
    body, n = a.tobytes(), len(a)
    for name, page in (("v1", P.page1), ("v2", P.page2)):
        plain = P.write(path(name + ".parquet"),
                        [P.Column("x", P.INT64, page(body, n))], n)
        is_readable(plain, find(plain, body))
        crc = zlib.crc32(body) - ((zlib.crc32(body) >> 31) << 32)
        summed = P.write(path(name + "c.parquet"),
                         [P.Column("x", P.INT64, page(body, n, crc=crc))], n)
        is_good(summed, [find(summed, body)])
    schema = A.schema([A.field("x", A.INT, {0: ("i", 64), 1: ("B", 1)})])
    p = path("a.arrow")
    with open(p, "wb") as f:
        f.write(A.file(schema, A.plain(n, b"", body)))
    is_readable(p, find(p, body))


def store(name, compressor):
    p = path(name + ".zarr")
    z = zarr.open(p, "w", shape=A24.shape, chunks=(10, 24), dtype="i8",
                  compressor=compressor, zarr_version=2)
    z[:] = A24
    return p


@case
def stores():
    for name, compressor, want in (("none", None, "readable"),
                                   ("blosc", zarr.Blosc("zstd"), "readable"),
                                   ("zlib", zarr.Zlib(1), "good"),
                                   ("gzip", zarr.GZip(1), "good")):
        p = store(name, compressor)
        equal(verdict(p), (0, want), p)
        if want == "good":
            with open(p + "/1.0", "r+b") as f:
                f.seek(100)
                f.write(b"????")
            equal(verdict(p), (1, "bad"), p)
    # The zip's checksums cover what the codecs do not.
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        p = path("%d.zarr.zip" % method)
        top = store("zipped", None)
        with zipfile.ZipFile(p, "w", method) as z:
            for n in sorted(os.listdir(top)):
                z.write(os.path.join(top, n), n)
        with zipfile.ZipFile(p) as z:
            at = z.getinfo("1.0").header_offset + 400
        is_good(p, [at])


def tree():
    top = path("tree")
    os.makedirs(top, exist_ok=True)
    for i in range(4):
        with open("%s/f%d" % (top, i), "wb") as f:
            f.write(A24.tobytes() if i % 2 else b"text %d " % i * 900)
    return top


@case
def archives():
    tar = path("t.tar")
    sh("tar", "cf", tar, "-C", tree(), ".")
    is_readable(tar, find(tar, A24.tobytes()))
    for tool, suffix, want in (
            (["gzip", "-c"], "gz", "good"), (["bzip2", "-c"], "bz2", "good"),
            (["xz", "-c"], "xz", "good"), (["xz", "-c", "--check=none"], "x.xz", None),
            (["zstd", "-qc"], "zst", "good"),
            (["zstd", "-qc", "--no-check"], "n.zst", None),
            (["lz4", "-qc"], "lz4", "good"),
            (["lz4", "-qc", "--no-frame-crc"], "n.lz4", None)):
        p = tar + "." + suffix
        with open(p, "wb") as f:
            sh(*tool, tar, stdout=f)
        if want:
            is_good(p, [os.path.getsize(p) // 2, os.path.getsize(p) // 3])
        else:
            equal(verdict(p), (0, "readable"), p)
    # In zstd and lz4 what does not compress is stored, and changes unnoticed.
    noise = np.random.default_rng(6).bytes(1 << 20)
    with open(path("noise"), "wb") as f:
        f.write(noise)
    for tool, suffix in ((["zstd", "-qc", "--no-check"], "zst"),
                         (["lz4", "-qc", "--no-frame-crc"], "lz4")):
        p = path("noise." + suffix)
        with open(p, "wb") as f:
            sh(*tool, path("noise"), stdout=f)
        is_readable(p, find(p, noise[200000:200100]))
    p = path("t.zip")
    with zipfile.ZipFile(p, "w") as z:
        z.write(tree() + "/f1", "f1")
    is_good(p, [find(p, A24.tobytes())])


@case
def images():
    """Blocks that a compressor does not make smaller are stored, without checksums."""
    top = path("texts")
    os.makedirs(top, exist_ok=True)
    with open(top + "/f", "wb") as f:
        f.write(b"".join(b"%d " % i for i in range(60000)))
    for comp, want in (("gzip", "good"), ("xz", "good"), ("zstd", "readable"),
                       ("lz4", "readable")):
        p = path(comp + ".sqfs")
        sh("mksquashfs", top, p, "-comp", comp, "-noappend", "-quiet", "-no-progress",
           stdout=subprocess.DEVNULL)
        equal(verdict(p), (0, want), p)
    p = path("stored.sqfs")
    sh("mksquashfs", tree(), p, "-comp", "gzip", "-noappend", "-quiet", "-no-progress",
       "-no-fragments", stdout=subprocess.DEVNULL)
    is_readable(p, find(p, A24.tobytes()[:100]))


@case
def sources_in_sources():
    """What is in an archive with checksums needs none of its own."""
    top = path("inner")
    os.makedirs(top, exist_ok=True)
    np.save(top + "/a.npy", A24)
    p, _ = dataset("contiguous")
    shutil.copy(p, top)
    tar = path("outer.tar")
    sh("tar", "cf", tar, "-C", top, ".")
    is_readable(tar, find(tar, A24.tobytes()), "--nested")
    sh("gzip", "-kf", tar)
    is_good(tar + ".gz", [os.path.getsize(tar + ".gz") // 2], "--nested")


@case
def directories():
    """Plain files of a directory are read, and one that cannot be is bad."""
    top = tree()
    q = tensorfs("verify", top)
    equal(q.returncode, 0, q.stderr)
    check(q.stdout.startswith("4 members") and "without checksums" in q.stdout,
          q.stdout)
    only = path("only")
    os.makedirs(only, exist_ok=True)
    shutil.copy(dataset("gzip", chunks=(10, 24), compression="gzip")[0], only)
    equal(verdict(only), (0, "good"), "a directory of one HDF5 file")
    shutil.copy(dataset("contiguous")[0], only)
    equal(verdict(only), (0, "readable"), "a second one, without checksums")


@case
def one_file():
    """SOURCE:PATH of a file is judged by what its bytes come from."""
    gzip = {"chunks": (10, 24), "compression": "gzip"}
    for name, how, want in (("contiguous", {}, "readable"), ("gzip", gzip, "good")):
        p, _ = dataset(name, **how)
        equal(verdict(p + ":d/array.npy")[1], want, name)
    tar = path("t.tar")
    sh("tar", "cf", tar, "-C", tree(), ".")
    equal(verdict(tar + ":f1")[1], "readable", "of a tar")
    sh("gzip", "-kf", tar)
    equal(verdict(tar + ".gz:f1")[1], "good", "of a compressed one")


work = lib.setup()
lib.main()
