# SPDX-License-Identifier: BSD-2-Clause
"""Trees of files: what an archive's reader says is in them, and what a mount shows."""
import os
import stat

from against import found
from against.found import (BOTH, NEITHER, NO_ANSWER, UNREADABLE, MountFails,
                           ReaderFails)

STEP = 1 << 20
PATH_MAX = 4096
LINKS = 40          # symbolic links that are followed on the way to one name


class Entry:
    """A file as its archive has it.  What is None is not compared; names of one inode
    share an Entry.  `number`: which member of the archive has the bytes."""

    def __init__(self, kind, number=None, mode=None, owner=None, mtime=None, unit=1,
                 size=None, target=None, device=None, xattrs=None):
        self.kind, self.number, self.mode, self.owner = kind, number, mode, owner
        self.mtime, self.unit = mtime, unit     # in ns; compared in units of so many
        self.size, self.target, self.device = size, target, device
        self.xattrs = xattrs or {}


class Expected:
    """The tree that extracting an archive into an empty directory leaves."""

    def __init__(self):
        self.entries = {}       # path: Entry
        self.parents = set()    # directories with something in them
        self.refused = {}       # names that are not extracted, and why

    def _directory(self, parts, links=0):
        """The path of a directory, symbolic links followed; None: there is none."""
        path = ""
        for i, part in enumerate(parts):
            path = path + "/" + part if path else part
            e = self.entries.get(path)
            if e is not None and e.kind == stat.S_IFLNK:
                target = e.target.split("/")
                if e.target.startswith("/") or links > LINKS:
                    return None
                whole = self._plain(path.split("/")[:-1] + target + parts[i + 1:])
                return None if whole is None else self._directory(whole, links + 1)
            if e is not None and e.kind != stat.S_IFDIR:
                return None
        return path

    @staticmethod
    def _plain(parts):
        """Without `.` and `..`; None: it leads out of the archive."""
        out = []
        for p in parts:
            if p == "..":
                if not out:
                    return None
                out.pop()
            elif p not in ("", "."):
                out.append(p)
        return out

    def place(self, name):
        """Where a member of this name goes: its path; "" is the root, None nowhere."""
        parts = [p for p in name.split("/") if p not in ("", ".")]
        if ".." in parts:
            return None
        if not parts:
            return ""
        above = self._directory(parts[:-1])
        if above is None:
            return None
        return above + "/" + parts[-1] if above else parts[-1]

    def put(self, name, entry):
        if len(os.fsencode(name)) >= PATH_MAX:
            self.refused[name] = "its path is too long"
            return
        path = self.place(name)
        if path is None:
            self.refused[name] = "its path leads out of the archive, or through a file"
            return
        if not path:
            return  # attributes of the root are those of the mount point
        if entry.kind != stat.S_IFDIR and path in self.parents:
            self.refused[name] = "a directory that is not empty is in its place"
            return
        self.entries[path] = entry
        above = os.path.dirname(path)
        while above:
            self.parents.add(above)
            self.entries.setdefault(above, Entry(stat.S_IFDIR))
            above = os.path.dirname(above)

    def link(self, name, target):
        """A hard link to a member that is there already."""
        to = self.place(target)
        if not to or to not in self.entries:
            self.refused[name] = "its link leads to nothing in the archive"
            return
        self.put(name, self.entries[to])

    def first_paths(self):
        """{number of a member: the first path of its bytes}."""
        out = {}
        for path in sorted(self.entries):
            e = self.entries[path]
            if e.kind == stat.S_IFREG and e.number is not None:
                out.setdefault(e.number, path)
        return out


def walk(c):
    """{stored path: (path in the mount, lstat)} of all that a mount shows."""
    out = {}
    todo = [("", c.mount)]
    while todo:
        stored, directory = todo.pop()
        c.reading(stored or "/")
        try:
            names = c.look(found.stored_names, directory)
        except MountFails as e:
            c.result(UNREADABLE, stored or "/", str(e))
            continue
        for name, shown in names.items():
            path = os.path.join(directory, shown)
            below = stored + "/" + name if stored else name
            try:
                st = c.look(os.lstat, path)
            except MountFails as e:
                c.result(UNREADABLE, below, str(e))
                continue
            out[below] = path, st
            if stat.S_ISDIR(st.st_mode):
                todo.append((below, path))
    return out


def difference(c, entry, path, st):
    """What differs in attributes, as a sentence; None: nothing."""
    kind = stat.S_IFMT(st.st_mode)
    if kind != entry.kind:
        return "the type is %o, the reader has %o" % (kind, entry.kind)
    if entry.size is not None and st.st_size != entry.size:
        return "%d bytes, the reader has %d" % (st.st_size, entry.size)
    if entry.target is not None:
        target = c.look(os.readlink, path)
        if target != entry.target:
            return "a link to %s, the reader has %s" % (target, entry.target)
    elif entry.mode is not None and stat.S_IMODE(st.st_mode) != entry.mode:
        return "the mode is %04o, the reader has %04o" % (
            stat.S_IMODE(st.st_mode), entry.mode)
    if entry.owner is not None and (st.st_uid, st.st_gid) != entry.owner:
        return "the owner is %d:%d, the reader has %d:%d" % (
            st.st_uid, st.st_gid, *entry.owner)
    if entry.mtime is not None and \
            st.st_mtime_ns // entry.unit != entry.mtime // entry.unit:
        return "the time is %d ns, the reader has %d" % (st.st_mtime_ns, entry.mtime)
    if entry.device is not None and st.st_rdev != entry.device:
        return "another device"
    for name, value in entry.xattrs.items():
        if c.look(os.getxattr, path, name, follow_symlinks=False) != value:
            return "the extended attribute %s differs" % name
    return None


class Trees:
    """An Expected and a mount, compared."""

    def __init__(self, c, expected, broken=None, doubtful=False):
        self.c, self.expected = c, expected
        self.broken = broken        # the reader's error, after which it read no more
        self.doubtful = doubtful    # the error may be one of any file
        self.shown = walk(c)

    def names(self):
        """Reports names that only one of the two has, and refused ones."""
        c, entries = self.c, self.expected.entries
        for path in sorted(set(entries) - set(self.shown)):
            c.judge(path, lambda: "the mount does not show it")
        for path in sorted(set(self.shown) - set(entries)):
            if self.broken:
                c.judge(path, lambda: (NO_ANSWER, self.broken))
            elif path in self.expected.refused:
                c.judge(path, lambda p=path: (NO_ANSWER, self.expected.refused[p]))
            else:
                c.judge(path, lambda: "the reader does not have it")
        for name, why in self.expected.refused.items():
            if name not in self.shown:
                c.judge(name, lambda: (NEITHER, why))

    def attributes(self):
        """Attributes; and the names of an inode.  Regular files are judged when their
        bytes are compared, if these are all right."""
        c, first = self.c, {}
        for path in sorted(set(self.expected.entries) & set(self.shown)):
            entry, (at, st) = self.expected.entries[path], self.shown[path]
            why = None
            try:
                why = difference(c, entry, at, st)
            except MountFails as e:
                c.result(UNREADABLE, path, str(e))
                continue
            if entry.kind != stat.S_IFDIR:
                why = why or self._inode(path, entry, st, first)
            if why:
                c.judge(path, lambda: (NO_ANSWER, why) if self.doubtful else why)
            elif entry.kind != stat.S_IFREG or first.get(id(entry)) != path:
                c.judge(path, lambda: None)

    def _inode(self, path, entry, st, first):
        other = first.setdefault(id(entry), path)
        if other != path and self.shown[other][1].st_ino != st.st_ino:
            return "another inode than %s, a hard link to it" % other
        return None

    def content(self, path, read):
        """The bytes of a regular file against read(n), which the reader has."""
        if path in self.shown and path not in self.c.judged:
            self.c.judge(path, lambda: self._same_bytes(path, read))

    def _same_bytes(self, path, read):
        got = compare_bytes(self.c, path, self.shown[path][0], read)
        if self.broken and isinstance(got, tuple) and got[0] == UNREADABLE:
            # A checksum that fails covers what the reader had given out before.
            return BOTH, "%s; %s" % (got[1], self.broken)
        if self.doubtful and isinstance(got, str):
            return NO_ANSWER, "%s; %s" % (got, self.broken)
        return got

    def rest(self):
        """Regular files that the reader did not come to."""
        for path, e in sorted(self.expected.entries.items()):
            if e.kind == stat.S_IFREG and path in self.shown and \
                    path not in self.c.judged:
                self.c.judge(path, lambda: self._unanswered(self.shown[path][0]))

    def _unanswered(self, path):
        why = self.broken or "the reader does not read it"
        try:
            drain_mount(self.c, path, 0)
        except MountFails as e:
            return BOTH, "%s; %s" % (e, why)
        return NO_ANSWER, why


def drain_mount(c, path, at):
    """Read a file of the mount to its end."""
    while True:
        part = c.look(found.read_range, path, STEP, at)
        if not part:
            return
        c.reading(path)
        at += len(part)


def drain_reader(c, name, read):
    while c.ask(name, read, STEP):
        pass


def compare_bytes(c, name, path, read):
    """A file of the mount against read(n): None, or what differs.  Where both fail, it
    is refused by both."""
    at = 0
    fd = c.look(os.open, path, os.O_RDONLY)
    try:
        while True:
            try:
                want = c.ask(name, read, STEP)
            except ReaderFails as e:
                return _reader_failed(c, path, at, e)
            c.reading(name)
            try:
                got = c.look(lambda _: found.pread(fd, len(want) or 1, at), path)
            except MountFails as e:
                return _mount_failed(c, name, read, e)
            if got != want:
                return first_difference(got, want, at)
            at += len(want)
            if not want:
                return None
            if at > c.limit:
                c.note("%s: the first %d bytes were compared (--limit)" % (name, at))
                return None
    finally:
        os.close(fd)


def _reader_failed(c, path, at, error):
    c.reading(path)
    try:
        drain_mount(c, path, at)
    except MountFails as e:
        return BOTH, "%s; %s" % (e, error)
    return NO_ANSWER, str(error)


def _mount_failed(c, name, read, error):
    try:
        drain_reader(c, name, read)
    except ReaderFails as e:
        return BOTH, "%s; %s" % (error, e)
    return UNREADABLE, str(error)


def first_difference(got, want, at):
    n = min(len(got), len(want))
    i = next((i for i in range(n) if got[i] != want[i]), n)
    if i == n:
        return "it ends at byte %d, the reader goes on" % (at + n) \
            if len(got) < len(want) else \
            "it goes on at byte %d, where the reader ends" % (at + n)
    return "byte %d differs: %s, the reader has %s" % (
        at + i, got[i:i + 8].hex(), want[i:i + 8].hex())


def compare_all(c, expected, contents, broken=None, doubtful=False):
    """`contents` gives (number of a member, read) in the order of the reader."""
    t = Trees(c, expected, broken, doubtful)
    t.names()
    t.attributes()
    first = expected.first_paths()
    try:
        for number, read in contents:
            if number in first:
                t.content(first[number], read)
    except ReaderFails as e:
        t.broken = t.broken or str(e)
    t.rest()
    if t.broken:
        c.note("the reader stops early: " + t.broken)

