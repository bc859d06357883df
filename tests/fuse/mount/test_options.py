#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Options that are misspelt, out of range, or for other sources than these: a sentence
and exit status 2.  The spellings of the manual are taken."""
import os
import sys
import tarfile
import zipfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import lib
import numpy as np
import zarr
from checks import check, equal, read
from lib import Mount, case, exits, tensorfs

work = None
A = np.arange(6 * 1600, dtype="f4").reshape(6, 40, 40)


def at(*names):
    return os.path.join(work, *names)


def make():
    for d in ("d", "dd/sub", "h5", "files/x"):
        os.makedirs(at(d))
    with h5py.File(at("a.h5"), "w") as f:
        f.create_dataset("data", data=A, chunks=(2, 40, 40))
        f["g/x"] = A[0]
    with h5py.File(at("hidden.h5"), "w") as f:
        f[".data3"] = A
    for i in range(3):
        np.save(at("d/p%d.npy" % i), A)
        with h5py.File(at("h5/%d.h5" % i), "w") as f:
            f["data"] = A
    np.save(at("a.npy"), A)
    np.save(at("dd/p0.npy"), A)
    np.savez(at("a.npz"), x=A)
    zarr.save_array(at("a.zarr"), A)
    with zarr.ZipStore(at("z.zip"), mode="w") as store:
        zarr.open_group(store, mode="w").create_dataset("g/a", data=A)
    with zipfile.ZipFile(at("t.zip"), "w") as z:
        z.writestr("x/a", "words")
    A.tofile(at("a.bin"))
    for i in range(5):
        with open(at("files/x/%03d.txt" % i), "w") as f:
            f.write("line %d\n" % i * 1000)
    with tarfile.open(at("t.tar"), "w") as t:
        t.add(at("files/x"), "x")


# Options, sources, what the sentence says.
MISSPELT = [
    ("--shard=4", "a.h5", "did you mean '--shards'"),
    ("--shards=0", "a.h5", "not between 1 and"),
    ("--shards=-1", "a.h5", "not a whole number"),
    ("--shards=4.5", "a.h5", "not a whole number"),
    ("--shards=size=0", "a.h5", "a shard cannot have 0 bytes"),
    ("--shards=size=much", "a.h5", "not a size"),
    ("--shards=count=0", "a.h5", "not between 1 and"),
    ("--shards=4 --shard-size=1M", "a.h5", "does not go with"),
    ("--shards=size=1M --shards=4", "a.h5", "does not go with"),
    ("--views=epoch", "a.h5", "there is no view 'epoch'"),
    ("--views=", "a.h5", "no view given"),
    ("--views=array,,bin", "a.h5", "there is no view ''"),
    ("--views=ARRAY", "a.h5", "there is no view 'ARRAY'"),
    ("--labels=", "a.h5", "needs a value"),
    ("--dataset=", "a.h5", "needs a value"),
    ("--zarr-root=..", "a.h5", "cannot be the name of a directory"),
    ("--zarr-root=a/b", "a.h5", "cannot be the name of a directory"),
    ("--sample-axes=0", "a.h5", "not between 1 and"),
    ("--missing=skip", "a.h5", "not error or fill"),
    ("--dtype-order=big", "a.h5", "not little or source"),
    ("--concat=x", "d", "not a whole number"),
    ("--concat=99", "d", "not between 0 and"),
    ("--raw=shape=4x4", "a.bin", "dtype= is missing"),
    ("--raw=dtype=f4,shape=0", "a.bin", "not a number of at least 1"),
    ("--raw=dtype=f4,shape=4,4", "a.bin", "not KEY=VALUE"),
    ("--raw=dtype=f4,order=Q", "a.bin", "not C or F"),
    ("--raw=dtype=f4,header=-1", "a.bin", "not a size"),
    ("--raw=dtype=f4,hedaer=1", "a.bin", "unknown key 'hedaer'"),
    ("--raw=dtype=f4,count=0", "a.bin", "not between 1 and"),
]
NOT_FOR_THESE = [
    ("--dataset=x", "t.tar", "for archives it is subdir="),
    ("--dataset=x", "a.npz", "for archives it is subdir="),
    ("--dataset=x", "t.zip", "for archives it is subdir="),
    ("--labels=x", "z.zip", "labels= is a dataset"),
    ("--dataset=x", "a.npy", "HDF5 files and Zarr stores"),
    ("--dataset=x", "h5", "name the file in it"),
    ("--dataset=x --concat=0", "d", "for HDF5 files"),
    ("--dataset=x --raw=dtype=f4", "a.bin", "HDF5 files and Zarr stores"),
    ("--subdir=x", "a.h5", "for HDF5 files it is dataset="),
    ("--subdir=x", "a.npy", "is for archives"),
    ("--subdir=x", "a.zarr", "is for archives"),
    ("--subdir=x", "d", "name the archive in it"),
    ("--subdir=x --concat=0", "d", "is for archives"),
    ("--subdir=x --raw=dtype=f4", "a.bin", "is for archives"),
    ("--offset=4 --raw=dtype=f4", "a.bin", "is for archives"),
    ("--offset=4", "a.zarr", "is for archives"),
    ("--offset=4", "d", "is for archives"),
    ("--offset=4 --concat=0", "d", "is for archives"),
    ("--concat=0", "a.h5", "is not a directory"),
    ("--concat=0", "t.tar", "is not a directory"),
    ("--concat=0", "dd", "sub is a directory"),
    ("--concat=0", "files", "x is a directory"),
    ("--concat=3", "d", "no such axis"),
    ("--concat=-4", "d", "no such axis"),
    ("--concat=3", "h5", "no such axis"),
    ("--concat=0 --raw=dtype=f4", "d", "exclude each other"),
    ("--raw=dtype=f4", "d", "is a directory, but raw= is for files"),
    ("--zarr-root=data", "a.h5", "there is a 'data' in the root"),
    ("--zarr-root=.data", "hidden.h5", "there is a '.data3' in the root"),
    ("--versions", "a.h5", "versions is for archives"),
    ("--nested", "a.npy", "(nested) is for archives"),
    ("--index=/tmp", "a.zarr", "index= is for archives"),
    ("--prefix=/data", "a.npy", "prefix= is for HDF5 files"),
]


def say(argv, word):
    p = exits(tensorfs(*argv), 2, " ".join(argv))
    check(word in p.stderr, "%s: no '%s' in: %s" % (argv, word, p.stderr))
    lines = [x for x in p.stderr.splitlines() if not x.startswith("Try ")]
    equal(len(lines), 1, "%s: sentences" % argv)
    equal(p.stdout, "", "%s: standard output" % argv)


@case
def misspelt():
    for options, source, word in MISSPELT:
        say(["ls", *options.split(), at(source)], word)


@case
def not_for_these_sources():
    for options, source, word in NOT_FOR_THESE:
        for command in ("ls", "info"):
            say([command, *options.split(), at(source)], word)
    where = at("st")
    os.mkdir(where)
    say(["stage", "--to", where, "--reserve=0", "--subdir=x", at("a.h5")],
        "is for archives")
    equal([x for x in os.listdir(where) if not x.startswith(".")], [], "staged")


@case
def not_for_mounts():
    """The same words after -o, and with several sources."""
    m = at("m")
    os.mkdir(m)
    for options, sources, word in (
            ("union", ["a.h5"], "union is for archives"),
            ("union", ["a.h5", "t.tar"], "a.h5 is not an archive"),
            ("union", ["files", "t.tar"], "files is a directory"),
            ("union,dataset=x", ["t.tar", "t.tar"], "it is subdir="),
            ("union,dataset=x", ["t.zip", "t.zip"], "it is subdir="),
            ("dataset=data", ["a.h5", "t.tar"], "it is subdir="),
            ("dataset=data", ["a.h5", "a.npy"], "HDF5 files and Zarr stores"),
            ("recursive", ["a.h5", "a.npy"], "recursive"),
            ("reserve=1G", ["a.h5"], "--reserve needs --stage"),
            ("to=/tmp", ["a.h5"], "--to needs --stage"),
            ("order=torch,stage", ["a.h5"], "--stage=fit accepts both"),
            ("shm-dir=/tmp", ["a.h5"], "--shm-dir needs --shm-cache"),
            ("drop_last", ["a.h5"], "unknown option '-o drop_last'"),
            ("zarr_rot=x", ["a.h5"], "did you mean '-o zarr-root'"),
            ("shards=size=0", ["a.h5"], "a shard cannot have 0 bytes")):
        say(["mount", "-o", options, *map(at, sources), m], word)
        check(not lib.mount_line(m), options + ": mounted")
    say(["run", "--to=/tmp", at("a.h5"), "--", "true"], "needs --stage")
    say(["run", "--stage", "--order=torch", at("a.h5"), "--", "true"],
        "order= has no use with --stage")


@case
def of_stage_and_pack():
    say(["stage", "--null", at("a.h5")], "--null needs --files-from")
    for options, out, word in (
            ("--null", "o.tar", "--null needs"),
            ("--shards=0", "o-%06d.tar", "not between 1 and"),
            ("--shards=size=0", "o-%06d.tar", "a shard cannot have 0 bytes"),
            ("--shards=2 --shards=size=1M", "o-%06d.tar", "cannot be combined")):
        say(["pack", *options.split(), at("files"), at(out)], word)
    check(not [x for x in os.listdir(work) if x.startswith("o")], "files")


@case
def one_of_several():
    """An option that one of the sources has a use for."""
    for options, sources in (("versions,index=none", ["a.h5", "t.tar"]),
                             ("prefix=/data", ["a.h5", "a.npy"]),
                             ("recursive", ["a.npy", "d"]),
                             ("dataset=g", ["a.h5", "z.zip"]),
                             ("zarr_root=.z", ["a.h5", "t.tar"]),
                             ("zarr_root=.z", ["t.tar", "d"]),
                             ("index=none", ["z.zip", "t.zip"])):
        with Mount(None, sources=[at(s) for s in sources],
                   opts=["-o", options]) as m:
            equal(sorted(os.listdir(m.path)), sorted(sources), options)
    for k, (options, sources) in enumerate((("--nested", ["a.h5", "t.tar"]),
                                            ("--versions", ["t.tar", "a.h5"]),
                                            ("--prefix=/data", ["a.h5", "a.npy"]))):
        where = at("several%d" % k)
        os.mkdir(where)
        p = tensorfs("stage", "--to", where, "--reserve=0", options,
                     *[at(s) for s in sources])
        equal((p.returncode, p.stderr), (0, ""), options)
        equal(len([x for x in os.listdir(where) if not x.startswith(".")]), 2, options)


@case
def spellings():
    """What the documents write is taken, and does it."""
    for options, n in (("shards=3", 3), ("shards=count=2", 3),
                       ("shard_count=5", 2), ("shards=size=10K", 6)):
        with Mount(at("a.h5"), opts=["-o", options]) as m:
            tars = [x for x in os.listdir(m / "data/shards")
                    if x.endswith(".tar")]
            equal(len(tars), n, options)
    with Mount(at("a.h5"), opts=["-o", "zarr_root=z,views=array:zarr"]) as m:
        equal(sorted(os.listdir(m.path)), ["data", "g", "z", "z3"], "root")
        equal(sorted(os.listdir(m / "data")), ["array.npy", "info.json", "zarr"],
              "views")
        z = zarr.open_consolidated(zarr.DirectoryStore(m / "z"), mode="r")
        equal(z["data"][:].tobytes(), A.tobytes(), "z")
        top = m / "data/epochs/0/rank-0-of-4,"
        equal(sorted(os.listdir(top + "drop_last")),
              sorted(os.listdir(top + "drop-last")), "drop_last")
        equal(read(top + "drop_last/000000.npy"),
              read(top + "drop-last/000000.npy"), "a sample")
    for by, n in (("--shards=count=2", 3), ("--shards=size=20K", 3)):
        out = at("p" + by[-1])
        os.mkdir(out)
        exits(tensorfs("pack", "-q", by, at("files"), out + "/%06d.tar"), 0, by)
        equal(len([x for x in os.listdir(out) if x.endswith(".tar")]), n, by)


work = lib.setup()
make()
lib.main()
