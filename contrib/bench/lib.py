# SPDX-License-Identifier: BSD-2-Clause
"""What the benchmarks share: mounts, medians, the limit, the report."""
import collections
import contextlib
import heapq
import itertools
import json
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np

from report import median, spread

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
MIB = 1 << 20


def output(*command):
    return subprocess.run(command, check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def say(text):
    print(text, file=sys.stderr, flush=True)


def seconds(function):
    start = time.monotonic()
    function()
    return time.monotonic() - start


# ---- mounts ------------------------------------------------------------------

class Mount:
    """A mount for a while, served by a daemon in the foreground."""

    def __init__(self, tensorfs, source, where, *options):
        self.tensorfs, self.where = tensorfs, where
        os.makedirs(where, exist_ok=True)
        self.daemon = subprocess.Popen(
            [tensorfs, "mount", "-f", *options, source, where])
        for _ in range(1000):
            if os.path.ismount(where):
                return
            if self.daemon.poll() is not None:
                break
            time.sleep(0.01)
        sys.exit("tensorfs did not mount %s" % source)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        note_memory(self.tensorfs, self.where, self.daemon.pid)
        subprocess.run([self.tensorfs, "umount", self.where], check=True)
        self.daemon.wait(60)

    def stats(self):
        return flat(json.loads(output(self.tensorfs, "stats", "--json",
                                      self.where)))

    def resident(self):
        """VmRSS now and VmHWM, in bytes."""
        return resident(self.daemon.pid)


def resident(pid):
    with open("/proc/%d/status" % pid) as f:
        fields = dict(line.split(":", 1) for line in f)
    return tuple(int(fields[k].split()[0]) * 1024 for k in ("VmRSS", "VmHWM"))


# Of each daemon that ended: its peak, as a part of what it may have.
peaks = []


def note_memory(tensorfs, where, pid, members=0):
    p = subprocess.run([tensorfs, "stats", "--json", where], text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if not p.returncode:
        budget = flat(json.loads(p.stdout))["cache_budget"]
        peaks.append(resident(pid)[1] / (budget + 64 * MIB + 64 * members))


def flat(tree):
    """The numbers of nested objects under their own names."""
    found = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            found.update(flat(value))
        else:
            found[key] = value
    return found


def memory_row(name, mount, cache):
    now, most = mount.resident()
    limit = cache + 64 * MIB
    return (name, "%.0f MiB at the end, %.0f MiB at most"
            % (now / MIB, most / MIB),
            "cache-size + 64 MiB = %.0f MiB" % (limit / MIB),
            "%.2f" % (most / limit), "<= 1", most <= limit)


@contextlib.contextmanager
def work_directory(parent):
    """A directory with room for one mount, `mnt`; both are gone afterwards."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    path = tempfile.mkdtemp(prefix="tensorfs-bench.", dir=parent)
    try:
        yield path
    finally:
        subprocess.run(["fusermount3", "-uqz", os.path.join(path, "mnt")],
                       stderr=subprocess.DEVNULL)
        shutil.rmtree(path)


def find_program(a):
    """Fill in `build`, absolute, and `tensorfs`."""
    a.build = os.path.abspath(a.build)
    a.tensorfs = os.path.join(a.build, "tensorfs")
    if not os.access(a.tensorfs, os.X_OK):
        sys.exit("no %s: build first, or say where with --build" % a.tensorfs)


# ---- the limit: cores that only decode ---------------------------------------

def compile_tool(a, name, *more):
    """Build contrib/bench/NAME.c; the path of the program."""
    program = os.path.join(a.tmp, name)
    subprocess.run(["cc", "-std=c11", "-O2", "-g", "-D_GNU_SOURCE", "-pthread",
                    "-I" + os.path.join(TOP, "src"), "-o", program,
                    os.path.join(HERE, name + ".c"), *more], check=True)
    return program


def core_flags(a):
    """What a tool is linked with that calls our own code: the libraries are
    those that configure chose."""
    with open(os.path.join(a.build, "Makefile")) as f:
        chosen = dict(re.findall(r"^(ALL_LIBS|LIBS) = (.*)$", f.read(), re.M))
    return [os.path.join(a.build, "src", "libcore.a"),
            *shlex.split(chosen["ALL_LIBS"]), *shlex.split(chosen["LIBS"])]


def chunk_corners(shape, chunks):
    return itertools.product(*(range(0, n, c) for n, c in zip(shape, chunks)))


def export_chunks(path, out):
    """All stored chunks one after the other in `out`, and where each is in
    `out`.index, for bench-decode."""
    with h5py.File(path, "r") as f, open(out, "wb") as flat_file, \
            open(out + ".index", "w") as index:
        d = f["data"]
        pos = 0
        for corner in chunk_corners(d.shape, d.chunks):
            mask, stored = d.id.read_direct_chunk(corner)
            flat_file.write(stored)
            index.write("%d %d %d\n" % (pos, len(stored), mask))
            pos += len(stored)


def fewest_decodes(wanted, room):
    """How many chunks must be decoded for `wanted`, one after the other, when
    `room` of them fit and the future is known: what is wanted last goes first
    (Belady)."""
    later = collections.defaultdict(collections.deque)
    for n, chunk in enumerate(wanted):
        later[chunk].append(n)
    cached, heap, decodes = set(), [], 0
    for chunk in wanted:
        later[chunk].popleft()
        if chunk not in cached:
            decodes += 1
            cached.add(chunk)
        following = later[chunk][0] if later[chunk] else len(wanted)
        heapq.heappush(heap, (-following, chunk))
        while len(cached) > room:
            following, gone = heapq.heappop(heap)
            now = later[gone][0] if later[gone] else len(wanted)
            if gone in cached and now == -following:
                cached.remove(gone)
    return decodes


def decode_rate(program, stored, threads, chunk_bytes=131072, fresh=False):
    """MB/s of so many threads that do nothing but decode, once through; `fresh`: into
    memory that nobody had before."""
    return float(output(program, "--rounds=1", "--threads=%d" % threads,
                        "--chunk-bytes=%d" % chunk_bytes,
                        *["--fresh"] * fresh, stored, stored + ".index"))


# ---- the report --------------------------------------------------------------

def machine(a):
    model = "unknown processor"
    with open("/proc/cpuinfo") as f:
        for line in f:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    ram = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    version = output(a.tensorfs, "--version").splitlines()[0]
    return ("%s, %d cores, %.0f GiB; Linux %s; %s; h5py %s with HDF5 %s, "
            "NumPy %s, Python %s; medians of %d"
            % (model, len(os.sched_getaffinity(0)), ram / (1 << 30),
               platform.release(), version, h5py.__version__,
               h5py.version.hdf5_version, np.__version__,
               platform.python_version(), a.rounds))


def table(rows, *more):
    """A row: what, tensorfs, against, ratio, goal, what else there is, and
    whether the goal was met."""
    print("| what | tensorfs | against | ratio | goal |%s |"
          % "".join(" %s |" % name for name in more))
    print("|---" * (6 + len(more)) + "|")
    for *cells, good in rows:
        cells += [""] * (5 + len(more) - len(cells))
        print("| %s | %s |" % (" | ".join(cells), "" if good is None else
                               "met" if good else "**missed**"))


def rows_option(p):
    """An option of everything that prints such a table."""
    p.add_argument("--rows", metavar="FILE", dest="rows_file",
                   help="the table as JSON as well, for `suite`")


def save_rows(a, rows, left_out=()):
    if a.rows_file:
        with open(a.rows_file, "w") as f:
            json.dump({"rows": rows, "left_out": list(left_out),
                       "memory": max(peaks, default=None)}, f, indent=1)
