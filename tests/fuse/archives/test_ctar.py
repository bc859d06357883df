#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compressed tar, and compressed single files: the tree of the plain tar, random
access from several threads with a small cache, and never a wrong byte."""
import bz2
import errno
import functools
import gzip
import lzma
import os
import random
import shutil
import sys
import zlib

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import arc
import lib
import tree
from arc import need, one, scratch, sh
from checks import check, equal, note, pread, read, same_bytes
from lib import Mount, exits, tensorfs

SMALL = arc.PACKED_CACHE


@functools.lru_cache(None)
def plain_tar():
    t = os.path.join(scratch("plain"), "data.tar")
    sh("tar", "-c", "--format=gnu", "-f", t, "-C", arc.packed_tree(), ".")
    return t


@functools.lru_cache(None)
def odd_tar():
    t = os.path.join(scratch("plain"), "odd.tar")
    sh("tar", "-c", "--format=posix", "--sparse", "-f", t, "-C",
       arc.odd_tree(xattrs=False), ".")
    return t


# --- who compresses ------------------------------------------------------------

def piped(*argv):
    """A program that reads stdin and writes stdout; so it knows no size."""
    def f(src, out):
        need(argv[0])
        with open(src, "rb") as i:
            data = sh(*argv, input=i.read())
        with open(out, "wb") as o:
            o.write(data)
    return f


def named(*argv):
    """A program that gets names: {in} and {out}."""
    def f(src, out):
        sh(*(a.format(**{"in": src, "out": out}) for a in argv))
    return f


def pieces(data, size):
    return (data[i:i + size] for i in range(0, len(data), size))


def joined(one_piece, size=700001):
    """Streams of pieces, one after the other."""
    def f(src, out):
        with open(out, "wb") as o:
            for p in pieces(read(src), size):
                o.write(one_piece(p))
    return f


def bgzf(src, out):
    """Members of at most 64 KiB whose extra field has their size, and an empty
    one at the end."""
    def member(d):
        c = zlib.compressobj(6, zlib.DEFLATED, -15)
        body = c.compress(d) + c.flush()
        return (b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x06\0BC\x02\0" +
                (len(body) + 25).to_bytes(2, "little") + body +
                zlib.crc32(d).to_bytes(4, "little") +
                len(d).to_bytes(4, "little"))
    with open(out, "wb") as o:
        for p in pieces(read(src), 65280):
            o.write(member(p))
        o.write(member(b""))


def gz_headers(src, out):
    """Name, comment, extra field and header CRC; stored and fixed blocks."""
    data = read(src)
    with open(out, "wb") as o:
        for i, p in enumerate(pieces(data, 3 << 20)):
            head = b"\x1f\x8b\x08\x1f" + b"\1\2\3\4" + b"\0\3" + \
                b"\x07\0extra!!" + b"name.tar\0" + b"a comment\0"
            head += (zlib.crc32(head) & 0xffff).to_bytes(2, "little")
            c = zlib.compressobj((0, 6)[i % 2], zlib.DEFLATED, -15, 8,
                                 (0, zlib.Z_FIXED)[i % 2])
            o.write(head + c.compress(p) + c.flush() + zlib.crc32(p).to_bytes(
                4, "little") + len(p).to_bytes(4, "little"))


def zst_skippable(src, out):
    """Frames with skippable ones between them, an empty one too."""
    need("zstd")
    skip = b"\x50\x2a\x4d\x18\x05\0\0\0hello"
    with open(out, "wb") as o:
        o.write(skip)
        for p in pieces(read(src), 2 << 20):
            o.write(sh("zstd", "-q", "-c", input=p) + skip)
        o.write(sh("zstd", "-q", "-c", input=b""))


def lz4_frames(src, out):
    with open(out, "wb") as o:
        for p in pieces(read(src), 3 << 20):
            o.write(sh("lz4", "-q", "-c", input=p))
            o.write(b"\x50\x2a\x4d\x18\x04\0\0\0skip")


WRITERS = {
    "gz": {
        "gzip-1": piped("gzip", "-1"), "gzip-9": piped("gzip", "-9"),
        "pigz": piped("pigz", "-p2"), "pigz-i": piped("pigz", "-p2", "-i"),
        "python": joined(gzip.compress, 1 << 40),
        "members": joined(gzip.compress), "bgzf": bgzf, "fields": gz_headers},
    "bz2": {
        "bzip2-1": piped("bzip2", "-1"), "bzip2-9": piped("bzip2", "-9"),
        "lbzip2": piped("lbzip2", "-n2"),
        "streams": joined(lambda d: bz2.compress(d, 3))},
    "xz": {
        "one": piped("xz", "-T1", "-2"),
        "blocks": piped("xz", "-T2", "-1", "--block-size=1MiB"),
        "sha256": piped("xz", "-1", "--check=sha256"),
        "nocheck": piped("xz", "-1", "--check=none", "--block-size=1MiB"),
        "crc32": piped("xz", "-1", "--check=crc32", "--block-size=300KiB"),
        "x86": piped("xz", "--x86", "--lzma2=preset=1"),
        "delta": piped("xz", "--delta=dist=4", "--lzma2=preset=1"),
        "pixz": named("pixz", "-1", "{in}", "{out}"),
        "pixz-t": named("pixz", "-t", "-1", "{in}", "{out}"),
        "streams": joined(lambda d: lzma.compress(d, preset=1) + bytes(8))},
    "zst": {
        "1": piped("zstd", "-q", "-1", "-c"),
        "19": piped("zstd", "-q", "-19", "-c"),
        "sized": named("zstd", "-q", "-3", "{in}", "-o", "{out}"),
        "long": piped("zstd", "-q", "--long=27", "-c"),
        "nocheck": piped("zstd", "-q", "--no-check", "-c"),
        "threads": piped("zstd", "-q", "-T2", "-B1MiB", "-c"),
        "pzstd": named("pzstd", "-q", "-p2", "{in}", "-o", "{out}"),
        "frames": joined(lambda d: sh("zstd", "-q", "-c", input=d)),
        "skippable": zst_skippable},
    "lz4": {
        "default": piped("lz4", "-q", "-c"),
        "9": piped("lz4", "-q", "-9", "-c"),
        "BD": piped("lz4", "-q", "-BD", "-c"),
        "BI-B4": piped("lz4", "-q", "-BI", "-B4", "-c"),
        "BD-B4": piped("lz4", "-q", "-BD", "-B4", "-c"),
        "BX": piped("lz4", "-q", "-BX", "-c"),
        "nocrc": piped("lz4", "-q", "--no-frame-crc", "-c"),
        "sized": named("lz4", "-q", "--content-size", "{in}", "{out}"),
        "l": piped("lz4", "-q", "-l", "-c"),
        "frames": lz4_frames},
}


def flushed(src, out):
    """Sync and full flushes in one member, as network programs write."""
    c = zlib.compressobj(6, zlib.DEFLATED, 31)
    with open(out, "wb") as o:
        for i, p in enumerate(pieces(read(src), 123457)):
            o.write(c.compress(p))
            o.write(c.flush((zlib.Z_SYNC_FLUSH, zlib.Z_FULL_FLUSH)[i % 2]))
        o.write(c.flush())


WRITERS["gz"]["flushed"] = flushed
SLOW = {("zst", "19")}  # to write


def compressed(ext, who, src):
    out = os.path.join(scratch(ext), os.path.basename(src) + "." + ext)
    WRITERS[ext][who](src, out)
    return out


@functools.lru_cache(None)
def compressed_tar(ext, who):
    return compressed(ext, who, plain_tar())


def copy_of(path):
    """Another file of that name and content."""
    return shutil.copy(path, scratch("copy"))


# --- trees ---------------------------------------------------------------------

def whole_tree(ext, who):
    """With a cache that holds a part of it.  The index and most of the random reads
    of a format's other writers are for the full tier."""
    t = compressed_tar(ext, who)
    if lib.full() or who == next(iter(WRITERS[ext])):
        arc.compare_together(t, arc.packed_tree(), SMALL)
    else:
        arc.compare_together(t, arc.packed_tree(), SMALL, twice=False, reads=1)


def odd_tree(ext, who):
    t = compressed(ext, who, odd_tar())
    arc.compare(t, arc.gnu_extract(odd_tar()), opts=SMALL)


def other_name(ext, suffix):
    """.tgz and the like; and no suffix at all: the content tells."""
    who = next(iter(WRITERS[ext]))
    t = copy_of(compressed_tar(ext, who))
    for name in ("x" + suffix, "nothing", "x.jpg"):
        new = os.path.join(os.path.dirname(t), name)
        os.rename(t, new)
        t = new
        with Mount(t, opts=SMALL) as m:
            tree.same(os.path.join(m.path, "c1"), arc.packed_tree() + "/c1")


def trees():
    for ext, writers in WRITERS.items():
        for who in writers:
            if lib.full() or (ext, who) not in SLOW:
                one("tar:%s:%s" % (ext, who), whole_tree, ext, who)
        one("odd:" + ext, odd_tree, ext, next(iter(writers)))
    for ext, suffix in (("gz", ".tgz"), ("bz2", ".tbz2"), ("xz", ".txz"),
                        ("zst", ".tzst"), ("lz4", ".tlz4")):
        one("name:" + ext, other_name, ext, suffix)


# --- single files ----------------------------------------------------------------

SINGLE = 3000000 if lib.full() else 1000000  # bytes of text


def single(ext, who, name, data):
    """It mounts as that file, with its size before it is read."""
    src = os.path.join(scratch("single"), name)
    with open(src, "wb") as f:
        f.write(data)
    t = compressed(ext, who, src)
    os.unlink(src)
    for _ in range(2):
        with Mount(t, opts=SMALL) as m:
            equal(os.listdir(m.path), [name], "names")
            st = os.stat(m / name)
            equal(st.st_size, len(data), "st_size")
            check(st.st_blocks or not data, "st_blocks 0")
            r = random.Random(1)
            for _ in range((20 if lib.full() else 8) if data else 0):
                off = r.randrange(len(data))
                same_bytes(pread(m / name, 70000, off),
                           data[off:off + 70000], "%s at %d" % (name, off))
            same_bytes(read(m / name), data, name)
    c = exits(tensorfs("cat", "%s:%s" % (t, name), text=False), 0, "cat")
    same_bytes(c.stdout, data, "cat")
    exits(tensorfs("verify", t), 0, "verify")


def single_cut(ext, who):
    """How long it was nobody knows: refused, or its end is an error.  It is
    not a shorter file that can be read."""
    data = arc.text(SINGLE, 6)
    src = os.path.join(scratch("cut"), "file")
    with open(src, "wb") as f:
        f.write(data)
    t = compressed(ext, who, src)
    whole = read(t)
    for keep in (len(whole) // 2, len(whole) - 5, 60):
        with open(t, "wb") as f:
            f.write(whole[:keep])
        m = arc.refused_or_mounted(t, SMALL)
        if m is None:
            continue
        try:
            for n in os.listdir(m.path):
                try:
                    got = read(m / n)
                except OSError as e:
                    check(e.errno in (errno.EIO, errno.EBADMSG), "%s" % e)
                    continue
                same_bytes(got, data, "cut at %d of %d" % (keep, len(whole)))
        finally:
            m.__exit__(None, None, None)


def zeros(ext, who):
    """Many zeros behind one byte: memory is bounded by the cache and not by what a
    window decodes to.  200 MB are also a ratio that a quadratic reader feels."""
    n = (200 if lib.full() else 100) << 20
    src = os.path.join(scratch("zeros"), "zeros")
    with open(src, "wb") as f:
        f.write(b"x")
        f.truncate(n)
    t = compressed(ext, who, src)
    os.unlink(src)
    with Mount(t, opts=["--cache-size=8M"]) as m:
        equal(os.stat(m / "zeros").st_size, n, "size")
        for off in (n - 10, 1, n // 2, n // 3, n // 2 + 5, n - 70000):
            got = pread(m / "zeros", 65536, off)
            check(not got.strip(b"\0") and len(got) == min(65536, n - off),
                  "zeros at %d" % off)
        used = lib.memory(m.pid)
        # The thread sanitizer's own memory of each thread is in there.
        check(used < (8 + 64) << 20 or
              os.environ.get("TENSORFS_SANITIZED") == "thread",
              "%d MiB in use, cache-size is 8 MiB" % (used >> 20))


def singles():
    data = arc.text(SINGLE, 5) + random.Random(8).randbytes(SINGLE * 2 // 3)
    for ext, writers in WRITERS.items():
        who = list(writers)
        one("single:" + ext, single, ext, who[0], "samples.bin", data)
        one("single:%s:%s" % (ext, who[-1]), single, ext, who[-1],
            "samples.bin", data)
        one("single:%s:empty" % ext, single, ext, who[0], "nothing", b"")
        one("single:%s:zeros" % ext, single, ext, who[0], "zeros.bin",
            bytes(50000))
        one("single:%s:cut" % ext, single_cut, ext, who[0])
        one("single:%s:byte" % ext, single, ext, who[0], "one byte", b"x")
        one("zeros:" + ext, zeros, ext, who[0])


# --- damage ---------------------------------------------------------------------

@functools.lru_cache(None)
def originals():
    """{path: content} of what is damaged below."""
    return {p.decode(): e[3] for p, e in tree.digest(arc.packed_tree()).items()
            if e[3] is not None}


def never_wrong(m, good, what):
    """Every file below is an error or right; the number of right ones."""
    right = 0
    for top, _, names in os.walk(os.fsencode(m.path)):
        for n in names:
            p = os.path.join(top, n)
            rel = os.path.relpath(p, os.fsencode(m.path)).decode(
                "utf-8", "surrogateescape")
            if not os.path.isfile(p):
                continue
            try:
                got = read(p)
            except OSError as e:
                check(e.errno in (errno.EIO, errno.EBADMSG), "%s: %s: %s" % (
                    what, rel, e))
                continue
            check(rel in good, "%s: a file that is not in the archive can be "
                  "read: %s" % (what, rel))
            same_bytes(got, good[rel], "%s: %s" % (what, rel))
            right += 1
    arc.alive(m)
    return right


def damaged(ext, who, change, tries):
    """change(data, k) -> damaged data; mounts twice, for the index.  Returns how many
    of the mounts were refused, and how many there were."""
    t = copy_of(compressed_tar(ext, who))
    whole = read(t)
    good = originals()
    refused = errors = mounts = 0
    for k in range(tries):
        data, what = change(whole, k)
        with open(t, "wb") as f:
            f.write(data)
        for how in ("scanned", "mounted again"):
            m = arc.refused_or_mounted(t, SMALL)
            mounts += 1
            if m is None:
                refused += 1
                continue
            try:
                n = never_wrong(m, good, "%s, %s" % (what, how))
                errors += n < len(good)
            finally:
                m.__exit__(None, None, None)
    check(refused + errors, "%d damaged copies, and nothing was noticed" %
          tries)
    return refused, mounts


def flip(whole, k):
    r = random.Random(k)
    at = r.randrange(len(whole) // 20, len(whole) - 20)
    data = bytearray(whole)
    data[at] ^= 1 << r.randrange(8)
    return data, "bit flipped at %d" % at


def cut(whole, k):
    keep = (len(whole) // 2, len(whole) - 3, len(whole) // 5 + 1,
            len(whole) - 40)[k]
    return whole[:keep], "cut at %d of %d" % (keep, len(whole))


def truncated(ext, who):
    """What is before the cut is there: the archive is not refused whole."""
    refused, mounts = damaged(ext, who, cut, 4 if lib.full() else 2)
    check(refused < mounts, "refused whole, each time")


def verified(ext, who):
    """`verify` finds one flipped bit, and says so with exit 1."""
    t = copy_of(compressed_tar(ext, who))
    exits(tensorfs("verify", t), 0, "verify of the whole one")
    whole = read(t)
    for k in (1, 2) if lib.full() else (1,):
        with open(t, "wb") as f:
            f.write(flip(whole, k)[0])
        p = exits(tensorfs("verify", t), (1, 3), "verify, bit flipped")
        check((p.stdout + p.stderr).strip(), "verify says nothing")


def changed_after_index(ext, who):
    """A bit flips, with the same size and time, after the index was saved: the
    windows' own checksums notice."""
    t = copy_of(compressed_tar(ext, who))
    with Mount(t, opts=SMALL):
        pass
    st = os.stat(t)
    whole = read(t)
    good = originals()
    for k in (3, 4, 5) if lib.full() else (3,):
        with open(t, "r+b") as f:
            f.write(flip(whole, k)[0])
        os.utime(t, ns=(st.st_atime_ns, st.st_mtime_ns))
        m = arc.refused_or_mounted(t, SMALL)
        if m is None:
            continue
        try:
            check(never_wrong(m, good, "flipped behind the index's back") <
                  len(good), "nothing was noticed")
        finally:
            m.__exit__(None, None, None)


def garbage_behind(ext, who):
    """Bytes behind the stream are ignored, as the tools do, and said; or it is
    refused with a sentence.  Zeros are padding."""
    t = copy_of(compressed_tar(ext, who))
    whole = read(t)
    for tail in (bytes(1000), b"garbage behind the end"):
        with open(t, "wb") as f:
            f.write(whole + tail)
        m = arc.refused_or_mounted(t, SMALL)
        if m is None:
            note("%s: refused with %s behind it" % (ext, tail[:7]))
            continue
        try:
            equal(never_wrong(m, originals(), "garbage behind"),
                  len(originals()), "files that can be read")
        finally:
            m.__exit__(None, None, None)


def damage():
    who = {"gz": ("gzip-1", "members"), "bz2": ("bzip2-1", "streams"),
           "xz": ("one", "blocks"), "zst": ("1", "frames"),
           "lz4": ("default", "BD-B4")}
    for ext, two in who.items():
        for w in two:
            name = ":%s:%s" % (ext, w)
            one("flip" + name, damaged, ext, w, flip,
                4 if lib.full() else 1)
            if lib.full() or w == two[0]:
                one("cut" + name, truncated, ext, w)
        one("verify:" + ext, verified, ext, two[0])
        one("behind-index:" + ext, changed_after_index, ext, two[0])
        one("garbage:" + ext, garbage_behind, ext, two[0])


if __name__ == "__main__":
    arc.main((trees, singles, damage))
