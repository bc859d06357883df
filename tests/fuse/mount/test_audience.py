#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""allow_other: what other users may see of what the daemon may read."""
import os
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import numpy as np

import lib
import user
from checks import check, equal, read
from lib import Mount, case, run

work = None
SECRET = b"secret!!\n"
OPTS = ["-o", "allow_other"]


def as_other(path):
    """(exit status, bytes): what an ordinary user reads."""
    p = run("cat", path, text=False, **user.as_user())
    return p.returncode, p.stdout


def place(name):
    d = os.path.join(work, name)
    os.mkdir(d)
    os.chmod(d, 0o755)
    return d


def master(d, **named):
    """A file whose datasets are elsewhere, and one of its own."""
    src = os.path.join(d, "m.h5")
    with h5py.File(src, "w") as f:
        f["mine"] = np.arange(5)
        for kind, path in named.items():
            if kind == "raw":
                f.create_dataset("raw", (9,), "u1", external=[(path, 0, 9)])
            elif kind == "link":
                f["link"] = h5py.ExternalLink(path, "/d")
            else:
                layout = h5py.VirtualLayout((9,), "u1")
                layout[:] = h5py.VirtualSource(path, "d", (9,))
                f.create_virtual_dataset("virtual", layout)
    return src


def secret(path, kind):
    if kind == "raw":
        with open(path, "wb") as f:
            f.write(SECRET)
    else:
        with h5py.File(path, "w") as f:
            f["d"] = np.frombuffer(SECRET, "u1")


def is_private(src, kind):
    with Mount(src, opts=OPTS) as m:
        for ds in ("mine", kind):
            path = m / ds + "/array.bin"
            equal(os.stat(path).st_mode & 0o777, 0o400, "mode of " + path)
            code, got = as_other(path)
            check(code != 0 and not got, "%s: exit %d, %r" % (path, code, got))
        equal(read(m / kind + "/array.bin"), SECRET, "for the owner")


@case
def files_that_a_file_names():
    for kind in ("raw", "link", "virtual"):
        d = place("file-" + kind)
        path = os.path.join(d, "secret")
        secret(path, kind)
        os.chmod(path, 0o600)
        is_private(master(d, **{kind: path}), kind)


@case
def directories_on_the_way():
    for kind in ("raw", "link", "virtual"):
        d = place("way-" + kind)
        os.mkdir(d + "/in")
        secret(d + "/in/secret", kind)
        os.chmod(d + "/in", 0o700)
        is_private(master(d, **{kind: d + "/in/secret"}), kind)


@case
def a_source_in_a_private_directory():
    d = place("deep")
    src = master(d)
    with Mount(src, opts=OPTS) as m:
        code, got = as_other(m / "mine/array.bin")
        equal((code, got), (0, np.arange(5).tobytes()), "in a public one")
    os.chmod(d, 0o700)
    with Mount(src, opts=OPTS) as m:
        equal(as_other(m / "mine/array.bin"), (1, b""), "in a private one")
    with Mount(src) as m:
        equal(os.stat(m / "mine/array.bin").st_mode & 0o777, 0o444,
              "without allow_other")


def acl(path, *named):
    """Give `path` an access control list: its mode's entries, a mask of rwx, and
    (tag, permissions, id) as linux/posix_acl.h has them."""
    mode, nobody = os.stat(path).st_mode, 0xffffffff
    entries = [(0x01, mode >> 6 & 7, nobody), (0x04, mode >> 3 & 7, nobody),
               (0x10, 7, nobody), (0x20, mode & 7, nobody), *named]
    os.setxattr(path, "system.posix_acl_access", struct.pack("<I", 2) + b"".join(
        struct.pack("<HHI", *e) for e in sorted(entries)))


@case
def access_control_lists():
    """One that takes from a user or a group what the mode gives to all; and one that
    only gives."""
    user_tag, group_tag, other = 0x02, 0x08, user.UID
    for name, entry, public in (("user", (user_tag, 0, other), False),
                                ("group", (group_tag, 2, other), False),
                                ("giving", (user_tag, 7, other), True)):
        for on in ("file", "directory"):
            d = place("acl-%s-%s" % (name, on))
            os.mkdir(d + "/in")
            path = d + "/in/secret"
            secret(path, "raw")
            acl(path if on == "file" else d + "/in", entry)
            src = master(d, raw=path)
            if not public:
                is_private(src, "raw")
                continue
            with Mount(src, opts=OPTS) as m:
                equal(as_other(m / "raw/array.bin"), (0, SECRET), on)


@case
def what_turns_up_later():
    """A part that was not there yet: its own reads fail, the rest stays."""
    d = place("later")
    src = master(d, virtual=d + "/part")
    with Mount(src, opts=OPTS) as m:
        equal(as_other(m / "mine/array.bin")[0], 0, "the others")
        secret(d + "/part", "virtual")
        os.chmod(d + "/part", 0o600)
        equal(as_other(m / "virtual/array.bin"), (1, b""), "the part")
        why = os.getxattr(m / "virtual/array.bin", "user.tensorfs.error")
        check(b"not readable by all users" in why, "error: %r" % why)
        equal(as_other(m / "mine/array.bin")[0], 0, "the others, after it")
        os.chmod(d + "/part", 0o644)
        equal(as_other(m / "virtual/array.bin"), (0, SECRET), "made public")


@case
def chunks_of_zarr_stores():
    d = place("store.zarr")
    os.mkdir(d + "/a")
    with open(d + "/.zgroup", "w") as f:
        f.write('{"zarr_format": 2}')
    with open(d + "/a/.zarray", "w") as f:
        f.write('{"zarr_format": 2, "shape": [9], "chunks": [9], "dtype": '
                '"|u1", "compressor": null, "fill_value": 0, "order": "C", '
                '"filters": null}')
    with open(d + "/a/0", "wb") as f:
        f.write(SECRET)
    with Mount(d, opts=OPTS) as m:
        equal(as_other(m / "a/array.bin"), (0, SECRET), "public")
    os.chmod(d + "/a/0", 0o600)
    with Mount(d, opts=OPTS) as m:
        code, got = as_other(m / "a/array.bin")
        check(code != 0 and not got, "private: exit %d, %r" % (code, got))


@case
def outside_of_the_tree():
    """Where root mounts for others: /proc shows what it shows to its reader."""
    if not lib.ROOT:
        lib.note("only root's mounts are confined")
        return
    d, other = place("inside"), place("outside")
    for kind in ("raw", "link", "virtual"):
        secret(other + "/" + kind, kind)
    named = {k: other + "/" + k for k in ("raw", "link", "virtual")}
    src = master(d, **named)
    with Mount(src) as m:
        for kind in named:
            equal(read(m / kind + "/array.bin"), SECRET, kind + ", for root")
    with Mount(src, opts=OPTS) as m:
        equal(as_other(m / "mine/array.bin")[0], 0, "its own")
        for kind in ("raw", "virtual"):
            code, got = as_other(m / kind + "/array.bin")
            check(code != 0 and not got, "%s: %d, %r" % (kind, code, got))
        why = os.getxattr(m / "raw/array.bin", "user.tensorfs.error")
        check(b"prefix=" in why, "error: %r" % why)
        check(not os.path.exists(m / "link/array.bin"), "the link leads out")
    with Mount(src, opts=["-o", "allow_other,prefix=" + other]) as m:
        for kind in named:
            equal(as_other(m / kind + "/array.bin"), (0, SECRET),
                  kind + " with prefix=")


@case
def symlinks_lead_out_as_well():
    if not lib.ROOT:
        return
    d, other = place("links"), place("target")
    secret(other + "/f", "raw")
    os.symlink(other + "/f", d + "/f")
    src = master(d, raw=d + "/f")
    with Mount(src, opts=OPTS) as m:
        check(as_other(m / "raw/array.bin")[0] != 0, "through a symlink")
    there = os.path.join(d, "source.h5")
    os.symlink(master(other), there)
    with Mount(there, opts=OPTS) as m:
        equal(as_other(m / "mine/array.bin")[0], 0, "a source that is one")


def main():
    global work
    work = lib.setup()
    d = work
    while os.path.basename(d).startswith("tensorfs-"):  # others have to get here
        os.chmod(d, os.stat(d).st_mode | 0o055)
        d = os.path.dirname(d)
    lib.main()


if __name__ == "__main__":
    if not lib.ROOT:
        lib.note("skipped: two users are needed, and only root has them")
        sys.exit(77)
    main()
