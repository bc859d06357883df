#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""order= of archives: small files are made ready in the order in which they are read,
and are what was packed."""
import os
import random
import sys
import tarfile
import zipfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import lib
from checks import check, equal
from lib import Mount, case, exits, run
from quietlib import again, numbers, rests

N = 3000 if lib.full() else 1200
work = top = None
want = {}  # name -> bytes


def archive(kind):
    out = os.path.join(work, "a." + kind)
    if os.path.exists(out):
        return out
    if kind == "sqfs":
        exits(run("mksquashfs", top, out, "-quiet", "-no-progress"), 0, "mksquashfs")
    elif kind == "zip":
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
            for name in sorted(want):
                z.write(os.path.join(top, name), name)
    else:
        with tarfile.open(out, "w") as t:
            for name in sorted(want):
                t.add(os.path.join(top, name), name)
    return out


def read_all(m, names):
    """What changed in the counters while these are read, each once."""
    before = numbers(m)
    for k, name in enumerate(names):
        if k % 64 == 0:  # all that it wants to make ready is
            rests(m)
        fd = os.open(m / name, os.O_RDONLY)
        equal(os.read(fd, 1 << 20), want[name], name)
        os.close(fd)
    rests(m)
    after = numbers(m)
    return {k: after[k] - before.get(k, 0) for k in after}


def is_followed(kind, order, names):
    with Mount(archive(kind), opts=["-o", "cache-size=64M,order=" + order]) as m:
        for d in sorted(os.listdir(m.path)):  # the kernel knows them
            list(os.scandir(m / d))
        c = read_all(m, names)
    equal(c["order_found"], 1, kind + ": found")
    equal(c["order_lost"], 0, kind + ": lost")
    check(c["order_ready"] > len(names) * 2 / 3,
          "%s: %d files made ready" % (kind, c["order_ready"]))
    check(c["order_ready"] <= c["files_read_ahead"] + c["order_kept"],
          "%s: %d files made ready, %d of them asked for, and %d kept" % (
              kind, c["order_ready"], c["files_read_ahead"], c["order_kept"]))
    # A mark in 32 is asked for, and kept here; the kernel has the others, unless it let
    # go of them because memory was short.
    asked = c["read_requests"] - c["order_kept_read"]
    if asked > len(names) / 2:
        again("%s: %d of %d files were asked for and not kept" % (
            kind, asked, len(names)))


def shuffled():
    names = sorted(want)
    random.Random(7).shuffle(names)
    return names


def follow_names(kind):
    names = shuffled()
    listed = os.path.join(work, "names-" + kind)
    with open(listed, "w") as f:
        f.writelines("/%s\n" % n if k % 2 else n + "\n" for k, n in enumerate(names))
    is_followed(kind, listed, names)


@case
def names_in_squashfs():
    follow_names("sqfs")


@case
def names_in_tar():
    follow_names("tar")


@case
def names_in_zip():
    follow_names("zip")


def follow_epoch(kind):
    """Numbered as epochs/ has them, whose order.txt says what the order is."""
    with Mount(archive(kind)) as m:
        with open(m / "epochs/0/rank-0-of-1,seed=9/order.txt") as f:
            names = f.read().split()
    equal(sorted(names), sorted(want), kind + ": order.txt")
    is_followed(kind, "torch:seed=9:workers=0", names)


@case
def epochs_of_squashfs():
    follow_epoch("sqfs")


@case
def epochs_of_tar():
    follow_epoch("tar")


@case
def epochs_of_zip():
    follow_epoch("zip")


work = lib.setup()
top = os.path.join(work, "files")
rng = random.Random(1)
for i in range(N):
    name = "c%d/%05d.bin" % (i % 3, i)
    want[name] = rng.randbytes(500 + rng.randrange(2000))
    os.makedirs(os.path.dirname(os.path.join(top, name)), exist_ok=True)
    with open(os.path.join(top, name), "wb") as f:
        f.write(want[name])
lib.main()
