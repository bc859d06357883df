# SPDX-License-Identifier: BSD-2-Clause
"""Workloads that `suite` has beside the goals, each a function that yields rows.

B2 samples of one large chunk each, B5 a product by blocks, B6 many processes that
import, B7 records through mmap, B8 a listing of a million names, and the mount of
ten thousand parts (P5).  B1, B3 and B4 are those of `archives` and `stem`.
"""
import contextlib
import mmap
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import zlib

import h5py
import numpy as np

import report
from contenders import (Contender, Daemon, Directory, disk_name, evict, kernel,
                        peer, tensorfs, warm_up)
from lib import MIB, Mount, TOP, decode_rate, export_chunks, median, output, say, seconds

sys.path.insert(0, os.path.join(TOP, "tests", "lib"))
import skerch

FORK = multiprocessing.get_context("fork")


def race(readers, prepare):
    """Seconds from the first process's start to the last one's end, and the numbers
    that they return; `prepare(n)` returns what the n-th one does when all are ready."""
    ready, numbers = FORK.Barrier(readers + 1), FORK.SimpleQueue()

    def run(n):
        work = prepare(n)
        ready.wait(600)
        start = time.monotonic()
        number = work()
        numbers.put((start, time.monotonic(), number))
    running = [FORK.Process(target=run, args=(n,)) for n in range(readers)]
    for p in running:
        p.start()
    try:
        ready.wait(600)
        for p in running:
            p.join()
    finally:
        for p in running:
            p.kill()
            p.join()
    if any(p.exitcode for p in running):
        raise OSError("a reader failed")
    starts, ends, found = zip(*(numbers.get() for _ in running))
    return max(ends) - min(starts), sorted(found)


def turns(rounds, contenders):
    """{name: [figures]} of {name: function(round)} which each return figures by
    names; who began the last round comes last in the next."""
    got, names = {}, list(contenders)
    for n in range(rounds):
        first = n % len(names)
        for name in names[first:] + names[:first]:
            say("round %d of %d: %s" % (n + 1, rounds, name))
            for what, value in contenders[name](n).items():
                got.setdefault((name, what), []).append(value)
    return got


def same(numbers, what):
    """A fast wrong answer does not count."""
    if len(set(numbers.values())) > 1:
        raise OSError("%s: WRONG BYTES: %s" % (what, numbers))


@contextlib.contextmanager
def in_memory():
    path = tempfile.mkdtemp(prefix="tensorfs-bench.", dir="/dev/shm")
    try:
        yield path
    finally:
        shutil.rmtree(path)


# ---- B2: CosmoFlow -------------------------------------------------------------

COSMO = (128, 128, 128, 4)


def write_cosmo(path, samples):
    """Counts of particles in four ages of a cube: 16 MiB, 2.8 MB gzipped; four
    different ones, repeated."""
    rng = np.random.default_rng(4)
    stored = []
    for _ in range(4):
        mean = np.exp(rng.normal(-1.2, 1, (128, 128, 128, 1)))
        counts = rng.poisson(mean, COSMO).astype("<u2")
        stored.append(zlib.compress(counts.tobytes(), 4))
    with h5py.File(path, "w") as f:
        d = f.create_dataset("data", (samples, *COSMO), "<u2", chunks=(1, *COSMO),
                             compression="gzip", compression_opts=4)
        for n in range(samples):
            d.id.write_direct_chunk((n, 0, 0, 0, 0), stored[n % 4])
    return sum(map(len, stored)) / 4e6


def cosmoflow(a):
    """Shuffled, by two processes, from the chunks to memory."""
    samples, readers = (6, 2) if a.quick else (48, 2)
    path, stored = (os.path.join(a.tmp, n) for n in ("cosmo.h5", "cosmo.stored"))
    say("B2: writing %d samples" % samples)
    each = write_cosmo(path, samples)
    export_chunks(path, stored)
    warm_up(path)
    size, sums = int(np.prod(COSMO)) * 2, {}

    def reader(n, open_):
        def prepare(r):
            mine = random.Random(n).sample(range(samples), samples)[r::readers]
            buf = np.full(COSMO, 1, "<u2")
            read = open_()
            start = buf.reshape(-1)[:4096]

            def work():
                total = 0
                for i in mine:
                    read(i, buf)
                    total += int(start.sum()) * (i + 1)
                return total
            return work
        took, numbers = race(readers, prepare)
        return samples / took, sum(numbers)

    def open_mounted():
        def read(i, buf):
            with open("%s/data/samples/%06d.npy" % (a.mnt, i), "rb",
                      buffering=0) as f:
                if f.readinto(bytearray(128)) != 128:
                    raise OSError("short")
                view = memoryview(buf).cast("B")
                done = 0
                while done < size:
                    got = f.readinto(view[done:])
                    if not got:
                        raise OSError("sample %d is short" % i)
                    done += got
        return read

    def open_h5py():
        d = h5py.File(path, "r")["data"]
        return lambda i, buf: d.read_direct(buf, np.s_[i])

    def ours(n):
        with Mount(a.tensorfs, path, a.mnt, "--cache-size=512M"):
            first, sums[n, "ours"] = reader(n, open_mounted)
            return {"first": first, "warm": reader(n, open_mounted)[0]}

    def theirs(n):
        rate, sums[n, "h5py"] = reader(n, open_h5py)
        return {"first": rate}

    def limit(_):
        return {"first": decode_rate(a.decode, stored, a.cores, size) * 1e6 / size}
    got = turns(a.rounds, {"tensorfs": ours, "h5py": theirs, "limit": limit})
    for n in range(a.rounds):
        same({k: v for k, v in sums.items() if k[0] == n}, "B2")
    what = "%s epoch, %%d samples of 16 MiB, %.1f MB gzipped" % ("%s", each)
    for epoch in ("first", "warm"):
        yield report.row("B2", what % (epoch, samples), got["tensorfs", epoch],
                         "h5py", got["h5py", "first"], "samples/s", ">= 1")
    yield report.row("B2", what % ("first", samples), got["tensorfs", "first"],
                     "%d threads that only decode" % a.cores,
                     got["limit", "first"], "samples/s")


# ---- B5: skerch ----------------------------------------------------------------

PRODUCT = """
import os, sys, threading, time
import dask, dask.array as da, h5py, numpy as np
kind, path, step = sys.argv[1], sys.argv[2], int(sys.argv[3])
dask.config.set(scheduler="threads")
def anonymous():
    with open("/proc/self/status") as f:
        return int(dict(l.split(":", 1) for l in f)["RssAnon"].split()[0]) << 10
before = most = anonymous()
def watch():
    global most
    while True:
        most = max(most, anonymous())
        time.sleep(0.02)
threading.Thread(target=watch, daemon=True).start()
start = time.monotonic()
d = (h5py.File(path, "r")["data"] if kind == "h5py" else
     np.load(path + "/data/array.npy", mmap_mode="r"))
x = da.from_array(d, chunks=(step, d.shape[1]))
total = 0.0
for i in range(0, d.shape[0], step):
    y = (x[i:i + step] @ x.T).compute()
    total += float(np.abs(y).sum(dtype="f8"))
print(time.monotonic() - start, total, most - before, flush=True)
os._exit(0)  # HDF5 and threads do not end well together
"""


def skerch_product(a):
    """X X^T, a row of blocks after the other, in less memory than X has."""
    parts, rows, columns = (40, 2, 32768) if a.quick else (400, 1, 65536)
    top = os.path.join(a.tmp, "skerch")
    say("B5: writing %d parts" % parts)
    t = skerch.create(top, rows=parts * rows, sub=(columns,), part=rows)
    size, path = t.data.nbytes, t.all_path
    del t
    cache, totals, memory = size // 4, {}, {}

    def run(kind, source):
        out = output(sys.executable, "-c", PRODUCT, kind, source,
                     str(parts * rows // 8)).split()
        totals[kind] = float(out[1])
        memory.setdefault(kind, []).append(float(out[2]) / size)
        return {"": size / 1e6 / float(out[0])}

    def ours(_):
        with Mount(a.tensorfs, path, a.mnt, "--cache-size=%d" % cache):
            return run("array.npy", a.mnt)
    got = turns(a.rounds, {"tensorfs": ours, "h5py": lambda _: run("h5py", path)})
    if abs(totals["array.npy"] - totals["h5py"]) > 1e-3 * totals["h5py"]:
        raise OSError("B5: another product: %s" % totals)
    yield report.row("B5", "X X^T of %d parts, %d MiB, dask, array.npy"
                     % (parts, size // MIB), got["tensorfs", ""],
                     "h5py, virtual dataset", got["h5py", ""], "MB/s", ">= 1")
    mine, theirs = median(memory["array.npy"]), median(memory["h5py"])
    yield {"step": "B5", "what": "memory of that reader, as a part of X",
           "ours": "%.2f" % mine, "peer": "h5py, virtual dataset: %.2f" % theirs,
           "ratio": [mine / theirs], "spread": None, "goal": "<= 1.1",
           "met": mine <= 1.1 * theirs, "memory": None}


# ---- B6: an import storm ---------------------------------------------------------

MODULE = '''"""Module %d."""
VALUE = %d


class Thing:
    def __init__(self, name):
        self.name = name

    def double(self):
        return self.name * 2
'''
PACKAGES = 100


def write_modules(where, n):
    os.makedirs(where)
    for p in range(PACKAGES):
        top = "%s/storm%02d" % (where, p)
        os.mkdir(top)
        with open(top + "/__init__.py", "w"):
            pass
        for i in range(p, n, PACKAGES):
            with open("%s/m%05d.py" % (top, i), "w") as f:
                f.write(MODULE % (i, i))


def storm(where, n, processes=8):
    """Everybody looks at all modules, as the import system does; modules a
    second."""
    names = ["%s/storm%02d/m%05d.py" % (where, i % PACKAGES, i) for i in range(n)]

    def prepare(r):
        first = r * n // processes

        def work():
            total = 0
            for name in names[first:] + names[:first]:
                os.stat(name)
                fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
                size = os.fstat(fd).st_size
                total += len(os.read(fd, size + 1))
                os.close(fd)
            return total
        return work
    took, numbers = race(processes, prepare)
    return processes * n / took, numbers[0]


IMPORT = """
import importlib, sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
total = 0
for i in range(int(sys.argv[2])):
    total += importlib.import_module("storm%02d.m%05d" % (i % 100, i)).VALUE
print(total)
"""


def imports(where, n, processes=8):
    """Python itself, in new processes; modules a second."""
    def all_():
        running = [subprocess.Popen([sys.executable, "-S", "-c", IMPORT, where,
                                     str(n)], stdout=subprocess.PIPE)
                   for _ in range(processes)]
        for p in running:
            if int(p.communicate()[0]) != n * (n - 1) // 2 or p.returncode:
                raise OSError("B6: an import failed")
    return processes * n / seconds(all_)


def import_storm(a):
    n, few = (1000, 50) if a.quick else (20000, 300)
    tree, image = os.path.join(a.tmp, "storm"), os.path.join(a.tmp, "storm.sqfs")
    say("B6: writing %d modules" % n)
    write_modules(tree, n)
    subprocess.run(["mksquashfs", tree, image, "-quiet", "-no-progress",
                    "-noappend", "-comp", "zstd"], check=True)
    warm_up(image)
    sums = {}
    with in_memory() as shm:
        copy = os.path.join(shm, "tree")
        shutil.copytree(tree, copy)
        parts = [Contender("tmpfs", "", None, lambda: Directory(copy)),
                 Contender(disk_name(tree), "", None, lambda: Directory(tree)),
                 tensorfs(a, a.mnt, image, "sqfs-zstd", n,
                          ["--cache-size=256M"]),
                 kernel(a.mnt, image, "sqfs-zstd"),
                 peer("squashfuse_ll", a.mnt, image, "sqfs-zstd")]

        def one(c):
            def f(_):
                with c.mount() as m:
                    first, sums[c.name] = storm(m.where, n)
                    warm = storm(m.where, n)[0]
                with c.mount() as m:
                    return {"first": first, "warm": warm,
                            "import": imports(m.where, few)}
            return f
        present = a.present("B6", parts)
        got = turns(2, {c.name: one(c) for c in present})
    same(sums, "B6")
    mine = "tensorfs sqfs-zstd"
    for what, text in (("first", "first stat, open, read of %d modules" % n),
                       ("warm", "stat, open, read again of %d modules" % n),
                       ("import", "first `import` of %d modules" % few)):
        for c in present:
            if c.name != mine:
                goal = ">= 0.95" if (what, c.name) == ("warm", "tmpfs") else ""
                yield report.row("B6", text + ", 8 processes", got[mine, what],
                                 c.name, got[c.name, what], "modules/s", goal)


# ---- B7: records through mmap ----------------------------------------------------

RECORD = 2048


def records(path, header, n):
    """All records once, at random places of a mapping; records a second."""
    places = list(range(header, header + n * RECORD, RECORD))
    random.Random(7).shuffle(places)

    def work():
        with open(path, "rb") as f, mmap.mmap(f.fileno(), 0,
                                              prot=mmap.PROT_READ) as m:
            crc = 0
            for at in places:
                crc = zlib.crc32(m[at:at + RECORD], crc)
        return crc
    took, numbers = race(1, lambda _: work)
    return n / took, numbers[0]


def write_records(a, n):
    """Token numbers: a plain file, a tar of it, and a gzip dataset."""
    rng = np.random.default_rng(6)
    tokens = np.minimum(rng.zipf(1.2, n * RECORD // 2), 50000).astype("<u2")
    plain, tar, tensor = (os.path.join(a.tmp, name) for name in
                          ("tokens", "tokens.tar", "tokens.h5"))
    tokens.tofile(plain)
    subprocess.run(["tar", "-cf", tar, "-C", a.tmp, "tokens"], check=True)
    with h5py.File(tensor, "w") as f:
        f.create_dataset("data", data=tokens.reshape(n, RECORD // 2),
                         chunks=(64, RECORD // 2), compression="gzip",
                         compression_opts=4, shuffle=True)
    warm_up(tar)
    warm_up(tensor)
    return plain, tar, tensor


def mapped(a):
    n = 8192 if a.quick else 131072
    say("B7: writing %d records" % n)
    plain, tar, tensor = write_records(a, n)
    crcs = {}

    def mounted(name, source, path):
        def f(_):
            with Mount(a.tensorfs, source, a.mnt, "--cache-size=128M"):
                file = os.path.join(a.mnt, path)
                first, crcs[name] = records(file, 0, n)
                return {"first": first, "warm": records(file, 0, n)[0]}
        return f
    with in_memory() as shm:
        copy = shutil.copy(plain, shm)

        def tmpfs(_):
            rate, crcs["tmpfs"] = records(copy, 0, n)
            return {"first": rate, "warm": records(copy, 0, n)[0]}
        got = turns(a.rounds, {
            "tmpfs": tmpfs, "tar": mounted("tar", tar, "tokens"),
            "gzip": mounted("gzip", tensor, "data/array.bin")})
    same(crcs, "B7")
    for kind, text in (("tar", "a file in a tar"), ("gzip", "array.bin, gzip")):
        for epoch in ("first", "warm"):
            yield report.row(
                "B7", "%s epoch, %d records of 2 KiB, mmap of %s"
                % (epoch, n, text), got[kind, epoch], "tmpfs",
                got["tmpfs", epoch], "records/s",
                ">= 0.95" if epoch == "warm" else "")


# ---- B8: a long listing ------------------------------------------------------------

def list_names(where):
    with os.scandir(where) as entries:
        return sum(1 for _ in entries)


def list_sizes(where):
    with os.scandir(where) as entries:
        return sum(1 for e in entries if e.stat(follow_symlinks=False).st_size)


def listing(a):
    n = 20000 if a.quick else 1000000
    path, sizes = os.path.join(a.tmp, "names.h5"), {}
    with h5py.File(path, "w") as f:
        f["data"] = np.zeros((n, 8), "u1")

    def timed(where, again):
        def rate(work):
            took, numbers = race(1, lambda _: lambda: work(where))
            if numbers != [n]:
                raise OSError("B8: %d names, not %d" % (numbers[0], n))
            return n / took
        return {"names": rate(list_names), "sizes": rate(list_sizes),
                **({"again": rate(list_names)} if again else {})}

    def ours(_):
        with Mount(a.tensorfs, path, a.mnt, "--cache-size=256M"):
            return timed(os.path.join(a.mnt, "data", "samples"), True)
    with in_memory() as shm:
        say("B8: writing %d files" % n)
        for i in range(n):
            fd = os.open("%s/%06d.npy" % (shm, i), os.O_CREAT | os.O_WRONLY)
            os.write(fd, b"x")
            os.close(fd)
        got = turns(2, {"tensorfs": ours, "tmpfs": lambda _: timed(shm, True)})
    for what, text in (("names", "names, first time"), ("sizes", "then sizes"),
                       ("again", "names again")):
        yield report.row("B8", "listing %d samples: %s" % (n, text),
                         got["tensorfs", what], "tmpfs", got["tmpfs", what],
                         "names/s")


# ---- P5: ten thousand parts ----------------------------------------------------------

def many_parts(a):
    parts = 300 if a.quick else 10000
    say("P5: writing %d parts" % parts)
    t = skerch.create(os.path.join(a.tmp, "parts"), rows=parts, sub=(8,), part=1)
    path = t.all_path
    command = [a.tensorfs, "mount", "-f", path, a.mnt]

    def ours(_):
        evict(path)
        with Daemon(a.mnt, command, a.tensorfs) as m:
            took = seconds(lambda: os.listdir(a.mnt + "/data"))
            return {"": m.seconds + took}

    def read():
        with h5py.File(path, "r") as f:
            return f["data"].virtual_sources()
    def theirs(_):
        evict(path)
        return {"": seconds(read)}
    got = turns(a.rounds, {"tensorfs": ours, "h5py": theirs})
    mine, h5 = got["tensorfs", ""], got["h5py", ""]
    yield {"step": "P5", "what": "tensor of %d parts, mount until its directory is "
           "listed, cold" % parts, "ours": report.figure(mine, "s"),
           "peer": "h5py, virtual_sources() " + report.figure(h5, "s"),
           "ratio": [], "spread": max(report.spread(mine), report.spread(h5)), "memory": None,
           "goal": "< 1 s", "met": None if a.quick else median(mine) < 1}
