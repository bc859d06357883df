# SPDX-License-Identifier: BSD-2-Clause
"""Two directory trees compared in everything that stat, readdir, readlink,
getxattr and read can tell.

All paths are bytes, relative to the root, which is b"." itself.
"""
import collections
import concurrent.futures
import contextlib
import ctypes
import errno
import os
import random
import stat

import lib
from checks import Failure, check, short

rng = random.Random(20)
LARGE = 64 << 20  # of files beyond this only parts are compared

Entry = collections.namedtuple(
    "Entry", "kind mode uid gid nlink ino mtime size blocks rdev target "
    "xattrs")


class _Dirent(ctypes.Structure):
    _fields_ = [("ino", ctypes.c_uint64), ("off", ctypes.c_int64),
                ("reclen", ctypes.c_uint16), ("type", ctypes.c_uint8),
                ("name", ctypes.c_char * 256)]


_libc = ctypes.CDLL(None, use_errno=True)
_libc.opendir.restype = ctypes.c_void_p
_libc.readdir64.restype = ctypes.POINTER(_Dirent)
_libc.readdir64.argtypes = _libc.closedir.argtypes = [ctypes.c_void_p]
D_TYPES = {1: stat.S_IFIFO, 2: stat.S_IFCHR, 4: stat.S_IFDIR, 6: stat.S_IFBLK,
           8: stat.S_IFREG, 10: stat.S_IFLNK, 12: stat.S_IFSOCK}


def dirents(path):
    """[(name, d_type as S_IFMT bits, d_ino)] as the kernel gives them."""
    d = _libc.opendir(os.fsencode(path))
    if not d:
        raise OSError(ctypes.get_errno(), "opendir", os.fsdecode(path))
    out = []
    try:
        while True:
            ctypes.set_errno(0)
            e = _libc.readdir64(d)
            if not e:
                if ctypes.get_errno():
                    raise OSError(ctypes.get_errno(), "readdir",
                                  os.fsdecode(path))
                break
            name = e.contents.name
            if name not in (b".", b".."):
                out.append((name, D_TYPES.get(e.contents.type, 0),
                            e.contents.ino))
    finally:
        _libc.closedir(d)
    return out


def xattrs_of(path, wanted):
    """Attributes whose names begin with one of `wanted`; ours are not data."""
    if not wanted:
        return {}
    try:
        names = os.listxattr(path, follow_symlinks=False)
    except OSError as e:
        if e.errno != errno.ENOTSUP:
            raise
        return {}
    return {k: os.getxattr(path, k, follow_symlinks=False)
            for k in names
            if k.startswith(tuple(wanted)) and
            not k.startswith("user.tensorfs.")}


def entry(path, xattrs=()):
    st = os.lstat(path)
    kind = stat.S_IFMT(st.st_mode)
    return Entry(kind, stat.S_IMODE(st.st_mode), st.st_uid, st.st_gid,
                 st.st_nlink, st.st_ino, st.st_mtime_ns,
                 st.st_size if kind == stat.S_IFREG else 0, st.st_blocks,
                 st.st_rdev if kind in (stat.S_IFCHR, stat.S_IFBLK) else 0,
                 os.readlink(path) if kind == stat.S_IFLNK else None,
                 xattrs_of(path, xattrs))


@contextlib.contextmanager
def reach(root, rel):
    """A path of root/rel (no symlink) that is short enough for the kernel."""
    if len(rel) < 3000:
        yield os.path.join(root, rel) if rel else root
        return
    fd = os.open(root, os.O_PATH | os.O_DIRECTORY)
    try:
        parts = rel.split(b"/")
        for part in parts[:-1]:
            below = os.open(part, os.O_PATH | os.O_DIRECTORY, dir_fd=fd)
            os.close(fd)
            fd = below
        yield b"/proc/self/fd/%d/%s" % (fd, parts[-1])
    finally:
        os.close(fd)


def scan(root, xattrs=(), listing=None):
    """{path: Entry} of everything below root.  `listing`(dir, dirents) may
    object to how a directory is listed."""
    root = os.fsencode(root)
    out = {b".": entry(root, xattrs)}
    todo = [b""]
    while todo:
        rel = todo.pop()
        with reach(root, rel) as d:
            names = dirents(d)
            if listing:
                listing(rel or b".", names)
            for name, _, _ in names:
                p = os.path.join(rel, name) if rel else name
                e = out[p] = entry(os.path.join(d, name), xattrs)
                if e.kind == stat.S_IFDIR:
                    todo.append(p)
    return out


def listing_of(root):
    """A `listing` for scan: sorted, once each, d_type and d_ino right."""
    root = os.fsencode(root)

    def f(rel, names):
        only = [n for n, _, _ in names]
        if only != sorted(only):
            at = next(i for i in range(1, len(only))
                      if only[i - 1] > only[i])
            raise Failure("%s is not listed in order: %s before %s" % (
                show(rel), show(only[at - 1]), show(only[at])))
        check(len(set(only)) == len(only), "%s lists a name twice" %
              show(rel))
        for n, kind, ino in names:
            st = os.lstat(os.path.join(root, rel, n))
            if kind != stat.S_IFMT(st.st_mode):
                raise Failure("d_type of %s in %s says %o, stat %o" % (
                    show(n), show(rel), kind, st.st_mode))
            if ino != st.st_ino:
                raise Failure("d_ino of %s in %s is %d, st_ino %d" % (
                    show(n), show(rel), ino, st.st_ino))
    return f


def show(path):
    return short(os.fsdecode(path).encode("unicode_escape",
                                          "backslashreplace").decode())


def groups(entries):
    """{path: all names of its inode}, of what is no directory."""
    by = collections.defaultdict(set)
    for p, e in entries.items():
        if e.kind != stat.S_IFDIR:
            by[e.ino].add(p)
    return {p: frozenset(s) for s in by.values() for p in s}


class Differences:
    def __init__(self, what):
        self.what, self.found, self.paths = what, [], set()

    def add(self, path, field, want, got):
        self.paths.add(path)
        self.found.append("%s: %s: expected %s, got %s" % (
            show(path), field, short(want), short(got)))

    def done(self):
        if self.found:
            raise Failure("%s%d differences in %d names: %s" % (
                self.what and self.what + ": ", len(self.found),
                len(self.paths), "; ".join(self.found[:5])))


def _attributes(d, want, got, o):
    wg, gg = groups(want), groups(got)
    for p in sorted(set(want) & set(got)):
        w, g = want[p], got[p]
        if p == b"." and not o["root"]:
            continue
        for f in ("kind", "size", "rdev", "target", "xattrs"):
            if getattr(w, f) != getattr(g, f):
                d.add(p, f, getattr(w, f), getattr(g, f))
        implied = p in o["implied"]
        if w.mode != g.mode and not implied and w.kind != stat.S_IFLNK:
            d.add(p, "mode", "%o" % w.mode, "%o" % g.mode)
        if o["owner"] and not implied and (w.uid, w.gid) != (g.uid, g.gid):
            d.add(p, "owner", (w.uid, w.gid), (g.uid, g.gid))
        if o["mtime"] and not implied:
            unit = o["mtime"]
            if w.mtime // unit != g.mtime // unit:
                d.add(p, "mtime", w.mtime, g.mtime)
        if w.kind == stat.S_IFDIR:
            if g.nlink not in (1, w.nlink):     # 1: not counted
                d.add(p, "nlink of a directory", w.nlink, g.nlink)
        else:
            if wg[p] != gg[p]:
                d.add(p, "names of the inode", sorted(wg[p]), sorted(gg[p]))
            if g.nlink != len(gg[p]):
                d.add(p, "nlink", len(gg[p]), g.nlink)


def _paths(d, want, got):
    for p in sorted(set(want) - set(got)):
        d.add(p, "path", "it to be there", "nothing")
    for p in sorted(set(got) - set(want)):
        d.add(p, "path", "nothing", "%o" % (got[p].kind | got[p].mode))


def _pread(fd, n, off):
    """As far as the file goes."""
    parts = []
    while n:
        b = os.pread(fd, n, off)
        if not b:
            break
        parts.append(b)
        n, off = n - len(b), off + len(b)
    return b"".join(parts)


def _ranges(size, random_reads):
    """What to read: all of it, or some of it; then at random."""
    if size <= LARGE:
        step = 1 << 20
        out = [(o, step) for o in range(0, size + 1, step)]
    else:
        out = [(0, 1 << 16), (size - 70000, 1 << 17)]
        out += [(rng.randrange(size), 1 << 16) for _ in range(32)]
    for _ in range(random_reads if size else 0):
        out.append((rng.randrange(size + 10),
                    rng.choice((1, 100, 4096, 4097, 70000, 300000))))
    return out


def same_content(want, got, path, random_reads=3):
    """One file, byte for byte; a Failure says where.  True: not all zeros."""
    data = False
    a = os.open(want, os.O_RDONLY)
    try:
        b = os.open(got, os.O_RDONLY)
        try:
            for off, n in _ranges(os.fstat(a).st_size, random_reads):
                w = _pread(a, n, off)
                g = _pread(b, n, off)
                data = data or w.strip(b"\0") != b""
                if w != g:
                    _differ(path, off, w, g)
        finally:
            os.close(b)
    finally:
        os.close(a)
    return data


def _differ(path, off, w, g):
    if len(w) != len(g):
        raise Failure("%s: %d bytes at %d, expected %d" % (
            show(path), len(g), off, len(w)))
    at = next(i for i in range(len(w)) if w[i] != g[i])
    raise Failure("%s: wrong bytes, the first at %d: expected %s, got %s" % (
        show(path), off + at, w[at:at + 16].hex(), g[at:at + 16].hex()))


def _contents(d, want, got, a, b, o):
    for p in sorted(set(want) & set(got)):
        if want[p].kind != stat.S_IFREG or got[p].kind != stat.S_IFREG:
            continue
        try:
            data = same_content(os.path.join(a, p), os.path.join(b, p), p,
                                o["random_reads"])
        except Failure as e:
            d.add(p, "content", "the same", str(e))
        except OSError as e:
            d.add(p, "content", "the same", "%s" % e)
        else:
            if data and not got[p].blocks:
                d.add(p, "st_blocks", "> 0", 0)


def same(got_root, want_root, what="", mtime=1, owner=None, xattrs=("user.",),
         root=True, implied=(), ignore=(), random_reads=3, content=True,
         ordered=True):
    """The tree at got_root (a mount) is the one at want_root.

    mtime: unit of comparison in ns, 0: not at all.  owner: compare uid and gid
    (by default as root).  implied: directories with no entry of their own,
    whose attributes are nobody's.  ignore: paths to leave out on both sides.
    ordered: got_root lists names in order.
    """
    o = {"mtime": mtime, "root": root, "random_reads": random_reads,
         "owner": os.geteuid() == 0 if owner is None else owner,
         "implied": {os.fsencode(p) for p in implied}}
    a, b = os.fsencode(want_root), os.fsencode(got_root)
    want = scan(a, xattrs)
    got = scan(b, xattrs, listing_of(b) if ordered else None)
    for p in ignore:
        want.pop(os.fsencode(p), None)
        got.pop(os.fsencode(p), None)
    d = Differences(what)
    _paths(d, want, got)
    _attributes(d, want, got, o)
    if content:
        _contents(d, want, got, a, b, o)
    d.done()
    return len(want)


def lookups(got_root, want_root, n=200):
    """Names found by their full path, without a listing before; and names that
    are not there are not, twice."""
    a, b = os.fsencode(want_root), os.fsencode(got_root)
    paths = sorted(scan(a))
    rng.shuffle(paths)
    for p in paths[:n]:
        check(os.path.lexists(os.path.join(b, p)), "%s is not found by its "
              "name" % show(p))
        for missing in (p + b"~", os.path.join(os.path.dirname(p), b"no")):
            for _ in range(2):
                check(not os.path.lexists(os.path.join(b, missing)),
                      "%s is found" % show(missing))


# Reads of each thread.  Each one may decode megabytes, and under a sanitizer
# everything takes ten times as long.
READS = 60 if lib.full() and not os.environ.get("TENSORFS_SANITIZED") else 10


def read_together(got_root, want_root, threads=4, reads=READS):
    """Random ranges of random files from several threads at once."""
    a, b = os.fsencode(want_root), os.fsencode(got_root)
    files = [(p, e.size) for p, e in sorted(scan(a).items())
             if e.kind == stat.S_IFREG and 0 < e.size <= LARGE]
    check(files, "no file to read")

    def worker(seed):
        r = random.Random(seed)
        for _ in range(reads):
            p, size = r.choice(files)
            off = r.randrange(size)
            n = r.choice((1, 512, 5000, 1 << 17, size))
            fds = [os.open(os.path.join(x, p), os.O_RDONLY) for x in (a, b)]
            try:
                w, g = (_pread(fd, n, off) for fd in fds)
            finally:
                for fd in fds:
                    os.close(fd)
            if w != g:
                _differ(p, off, w, g)

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        for f in [pool.submit(worker, s) for s in range(threads)]:
            f.result()


def digest(root):
    """{path: (kind, size, link target, content or errno)}: what an archive
    must at least agree on; attributes are left out."""
    root = os.fsencode(root)
    out = {}
    for p, e in scan(root).items():
        if e.kind != stat.S_IFREG:
            out[p] = (e.kind, 0, e.target, None)
            continue
        try:
            with reach(root, p) as q, open(q, "rb", buffering=0) as f:
                text = f.readall() if e.size <= LARGE else \
                    f.read(1 << 16) + _pread(f.fileno(), 1 << 16,
                                             e.size - (1 << 16))
        except OSError as x:
            text = x.errno
        out[p] = (e.kind, e.size, None, text)
    return out
