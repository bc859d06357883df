#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""tar: what is mounted is what `tar x` leaves, whoever wrote the archive."""
import errno
import io
import os
import random
import shutil
import stat
import sys
import tarfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import arc
import lib
import tree
from arc import bsd_extract, compare, gnu_extract, odd_tree, one, scratch, sh, tries
from checks import Failure, check, equal, note, pread, read, same_bytes
from lib import Mount



def path_in(name, hint="tar"):
    return os.path.join(scratch(hint), name)


# --- GNU tar ------------------------------------------------------------------

def make_gnu(src, *opts, members=(".",), ok=(0,)):
    t = path_in("a.tar")
    sh("tar", "-c", "--numeric-owner", *opts, "-f", t, "-C", src, *members,
       ok=ok)
    return t


def source_for(fmt):
    """What the format can say; v7 leaves out (exit 2) what it cannot."""
    if fmt == "v7":
        return odd_tree(long_names=False, far=False, special=False,
                        xattrs=False)
    if fmt == "ustar":
        return odd_tree(far=False)
    return odd_tree()


def gnu_format(fmt):
    t = make_gnu(source_for(fmt), "--format=" + fmt, ok=(0, 1, 2))
    compare(t, gnu_extract(t), twice=lib.full() or fmt in ("gnu", "posix"))


def gnu_members():
    """Names without "./": the root has no entry."""
    src = odd_tree()
    t = make_gnu(src, "--format=gnu", members=sorted(os.listdir(src)))
    compare(t, gnu_extract(t), root=False)


def gnu_files_only():
    """No entry of any directory: they are there all the same."""
    src = arc.data_tree()
    names = [os.path.join(d, f) for d in sorted(os.listdir(src))
             for f in sorted(os.listdir(os.path.join(src, d)))]
    t = make_gnu(src, "--format=ustar", members=names)
    compare(t, gnu_extract(t), root=False, implied=os.listdir(src))


def gnu_sparse(fmt, version):
    opts = ["--format=" + fmt, "--sparse"]
    if version:
        opts.append("--sparse-version=" + version)
    t = make_gnu(odd_tree(), *opts)
    check(os.path.getsize(t) < (9 << 20), "tar did not store holes")
    compare(t, gnu_extract(t), twice=lib.full() or fmt == "gnu")


def gnu_large_sparse(fmt, version):
    """Larger than a ustar size field can say, and a member behind it."""
    d = scratch("large")
    with open(os.path.join(d, "large"), "wb") as f:
        f.truncate((9 << 30) + 77)
        for off in (0, 4 << 30, (9 << 30) + 70):
            f.seek(off)
            f.write(b"at %4d" % (off >> 20))
    with open(os.path.join(d, "z"), "wb") as f:
        f.write(b"behind it")
    opts = ["--format=" + fmt, "--sparse"]
    t = make_gnu(d, *opts, *(["--sparse-version=" + version] if version
                             else []), members=("large", "z"))
    with Mount(t) as m:
        st = os.stat(m / "large")
        equal(st.st_size, (9 << 30) + 77, "size")
        for off in (0, 4 << 30, (4 << 30) - 5000, (9 << 30) + 60):
            equal(pread(m / "large", 9000, off),
                  pread(os.path.join(d, "large"), 9000, off),
                  "bytes at %d" % off)
        same_bytes(read(m / "z"), b"behind it", "the next member")


def gnu_xattrs():
    t = make_gnu(odd_tree(), "--format=posix", "--xattrs",
                 "--xattrs-include=*")
    want = gnu_extract(t)
    x = tree.entry(os.path.join(want, "xattrs/file"), ("user.",)).xattrs
    check(len(x) >= 4, "tar did not extract the attributes: %s" % x)
    compare(t, want)


def gnu_capability():
    """security.capability, which only root may set."""
    if not lib.ROOT:
        return note("not root: no capabilities")
    d = scratch("cap")
    p = os.path.join(d, "ping")
    with open(p, "wb") as f:
        f.write(b"#!")
    cap = bytes.fromhex("0100000200200000000000000000000000000000")
    try:
        os.setxattr(p, "security.capability", cap)
    except OSError as e:
        return note("no security.capability here: %s" % e)
    t = make_gnu(d, "--format=posix", "--xattrs", "--xattrs-include=*")
    with Mount(t) as m:
        equal(os.getxattr(m / "ping", "security.capability"), cap,
              "security.capability")


def gnu_incremental():
    """-g: dump directories ('D' entries), level 0 and 1."""
    src, snar = scratch("inc"), path_in("snar")
    for n in ("keep", "gone", "d/x"):
        os.makedirs(os.path.dirname(os.path.join(src, n)), exist_ok=True)
        with open(os.path.join(src, n), "w") as f:
            f.write(n * 100)
    for level in (0, 1):
        t = make_gnu(src, "--format=gnu", "-g", snar)
        compare(t, gnu_extract(t))
        os.unlink(os.path.join(src, "gone")) if not level else None
        with open(os.path.join(src, "new"), "w") as f:
            f.write("new")


def gnu_transform():
    """Two trees under one name, prefixes, absolute names."""
    src = arc.data_tree()
    t = make_gnu(src, "--transform=s,^c[01],merged,", "--format=gnu",
                 members=("c0", "c1", "big"))
    compare(t, gnu_extract(t), root=False)
    t = path_in("p.tar")
    sh("tar", "-c", "-P", "--format=posix", "-f", t, src + "/c2",
       src + "/../" + os.path.basename(src) + "/c3", ok=(0,))
    with Mount(t) as m:
        tree.same(m / (src.lstrip("/") + "/c2"), src + "/c2")
        for top, dirs, names in os.walk(m.path):
            check(".." not in dirs + names, "'..' is listed in " + top)


def gnu_updated():
    """The last one wins: -r of a changed file, and of other kinds."""
    src = scratch("upd")
    f = os.path.join(src, "f")
    os.makedirs(os.path.join(src, "d/sub"))
    with open(f, "w") as h:
        h.write("first, and longer")
    t = make_gnu(src, "--format=gnu", members=("f", "d"))
    for change in ("content", "symlink", "fifo", "file again"):
        os.unlink(f)
        if change == "symlink":
            os.symlink("d", f)
        elif change == "fifo":
            os.mkfifo(f)
        else:
            with open(f, "w") as h:
                h.write(change)
        os.chmod(os.path.join(src, "d"), 0o711 if change == "fifo" else 0o755)
        sh("tar", "-r", "-f", t, "-C", src, "f", "d")
        compare(t, gnu_extract(t), root=False)


def gnu_concatenated():
    """tar -A, which joins; and cat, whose second part is behind zeros."""
    src = arc.data_tree()
    parts = [make_gnu(src, "--format=gnu", members=(m,)) for m in ("c0", "c1")]
    whole = path_in("whole.tar")
    shutil.copy(parts[0], whole)
    sh("tar", "-A", "-f", whole, parts[1])
    compare(whole, gnu_extract(whole), root=False)
    with open(whole, "wb") as f:
        for p in parts:
            f.write(read(p))
    compare(whole, gnu_extract(whole, "-i"), root=False)


def gnu_ends():
    """Without end blocks, with one, with garbage behind, of odd blocking."""
    src = arc.data_tree()
    t = make_gnu(src, "--format=ustar", "-b1", members=("c0",))
    whole = read(t)
    want = gnu_extract(t)
    body = whole[:len(whole) - 1024]
    check(whole.endswith(bytes(1024)), "tar -b1 ends with two blocks")
    for name, data in (("none", body), ("one", body + bytes(512)),
                       ("many", body + bytes(512 * 333)),
                       ("garbage", whole + b"garbage that is no tar" * 99),
                       ("odd", whole + bytes(100))):
        with open(t, "wb") as f:
            f.write(data)
        try:
            compare(t, want, root=False, twice=False)
        except Failure as e:
            raise Failure("%s: %s" % (name, e))


def gnu_empty():
    for name, data in (("blocks", bytes(1024)), ("record", bytes(10240))):
        t = path_in(name + ".tar")
        with open(t, "wb") as f:
            f.write(data)
        with Mount(t) as m:
            equal(os.listdir(m.path), [], "an empty archive (%s)" % name)


def gnu_label():
    t = make_gnu(arc.data_tree(), "--format=gnu", "-V", "a label",
                 members=("c0",))
    compare(t, gnu_extract(t), root=False)


def gnu():
    for fmt in ("v7", "oldgnu", "gnu", "ustar", "posix"):
        one("gnu:" + fmt, gnu_format, fmt)
    sparse = [("posix", v) for v in ("0.0", "0.1", "1.0")]
    for fmt, v in sparse + [("gnu", ""), ("oldgnu", "")]:
        one("gnu:sparse:" + fmt + v, gnu_sparse, fmt, v)
        one("gnu:sparse-9G:" + fmt + v, gnu_large_sparse, fmt, v)
    for f in (gnu_members, gnu_files_only, gnu_xattrs, gnu_capability,
              gnu_incremental, gnu_transform, gnu_updated, gnu_concatenated,
              gnu_ends, gnu_empty, gnu_label):
        one("gnu:" + f.__name__[4:].replace("_", "-"), f)


# --- bsdtar ---------------------------------------------------------------------

def bsd_format(fmt, *opts):
    """Some names are not UTF-8, which pax says in its own way; directories do
    not stand before what is in them.  Left out is what bsdtar writes in a way
    of its own: times before 1970 with a fraction, "=" in names of xattrs."""
    t = path_in("b.tar")
    sh("bsdtar", "-c", "--format=" + fmt, *opts, "--numeric-owner", "-f", t,
       "-C", source_for("v7" if fmt == "v7" else "ustar"), ".", ok=(0, 1))
    # bsdtar leaves the time of the root as it is, and one directory out.
    compare(t, bsd_extract(t, ok=(0, 1)), twice=lib.full() or fmt == "pax",
            root=False, ignore=["xattrs/equals"], implied=["prefix/" + "p" * 140])


def bsd_by_gnu():
    """What bsdtar wrote, as GNU tar understands it."""
    t = path_in("b.tar")
    sh("bsdtar", "-c", "--format=pax", "--no-xattrs", "--no-acls", "-f", t,
       "-C", arc.data_tree(), ".")
    # GNU tar forgets the times of directories whose members come late.
    compare(t, gnu_extract(t), mtime=0)


def bsd():
    for fmt in ("pax", "paxr", "ustar", "gnutar", "v7"):
        one("bsd:" + fmt, bsd_format, fmt)
    one("bsd:xattrs", bsd_format, "pax", "--xattrs")
    one("bsd:sparse", bsd_format, "pax", "--read-sparse")
    one("bsd:by-gnu", bsd_by_gnu)


# --- Python's tarfile -----------------------------------------------------------

PY_FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT,
              "pax": tarfile.PAX_FORMAT}


def py_write(fmt, infos, name="py.tar", **kw):
    t = path_in(name)
    with tarfile.open(t, "w", format=PY_FORMATS[fmt], errors="surrogateescape",
                      **kw) as tf:
        for ti, data in infos:
            tf.addfile(ti, io.BytesIO(data))
    return t


def info(name, data=b"", kind=tarfile.REGTYPE, **kw):
    ti = tarfile.TarInfo(name)
    ti.size, ti.type, ti.mtime = len(data), kind, 1000000000
    for k, v in kw.items():
        setattr(ti, k, v)
    return ti, data


def py_members(fmt):
    """As the members say, not as an extraction does: this needs no root."""
    large = fmt != "ustar"
    infos = [info("plain", b"x" * 1000, mode=0o640, uid=1000, gid=1001),
             info("suid", b"s", mode=0o4755, uid=0o7777777, gid=0),
             info("dir", kind=tarfile.DIRTYPE, mode=0o750, uid=5, gid=6),
             info("dir/" + "n" * (120 if large else 90), b"long"),
             info("link", kind=tarfile.SYMTYPE, linkname="../" * 20 + "x"),
             info("hard", kind=tarfile.LNKTYPE, linkname="plain"),
             info("fifo", kind=tarfile.FIFOTYPE, mode=0o600),
             info("chr", kind=tarfile.CHRTYPE, devmajor=1, devminor=3),
             info("blk", kind=tarfile.BLKTYPE, devmajor=259, devminor=77777),
             info("cont", b"contiguous", kind=tarfile.CONTTYPE)]
    if large:
        infos += [info("bigid", b"b", uid=2**31 + 5, gid=2**32 - 2),
                  info("before", b"e", mtime=-86400),
                  info("far", b"f", mtime=2**36)]
    if fmt == "pax":
        infos += [info("ns", b"n", mtime=1234567890.25),
                  info("own", b"o", pax_headers={"comment": "no matter",
                                                 "VENDOR.x": "y"}),
                  info("name", b"n", pax_headers={"path": "called/otherwise"}),
                  info("x", b"x", pax_headers={
                      "SCHILY.xattr.user.a": "value", "mtime": "5.5",
                      "uid": "77", "gname": "nobody"})]
    t = py_write(fmt, infos)
    for _ in range(2):
        with Mount(t) as m:
            _py_check(m, infos)
    return t


TYPES = {tarfile.DIRTYPE: stat.S_IFDIR, tarfile.SYMTYPE: stat.S_IFLNK,
         tarfile.FIFOTYPE: stat.S_IFIFO, tarfile.CHRTYPE: stat.S_IFCHR,
         tarfile.BLKTYPE: stat.S_IFBLK}


def _py_check(m, infos):
    for ti, data in infos:
        h = ti.pax_headers
        p = m / h.get("path", ti.name)
        st = os.lstat(p)
        equal(stat.S_IFMT(st.st_mode), TYPES.get(ti.type, stat.S_IFREG),
              "type of " + ti.name)
        if ti.type == tarfile.LNKTYPE:
            equal(st.st_ino, os.lstat(m / ti.linkname).st_ino, "inode")
            equal(st.st_nlink, 2, "nlink")
            continue
        if ti.type == tarfile.SYMTYPE:
            equal(os.readlink(p), ti.linkname, "target of " + ti.name)
        else:
            equal(stat.S_IMODE(st.st_mode), ti.mode, "mode of " + ti.name)
        equal((st.st_uid, st.st_gid), (int(h.get("uid", ti.uid)), ti.gid),
              "owner of " + ti.name)
        equal(st.st_mtime_ns, int(float(h.get("mtime", ti.mtime)) * 4) *
              250000000,
              "mtime of " + ti.name)
        if ti.type in (tarfile.CHRTYPE, tarfile.BLKTYPE):
            equal(st.st_rdev, os.makedev(ti.devmajor, ti.devminor),
                  "device of " + ti.name)
        if stat.S_ISREG(st.st_mode):
            same_bytes(read(p), data, ti.name)
        for k in h:
            if k.startswith("SCHILY.xattr."):
                equal(os.getxattr(p, k[13:]), h[k].encode(), k)


def py_global():
    """A global header holds for all that follow, unless they say otherwise."""
    t = py_write("pax", [info("a", b"a"), info("b", b"b", uid=1,
                         pax_headers={"uid": "4"})],
                 pax_headers={"gid": "4242", "uid": "4243"})
    with Mount(t) as m:
        st = os.stat(m / "a")
        equal((st.st_uid, st.st_gid), (4243, 4242), "owner of a")
        st = os.stat(m / "b")
        equal((st.st_uid, st.st_gid), (4, 4242), "owner of b")


def py_owner_options():
    """uid=, gid=, fmask=, dmask= change what is shown."""
    t = py_write("gnu", [info("d", kind=tarfile.DIRTYPE, mode=0o777, uid=9),
                         info("d/a", b"a", mode=0o777, uid=7, gid=8)])
    with Mount(t, opts=["-o", "uid=12,gid=34,fmask=027,dmask=077"]) as m:
        for rel, mode in (("d", 0o700), ("d/a", 0o750)):
            st = os.stat(m / rel)
            equal((st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode)),
                  (12, 34, mode), "uid, gid, mode of " + rel)


def py_tree(fmt):
    """The odd tree, added by tarfile, extracted by GNU tar."""
    t = path_in("py.tar")
    with tarfile.open(t, "w", format=PY_FORMATS[fmt],
                      errors="surrogateescape") as tf:
        tf.add(odd_tree(far=fmt != "ustar", long_names=fmt != "ustar"), ".")
    compare(t, gnu_extract(t), twice=lib.full(), mtime=1000 if fmt == "pax" else 1)


def py_stream():
    """w|: written to a pipe, other blocking."""
    t = path_in("s.tar")
    with open(t, "wb") as f, tarfile.open(fileobj=f, mode="w|",
                                          bufsize=512) as tf:
        tf.add(arc.data_tree(), "top")
    compare(t, gnu_extract(t), root=False)


def py_many():
    """Many members in one directory, in no order."""
    n = 20000 if lib.full() else 5000
    names = ["%08x" % (i * 2654435761 % 2**32) for i in range(n)]
    t = py_write("gnu", [info("d/" + n, n.encode()) for n in names])
    for _ in range(2):
        with Mount(t) as m:
            got = [n.decode() for n, _, _ in tree.dirents(m / "d")]
            equal(got, sorted(names), "names in order")
            for n in random.Random(3).sample(names, 300):
                same_bytes(read(m / ("d/" + n)), n.encode(), n)


def py():
    for fmt in PY_FORMATS:
        one("py:members:" + fmt, py_members, fmt)
        one("py:tree:" + fmt, py_tree, fmt)
    for f in (py_global, py_owner_options, py_stream, py_many):
        one("py:" + f.__name__[3:].replace("_", "-"), f)


# --- collections of odd archives --------------------------------------------------

def extraction(tool, archive):
    """(what `tool` leaves, whether it complained)."""
    d = scratch(tool[0])
    gnu = ["tar", "-x", "-p", "--numeric-owner", "--force-local", "-f"]
    argv = {"tar": gnu, "tar -i": gnu[:1] + ["-i"] + gnu[1:],
            "bsdtar": ["bsdtar", "-x", "-p", "-f"]}[tool]
    arc.need(argv[0])
    p = lib.run(*argv, archive, "-C", d)
    return tree.digest(d), p.returncode != 0


def against(want, got, complained):
    """Differences; a member that the tool complained about may be an error."""
    out = []
    for p in sorted(set(want) | set(got)):
        w, g = want.get(p), got.get(p)
        if w == g or p == b".":
            continue
        if complained and g and isinstance(g[3], int) and g[3] in (
                errno.EIO, errno.EBADMSG):
            continue
        out.append("%s: expected %s, got %s" % (
            tree.show(p), arc.short(w), arc.short(g)))
    return out


ORACLES = {"gnu": ("tar",), "bsd": ("bsdtar",), "both": ("tar", "bsdtar"),
           "either": ("tar", "bsdtar"), "gnu -i": ("tar -i",)}


def agrees(archive, oracle="either", damaged=False, expect=None, root=False,
           big=False):
    """With GNU tar or with bsdtar, as `oracle` says: names, types, sizes,
    contents, targets.  The other notes are explained in tar_cases.py."""
    if root and not lib.ROOT:
        return note("not root: no extraction to compare with")
    got = {b".": None}
    m = arc.refused_or_mounted(archive)
    if m:
        try:
            got = tree.digest(m.path)
            arc.alive(m)
            if damaged:
                check(m.stderr or m.stats_errors(), "nothing is said of the "
                      "damage")
        finally:
            m.__exit__(None, None, None)
    if oracle == "expect":
        return expected(expect, got)
    why = []
    for tool in ORACLES[oracle]:
        want, complained = extraction(tool, archive)
        diff = against(want, got, complained)
        if diff:
            why.append("%s: %d differences: %s" % (tool, len(diff),
                                                   "; ".join(diff[:2])))
        elif oracle != "both":
            return
    if why:
        raise Failure("%s%s" % ("" if m else "refused; ", " // ".join(why)))


def expected(expect, got):
    """What tar_cases.py says itself, where the tools are no help."""
    want = {}
    for p, v in expect.items():
        p = os.fsencode(p) if isinstance(p, str) else p
        want[p.strip(b"/")] = v
        while b"/" in p.strip(b"/"):
            p = os.path.dirname(p.strip(b"/"))
            want.setdefault(p, None)
    for p in sorted(set(want) | set(got)):
        if p == b".":
            continue
        check(p in got, "%s is missing" % tree.show(p))
        check(p in want, "%s is there" % tree.show(p))
        kind, size, target, content = got[p]
        shown = {stat.S_IFDIR: None, stat.S_IFLNK: "->" + os.fsdecode(
            target or b""), stat.S_IFREG: content}.get(kind, "dev")
        if isinstance(content, int):
            shown = "EIO" if content in (errno.EIO, errno.EBADMSG) else content
        w = want[p]
        if isinstance(w, bytes) and w.startswith(b"->") and kind == \
                stat.S_IFLNK:
            w = os.fsdecode(w)
        equal(shown, w, tree.show(p))


def testtar():
    """Python's own test archive, member by member."""
    p = "/usr/lib/python3.11/test/testtar.tar"
    if not os.path.exists(p):
        raise arc.Missing("libpython3.11-testsuite")
    t = path_in("testtar.tar")
    shutil.copy(p, t)
    agrees(t)
    with tarfile.open(t, encoding="iso8859-1", errors="surrogateescape") as tf:
        with Mount(t) as m:
            for ti in tf:
                if not ti.isreg():
                    continue
                name = os.fsencode(m.path) + b"/" + ti.name.encode(
                    "iso8859-1", "surrogateescape")
                if not os.path.exists(name):  # pax names are UTF-8
                    name = os.fsencode(m / ti.name)
                same_bytes(read(name), tf.extractfile(ti).read(), ti.name)


def recursion():
    """A pax record of length 0, which once made tarfile loop."""
    p = "/usr/lib/python3.11/test/recursion.tar"
    if not os.path.exists(p):
        raise arc.Missing("libpython3.11-testsuite")
    t = path_in("recursion.tar")
    shutil.copy(p, t)
    m = arc.refused_or_mounted(t)
    if m:
        try:
            tree.digest(m.path)
        finally:
            m.__exit__(None, None, None)


def corners():
    """Archives made by hand, each with one odd thing in it."""
    if not arc.asked("corner:"):
        return
    import tar_cases
    for name, path, notes in tar_cases.cases(scratch("corners")):
        one("corner:" + name, agrees, path, **notes)


def odd():
    one("odd:testtar", testtar)
    one("odd:recursion", recursion)


# --- damage -----------------------------------------------------------------------

def cut_archive():
    r = random.Random(4)
    infos = [info("a", r.randbytes(10000)), info("d", kind=tarfile.DIRTYPE),
             info("d/" + "l" * 150, r.randbytes(700)),
             info("d/b", r.randbytes(150000)), info("z", r.randbytes(3000))]
    t = py_write("gnu", infos)
    ends, at = {}, 0
    with tarfile.open(t) as tf:
        for ti in tf:
            ends[ti.name] = (ti.offset_data, ti.offset_data + ti.size)
    return t, {ti.name: d for ti, d in infos if ti.isreg()}, ends


def cut_at(whole, keep, contents, ends):
    t = path_in("cut.tar")
    with open(t, "wb") as f:
        f.write(whole[:keep])
    first = min(b for b, _ in ends.values())
    m = arc.refused_or_mounted(t)
    if m is None:
        check(keep < first, "refused, although the first header is there")
        return
    try:
        for name, data in contents.items():
            begin, end = ends[name]
            if end <= keep:
                same_bytes(read(m / name), data, name)
            elif begin <= keep and os.path.exists(m / name):
                _cut_member(m / name, data, keep - begin)
            else:
                check(keep < begin + 1 or not os.path.exists(m / name),
                      "%s is there" % name)
        arc.alive(m)
    finally:
        m.__exit__(None, None, None)


def _cut_member(path, data, there):
    """Its size is what the header says, its end an error; never short."""
    equal(os.stat(path).st_size, len(data), "size of a cut member")
    for off, n in ((0, 100), (max(there - 50, 0), 100), (len(data) - 10, 10),
                   (0, len(data))):
        try:
            got = pread(path, n, off)
        except OSError as e:
            equal(e.errno, errno.EIO, "errno of a cut member")
            check(off + n > max(there & ~0xfff, 0), "%d bytes at %d of a "
                  "member cut at %d are an error" % (n, off, there))
        else:
            same_bytes(got, data[off:off + n], "%d at %d of a member cut at "
                       "%d" % (n, off, there))
            check(off + n <= there, "bytes behind the end")


def truncated(part, parts):
    t, contents, ends = cut_archive()
    whole = read(t)
    cuts = sorted({b for e in ends.values() for x in e for b in (
        x - 512, x - 1, x, x + 1, x + 100)} | {1, 511, 512, 513, 1024} |
        {len(whole) // 2, 123456})
    for keep in [c for c in cuts if 0 < c < len(whole)][part::parts]:
        try:
            cut_at(whole, keep, contents, ends)
        except Failure as e:
            raise Failure("cut at %d: %s" % (keep, e))


def shrunk():
    """A source that shrinks while it is mounted: ESTALE, never short."""
    t, contents, ends = cut_archive()
    with Mount(t) as m:
        same_bytes(read(m / "a"), contents["a"], "a")
        os.stat(m / "z")
        with open(t, "r+b") as f:
            f.truncate(ends["d/b"][0] + 5000)
        for n in ("d/b", "z"):
            try:
                read(m / n)
                raise Failure("%s is read from a source that shrank" % n)
            except OSError as e:
                check(e.errno in (errno.ESTALE, errno.EIO), "%s: %s" % (n, e))
        arc.alive(m)


def flipped_headers(part):
    """One bit of a header: that member may go, never a wrong byte."""
    t, contents, ends = cut_archive()
    whole = read(t)
    r = random.Random(part)
    for k in range(tries(12)):
        begin = r.choice(sorted(ends.values()))[0] - 512
        at = begin + r.randrange(512)
        bad = bytearray(whole)
        bad[at] ^= 1 << r.randrange(8)
        f = path_in("flip.tar")
        with open(f, "wb") as h:
            h.write(bad)
        m = arc.refused_or_mounted(f)
        if not m:
            continue
        try:
            for name, (_, _, _, got) in ((p.decode("latin-1"), e) for p, e in
                                         tree.digest(m.path).items()):
                if isinstance(got, bytes) and name in contents:
                    same_bytes(got, contents[name], "%s with bit flipped at "
                               "%d" % (name, at))
        finally:
            m.__exit__(None, None, None)


def put(tf, name, data):
    tf.addfile(info(name, data)[0], io.BytesIO(data))


def long_names():
    """A name that cannot be shown costs its member alone: its data is passed over, even
    if it looks like headers."""
    b = io.BytesIO()
    with tarfile.open(fileobj=b, mode="w") as tf:
        put(tf, "inner", b"abc")
    data = b.getvalue()
    for kind in ("path", "linkpath"):
        f = path_in("long.tar")
        with tarfile.open(f, "w", format=tarfile.PAX_FORMAT) as tf:
            long = "x/" * 35000 + "y"
            i, _ = info(long if kind == "path" else "short", data)
            if kind == "linkpath":
                i.pax_headers = {"linkpath": long}
            tf.addfile(i, io.BytesIO(data))
            put(tf, "after", b"ok")
        with Mount(f) as m:
            equal(sorted(os.listdir(m.path)), ["after"], kind)
            equal(read(m / "after"), b"ok", "what follows")
        p = lib.tensorfs("verify", f)
        lib.exits(p, 0, "verify")
        check("1 not checked" in p.stdout and "all good" not in p.stdout, p.stdout)


def cut_sentence():
    """What is said of a member that ends early has the positions in the file."""
    f = path_in("cut.tar")
    with tarfile.open(f, "w") as tf:
        put(tf, "h", bytes(100000))
    os.truncate(f, 50000)
    p = lib.tensorfs("cat", f + ":h")
    lib.exits(p, 1, "cat")
    check("50000 bytes long, but its data extends to byte 100512" in p.stderr, p.stderr)
    # Nor is what lies behind it in the outer archive taken for its bytes.
    outer = path_in("outer.tar")
    with tarfile.open(outer, "w") as tf:
        tf.add(f, "cut.tar")
        put(tf, "b", b"b" * 200000)
    p = lib.tensorfs("cat", "--nested", outer + ":cut.tar/h")
    lib.exits(p, 1, "cat in an inner archive")
    check("lies beyond the end" in p.stderr and not p.stdout, p.stderr)


def no_checksums():
    """Bytes of a plain tar may change unnoticed: verify does not call them good."""
    t = path_in("plain.tar")
    with tarfile.open(t, "w") as tf:
        put(tf, "a", b"a" * 4000)
    with open(t, "r+b") as f:
        f.seek(1000)
        f.write(b"b")
    p = lib.tensorfs("verify", t)
    lib.exits(p, 0, "verify")
    check("good" not in p.stdout and "without checksums" in p.stdout, p.stdout)
    sh("gzip", t)
    p = lib.tensorfs("verify", t + ".gz")
    check("all good" in p.stdout, p.stdout)


def damage():
    # The standard tier has every third of the places where an archive is cut.
    parts = 4 if lib.full() else 12
    one("damage:long-names", long_names)
    one("damage:cut-sentence", cut_sentence)
    one("damage:no-checksums", no_checksums)
    for i in range(4):
        one("damage:truncated:%d" % i, truncated, i, parts)
    for i in range(3):
        one("damage:flipped:%d" % i, flipped_headers, i)
    one("damage:shrunk", shrunk)


# --- names of archives --------------------------------------------------------------

NAMES = ["a b.tar", "a,b.tar", "new\nline.tar", "back\\slash.tar", "a:b.tar",
         "quo'te\".tar", "#not-a-good-name! Ör, is it?.tar", "no suffix",
         "wrong.zip", "%s%n.tar", "\udcff\udcfe.tar", ".tar", "x" * 251 + ".tar"]


def archive_name(name, opts=()):
    src = arc.data_tree()
    t = os.path.join(scratch("name"), name)
    sh("tar", "-c", "--force-local", "-f", os.fsencode(t), "-C", src, "c0")
    with Mount(t, opts=opts) as m:
        tree.same(m / "c0", src + "/c0")
    if ":" not in name and "\n" not in name:
        p = lib.exits(lib.tensorfs("ls", t), 0, "ls")
        equal(p.stdout.strip().rstrip("/"), "c0", "ls")


def leading_dash():
    """./-x.tar, and -x.tar after --."""
    src, d, mnt = arc.data_tree(), scratch("dash"), scratch("mnt")
    sh("tar", "-c", "-f", os.path.join(d, "-x.tar"), "-C", src, "c0")
    for argv in (["./-x.tar", mnt], ["--", "-x.tar", mnt]):
        p = lib.run("sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", d,
                    lib.TENSORFS, "mount", *argv)
        try:
            lib.exits(p, 0, "mount " + argv[0])
            tree.same(os.path.join(mnt, "c0"), src + "/c0")
        finally:
            lib.tensorfs("umount", mnt)
            lib.force_unmount(mnt)


def names():
    for n in NAMES:
        one("name:" + tree.show(n[:20]), archive_name, n)
    one("name:-x.tar", leading_dash)


if __name__ == "__main__":
    arc.main((gnu, bsd, py, odd, corners, damage, names))
