# SPDX-License-Identifier: BSD-2-Clause
"""What the daemon does of its own accord, measured for `suite`: what it keeps after
a million requests, and what it decodes before it is asked."""
import contextlib
import fcntl
import os
import random
import subprocess
import tempfile
import termios
import time

import h5py
import numpy as np

import report
import samples
from contenders import warm_up
from lib import (MIB, Mount, decode_rate, export_chunks, fewest_decodes, median,
                 output, say, seconds)
from workloads import race, turns


def write_tensor(path, rows, columns, each, seed=8):
    """Compressible numbers, `each` rows a chunk; bytes of a chunk."""
    rng = np.random.default_rng(seed)
    base = rng.poisson(9, (each, columns)).astype("<f4")
    with h5py.File(path, "w") as f:
        d = f.create_dataset("data", (rows, columns), "<f4",
                             chunks=(each, columns), compression="gzip",
                             compression_opts=4, shuffle=True)
        for i in range(0, rows, each):
            d[i:i + each] = np.roll(base, i // each, 1)[:rows - i]
    return each * columns * 4


# ---- a million requests ----------------------------------------------------------

XATTRS = ["user.tensorfs.shape", "user.tensorfs.source", "user.tensorfs.chunks",
          "user.none"]


def ask(mnt, rows, seed, times):
    """So many requests of all kinds that the kernel does not answer itself."""
    rng = random.Random(seed)
    names = ["%s/t/data/samples/%06d.npy" % (mnt, i) for i in range(rows)]
    buf = bytearray(65536)

    def read():
        fd = os.open(rng.choice(names), os.O_RDONLY | os.O_DIRECT)
        os.preadv(fd, [buf], rng.randrange(4096))
        os.close(fd)

    def array():
        fd = os.open(mnt + "/t/data/array.npy", os.O_RDONLY | os.O_DIRECT)
        os.preadv(fd, [buf], rng.randrange(rows * 4096))
        os.close(fd)

    def member():
        fd = os.open("%s/a/m%04d" % (mnt, rng.randrange(1000)),
                     os.O_RDONLY | os.O_DIRECT)
        os.preadv(fd, [buf], 0)
        os.close(fd)

    def nobody():
        with contextlib.suppress(FileNotFoundError):
            os.stat("%s/t/data/samples/x%d" % (mnt, rng.getrandbits(60)))

    def attribute():
        with contextlib.suppress(OSError):
            os.getxattr(rng.choice(names), rng.choice(XATTRS))

    def state():
        os.getxattr(mnt, "user.tensorfs.stats")

    def terminal():
        fd = os.open(rng.choice(names), os.O_RDONLY)
        with contextlib.suppress(OSError):
            fcntl.ioctl(fd, termios.TCGETS, bytes(64))
        os.close(fd)

    def room():
        os.statvfs(mnt)

    def names_of():
        os.listdir("%s/t/data/blocks" % mnt)
    common = [read, array, member, nobody, attribute, terminal, room]
    for n in range(times):
        rng.choice(common)()
        if n % 1000 == 0:
            state()
            names_of()
    return times


def leaks(a):
    total, rows = (30000 if a.quick else 1000000), 20000
    tensor, tar = (os.path.join(a.tmp, n) for n in ("t.h5", "a.tar"))
    write_tensor(tensor, rows, 1024, 64)
    with tempfile.TemporaryDirectory(dir=a.tmp) as tree:
        for i in range(1000):
            with open("%s/m%04d" % (tree, i), "wb") as f:
                f.write(os.urandom(3000 + i))
        subprocess.run(["tar", "-cf", tar, "-C", tree, "."], check=True)

    def some(n, seed):
        race(2, lambda r: lambda: ask(a.mnt, rows, seed + r, n // 2))

    def requests():
        return sum(v for k, v in m.stats().items() if k.endswith("_requests"))
    with Mount(a.tensorfs, "t=" + tensor, a.mnt, "--cache-size=16M",
               "--index=none", "a=" + tar) as m:
        say("leaks: requests before")
        some(total // 5, 1)
        before, asked = m.resident()[0], requests()
        say("leaks: %d requests" % total)
        took = seconds(lambda: some(total, 3))
        after, asked = m.resident()[0], requests() - asked
    yield {"step": "leaks", "what": "resident after %d more requests of all kinds"
           % asked, "ours": "%.1f MiB; %.0f requests/s" % (
               after / MIB, asked / took),
           "peer": "before: %.1f MiB" % (before / MIB),
           "ratio": [after / before], "spread": None, "goal": "<= 1.05",
           "met": after <= 1.05 * before, "memory": None}


# ---- prefetch ----------------------------------------------------------------------

def read_all(names):
    def work():
        buf, total = bytearray(1 << 20), 0
        for name in names:
            fd = os.open(name, os.O_RDONLY)
            while True:
                got = os.readv(fd, [buf])
                total += got
                if not got:
                    break
            os.close(fd)
        return total
    return work


def shares(names, readers):
    """Each reader every so-manieth; bytes a second."""
    took, numbers = race(readers, lambda r: read_all(names[r::readers]))
    return sum(numbers) / took / 1e6


def walk(top):
    return sorted(os.path.join(d, f) for d, _, files in os.walk(top)
                  for f in files)


class Course:
    """How the files of a mount are read; each says how many MB a second it were."""

    def __init__(self, seed):
        self.rng = random.Random(seed)

    def shuffled(self, top, readers):
        names = walk(top)
        self.rng.shuffle(names)
        return shares(names, readers)

    def in_order(self, top, readers):
        return shares(walk(top), readers)

    def every_eighth(self, top, readers):
        return shares(walk(top)[::8], readers)

    def some(self, top, readers):
        """A tenth of them, at random: what is read ahead in vain costs most here."""
        names = walk(top)
        return shares(self.rng.sample(names, len(names) // 10), readers)

    def again(self, top, readers):
        """One file again and again, which the kernel forgets each time."""
        name = walk(top)[0]

        def work():
            total = 0
            for _ in range(5000):
                fd = os.open(name, os.O_RDONLY)
                total += len(os.read(fd, 1 << 20))
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(fd)
            return total
        took, numbers = race(readers, lambda r: work)
        return sum(numbers) / took / 1e6

    def only_stat(self, top, readers):
        """Attributes alone; a size counts as if it had been read."""
        took, numbers = race(readers, lambda r: lambda: sum(
            os.stat(n).st_size for n in walk(top)))
        return sum(numbers) / took / 1e6


COURSES = [
    ("shuffled", "all, shuffled", (1, 2, 8)),
    ("in_order", "all, in order of names", (1, 2, 8)),
    ("every_eighth", "every eighth", (1, 8)),
    ("some", "a tenth at random", (1, 2)),
    ("again", "one again and again", (1,)),
    ("only_stat", "attributes alone", (1,))]


def prefetch(a):
    """The first epoch of a mount with prefetch=on against off."""
    if "--prefetch" not in output(a.tensorfs, "mount", "--help"):
        a.leave_out("prefetch", "this tensorfs has no option of that name")
        return
    files, rows = (1500, 2000) if a.quick else (20000, 20000)
    tree, image, tensor = (os.path.join(a.tmp, n)
                           for n in ("tree", "tree.sqfs", "tensor.h5"))
    say("prefetch: writing %d files and %d samples" % (files, rows))
    samples.write_tree(tree, files, samples.text)
    samples.write_archive(tree, image, "sqfs-zstd")
    write_tensor(tensor, rows, 4096, 64)
    for source, top, what in ((image, "", "%d files of a squashfs image" % files),
                              (tensor, "data/samples", "%d samples" % rows)):
        for how, said, numbers in COURSES:
            for readers in numbers:
                yield prefetch_row(a, source, top, how, readers, "%s, %s, %d reader%s" % (
                    what, said, readers, "s" * (readers > 1)))


def prefetch_row(a, source, top, how, readers, what):
    def one(value):
        def f(n):
            warm_up(source)
            with Mount(a.tensorfs, source, a.mnt, "--prefetch=" + value):
                return {"": getattr(Course(n), how)(os.path.join(a.mnt, top),
                                                    readers)}
        return f
    got = turns(max(a.rounds, 3), {v: one(v) for v in ("on", "off")})
    return report.row("prefetch", "first epoch, " + what, got["on", ""],
                      "prefetch=off", got["off", ""], "MB/s", ">= 0.97")


# ---- an order that is known ------------------------------------------------------

def randperm(n, seed):
    """torch.randperm of a generator with this seed, for n below 2^32 / 20."""
    bits = np.random.MT19937()
    bits._legacy_seeding(seed)
    raw, p = bits.random_raw(n), list(range(n))
    for i in range(n - 1):
        j = i + int(raw[i]) % (n - i)
        p[i], p[j] = p[j], p[i]
    return p


class Epoch:
    """Samples in torch's order, read by the workers of a loader."""
    BATCH, WORKERS = 16, 2

    def __init__(self, a, order):
        self.a, self.order = a, order

    def worker(self, r, step):
        """Its batches; `step` seconds pass after each.  How many bytes it read."""
        top = self.a.mnt + "/data/samples"
        batches = [self.order[i:i + self.BATCH]
                   for i in range(0, len(self.order), self.BATCH)]
        mine = batches[r::self.WORKERS]

        def work():
            buf, total = bytearray(1 << 20), 0
            for batch in mine:
                for i in batch:
                    fd = os.open("%s/%06d.npy" % (top, i), os.O_RDONLY)
                    total += os.readv(fd, [buf])
                    os.close(fd)
                if step:
                    time.sleep(step)
            return total
        return work

    def run(self, m, step):
        """Samples a second, per cent of the reads that did not wait for a chunk
        to be decoded, and how many chunks were."""
        os.listdir(self.a.mnt + "/data/samples")
        took, _ = race(self.WORKERS, lambda r: self.worker(r, step))
        n, stats = len(self.order), m.stats()
        return {"rate": n / took, "chunks": stats["chunks_decoded"],
                "ready": 100 * (1 - stats["read_requests_waited"] / n)}


def known_order(a):
    """The first epoch of a tensor five times the cache, in DistributedSampler's
    order: with `order`, without, and with nothing decoded ahead."""
    if "--order" not in output(a.tensorfs, "mount", "--help"):
        a.leave_out("order", "this tensorfs has no option of that name")
        return
    rows, columns, each = (2048 if a.quick else 16384), 4096, 64
    path, stored = (os.path.join(a.tmp, n) for n in ("order.h5", "order.stored"))
    say("order: writing %d samples" % rows)
    chunk = write_tensor(path, rows, columns, each)
    export_chunks(path, stored)
    warm_up(path)
    room = rows // each // 5
    order = randperm(rows, 0)
    fewest = fewest_decodes([i // each for i in order], room)
    every = decode_rate(a.decode, stored, a.cores, chunk) * 1e6
    epoch = Epoch(a, order)
    # A step that leaves time to decode: half as much again as is needed.
    step = 1.5 * fewest * chunk / every * Epoch.WORKERS * Epoch.BATCH / rows
    options = ["--cache-size=%d" % (room * chunk)]
    known = [*options, "--order=torch:seed=0:world=1:rank=0:batch=%d:workers=%d"
             % (Epoch.BATCH, Epoch.WORKERS)]
    off = [*options, "--prefetch=off"]

    def one(more, pause):
        def f(_):
            with Mount(a.tensorfs, path, a.mnt, *more) as m:
                return epoch.run(m, pause)
        return f
    got = turns(2, {"known": one(known, 0), "unknown": one(options, 0),
                    "off": one(off, 0), "paced": one(known, step),
                    "paced, unknown": one(options, step)})
    what = "first epoch, %d samples, %d a chunk, 5 x the cache" % (rows, each)
    for name, text in (("unknown", "no order given"), ("off", "prefetch=off")):
        yield report.row("order", what, got["known", "rate"], text,
                         got[name, "rate"], "samples/s", ">= 0.97")
    mine, theirs = got["paced", "ready"], got["paced, unknown", "ready"]
    yield {"step": "order", "what": "reads served without waiting, a reader with "
           "%.1f ms a batch to spare" % (step * 1e3),
           "ours": report.figure(mine, "%"),
           "peer": "no order given " + report.figure(theirs, "%"),
           "ratio": [median(mine) / 100], "spread": report.spread(mine),
           "goal": ">= 0.95", "met": median(mine) >= 95, "memory": None}
    for name in ("known", "paced"):
        mine = got[name, "chunks"]
        yield {"step": "order", "what": "chunks decoded%s" % (
                   ", paced" if name == "paced" else ""),
               "ours": "%d" % median(mine), "peer": "fewest from this cache alone: "
               "%d; the tensor has %d; no order given: %d; prefetch=off: %d" % (
                   fewest, rows // each, median(got["unknown", "chunks"]),
                   median(got["off", "chunks"])),
               "ratio": [median(mine) / fewest], "spread": report.spread(mine),
               "goal": "<= 1", "met": median(mine) <= fewest, "memory": None}
