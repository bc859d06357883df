#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""zip: what is mounted is what unzip leaves and Python's zipfile reads, whoever
wrote the archive; damage, bombs and what cannot be read are errors and nothing else."""
import concurrent.futures
import errno
import functools
import hashlib
import json
import os
import random
import struct
import sys
import zipfile
import zlib

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import arc
import lib
import tree
from arc import one, scratch, sh
from checks import check, equal
from lib import Mount, exits, tensorfs

SMALL = arc.PACKED_CACHE
LARGE = 40 << 20  # decoded once, for points to begin at


def fails(path, code):
    try:
        with open(path, "rb") as f:
            f.read()
    except OSError as e:
        equal(errno.errorcode[e.errno], errno.errorcode[code], path)
        return
    check(False, path + " can be read")


def cat(image, name, codes=0):
    return exits(tensorfs("cat", image + ":" + name, text=False), codes,
                 "cat " + name).stdout


def names_of(root):
    out = set()
    for d, dirs, files in os.walk(root):
        for n in dirs + files:
            out.add(os.path.relpath(os.path.join(d, n), root))
    return out


# --- Info-ZIP ----------------------------------------------------------------------

def zipped(src, *opts):
    out = os.path.join(scratch("zip"), "image.zip")
    sh("zip", "-q", "-r", "-y", *opts, out, ".", cwd=src)
    return out


def unzipped(image):
    """What unzip makes of it; it leaves times of symlinks alone."""
    d = os.path.join(scratch("un"), "root")
    sh("unzip", "-q", "-K", *(["-X"] if lib.ROOT else []), image, "-d", d)
    return d


def info_zip(*opts):
    src = arc.packed_tree()
    image = zipped(src, *opts)
    # The archive has no entry for its root.
    arc.compare(image, unzipped(image), SMALL, root=False)


def links_and_modes():
    src = scratch("src")
    for m in (0o400, 0o644, 0o755, 0o4755) + ((0,) if lib.ROOT else ()):
        p = os.path.join(src, "%04o" % m)
        with open(p, "w") as f:
            f.write("%o" % m)
        os.chmod(p, m)
    os.makedirs(src + "/Grüße/日本")
    open(src + "/Grüße/日本/é", "w").write("utf-8")
    os.mkdir(src + "/empty")
    open(src + "/none", "w")
    for i, t in enumerate(("0644", "nowhere", "../../etc/passwd", "/etc/x",
                           "t" * 1000)):
        os.symlink(t, src + "/link%d" % i)
    for n in sorted(names_of(src)):
        os.utime(os.path.join(src, n), (10**9, 10**9 + len(n)),
                 follow_symlinks=False)
    image = zipped(src)
    arc.compare(image, src, root=False)
    tree.same(unzipped(image), src, root=False, mtime=0,
              ordered=False)


def by_bsdtar():
    src = arc.packed_tree()
    image = os.path.join(scratch("bsd"), "image.zip")
    sh("bsdtar", "-c", "--format", "zip", "-f", image, ".", cwd=src)
    compare_python(image)


def streamed():
    """Sizes behind the data, in descriptors."""
    image = os.path.join(scratch("st"), "s.zip")
    data = sh("zip", "-q", "-r", "-", ".", cwd=arc.packed_tree())
    with open(image, "wb") as f:
        f.write(data)
    compare_python(image)


def writers():
    for name, opts in (("default", ()), ("stored", ("-0",)),
                       ("best", ("-9",)), ("no-extra", ("-X",))):
        one("info-zip:" + name, info_zip, *opts)
    one("info-zip:links", links_and_modes)
    one("info-zip:streamed", streamed)
    one("bsdtar", by_bsdtar)


# --- Python's zipfile --------------------------------------------------------------

def compare_python(image, opts=SMALL):
    """All members, as zipfile reads them: in a mount, twice, and by several readers."""
    with zipfile.ZipFile(image) as z:
        want = {i.filename: hashlib.sha256(z.read(i)).digest()
                for i in z.infolist() if not i.is_dir()}

    def f(m):
        def read(n):
            with open(os.path.join(m.path, n), "rb") as g:
                equal(hashlib.sha256(g.read()).digest(), want[n], n)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(read, sorted(want)))
        files = {n for n in names_of(m.path)
                 if os.path.isfile(os.path.join(m.path, n))}
        equal(files, {os.path.normpath(n) for n in want}, "files")
    arc.mounted(image, f, opts)


def archive(members, compression=zipfile.ZIP_DEFLATED, **kw):
    image = os.path.join(scratch("py"), "p.zip")
    with zipfile.ZipFile(image, "w", compression, **kw) as z:
        for n, data in members:
            z.writestr(n, data)
    return image


@functools.lru_cache(None)
def large_text():
    return arc.text(5 << 20, 5) * (LARGE // (5 << 20))


def python():
    r = random.Random(3)
    members = [("d/%03d" % i, arc.text(r.randrange(100000), i))
               for i in range(60)]
    members += [("empty", b""), ("noise", r.randbytes(300000))]
    compare_python(archive(members))
    compare_python(archive(members, zipfile.ZIP_STORED))


def large_member():
    """Ranges of what is larger than a window, by several readers; from the index."""
    data = large_text() + random.Random(4).randbytes(3 << 20)
    image = archive([("before", b"b" * 1000), ("large", data),
                     ("after", arc.text(1 << 20, 6))])
    r = random.Random(8)

    def f(m):
        def read(at):
            fd = os.open(m / "large", os.O_RDONLY)
            try:
                check(os.pread(fd, 70001, at) == data[at:at + 70001],
                      "bytes at %d" % at)
            finally:
                os.close(fd)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(read, [r.randrange(len(data))
                                 for _ in range(60 if lib.full() else 20)]))
        with open(m / "large", "rb") as g:
            check(g.read() == data, "all of it")
        with open(m / "after", "rb") as g:
            check(g.read() == arc.text(1 << 20, 6), "what follows")
    arc.mounted(image, f, SMALL)
    about = json.loads(exits(tensorfs("info", "--json", image), 0,
                             "info").stdout)
    text = json.dumps(about)
    check('"format": "zip"' in text, "info: " + text[:300])
    exits(tensorfs("verify", image), 0, "verify")


def large_members():
    """Decoded side by side: the same members and the same index as one after the other, and
    one that is damaged is no harm to its neighbours."""
    data = {"%d" % i: bytes([65 + i]) * 1000 + large_text()[:17 << 20] for i in range(4)}
    image = archive(data.items())
    with zipfile.ZipFile(image) as z:
        at = {i.filename: (i.header_offset, i.compress_size) for i in z.infolist()}
    for bad in ((), ("2",)) + lib.full() * (("0", "3"),):
        for n in bad:
            image = patched(image, at[n][0] + at[n][1] // 2, "<Q", 0x1122334455667788)
        kept = []
        for opts in (SMALL, []):
            index = os.path.join(scratch("i"), "x.tfsidx")
            with Mount(image, opts=[*opts, "--index=" + index]) as m:
                for n, want in data.items():
                    if n in bad or (n == "2" and bad):
                        fails(m / n, errno.EBADMSG)
                        continue
                    with open(m / n, "rb") as f:
                        check(f.read() == want, n)
            with open(index, "rb") as f:
                kept.append(f.read())
        check(kept[0] == kept[1], "another index")


def zip64():
    image = os.path.join(scratch("z64"), "z.zip")
    with zipfile.ZipFile(image, "w", zipfile.ZIP_DEFLATED) as z:
        with z.open(zipfile.ZipInfo("forced"), "w", force_zip64=True) as f:
            f.write(b"sixty-four" * 1000)
    compare_python(image)
    # More members than 16 bits can count.
    image = archive([("%05d" % i, b"%d" % i) for i in range(66000)],
                    zipfile.ZIP_STORED)
    with Mount(image, opts=SMALL) as m:
        equal(len(os.listdir(m.path)), 66000, "members")
        for i in (0, 65534, 65535, 65536, 65999):
            with open(m / ("%05d" % i), "rb") as f:
                equal(f.read(), b"%d" % i, "member %d" % i)


def names():
    """Code page 437, UTF-8 by flag; backslashes of DOS; paths out of the archive."""
    image = os.path.join(scratch("nm"), "n.zip")
    raw = bytes(range(0x80, 0x100, 2))
    with zipfile.ZipFile(image, "w") as z:
        for n, host in (("Grüße", 3), ("X" * len(raw), 0), ("dir?sub?f", 0),
                        ("../up", 3), ("/abs", 3), ("a/./b", 3)):
            i = zipfile.ZipInfo(n, (2001, 2, 3, 4, 5, 6))
            i.create_system = host
            z.writestr(i, n)
    with open(image, "rb") as f:
        data = f.read()
    data = data.replace(b"X" * len(raw), raw, 1)  # the local header, then
    at = data.rindex(b"X" * len(raw))             # the directory's entry
    data = data[:at] + raw + data[at + len(raw):]
    data = data.replace(b"dir?sub?f", b"dir\\sub\\f", 3)
    data = data.replace(b"dir\\sub\\f", b"dir?sub?f", 2) \
        if data.count(b"dir\\sub\\f") < 2 else data
    with open(image, "wb") as f:
        f.write(data)
    with Mount(image) as m:
        have = names_of(m.path)
        for n in ("Grüße", raw.decode("cp437"), "dir/sub/f", "abs", "a/b"):
            check(n in have, "%r is not there: %r" % (n, have))
        check("up" not in have, "a path with .. is shown")
        equal(os.stat(m / "abs").st_mtime, 981173106, "a time of DOS, as UTC")


def same_names():
    image = archive([])
    with zipfile.ZipFile(image, "w") as z:
        import warnings
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            z.writestr("twice", b"first")
            z.writestr("twice", b"second")
    equal(cat(image, "twice"), b"second", "the later one wins")


def split_names():
    """Backslashes of Windows in any encoding: as unzip splits them."""
    image = os.path.join(scratch("bs"), "b.zip")
    field = "ä\\ü.txt".encode()
    with zipfile.ZipFile(image, "w") as z:
        i = zipfile.ZipInfo("a?u.txt", (2001, 2, 3, 4, 5, 6))
        i.create_system = 0
        i.extra = struct.pack("<HHBI", 0x7075, 5 + len(field), 1,
                              zlib.crc32(b"a\\u.txt")) + field
        z.writestr(i, b"by field")
        i = zipfile.ZipInfo("é?ö.txt", (2001, 2, 3, 4, 5, 6))
        i.create_system = 0
        z.writestr(i, b"by flag")
        i = zipfile.ZipInfo("u\\x", (2001, 2, 3, 4, 5, 6))
        i.create_system = 3
        z.writestr(i, b"of Unix")
    with open(image, "rb") as f:
        data = f.read()
    with open(image, "wb") as f:
        f.write(data.replace(b"a?u.txt", b"a\\u.txt").replace(
            "é?ö.txt".encode(), "é\\ö.txt".encode()))
    d = os.path.join(scratch("un"), "root")
    sh("unzip", "-q", image, "-d", d, ok=(0, 1))
    with Mount(image) as m:
        # unzip 6.0 takes the flag for code page 437 here.
        equal({n for n in names_of(d) if n[0] in "äu"},
              {n for n in names_of(m.path) if n[0] in "äu"}, "as unzip leaves it")
        equal(names_of(m.path), {"ä", "ä/ü.txt", "é", "é/ö.txt", "u\\x"}, "names")


def piped():
    """A mode that says pipe: bytes from standard input, which are a file."""
    image = os.path.join(scratch("pipe"), "p.zip")
    sh("zip", "-q", image, "-", input=b"hello world\n" * 1000)
    compare_python(image)
    sh("zip", "-q", image, "-", input=b"", cwd=scratch("pipe"))
    compare_python(image)
    image = os.path.join(scratch("types"), "t.zip")
    with zipfile.ZipFile(image, "w") as z:
        for n, mode in (("socket", 0o140600), ("block", 0o060644),
                        ("char", 0o020000), ("file", 0o100640), ("dir", 0o040755)):
            i = zipfile.ZipInfo(n)
            i.external_attr = mode << 16
            z.writestr(i, n)
    compare_python(image)
    exits(tensorfs("verify", image), 0, "verify")


def times_and_owners():
    """Of old extra fields, and behind 2038: what unzip makes of them."""
    image = os.path.join(scratch("tm"), "t.zip")
    far, old = 0x80000000 + 12345, 10**9 + 1
    unix1 = struct.pack("<HHIIHH", 0x5855, 12, 5, old, 1001, 1002)
    unix2 = struct.pack("<HHHH", 0x7855, 4, 1003, 1004)
    new = struct.pack("<HHBI", 0x5455, 5, 1, old + 99)
    owner = struct.pack("<HHBBIBI", 0x7875, 11, 1, 4, 70001, 4, 70002)
    with zipfile.ZipFile(image, "w") as z:
        for n, date, extra in (
                ("mac", (2001, 9, 9), unix1), ("both", (2001, 9, 9), unix1 + new),
                ("before", (2001, 9, 9), new + unix1),
                ("unix2", (2001, 9, 9), unix2 + new),
                ("owner", (2001, 9, 9), owner + new),
                ("far", (2038, 1, 20), struct.pack("<HHBI", 0x5455, 5, 1, far)),
                ("early", (1980, 1, 1), struct.pack("<HHBI", 0x5455, 5, 1, far)),
                ("short", (2001, 9, 9), unix1[:2] + b"\x04\0abcd")):
            i = zipfile.ZipInfo(n, date + ((0, 0, 0) if n == "early" else (4, 5, 6)))
            i.extra = extra
            i.create_system = 3
            z.writestr(i, n)
    un = unzipped(image)
    with Mount(image) as m:
        for n in sorted(names_of(m.path)):
            have, want = os.stat(m / n), os.stat(os.path.join(un, n))
            if n == "early":  # unzip leaves out times before 1970
                equal(have.st_mtime, far - 2**32, "32 bits with a sign")
                continue
            equal(have.st_mtime, want.st_mtime, n + ": mtime")
            if lib.ROOT and n in ("mac", "both", "unix2", "owner"):
                equal((have.st_uid, have.st_gid), (want.st_uid, want.st_gid),
                      n + ": owner")


def behind_others():
    """Behind text or a picture, as unzip and Python read it; never behind what is only
    called a zip."""
    image = archive([("d/a", b"x" * 5000), ("b", b"y" * 300)])
    with open(image, "rb") as f:
        data = f.read()
    own = os.path.join(scratch("front"), "b.zip")
    for head in (b"junk\n", b"\xff\xd8\xff\xe0JFIF" + bytes(9000), b"x"):
        with open(own, "wb") as f:
            f.write(head + data)
        compare_python(own)
        exits(tensorfs("verify", own), 0, "verify")
    with open(own, "wb") as f:
        f.write(b"junk\n" + data[:-22])
    p = tensorfs("ls", own)
    exits(p, 3, "no directory")
    check("offset=" in p.stderr, p.stderr)
    with open(own, "wb") as f:
        f.write(b"junk\n" + data + b"more")
    exits(tensorfs("ls", "--offset=5", own), 0, "offset")


def behind_programs():
    """Positions from the archive's beginning, and (zip -A) from the file's."""
    image = archive([("d/a", b"x" * 5000), ("b", b"y" * 300)])
    with open(image, "rb") as f:
        data = f.read()
    for head in (b"\x7fELF" + bytes(900), b"MZ" + bytes(70000), b"#!/bin/sh\n"):
        own = os.path.join(scratch("sfx"), "program")
        with open(own, "wb") as f:
            f.write(head + data)
        compare_python(own)
        sh("zip", "-q", "-A", own)
        compare_python(own)
        p = tensorfs("info", os.path.join(scratch("sfx"), "program"))
        check("in front" not in p.stderr, "positions are right now: " + p.stderr)
    with open(own, "wb") as f:
        f.write(b"#!/bin/sh\n" + b"PK\5\6" + bytes(18))
    exits(tensorfs("info", own), 3, "a script")


def signatures_in_comments():
    image = archive([("a", b"x" * 5000)])
    empty = b"PK\5\6" + bytes(18)
    for comment in (b"", b"PK\5\6", empty, empty[:20] + b"\3\0abc", b"x" * 9 + empty,
                    b"PK\5\6" + b"\xff" * 18, bytes(65535), empty * 2900):
        with zipfile.ZipFile(image, "a") as z:
            z.comment = comment
        equal(cat(image, "a"), b"x" * 5000, "comment %r" % comment[:30])
        with open(image, "rb") as f:
            data = f.read()
        with open(image, "wb") as f:  # for the next one
            f.write(data[:-len(comment) - 2] + b"\0\0" if comment else data)
    with zipfile.ZipFile(image, "a") as z:
        z.comment = data[:-len(comment) - 2] + b"\0\0"
    p = tensorfs("ls", image)
    exits(p, 3, "an archive as comment")
    check("is an archive itself" in p.stderr, p.stderr)


def zip64_ends():
    """The directory's size fits in the end; what does not is in the zip64 end."""
    image, empty = archive([("a", b"x" * 5000)]), b"PK\5\6" + bytes(18)
    limit, zipfile.ZIP_FILECOUNT_LIMIT = zipfile.ZIP_FILECOUNT_LIMIT, 0
    try:
        with zipfile.ZipFile(image, "a") as z:
            z.comment = b"xy" + empty
    finally:
        zipfile.ZIP_FILECOUNT_LIMIT = limit
    with open(image, "rb") as f:
        data = f.read()
    end = data.rindex(b"PK\6\7") + 20  # entries: as many as there are from 65536 on
    data = data[:end + 8] + b"\xff" * 4 + data[end + 12:]
    for head in (b"", b"\x7fELF" + bytes(900)):
        with open(image, "wb") as f:
            f.write(head + data)
        equal(cat(image, "a"), b"x" * 5000, "zip64, head of %d" % len(head))
    # As torch.save writes it: the end says all, and there is a zip64 end as well.
    image = os.path.join(scratch(), "model.pt")
    with zipfile.ZipFile(image, "w") as z:
        z.writestr("model/data/0", b"y" * 100)
    with open(image, "rb") as f:
        plain = f.read()
    size, pos = struct.unpack("<II", plain[-10:-2])
    end64 = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 30, 45, 0, 0, 1, 1, size, pos)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, len(plain) - 22, 1)
    with open(image, "wb") as f:
        f.write(plain[:-22] + end64 + locator + plain[-22:])
    equal(zipfile.ZipFile(image).read("model/data/0"), b"y" * 100, "zipfile")
    equal(cat(image, "model/data/0"), b"y" * 100, "a zip64 end that is not needed")


def by_hand(members, comment=b"", base=0):
    """[(name, data, changes)]: stored; `changes` of local or central fields, extras."""
    body, entries = b"", b""
    for name, data, how in members:
        crc, n = zlib.crc32(data), len(data)
        at = len(body)
        f = dict(crc=crc, stored=n, size=n, name=name, method=0, flags=0, extra=b"")
        here = dict(f, **how.get("local", {}))
        there = {**f, "at": at, **how.get("central", {})}
        body += struct.pack("<IHHHHHIIIHH", 0x04034b50, 45, here["flags"],
                            here["method"], 0, 33, here["crc"], here["stored"],
                            here["size"], len(here["name"]), len(here["extra"]))
        body += here["name"] + here["extra"] + data
        entries += struct.pack("<IHHHHHHIIIHHHHHII", 0x02014b50, 0x32d, 45,
                               there["flags"], there["method"], 0, 33, there["crc"],
                               there["stored"], there["size"], len(there["name"]),
                               len(there["extra"]), 0, 0, 0, 0, there["at"])
        entries += there["name"] + there["extra"]
    out = os.path.join(scratch("hand"), "h.zip")
    with open(out, "wb") as f:
        f.write(body + entries + struct.pack("<IHHHHIIH", 0x06054b50, 0, 0, len(members),
                                             len(members), len(entries), len(body),
                                             len(comment)) + comment)
    return out


def odd_extras():
    """Large sizes in fields of zip64, as zipfile reads them."""
    a, b = b"first" * 100, b"second" * 200
    far = 30 + 1 + len(a)
    m = 0xffffffff
    other = struct.pack("<HH3s", 0x4242, 3, b"abc")

    def z64(*values, more=b""):
        return struct.pack("<HH%dQ" % len(values), 1, 8 * len(values) + len(more),
                           *values) + more
    for extra, fields in (
            (z64(len(b)), dict(size=m)), (z64(len(b)), dict(stored=m)),
            (z64(len(b), len(b)), dict(size=m, stored=m)), (z64(far), dict(at=m)),
            (z64(len(b), len(b), far), dict(size=m, stored=m, at=m)),
            (z64(len(b), len(b), far, more=bytes(4)), dict(size=m, stored=m, at=m)),
            (other + z64(far), dict(at=m)), (z64(far) + other, dict(at=m)),
            (z64(7, 7, 7), {}), (z64(), {})):
        central = dict(fields, extra=extra)
        local = dict(size=m, stored=m, extra=z64(len(b), len(b)))
        for how in (dict(central=central), dict(central=central, local=local)):
            image = by_hand([(b"a", a, {}), (b"b", b, how)])
            compare_python(image)
            exits(tensorfs("verify", image), 0, "verify")
    image = by_hand([(b"a", a, {}), (b"b", b, dict(central=dict(
        size=m, extra=struct.pack("<HHI", 1, 4, 5))))])
    exits(tensorfs("cat", image + ":b"), (1, 2, 3), "cut off")
    exits(tensorfs("verify", image), 1, "verify")


def headers_that_differ():
    """What the directory and the header in front of the data say is the same, or the
    member is refused; what the header leaves out is the directory's."""
    a, b = b"first" * 100, b"second" * 200
    for how, good in (
            (dict(local=dict(size=0, stored=0, crc=0)), True),
            (dict(local=dict(flags=8, size=0, stored=0, crc=0)), True),
            (dict(local=dict(flags=8, size=5, stored=5, crc=5)), True),
            (dict(local=dict(extra=b"ab")), True),
            (dict(local=dict(size=len(b) - 1)), False),
            (dict(local=dict(stored=len(b) - 1)), False),
            (dict(local=dict(crc=1)), False),
            (dict(local=dict(method=8)), False),
            (dict(local=dict(name=b"c")), False),
            (dict(central=dict(size=len(b) - 9, stored=len(b) - 9)), False),
            (dict(central=dict(size=len(b) - 9)), False)):
        image = by_hand([(b"a", a, {}), (b"b", b, how), (b"d", a, {})])
        for n in "ad":
            equal(cat(image, n), a, "%s: %s" % (how, n))
        if good:
            equal(cat(image, "b"), b, how)
        else:
            p = tensorfs("cat", image + ":b")
            exits(p, 1, how)
            check("b: " in p.stderr and "damaged" in p.stderr, p.stderr)


def in_front_and_behind():
    """A program in front, a comment behind, an archive without members."""
    image = archive([("a", b"x" * 5000)])
    with zipfile.ZipFile(image, "a") as z:
        z.comment = b"PK\5\6 is no end, nor is this" * 20
    equal(cat(image, "a"), b"x" * 5000, "with a comment")
    with open(image, "rb") as f:
        data = f.read()
    with open(image, "wb") as f:
        f.write(b"PK\3\4" + b"\0" * 996 + data)
    equal(cat(image, "a"), b"x" * 5000, "behind something else")
    empty = archive([])
    with Mount(empty) as m:
        equal(os.listdir(m.path), [], "an empty archive")


def nested():
    inner = archive([("deep.txt", arc.text(100000, 9))])
    with open(inner, "rb") as f:
        data = f.read()
    tar = os.path.join(os.path.dirname(inner), "t.tar")
    sh("tar", "-c", "-f", tar, "-C", os.path.dirname(inner), "p.zip")
    with open(tar, "rb") as f:
        tarred = f.read()
    for how in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        image = archive([("in.zip", data), ("in.tar", tarred)], how)
        with Mount(image, opts=["--nested"]) as m:
            for n in ("in.zip/deep.txt", "in.tar/p.zip/deep.txt"):
                with open(m / n, "rb") as f:
                    check(f.read() == arc.text(100000, 9), n)


def union():
    a = archive([("a", b"1"), ("both", b"old")])
    b = archive([("b", b"2" * 3000), ("both", b"new" * 3000)])
    with Mount(None, sources=[a, b], opts=["-o", "union"]) as m:
        with open(m / "both", "rb") as f:
            equal(f.read(), b"new" * 3000, "the later one")
        with open(m / "a", "rb") as f:
            equal(f.read(), b"1", "of the first")


def zipfile_cases():
    one("python:all", python)
    one("python:large", large_member)
    one("python:large-members", large_members)
    one("python:zip64", zip64)
    one("python:names", names)
    one("python:same-names", same_names)
    one("python:in-front", in_front_and_behind)
    one("python:programs", behind_programs)
    one("python:others", behind_others)
    one("info-zip:piped", piped)
    one("info-zip:times", times_and_owners)
    one("info-zip:split", split_names)
    one("python:comments", signatures_in_comments)
    one("python:zip64-ends", zip64_ends)
    one("python:extras", odd_extras)
    one("python:headers", headers_that_differ)
    one("python:nested", nested)
    one("python:union", union)


# --- bad input ---------------------------------------------------------------------

def unreadable():
    """Encrypted, or of another method: an error for that member, all else works."""
    src = scratch("enc")
    for n in ("secret", "open"):
        with open(os.path.join(src, n), "wb") as f:
            f.write(arc.text(20000, 2))
    image = os.path.join(src, "e.zip")
    sh("zip", "-q", "-P", "password", image, "secret", cwd=src)
    sh("zip", "-q", image, "open", cwd=src)
    with zipfile.ZipFile(image, "a") as z:
        z.writestr("bz", b"b" * 5000, zipfile.ZIP_BZIP2)
        z.writestr("lz", b"b" * 5000, zipfile.ZIP_LZMA)
    with Mount(image) as m:
        with open(m / "open", "rb") as f:
            check(f.read() == arc.text(20000, 2), "the one that is not")
        equal(os.stat(m / "secret").st_size, 20000, "its size is known")
        for n in ("secret", "bz", "lz"):
            fails(m / n, errno.ENOTSUP)
            fails(m / n, errno.ENOTSUP)
    p = tensorfs("cat", image + ":secret")
    check(p.returncode and "encrypted" in p.stderr, p.stderr)
    p = tensorfs("verify", image)
    exits(p, 1, "verify")
    check("secret" in p.stdout + p.stderr, "verify names it")


def entry_at(data, n):
    """Where entry n of the directory is."""
    at = data.index(b"PK\1\2")
    for _ in range(n):
        at = data.index(b"PK\1\2", at + 4)
    return at


def patched(image, at, fmt, *values):
    with open(image, "rb") as f:
        data = bytearray(f.read())
    struct.pack_into(fmt, data, at, *values)
    out = os.path.join(scratch("bad"), "bad.zip")
    with open(out, "wb") as f:
        f.write(data)
    return out


def damaged_members():
    body = arc.text(50000, 1)
    image = archive([("a", body), ("b", body), ("c", b"stored" * 100)])
    with open(image, "rb") as f:
        data = f.read()
    a, b = entry_at(data, 0), entry_at(data, 1)
    header_b = struct.unpack_from("<I", data, b + 42)[0]
    cases = {
        "crc": patched(image, a + 16, "<I", 12345),
        "larger": patched(image, a + 24, "<I", 50001),
        "smaller": patched(image, a + 24, "<I", 49999),
        "bomb": patched(image, a + 24, "<I", 0x7fffffff),
        "overlap": patched(image, a + 20, "<I", header_b + 100),
        "other header": patched(image, a + 42, "<I", header_b),
        "beyond": patched(image, a + 42, "<I", 0x7ffffff0),
        "data": patched(image, 31 + 600, "<Q", 0x1122334455667788),
        "local": patched(image, 0, "<I", 0x04034b51),
    }
    for how, bad in cases.items():
        m = arc.refused_or_mounted(bad)
        if m is None:
            check(how == "local", how + " is refused as a whole")
            continue
        try:
            fails(m / "a", errno.EIO if how == "beyond" else errno.EBADMSG)
            if how not in ("overlap", "other header"):
                with open(m / "b", "rb") as f:
                    check(f.read() == body, how + ": the other one")
        finally:
            m.__exit__(None, None, None)
        p = tensorfs("verify", bad)
        exits(p, 1, "verify of %s" % how)


def stored_damage():
    """Nobody checks a stored member while it is read; verify does."""
    image = archive([("a", b"0123456789" * 1000)], zipfile.ZIP_STORED)
    exits(tensorfs("verify", image), 0, "verify")
    bad = patched(image, 500, "<B", 0)
    p = tensorfs("verify", bad)
    exits(p, 1, "verify of a damaged stored member")
    check("CRC-32" in p.stdout + p.stderr, p.stdout + p.stderr)


def large_damage():
    image = archive([("large", large_text()), ("b", b"fine")])
    with open(image, "rb") as f:
        size = len(f.read())
    bad = patched(image, size // 2, "<Q", 0x1122334455667788)
    with Mount(bad) as m:
        fails(m / "large", errno.EBADMSG)
        with open(m / "b", "rb") as f:
            equal(f.read(), b"fine", "the other one")
    p = tensorfs("verify", bad)
    exits(p, 1, "verify")
    check("/large" in p.stdout and "gzip" not in p.stdout + p.stderr, p.stdout + p.stderr)
    image = archive([("small", arc.text(50000, 1)), ("b", b"fine")])
    p = tensorfs("cat", patched(image, 2000, "<Q", 0x1122334455667788) + ":small")
    exits(p, 1, "cat")
    check("/small: " in p.stderr and "gzip" not in p.stderr, p.stderr)


def truncated():
    image = archive([("%d" % i, arc.text(3000, i)) for i in range(20)])
    with open(image, "rb") as f:
        data = f.read()
    for cut in (1, 10, 21, 22, 300, len(data) // 2, len(data) - 10):
        bad = os.path.join(scratch("cut"), "cut.zip")
        with open(bad, "wb") as f:
            f.write(data[:-cut])
        p = tensorfs("ls", bad)
        exits(p, 3, "ls without the last %d bytes" % cut)
        check("trunc" in p.stderr or "damaged" in p.stderr or cut >
              len(data) - 30, p.stderr)


def bomb():
    """Entries that share one body (overlapping quotes): refused, nothing decoded."""
    body = archive([("x", bytes(1 << 20))])
    with open(body, "rb") as f:
        data = f.read()
    at = entry_at(data, 0)
    end = data.index(b"PK\5\6")
    entry = data[at:end]
    many = entry * 1000
    bad = os.path.join(scratch("bomb"), "bomb.zip")
    with open(bad, "wb") as f:
        f.write(data[:at] + many + struct.pack(
            "<IHHHHIIH", 0x06054b50, 0, 0, 1000, 1000, len(many), at, 0))
    p = tensorfs("cat", bad + ":x")
    check(p.returncode and "overlap" in p.stderr, p.stderr[:300])


def flipped(tries=60):
    """Any byte: the commands end with a status, and never with other bytes."""
    members = [("d/%d" % i, arc.text(2000, i)) for i in range(8)]
    image = archive(members)
    with open(image, "rb") as f:
        data = f.read()
    r = random.Random(12)
    bad = os.path.join(scratch("flip"), "flip.zip")
    for _ in range(lib.rounds(tries)):
        broken = bytearray(data)
        at = r.choice((r.randrange(len(data)),
                       r.randrange(data.index(b"PK\1\2"), len(data))))
        broken[at] ^= 1 << r.randrange(8)
        with open(bad, "wb") as f:
            f.write(broken)
        p = tensorfs("verify", bad)
        exits(p, (0, 1, 3), "verify, byte %d" % at)
        p = tensorfs("cat", bad + ":d/3", text=False)
        check(p.returncode or p.stdout == members[3][1],
              "other bytes with byte %d changed" % at)


def encrypted_directory():
    """PKWARE's encryption of the directory (APPNOTE 7.3): each sign by itself."""
    image = archive([("a", b"words"), ("b", b"more")])
    with open(image, "rb") as f:
        data = f.read()
    end = data.index(b"PK\5\6")
    size, at = struct.unpack_from("<II", data, end + 12)
    noise = bytes(range(3, 3 + size))
    masked = bytearray(data[:at] + noise + data[end:])
    masked[6:8] = struct.pack("<H", 0x2041)
    extra = b"PK\6\x08" + struct.pack("<I", 9) + noise[8:]
    version_2 = struct.pack("<IQHHIIQQQQ", 0x06064b50, 72, 62, 62, 0, 0, 2, 2, size,
                            at) + struct.pack("<HQQHHHHH", 8, size, size, 0x6610, 256, 1, 0, 0)
    locator = struct.pack("<IIQI", 0x07064b50, 0, at + size, 1)
    bad = os.path.join(scratch("pk"), "pk.zip")
    ends = version_2 + locator + data[end:]
    for name, made in (("masked", masked), ("record", data[:at] + extra + data[end:]),
                       ("version 2", data[:at] + noise + ends)):
        with open(bad, "wb") as f:
            f.write(made)
        p = exits(tensorfs("info", bad), 3, name)
        check("encrypted" in p.stderr and "damaged" not in p.stderr,
              name + ": " + p.stderr)
    # One that is only damaged is called so.
    with open(bad, "wb") as f:
        f.write(data[:at] + noise + data[end:])
    check("damaged" in exits(tensorfs("info", bad), 3, "damaged").stderr, "damaged")


def bad_input():
    one("bad:encrypted", encrypted_directory)
    one("bad:unreadable", unreadable)
    one("bad:members", damaged_members)
    one("bad:stored", stored_damage)
    one("bad:large", large_damage)
    one("bad:truncated", truncated)
    one("bad:bomb", bomb)
    one("bad:flipped", flipped)


if __name__ == "__main__":
    arc.main((writers, zipfile_cases, bad_input))
