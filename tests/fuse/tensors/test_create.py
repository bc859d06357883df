#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""create: files with the bytes that h5py writes for skerch; all of them, or none."""
import json
import os
import shutil
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import numpy as np

import lib
from checks import check, equal
from distlib import (all_bytes, bytes_of, contents, same_dump, skerch_create)
from lib import TENSORFS, case, exits, limit_files, run, stop, tensorfs, wait_until
from user import UID, as_user

work = None


def scratch(name):
    d = os.path.join(work, name)
    os.makedirs(d)
    return d


def create(fmt, shape, block, dtype, *options, **kw):
    return tensorfs("create", fmt, "--shape=" + ",".join(map(str, shape)),
                    "--block=%d" % block, "--dtype=" + dtype, *options, **kw)


def refused(p, code, *words):
    exits(p, code, "create")
    for w in words:
        check(w in p.stderr, "'%s' is not in: %s" % (w, p.stderr))
    equal(p.stdout, "", "standard output")


# --- the layout ---------------------------------------------------------------------

def compare(name, shape, block, dtype, *options, exact=True, **kw):
    ours, theirs = scratch(name), scratch(name + "-h5py")
    p = exits(create(ours + "/run_{}.h5", shape, block, dtype, *options), 0,
              name)
    equal(p.stdout, ours + "/run_ALL.h5\n", "standard output")
    skerch_create(theirs + "/run_{}.h5", shape, block, np.dtype(dtype), **kw)
    equal(sorted(os.listdir(ours)), sorted(os.listdir(theirs)), "names")
    for n in sorted(os.listdir(ours)):
        a, b = os.path.join(ours, n), os.path.join(theirs, n)
        same_dump(a, b, name + ": " + n)
        if exact:
            check(bytes_of(a) == bytes_of(b), "%s: %s has other bytes" % (
                name, n))
    data, flags = contents(ours + "/run_ALL.h5")
    check(data.shape == shape and not any(data.tobytes()),
          "data is not all zero")
    equal(set(flags), {"initialized"}, "flags")


@case
def bytes_as_skerch():
    compare("plain", (10, 4), 3, "float32")


@case
def sizes_and_ranks():
    compare("even", (100, 3, 5), 10, "float64")
    compare("vector", (17,), 5, "int16")
    compare("one-part", (7, 2), 7, "uint8")
    compare("larger-block", (7, 2), 100, "uint8")
    compare("row-each", (101, 2, 2, 2), 1, "float16")


@case
def types():
    for d in ("bool", "complex64", "complex128", "int8", "uint64", ">f4",
              ">i2", "<f8", "S5"):
        compare("type-" + d.strip("<>"), (9, 3), 4, d)


@case
def chunks():
    compare("chunked", (20, 6, 8), 8, "float32", "--chunk=3,6,4",
            chunks=(3, 6, 4))


@case
def filters():
    compare("none", (20, 6), 8, "float32", "--comp=none", compression=None)
    # Flags are encoded by zlib, too, and data is shuffled: another layout.
    for comp, ids in (("gzip:6", ["shuffle", "1"]), ("zstd", ["32015"]),
                      ("lz4", ["32004"]), ("lzf", ["lzf"])):
        d = scratch("comp-" + comp.replace(":", ""))
        p = exits(create(d + "/x{}", (20, 6), 8, "int32", "--comp=" + comp,
                         "--json"), 0, comp)
        equal(json.loads(p.stdout)["comp"], comp, "comp")
        with h5py.File(d + "/x000-008", "r") as f:
            plist = f["data"].id.get_create_plist()
            got = [plist.get_filter(i) for i in range(plist.get_nfilters())]
            check(any(str(g[0]) in ids or g[3].decode() in ids for g in got),
                  "%s: filters are %s" % (comp, got))
        np.save(d + "/a.npy", np.arange(120, dtype="i4").reshape(20, 6) // 9)
        exits(tensorfs("write", d + "/xALL", d + "/a.npy"), 0, "write")
        p = exits(tensorfs("cat", d + "/xALL:data/array.npy", text=False), 0,
                  "cat")
        check(p.stdout == bytes_of(d + "/a.npy"), comp + ": other bytes")


@case
def names():
    d = scratch("names")
    for fmt in ("{}", "a%b{}100%.h5", "{}.h5", "x-{}"):
        p = exits(create(os.path.join(d, fmt), (5, 2), 2, "f4"), 0, fmt)
        main = os.path.join(d, fmt.format("ALL"))
        equal(p.stdout.strip(), main, fmt)
        with h5py.File(os.path.join(d, fmt.format("02-04")), "r+") as f:
            f["data"][...] = 7
            f["flags"][...] = "OK"
        data, flags = contents(main)
        equal([int(x) for x in data[:, 0]], [0, 0, 7, 7, 0], fmt)
        equal(flags[2:4], ["OK", "OK"], fmt)
        p = exits(tensorfs("cat", main + ":data/array.bin", text=False), 0,
                  "cat")
        check(p.stdout == data.tobytes(), fmt + ": other bytes")
    p = exits(lib.run("sh", "-c", "cd '%s' && '%s' create here_{}.h5 "
                      "--shape=4 --block=2 --dtype=f4" % (d, TENSORFS)), 0,
              "in the working directory")
    equal(p.stdout, "here_ALL.h5\n", "standard output")


@case
def summary():
    d = scratch("summary")
    p = exits(create(d + "/s_{}.h5", (10, 4), 4, "float32", "--json"), 0, "")
    j = json.loads(p.stdout)
    size = sum(os.path.getsize(os.path.join(d, n)) for n in os.listdir(d))
    equal(j, {"main": d + "/s_ALL.h5", "dtype": "<f4", "shape": [10, 4],
              "block": 4, "parts": 3, "chunk": [4, 4], "comp": "lzf",
              "bytes": size}, "summary")


@case
def many_parts():
    n = 3000
    if os.environ.get("TENSORFS_SANITIZED"):
        n = 500
    d = scratch("many")
    exits(create(d + "/m_{}.h5", (n, 3), 1, "float32",
                 preexec=limit_files(64)), 0, "with 64 open files")
    names = os.listdir(d)
    equal(len(names), n + 1, "files")
    one = bytes_of(d + "/" + sorted(names)[0])
    for name in sorted(names)[1:-1:97]:
        check(bytes_of(d + "/" + name) == one, name + " is another")
    with h5py.File(d + "/m_ALL.h5", "r") as f:
        equal(f["data"].shape, (n, 3), "shape")
        equal(len(f["data"].virtual_sources()), n, "mappings")
        equal(f["flags"][n // 2], b"initialized", "flag")


# --- what is refused ------------------------------------------------------------------

@case
def wrong_arguments():
    d = scratch("wrong")
    f = d + "/r_{}.h5"
    usage = [
        (("create", d + "/r.h5", "--shape=4", "--block=1", "--dtype=f4"),
         "{}"),
        (("create", d + "/{}/{}.h5", "--shape=4", "--block=1", "--dtype=f4"),
         "one {}"),
        (("create", d + "/{}/a.h5", "--shape=4", "--block=1", "--dtype=f4"),
         "one {}"),
        (("create", f, "--block=1", "--dtype=f4"), "--shape is missing"),
        (("create", f, "--shape=4", "--dtype=f4"), "--block is missing"),
        (("create", f, "--shape=4", "--block=1"), "--dtype is missing"),
        (("create", f, "--shape=", "--block=1", "--dtype=f4"), "value"),
        (("create", f, "--shape=()", "--block=1", "--dtype=f4"), "axes"),
        (("create", f, "--shape=4,x", "--block=1", "--dtype=f4"), "length"),
        (("create", f, "--shape=4,-1", "--block=1", "--dtype=f4"), "length"),
        (("create", f, "--shape=0,4", "--block=1", "--dtype=f4"), "axis 0"),
        (("create", f, "--shape=4,0", "--block=1", "--dtype=f4"), "axis 1"),
        (("create", f, "--shape=" + ",".join("1" * 33), "--block=1",
          "--dtype=f4"), "32 axes"),
        (("create", f, "--shape=4", "--block=0", "--dtype=f4"), "--block"),
        (("create", f, "--shape=4", "--block=1", "--dtype=float33"), "float33"),
        (("create", f, "--shape=4", "--block=1", "--dtype=f4", "--comp=xz"),
         "xz"),
        (("create", f, "--shape=4", "--block=1", "--dtype=f4",
          "--chunk=1,1"), "2 axes"),
        (("create", f, "--shape=4", "--block=1", "--dtype=f4", "--chunk=0"),
         "chunk"),
        (("create", f, "--shape=4", "--block=1", "--dtype=f4", "--chunk=9"),
         "longer"),
        (("create", f, "--shape=4294967296,4294967296", "--block=4294967296",
          "--dtype=f4"), "2^63"),
        (("create", f, "--shape=65536,65536", "--block=65536",
          "--dtype=f4"), "--chunk"),
        (("create", f, "--shape=300000000", "--block=300000000",
          "--dtype=i1"), "flags"),
        (("create", f, "--shape=100000000", "--block=1", "--dtype=i1"),
         "--block larger"),
        (("create", d + "/" + "x" * 250 + "{}", "--shape=4", "--block=1",
          "--dtype=f4"), "too long"),
    ]
    for argv, word in usage:
        refused(tensorfs(*argv), 2, word)
    equal(os.listdir(d), [], "what was left")
    # 4 GiB in one chunk: as the sentence says, cut it.
    exits(create(f, (65536, 65536), 65536, "f4", "--chunk=64,65536"), 0,
          "with --chunk")
    refused(create(d + "/no/r_{}.h5", (4,), 2, "f4"), 1, "no")


@case
def existing_files():
    d = scratch("exist")
    f = d + "/r_{}.h5"
    for there in ("r_ALL.h5", "r_04-06.h5"):
        with open(d + "/" + there, "w") as x:
            x.write("mine")
        refused(create(f, (8, 2), 2, "f4"), 1, there, "--force")
        equal(all_bytes(d), {there: b"mine"}, "after " + there)
        os.remove(d + "/" + there)
    exits(create(f, (8, 2), 2, "f4"), 0, "")
    before = all_bytes(d)
    refused(create(f, (8, 2), 2, "f8"), 1, "--force")
    equal(all_bytes(d), before, "files")
    p = exits(create(f, (8, 2), 4, "f8", "--force"), 0, "--force")
    check("4 files in the same directory" in p.stderr, p.stderr)
    equal(contents(d + "/r_ALL.h5")[0].dtype, np.dtype("f8"), "type")
    equal(sorted(os.listdir(d)), sorted(set(before) | {"r_00-04.h5",
                                                        "r_04-08.h5"}), "")
    os.mkdir(d + "/s_ALL.h5")
    refused(create(d + "/s_{}.h5", (8, 2), 2, "f4", "--force"), 1,
            "directory")


@case
def force_loses_nothing_when_it_fails():
    """A part is a directory: known at once.  A name that cannot be replaced is not."""
    d = scratch("force")
    exits(create(d + "/r_{}.h5", (8, 2), 2, "f4"), 0, "")
    before = all_bytes(d)
    if run("chattr", "+i", d + "/r_02-04.h5").returncode:
        raise lib.Missing("chattr +i on this file system")
    try:
        refused(create(d + "/r_{}.h5", (8, 2), 2, "f8", "--force"), 1,
                "r_02-04.h5")
    finally:
        run("chattr", "-i", d + "/r_02-04.h5")
    equal(all_bytes(d), before, "files")


@case
def force_that_was_killed():
    """The next create, also one that fails, puts back what it was replacing."""
    d, new = scratch("killed"), scratch("new")
    exits(create(new + "/r_{}.h5", (8, 2), 2, "f8"), 0, "")
    exits(create(d + "/r_{}.h5", (8, 2), 2, "f4"), 0, "")
    before, after = all_bytes(d), all_bytes(new)
    order = sorted(before)  # the main file is the last
    for aside, placed in ((1, 0), (3, 0), (5, 0), (5, 1), (5, 4), (5, 5)):
        fresh = d + "/.r_ALL.h5.tensorfs-AbCdEf"
        os.makedirs(fresh + "/old")
        for name in order:
            with open(fresh + "/" + name, "wb") as f:
                f.write(after[name])
        for name in reversed(order[-aside:]):
            os.rename(d + "/" + name, fresh + "/old/" + name)
        for name in order[:placed]:
            os.rename(fresh + "/" + name, d + "/" + name)
        p = create(d + "/r_{}.h5", (8, 2), 2, "f2")
        refused(p, 1, "already exists")
        what = "%d aside, %d placed" % (aside, placed)
        equal(all_bytes(d), after if placed == 5 else before, what)
        equal("was put back" in p.stderr, placed < 5, what)


@case
def force_while_it_is_written():
    """The writer would put its part of the old tensor into the new one."""
    d = scratch("written")
    exits(create(d + "/r_{}.h5", (8, 2), 4, "f4"), 0, "")
    with subprocess.Popen([TENSORFS, "write", d + "/r_ALL.h5", "-",
                           "--block=0", "--flag=OK"],
                          stdin=subprocess.PIPE) as p:
        p.stdin.write(bytes(16))
        p.stdin.flush()
        check(wait_until(lambda: len(os.listdir(d)) == 4, 60), "it makes no copy")
        refused(create(d + "/r_{}.h5", (8, 2), 4, "f8", "--force"), 1,
                "r_00-04.h5 is open for writing")
        p.stdin.write(bytes(16))
    equal(p.returncode, 0, "the writer")
    data, flags = contents(d + "/r_ALL.h5")
    equal(data.dtype, np.dtype("f4"), "type")
    equal(list(flags), ["OK"] * 4 + ["initialized"] * 4, "flags")
    exits(create(d + "/r_{}.h5", (8, 2), 4, "f8", "--force"), 0, "")
    equal(sorted(os.listdir(d)), ["r_00-04.h5", "r_04-08.h5", "r_ALL.h5"], "")


# --- nothing is left ------------------------------------------------------------------

def in_tmpfs(size, script, *args):
    """Output of a script in an empty directory of `size`, $1 and so on in it."""
    root = [] if lib.ROOT else ["-r"]
    return run("unshare", "-m", *root, "sh", "-c",
               'd=$1; shift; mount -t tmpfs -o size=%s none "$d" && cd "$d" '
               '|| exit 99\n%s' % (size, script), "sh", scratch("tmpfs"),
               *args)


@case
def disk_full():
    p = in_tmpfs("1m", '"$1" create "r_{}.h5" --shape=4000,4 --block=10 '
                 '--dtype=f4; echo $?; ls -A', TENSORFS)
    equal(p.stdout, "1\n", "status, and what was left")
    check("No space left" in p.stderr, p.stderr)
    os.rmdir(os.path.join(work, "tmpfs"))
    # The first one does not fit: libhdf5 is told so.
    p = in_tmpfs("1m", '"$1" create "r_{}.h5" --shape=400000 '
                 '--block=100000 --dtype=f4; echo $?; ls -A', TENSORFS)
    equal(p.stdout, "1\n", "status, and what was left")
    check("No space left" in p.stderr, p.stderr)


@case
def not_allowed():
    d = scratch("readonly")
    os.chmod(d, 0o555)
    p = create(d + "/r_{}.h5", (4, 2), 2, "f4", **as_user())
    refused(p, 1, "Permission denied")
    equal(os.listdir(d), [], "what was left")
    os.chmod(d, 0o755)
    os.chown(d, UID, -1)
    p = exits(create(d + "/r_{}.h5", (4, 2), 2, "f4", **as_user()), 0,
              "as an ordinary user")
    equal({os.stat(d + "/" + n).st_mode & 0o777 for n in os.listdir(d)},
          {0o666 & ~0o022}, "modes")


@case
def interrupted():
    d = os.path.join(work, "interrupted")
    shutil.rmtree(d, ignore_errors=True)
    os.makedirs(d)

    def hidden():
        return [x[:10] for x in os.listdir(d)] == [".r_ALL.h5."]

    def made(n):
        """Are there n files in the directory that is not shown yet?"""
        try:
            return any(len(os.listdir(os.path.join(d, x))) >= n
                       for x in os.listdir(d))
        except OSError:
            return True         # it has its names: this was too late
    for n, sig in enumerate((signal.SIGTERM, signal.SIGINT, signal.SIGHUP,
                             signal.SIGKILL)):
        p = subprocess.Popen([TENSORFS, "create", d + "/r_{}.h5",
                              "--shape=10000,3", "--block=1", "--dtype=f4"],
                             stderr=subprocess.PIPE, stdout=subprocess.PIPE)
        check(wait_until(lambda: made(200 * n) or p.poll() is not None, 60, 0.001),
              "nothing is made")
        stop(p, hidden)
        p.send_signal(sig)
        p.send_signal(signal.SIGCONT)
        p.communicate()
        equal(p.returncode, -sig, "status")
        left = os.listdir(d)
        if sig != signal.SIGKILL:
            equal(left, [], "what was left")
        else:
            equal([x[:10] for x in left], [".r_ALL.h5."], "of the killed")
    exits(create(d + "/r_{}.h5", (4, 3), 2, "f4"), 0, "the next one")
    equal(sorted(os.listdir(d)), ["r_00-02.h5", "r_02-04.h5", "r_ALL.h5"],
          "after the next one")


@case
def two_at_once():
    d = scratch("two")
    argv = [TENSORFS, "create", d + "/r_{}.h5", "--shape=300,3", "--block=1",
            "--dtype=f4"]
    ps = [subprocess.Popen(argv, stderr=subprocess.PIPE,
                           stdout=subprocess.DEVNULL) for _ in range(6)]
    for p in ps:
        p.communicate()
    equal(sorted(p.returncode for p in ps), [0, 1, 1, 1, 1, 1], "statuses")
    equal(len(os.listdir(d)), 301, "files")
    data, flags = contents(d + "/r_ALL.h5")
    equal((data.shape, set(flags)), ((300, 3), {"initialized"}), "contents")


# --- standard output ----------------------------------------------------------------

@case
def without_standard_output():
    """What is made is there, whether or not its name can be said: 0 where nobody
    listens (1>&-), 1 where the name was wanted and cannot be written (a full disk).
    Commands whose work is to print fail in both."""
    d = scratch("silent")
    for i, (to, code) in enumerate((("1>&-", 0), (">/dev/full", 1))):
        for more in ("", "--json"):
            name = "%s/s%d%s_{}.h5" % (d, i, more)
            p = run("sh", "-c", 'exec "$1" create --shape=8,4 --block=4 --dtype=f4 '
                    '%s "$2" %s' % (more, to), "sh", TENSORFS, name)
            exits(p, code, "create " + to)
            equal(bool(p.stderr), code == 1, p.stderr)
            with h5py.File(name.format("ALL"), "r") as f:
                equal(f["data"].shape, (8, 4), "what was made")
        for command in ("ls", "info"):
            p = run("sh", "-c", 'exec "$1" "$2" "$3" ' + to, "sh", TENSORFS, command,
                    name.format("ALL"))
            exits(p, 1, command + " " + to)
            check("standard output" in p.stderr, p.stderr)
    # Nothing that is opened later takes the place of what was closed.
    a = os.path.join(d, "a")
    os.mkdir(a)
    with open(a + "/x", "wb") as f:
        f.write(b"x" * 9999)
    for out in ("p.tar", "p.sqfs"):
        p = run("sh", "-c", 'exec "$1" pack "$2" "$3" <&- >&- 2>&-', "sh", TENSORFS, a,
                os.path.join(d, out))
        exits(p, 0, "pack without streams")
        q = tensorfs("cat", os.path.join(d, out) + ":x", text=False)
        check(q.stdout == b"x" * 9999, "what is in " + out)


if __name__ == "__main__":
    work = lib.setup(fuse=False)
    if lib.ROOT:
        os.chmod(work, 0o755)
    lib.main()
