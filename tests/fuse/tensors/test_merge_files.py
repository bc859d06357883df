#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""merge: containers of ACME, and all that may be in a file beside tensors."""
import os
import random
import shutil
import sys
import warnings

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import numpy as np

import acme
import lib
from checks import check, equal
from lib import case, exits, run
from mergelib import alone, beside, merge, mosaic, same, truth

work = None
rng = random.Random(7)
SLOW = bool(os.environ.get("TENSORFS_SANITIZED"))


def scratch(name):
    d = os.path.join(work, name)
    os.makedirs(d)
    return d


def names(d):
    return sorted(os.listdir(d))


def merged(main, *argv, out=None, want=None):
    """To another file: it is the same, and nothing else has changed."""
    want = want or truth(main)
    before = names(os.path.dirname(main))
    out = out or os.path.join(work, "out.h5")
    exits(merge(main, "-o", out, "--force", *argv), 0, "merge " + main)
    same(want, out)
    equal(names(os.path.dirname(main)), before, "files of the source")
    equal(beside(out), [], "left behind")
    return out


# --- containers of ACME ---------------------------------------------------------

@case
def acme_containers():
    for mode in acme.MODES:
        r = acme.write(os.path.join(work, "acme-" + mode), mode)
        want = truth(r.main)
        merged(r.main, want=want)
        exits(merge("--delete-parts", r.main), 0, mode)
        same(want, r.main)
        left = names(r.payload_dir) if os.path.isdir(r.payload_dir) else []
        equal(left, [], mode + ": payload")


@case
def acme_moved():
    """Absolute names of sources that are elsewhere now, as a mount finds them."""
    r = acme.write(os.path.join(work, "from"), "result_shape")
    want = truth(r.main)
    os.rename(os.path.join(work, "from"), os.path.join(work, "to"))
    main = os.path.join(work, "to", os.path.basename(r.main))
    out = os.path.join(work, "moved.h5")
    exits(merge(main, "-o", out), 0, "merge")
    same(want, out)


@case
def acme_failed():
    """A computation that raised has no file: an error with its name."""
    for mode in ("default", "result_shape"):
        r = acme.write(os.path.join(work, "failed-" + mode), mode, failed=(5,))
        p = exits(merge(r.main), 3, mode)
        check("myfunc_5.h5" in p.stderr, p.stderr)
        equal(beside(r.main), [], "left behind")


# --- everything else in a file --------------------------------------------------

@case
def other_objects():
    d = scratch("objects")
    with h5py.File(d + "/elsewhere.h5", "w") as f:
        g = f.create_group("deep/inside")
        g.attrs["x"] = 5
        g["array"] = np.arange(7)
        g["again"] = g["array"]
        g["name"] = h5py.SoftLink("array")
        g["back"] = h5py.ExternalLink("main.h5", "/kept")
    with h5py.File(d + "/main.h5", "w") as f:
        k = f.create_group("kept")
        k.create_dataset("chunked", data=np.arange(1000).reshape(10, 100),
                         chunks=(3, 30), compression="gzip")
        k["scalar"] = 3.5
        k["text"] = "\u00e4\u00f6\u00fc"
        k["strings"] = ["a", "bb", ""]
        k["empty"] = h5py.Empty("f4")
        k["hard"] = k["chunked"]
        k["soft"] = h5py.SoftLink("/kept/chunked")
        k["dangling"] = h5py.SoftLink("/nowhere")
        k["cycle"] = f["kept"]
        k["type"] = np.dtype("<i4")
        k["vlen"] = f.create_dataset("v", (3,), h5py.vlen_dtype("i2"))
        k["vlen"][1] = [1, 2, 3]
        f["refs"] = np.array([f["kept"].ref, k["chunked"].ref], h5py.ref_dtype)
        k.attrs["ref"] = k["chunked"].ref
        x = f.create_dataset("axis", data=np.arange(10))
        x.make_scale("rows")
        k["chunked"].dims[0].attach_scale(x)
        f["ext"] = h5py.ExternalLink("elsewhere.h5", "/deep/inside")
        f["ext2"] = h5py.ExternalLink("elsewhere.h5", "/deep/inside/name")
    out = work + "/objects.h5"
    exits(merge(d + "/main.h5", "-o", out), 0, "merge")
    alone(out)
    with h5py.File(out) as f, h5py.File(d + "/main.h5") as g:
        k, w = f["kept"], g["kept"]
        equal(sorted(k), sorted(w), "names")
        check((k["chunked"][...] == w["chunked"][...]).all(), "chunked")
        equal(k["chunked"].chunks, (3, 30), "chunks")
        equal(k["scalar"][()], 3.5, "scalar")
        equal(k["text"][()].decode(), "\u00e4\u00f6\u00fc", "text")
        equal(list(k["strings"][...]), [b"a", b"bb", b""], "strings")
        equal(k["empty"].shape, None, "null")
        check(k["hard"] == k["chunked"], "hard link")
        equal(k.get("soft", getlink=True).path, "/kept/chunked", "soft")
        equal(k.get("dangling", getlink=True).path, "/nowhere", "dangling")
        check(k["cycle"] == k, "cycle")
        equal(list(f["v"][1]), [1, 2, 3], "vlen")
        check(f[f["refs"][0]] == k and f[f["refs"][1]] == k["chunked"], "refs")
        check(f[k.attrs["ref"]] == k["chunked"], "reference in an attribute")
        check(k["chunked"].dims[0]["rows"] == f["axis"], "dimension scale")
        equal(list(f["ext/array"][...]), list(range(7)), "linked")
        equal(f["ext"].attrs["x"], 5, "attribute of a linked group")
        check(f["ext/again"] == f["ext/array"], "hard link there")
        check(f["ext2"] == f["ext/array"], "link to a link")
        check(f["ext/back"] == k, "link back into the main file")
    exits(run("h5dump", "-H", out), 0, "h5dump")


@case
def odd_types():
    """Virtual datasets of what NumPy has no array of, or another one."""
    d = scratch("types")
    compound = np.dtype([("a", "<i4"), ("s", "S5"), ("v", h5py.string_dtype())])
    cases = {
        "fixed": (np.array([b"abc", b"", b"12345"], "S5"), "S5"),
        "vlen": (["x", "yy", ""], h5py.string_dtype()),
        "ragged": ([np.arange(i, dtype="i2") for i in (2, 0, 5)],
                   h5py.vlen_dtype("i2")),
        "compound": (np.array([(i, b"s%d" % i, "v%d" % i) for i in range(3)],
                              compound), compound),
        "struct": (np.array([(1, 2.5), (3, 4.5), (5, 6.5)], "<i4,<f8"),
                   "<i4,<f8"),
        "subarray": (np.arange(12).reshape(3, 4), "(4,)<i8"),
        "enum": (np.array([0, 1, 0], "i1"),
                 h5py.enum_dtype({"A": 0, "B": 1}, "i1")),
    }
    main = d + "/m.h5"
    with h5py.File(main, "w") as m:
        for name, (data, dtype) in cases.items():
            dtype = dtype if not isinstance(dtype, str) else np.dtype(dtype)
            v = h5py.VirtualLayout((6,), dtype)
            for i in range(2):
                path = "%s%d.h5" % (name, i)
                with h5py.File(d + "/" + path, "w") as f:
                    x = f.create_dataset("x", (3,), dtype, chunks=(2,))
                    for k in range(3):
                        x[k] = data[k]
                v[3 * i:3 * i + 3] = h5py.VirtualSource(path, "x", (3,), dtype)
            m.create_virtual_dataset(name, v)
    want = truth(main)
    merged(main, want=want)
    exits(merge(main, "--delete-parts"), 0, "merge")
    same(want, main)
    equal(names(d), ["m.h5"], "files")


@case
def raw_files():
    d = scratch("raw")
    np.arange(50, dtype="<i4").tofile(d + "/a.raw")
    with h5py.File(d + "/m.h5", "w") as f:
        f.create_dataset("data", (5, 10), "<i4",
                         external=[("a.raw", 0, h5py.h5f.UNLIMITED)])
    out = work + "/raw.h5"
    exits(merge(d + "/m.h5", "-o", out), 0, "merge")
    with h5py.File(out) as f:
        equal(f["data"][...].ravel().tolist(), list(range(50)), "values")
    alone(out)


# What h5py gives of these is memory as it was: Debian's plugin of bitshuffle has no
# zstd, and chunks that are too short are taken for whole.
UNREADABLE = ("/bitshuffle_zstd/", "/damaged/")


def known(path, name, value):
    with h5py.File(path) as f:
        try:
            got = f[name][...]
        except (OSError, TypeError):  # a type or a filter that h5py has not
            return
    if got.dtype != value.dtype:
        return
    check(got.shape == value.shape and (got == value).all(), name + ": values")


@case
def zoo_of_files():
    """Files with everything that HDF5 has: the same, or refused with a reason."""
    import zoo_filters
    import zoo_layouts
    import zoo_links
    import zoo_types
    import zoo_virtual
    warnings.simplefilter("ignore")
    same_ones = refused_ones = 0
    step = 4 if SLOW else 1 if lib.full() else 3
    for module in (zoo_filters, zoo_layouts, zoo_links, zoo_types, zoo_virtual):
        files = module.make(scratch(module.__name__))
        for zf in files[::step]:
            if not zf.path or zf.opts or zf.env:
                continue
            out = os.path.join(work, "zoo.h5")
            p = merge(zf.path, "-o", out, "--force")
            check(p.returncode in (0, 3), "%s: exit %d: %s" % (
                zf.name, p.returncode, p.stderr))
            if p.returncode:
                check("tensorfs merge: " in p.stderr, zf.name + ": no reason")
                refused_ones += 1
                continue
            want = truth(zf.path)
            for rel, w in zf.wants.items():  # where h5py is wrong, or fails
                if not w.readable and "/" + rel in want:
                    del want["/" + rel]
                    if w.kind == "array" and w.value is not None and not \
                            ("/" + rel).startswith(UNREADABLE):
                        known(out, rel, w.value)
            same(want, out, stored=(UNREADABLE, zf.path), some=True)
            same_ones += 1
    check(same_ones > (25 if step == 1 else 5), "only %d merged, %d refused"
          % (same_ones, refused_ones))


# --- damage ---------------------------------------------------------------------

@case
def damaged_files():
    """Bits of the main file and of a part are wrong: never a crash."""
    d = scratch("damage")
    for n in range(lib.rounds(80)):
        shutil.rmtree(d)
        main = mosaic_of_everything(d)
        victim = os.path.join(d, ("main.h5", "p0.h5", "linked.h5")[n % 3])
        with open(victim, "r+b") as f:
            data = bytearray(f.read())
            for _ in range(rng.randrange(1, 6)):
                at = rng.randrange(len(data))
                data[at] = rng.randrange(256)
            f.seek(0)
            f.write(data)
        p = merge(main, "--delete-parts")
        check(p.returncode in (0, 1, 3), "%s, round %d: exit %d: %s" % (
            os.path.basename(victim), n, p.returncode, p.stderr))
        check("Sanitizer" not in p.stderr, p.stderr)
        if p.returncode:
            check("tensorfs merge: " in p.stderr, "not a word")


def mosaic_of_everything(d):
    os.makedirs(d)
    main = mosaic(d, (40, 6), [np.s_[0:20], np.s_[20:40]], chunks=(10, 6),
                  compression="gzip")
    with h5py.File(d + "/linked.h5", "w") as f:
        f["strings"] = ["a", "bb", "ccc"]
        f["numbers"] = np.arange(50)
        f["numbers"].attrs["x"] = ["y", "z"]
        f.create_dataset("c", data=np.zeros((9, 9)), chunks=(2, 2))
        f["ref"] = f["numbers"].ref
    with h5py.File(main, "r+") as f:
        f["link"] = h5py.ExternalLink("linked.h5", "/")
        f["flags"] = ["OK"] * 40
    return main


def main():
    global work
    work = lib.setup(fuse=False)
    lib.main()


if __name__ == "__main__":
    main()
