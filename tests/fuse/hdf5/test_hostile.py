#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Damage that libhdf5 itself does not survive: it costs what is damaged.

Global heaps (strings of variable length, virtual mappings) are overwritten; the
library crashes on some of that, complains of some, and reads past the rest.
Whatever it does, a mount must live, and other parts must be right.
"""
import errno
import os
import shutil
import signal
import struct
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import numpy as np

import lib
import skerch
from checks import check, equal, fails_with, read, same_bytes
from lib import Mount, case, exits, tensorfs

DAMAGE = (errno.EIO, errno.EBADMSG)
ROWS, PART = 40, 10
work = None


def fresh(name):
    d = os.path.join(work, name)
    os.mkdir(d)
    return d


def heaps(path):
    """Positions of the global heap collections of a file."""
    with open(path, "rb") as f:
        b = f.read()
    at, found = b.find(b"GCOL"), []
    while at >= 0:
        found.append(at)
        at = b.find(b"GCOL", at + 1)
    return found


def patch(path, pos, data):
    st = os.stat(path)
    with open(path, "r+b") as f:
        f.seek(pos)
        f.write(data)
    os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))


# What is written where in a heap: "GCOL", version, size (8 bytes); then objects
# of index (2), references (2), zeros (4), size (8), data.
HEAP_DAMAGE = {
    "index": (16, struct.pack("<H", 0xffff)),
    "size": (24, b"\xff" * 8),
    "size-small": (24, struct.pack("<Q", 1 << 20)),
    "collection": (8, b"\xff" * 8),
    "collection-small": (8, struct.pack("<Q", 17)),
    "noise": (16, bytes((7 * i + 3) & 255 for i in range(200))),
    "ones": (16, b"\xff" * 200),
}


def helpers(pid):
    """Descendants of a process."""
    found = []
    for p in os.listdir("/proc"):
        try:
            with open("/proc/%s/stat" % p) as f:
                parent = int(f.read().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError):
            continue
        if parent == pid:
            found += [int(p)] + helpers(int(p))
    return found


def gone(pids):
    return lib.wait_until(lambda: all(lib.zombie(p) for p in pids), 60)


def flag(m, i):
    return read(m / ("flags/samples/%06d.txt" % i))


def flag_names(m):
    return sorted(os.listdir(m / "flags/samples"))


def only_flags_fail(t, bad, must_fail):
    """Flags of part `bad` may fail, nothing else; the mount lives."""
    b, e, path = t.parts[bad]
    failed = 0
    with Mount(t.all_path) as m:
        pid = m.pid
        names = flag_names(m)
        equal(len(names), ROWS, "number of flags")
        for i, name in enumerate(names):
            p = m / ("flags/samples/" + name)
            try:
                got = read(p)
            except OSError as x:
                check(b <= i < e, "flag %d of a good part: %s" % (i, x))
                check(x.errno in DAMAGE, "flag %d: %s" % (i, x))
                failed += 1
            else:
                if not b <= i < e:
                    equal(got.decode().strip(), t.flags[i], "flag %d" % i)
        if failed:
            why = os.getxattr(m.path, "user.tensorfs.errors").decode()
            check(os.path.basename(path) in why,
                  "user.tensorfs.errors does not name the part: " + why)
        for x, y, _ in t.parts:
            p = m / ("data/blocks/%06d-%06d.npy" % (x, y))
            same_bytes(read(p)[128:], t.data[x:y].tobytes(), "block %d" % x)
        pids = [pid] + helpers(pid)
        check(len(pids) > 1, "no helper processes: %s" % pids)
    check(gone(pids), "processes outlive the mount: %s of %s" % (
        [p for p in pids if not lib.zombie(p)], pids))
    if must_fail:
        equal(failed, e - b, "flags that fail")
    return failed


def crashes(f):
    """What makes libhdf5 crash is left out under the thread sanitizer, whose
    handlers turn a crash in its allocator into a loop."""
    if os.environ.get("TENSORFS_SANITIZED") == "thread":
        lib.note("%s: not under the thread sanitizer" % f.__name__)
        return f
    return case(f)


@crashes
def flags_of_a_damaged_part():
    t = skerch.create(fresh("flags"), rows=ROWS, part=PART,
                      flags=["word %d" % i for i in range(ROWS)])
    path = t.parts[2][2]
    keep = path + ".keep"
    shutil.copy2(path, keep)
    some = 0
    for kind, (off, data) in HEAP_DAMAGE.items():
        shutil.copy2(keep, path)
        for at in heaps(path):
            patch(path, at + off, data)
        try:
            some += only_flags_fail(t, 2, False)
        except Exception as x:
            raise lib.Failure("%s: %s" % (kind, x))
    check(some, "no kind of damage made a flag fail")


@crashes
def main_file_damaged():
    """Commands refuse the file with a sentence, or mount and serve errors."""
    d = fresh("main")
    t = skerch.create(d, rows=ROWS, part=PART)
    keep = t.all_path + ".keep"
    shutil.copy2(t.all_path, keep)
    mnt = fresh("main-mnt")
    for kind, (off, data) in HEAP_DAMAGE.items():
        shutil.copy2(keep, t.all_path)
        for at in heaps(keep):
            patch(t.all_path, at + off, data)
        for argv in (["ls"], ["info"]):
            p = exits(tensorfs(*argv, t.all_path), (0, 1, 3),
                      "%s, %s" % (argv[0], kind))
            check(p.returncode != 3 or os.path.basename(t.all_path)
                  in p.stderr, "%s: %s" % (kind, p.stderr))
        p = exits(tensorfs("mount", t.all_path, mnt), (0, 3), "mount " + kind)
        if p.returncode:
            check(os.path.basename(t.all_path) in p.stderr, p.stderr)
            check(not lib.mount_line(mnt), "mounted all the same")
            continue
        try:
            for root, _, files in os.walk(mnt):
                for f in files:
                    try:
                        read(os.path.join(root, f))
                    except OSError as x:
                        check(x.errno in DAMAGE + (errno.ENODATA,
                                                   errno.ENOTSUP),
                              "%s: %s: %s" % (kind, f, x))
            check(os.listdir(mnt), "the mount is dead")
        finally:
            tensorfs("umount", mnt)
            lib.force_unmount(mnt)


@crashes
def more_memory_than_the_trial():
    """What fails in the trial for want of memory may crash with more of it."""
    path = os.path.join(fresh("enum"), "t.h5")
    with open("/proc/meminfo") as f:
        memory = int(f.readline().split()[1]) << 10
    # libhdf5 copies so many values of the (damaged) size from behind a buffer.
    names = {"name%d" % i: i for i in range((memory // 2 >> 32) + 1)}
    with h5py.File(path, "w") as f:
        f.create_dataset("data", (3,), h5py.enum_dtype(names, "i1"))
        f["good"] = np.arange(3)
    with open(path, "rb") as f:
        at = f.read().index(b"name0\0")
    patch(path, at - 8, b"\xff" * 4)
    for argv in ["info"], ["verify"], ["ls"]:
        exits(tensorfs(*argv, path), (0, 1, 3), argv[0])


@case
def dead_worker():
    """A worker that is killed is replaced, and nobody notices."""
    t = skerch.create(fresh("kill"), rows=ROWS, part=PART)
    with Mount(t.all_path, opts=["-o", "nothreads"]) as m:
        names = flag_names(m)
        for i in (0, 10, 20, 30):
            pid = m.pid
            zygote = helpers(pid)[0]
            for p in helpers(zygote):
                os.kill(p, signal.SIGKILL)
            equal(read(m / ("flags/samples/" + names[i])).decode().strip(),
                  t.flags[i], "flag %d" % i)
            equal(len([p for p in helpers(zygote) if lib.zombie(p)]), 0,
                  "zombies") if i else None
        check(len(helpers(zygote)) <= 2, "more than two workers")


@case
def daemon_killed():
    """Nothing is left of a daemon that dies of SIGKILL, nor of SIGTERM."""
    t = skerch.create(fresh("sigkill"), rows=ROWS, part=PART)
    for sig in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
        for foreground in (False, True):
            with Mount(t.all_path, foreground=foreground) as m:
                for name in flag_names(m)[::7]:
                    read(m / ("flags/samples/" + name))
                pids = [m.pid] + helpers(m.pid)
                check(len(pids) >= 3, "processes: %s" % pids)
                os.kill(m.pid, sig)
                check(gone(pids),
                      "left of a daemon after signal %d: %s" % (sig, [
                          p for p in pids if not lib.zombie(p)]))
                if sig != signal.SIGKILL:
                    check(lib.wait_until(lambda: not lib.mount_line(m.path),
                                         60), "still mounted")
                lib.force_unmount(m.path)


@case
def helpers_hold_nothing():
    """Helpers have no FUSE device, no pipe of the caller, no other name."""
    t = skerch.create(fresh("held"), rows=ROWS, part=PART)
    with Mount(t.all_path) as m:
        for name in flag_names(m)[::7]:
            read(m / ("flags/samples/" + name))
        found = helpers(m.pid)
        check(len(found) >= 2, "helpers: %s" % found)
        for p in found:
            with open("/proc/%d/comm" % p) as f:
                if f.read().strip() == "tensorfs-ahead":
                    continue  # test_readahead looks at what it has
            with open("/proc/%d/cmdline" % p, "rb") as f:
                check(m.path.encode() not in f.read(), "takes for the daemon")
            for fd in os.listdir("/proc/%d/fd" % p):
                try:
                    to = os.readlink("/proc/%d/fd/%s" % (p, fd))
                except FileNotFoundError:
                    continue  # closed just now
                check(to == "/dev/null" or to.startswith("socket:") or
                      to.endswith(".h5"), "helper %d holds %s" % (p, to))


@case
def changed_under_the_workers():
    """A part that changes is stale, whichever process had it open."""
    t = skerch.create(fresh("stale"), rows=ROWS, part=PART)
    with Mount(t.all_path) as m:
        names = flag_names(m)
        read(m / ("flags/samples/" + names[0]))
        same_bytes(read(m / "data/samples/000010.npy")[128:],
                   t.data[10].tobytes(), "sample")
        other = t.parts[1][2] + ".new"
        shutil.copy(t.parts[0][2], other)
        os.rename(other, t.parts[1][2])
        # The daemon looks whether a name leads to another file at most once a second.
        # sleep never returns early, and a longer sleep makes no difference.
        time.sleep(1.1)
        fails_with(errno.ESTALE,
                   lambda: read(m / ("flags/samples/" + names[10])), "flag")


@case
def few_descriptors():
    t = skerch.create(fresh("few"), rows=200, part=1)
    with Mount(t.all_path, nofile=64) as m:
        same_bytes(read(m / "data/array.bin"), t.data.tobytes(), "array.bin")
        for name in flag_names(m)[::3]:
            equal(read(m / ("flags/samples/" + name)).strip(), b"OK", name)


def main():
    global work
    work = lib.setup()
    lib.main()


if __name__ == "__main__":
    main()
