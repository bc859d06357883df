#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Decoded chunks in shared memory: once for all mounts, right whatever dies.

What is read is compared with what h5py reads; what lies in shared memory is looked
at by stat and statvfs.
"""
import errno
import hashlib
import itertools
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import numpy as np

import lib
import user
from checks import check, equal, fails_with, note, read, same_bytes
from lib import (Mount, case, exits, force_unmount, pids_with, run, tensorfs,
                 wait_until)
from quietlib import again, numbers
from sharedlib import KIB, MIB, Shm, settled

ROWS, PER_CHUNK = 256, 4                       # 64 chunks of 64 KiB
CHUNKS = ROWS // PER_CHUNK
SHAPE = (ROWS, 64, 128)
CHUNK_BYTES = PER_CHUNK * 64 * 128 * 2
GROUP = "/sys/fs/cgroup/memory"
SANITIZED = bool(os.environ.get("TENSORFS_SANITIZED"))

work = None
tensor = None                                  # the path of the source
truth = None                                   # and what h5py reads from it
changed = []                                   # sources that were written to


def write_tensor(path, seed, rows=ROWS):
    r = np.random.default_rng(seed)
    a = r.integers(0, 50, (rows,) + SHAPE[1:]).astype(">i2")
    with h5py.File(path, "w") as f:
        f.create_dataset("data", data=a, chunks=(PER_CHUNK,) + SHAPE[1:],
                         compression="gzip", shuffle=True)


def h5py_reads(path):
    with h5py.File(path) as f:
        return f["data"][...].astype("<i2")


def rows(m, order, want=None):
    """Read samples, and compare each."""
    want = truth if want is None else want
    for i in order:
        same_bytes(read(m / ("data/samples/%06d.npy" % i))[128:],
                   want[i].tobytes(), "sample %d" % i)


def shuffled(seed):
    order = list(range(ROWS))
    random.Random(seed).shuffle(order)
    return order


READER = """
import hashlib, os, random, sys
d, seed, n, pause = sys.argv[1], *map(int, sys.argv[2:])
order = list(range(n))
random.Random(seed).shuffle(order)
got = {}
for i in order:
    if len(got) == pause:
        print(pause, flush=True)
        sys.stdin.readline()
    with open("%s/data/samples/%06d.npy" % (d, i), "rb") as f:
        got[i] = f.read()[128:]
h = hashlib.sha256()
for i in range(n):
    h.update(got[i])
print(h.hexdigest())
"""


def start_reader(m, seed, pause=-1):
    """Reads all samples and prints a hash of them.  After `pause` of them it waits for
    a line of its standard input."""
    p = subprocess.Popen([sys.executable, "-c", READER, m.path, str(seed),
                          str(ROWS), str(pause)], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lib._children.append(p)
    if pause >= 0:
        equal(p.stdout.readline(), "%d\n" % pause, "the reader that waits")
    return p


def digest(a):
    return hashlib.sha256(a.tobytes()).hexdigest()


def total(mounts, key):
    return sum(m.stats()[key] for m in mounts)


def all_was_shared(*mounts):
    """Else the case begins anew: where memory is short, or another process stands still
    for long, a chunk may be decoded for one mount alone.  A chunk is counted as added
    when other mounts may have it already."""
    def apart():
        return total(mounts, "chunks_decoded") - total(mounts, "shared_added")

    wait_until(lambda: apart() == total(mounts, "shared_refused"), 60)
    n, refused = apart(), total(mounts, "shared_refused")
    check(n >= refused, "%d chunks refused, and %d decoded alone" % (refused, n))
    if n:
        again("%d chunks decoded for one mount alone, %d of them refused" % (
            n, refused))


@case
def eight_mounts_decode_once():
    with Shm() as shm:
        mounts = [Mount(tensor, opts=shm.opts()) for _ in range(8)]
        try:
            for m in mounts:
                m.__enter__()
            readers = [start_reader(m, i) for i, m in enumerate(mounts)]
            for p in readers:
                out, err = p.communicate()
                equal((p.returncode, out.strip(), err), (0, digest(truth), ""),
                      "a reader")
            had = sum(total(mounts, "shared_" + k) for k in ("hits", "taken"))
            check(total(mounts, "chunks_decoded") + had >= 8 * CHUNKS,
                  "only %d had from others" % had)
            all_was_shared(*mounts)
            equal(total(mounts, "chunks_decoded"), CHUNKS, "chunks decoded")
            equal(total(mounts, "shared_added"), CHUNKS, "chunks added")
            equal(had, 7 * CHUNKS, "chunks had from others")
            # Memory, counted once: the files of all chunks, a page more each.
            equal(shm.blocks(), CHUNKS * (CHUNK_BYTES + 4096), "bytes of memory")
            if shm.own:
                v = os.statvfs(shm.path)
                used = (v.f_blocks - v.f_bfree) * v.f_frsize
                check(used <= shm.blocks() + 64 * KIB,
                      "the tmpfs holds %d bytes for %d" % (used, shm.blocks()))
            for m in mounts:
                s = m.stats()
                equal(s["shared_bytes"], shm.blocks(), "shared_bytes")
                equal(s["shared_entries"], CHUNKS, "shared_entries")
                check(s["cache_bytes"] < CHUNK_BYTES,
                      "%d bytes of its own" % s["cache_bytes"])
        finally:
            for m in mounts:
                m.__exit__(None, None, None)


@case
def a_new_mount_decodes_nothing():
    with Shm() as shm:
        with Mount(tensor, opts=shm.opts()) as m:
            rows(m, shuffled(1))
            all_was_shared(m)
            equal(m.stats()["chunks_decoded"], CHUNKS, "chunks decoded")
        equal(len(shm.names()), CHUNKS, "entries that outlive the mount")
        for n in shm.names():
            st = os.stat(os.path.join(shm.chunks, n))
            equal(stat.S_IMODE(st.st_mode), 0o400, "mode of an entry")
        equal(stat.S_IMODE(os.stat(shm.chunks).st_mode), 0o700, "its directory")
        with Mount(tensor, opts=shm.opts()) as m:
            rows(m, shuffled(2))
            s = m.stats()
            equal(s["chunks_decoded"], 0, "chunks decoded")
            equal(s["shared_hits"], CHUNKS, "shared_hits")


@case
def without_it_nothing_is_left():
    def ours():
        return sorted(n for n in os.listdir("/dev/shm")
                      if lib.ROOT or n == "tensorfs-%d" % os.geteuid())

    # Others have theirs in the machine's.
    if lib.ROOT:
        exits(run("mount", "-t", "tmpfs", "none", "/dev/shm"), 0, "a /dev/shm")
    try:
        before = ours()
        with Mount(tensor) as m:
            rows(m, range(8))
            check("shared_bytes" not in m.stats(), "stats has shared_bytes")
        equal(ours(), before, "/dev/shm")
    finally:
        if lib.ROOT:
            exits(run("umount", "-l", "/dev/shm"), 0, "umount of /dev/shm")


@case
def within_the_limit():
    size = 10 * (CHUNK_BYTES + 4096)
    with Shm() as shm:
        # Whoever reads ahead changes what is being counted.
        with Mount(tensor, opts=shm.opts(size, "prefetch=off")) as a, \
                Mount(tensor, opts=shm.opts(size, "prefetch=off",
                                            "cache-size=1M")) as b:
            for seed in range(lib.rounds(3)):
                for i in shuffled(seed):
                    rows(random.choice((a, b)), [i])
                    check(shm.blocks() <= size,
                          "%d of %d bytes" % (shm.blocks(), size))
            if len(shm.names()) < 5:
                again("it keeps only %s" % shm.names())


@case
def what_is_mapped_idly_is_given_up():
    size = 10 * (CHUNK_BYTES + 4096)
    with Shm() as shm:
        # What is read ahead may come first, and be there in place of the last one.
        with Mount(tensor, opts=shm.opts(size, "prefetch=off")) as idle, \
                Mount(tensor, opts=shm.opts(size, "prefetch=off",
                                            "cache-size=1M")) as m:
            rows(idle, range(10 * PER_CHUNK))
            all_was_shared(idle)
            equal(idle.stats()["shared_mapped_bytes"], size, "mapped")
            # Again and again, more than its own cache has.
            rest = itertools.cycle(range(10 * PER_CHUNK, ROWS))

            def added():
                i = next(rest)
                forget(m / ("data/samples/%06d.npy" % i))
                rows(m, [i])
                return numbers(m)["shared_added"]

            # A sanitizer can take so long that it is idle by now.
            if not SANITIZED:
                equal(added(), 0, "added while all is in use")
                equal(m.stats()["shared_refused"], 1, "refused")
            check(wait_until(lambda: added() > 0, 60), "nothing was given up")
            check(numbers(idle)["shared_mapped_bytes"] < size, "it is mapped still")
            check(shm.blocks() <= size, "beyond the limit")


def forget(path):
    """The kernel drops the pages of a file, if it has any."""
    fd = os.open(path, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


@case
def a_full_tmpfs_is_no_error():
    if not lib.ROOT:
        note("only root can make a small tmpfs")
        return
    with Shm(2 * MIB) as shm:
        with open(os.path.join(shm.path, "others"), "wb") as f:
            f.write(bytes(MIB))
        with Mount(tensor, opts=shm.opts(64 * MIB, "prefetch=off"),
                   foreground=True) as m:
            rows(m, shuffled(3))
            s = m.stats()
            equal(s["shared_budget"], 2 * MIB * 3 // 4, "three quarters of it")
            check(s["shared_refused"] > 0, "nothing was refused")
            # A quarter stays free, however much others have taken.
            check(shm.blocks() <= 2 * MIB // 4, "%d bytes" % shm.blocks())
        with Mount(tensor, opts=shm.opts(64 * MIB, "prefetch=off")) as m:
            # Really full, to the last byte, while it works.
            with open(os.path.join(shm.path, "more"), "wb",
                      buffering=0) as f:
                try:
                    while f.write(bytes(4096)):
                        pass
                except OSError as e:
                    equal(e.errno, errno.ENOSPC, "filling it")
            rows(m, shuffled(4))
            equal([n for n in shm.names() if n.endswith(".part")], [],
                  "left behind")


@case
def tmpfs_of_few_inodes():
    """ENOSPC at other places than the usual one."""
    if not lib.ROOT:
        note("only root can make a small tmpfs")
        return
    with Shm() as shm:
        exits(run("mount", "-o", "remount,nr_inodes=9", shm.path), 0,
              "remount")
        with Mount(tensor, opts=shm.opts()) as m:
            rows(m, shuffled(5))
            check(m.stats()["shared_refused"] > 0, "nothing was refused")


@case
def a_group_that_is_short_of_memory():
    """It stops adding before the group has to be killed for it."""
    if not has_groups():
        note("no memory cgroups of version 1 to make here")
        return
    if SANITIZED:
        note("a sanitizer takes more memory than the group has")
        return
    group = os.path.join(GROUP, "tensorfs-test-%d" % os.getpid())
    os.mkdir(group)

    def number(name):
        return int(read(os.path.join(group, name)))

    def enter():
        with open(group + "/cgroup.procs", "w") as f:
            f.write(str(os.getpid()))

    try:
        with Shm() as shm:
            src = where("memory/large.h5")
            want = h5py_reads(src)
            m = Mount(src, opts=shm.opts(48 * MIB, "cache-size=1M",
                                         "threads=2", "prefetch=off"))
            lib._mounts.append(m)
            try:
                exits(run(*m.argv, preexec=enter), 0, "mount in a group")
                limit = number("memory.usage_in_bytes") + 24 * MIB
                with open(group + "/memory.limit_in_bytes", "w") as f:
                    f.write(str(limit))
                for i in list(range(6 * ROWS)) + list(range(0, 6 * ROWS, 3)):
                    rows(m, [i], want)
                s, most = m.stats(), number("memory.max_usage_in_bytes")
                note("a group of %d KiB: %d shared, at most %d in use" % (
                    limit >> 10, s["shared_bytes"] >> 10, most >> 10))
                equal(number("memory.failcnt"), 0, "times it hit the limit")
                check(s["shared_bytes"] < 14 * MIB,
                      "%d bytes shared" % s["shared_bytes"])
                if s["shared_bytes"] <= MIB:
                    again("%d bytes shared" % s["shared_bytes"])
            finally:
                m.__exit__(None, None, None)
    finally:
        wait_until(lambda: not open(group + "/cgroup.procs").read(), 60)
        os.rmdir(group)


@case
def a_quota_is_no_error():
    """EDQUOT: a tmpfs that gives each ordinary user 1 MiB."""
    if not lib.ROOT:
        note("only root can make a small tmpfs")
        return
    with Shm() as shm:
        p = run("mount", "-t", "tmpfs", "-o", "mode=1777,size=64m,usrquota,"
                "usrquota_block_hardlimit=1m", "none", shm.path)
        if p.returncode:
            note("this kernel has no quotas on tmpfs")
            return
        try:
            with_nobody(shm, quota)
        finally:
            exits(run("umount", shm.path), 0, "umount of the tmpfs")


def quota(stats):
    check(stats["shared_bytes"] <= MIB, "%d bytes" % stats["shared_bytes"])
    check(stats["shared_refused"] > 0, "nothing was refused")
    if not stats["shared_bytes"]:
        again("nothing was shared")


def write_version(path, seed):
    """Other contents with the same mtime, which so says nothing of the change."""
    write_tensor(path, 100 + seed)
    os.utime(path, ns=(10**18, 10**18))


@case
def a_changed_source_is_never_stale():
    src = where("changing.h5")
    if changed:                  # by this case, which begins anew
        write_version(src, 0)
        settled(src)
    with Shm() as shm:
        for seed in range(3 if lib.full() else 2):
            want = h5py_reads(src)
            with Mount(src, opts=shm.opts()) as m:
                rows(m, shuffled(seed), want)
                if seed != 1:
                    all_was_shared(m)
            changed.append(src)
            write_version(src, seed + 1)
            if seed and lib.full():        # 1 is read at once, 2 later
                settled(src)


@case
def a_source_that_changes_in_place():
    src = where("in-place.h5")
    with Shm() as shm:
        with Mount(src, opts=shm.opts()) as m:
            rows(m, range(ROWS))
        with Mount(src, opts=shm.opts(48 * MIB, "prefetch=off")) as m:
            rows(m, range(4))
            with open(src, "r+b") as f:
                f.seek(-1, 2)
                f.write(b"x")
            fails_with(errno.ESTALE,
                       lambda: read(m / "data/samples/000200.npy"),
                       "a chunk that is there, of a source that changed")


@case
def a_source_that_is_gone():
    src = where("going.h5")
    with Shm() as shm:
        with Mount(src, opts=shm.opts()) as m:
            rows(m, range(ROWS))
        with Mount(src, opts=shm.opts(48 * MIB, "prefetch=off")) as m:
            rows(m, range(4))
            os.unlink(src)
            # As with any open file: what the daemon has open it reads on.
            rows(m, range(4, ROWS))


@case
def versions_of_an_element_are_apart():
    with Shm() as shm:
        with Mount(tensor, opts=shm.opts()) as m:
            rows(m, range(ROWS))
        with Mount(tensor, opts=shm.opts(48 * MIB, "dtype-order=source")) as m:
            rows(m, range(ROWS), truth.astype(">i2"))
            all_was_shared(m)
            equal(m.stats()["chunks_decoded"], CHUNKS, "chunks decoded")


@case
def damaged_entries_are_made_anew():
    with Shm() as shm:
        with Mount(tensor, opts=shm.opts()) as m:
            rows(m, range(ROWS))
            all_was_shared(m)
        for k, n in enumerate(shm.names()[:3]):
            path = os.path.join(shm.chunks, n)
            os.chmod(path, 0o600)
            with open(path, "r+b") as f:
                if k == 0:
                    f.truncate(CHUNK_BYTES // 2)
                else:
                    f.seek((CHUNK_BYTES - 2) * (k - 1))
                    f.write(b"\xaa")
        with Mount(tensor, opts=shm.opts()) as m:
            rows(m, range(ROWS))
            all_was_shared(m)
            s = m.stats()
            equal(s["shared_damaged"], 3, "shared_damaged")
            equal(s["chunks_decoded"], 3, "chunks decoded")


# ---- what is no HDF5, and what only libhdf5 can do ---------------------------

def twice(src, opts, look):
    """Read all through two mounts: the second one decodes nothing."""
    with Shm() as shm:
        for n in range(2):
            with Mount(src, opts=shm.opts() + tuple(opts)) as m:
                look(m)
                s = m.stats()
                if s["shared_refused"]:
                    again("%d chunks refused" % s["shared_refused"])
                check(s["shared_added" if n == 0 else "shared_hits"] > 0,
                      "nothing was shared: %s" % s)
        equal(s["chunks_decoded"], 0, "chunks decoded by the second mount")
        equal(s["shared_added"], 0, "added by the second mount")


def contents():
    r = np.random.default_rng(7)
    return {"f%02d" % i: r.integers(0, 9, 90000 + i * 777).astype("u1").tobytes()
            for i in range(40)}


def pack(name, d, argv):
    exits(run("sh", "-c", argv, "sh", where(name), where(d)), 0, name)


def make_packed():
    os.makedirs(where("tree"))
    for name, b in contents().items():
        with open(where("tree/" + name), "wb") as f:
            f.write(b)
    pack("a.tar.gz", "tree", 'tar -C "$2" -c . | gzip -1 > "$1"')
    pack("a.tar.zst", "tree", 'tar -C "$2" -c . | zstd -1 -q > "$1"')
    pack("a.tar.xz", "tree", 'tar -C "$2" -c . | xz -0 > "$1"')
    pack("a.sqfs", "tree", 'mksquashfs "$2" "$1" -quiet -no-progress')
    os.mkdir(where("outer"))
    shutil.copy(where("a.sqfs"), where("outer"))
    pack("outer.tar.gz", "outer", 'tar -C "$2" -c . | gzip -1 > "$1"')


def packed(name):
    want = contents()

    def look(m):
        for k, v in want.items():
            same_bytes(read(m / k), v, k)
    lib.attempt(twice, where(name), ("-o", "index=" + work), look)


@case
def windows_of_streams():
    for name in "a.tar.gz", "a.tar.zst", "a.tar.xz":
        packed(name)


@case
def blocks_of_squashfs():
    packed("a.sqfs")


@case
def an_archive_in_a_stream():
    """Squashfs inside of gzip: neither what is decoded first nor second is
    decoded again."""
    want = contents()
    with Shm() as shm:
        for n in range(2):
            with Mount(where("outer.tar.gz"), opts=shm.opts() +
                       ("-o", "recursive,index=" + work)) as m:
                for k, v in want.items():
                    same_bytes(read(m / ("a.sqfs/" + k)), v, k)
                s = m.stats()
        if s["shared_refused"]:
            again("%d chunks refused" % s["shared_refused"])
        check(s["shared_hits"] > 0, "nothing was shared: %s" % s)


def odd_numbers():
    return np.random.default_rng(3).integers(-8000, 8000, (64, 64, 64)).astype("<i4")


def make_odd():
    odd = h5py.h5t.STD_I32LE.copy()
    odd.set_size(3)
    with h5py.File(where("odd.h5"), "w") as f:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((8, 64, 64))
        plist.set_deflate(4)
        d = h5py.h5d.create(f.id, b"data", odd, h5py.h5s.create_simple((64, 64, 64)),
                            plist)
        d.write(h5py.h5s.ALL, h5py.h5s.ALL, odd_numbers())


@case
def what_only_libhdf5_decodes():
    def look(m):
        same_bytes(np.load(m / "data/array.npy").tobytes(), odd_numbers().tobytes(),
                   "it")
    lib.attempt(twice, where("odd.h5"), (), look)


# ---- places ------------------------------------------------------------------

@case
def places_that_are_refused():
    mnt = os.path.join(work, "refused")
    os.mkdir(mnt)

    def refused(base, word):
        p = tensorfs("mount", "-o", "shm-cache=16M,shm-dir=" + base, tensor,
                     mnt)
        force_unmount(mnt)
        exits(p, 5, "mount with shm-dir=" + base)
        check(word in p.stderr, "stderr does not say %r: %s" % (word, p.stderr))

    with Shm() as shm:
        home = os.path.dirname(shm.chunks)
        other = os.path.join(shm.path, "other")
        os.mkdir(other)
        os.symlink(other, home)
        refused(shm.path, "symlink")
        equal(os.listdir(other), [], "what is behind the symlink")
        os.unlink(home)
        if lib.ROOT:
            os.mkdir(home)
            os.chown(home, 65534, 65534)
            refused(shm.path, "another user")
            os.rmdir(home)
        with open(home, "w"):
            pass
        refused(shm.path, "not a directory")
        os.unlink(home)
        os.mkdir(home, 0o700)
        os.symlink(other, shm.chunks)
        refused(shm.path, "symlink")
        os.unlink(shm.chunks)
        os.chmod(home, 0o777)
        refused(shm.path, "other users may write")
        os.chmod(home, 0o700)
        refused(os.path.join(shm.path, "missing"), "missing")
    refused(work, "memory")


def with_nobody(shm, look):
    """Mount and read everything as an ordinary user; look at the stats."""
    prog, src, mnt = where("tensorfs-for-all"), where("for-all.h5"), where("nobodys")
    if not os.path.exists(mnt):
        shutil.copy(lib.TENSORFS, prog)
        os.chmod(work, 0o755)
        os.mkdir(mnt)
        os.chown(mnt, 65534, 65534)
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    try:
        exits(run(*nobody, prog, "mount", *shm.opts(), src, mnt), 0,
              "mount as an ordinary user")
        p = run(*nobody, "cat", mnt + "/data/array.npy", text=False)
        exits(p, 0, "reading as an ordinary user")
        same_bytes(p.stdout[128:], truth.tobytes(), "what it read")
        p = run(*nobody, prog, "stats", "--json", mnt)
        exits(p, 0, "stats as an ordinary user")
        look(json.loads(p.stdout))
        exits(run(*nobody, prog, "umount", mnt), 0, "umount")
    finally:
        force_unmount(mnt)
        wait_until(lambda: not pids_with(mnt), 60)


@case
def users_are_apart():
    if not lib.ROOT:
        note("only root can be two users")
        return

    def look(s):
        equal(s["shared_hits"], 0, "shared_hits")
        if s["shared_refused"]:
            again("%d chunks refused" % s["shared_refused"])
        equal(s["shared_added"], CHUNKS, "shared_added")

    with Shm() as shm:
        with Mount(tensor, opts=shm.opts()) as m:
            rows(m, range(ROWS))
            all_was_shared(m)
        with_nobody(shm, look)
        theirs = os.path.join(shm.path, "tensorfs-65534")
        equal(stat.S_IMODE(os.stat(theirs).st_mode), 0o700, "its mode")
        equal(len(shm.names()), CHUNKS, "root's own")


# ---- dying -------------------------------------------------------------------

@case
def a_stopped_daemon_stops_nobody():
    """In the full tier it is stopped while it makes a chunk, for which the other one
    waits some seconds."""
    with Shm() as shm:
        with Mount(tensor, opts=shm.opts()) as a, \
                Mount(tensor, opts=shm.opts()) as b:
            pid = a.pid
            reader = start_reader(a, 9, 4)
            reader.stdin.write("\n")
            reader.stdin.flush()
            os.kill(pid, signal.SIGSTOP)
            while lib.full() and reader.poll() is None and \
                    not any(n.endswith(".part") for n in shm.names()):
                os.kill(pid, signal.SIGCONT)
                os.kill(pid, signal.SIGSTOP)
            try:
                rows(b, shuffled(10))
            finally:
                os.kill(pid, signal.SIGCONT)
            out, err = reader.communicate()
            equal((out.strip(), err), (digest(truth), ""), "the other reader")


@case
def killed_at_any_time():
    """Again and again a daemon of three dies while readers read through all."""
    rng = random.Random(11)
    kills = broken = 0
    size = 40 * (CHUNK_BYTES + 4096)
    with Shm() as shm:
        def mount(*pause):
            m = Mount(tensor, opts=shm.opts(size, "cache-size=1M", "threads=2"))
            m.__enter__()
            return m, start_reader(m, rng.random().__hash__() % 1000, *pause)

        def finish(m, p, dead):
            out, err = p.communicate("\n")
            if p.returncode == 0:
                equal(out.strip(), digest(truth), "what was read")
            else:
                check(dead, "a reader failed: " + err)
            m.__exit__(None, None, None)
            return p.returncode != 0

        def kill(m, p):
            os.kill(m.pid, signal.SIGKILL)
            return finish(m, p, True)

        # One reader has certainly not read all when its daemon dies.
        check(kill(*mount(ROWS // 2)), "a reader read on without its daemon")
        live = [mount() for _ in range(3)]
        try:
            while kills < (lib.rounds(200) if lib.full() else 20):
                i, reads = rng.randrange(3), rng.randrange(ROWS // 4)
                m, p = live[i]
                # The kernel may have so much of it that there are never so many.
                wait_until(lambda: p.poll() is not None or
                           numbers(m)["read_requests"] >= reads, 60, 0.001)
                kills += 1
                broken += kill(m, p)
                live[i] = mount()
        finally:
            for m, p in live:
                finish(m, p, False)
        note("%d daemons killed, %d readers cut off" % (kills, broken))
        with Mount(tensor, opts=shm.opts(size, "prefetch=off")) as m:
            rows(m, shuffled(12))
            s = m.stats()
            equal(s["shared_damaged"], 0, "damaged entries")
            equal(s["shared_bytes"], shm.blocks(), "what the ledger says")
            check(shm.blocks() <= size, "beyond the limit")
        equal([n for n in shm.names() if n.endswith(".part")], [],
              "left behind")


@case
def listed_and_removed():
    """staged shows the chunks, unstage --chunks removes them, not under readers."""
    with Shm() as shm:
        def tfs(*argv):
            return run(lib.TENSORFS, *argv, "--to", shm.path)
        equal(json.loads(exits(tfs("staged", "--json"), 0, "staged").stdout),
              [], "what is staged")
        with Mount(tensor, opts=shm.opts()) as m:
            rows(m, range(ROWS))
            all_was_shared(m)
            item, = json.loads(exits(tfs("staged", "--json"), 0,
                                     "staged").stdout)
            equal((item["name"], item["files"], item["in_use"]),
                  (".chunks", len(shm.names()), True), "staged")
            exits(tfs("unstage", "--chunks"), 0, "unstage")
            equal(shm.names(), [], "chunks")
            rows(m, shuffled(1))
        exits(tfs("unstage", "--chunks"), 0, "unstage")
        equal(os.listdir(shm.path), [], "left")
        exits(tfs("unstage", "--chunks"), 0, "unstage of nothing")


def where(name):
    return os.path.join(work, name)


def has_groups():
    return lib.ROOT and os.path.exists(GROUP + "/memory.limit_in_bytes")


def start():
    """All sources are made at once, so that they have to settle only once."""
    global work, tensor, truth
    user.open_fuse_to_all()
    work = lib.setup()
    tensor = where("t.h5")
    write_tensor(tensor, 1)
    truth = h5py_reads(tensor)
    for name in "in-place.h5", "going.h5", "for-all.h5":
        shutil.copy(tensor, where(name))
    os.chmod(where("for-all.h5"), 0o644)
    write_version(where("changing.h5"), 0)
    make_packed()
    make_odd()
    if has_groups() and not SANITIZED:
        # In memory of ours: what the group reads of it is not the group's.
        os.mkdir(where("memory"))
        exits(run("mount", "-t", "tmpfs", "none", where("memory")), 0, "a tmpfs")
        write_tensor(where("memory/large.h5"), 2, 6 * ROWS)       # 24 MiB
    settled(*(where(n) for n in os.listdir(work)))


start()
lib.main()
