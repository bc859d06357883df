# SPDX-License-Identifier: BSD-2-Clause
"""squashfs by unsquashfs, which extracts the image into a temporary directory."""
import os
import re
import shutil
import stat
import subprocess

from against import found, trees
from against.found import ReaderFails
from against.trees import Entry, Expected

READER = "unsquashfs"
PACKAGE = "squashfs-tools"
SECOND = 10 ** 9


def load():
    program = shutil.which("unsquashfs")
    if not program:
        raise found.NoReader("there is no program unsquashfs")
    p = subprocess.run([program, "-version"], stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    m = re.search(rb"version (\S+)", p.stdout)
    return "unsquashfs %s" % (m.group(1).decode() if m else "")


def _run(*argv):
    p = subprocess.run(["unsquashfs", *argv], stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    said = " ".join(p.stderr.decode("utf-8", "replace").split())
    return p.returncode, said


def probe(source):
    status, said = _run("-s", source)
    if status:
        raise ReaderFails(said)


def _room(c, shown):
    """Is there space for what is extracted?"""
    need = sum(st.st_blocks * 512 for _, st in shown.values())
    free = shutil.disk_usage(c.scratch).free
    if need > free * 3 // 4:
        raise ReaderFails("%d bytes do not fit into %s, where %d are free (TMPDIR)" % (
            need, c.scratch, free))


def _extract(c, to):
    """What unsquashfs complained of, where it extracted the rest: status 2.  After any
    other it stopped, and what it left are parts of files."""
    status, said = c.ask("/", _run, "-no-progress", "-quiet", "-d", to, c.source)
    said = said.replace(to + "/", "")[:300]
    if not os.path.isdir(to) or status not in (0, 2):
        raise ReaderFails(said or "unsquashfs exits with %d" % status)
    return said if status else ""


def _expected(c, root):
    """The extracted tree."""
    expected, inodes = Expected(), {}
    os.chmod(root, 0o700)
    for directory, dirs, files in os.walk(root, onerror=_raise):
        for n in dirs + files:
            path = os.path.join(directory, n)
            st = os.lstat(path)
            name = os.path.relpath(path, root)
            entry = inodes.get(st.st_ino)
            if entry is None or stat.S_ISDIR(st.st_mode):
                entry = inodes[st.st_ino] = _entry(name, path, st)
                _open_up(path, st)
            expected.put(name, entry)
    return expected


def _raise(error):
    raise error


def _open_up(path, st):
    """Let us read what was stored without permission, now that its mode is known."""
    if stat.S_ISDIR(st.st_mode):
        os.chmod(path, 0o700)
    elif stat.S_ISREG(st.st_mode) and not st.st_mode & stat.S_IRUSR:
        os.chmod(path, 0o600)


def _entry(name, path, st):
    kind = stat.S_IFMT(st.st_mode)
    link = kind == stat.S_IFLNK
    return Entry(kind, name, mode=stat.S_IMODE(st.st_mode),
                 owner=(st.st_uid, st.st_gid) if os.geteuid() == 0 else None,
                 mtime=st.st_mtime_ns, unit=SECOND,
                 size=st.st_size if kind == stat.S_IFREG else None,
                 target=os.readlink(path) if link else None,
                 device=st.st_rdev if kind in (stat.S_IFCHR, stat.S_IFBLK) else None)


def _contents(root, expected, complaint):
    for name in expected.first_paths():
        with open(os.path.join(root, name), "rb") as f:
            yield name, _reader(f, complaint)


def _reader(f, complaint):
    """After a complaint a file that ends may be cut off."""
    def read(n):
        data = f.read(n)
        if not data and complaint:
            raise ReaderFails(complaint)
        return data
    return read


def compare(c):
    _room(c, trees.walk(c))
    root = os.path.join(c.scratch, "unsquashed")
    try:
        complaint = _extract(c, root)
        expected = _expected(c, root)
        trees.compare_all(c, expected, _contents(root, expected, complaint),
                          complaint or None, bool(complaint))
    finally:
        _remove(root)


def _remove(root):
    """Directories may have been stored without permission to remove what is in them."""
    if os.path.isdir(root):
        os.chmod(root, 0o700)
    for directory, dirs, _ in os.walk(root):
        for n in dirs:
            path = os.path.join(directory, n)
            if not os.path.islink(path):
                os.chmod(path, 0o700)
    shutil.rmtree(root, ignore_errors=True)
