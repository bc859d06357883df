#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""epochs/E/rank-R-of-W: the order is that of torch's DistributedSampler, the files are
those of samples/."""
import contextlib
import errno
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import lib
import numpy as np
import torch
from checks import check, equal, fails_with, read
from heldlib import kept
from lib import Mount, case, exits, tensorfs
from torch.utils.data import DataLoader, Dataset, DistributedSampler, \
    get_worker_info

work = None
rng = np.random.default_rng(5)


def h5(name, **datasets):
    path = os.path.join(work, name)
    with h5py.File(path, "w") as f:
        for k, v in datasets.items():
            f[k] = v
    return path


def absent(path):
    fails_with(errno.ENOENT, lambda: os.stat(path), path)


def sampler(n, world, rank, seed, epoch, shuffle, drop_last):
    s = DistributedSampler(range(n), world, rank, shuffle, seed, drop_last)
    s.set_epoch(epoch)
    return list(s)


def check_rank(top, path, want, n):
    """A directory is the samples `want`, in this order."""
    d = "%s/epochs/%s" % (top, path)
    width = max(6, len(str(len(want) - 1)))
    equal(os.listdir(d), ["%0*d.npy" % (width, i) for i in range(len(want))], path)
    with os.scandir(d) as entries:
        inodes = [e.inode() for e in sorted(entries, key=lambda e: e.name)]
    own = ["%s/samples/%06d.npy" % (top, i) for i in want]
    equal(inodes, [os.stat(p).st_ino for p in own], path + ": inodes")
    equal(read(d + "/order.txt").decode().split(), ["%06d" % i for i in want],
          path + ": order.txt")
    for i in {0, len(want) // 2, len(want) - 1} & set(range(len(want))):
        equal(int(np.load("%s/%0*d.npy" % (d, width, i))), want[i],
              "%s: sample %d" % (path, i))
        check(os.path.isfile("%s/%0*d.npy" % (d, width, i)), "no file")


@case
def as_distributed_sampler():
    sizes = [1, 2, 3, 10, 97, 256]
    path = h5("sizes.h5", **{"n%d" % n: np.arange(n) for n in sizes})
    with Mount(path) as m:
        for k in range(60):
            n = sizes[k % len(sizes)]
            world = int(rng.integers(1, 9 if k % 5 else 300))
            rank = int(rng.integers(0, world))
            seed, epoch = (int(x) for x in rng.integers(0, 2**31, 2))
            if k % 3:
                seed, epoch = 0, k
            shuffle, drop_last = rng.random() < 0.8, rng.random() < 0.3
            options = [o for o, on in (("seed=%d" % seed, seed),
                                       ("no-shuffle", not shuffle),
                                       ("drop-last", drop_last)) if on]
            rng.shuffle(options)
            check_rank("%s/n%d" % (m.path, n), "%d/%s" % (epoch, ",".join(
                ["rank-%d-of-%d" % (rank, world)] + options)),
                sampler(n, world, rank, seed, epoch, shuffle, drop_last), n)


@case
def every_sample_once():
    path = h5("once.h5", a=np.arange(103))
    with Mount(path) as m:
        for world in (1, 4, 7, 103, 110):
            seen = []
            for rank in range(world):
                d = "%s/a/epochs/9/rank-%d-of-%d,in-turn" % (m.path, rank, world)
                got = [int(x) for x in read(d + "/order.txt").split()]
                equal(got, torch.randperm(103, generator=torch.Generator()
                      .manual_seed(9)).tolist()[rank::world], "rank %d" % rank)
                seen += got
            equal(sorted(seen), list(range(103)), "%d ranks" % world)


class Who(Dataset):
    def __len__(self):
        return 103

    def __getitem__(self, i):
        return i, get_worker_info().id


@case
def what_workers_read():
    """Of a DataLoader: batch b is read by worker b mod N."""
    path = h5("workers.h5", a=np.arange(103))
    with Mount(path) as m:
        for workers, batch, rank, world in ((2, 4, 0, 1), (3, 5, 1, 2)):
            s = DistributedSampler(range(103), world, rank)
            s.set_epoch(2)
            want = [[] for _ in range(workers)]
            for ids, by in DataLoader(Who(), batch, sampler=s,
                                      num_workers=workers, prefetch_factor=2):
                for i, w in zip(ids.tolist(), by.tolist()):
                    want[w].append(i)
            for w in range(workers):
                check_rank(m.path + "/a", "2/rank-%d-of-%d,worker-%d-of-%d,"
                           "batch=%d" % (rank, world, w, workers, batch),
                           want[w], 103)


@case
def going_on():
    path = h5("on.h5", a=np.arange(50))
    with Mount(path) as m:
        want = sampler(50, 2, 1, 0, 3, True, False)
        top = m.path + "/a/epochs/3/rank-1-of-2"
        for k in (0, 1, 24, 25):
            d = "%s/from/%d" % (top, k)
            equal(os.listdir(d), ["%06d.npy" % i for i in range(k, 25)], d)
            equal([int(np.load(d + "/" + n)) for n in os.listdir(d)], want[k:],
                  "samples from %d" % k)
            equal(read(d + "/order.txt").decode().split(),
                  ["%06d" % i for i in want[k:]], "order.txt")
        for wrong in ("26", "x", "-1", "01", "3/000002.npy", "3/from"):
            absent("%s/from/%s" % (top, wrong))


@case
def names():
    path = h5("names.h5", a=np.arange(10), s=np.float32(1), none=np.zeros((0, 3)))
    with Mount(path) as m:
        top = m.path + "/a/epochs"
        check("epochs" not in os.listdir(m.path + "/a"), "listed")
        for d in (top, top + "/4294967295"):
            equal(os.listdir(d), [], "listed in " + d)
        for wrong in ("4294967296", "-1", "01", "x", "0/rank-1-of-1",
                      "0/rank-0-of-0", "0/rank-0-of-1048577", "0/rank-0-of-2,",
                      "0/rank-0-of-2,shuffle", "0/rank-0-of-2,seed=-1",
                      "0/rank-0-of-2,drop-last,in-turn",
                      "0/rank-0-of-2,worker-2-of-2", "0/rank-0-of-2,batch=0",
                      "0/rank-0-of-2/000005.npy", "0/rank-0-of-2/0.npy",
                      "0/rank-0-of-2/000000.txt", "0/order.txt"):
            absent("%s/%s" % (top, wrong))
        for k in ("s", "none"):
            absent("%s/%s/epochs" % (m.path, k))
        d = top + "/0/rank-0-of-2"
        equal(os.path.realpath(d + "/../../../samples"), m.path + "/a/samples",
              "..")
        equal(os.stat(d).st_nlink, 1, "links")
        # Known by its path in sentences and attributes.
        os.truncate(path, 3000)
    p = exits(tensorfs("ls", path + ":a/epochs/0/rank-0-of-2"), (0, 3), "ls")
    check(p.returncode or p.stdout.split()[0] == "000000.npy", p.stdout)


@case
def texts_and_scans():
    words = np.array(["one", "two", "three"], dtype=object)
    scan = np.arange(24, dtype="u2").reshape(3, 4, 2)
    path = os.path.join(work, "more.h5")
    with h5py.File(path, "w") as f:
        f.create_dataset("words", data=words, dtype=h5py.string_dtype())
        f["scan"] = scan
    with Mount(path) as m:
        for i, k in enumerate(sampler(3, 1, 0, 0, 0, True, False)):
            equal(read("%s/words/epochs/0/rank-0-of-1/%06d.txt" % (m.path, i)),
                  words[k].encode() + b"\n", "word %d" % i)
    with Mount(path, opts=["--sample-axes=2"]) as m:
        d = m.path + "/scan/epochs/5/rank-1-of-2"
        want = sampler(12, 2, 1, 0, 5, True, False)
        equal([np.load(d + "/" + n).tolist() for n in sorted(os.listdir(d))],
              [scan.reshape(12, 2)[k].tolist() for k in want], "scan")
        equal(read(d + "/order.txt").decode().split(),
              ["%06d/%06d" % divmod(k, 4) for k in want], "order.txt")


@case
def another_epoch_reads_nothing():
    """Whatever its order, the kernel has the samples."""
    data = np.arange(40 * 5000, dtype="f4").reshape(40, 5000)
    with Mount(h5("warm.h5", a=data), opts=["-o", "prefetch=off"]) as m, \
            contextlib.ExitStack() as held:
        def one(epoch):
            d = "%s/a/epochs/%d/rank-0-of-1" % (m.path, epoch)
            order = [int(x) for x in read(d + "/order.txt").split()]
            for n, k in zip(sorted(os.listdir(d)), order):
                check(read(d + "/" + n)[128:] == data[k].tobytes(), n)

        def reads():
            p = exits(tensorfs("stats", "--json", m.path), 0, "stats")
            s = json.loads(p.stdout)
            return s["bytes_served"]
        one(0)
        # What the kernel drops in between is no fault of the second one.
        for k in range(len(data)):
            held.enter_context(kept("%s/a/samples/%06d.npy" % (m.path, k)))
        before = reads()
        check(before >= data.nbytes, "%d bytes" % before)
        one(1)
        check(reads() - before < 4096, "%d bytes more" % (reads() - before))


work = lib.setup()
lib.main()
