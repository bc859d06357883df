#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A distributed tensor in skerch's layout: 400 parts, read by unmodified code.

Everything a program reads must equal what was written; with one part gone, its
samples fail with ENODATA and nothing else does.
"""
import errno
import json
import os
import random
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import numpy as np

import lib
import skerch
from checks import (check, equal, fails_with, flatten, pread, read,
                    same_bytes)
from lib import Mount, exits, run, run_case, tensorfs, with_mount

ROWS, PART, SUB = 4000, 10, (16, 12)
NPARTS = ROWS // PART
rng = random.Random(7)

LOADER = r"""
import sys
import numpy as np, os, torch
from torch.utils.data import DataLoader, Dataset
mnt, truth, epochs = sys.argv[1], np.load(sys.argv[2]), 2
class Samples(Dataset):
    def __init__(self, d):
        self.d, self.names = d, sorted(os.listdir(d))
    def __len__(self):
        return len(self.names)
    def __getitem__(self, i):
        return i, torch.from_numpy(np.load(os.path.join(self.d,
                                                        self.names[i])))
ds = Samples(os.path.join(mnt, 'data', 'samples'))
assert len(ds) == len(truth), (len(ds), len(truth))
torch.manual_seed(int(sys.argv[3]))
for epoch in range(epochs):
    seen = np.zeros(len(ds), int)
    for idx, x in DataLoader(ds, batch_size=50, shuffle=True, num_workers=2):
        idx = idx.numpy()
        got, want = x.numpy(), truth[idx]
        assert got.dtype == want.dtype and got.shape == want.shape
        bad = [int(i) for i, a, b in zip(idx, got, want)
               if a.tobytes() != b.tobytes()]
        assert not bad, 'epoch %d: samples %s differ' % (epoch, bad[:10])
        seen[idx] += 1
    assert (seen == 1).all(), 'epoch %d did not see each sample once' % epoch
print('equal')
"""

FOLDER = r"""
import sys
import numpy as np, os
from torchvision.datasets import DatasetFolder
mnt, truth, part = sys.argv[1], np.load(sys.argv[2]), int(sys.argv[3])
ds = DatasetFolder(os.path.join(mnt, 'data'), loader=np.load,
                   extensions=('.npy',))
assert ds.classes == ['blocks', 'samples'], ds.classes
n = -(-len(truth) // part)
assert len(ds) == n + len(truth), (len(ds), n, len(truth))
for i in list(range(0, n, 13)) + list(range(n, len(ds), 7)):
    x, y = ds[i]
    want = truth[i * part:(i + 1) * part] if i < n else truth[i - n]
    assert y == (i >= n)
    assert x.tobytes() == want.tobytes(), ds.samples[i]
    assert x.shape == want.shape, ds.samples[i]
print('equal')
"""


def block_name(b, e):
    return "%06d-%06d.npy" % (b, e)


def blocks(m, t):
    d = m / "data/blocks"
    equal(sorted(os.listdir(d)), [block_name(b, e) for b, e, _ in t.parts],
          "names of blocks")
    for b, e, _ in t.parts:
        got = np.load(os.path.join(d, block_name(b, e)))
        equal((got.dtype, got.shape), (t.data.dtype, t.data[b:e].shape),
              "type of block %d" % b)
        same_bytes(got.tobytes(), t.data[b:e].tobytes(), "block %d" % b)


def samples(m, t, k=1000):
    d = m / "data/samples"
    equal(sorted(os.listdir(d)), ["%06d.npy" % i for i in range(ROWS)],
          "names of samples")
    for i in rng.sample(range(ROWS), k):
        got = np.load(os.path.join(d, "%06d.npy" % i))
        equal(got.shape, SUB, "shape of sample %d" % i)
        same_bytes(got.tobytes(), t.data[i].tobytes(), "sample %d" % i)


def mapped(m, t):
    a = np.load(m / "data/array.npy", mmap_mode="r")
    equal((a.dtype, a.shape), (t.data.dtype, t.data.shape), "array.npy")
    for i in rng.sample(range(ROWS), 200):
        same_bytes(a[i].tobytes(), t.data[i].tobytes(), "array.npy[%d]" % i)
    same_bytes(np.asarray(a).tobytes(), t.data.tobytes(), "array.npy")
    b = np.memmap(m / "data/array.bin", t.data.dtype, "r", 0, t.data.shape)
    same_bytes(b.tobytes(), t.data.tobytes(), "array.bin")
    same_bytes(read(m / "data/array.bin"), t.data.tobytes(), "read(array.bin)")


def copy(m, work):
    out = os.path.join(work, "copy")
    exits(run("cp", "-r", m.path, out), 0, "cp -r")
    exits(run("diff", "-r", m.path, out), 0, "diff -r")
    n = sum(len(f) for _, _, f in os.walk(out))
    check(n > ROWS + NPARTS, "the copy has only %d files" % n)
    subprocess.call(["chmod", "-R", "u+w", out])
    subprocess.call(["rm", "-r", out])


def torch(m, truth, program, arg):
    p = exits(run("/usr/bin/python3", "-c", program, m.path, truth, arg), 0,
              "the training program")
    equal(p.stdout.strip(), "equal", "what it says")


def text(m, t):
    want = "".join(f + "\n" for f in t.flags).encode()
    same_bytes(read(m / "flags/array.txt"), want, "flags/array.txt")
    for i in rng.sample(range(ROWS), 50):
        got = read(m / ("flags/samples/%06d.txt" % i)).rstrip(b"\n")
        equal(got.decode(), t.flags[i], "flags/samples/%06d.txt" % i)


def flag_xattr(m, t):
    for b, e, _ in t.parts:
        want = t.flags[b] if len(set(t.flags[b:e])) == 1 else "mixed"
        got = os.getxattr(m / ("data/blocks/" + block_name(b, e)),
                          "user.tensorfs.flag").decode()
        equal(got, want, "user.tensorfs.flag of block %d" % b)


def seen_by_h5py(t):
    """The truth is also what h5py reads (with all parts there)."""
    with h5py.File(t.all_path, "r") as f:
        same_bytes(f["data"][...].tobytes(), t.data.tobytes(), "h5py")


def everything(tag, m, t, truth, work):
    run_case(tag + "blocks", blocks, m, t)
    run_case(tag + "samples", samples, m, t)
    run_case(tag + "mmap_memmap", mapped, m, t)
    if lib.full() or not tag:
        run_case(tag + "cp_diff", copy, m, work)
        run_case(tag + "datasetfolder", torch, m, truth, FOLDER, str(PART))
    if lib.full() or tag:
        run_case(tag + "dataloader", torch, m, truth, LOADER, "1")
    run_case(tag + "flags", text, m, t)
    run_case(tag + "flag_xattr", flag_xattr, m, t)


def descriptors(m):
    n = len(os.listdir("/proc/%d/fd" % m.pid))
    check(n <= 64, "the daemon has %d descriptors open" % n)
    with open("/proc/%d/limits" % m.pid) as f:
        line = next(l for l in f if l.startswith("Max open files"))
    equal(line.split()[3:5], ["64", "64"], "its limit")


def info_whole(t, present):
    p = exits(tensorfs("info", t.all_path), 0, "info")
    if present < NPARTS:
        check(re.search(r"\b%d of %d\b" % (present, NPARTS), p.stdout),
              "info does not say '%d of %d': %s" % (present, NPARTS, p.stdout))
    for word in ("OK", "mixed", "float32"):
        check(word in p.stdout, "info does not mention %s: %s" % (
            word, p.stdout))
    j = flatten(json.loads(exits(tensorfs("info", "--json", t.all_path), 0,
                                 "info --json").stdout))
    check(present in j.values(), "info --json has no number %d: %s" % (
        present, str(j)[:600]))


def one_missing(m, t, gone):
    """Exactly the samples of part `gone` fail, with ENODATA and its name."""
    b, e, path = t.parts[gone]
    base = os.path.basename(path)
    for i in range(ROWS):
        s = m / ("data/samples/%06d.npy" % i)
        if b <= i < e:
            fails_with(errno.ENODATA, lambda: read(s), "sample %d" % i)
            why = os.getxattr(s, "user.tensorfs.error").decode()
            check(base in why, "user.tensorfs.error of sample %d does not "
                  "name %s: %r" % (i, base, why))
            check(os.stat(s).st_size == 128 + t.data[i].nbytes,
                  "st_size of the missing sample %d" % i)
        else:
            same_bytes(read(s)[128:], t.data[i].tobytes(), "sample %d" % i)
    for k, (x, y, _) in enumerate(t.parts):
        p = m / ("data/blocks/" + block_name(x, y))
        if k == gone:
            fails_with(errno.ENODATA, lambda: read(p), "its block")
            check(base in os.getxattr(p, "user.tensorfs.error").decode(),
                  "the block's user.tensorfs.error does not name the part")
        else:
            same_bytes(read(p)[128:], t.data[x:y].tobytes(), "block %d" % x)
    row = t.data[0].nbytes
    raw, far = t.data.tobytes(), 4 << 20
    p = m / "data/array.bin"
    fails_with(errno.ENODATA, lambda: pread(p, 100, b * row + 4096),
               "array.bin inside the missing part")
    fails_with(errno.ENODATA, lambda: read(m / "data/array.npy"),
               "array.npy from end to end")
    for off in (0, max(0, b * row - far), min(e * row + far, len(raw) - 4096)):
        if off + 4096 <= b * row - (1 << 20) or off >= e * row + (1 << 20):
            same_bytes(pread(p, 4096, off), raw[off:off + 4096],
                       "array.bin at %d" % off)


def missing_cat(t, gone):
    b, e, path = t.parts[gone]
    src = t.all_path + ":data/samples/%06d.npy"
    p = exits(tensorfs("cat", src % b, text=False), 1, "cat of a lost sample")
    check(os.path.basename(path) in p.stderr, "cat does not name the part: " +
          p.stderr)
    check(len(p.stdout) <= 128, "cat printed %d bytes" % len(p.stdout))
    for i in (b - 1, e):
        p = exits(tensorfs("cat", src % i, text=False), 0, "cat of sample %d"
                  % i)
        same_bytes(p.stdout[128:], t.data[i].tobytes(), "cat of %d" % i)


def missing_flags(m, t, gone):
    b, e, _ = t.parts[gone]
    for i in (b - 1, e, 0, ROWS - 1):
        got = read(m / ("flags/samples/%06d.txt" % i)).rstrip(b"\n").decode()
        equal(got, t.flags[i], "flag of row %d" % i)
    fails_with(errno.ENODATA,
               lambda: read(m / ("flags/samples/%06d.txt" % b)),
               "flag of a lost row")
    try:
        got = os.getxattr(m / ("data/blocks/" + block_name(b, e)),
                          "user.tensorfs.flag").decode()
    except OSError as x:
        equal(x.errno, errno.ENODATA, "flag of the lost block")
    else:
        check(got not in ("OK", "mixed", "initialized"),
              "the lost block has flag %r" % got)


def verify(t, gone):
    p = exits(tensorfs("verify", t.all_path), 1, "verify with a part missing")
    out = p.stdout + p.stderr
    base = os.path.basename(t.parts[gone][2])
    check(base in out, "verify does not list %s: %s" % (base, out[:500]))
    for k in (0, gone - 1, gone + 1, NPARTS - 1):
        other = os.path.basename(t.parts[k][2])
        bad = [l for l in out.split("\n") if other in l and
               re.search(r"missing|no data|ENODATA", l)]
        check(not bad, "verify calls the good %s bad: %s" % (other, bad))


def filled(t, gone):
    b, e, _ = t.parts[gone]
    want = t.data.copy()
    want[b:e] = 0
    with Mount(t.all_path, opts=["-o", "missing=fill"]) as m:
        for i in list(range(b - 2, e + 2)) + rng.sample(range(ROWS), 100):
            same_bytes(read(m / ("data/samples/%06d.npy" % i))[128:],
                       want[i].tobytes(), "missing=fill: sample %d" % i)
        same_bytes(read(m / "data/array.bin"), want.tobytes(),
                   "missing=fill: array.bin")


def main():
    work = lib.setup()
    flags = ["OK"] * ROWS
    flags[70:75] = ["initialized"] * 5   # part 7 is mixed
    flags[120:130] = ["initialized"] * 10
    t = skerch.create(os.path.join(work, "src"), rows=ROWS, sub=SUB, part=PART,
                      incompressible=6, flags=flags)
    truth = os.path.join(work, "truth.npy")
    np.save(truth, t.data)
    lib.note("%d parts, %d of them stored unfiltered" % (NPARTS, len(t.raw)))
    run_case("written", seen_by_h5py, t)
    with_mount("mount", lambda m: everything("", m, t, truth, work),
               t.all_path)

    def few(m):
        run_case("nofile64:limit", descriptors, m)
        everything("nofile64:", m, t, truth, work)
        run_case("nofile64:still", descriptors, m)
    with_mount("nofile64:mount", few, t.all_path, nofile=64)
    run_case("info", info_whole, t, NPARTS)
    run_case("verify_good", lambda: exits(tensorfs("verify", t.all_path), 0,
                                          "verify"))
    gone = 123
    os.rename(t.parts[gone][2], t.parts[gone][2] + ".away")

    def lost(m):
        run_case("missing:samples_blocks", one_missing, m, t, gone)
        run_case("missing:flags", missing_flags, m, t, gone)
    with_mount("missing:mount", lost, t.all_path)
    if lib.full():
        with_mount("missing:nofile64", lambda m: one_missing(m, t, gone),
                   t.all_path, nofile=64)
    run_case("missing:cat", missing_cat, t, gone)
    run_case("missing:verify", verify, t, gone)
    run_case("missing:info", info_whole, t, NPARTS - 1)
    run_case("missing:fill", filled, t, gone)
    os.rename(t.parts[gone][2] + ".away", t.parts[gone][2])
    lib.main()


if __name__ == "__main__":
    main()
