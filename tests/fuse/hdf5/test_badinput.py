#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Bad sources: an exit code or an errno and a sentence, never a wrong byte.

The sources that change under a mount are read at byte ranges not read before,
so that the kernel's page cache cannot answer.  Bad mount points are in
test_mountpoint.py.
"""
import errno
import os
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import numpy as np

import lib
import skerch
from checks import check, equal, fails_with, pread, read, same_bytes
from lib import Mount, case, exits, run, tensorfs

DAMAGE = (errno.EIO, errno.EBADMSG, errno.ESTALE, errno.ENODATA)
work = None


def fresh(name):
    d = os.path.join(work, name)
    os.mkdir(d)
    return d


def refused(src, codes=3, mention=None):
    """Every command refuses this source with a sentence naming it."""
    mnt = fresh("m-" + os.path.basename(src) + str(len(os.listdir(work))))
    for argv in (["mount", src, mnt], ["mount", "-f", src, mnt], [src, mnt],
                 ["ls", src], ["info", src], ["verify", src],
                 ["cat", src + ":data/array.npy"]):
        p = tensorfs(*argv)
        if p.returncode == 0 and argv[-1] == mnt:
            lib.force_unmount(mnt)
        exits(p, codes, " ".join(argv[:2]))
        check((mention or os.path.basename(src)) in p.stderr,
              "%s: stderr does not name the source: %s" % (argv[0], p.stderr))
        equal(p.stdout, "", "stdout of " + argv[0])
        check(not lib.mount_line(mnt), "something is mounted all the same")


def sample(m, i, ds="data"):
    return read(m / ("%s/samples/%06d.npy" % (ds, i)))[128:]


def only_part_fails(t, bad, codes, opts=(), word=None):
    """Mounted: the samples of part `bad` fail, all others are right."""
    b, e, path = t.parts[bad]
    with Mount(t.all_path, opts=list(opts)) as m:
        for i in range(len(t.data)):
            if b <= i < e:
                fails_with(codes, lambda: sample(m, i), "sample %d" % i)
            else:
                same_bytes(sample(m, i), t.data[i].tobytes(), "sample %d" % i)
        for x, y, _ in t.parts:
            p = m / ("data/blocks/%06d-%06d.npy" % (x, y))
            if x == b:
                fails_with(codes, lambda: read(p), "its block")
                why = os.getxattr(p, "user.tensorfs.error").decode()
                check((word or os.path.basename(path)) in why,
                      "user.tensorfs.error does not name the part: %r" % why)
            else:
                same_bytes(read(p)[128:], t.data[x:y].tobytes(),
                           "block %d" % x)
    p = exits(tensorfs("verify", t.all_path), 1, "verify")
    check(os.path.basename(path) in p.stdout + p.stderr,
          "verify does not list the part: %s" % (p.stdout + p.stderr))


@case
def missing_source():
    refused(os.path.join(work, "nowhere.h5"))


@case
def not_hdf5():
    for name, content in (("text.h5", b"no tensor here\n" * 500),
                          ("empty.h5", b""), ("zeros.h5", bytes(1 << 16)),
                          ("magic.h5", b"\x89HDF\r\n\x1a\n"),
                          ("magic2.h5", b"\x89HDF\r\n\x1a\n" + b"\xa5" * 4096)):
        p = os.path.join(work, name)
        with open(p, "wb") as f:
            f.write(content)
        refused(p)


@case
def truncated_file():
    """Cut anywhere: refused, or mounted with the rest right and errors."""
    d = fresh("cut")
    src = os.path.join(d, "t.h5")
    a = np.arange(64 * 4096, dtype="<i4").reshape(64, 4096)
    with h5py.File(src, "w") as f:
        f.create_dataset("data", data=a, chunks=(2, 4096))
        f.create_dataset("plain", data=a)
    size = os.path.getsize(src)
    for k, keep in enumerate((100, 600, size // 10, size // 3, size // 2,
                              size - 100000, size - 1)):
        cut = os.path.join(d, "cut%d.h5" % k)
        shutil.copy(src, cut)
        os.truncate(cut, keep)
        mnt = fresh("mcut%d" % k)
        p = tensorfs("mount", cut, mnt)
        exits(p, (0, 3), "mount of a file cut at %d of %d" % (keep, size))
        check(p.returncode == 0 or cut in p.stderr or
              os.path.basename(cut) in p.stderr, "stderr: " + p.stderr)
        if p.returncode:
            continue
        with_errors = 0
        try:
            for ds in os.listdir(mnt):
                s = os.path.join(mnt, ds, "samples")
                if not os.path.isdir(s):  # its header is lost: it says so
                    check(os.listdir(os.path.join(mnt, ds)) == ["info.json"],
                          "%s has neither samples nor a reason" % ds)
                    with_errors += 1
                for i in range(64) if os.path.isdir(s) else ():
                    try:
                        got = read(os.path.join(s, "%06d.npy" % i))
                    except OSError as x:
                        check(x.errno in DAMAGE, "errno %s" % x)
                        with_errors += 1
                    else:
                        same_bytes(got[128:], a[i].tobytes(), "cut at %d: %s "
                                   "sample %d" % (keep, ds, i))
        finally:
            tensorfs("umount", mnt)
            lib.force_unmount(mnt)
        check(with_errors or keep >= size - 1 or not k,
              "cut at %d of %d: nothing fails" % (keep, size))


@case
def no_such_path():
    t = skerch.create(fresh("nopath"), rows=20, part=5)
    for argv in (["cat", t.all_path + ":nope/array.npy"],
                 ["cat", t.all_path + ":data/samples/000020.npy"],
                 ["cat", t.all_path + ":data"], ["ls", t.all_path + ":nope"],
                 ["info", t.all_path + ":nope"]):
        p = exits(tensorfs(*argv), (1, 3), " ".join(argv))
        equal(p.stdout, "", "stdout")
        word = argv[1].split(":")[-1]
        check(any(w in p.stderr for w in word.split("/")),
              "stderr does not name %s: %s" % (word, p.stderr))
    with Mount(t.all_path) as m:
        for name in ("nope", "data/nope", "data/samples/000020.npy",
                     "data/samples/0.npy", "data/samples/000001",
                     "data/samples/+00001.npy", "data/samples/ 00001.npy",
                     "data/samples/0000001.npy", "data/blocks/000000.npy",
                     "data/blocks/000000-000004.npy",
                     "data/samples/99999999999999999999999.npy"):
            fails_with(errno.ENOENT, lambda: os.stat(m / name), name)


@case
def part_missing():
    t = skerch.create(fresh("gone"), rows=40, part=10)
    os.unlink(t.parts[2][2])
    only_part_fails(t, 2, errno.ENODATA)


@case
def first_part_missing():
    t = skerch.create(fresh("gone0"), rows=40, part=10)
    os.unlink(t.parts[0][2])
    only_part_fails(t, 0, errno.ENODATA)


@case
def part_dataset_missing():
    t = skerch.create(fresh("nods"), rows=40, part=10)
    with h5py.File(t.parts[1][2], "a") as f:
        del f["data"]
    only_part_fails(t, 1, (errno.EIO, errno.ENODATA))


@case
def part_other_shape():
    for k, shape in enumerate([(10, 9), (9, 8), (11, 8), (81,), (10, 8, 2)]):
        t = skerch.create(fresh("shape%d" % k), rows=40, part=10)
        with h5py.File(t.parts[1][2], "a") as f:
            del f["data"]
            f.create_dataset("data", data=np.ones(shape, "<f4"), chunks=shape,
                             compression="lzf")
        only_part_fails(t, 1, errno.EIO)


@case
def part_other_dtype():
    """Numbers are converted, as HDF5 does it; what is no number is an error."""
    for k, dtype in enumerate(["<i4", "<f8", ">f4", "<i2"]):
        t = skerch.create(fresh("dtype%d" % k), rows=40, part=10)
        with h5py.File(t.parts[3][2], "a") as f:
            del f["data"]
            f.create_dataset("data", data=np.full((10, 8), 3, dtype),
                             chunks=(10, 8), compression="lzf")
        with Mount(t.all_path) as m:
            same_bytes(sample(m, t.parts[3][0]),
                       np.full(8, 3, "<f4").tobytes(), "converted")
    t = skerch.create(fresh("dtype_text"), rows=40, part=10)
    with h5py.File(t.parts[3][2], "a") as f:
        del f["data"]
        f.create_dataset("data", data=np.full((10, 8), b"x", "S4"))
    only_part_fails(t, 3, errno.EIO)


@case
def part_truncated():
    t = skerch.create(fresh("ptrunc"), rows=400, sub=(64,), part=100,
                      compression="gzip")
    off, size = skerch.chunk_place(t.parts[1][2])
    os.truncate(t.parts[1][2], off + size // 2)
    only_part_fails(t, 1, DAMAGE)
    for k, keep in enumerate((0, 10, 100, 700)):
        t = skerch.create(fresh("ptrunc%d" % k), rows=40, part=10)
        os.truncate(t.parts[2][2], keep)
        only_part_fails(t, 2, (errno.EIO, errno.EBADMSG, errno.ESTALE))


@case
def part_is_not_a_file():
    t = skerch.create(fresh("pdir"), rows=40, part=10)
    os.unlink(t.parts[2][2])
    os.mkdir(t.parts[2][2])
    only_part_fails(t, 2, (errno.EIO, errno.EISDIR))
    os.rmdir(t.parts[2][2])
    os.mkfifo(t.parts[2][2])  # must not wait for a writer
    only_part_fails(t, 2, errno.EIO)


@case
def part_unreadable():
    """Permissions do not stop root: then it runs as nobody, with copies."""
    d = fresh("perm")
    t = skerch.create(os.path.join(d, "src"), rows=40, part=10)
    os.chmod(t.parts[1][2], 0)
    if not lib.ROOT:
        only_part_fails(t, 1, (errno.EIO, errno.EACCES))
        return
    prog = os.path.join(d, "tensorfs")
    shutil.copy(lib.TENSORFS, prog)
    mnt = os.path.join(d, "mnt")
    os.mkdir(mnt)
    for p in (work, d, os.path.dirname(t.all_path), mnt):
        os.chmod(p, 0o755)
    for b, e, p in t.parts + [(0, 0, t.all_path)]:
        os.chmod(p, 0 if b == 10 else 0o644)
    os.chown(mnt, 65534, 65534)
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    for i in range(40):
        p = run(*nobody, prog, "cat", t.all_path +
                ":data/samples/%06d.npy" % i, text=False)
        if 10 <= i < 20:
            exits(p, 1, "cat of sample %d" % i)
            base = os.path.basename(t.parts[1][2])
            check(base in p.stderr, "stderr lacks %s: %s" % (base, p.stderr))
        else:
            exits(p, 0, "cat of sample %d" % i)
            same_bytes(p.stdout[128:], t.data[i].tobytes(), "sample %d" % i)
    src = os.path.join(d, "main.h5")
    shutil.copy(t.all_path, src)
    os.chmod(src, 0)
    exits(run(*nobody, prog, "ls", src), 3, "ls of an unreadable source")
    if os.stat("/dev/fuse").st_mode & 0o006 != 0o006:
        lib.note("/dev/fuse is not for everybody: no mount by nobody")
    elif os.access("/usr/bin/fusermount3", os.X_OK):
        exits(run(*nobody, prog, "mount", t.all_path, mnt), 0, "mount by "
              "nobody")
        try:
            read_as = "import os, sys\ntry: sys.stdout.buffer.write(open(" \
                "sys.argv[1], 'rb').read()[128:])\nexcept OSError as e: " \
                "sys.exit(e.errno)"
            for i in (5, 15, 25):
                p = run(*nobody, "/usr/bin/python3", "-c", read_as,
                        "%s/data/samples/%06d.npy" % (mnt, i), text=False)
                if i == 15:
                    check(p.returncode in (errno.EIO, errno.EACCES),
                          "read: errno %d" % p.returncode)
                else:
                    same_bytes(p.stdout, t.data[i].tobytes(), "sample")
        finally:
            run(*nobody, prog, "umount", mnt)
            lib.force_unmount(mnt)


@case
def many_parts_few_descriptors():
    t = skerch.create(fresh("many"), rows=400, part=1, sub=(16,),
                      incompressible=5)
    with Mount(t.all_path, nofile=64) as m:
        same_bytes(read(m / "data/array.bin"), t.data.tobytes(), "array.bin")
        for i in range(399, -1, -1):
            same_bytes(sample(m, i), t.data[i].tobytes(), "sample %d" % i)


@case
def cache_smaller_than_a_chunk():
    src = os.path.join(work, "bigchunk.h5")
    a = np.arange(64 * 65536, dtype="<i4").reshape(64, 65536) // 3
    with h5py.File(src, "w") as f:
        f.create_dataset("data", data=a, chunks=(16, 65536),
                         compression="gzip", compression_opts=1, shuffle=True)
    with Mount(src, opts=["-o", "cache-size=64K"]) as m:
        for i in (0, 17, 63, 1, 40):
            same_bytes(sample(m, i), a[i].tobytes(), "sample %d" % i)
        same_bytes(read(m / "data/array.bin"), a.tobytes(), "array.bin")
        same_bytes(pread(m / "data/array.npy", 100, 5000000),
                   a.tobytes()[5000000 - 128:5000000 - 28], "array.npy")


def main():
    global work
    work = lib.setup()
    lib.main()


if __name__ == "__main__":
    main()
