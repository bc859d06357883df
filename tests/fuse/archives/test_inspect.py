#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What info, verify, ls, stats and statfs say of archives, compared with what other
programs say of them, and with what a mount of them can read.

What verify calls bad is what cannot be read: members are read through a mount, and
those that fail, or differ, have to be those that were named, and no others."""
import bz2
import ctypes
import functools
import gzip
import io
import json
import lzma
import os
import random
import re
import stat
import struct
import subprocess
import sys
import tarfile
import zipfile
import zlib

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import arc
from arc import need, one, scratch, sh
from checks import Failure, check, equal, note, read, same_bytes
from lib import Mount, exits, tensorfs

FILES = 40


@functools.lru_cache(None)
def content(i):
    r = random.Random(i)
    n = r.randrange(1000, 200000)
    return r.randbytes(n) if i % 2 else arc.text(n, i)


def tree(n=FILES):
    """A directory of files whose contents follow from their names."""
    d = scratch("tree")
    for i in range(n):
        os.makedirs("%s/d%d" % (d, i % 3), exist_ok=True)
        with open("%s/d%d/f%03d" % (d, i % 3, i), "wb") as f:
            f.write(content(i))
    return d


def of_tree(path):
    return content(int(path[-3:]))


@functools.lru_cache(None)
def tar_bytes(n=FILES):
    return sh("tar", "-c", "-f", "-", "--sort=name", "-C", tree(n), ".")


def written(name, data):
    """A new file of these bytes, in a directory of its own."""
    t = os.path.join(scratch("a"), name)
    with open(t, "wb") as f:
        f.write(data)
    return t


def plain_tar(n=FILES):
    return written("t.tar", tar_bytes(n))


def pipe(*argv):
    def f(data):
        return sh(*argv, input=data)
    return f


def pieces(f, size=1 << 20):
    """Compressed piece by piece: a member, stream or frame each."""
    return lambda data: b"".join(f(data[i:i + size])
                                 for i in range(0, len(data), size))


COMPRESSORS = {
    "gz": lambda d: gzip.compress(d, 6),
    "bgzip.gz": pieces(lambda d: gzip.compress(d, 6), 65280),
    "bz2": lambda d: bz2.compress(d, 1),
    "xz": lzma.compress,
    "blocks.xz": pipe("xz", "-T2", "--block-size=1MiB", "-c"),
    "zst": pipe("zstd", "-q", "-c", "--check"),
    "frames.zst": pieces(pipe("zstd", "-q", "-c", "--check")),
    "lz4": pipe("lz4", "-q", "-c", "-B4", "-BI"),
}


@functools.lru_cache(None)
def known(ext):
    """Does this build decode it?"""
    unknown = os.path.join(scratch("known"), "unknown")
    with open(unknown, "wb") as f:
        f.write(b"\x01\xfenobody knows this\0")
    p = tensorfs("info", unknown)
    name = {"gz": "gzip", "bz2": "bzip2", "zst": "zstd"}.get(
        ext.rsplit(".", 1)[-1], ext.rsplit(".", 1)[-1])
    return name in p.stderr


@functools.lru_cache(None)
def compressed_bytes(ext):
    if not known(ext):
        raise arc.Missing(ext)
    return COMPRESSORS[ext](tar_bytes())


def compressed(ext):
    return written("t.tar." + ext, compressed_bytes(ext))


@functools.lru_cache(None)
def image_bytes(comp, block, n):
    t = os.path.join(scratch("sq"), "t.sqfs")
    sh("mksquashfs", tree(n), t, "-comp", comp, "-b", block, "-noappend",
       "-no-progress", "-quiet")
    return read(t)


def image(comp="gzip", block="16K", n=FILES):
    return written("t.sqfs", image_bytes(comp, block, n))


def change(path, at, data):
    """Write into a file as a failing disk does: nobody's mtime changes."""
    st = os.stat(path)
    with open(path, "r+b") as f:
        f.seek(at)
        f.write(data)
    os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))


def flip(path, at, n=1):
    with open(path, "rb") as f:
        f.seek(at)
        change(path, at, bytes(b ^ 0x55 for b in f.read(n)))


def verify(*argv, code=None):
    p = tensorfs("verify", "--json", *argv)
    if code is not None:
        exits(p, code, "verify " + " ".join(argv))
    j = json.loads(p.stdout)
    equal(p.returncode, 0 if j["ok"] else 1, "exit status")
    equal(len(j["bad"]), j["bad_count"], "bad_count")
    return j


def info(path, *opts):
    return json.loads(exits(tensorfs("info", "--json", *opts, path), 0,
                            "info").stdout)


def named(j):
    """Paths of members that verify names."""
    found = set()
    for b in j["bad"]:
        found.update(b.get("members", [b["name"]]))
        if "members" in b:
            equal(len(b["members"]), b["member_count"], "members listed")
    return {n for n in found if re.fullmatch(r"/(.*/)?f\d+", n)}


def unreadable(archive, opts=()):
    """Paths of files that a mount cannot read, or reads wrong."""
    found = set()
    with Mount(archive, opts=opts) as m:
        for top, _, names in os.walk(m.path):
            for n in names:
                p = os.path.join(top, n)
                try:
                    good = read(p) == of_tree(p)
                except OSError:
                    good = False
                if not good:
                    found.add(p[len(m.path):])
    return found


def agree(archive, some=True):
    """verify and a mount agree in what is bad."""
    j = verify(archive)
    want = unreadable(archive)
    equal(sorted(named(j)), sorted(want), "what is bad in " + archive)
    check(not j["ok"] or not want, "verify says that all is good")
    if some:
        check(not j["ok"], "nothing is bad")
    return j


# --- verify -------------------------------------------------------------------

def intact(make, *args):
    t = make(*args)
    for _ in ("scanned", "indexed"):
        j = verify(t, code=0)
        check(j["members"] >= FILES, "members: %s" % j)
        equal(j["bad"], [], "bad")
        check(j["decoded_bytes"] >= sum(len(content(i))
                                        for i in range(FILES)), "decoded")
    for opt in ("--progress=plain", "-q"):
        p = exits(tensorfs("verify", opt, t), 0, opt)
        # The data of a plain tar has no checksums; nor have blocks of an image that are
        # stored as they are, of which there are some whatever the compressor.
        said = "all readable" if t.endswith((".tar", ".sqfs")) else "all good"
        equal(said in p.stdout, opt != "-q", opt + " output")


def tar_cut():
    t = plain_tar()
    with open(t, "r+b") as f:
        f.truncate(os.path.getsize(t) * 3 // 5)
    j = agree(t)
    equal(len(named(j)), 1, "members that are cut")


def tar_header():
    """A header that is damaged before anybody looked, or after."""
    for late in (False, True):
        t = plain_tar()
        with tarfile.open(t) as a:
            m = [x for x in a.getmembers() if x.isreg()][7]
        if late:
            verify(t, code=0)
        change(t, m.offset + 124, b"zz")
        j = verify(t, code=1)
        check(any("header" in b["sentence"] for b in j["bad"]), str(j))
        equal(named(j), {m.name[1:]} if late else set(), "named")


def tar_shrunk():
    """Bytes that were there when the index was made."""
    t = plain_tar()
    verify(t, code=0)
    st = os.stat(t)
    with open(t, "r+b") as f:
        f.truncate(st.st_size // 2)
    os.utime(t, ns=(st.st_atime_ns, st.st_mtime_ns))
    agree(t)


def stream(ext, where, late):
    """Damage in the middle of the data, seen first or with an index."""
    t = compressed(ext)
    n = os.path.getsize(t)
    if late:
        verify(t, code=0)
    if where == "cut":
        with open(t, "r+b") as f:
            f.truncate(n * 2 // 3)
    else:
        flip(t, int(n * 0.55), 2)
    j = agree(t)
    if where == "flip" and late and ext.split(".")[0] in ("bgzip", "blocks",
                                                          "frames"):
        check(len(named(j)) < FILES // 2, "all are bad: %s" % named(j))


def stream_end(ext):
    """The last checksum of a stream: its bytes are all there."""
    t = compressed(ext)
    data = read(t)
    at = len(data) - (6 if ext == "gz" else 3)
    flip(t, at)
    j = verify(t, code=1)
    check(j["bad"], "nothing is bad")


def single(ext):
    """One file, compressed."""
    if not known(ext):
        raise arc.Missing(ext)
    d = scratch("one")
    t = os.path.join(d, "f003." + ext)
    with open(t, "wb") as f:
        f.write(COMPRESSORS[ext](content(3)))
    equal(verify(t, code=0)["members"], 1, "members")
    flip(t, os.path.getsize(t) // 2, 2)
    agree(t)


def blocks(comp):
    """Blocks that do not decode, with the members that they belong to."""
    t = image(comp)
    verify(t, code=0)
    # Those that are compressed.
    for f in ("d1/f004", "d2/f008", "d0/f006"):
        x = info(t + ":" + f)["member"]
        at = x.get("stored_at", x.get("fragment_at"))
        # What no decoder takes for its own.
        change(t, at, bytes(400))
    j = agree(t)
    check(named(j) >= {"/d1/f004", "/d2/f008", "/d0/f006"},
          "named: %s" % named(j))
    p = exits(tensorfs("verify", t), 1, "verify")
    check("block at byte" in p.stdout, p.stdout)


def blocks_of_fragments():
    """More members in a block than are named."""
    d = scratch("small")
    for i in range(50):
        with open("%s/f%03d" % (d, i), "wb") as f:
            f.write(arc.text(500, i))
    t = os.path.join(scratch("sq"), "t.sqfs")
    sh("mksquashfs", d, t, "-noappend", "-no-progress", "-quiet")
    change(t, info(t + ":f000")["member"]["fragment_at"], bytes(100))
    bad = verify(t, code=1)["bad"]
    equal((len(bad), bad[0]["member_count"]), (1, 50), "block, members")
    check(0 < len(bad[0]["members"]) < 50, "listed: %s" % bad)
    p = exits(tensorfs("verify", "-q", t), 1, "verify")
    check("f000" in p.stdout and "more" in p.stdout, p.stdout)


def metadata():
    """An inode table that has been overwritten after the index was made."""
    t = image()
    verify(t, code=0)
    with open(t, "rb") as f:
        f.seek(64)
        at = int.from_bytes(f.read(8), "little")
    flip(t, at + 20, 40)
    p = tensorfs("verify", t)
    check(p.returncode in (1, 3), "exit %d: %s" % (p.returncode, p.stdout))


def part():
    """Of a directory of an archive only its members are looked at."""
    t = image()
    x = info(t + ":d1/f004")["member"]
    change(t, x["stored_at"], bytes(400))
    equal(verify(t + ":d0", code=0)["bad"], [], "bad in d0")
    j = verify(t + ":d1", code=1)
    equal(named(j), {"/d1/f004"}, "bad in d1")
    check(0 < j["decoded_bytes"] < verify(t)["decoded_bytes"], "decoded")
    exits(tensorfs("verify", t + ":d1/f004"), 1, "verify of a file")
    exits(tensorfs("verify", t + ":d0/f003"), 0, "verify of a file")


def inside(outer):
    """An archive in an archive, with --nested."""
    d = scratch("outer")
    inner = image(n=6)
    x = info(inner + ":d1/f004")["member"]
    change(inner, x["stored_at"], bytes(400))
    os.rename(inner, os.path.join(d, "in.sqfs"))
    os.rename(plain_tar(6), os.path.join(d, "good.tar"))
    if outer == "sqfs":
        t = os.path.join(scratch("o"), "o.sqfs")
        sh("mksquashfs", d, t, "-noappend", "-no-progress", "-quiet")
    elif outer == "directory":
        t = d
    else:
        t = os.path.join(scratch("o"), "o." + outer)
        sh("tar", "-c", "-a", "-f", t, "-C", d, "in.sqfs", "good.tar")
    if outer != "directory":
        equal(verify(t, code=0)["bad"], [], "bad without --nested")
    j = verify("--nested", t, code=1)
    equal(named(j), {"/in.sqfs/d1/f004"}, "bad with --nested")
    check(j["members"] >= 12, "members: %d" % j["members"])
    listed = {x["path"] for x in info(t, "--nested")["inside"]}
    equal(listed, {"/in.sqfs", "/good.tar"}, "inside")
    equal(info(t + ":good.tar", "--nested")["archive"]["files"], 6,
          "files of good.tar")


def hdf5():
    """HDF5 files of a directory, and their datasets."""
    try:
        import h5py
        import numpy
    except ImportError as e:
        raise arc.Missing(str(e))
    d = scratch("h5")
    for name in ("a.h5", "b.h5"):
        with h5py.File(os.path.join(d, name), "w") as f:
            f.create_dataset("x", data=numpy.arange(4000).reshape(4, 1000),
                             chunks=(1, 1000), compression="gzip")
            at = f["x"].id.get_chunk_info(2).byte_offset
    t = os.path.join(d, "t.tar")
    os.rename(plain_tar(3), t)
    j = info(d)
    equal([(x["path"], x["kind"], len(x.get("datasets", ())))
           for x in j["inside"]],
          [("/a.h5", "hdf5", 1), ("/b.h5", "hdf5", 1), ("/t.tar", "tar", 0)],
          "inside")
    equal(verify(d, code=0)["datasets"], 2, "datasets")
    change(os.path.join(d, "b.h5"), at, bytes(20))
    j = verify(d, code=1)
    equal(len(j["bad"]), 1, "bad: %s" % j)
    check(j["bad"][0]["name"].startswith("/b.h5:"), str(j))


def hostile_names():
    """What verify prints of damaged members stays on its line."""
    image = os.path.join(scratch("names"), "a.zip")
    with zipfile.ZipFile(image, "w") as z:
        z.writestr("a\x1b[2J\x07\nbad: forged", b"words")
    with open(image, "rb") as f:
        data = f.read()
    with open(image, "wb") as f:
        f.write(data.replace(b"words", b"sword", 1))
    lines = exits(tensorfs("verify", image), 1, "verify").stdout.splitlines()
    equal([x for x in lines if x.startswith("bad: ")][0].split(": ")[1:3],
          ["/a?[2J??bad", "forged"], "the name")
    check(all(x.isprintable() for x in lines) and len(lines) == 3, lines)


# --- info ---------------------------------------------------------------------

def nothing_is_left_beside():
    """Looking makes no index beside the data."""
    d = scratch("clean")
    t = os.path.join(d, "t.tar.gz")
    with tarfile.open(t, "w:gz") as a:
        x = tarfile.TarInfo("f")
        x.size = 5
        a.addfile(x, io.BytesIO(b"hello"))
    for argv in (["ls"], ["info"], ["verify"]):
        exits(tensorfs(*argv, t), 0, argv[0])
    exits(tensorfs("cat", t + ":f"), 0, "cat")
    equal(os.listdir(d), ["t.tar.gz"], "what is there")


def info_tar():
    t = os.path.join(scratch("i"), "t.tar")
    with tarfile.open(t, "w", format=tarfile.PAX_FORMAT) as a:
        for i in range(5):
            x = tarfile.TarInfo("d/f%03d" % i)
            data = content(i)
            x.size, x.uid, x.gid, x.mtime = len(data), 1000 + i, 7, 10**9 + i
            x.pax_headers = {"SCHILY.xattr.user.k": "v" * i} if i else {}
            a.addfile(x, io.BytesIO(data))
        for name, kind in (("l", tarfile.SYMTYPE), ("h", tarfile.LNKTYPE),
                           ("c", tarfile.CHRTYPE), ("p", tarfile.FIFOTYPE)):
            x = tarfile.TarInfo(name)
            x.type, x.linkname = kind, "d/f001"
            x.devmajor, x.devminor = 1, 3
            a.addfile(x)
    for used in (False, True):
        j = info(t, "--index=" + t + ".tfsidx")["archive"]
        equal({k: j[k] for k in (
            "format", "files", "directories", "symlinks", "hard_links",
            "devices_and_fifos", "bytes", "stored_bytes", "index_used",
            "damage", "slow")}, {
                "format": "tar", "files": 5, "directories": 1, "symlinks": 1,
                "hard_links": 1, "devices_and_fifos": 2,
                "bytes": sum(len(content(i)) for i in range(5)),
                "stored_bytes": os.path.getsize(t), "index_used": used,
                "damage": [], "slow": []}, "info of a tar")
        equal(os.path.abspath(j["index"]), t + ".tfsidx", "index")
    equal(info(t, "--index=none")["archive"]["index"], None, "no index")
    with tarfile.open(t) as a:
        for x in a.getmembers()[:5]:
            j = info(t + ":" + x.name)["member"]
            equal((j["type"], j["size"], j["at"], j["uid"], j["mtime"]),
                  ("file", x.size, x.offset_data, x.uid, x.mtime), x.name)
            p = exits(tensorfs("info", "--map", t + ":" + x.name, "10",
                               "5"), 0, "--map")
            check("%s at %d" % (t, x.offset_data + 10) in p.stdout, p.stdout)
            p = exits(tensorfs("info", "--map", "--json", t + ":" + x.name, "10",
                               "5"), 0, "--map --json")
            m = json.loads(p.stdout)
            keys = ("offset", "length", "kind", "file", "at")
            equal([tuple(e[k] for k in keys) for e in m],
                  [(10, 5, "file", t, x.offset_data + 10)], p.stdout)
    j = info(t + ":d/f001")["member"]
    equal((j["links"], sorted(j["names"]), j["xattrs"]),
          (2, ["/d/f001", "/h"], [{"name": "user.k", "bytes": 1}]), "d/f001")
    j = info(t + ":d")["member"]
    equal(j["files"] + j["hard_links"], 5, "names in d")
    return t


def info_stream(ext):
    t = compressed(ext)
    plain = len(tar_bytes())
    j = info(t)["archive"]
    s = j["storage"]
    equal((j["files"], j["stored_bytes"], s["decoded_bytes"]),
          (FILES, os.path.getsize(t), plain), "info of a stream")
    check(s["windows"] >= 1 and s["window_largest_bytes"] <=
          s["farthest_jump_bytes"] <= plain, "windows: %s" % s)
    equal(j["slow"], [], "slow")
    x = info(t + ":d1/f001")["member"]
    check(x["decoded_bytes"] >= x["size"] == len(content(1)), str(x))
    check(0 < x["stored_bytes"] <= os.path.getsize(t), str(x))


def lls(t):
    """Type letters of what unsquashfs lists."""
    out = sh("unsquashfs", "-lls", t).decode()
    return [line[0] for line in out.splitlines()
            if re.match(r"[-dlcbps][-rwxsStT]{9} ", line)]


def info_image(comp):
    t = image(comp)
    j = info(t)["archive"]
    letters = lls(t)
    super_ = sh("unsquashfs", "-s", t).decode()
    block = int(re.search(r"Block size (\d+)", super_).group(1))
    fragments = int(re.search(r"Number of fragments (\d+)", super_).group(1))
    equal((j["files"], j["directories"], j["format"], j["bytes"]),
          (letters.count("-"), letters.count("d") - 1,
           "squashfs (%s)" % comp,
           sum(len(content(i)) for i in range(FILES))), "info of an image")
    s = j["storage"]
    equal((s["block_bytes"], s["fragment_blocks"]), (block, fragments),
          "blocks")
    whole = sum(len(content(i)) // block for i in range(FILES))
    check(whole <= s["data_blocks"] <= whole + FILES, "data blocks: %s" % s)
    equal(s["files_in_fragments"],
          sum(0 < len(content(i)) < block for i in range(FILES)), "small files")
    if comp == "gzip":
        x = info(t + ":d0/f006")["member"]
        raw = read(t)[x["stored_at"]:]
        same_bytes(zlib.decompressobj().decompress(raw), content(6)[:block],
                   "the first block of f006")


def holes():
    """A file with holes: its blocks in an image, its runs in a tar."""
    d = scratch("holes")
    with open(os.path.join(d, "f"), "wb") as f:
        f.truncate(10 << 20)
        f.seek(4 << 20)
        f.write(content(1))
    t = os.path.join(scratch("sq"), "t.sqfs")
    sh("mksquashfs", d, t, "-noappend", "-no-progress", "-quiet", "-b",
       "64K")
    x = info(t + ":f")["member"]
    n = -(-len(content(1)) // 65536)
    equal((x["blocks"], x["holes"]), (n, 160 - n), "blocks and holes")
    t = os.path.join(scratch("tar"), "t.tar")
    sh("tar", "-c", "-S", "-f", t, "-C", d, "f")
    x = info(t + ":f")["member"]
    equal(x["kept_as"], "sparse", "kept as")
    run = x["first_runs"][0]
    same_bytes(read(t)[run["at"]:][:len(content(1))], content(1), "its run")
    equal(verify(t, code=0)["bad"], [], "bad")


def slow():
    """Warnings where they are true, and nowhere else."""
    d = scratch("small")
    for i in range(300):
        with open("%s/f%03d" % (d, i), "wb") as f:
            f.write(arc.text(3000, i))

    def of(*opts):
        t = os.path.join(scratch("sq"), "t.sqfs")
        sh("mksquashfs", d, t, "-noappend", "-no-progress", "-quiet", *opts)
        return " ".join(info(t)["archive"]["slow"])
    check("1 MiB" in of("-b", "1M"), "1 MiB blocks")
    equal(of("-b", "128K"), "", "128 KiB blocks")
    equal(of("-b", "1M", "-noF"), "", "fragments that are not compressed")
    check("xz" in of("-comp", "xz", "-b", "128K"), "xz")
    if not known("zst"):
        return
    data = arc.text(1 << 20, 1) * 48
    for how, word in ((lambda x: x, True), (pieces, False)):
        t = os.path.join(scratch("z"), "f.zst")
        with open(t, "wb") as f:
            f.write(how(pipe("zstd", "-q", "-1", "-c"))(data))
        equal("jump" in " ".join(info(t)["archive"]["slow"]), word,
              "jumps in zstd")


def damaged_info():
    t = plain_tar()
    with open(t, "r+b") as f:
        f.truncate(os.path.getsize(t) * 3 // 5)
    j = info(t)["archive"]
    equal(len(j["damage"]), 1, "damage: %s" % j["damage"])
    p = exits(tensorfs("info", t), 0, "info")
    check("damage" in p.stdout, p.stdout)


# --- the rest -----------------------------------------------------------------

def listed():
    t = info_tar()
    rows = {r["name"]: r for r in json.loads(
        exits(tensorfs("ls", "--json", t), 0, "ls").stdout)}
    equal((rows["c"]["type"], rows["c"]["major"], rows["c"]["minor"]),
          ("char device", 1, 3), "c")
    equal((rows["p"]["type"], rows["l"]["type"], rows["l"]["target"]),
          ("fifo", "symlink", "d/f001"), "p, l")
    for name, what in (("c", "not a regular file"), ("p", "not a regular file"),
                       ("d", "a directory")):
        p = exits(tensorfs("cat", t + ":" + name), 1, "cat " + name)
        check(p.stderr.endswith(name + " is " + what + "\n"), p.stderr)
    equal((rows["h"]["nlink"], rows["h"]["uid"], rows["h"]["gid"]),
          (2, 1001, 7), "h")
    out = exits(tensorfs("ls", "-l", t), 0, "ls -l").stdout.splitlines()
    check(out[0].startswith("c") and "1, 3" in out[0], out[0])
    check(out[2].split()[1:4:2] == ["2", out[2].split()[3]] and
          "1001" in out[2], out[2])


def several():
    """cat of many files, of one source in a row and of others between."""
    a, b = plain_tar(), image()
    names = [(a, 1), (a, 2), (b, 4), (a, 2), (a, 3), (b, 4)]
    argv = ["%s:d%d/f%03d" % (t, i % 3, i) for t, i in names]
    want = b"".join(content(i) for _, i in names)
    p = exits(tensorfs("cat", *argv, text=False), 0, "cat")
    same_bytes(p.stdout, want, "all of them")
    argv.insert(2, a + ":none")
    p = exits(tensorfs("cat", *argv, text=False), 1, "cat, one is missing")
    same_bytes(p.stdout, want, "the others")
    check("none" in str(p.stderr), "stderr: %r" % p.stderr)


def space():
    for make in (plain_tar, image):
        t = make()
        with Mount(t) as m:
            s = os.statvfs(m.path)
            want = sum(len(d) + len(f) for _, d, f in os.walk(m.path))
        used = s.f_blocks * s.f_frsize
        check(0 <= used - os.path.getsize(t) < 4096, "f_blocks: %s" % (s,))
        check(want <= s.f_files <= want + 2, "f_files: %d, %d entries" % (
            s.f_files, want))


def counted():
    """What was decoded, and what was read as it is."""
    t = plain_tar()
    with Mount(t) as m:
        read(m / "d1/f001")
        s = m.stats()
    equal(s["bytes_decoded"], 0, "bytes decoded of a tar")
    check(s["bytes_verbatim"] >= len(content(1)), "verbatim: %s" % s)
    with Mount(image("gzip", "16K")) as m:
        read(m / "d0/f006")
        s = m.stats()
    check(s["bytes_decoded"] >= len(content(6)) and s["bytes_stored"] and
          s["chunks_decoded"] >= len(content(6)) // 16384, "decoded: %s" % s)


def poke(index, section, at, new):
    """Other bytes in a section of an index, with checksums that fit (docs/formats.md)."""
    f = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
    f.argtypes, f.restype = [ctypes.c_char_p, ctypes.c_size_t], ctypes.c_uint64
    with open(index, "rb") as x:
        b = bytearray(x.read())
    for e in range(128, 640, 32):
        id, _, off, size = struct.unpack_from("<IIQQ", b, e)
        if id == section and size:
            check(at + len(new) <= size, "the section is too short")
            check(b[off + at:off + at + len(new)] != new, "it says so already")
            b[off + at:off + at + len(new)] = new
            struct.pack_into("<Q", b, e + 24, f(bytes(b[off:off + size]), size))
    struct.pack_into("<Q", b, 120, 0)
    struct.pack_into("<Q", b, 120, f(bytes(b[:640]), 640))
    with open(index, "wb") as x:
        x.write(b)


def lying_index():
    """verify finds whatever an index says of members that the archive does not."""
    for what, section, at, new in (
            ("size", 2, 41, b"\1"), ("where", 2, 49, b"\4"), ("time", 2, 56, b"\7"),
            ("mode", 2, 78, b"\x24"), ("since", 8, 36, b"\4"), ("owner", 8, 40, b"x"),
            ("group", 8, 44, b"x"), ("source", 8, 56, b"\1"),
            ("the root's owner", 8, 8, b"x"), ("a name", 3, 1, b"e")):
        t = os.path.join(scratch("lies"), "a.tar")
        with tarfile.open(t, "w") as a:
            for i in range(3):
                m = tarfile.TarInfo("f%d" % i)
                m.size, m.mtime = 700, 1000
                m.uid, m.gid = 5, 6
                a.addfile(m, io.BytesIO(bytes(700)))
        verify("--index=" + t + ".tfsidx", t, code=0)
        poke(t + ".tfsidx", section, at, new)
        j = verify(t, code=1)
        check(j["bad"], what)


def verifying():
    one("intact:tar", intact, plain_tar)
    for ext in COMPRESSORS:
        one("intact:" + ext, intact, compressed, ext)
    for comp in ("gzip", "xz", "zstd", "lz4", "lzo"):
        one("intact:sqfs-" + comp, intact, image, comp)
        one("blocks:" + comp, blocks, comp)
    for f in (tar_cut, tar_header, tar_shrunk, blocks_of_fragments, metadata,
              part, hdf5, hostile_names, lying_index):
        one("verify:" + f.__name__, f)
    for ext in COMPRESSORS:
        for where in ("flip", "cut"):
            for late in (False, True):
                one("stream:%s:%s%s" % (ext, where, ":late" * late), stream,
                    ext, where, late)
    for ext in ("gz", "xz", "zst"):
        one("end:" + ext, stream_end, ext)
        one("single:" + ext, single, ext)
    for outer in ("tar", "tar.gz", "sqfs", "directory"):
        one("inside:" + outer, inside, outer)


def telling():
    one("info:nothing-left", nothing_is_left_beside)
    one("info:tar", info_tar)
    for ext in COMPRESSORS:
        one("info:" + ext, info_stream, ext)
    for comp in ("gzip", "zstd", "xz"):
        one("info:sqfs-" + comp, info_image, comp)
    for f in (holes, slow, damaged_info):
        one("info:" + f.__name__, f)
    for f in (listed, several, space, counted):
        one("rest:" + f.__name__, f)


if __name__ == "__main__":
    arc.main([verifying, telling])
