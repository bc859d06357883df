#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The mount as a file system: attributes, counters, lifetime, xattrs."""
import ctypes
import errno
import fcntl
import json
import os
import signal
import stat
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import lib
import skerch
from checks import check, equal, fails_with, flatten, note, read, same_bytes
from lib import Mount, case, exits, mount_line, run, tensorfs, wait_until

work = None
tensor = None


@case
def read_only():
    with Mount(tensor.all_path) as m:
        p = m / "data/samples/000003.npy"
        for flags in (os.O_RDWR, os.O_WRONLY, os.O_RDWR | os.O_TRUNC):
            fails_with(errno.EROFS, lambda: os.open(p, flags), "open of a "
                       "sample with flags %o" % flags)
        fails_with(errno.EROFS, lambda: open(m / "data/array.bin", "r+"), "r+")
        fails_with(errno.EROFS, lambda: open(m / "new", "w"), "a new file")
        fails_with(errno.EROFS, lambda: os.mkdir(m / "d"), "mkdir")
        fails_with(errno.EROFS, lambda: os.unlink(p), "unlink")
        fails_with(errno.EROFS, lambda: os.rename(p, m / "x"), "rename")
        fails_with(errno.EROFS, lambda: os.utime(p), "utime")


@case
def attributes():
    with Mount(tensor.all_path) as m:
        files = 0
        for top, dirs, names in os.walk(m.path):
            check(stat.S_ISDIR(os.lstat(top).st_mode), top)
            for n in names:
                p = os.path.join(top, n)
                st = os.stat(p)
                files += 1
                check(stat.S_ISREG(st.st_mode), p + " is not a regular file")
                equal(len(read(p)), st.st_size, "bytes of %s against st_size"
                      % p)
                check(st.st_blksize >= 128 << 10, "%s: st_blksize %d" % (
                    p, st.st_blksize))
                check(st.st_blocks > 0 or not st.st_size, p + ": 0 blocks")
                check(st.st_nlink >= 1 and st.st_mode & 0o400, "%s: mode %o" %
                      (p, st.st_mode))
                equal(st.st_mode & 0o222, 0, "write bits of " + p)
                equal(st.st_uid, os.getuid(), "owner of " + p)
        check(files > 100, "only %d files" % files)


class Dirent(ctypes.Structure):
    _fields_ = [("ino", ctypes.c_uint64), ("off", ctypes.c_int64),
                ("reclen", ctypes.c_uint16), ("type", ctypes.c_uint8),
                ("name", ctypes.c_char * 256)]


def dirents(path):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.opendir.restype = ctypes.c_void_p
    libc.readdir64.restype = ctypes.POINTER(Dirent)
    libc.readdir64.argtypes = libc.closedir.argtypes = [ctypes.c_void_p]
    d = libc.opendir(path.encode())
    check(d, "opendir " + path)
    out = []
    while True:
        e = libc.readdir64(d)
        if not e:
            break
        out.append((e.contents.name.decode(), e.contents.type,
                    e.contents.ino))
    libc.closedir(d)
    return out


@case
def d_type_and_order():
    with Mount(tensor.all_path) as m:
        for rel in ("", "data", "data/samples", "data/blocks", "flags"):
            first = dirents(m / rel)
            for name, kind, ino in first:
                if name in (".", ".."):
                    continue
                st = os.lstat(os.path.join(m / rel, name))
                equal(kind, 4 if stat.S_ISDIR(st.st_mode) else 8,
                      "d_type of %s/%s" % (rel, name))
                equal(ino, st.st_ino, "d_ino of %s/%s" % (rel, name))
            equal(dirents(m / rel), first, "listing %s again" % rel)
            equal(len({n for n, _, _ in first}), len(first), "names of " + rel)
        names = [n for n, _, _ in dirents(m / "data/samples")
                 if n not in (".", "..")]
        equal(names, sorted(names), "order of samples in readdir")
        equal(sorted(os.listdir(m / "data")), ["array.bin", "array.npy",
              "blocks", "info.json", "samples"], "names in a data set")


def old_files(top, seconds):
    """Everything in a directory was last changed at this time."""
    for d, _, names in os.walk(top):
        for n in names:
            os.utime(os.path.join(d, n), (seconds, seconds))


@case
def stable_over_mounts():
    """Inodes, times and sizes come from the source, not from the mount."""
    old_files(os.path.dirname(tensor.all_path), 10 ** 9)
    seen = []
    for _ in range(2):
        with Mount(tensor.all_path) as m:
            one = {}
            for top, dirs, names in os.walk(m.path):
                for n in dirs + names:
                    p = os.path.join(top, n)
                    st = os.lstat(p)
                    one[os.path.relpath(p, m.path)] = (
                        st.st_ino, st.st_mtime_ns, st.st_size, st.st_mode)
            st = os.lstat(m.path)
            one["."] = (st.st_ino, st.st_mtime_ns, 0, st.st_mode)
            seen.append(one)
    for k, (_, mtime, _, _) in seen[0].items():
        equal(mtime, 10 ** 18, "mtime of %s, which is its source's" % k)
    for k in seen[0]:
        equal(seen[1].get(k), seen[0][k], "(inode, mtime, size, mode) of " + k)
    equal(len(seen[1]), len(seen[0]), "number of names")
    inos = [v[0] for v in seen[0].values()]
    equal(len(set(inos)), len(inos), "different inode numbers")


@case
def flock():
    with Mount(tensor.all_path) as m:
        with open(m / "data/array.bin", "rb") as f, \
                open(m / "data/array.bin", "rb") as g:
            fcntl.flock(f, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(g, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(g, fcntl.LOCK_UN)


@case
def mount_table():
    with Mount(tensor.all_path) as m:
        kind, source, opts = mount_line(m.path)
        equal(kind, "fuse.tensorfs", "type")
        check({"ro", "nosuid", "nodev"} <= opts, "options: %s" % sorted(opts))
        equal(os.path.basename(source), os.path.basename(tensor.all_path),
              "fsname")
        st = os.statvfs(m.path)
        check(st.f_flag & os.ST_RDONLY, "statvfs does not say read-only")
        check(st.f_bsize > 0 and st.f_namemax >= 255, "statvfs: %s" % (st,))
        equal(st.f_bavail, 0, "free blocks")
        exits(run("df", m.path), 0, "df")


@case
def stats_formats():
    with Mount(tensor.all_path) as m:
        read(m / "data/array.bin")
        p = exits(tensorfs("stats", m.path), 0, "stats")
        check(p.stdout.strip(), "stats prints nothing")
        j = flatten(m.stats())
        check(len(j) > 5 and any(isinstance(v, int) and v > 0
                                 for v in j.values()), "stats: %s" % j)
        p = exits(tensorfs("stats", "--prometheus", m.path), 0, "prometheus")
        for line in p.stdout.splitlines():
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                check(name.startswith("tensorfs_"), "metric " + line)
                float(value)
        check("# TYPE tensorfs_" in p.stdout, "no # TYPE lines")
    exits(tensorfs("stats", work), (1, 3), "stats of something not mounted")


@case
def xattrs():
    with Mount(tensor.all_path) as m:
        for key in ("stats", "config", "version"):
            v = os.getxattr(m.path, "user.tensorfs." + key)
            check(v, "user.tensorfs.%s of the root is empty" % key)
        os.getxattr(m.path, "user.tensorfs.errors")
        json.loads(os.getxattr(m.path, "user.tensorfs.stats"))
        s = m / "data/samples/000003.npy"
        shape = os.getxattr(s, "user.tensorfs.shape").decode()
        check(all(str(n) in shape for n in tensor.data.shape[1:]),
              "user.tensorfs.shape of a sample: " + shape)
        dtype = os.getxattr(s, "user.tensorfs.dtype").decode()
        check("f4" in dtype or "float32" in dtype, "dtype: " + dtype)
        equal(os.listxattr(s), [], "nothing for archivers to copy")
        equal(os.listxattr(m.path), [], "nor of the root")
        keys = os.getxattr(s, "user.tensorfs.list").decode().split()
        check({"user.tensorfs.shape", "user.tensorfs.dtype"} <= set(keys),
              "attributes of a sample: %s" % keys)
        for k in keys:
            os.getxattr(s, k)
        fails_with(errno.ENODATA, lambda: os.getxattr(s, "user.nope"),
                   "an unknown xattr")
        fails_with((errno.EROFS, errno.ENOTSUP, errno.EPERM), lambda:
                   os.setxattr(s, "user.a", b"b"), "setxattr")
        equal(os.getxattr(m / "data/blocks/000000-000020.npy",
                          "user.tensorfs.flag"), b"OK", "flag of a block")


@case
def signals_unmount():
    for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        for fg in (False, True):
            with Mount(tensor.all_path, foreground=fg) as m:
                read(m / "data/samples/000001.npy")
                pid = m.pid
                os.kill(pid, sig)
                check(wait_until(lambda: not mount_line(m.path), 60),
                      "%s: still mounted after 60 s" % sig.name)
                if fg:
                    check(m.proc.wait(60) >= 0, "%s: it died of signal %d" % (
                        sig.name, -m.proc.returncode))
                check(wait_until(lambda: lib.zombie(pid), 60),
                      "%s: the daemon is still there" % sig.name)
                equal(os.listdir(m.path), [], "the directory below")


@case
def signal_while_busy():
    """A file is open: the daemon goes, nothing hangs, the mount goes."""
    with Mount(tensor.all_path) as m:
        pid = m.pid
        fd = os.open(m / "data/array.bin", os.O_RDONLY)
        try:
            os.read(fd, 10)
            os.kill(pid, signal.SIGTERM)
            check(wait_until(lambda: lib.zombie(pid), 60),
                  "the daemon is still there")
            check(wait_until(lambda: not mount_line(m.path), 60),
                  "still mounted")
        finally:
            try:
                os.close(fd)
            except OSError:
                pass  # its FLUSH has nobody to go to


@case
def foreground():
    with Mount(tensor.all_path, foreground=True) as m:
        read(m / "data/array.bin")
        check(m.proc.poll() is None, "mount -f ended by itself")
        exits(tensorfs("umount", m.path), 0, "umount")
        equal(m.proc.wait(60), 0, "exit status of mount -f after umount")


@case
def notify_pipe():
    for src, want in ((tensor.all_path, b"s"),
                      (os.path.join(work, "nothing.h5"), b"f")):
        fifo = os.path.join(work, "fifo-" + want.decode())
        os.mkfifo(fifo)
        mnt = os.path.join(work, "mnt-" + want.decode())
        os.mkdir(mnt)
        fd = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        try:
            tensorfs("mount", "-o", "notify_pipe=" + fifo, src, mnt)
            got = []

            def poll():
                try:
                    got.append(os.read(fd, 10))
                except BlockingIOError:
                    return False
                return bool(got[-1])
            wait_until(poll, 60)
            equal(b"".join(got), want, "what the pipe got for " + src)
        finally:
            os.close(fd)
            tensorfs("umount", mnt)
            lib.force_unmount(mnt)


@case
def several_sources():
    other = skerch.create(os.path.join(work, "second"), name="u", rows=20,
                          part=10)
    with Mount(None, sources=[tensor.all_path, other.all_path]) as m:
        top = sorted(os.listdir(m.path))
        equal(len(top), 2, "directories in the root (%s)" % top)
        check(top[0].startswith("t_ALL") and top[1].startswith("u_ALL"),
              "they are named %s" % top)
        same_bytes(read(m / (top[1] + "/data/array.bin")),
                   other.data.tobytes(), "data of the second source")


def main():
    global work, tensor
    work = lib.setup()
    tensor = skerch.create(os.path.join(work, "src"), rows=600, sub=(20, 30),
                           part=20, incompressible=4)
    if not sys.argv[1:]:
        note("as %s" % ("root" if lib.ROOT else "an ordinary user"))
    lib.main()


if __name__ == "__main__":
    main()
