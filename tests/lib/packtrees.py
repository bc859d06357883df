# SPDX-License-Identifier: BSD-2-Clause
"""Random directories with everything that a directory can have, small; and two of
them compared: what is there, and where it has holes."""
import os
import random
import stat

import lib
import tree
from checks import Failure

COMBINED = "e\u0301".encode()
ODD = [b"a b", b"new\nline", b"tab\t", b"back\\slash", b"quo\"te'", b"-dash",
       b"--help", b"*?[x]", b"\xff\xfe", b"Gr\xfc\xdfe", "Grüße".encode(),
       "日本語".encode(), COMBINED, b"...", b".hidden", b" lead",
       b"trail ", b"\x01\x1b\x7f", b"per%2Fcent", b"colon:", b"comma,", b"A",
       b"a", b"a.b", b"a-b", b"GNUSparseFile.0", b"PaxHeaders.1", b"~",
       "\U0001f600".encode(), b"\xed\xa0\x80", b"#x", b"@LongLink", b"=eq="]
WORDS = [b"the quick ", b"brown fox ", b"jumps over ", b"0123456789", b"\n",
         b"\0" * 40]


def has_xattrs(top):
    try:
        os.setxattr(top, "user.probe", b"x")
        os.removexattr(top, "user.probe")
        return True
    except OSError:
        return False


def lists_xattrs(top):
    try:
        os.listxattr(top)
        return True
    except OSError:
        return False


class Maker:
    """A random tree at `top`.  `tar`: what tars and all who read them can say: times
    before 1970 are whole seconds, and names of extended attributes are plain; else:
    what squashfs can, times in seconds that 32 bits hold.  `bsd`: no characters that
    bsdtar composes."""

    def __init__(self, top, seed, tar=True, large=False, xattrs=True, bsd=False):
        self.r = random.Random(seed)
        self.top, self.tar, self.xattrs = os.fsencode(top), tar, xattrs
        self.large = large
        self.odd = [n for n in ODD if not bsd or n != COMBINED]
        self.attrs = [b"a", b"text", b"n" * 100, b"u"] + \
            ([] if tar else ["ü".encode(), b"x=y"])
        self.dirs, self.files, self.made = [b""], [], []

    def path(self, rel):
        return os.path.join(self.top, rel)

    def name(self):
        r = self.r
        k = r.random()
        if k < 0.35:
            return r.choice(self.odd)
        if k < 0.45:
            return bytes([r.choice(b"abcxyz")]) * r.choice(
                (99, 100, 101, 155, 156, 200, 254, 255))
        if k < 0.50:
            return "ü".encode() * r.choice((50, 51, 100, 127))
        if k < 0.60:
            return bytes(r.choice(range(1, 256)) for _ in range(
                r.randrange(1, 30))).replace(b"/", b"_")
        return b"%s%d.%s" % (r.choice((b"f", b"img", b"x-")), r.randrange(1000),
                             r.choice((b"jpg", b"txt", b"npy", b"seg.png")))

    def fresh(self):
        """A path that is not there yet, in one of the directories."""
        for _ in range(50):
            d = self.r.choice(self.dirs)
            name = self.name()
            rel = os.path.join(d, name) if d else name
            if name not in (b".", b"..") and len(rel) < 3500 and \
                    not os.path.lexists(self.path(rel)):
                return rel
        return b"n%d" % len(self.made)

    def content(self):
        r = self.r
        n = r.choice((0, 0, 1, 2, 511, 512, 513, 1024, r.randrange(5000),
                      r.randrange(5000), r.randrange(60000), 131072, 131073))
        if self.large and r.random() < 0.3:
            n = r.choice((1 << 20, (1 << 20) + 1, r.randrange(4 << 20),
                          (4 << 20) + 513))
        k = r.random()
        if k < 0.4:
            return r.randbytes(n)
        if k < 0.5:
            return bytes(n)
        return (r.choice(WORDS) * 3 + r.choice(WORDS)) * (n // 40 + 1)

    def file(self, rel):
        r = self.r
        with open(self.path(rel), "wb") as f:
            if r.random() < 0.15:
                size = r.choice((4096, 65536, 100001, 1 << 19))
                if self.large:
                    size *= 5
                f.truncate(size)
                for _ in range(r.randrange(4)):
                    f.seek(r.randrange(size) // r.choice((1, 4096)) * 4096
                           % size)
                    f.write(r.randbytes(r.choice((1, 700, 5000))))
            else:
                f.write(self.content())
        self.files.append(rel)

    def another(self, rel):
        """One more name of something that is no directory."""
        old = self.r.choice([p for p in self.made if p not in self.dirs] or
                            [None])
        if old is None:
            self.file(rel)
            return
        os.link(self.path(old), self.path(rel), follow_symlinks=False)

    def symlink(self, rel):
        r = self.r
        os.symlink(r.choice((b"nowhere", b"../x", b"/etc/hostname", b".",
                             b"\xff\xfe", b"a\nb", b"t" * 100, b"t" * 101,
                             b"u/" * r.randrange(1, 1500) + b"u",
                             "Grüße".encode(), r.choice(self.made or [b"x"])
                             [:4000])), self.path(rel))

    def special(self, rel):
        r = self.r
        if lib.ROOT and r.random() < 0.4:
            try:
                os.mknod(self.path(rel), r.choice((stat.S_IFCHR, stat.S_IFBLK))
                         | 0o600, os.makedev(r.randrange(300),
                                             r.randrange(70000)))
                return
            except PermissionError:
                pass
        os.mkfifo(self.path(rel))

    def one(self):
        rel, k = self.fresh(), self.r.random()
        if k < 0.20:
            os.mkdir(self.path(rel))
            self.dirs.append(rel)
        elif k < 0.68:
            self.file(rel)
        elif k < 0.80:
            self.another(rel)
        elif k < 0.93:
            self.symlink(rel)
        else:
            self.special(rel)
        self.made.append(rel)

    def attributes(self, rel):
        r, p = self.r, self.path(rel)
        st = os.lstat(p)
        is_dir, is_link = stat.S_ISDIR(st.st_mode), stat.S_ISLNK(st.st_mode)
        if self.xattrs and (is_dir or stat.S_ISREG(st.st_mode)) and \
                r.random() < 0.2:
            for _ in range(r.randrange(1, 4)):
                os.setxattr(p, b"user." + r.choice(self.attrs),
                            r.randbytes(r.choice((0, 1, 20, 255, 1000))))
        if lib.ROOT and r.random() < 0.5:
            os.lchown(p, r.choice((0, 1, 1000, 65534, 2**18, 2**21, 2**31)),
                      r.choice((0, 7, 1000, 65534, 2**21 + 3)))
        if not is_link:
            mode = r.choice((0o644, 0o600, 0o755, r.randrange(0o10000),
                             r.randrange(0o10000)))
            if is_dir or not lib.ROOT:
                mode |= 0o700 if is_dir else 0o400
            os.chmod(p, mode)
        if not self.tar:
            t = r.randrange(1, 2**32) * 10**9
        else:
            t = r.choice((r.randrange(2**33 * 10**9), r.randrange(2**31) *
                          10**9, 0, -r.randrange(2**31) * 10**9,
                          r.randrange(2 * 10**18)))
        os.utime(p, ns=(0, t), follow_symlinks=False)

    def make(self):
        os.makedirs(self.top)
        for _ in range(self.r.choice((0, 1, 3, 8, 12, 16, 25))):
            self.one()
        for rel in sorted(self.made, reverse=True):
            self.attributes(rel)
        os.chmod(self.top, 0o755)
        os.utime(self.top, ns=(0, 1600000000 * 10**9))
        return os.fsdecode(self.top)


def random_tree(top, seed, **kw):
    return Maker(top, seed, **kw).make()


def same(got_root, want_root, what, unit=1, holes=False, root=False,
         owner=lib.ROOT, xattrs=("user.",)):
    """Everything of want_root is at got_root, and nothing else.  unit: of times,
    in ns.  holes: what was a hole is one."""
    a, b = os.fsencode(want_root), os.fsencode(got_root)
    want, got = tree.scan(a, xattrs), tree.scan(b, xattrs)
    d = tree.Differences(what)
    for p in sorted(set(want) ^ set(got)):
        d.add(p, "path", *(("it", "nothing") if p in want else
                           ("nothing", "%o" % got[p].kind)))
    wg, gg = tree.groups(want), tree.groups(got)
    for p in sorted(set(want) & set(got)):
        if p == b"." and not root:
            continue
        compare(d, p, want[p], got[p], unit, holes and
                all(map(may_have_holes, wg.get(p, ()))), owner)
        if wg.get(p) != gg.get(p):
            d.add(p, "names of the inode", sorted(wg[p]), sorted(gg[p]))
        if want[p].kind == stat.S_IFREG == got[p].kind:
            content(d, p, a, b)
    d.done()
    return len(want)


def may_have_holes(p):
    """libarchive loses long names that are not UTF-8 with them."""
    try:
        p.decode()
        return True
    except UnicodeDecodeError:
        return len(p) <= 100


def compare(d, p, w, g, unit, holes, owner):
    for f in ("kind", "size", "rdev", "target", "xattrs"):
        if getattr(w, f) != getattr(g, f):
            d.add(p, f, getattr(w, f), getattr(g, f))
    if w.mode != g.mode and w.kind != stat.S_IFLNK:
        d.add(p, "mode", "%o" % w.mode, "%o" % g.mode)
    if owner and (w.uid, w.gid) != (g.uid, g.gid):
        d.add(p, "owner", (w.uid, w.gid), (g.uid, g.gid))
    if unit and w.mtime // unit != g.mtime // unit:
        d.add(p, "mtime", w.mtime, g.mtime)
    if holes and w.blocks * 512 < w.size and \
            g.blocks * 512 > w.blocks * 512 + 65536:
        d.add(p, "blocks", w.blocks, g.blocks)


def content(d, p, a, b):
    try:
        tree.same_content(os.path.join(a, p), os.path.join(b, p), p, 0)
    except (Failure, OSError) as e:
        d.add(p, "content", "the same", str(e))
