#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Files that are read ahead: the same bytes, and nothing that is told otherwise when
sources change; and nothing stays or hangs, whatever is killed when.

How many are is the kernel's affair, and none are while memory is short: only that some
are is looked at, and not even that where the daemon says that it refused.
"""
import contextlib
import ctypes
import errno
import os
import random
import signal
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import numpy as np

import lib
from checks import check, equal, note
from lib import Mount, case, exits, run, wait_until
from quietlib import again, numbers, rests

N = 1200 if lib.full() else 500
work = None
want = {}  # name -> bytes, of the archives

# Prints a hash of every file below a directory, read in some order; an error for a
# file is its number.
READER = """
import hashlib, os, random, sys
paths = [os.path.join(t, f) for t, d, fs in os.walk(sys.argv[1]) for f in fs
         if f.endswith(sys.argv[3])]
paths.sort()
if int(sys.argv[2]):
    random.Random(int(sys.argv[2])).shuffle(paths)
for p in paths:
    try:
        fd = os.open(p, os.O_RDONLY)
        try:
            b = b''
            while True:
                c = os.read(fd, 1 << 20)
                if not c:
                    break
                b += c
        finally:
            os.close(fd)
        print(os.path.relpath(p, sys.argv[1]), hashlib.sha1(b).hexdigest())
    except OSError as e:
        print(os.path.relpath(p, sys.argv[1]), e.errno)
"""


def reader(where, seed, end=""):
    return ["/usr/bin/python3", "-c", READER, where, str(seed), end]


def hashes(where, seed, end=""):
    p = exits(run(*reader(where, seed, end)), 0, "reading")
    return dict(line.rsplit(" ", 1) for line in p.stdout.splitlines())


def tensor(name, **kw):
    path = os.path.join(work, name)
    rng = np.random.default_rng(3)
    data = np.repeat(rng.integers(0, 99, (N, 20, 8), dtype="u2"), 2, axis=2)
    with h5py.File(path, "w") as f:
        f.create_dataset("data", data=data, chunks=(64, 20, 16), **kw)
    return path


def tree():
    top = os.path.join(work, "tree")
    rng = random.Random(4)
    for i in range(N):
        d = os.path.join(top, "c%02d" % (i % 7))
        os.makedirs(d, exist_ok=True)
        size = rng.choice([0, 1, 900, 4096, 5000, 12000, 12288, 300000
                           if i % 100 == 0 else 7000])
        b = bytes([i % 251]) * (size // 2) + rng.randbytes(size - size // 2)
        with open(os.path.join(d, "%05d.bin" % i), "wb") as f:
            f.write(b)
    return top


def archive(kind):
    path = os.path.join(work, "a." + kind)
    if os.path.exists(path):
        return path
    top = os.path.join(work, "tree")
    if not os.path.exists(top):
        tree()
    if kind == "sqfs":
        exits(run("mksquashfs", top, path, "-comp", "zstd", "-quiet",
                  "-no-progress"), 0, "mksquashfs")
    else:
        exits(lib.tensorfs("pack", "-q", top, path), 0, "pack")
    return path


def begin(m, sub="", end=".bin"):
    """Read one file of three, so that their neighbours are read ahead, and wait until the
    daemon is at rest.  False: it refused, for want of memory."""
    paths = sorted(os.path.join(t, f) for t, d, fs in os.walk(m / sub)
                   for f in fs if f.endswith(end))
    for p in random.Random(9).sample(paths, len(paths) // 3):
        fd = os.open(p, os.O_RDONLY)
        os.read(fd, 1 << 20)
        os.close(fd)
    rests(m)
    c = numbers(m)
    if c["read_requests_ahead"]:
        return True
    if c["read_ahead_refused"]:
        note("nothing was read ahead: memory is short")
        return False
    return again("nothing was read ahead: %s" % {k: v for k, v in c.items() if v})


def same_bytes(source, sub, end):
    """Once without, to know what is in there; then with, in two orders."""
    with Mount(source, opts=["-o", "prefetch=off"]) as m:
        plain = hashes(m / sub, 1, end)
        c = numbers(m)
        equal(c["files_read_ahead"], 0, "read ahead with prefetch=off")
        check(c["read_requests"] >= len(plain) * 3 // 4,
              "%d READs" % c["read_requests"])
    for seed in (1, 0):
        with Mount(source) as m:
            begin(m, sub, end)
            got = hashes(m / sub, seed, end)
        bad = [k for k in plain if plain[k] != got.get(k)]
        equal((len(bad), bad[:3], len(got)), (0, [], len(plain)),
              "files of %s that differ" % os.path.basename(source))
    return plain


@case
def tensors():
    for name, kw in (("lzf.h5", {"compression": "lzf"}),
                     ("gzip.h5", {"compression": "gzip", "shuffle": True})):
        path = tensor(name, **kw)
        got = same_bytes(path, "data/samples", ".npy")
        equal(len(got), N, "samples")


@case
def archives():
    for kind in ("sqfs", "tar.zst"):
        got = same_bytes(archive(kind), "", ".bin")
        here = hashes(os.path.join(work, "tree"), 0, ".bin")
        check(got == here, "%s differs from what was packed" % kind)


@case
def a_source_that_changes():
    """Truncated while it is read, and read ahead: right bytes or an error."""
    path = os.path.join(work, "cut.h5")
    subprocess.check_call(["cp", tensor("lzf.h5", compression="lzf"), path])
    with Mount(path, opts=["-o", "prefetch=off"]) as m:
        right = hashes(m / "data/samples", 1, ".npy")
    with Mount(path) as m:
        os.listdir(m / "data/samples")
        for i in (5, N * 7 // 12, N * 11 // 12):
            with open(m / ("data/samples/%06d.npy" % i), "rb") as f:
                f.read()
        os.truncate(path, os.path.getsize(path) // 3)
        got = hashes(m / "data/samples", 5, ".npy")
        errors = [v for v in got.values() if len(v) < 10]
        check(errors, "no read failed")
        for k, v in got.items():
            check(v == right[k] or int(v) in (5, 116), "%s: %s" % (k, v))


def helpers(mnt):
    """Processes that read files of that mount ahead."""
    found = []
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/comm" % p) as f, \
                    open("/proc/%s/cmdline" % p, "rb") as g:
                if f.read() == "tensorfs-ahead\n" and \
                        mnt.encode() in g.read().split(b"\0"):
                    found.append(int(p))
        except OSError:
            pass
    return found


def kill_while_reading_ahead(how, mount=Mount):
    """Readers end; the daemon and all of its processes, too."""
    path = archive("sqfs")
    for n in range(lib.rounds(4)):
        with mount(path) as m:
            pid = m.pid
            # What they print would fill a pipe that nobody empties.
            ps = [subprocess.Popen(reader(m.path, seed),
                                   stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
                  for seed in (0, 7)]
            # Sooner or later; where memory is short nothing is read ahead.
            wait_until(lambda: numbers(m)["files_read_ahead"] > 20 * n or
                       all(p.poll() is not None for p in ps), 60)
            how(m, pid, ps)
            for p in ps:
                try:
                    p.wait(60)
                except subprocess.TimeoutExpired:
                    p.kill()
                    raise lib.Failure("a reader hangs")
            check(wait_until(lambda: not os.path.exists("/proc/%d" % pid) or
                             lib.zombie(pid), 60), "the daemon stays")
            check(wait_until(lambda: not helpers(m.path), 60),
                  "its helper stays")


@case
def killed_while_it_reads_ahead():
    kill_while_reading_ahead(lambda m, pid, _: os.kill(pid, signal.SIGKILL))


@case
def ended_while_it_reads_ahead():
    kill_while_reading_ahead(lambda m, pid, _: os.kill(pid, signal.SIGTERM))


@case
def unmounted_while_it_reads_ahead():
    def lazily(m, pid, _):
        exits(lib.tensorfs("umount", "-z", m.path), 0, "umount -z")

    kill_while_reading_ahead(lazily)


@case
def all_killed_at_once():
    """Daemon, helper and readers, as the end of a control group does it."""
    def all_of_them(m, pid, ps):
        for p in [pid, *helpers(m.path), *(p.pid for p in ps)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(p, signal.SIGKILL)

    kill_while_reading_ahead(all_of_them)


class Logged(Mount):
    """In the foreground, with its log in a file."""
    first = None  # what its process does before anything else

    def __enter__(self):
        self.log = os.path.join(work, "log")
        with open(self.log, "w") as f:
            self.proc = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL,
                                         stdout=f, stderr=f,
                                         preexec_fn=self.first)
        lib._mounts.append(self)
        lib._children.append(self.proc)
        check(wait_until(lambda: lib.mount_line(self.path), 60), "no mount")
        # The daemon answers once it has forked its helper and has its own name again.
        numbers(self)
        return self

    def sentences(self):
        """How often the log says that the helper is gone."""
        with open(self.log) as f:
            return f.read().count("tensorfs-ahead")


def lonely(m):
    """Its helper is killed."""
    for p in helpers(m.path):
        os.kill(p, signal.SIGKILL)
    check(wait_until(lambda: not helpers(m.path), 60), "the helper stays")


@case
def errors_are_counted_after_reading_ahead():
    """Every worker has answered the helper, and then readers, who are told of failures."""
    broken = os.path.join(lib.COLUMNS, "nested-one.parquet")
    with Mount(None, sources=[tensor("lzf.h5", compression="lzf"), broken],
               opts=["-o", "threads=2"]) as m:
        # In order of names, so that the last READs are the helper's.
        for i in range(N // 2):
            with open(m / ("lzf.h5/data/samples/%06d.npy" % i), "rb") as f:
                f.read()
        rests(m)
        c = numbers(m)
        if not c["read_requests_ahead"] and not c["read_ahead_refused"]:
            again("nothing was read ahead")
        before = c["errors"]
        for _ in range(40):
            try:
                os.stat(m / "nested-one.parquet/f/samples/000000.npy")
                raise lib.Failure("stat succeeded")
            except OSError as e:
                equal(e.errno, errno.EBADMSG, "errno")
        equal(numbers(m)["errors"] - before, 40, "errors counted")


@case
def files_beyond_the_kernels_readahead():
    """A file of 200 KiB is read ahead whole, not only its first 128 KiB."""
    path = os.path.join(work, "long.h5")
    data = np.random.default_rng(5).integers(0, 9, (200, 200 << 10), "u1")
    with h5py.File(path, "w") as f:
        f.create_dataset("data", data=data, chunks=(8, 200 << 10), compression="lzf")
    with Mount(path) as m:
        for i in range(200):
            with open(m / ("data/samples/%06d.npy" % i), "rb") as f:
                equal(f.read()[128:], data[i].tobytes(), "bytes of %d" % i)
            rests(m)
        c = numbers(m)
    if c["read_requests"] > 100 and not c["read_ahead_refused"]:
        again("%d READs of readers" % c["read_requests"])


@case
def a_mount_that_is_moved():
    """The helper does not open what lies at the old path now, and ends."""
    up, then = os.path.join(work, "up"), os.path.join(work, "then")
    os.makedirs(up + "/mnt")
    with Logged(archive("sqfs"), mnt=up + "/mnt", foreground=True) as m:
        found = helpers(m.path)
        equal(len(found), 1, "helpers")
        os.rename(up, then)
        os.makedirs(up + "/mnt/c00")
        m.path = then + "/mnt"
        equal(begin_reading(m), hashes(os.path.join(work, "tree"), 0, ".bin"), "files")
        if not wait_until(lambda: lib.zombie(found[0]), 60):
            c = numbers(m)
            if c["read_ahead_refused"]:
                return
            raise lib.Failure("the helper stays: %s" % c)
        equal(numbers(m)["read_requests_ahead"], 0, "READs of the helper")
        exits(run("umount" if lib.ROOT else "fusermount3", *([] if lib.ROOT else ["-u"]),
                  m.path), 0, "umount")
        check(wait_until(lambda: m.proc.poll() is not None, 60), "the daemon stays")


def begin_reading(m):
    return hashes(m.path, 7, ".bin")


@case
def the_helper_alone_is_killed():
    path = archive("sqfs")
    with Mount(path, opts=["-o", "prefetch=off"]) as m:
        plain = hashes(m.path, 1, ".bin")
    with Logged(path, foreground=True) as m:
        # The other directories are there to be read ahead when it is gone.
        if not begin(m, "c00"):
            return
        lonely(m)
        asked = numbers(m)["files_read_ahead"]
        for seed in (3, 2):
            equal(hashes(m.path, seed, ".bin"), plain, "files")
            # What the kernel let go of would be asked for again.
            forget(m.path)
        # It is said when something was to be read ahead, which is not while memory is
        # short.
        if not wait_until(lambda: m.sentences() or read_again(m), 60):
            again("nothing was to be read ahead")
        equal(m.sentences(), 1, "sentences in the log")
        c = numbers(m)
        equal(c["files_read_ahead"], asked, "files, and before the helper was killed")
        equal([k for k, v in c.items() if v and "error" in k], [], "errors counted")


def read_again(m):
    forget(m / "c01")
    hashes(m / "c01", 4, ".bin")
    return m.sentences()


def forget(top):
    """Pages of files; what is not read yet, too."""
    for t, _, fs in os.walk(top):
        for f in fs:
            fd = os.open(os.path.join(t, f), os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


@case
def killed_after_its_helper():
    def how(m, pid, ps):
        lonely(m)
        os.kill(pid, signal.SIGKILL)

    kill_while_reading_ahead(how, lambda path: Logged(path, foreground=True))


@case
def it_holds_nothing_of_the_mount():
    """It is there when the mount is at rest, and umount is not told that it is busy."""
    with Mount(archive("sqfs")) as m:
        begin(m)
        found = helpers(m.path)
        equal(len(found), 1, "helpers")
        for fd in os.listdir("/proc/%d/fd" % found[0]):
            to = os.readlink("/proc/%d/fd/%s" % (found[0], fd))
            check(to.startswith("socket:"), "it has %s open" % to)
        equal(os.readlink("/proc/%d/cwd" % found[0]), "/", "its directory")
        exits(run("umount" if lib.ROOT else "fusermount3", *([] if lib.ROOT else ["-u"]),
                  m.path), 0, "umount")


def no_close_range():
    """close_range(2) is ENOSYS from now on, as before Linux 5.9 and under the system
    call filters of old container managers."""
    libc = ctypes.CDLL(None, use_errno=True)
    code = [(0x20, 0, 0, 0),           # load the number of the system call
            (0x15, 0, 1, 436),         # is it close_range?
            (0x06, 0, 0, 0x50000 | errno.ENOSYS),
            (0x06, 0, 0, 0x7fff0000)]  # allow
    raw = b"".join(struct.pack("=HBBI", *c) for c in code)
    keep = ctypes.create_string_buffer(raw)
    prog = struct.pack("@HP", len(code), ctypes.addressof(keep))
    if libc.prctl(22, 2, prog, 0, 0):  # PR_SET_SECCOMP; root only
        raise OSError(ctypes.get_errno(), "seccomp")


def ended_without_close_range(path, how):
    m = Logged(path, foreground=True)
    m.first = no_close_range
    with m:
        begin(m)
        os.kill(m.pid, how)
        check(wait_until(lambda: not helpers(m.path), 60),
              "its helper stays after signal %d" % how)
        check(wait_until(lambda: m.proc.poll() is not None, 60),
              "the daemon stays after signal %d" % how)


@case
def without_close_range():
    if not lib.ROOT:  # fusermount3 is not root below a filter of ours
        return
    # It takes the tables of two threads for one, and closing in the one for a race.
    if os.environ.get("TENSORFS_SANITIZED") == "thread":
        return
    path = archive("sqfs")
    for how in (signal.SIGTERM, signal.SIGKILL):
        ended_without_close_range(path, how)


@case
def the_option():
    p = lib.tensorfs("mount", "-o", "prefetch=maybe", archive("sqfs"), work)
    exits(p, 2, "prefetch=maybe")
    check("on or off" in p.stderr, p.stderr)
    with Mount(archive("sqfs"), opts=["--prefetch=off"]) as m:
        check("prefetch=off" in os.getxattr(
            m.path, "user.tensorfs.config").decode(), "not in the config")
        equal(helpers(m.path), [], "helpers of a mount that reads nothing ahead")


def main():
    global work
    work = lib.setup()
    lib.main()


if __name__ == "__main__":
    main()
