#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""order=: a tensor 5 x the cache is read in torch's order by a DataLoader, next to
never waits, and is what h5py reads; a wrong order does no harm.

Before each batch is read the daemon comes to rest: it has made ready all that it wants
to, so that what a reader waits for does not depend on who is faster.
"""
import os
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import numpy as np

import lib
from checks import check, equal
from lib import Mount, case, exits, tensorfs, wait_until
from quietlib import again, counted, numbers, rests
from torch.utils.data import DataLoader, Dataset, DistributedSampler

N, CHUNK = 5120, 64
work = path = data = None
TORCH = "order=torch:seed=3:world=2:rank=1:batch=16:workers=2"


class Samples(Dataset):
    """Files that the kernel forgets as soon as they were read; `direct`: each READ is a
    request, whatever the kernel has."""

    def __init__(self, top, direct):
        self.flags = os.O_RDONLY | (os.O_DIRECT if direct else 0)
        self.names = ["%s/%s" % (top, f) for f in sorted(os.listdir(top))]

    def __len__(self):
        return len(self.names)

    def __getitem__(self, i):
        fd = os.open(self.names[i], self.flags)
        b = os.read(fd, 1 << 20)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)
        got = np.frombuffer(b[128:], "<u2")
        return i, bool((got == data[i].ravel()).all())


def read_all(m, order, direct=False):
    """What changed in the counters; every sample is what it should be."""
    before = numbers(m)
    loader = DataLoader(Samples(m / "data/samples", direct), batch_size=16,
                        sampler=order, num_workers=2, collate_fn=list)
    got = []
    for batch in loader:
        got += batch
        rests(m)
    equal([i for i, _ in got], list(order), "samples that were read")
    check(all(same for _, same in got), "bytes differ from h5py's")
    after = numbers(m)
    return {k: after[k] - before.get(k, 0) for k in after}


def sampler(drop_last=False):
    return DistributedSampler(range(N), 2, 1, seed=3, drop_last=drop_last)


def is_found(m):
    counted(m, "order_found", 1)
    equal(numbers(m)["order_found"], 1, "found")


def settles(m, order, what):
    """Next to no read waits, and few chunks are decoded.  The kernel may let go of what
    it was given if others want its memory: then the case begins anew."""
    c, n = read_all(m, order), len(order)
    if c["read_requests_waited"] > n * 0.05 or c["chunks_decoded"] >= n / 3:
        again("%s: %d of %d reads waited, and %d chunks were decoded" % (
            what, c["read_requests_waited"], n, c["chunks_decoded"]))


def at_epoch(s, e):
    s.set_epoch(e)
    return s


@case
def epochs():
    with Mount(path, opts=["-o", "cache-size=8M," + TORCH]) as m:
        s = sampler()
        read_all(m, s)
        is_found(m)
        settles(m, at_epoch(s, 1), "epoch 1")
        equal(numbers(m)["order_lost"], 0, "lost")


@case
def resumed_at_epoch_7():
    with Mount(path, opts=["-o", "cache-size=8M," + TORCH]) as m:
        s = sampler()
        read_all(m, list(at_epoch(s, 7))[1000:])
        is_found(m)
        settles(m, at_epoch(s, 8), "epoch 8")


@case
def drop_last_and_no_set_epoch():
    opts = "cache-size=8M,order=torch:seed=3:world=2:rank=1:drop_last"
    with Mount(path, opts=["-o", opts + ":batch=16:workers=2"]) as m:
        s = sampler(drop_last=True)
        read_all(m, s)
        read_all(m, s)
        settles(m, s, "the same epoch again")


@case
def a_file_of_names():
    names = os.path.join(work, "names")
    order = [int(i) for i in np.random.default_rng(4).permutation(N)[:2500]]
    spell = ("%06d", "%06d.npy", "data/samples/%06d.npy", "/data/samples/%06d.npy")
    with open(names, "w") as f:
        f.writelines(spell[k % 4] % i + "\n" for k, i in enumerate(order))
    with Mount(path, opts=["-o", "cache-size=8M,order=" + names]) as m:
        read_all(m, order)
        is_found(m)
        settles(m, order, "again")


@case
def names_from_a_pipe():
    fifo = os.path.join(work, "fifo")
    os.mkfifo(fifo)
    writer = threading.Thread(target=lambda: open(fifo, "w").write(
        "".join("%06d\r\n" % i for i in range(N))))
    writer.start()
    with Mount(path, opts=["-o", "cache-size=8M,order=" + fifo]) as m:
        read_all(m, range(1000))
        is_found(m)
    writer.join()


class Logged(Mount):
    """In the foreground, with its log in a file."""

    def __enter__(self):
        self.log = os.path.join(work, "log")
        with open(self.log, "w") as f:
            self.proc = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL,
                                         stdout=f, stderr=f)
        lib._mounts.append(self)
        lib._children.append(self.proc)
        check(wait_until(lambda: lib.mount_line(self.path), 60), "no mount")
        return self

    def warnings(self):
        with open(self.log) as f:
            return f.read().count("is not how samples are read")


@case
def a_wrong_order():
    names = os.path.join(work, "other")
    with open(names, "w") as f:
        f.writelines("%06d\n" % i for i in np.random.default_rng(5).permutation(N))
    # The generator is given seed + epoch: 4 would be found, in epoch 1 of 3.
    for order in "torch:seed=1000000:batch=16:workers=2", names:
        # All of it is in the cache, so that READs are answered soon.
        opts = ["-o", "cache-size=64M,order=" + order]
        with Logged(path, opts=opts, foreground=True) as m:
            first = list(at_epoch(sampler(), 0))
            turns = (first[:500], first[500:], list(at_epoch(sampler(), 1)),
                     first[:500])
            for n, s in enumerate(turns):
                said = m.warnings()
                c = read_all(m, s, direct=True)
                check(c["read_requests"] >= len(s), "%d READs" % c["read_requests"])
                equal(c["order_found"], 0, "found")
                equal(c["order_ready"], 0, "files made ready")
                if n == 0:
                    equal(m.warnings(), 0, "said of %s after 500 reads" % order)
                if said:
                    break
            equal(m.warnings(), 1, "said so many times: " + order)


@case
def a_right_order_is_not_called_wrong():
    with Logged(path, opts=["-o", "cache-size=8M," + TORCH], foreground=True) as m:
        read_all(m, list(at_epoch(sampler(), 7))[1000:])
        is_found(m)
        read_all(m, range(N), direct=True)  # another reader's order
        equal(m.warnings(), 0, "said")


@case
def what_is_refused():
    where = os.path.join(work, "mnt")
    empty = os.path.join(work, "empty")
    wrong = os.path.join(work, "wrong")
    nul, endless = os.path.join(work, "nul"), os.path.join(work, "endless")
    os.mkdir(where)
    open(empty, "w").close()
    with open(wrong, "w") as f:
        f.write("data/samples/000000.npy\nnothing\n")
    with open(nul, "wb") as f:
        f.write(b"000000\n0000\0\n")
    with open(endless, "w") as f:
        f.write("0" * 100000)
    for order, code, says in (
            ("torch:world=2:rank=2", 2, "rank 2 is not in a world of 2"),
            ("torch:seed", 2, "seed needs a number"),
            ("torch:x=1", 2, "unknown word 'x'"),
            ("torch,prefetch=off", 2, "prefetch=off"),
            ("torch,nothreads", 2, "more than one thread"),
            (os.path.join(work, "none"), 3, "No such file"),
            (empty, 3, "the list names no file"),
            (wrong, 3, "line 2: there is no file 'nothing'"),
            (work, 3, "this is a directory"),
            ("/dev/zero", 3, "this is a device"),
            (nul, 3, "line 2 has a NUL byte"),
            (endless, 3, "line 1 is longer than 4095 bytes")):
        p = exits(tensorfs("mount", path, where, "-o", "order=" + order), code, order)
        check(says in p.stderr, "%s: %s" % (order, p.stderr))
    # Commas, where they separate nothing else.
    with Mount(path, opts=["--order=torch:seed=3,world=2,rank=1"]) as m:
        config = os.getxattr(m.path, "user.tensorfs.config").decode()
        check("order=torch:seed=3,world=2,rank=1\n" in config, config)


work = lib.setup()
path = os.path.join(work, "t.h5")
data = np.repeat(np.random.default_rng(1).integers(0, 99, (N, 64, 16), "u2"), 4,
                 axis=2)
with h5py.File(path, "w") as f:
    f.create_dataset("data", data=data, chunks=(CHUNK, 64, 64), compression="lzf")
lib.main()
