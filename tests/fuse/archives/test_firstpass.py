#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the first pass over a compressed stream decodes is not decoded again by who
reads it first, within the cache's budget, and is right however much of it was kept."""
import errno
import os
import random
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import arc
import lib
import stagelib
from arc import one, scratch, sh, some
from checks import check, equal, note, read, same_bytes
from lib import Mount, exits, memory, run, tensorfs, wait_until

MIB = 1 << 20
FILES = 300
# The zstd files are one frame, the xz files one block: nothing can begin within.
PACKERS = {"gz": ["gzip", "-1"], "zst": ["zstd", "-q", "-3"],
           "xz": ["xz", "-0", "-T1"], "bz2": ["bzip2", "-1"],
           "lz4": ["lz4", "-q", "-B5"]}

truth = {}


def sources():
    """Tars of about 24 MiB, some members of no size and some of 3 MiB."""
    r = random.Random(7)
    d = scratch("tree")
    for i in range(FILES):
        size = 3 * MIB if i % 100 == 50 else r.choice((0, 1, 511, 512, 4096,
                                                       60000, 150000))
        data = bytes(r.choices(b"abcdefgh", k=size // 2)) + \
            r.randbytes(size - size // 2)
        truth["%04d" % i] = data
        with open(os.path.join(d, "%04d" % i), "wb") as f:
            f.write(data)
    t = os.path.join(scratch("tars"), "data.tar")
    sh("tar", "-c", "--sort=name", "-f", t, "-C", d, *sorted(truth))
    with open(t, "rb") as f:
        plain = f.read()
    for ext, argv in PACKERS.items():
        with open(t + "." + ext, "wb") as f:
            f.write(sh(*argv, input=plain))
    return t


def compare(m, names):
    for n in names:
        same_bytes(read(m / n), truth[n], n)


def shuffled(seed):
    names = sorted(truth)
    random.Random(seed).shuffle(names)
    return names


def in_threads(m, seeds):
    failures = []

    def reads(seed):
        try:
            compare(m, shuffled(seed))
        except Exception as e:             # shown below, on the test's thread
            failures.append(e)
    threads = [threading.Thread(target=reads, args=(s,)) for s in seeds]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failures:
        raise failures[0]


def not_decoded(m):
    """Nothing was decoded.  Where memory is short, the kernel drops pages before they
    are read, asks for them again, and they may have to be decoded again: then this
    says nothing."""
    s = m.stats()
    again = s["bytes_served"] - sum(map(len, truth.values()))
    if again > 0:
        return note("%d bytes were asked for again" % again)
    equal(s["chunks_decoded"], 0, "chunks decoded")


def decoded_once(t):
    """The first epoch decodes nothing; without a pass before it, all."""
    with Mount(t, opts=("--cache-size=256M",)) as m:
        compare(m, sorted(truth))
        not_decoded(m)
    with Mount(t, opts=("--cache-size=256M",)) as m:
        compare(m, shuffled(1))
        check(m.stats()["chunks_decoded"] > 0, "an epoch without decoding")


def by_threads(t):
    with Mount(t, opts=("--index=none", "--cache-size=256M")) as m:
        in_threads(m, range(4))


def beyond(m):
    """Bytes in the cache and beside it that it should not have."""
    s = m.stats()
    return s["cache_bytes"] + s["cache_beside_bytes"] - s["cache_budget"]


def some_of_it(t):
    """Half of the cache holds a part only."""
    for size in some(("17M", "5M", "32M")):
        with Mount(t, opts=("--index=none", "--cache-size=" + size)) as m:
            in_threads(m, range(2))
            check(m.stats()["chunks_decoded"] > 0, "all of it was kept in " + size)
            # Some are in use, and more while files are read ahead.
            check(wait_until(lambda: beyond(m) <= 8 * MIB, 60), m.stats())


def read_by_nobody(t):
    """It counts in the cache's budget all the same, and is gone at the end."""
    with Mount(t, opts=("--index=none", "--cache-size=64M")) as m:
        before = m.stats()
        check(before["cache_beside_bytes"] > 16 * MIB, before["cache_beside_bytes"])
        if not os.environ.get("TENSORFS_SANITIZED"):
            check(memory(m.pid) < 64 * MIB + 64 * MIB, memory(m.pid))
        compare(m, ["0299", "0000"])
        after = m.stats()
        check(after["cache_beside_bytes"] < before["cache_beside_bytes"], after)
        check(after["cache_bytes"] > before["cache_bytes"], after)


def within(m):
    s = m.stats()
    return max(s["cache_bytes"], s["cache_beside_bytes"]) <= s["cache_budget"]


def family(pid):
    """The daemon's processes."""
    return [pid] + [int(p) for p in os.listdir("/proc")
                    if p.isdigit() and lib.parent(int(p)) == pid]


def memory_of(pids):
    """What they take together, in bytes: what is shared counts once."""
    n = 0
    for pid in pids:
        try:
            with open("/proc/%d/smaps_rollup" % pid) as f:
                n += sum(int(line.split()[1]) * 1024 for line in f
                         if line.startswith(("Pss_Anon:", "Pss_Shmem:")))
        except (FileNotFoundError, ProcessLookupError):
            pass  # a helper that has ended takes nothing
    return n


def given_back(t):
    """Helper processes, forked after the pass, keep no copy of it; and who reads the
    end first has all of the cache."""
    with Mount(t, opts=("--index=none", "--cache-size=48M")) as m:
        check(len(family(m.pid)) > 1, "a daemon without helpers")
        compare(m, sorted(truth, reverse=True))
        # What is in use, and read ahead, is given back when the last reader is done.
        check(wait_until(lambda: within(m), 60), m.stats())
        compare(m, shuffled(5))
        if not os.environ.get("TENSORFS_SANITIZED"):
            used = memory_of(family(m.pid))
            check(used < (48 + 64) * MIB, "%d bytes in use" % used)
    with Mount(t, opts=("--index=none", "--cache-size=17M",
                        "--prefetch=off")) as m:
        late = sorted(truth)[FILES * 2 // 3:]
        compare(m, late)
        check(m.stats()["cache_beside_bytes"] <= 17 * MIB, m.stats())


def staged(t):
    for opts in ((), ("--cache-size=8M",)):
        out = scratch("shm")
        p = exits(tensorfs("stage", "-q", "--index=none", "--to", out, *opts, t),
                  0, "stage")
        at = p.stdout.strip()
        for n in truth:
            same_bytes(read(os.path.join(at, n)), truth[n], n)
        made = stagelib.record(at, os.path.join(out, ".tensorfs-%d" % stagelib.UID))
        check((made["chunks_decoded"] == 0) == (not opts),
              "%s: %d chunks decoded" % (opts, made["chunks_decoded"]))
        exits(tensorfs("unstage", "--to", out, "--all"), 0, "unstage")


def mounted_instead(t):
    """What does not fit is mounted: the daemon has what its own pass kept."""
    with tempfile.TemporaryDirectory(dir=scratch("instead")) as to:
        exits(run("mount", "-t", "tmpfs", "-o", "size=4m", "none", to), 0,
              "a small tmpfs")
        try:
            with Mount(t, opts=("--stage=fit", "--to", to, "--index=none",
                                "--cache-size=256M")) as m:
                compare(m, shuffled(6))
                not_decoded(m)
        finally:
            exits(run("umount", to), 0, "umount of the tmpfs")


def removed(group):
    """Who dies is in it for a moment."""
    try:
        os.rmdir(group)
    except OSError as e:
        if e.errno != errno.EBUSY:
            raise
        return False
    return True


def in_a_group(t):
    """Memory that is held meanwhile is no reason to refuse: it is given up as the
    tree is written."""
    size = sum(len(d) for d in truth.values())
    limit = size * 2 + 30 * MIB
    sanitized = os.environ.get("TENSORFS_SANITIZED")
    group = None if sanitized else stagelib.memory_group(limit)
    if not group:
        note("no memory control group, or a sanitizer that takes more than it has")
        return

    def enter():
        with open(group + "/cgroup.procs", "w") as f:
            f.write("0")
    try:
        exits(tensorfs("stage", "-q", "--index=none", t, preexec=enter), 0,
              "stage of %d bytes in a group of %d" % (size, limit))
        exits(tensorfs("unstage", "--all"), 0, "unstage")
    finally:
        check(wait_until(lambda: removed(group), 60), "the group stays")


def main():
    t = sources()
    for i, ext in enumerate(PACKERS):
        one("once:" + ext, decoded_once, t + "." + ext)
        for name, f in some((("threads:", by_threads), ("part:", some_of_it),
                             ("nobody:", read_by_nobody), ("back:", given_back)), i):
            one(name + ext, f, t + "." + ext)
    for ext in some(("gz", "zst")):
        one("stage:" + ext, staged, t + "." + ext)
        one("group:" + ext, in_a_group, t + "." + ext)
        one("instead:" + ext, mounted_instead, t + "." + ext)


stagelib.private_shm()
arc.main([main])
