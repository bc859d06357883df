#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""HDF5 files in archives that name other files: these are members of the archive, and
nothing outside of it."""
import errno
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import lib
import numpy as np
from checks import check, equal, fails_with, read
from lib import Mount, case, exits, tensorfs

work = None
R = ["-o", "recursive"]


def path(name):
    return os.path.join(work, name)


def part(name, first, n=3):
    with h5py.File(name, "w") as f:
        f["d"] = np.arange(first, first + n * 4, dtype="i4").reshape(n, 4)


def virtual(f, name, files):
    layout = h5py.VirtualLayout((3 * len(files), 4), "i4")
    for i, at in enumerate(files):
        layout[3 * i:3 * i + 3] = h5py.VirtualSource(at, "d", (3, 4))
    f.create_virtual_dataset(name, layout, fillvalue=-1)


def tree(d):
    """Files that name each other in all ways; the one that names is run/main.h5."""
    os.makedirs(d + "/run/parts")
    os.makedirs(d + "/other")
    for i in range(3):
        part(d + "/run/parts/p%d.h5" % i, 100 * i)
    part(d + "/other/o.h5", 1000)
    np.arange(12, dtype="i4").tofile(d + "/run/raw.bin")
    os.symlink("parts/p0.h5", d + "/run/link.h5")
    with h5py.File(d + "/run/parts/inner.h5", "w") as f:
        virtual(f, "d", ["p2.h5"])  # beside itself, not beside main.h5
    with h5py.File(d + "/run/main.h5", "w") as f:
        virtual(f, "v", ["parts/p%d.h5" % i for i in range(3)])
        virtual(f, "nested", ["parts/inner.h5", "../other/o.h5"])
        virtual(f, "symlink", ["link.h5"])
        # Where the archive was made, which is not here.
        virtual(f, "moved", ["/somewhere/else/run/parts/p1.h5"])
        f["external"] = h5py.ExternalLink("parts/p1.h5", "/d")
        f["into"] = h5py.ExternalLink("parts/inner.h5", "/")
        f.create_dataset("raw", (3, 4), "i4", external=[("raw.bin", 0, 48)])


NAMES = ("v", "nested", "symlink", "external", "into/d", "raw")


def wanted(d):
    """As h5py reads the same files on disk; it resolves from where it is."""
    code = ("import h5py, numpy, sys\n"
            "with h5py.File('main.h5') as f:\n"
            "    numpy.savez(sys.argv[1], *[f[n][...] for n in sys.argv[2:]])\n")
    subprocess.run([sys.executable, "-c", code, path("want.npz"), *NAMES], check=True,
                   cwd=d + "/run")
    with np.load(path("want.npz")) as z:
        want = {n: z["arr_%d" % i] for i, n in enumerate(NAMES)}
    with h5py.File(d + "/run/parts/p1.h5") as f:
        want["moved"] = f["d"][...]
    for n, a in want.items():
        check(a.size and (a >= 0).all(), "h5py does not find the parts of " + n)
    return want


def packed(d):
    """Archives of it: their members plain, compressed in several ways, and deeper."""
    top = os.listdir(d)
    out = [path(n) for n in ("t.tar", "t.tar.gz", "t.zip", "plain.zip", "t.sqfs",
                             "out.tar")]
    subprocess.run(["tar", "-C", d, "-cf", out[0], *top], check=True)
    subprocess.run(["tar", "-C", d, "-czf", out[1], *top], check=True)
    subprocess.run(["zip", "-qr", out[2], *top], check=True, cwd=d)
    subprocess.run(["zip", "-0qr", out[3], *top], check=True, cwd=d)
    subprocess.run(["mksquashfs", d, out[4], "-quiet", "-noappend", "-no-progress"],
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["tar", "-C", work, "-cf", out[5], "t.tar"], check=True)
    return out


@case
def parts_beside():
    d = path("src")
    tree(d)
    want = wanted(d)
    for archive in packed(d):
        top = "t.tar/" if archive.endswith("out.tar") else ""
        with Mount(archive, opts=R) as m:
            if top:  # opened later, HDF5 files stay files
                check(os.path.isfile(m / "t.tar/run/main.h5"), "nested deeper")
                continue
            for name, a in want.items():
                what = "%s: %s" % (os.path.basename(archive), name)
                at = "%s/run/main.h5/%s/array.npy" % (m.path, name)
                got = np.load(at)
                check(np.array_equal(got, a), what)
    p = exits(tensorfs("verify", "-q", "--nested", path("t.tar")), 0, "verify")
    check("missing" not in p.stdout + p.stderr, p.stdout + p.stderr)


@case
def never_outside():
    """Files beside the archive, and whatever the system has, are not members."""
    d = path("escape")
    os.makedirs(d + "/sub")
    outside = path("outside.h5")
    part(outside, 5000)
    np.arange(12, dtype="i4").tofile(path("outside.bin"))
    os.symlink(outside, d + "/sub/link.h5")
    os.symlink("../../outside.h5", d + "/sub/up.h5")
    names = ["outside.h5", "../outside.h5", "../../outside.h5", "../../../outside.h5",
             outside, "link.h5", "up.h5", "//member:/../outside.h5",
             "/elsewhere/../outside.h5",
             "/proc/self/cwd/outside.h5", "//member:" + outside]
    with h5py.File(d + "/sub/main.h5", "w") as f:
        for i, n in enumerate(names):
            virtual(f, "v%d" % i, [n])
            f["x%d" % i] = h5py.ExternalLink(n, "/d")
        f.create_dataset("raw", (3, 4), "i4", external=[(path("outside.bin"), 0, 48)])
        f["good"] = np.arange(4)
    subprocess.run(["tar", "-C", d, "-cf", path("escape.tar"), "sub"], check=True)
    for options in R, R + ["-o", "missing=fill"]:
        with Mount(path("escape.tar"), opts=options) as m:
            top = m.path + "/sub/main.h5/"
            equal(np.load(top + "good/array.npy").tolist(), [0, 1, 2, 3], "good")
            for i in range(len(names)):
                check(not os.path.exists(top + "x%d" % i), "link to " + names[i])
                at = top + "v%d/array.npy" % i
                if len(options) == 2:
                    fails_with((errno.ENODATA,), lambda: read(at), names[i])
                else:
                    check((np.load(at) == -1).all(), "bytes of " + names[i])
            if len(options) == 2:
                fails_with((errno.ENODATA,), lambda: read(top + "raw/array.npy"), "raw")
    # What the user allows is looked at.
    with Mount(path("escape.tar"), opts=R + ["-o", "prefix=" + work]) as m:
        with h5py.File(outside) as f:
            got = np.load(m.path + "/sub/main.h5/v0/array.npy")
            check(np.array_equal(got, f["d"][...]), "prefix=")
    # Not what ".." makes of that.
    os.mkdir(path("allowed"))
    with Mount(path("escape.tar"), opts=R + ["-o", "prefix=" + path("allowed")]) as m:
        for i in range(len(names)):
            at = m.path + "/sub/main.h5/v%d/array.npy" % i
            fails_with((errno.ENODATA,), lambda: read(at), "prefix=, " + names[i])
    origin = ["-o", "prefix=${ORIGIN}"]  # the archive's directory
    with Mount(path("escape.tar"), opts=R + origin) as m, h5py.File(outside) as f:
        got = np.load(m.path + "/sub/main.h5/v0/array.npy")
        check(np.array_equal(got, f["d"][...]), "prefix=${ORIGIN}")


LINKS = ("a/inner.h5", "b/inner.h5", "run/link.h5", "run/up.h5", "run/dir/inner.h5")


@case
def links_name_from_where_they_are():
    """One run of bytes under several names: a hard link, a symlink, two equal files.
    Names in it are relative to the name that led there, as h5py has it on disk."""
    d = path("links")
    for i, sub in enumerate(("a", "b", "run", "other")):
        os.makedirs(d + "/" + sub)
        part(d + "/%s/p.h5" % sub, 100 * i)
    with h5py.File(d + "/a/inner.h5", "w") as f:
        virtual(f, "d", ["p.h5"])
    os.link(d + "/a/inner.h5", d + "/b/inner.h5")
    shutil.copy(d + "/a/inner.h5", d + "/other/inner.h5")
    os.symlink("../other/inner.h5", d + "/run/link.h5")
    os.symlink("../other", d + "/run/dir")
    part(d + "/run/only.h5", 900)
    with h5py.File(d + "/other/up.h5", "w") as f:
        virtual(f, "d", ["only.h5"])
    os.symlink("../other/up.h5", d + "/run/up.h5")
    with h5py.File(d + "/main.h5", "w") as f:
        for i, n in enumerate(LINKS):
            virtual(f, "v%d" % i, [n])
            f["x%d" % i] = h5py.ExternalLink(n, "/d")
    code = ("import h5py, sys\nwith h5py.File('main.h5') as f:\n"
            "    print(*(f[k + str(i)][0, 0] for k in 'vx' for i in range(%d)))\n")
    p = subprocess.run([sys.executable, "-c", code % len(LINKS)], cwd=d, check=True,
                       stdout=subprocess.PIPE, text=True)
    want = [int(n) for n in p.stdout.split()]
    check(len(set(want)) == 5 and min(want) >= 0, p.stdout)
    names = ["%s%d" % (k, i) for k in "vx" for i in range(len(LINKS))]
    out = [path(n) for n in ("links.tar", "links.tgz", "links.sqfs")]
    subprocess.run(["tar", "-C", d, "-cf", out[0], *os.listdir(d)], check=True)
    subprocess.run(["tar", "-C", d, "-czf", out[1], *os.listdir(d)], check=True)
    subprocess.run(["mksquashfs", d, out[2], "-quiet", "-noappend", "-no-progress",
                    "-noD", "-noF", "-no-fragments"], check=True,
                   stdout=subprocess.DEVNULL)
    for archive in out:
        with Mount(archive, opts=R) as m:
            got = [int(np.load("%s/main.h5/%s/array.npy" % (m.path, n))[0, 0])
                   for n in names]
            equal(got, want, os.path.basename(archive))


@case
def long_paths_are_other_members():
    """Compressed members whose paths differ in front of the last 1023 bytes only."""
    tail = ("d" * 250 + "/") * 5 + "x.h5"
    with zipfile.ZipFile(path("long.zip"), "w", zipfile.ZIP_DEFLATED) as z:
        for i, top in enumerate("ab"):
            part(path("x.h5"), 100 * i)
            z.write(path("x.h5"), top + "/" + tail)
    with Mount(path("long.zip"), opts=R) as m:
        for top in "ab":
            with zipfile.ZipFile(path("long.zip")) as z:
                with z.open(top + "/" + tail) as x, h5py.File(x) as f:
                    want = f["d"][...]
            at = m.path + "/" + top
            os.chdir(at)  # longer paths than PATH_MAX may be
            got = np.load(tail + "/d/array.npy")
            os.chdir(work)
            equal(got.tolist(), want.tolist(), top)


@case
def missing_by_name():
    """The sentence names the member that is not there."""
    d = path("gone")
    os.makedirs(d + "/run")
    with h5py.File(d + "/run/main.h5", "w") as f:
        virtual(f, "v", ["parts/nobody.h5"])
    with tarfile.open(path("gone.tar"), "w") as t:
        t.add(d + "/run", "run")
    with Mount(path("gone.tar"), opts=R) as m:
        at = m.path + "/run/main.h5/v/array.npy"
        fails_with((errno.ENODATA,), lambda: read(at), "a missing member")
        text = os.getxattr(at, "user.tensorfs.error").decode()
        check("gone.tar" in text and "run/parts/nobody.h5" in text, text)


work = lib.setup()
lib.main()
