#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""contrib/strangers, and `verify --against`: right is equal, wrong is found.

Faults of a mount are made by a program in place of tensorfs: it mounts a changed copy,
stops or kills its daemon, or refuses.
"""
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import tempfile
import traceback
import zipfile

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.abspath(__file__ + "/../../../" + d)
                for d in ("lib", "../contrib")]

import h5py
import numpy as np
import zarr

import lib
from checks import check, equal
from lib import case, exits, run

work = None
TOP = os.path.abspath(__file__ + "/../../../..")
STRANGERS = os.path.join(TOP, "contrib/strangers")
PYTHON = "/usr/bin/python3"

# Runs tensorfs with the last source changed into $INSTEAD, and sends the signal $DO to
# it when it is mounted; then it writes the number of its process into $PID.
WRAPPER = r"""#!/usr/bin/python3
import os, select, signal, sys
argv, me = [os.environ["REAL"]] + sys.argv[1:], os.getpid()
if os.environ.get("REFUSE"):
    sys.stderr.write("tensorfs mount: " + os.environ["REFUSE"] + "\n")
    sys.exit(3)
if os.environ.get("INSTEAD"):
    argv[-2] = os.environ["INSTEAD"]
if os.environ.get("DO") and os.fork() == 0:
    mounts, poll = open("/proc/self/mountinfo"), select.poll()
    poll.register(mounts, select.POLLERR | select.POLLPRI)
    while True:
        mounts.seek(0)
        if argv[-1] in mounts.read():
            break
        poll.poll()
    os.kill(me, int(os.environ["DO"]))
    if os.environ.get("PID"):
        with open(os.environ["PID"] + ".new", "w") as f:
            f.write(str(me))
        os.rename(os.environ["PID"] + ".new", os.environ["PID"])
    os._exit(0)
os.execv(argv[0], argv)
"""


def path(name):
    return os.path.join(work, name)


def places():
    """A TMPDIR of its own, which has to be empty afterwards."""
    d = path("tmp")
    os.makedirs(d, exist_ok=True)
    return d


def nothing_left():
    equal(os.listdir(places()), [], "what is left in TMPDIR")
    with open("/proc/self/mountinfo") as f:
        check(places() not in f.read(), "something is still mounted")


def environment(**more):
    return {**os.environ, "TMPDIR": places(), "TENSORFS": lib.TENSORFS,
            "REAL": lib.TENSORFS, **more}


def wrapper():
    name = path("wrapper")
    if not os.path.exists(name):
        with open(name, "w") as f:
            f.write(WRAPPER)
        os.chmod(name, 0o755)
    return name


def strangers(*argv, **more):
    p = run(PYTHON, STRANGERS, *argv, env=environment(**more))
    nothing_left()
    return p


def instead(source, other, *argv):
    """Rows of `source`, while `other` is mounted."""
    p = strangers("--json", "--tensorfs=" + wrapper(), *argv, source, INSTEAD=other)
    check(p.returncode in (0, 1), p.stderr)
    row = json.loads(p.stdout)
    equal(p.returncode, row["result"] == "differs", "exit status of " + p.stdout)
    return row


def verify(*argv, **more):
    p = run(lib.TENSORFS, "verify", *argv, env=environment(**more))
    nothing_left()
    return p


# --- sources --------------------------------------------------------------------------

def write_hdf5(name, change=lambda f: None):
    """Something of every kind."""
    rng = np.random.default_rng(5)
    with h5py.File(path(name), "w") as f:
        f["plain"] = np.arange(5000, dtype=">f4").reshape(50, 100)
        f["nan"] = np.array([0x7ff8000000000001, 0xfff8000000000002], "u8").view("f8")
        f.create_dataset("chunks", data=rng.integers(0, 9, (40, 30), "u2"),
                         chunks=(7, 11), compression="gzip", shuffle=True)
        f["scalar"], f["empty"] = 7, np.zeros((0, 3), "i4")
        f["bool"] = np.array([True, False])
        f.create_dataset("null", dtype="f4", shape=None)
        f["pairs"] = np.array([(1, 2.5, b"xy"), (3, -0.0, b"z")],
                              [("a", "<i2"), ("b", ">f8"), ("s", "S3")])
        f.create_dataset("text", data=["a", "b\nc", "d\\e", "\u00e9"],
                         dtype=h5py.string_dtype())
        f["fixed"] = np.array([b"abc", b"d"])
        d = f.create_dataset("rows", (3,), h5py.vlen_dtype("<i4"))
        d[0], d[2] = [1, 2, 3], [4]
        mixed = np.dtype([("n", "<i4"), ("s", h5py.string_dtype())])
        f.create_dataset("mixed", data=np.array([(1, "x"), (2, "y")], mixed))
        g = f.create_group("g")
        g["inner"] = np.ones((2, 2, 2), "c8")
        g["back"] = h5py.SoftLink("/g")
        g["gone"] = h5py.SoftLink("/nowhere")
        f["again"] = g
        f["points"] = np.array([f["g"].ref, f["plain"].ref], h5py.ref_dtype)
        f["enum"] = np.array([1, 2]).astype(h5py.enum_dtype({"one": 1, "two": 2}, "u1"))
        for o in (f, g, f["plain"]):
            o.attrs["units"], o.attrs["number"] = "\u00b5m", np.float32(0.1)
            o.attrs["list"] = [1.5, np.nan, np.inf]
            o.attrs["large"], o.attrs["ref"] = np.uint64(2 ** 63 + 1), g.ref
            o.attrs["kind"] = np.array([(1, 2.0)], [("a", "i4"), ("b", "f8")])
        change(f)
    return path(name)


def write_tree(name, change=False):
    top = path(name)
    os.makedirs(top + "/d/empty", exist_ok=True)
    for n, data in (("a", b"words\n"), ("d/large", bytes(range(256)) * 3000)):
        with open(os.path.join(top, n), "wb") as f:
            data = bytearray(data)
            data[len(data) // 2] ^= change
            f.write(data)
    if not os.path.lexists(top + "/d/link"):
        os.symlink("../a", top + "/d/link")
        os.link(top + "/a", top + "/d/hard")
    for n in ("a", "d/large", "d/link", "d/empty", "d", "."):
        os.utime(os.path.join(top, n), (10 ** 9, 10 ** 9), follow_symlinks=False)
    return top


def write_tar(name, tree, **kw):
    with tarfile.open(path(name), kw.pop("mode", "w"), **kw) as t:
        t.add(tree, arcname=".")
    return path(name)


def write_zip(name, change=0):
    with zipfile.ZipFile(path(name), "w", zipfile.ZIP_DEFLATED) as z:
        for n in ("x/one", "two"):
            info = zipfile.ZipInfo(n, (2001, 2, 3, 4, 5, 6))
            # A time of Unix, which counts more than that of DOS.
            info.extra = struct.pack("<HHBI", 0x5455, 5, 1, 1500000001)
            data = bytearray(n.encode() * 5000)
            data[len(data) // 2] ^= change
            z.writestr(info, bytes(data))
    return path(name)


def write_squashfs(name, tree):
    if not shutil.which("mksquashfs") or not shutil.which("unsquashfs"):
        raise lib.Missing("squashfs-tools")
    exits(run("mksquashfs", tree, path(name), "-quiet", "-no-progress", "-noappend"), 0,
          "mksquashfs")
    return path(name)


def write_zarr(name, change=0):
    g = zarr.open_group(path(name), mode="w")
    a = np.arange(600, dtype="<i4").reshape(20, 30)
    a[11, 7] += change
    g.create_dataset("deep/a", data=a, chunks=(6, 7))
    g.create_dataset("b", data=np.float64(2.5 + change), shape=())
    g.attrs["title"] = "\u00c5"
    g["deep/a"].attrs["units"] = {"x": [1, 2.5, None, True]}
    return path(name)


def write_npy(name, change=0):
    a = np.arange(24, dtype=">f4").reshape(2, 3, 4)
    a[1, 2, 3] += change
    if name.endswith("npz"):
        np.savez_compressed(path(name), a=a, b=np.arange(3))
    else:
        np.save(path(name), np.asfortranarray(a))
    return path(name)


# --- equal, and not -------------------------------------------------------------------

def equal_and_not(reader, source, other, where):
    """`source` is equal to itself, and a mount of `other` differs at `where`."""
    p = exits(verify("--against=" + reader, "--json", source), 0, "verify " + source)
    row = json.loads(p.stdout)
    equal((row["result"], row["ok"], row["equal"]), ("equal", True,
          row["objects"] - row["counts"].get("shown by neither", 0)), p.stdout)
    check(row["equal"] > 0, "nothing was compared")
    row = instead(source, other)
    equal(row["result"], "differs", row)
    equal(sorted(f["object"] for f in row["found"] if f["result"] == "differs"), where,
          "objects that differ")
    return row


@case
def hdf5():
    source = write_hdf5("right.h5")
    with open(source, "rb") as f:
        data = bytearray(f.read())
    at = data.find(np.arange(5000, dtype=">f4").tobytes())
    check(at > 0, "the data are not where they were")
    data[at + 4 * 1234 + 3] ^= 1
    with open(path("flipped.h5"), "wb") as f:
        f.write(data)
    row = equal_and_not("h5py", source, path("flipped.h5"), ["/plain"])
    check("1 of 5000 elements differ, the first at (12, 34)" in row["found"][-1]["why"],
          row["found"])


@case
def hdf5_of_every_kind():
    """Each kind of value, changed by h5py in a copy."""
    source = write_hdf5("right.h5")

    def put(name, index, value):
        def f(g):
            g[name][index] = value
        return name, f

    def attribute(name, value):
        def f(g):
            g["plain"].attrs[name] = value
        return "plain@" + name, f

    def remove(f):
        del f["bool"]

    def add(f):
        f["more"] = 1

    changes = [
        put("nan", 0, np.array([0x7ff8000000000003], "u8").view("f8")[0]),
        put("chunks", (39, 29), 77), put("scalar", (), 8), put("bool", 1, True),
        put("pairs", 1, (3, 0.0, b"z")), put("text", 3, "e"), put("fixed", 1, b"e"),
        put("rows", 0, np.array([1, 2, 4], "i4")), put("mixed", 1, (2, "z")),
        put("enum", 0, 2), attribute("units", "\u00b5"),
        attribute("number", np.float32(0.1000001)), attribute("list", [1.5, 0, np.inf]),
        attribute("large", np.uint64(2 ** 63)), ("bool", remove), ("more", add)]
    for i, (name, change) in enumerate(changes):
        row = instead(source, write_hdf5("changed.h5", change))
        equal([f["object"] for f in row["found"] if f["result"] == "differs"],
              ["/" + name], "change %d (%s)" % (i, name))


@case
def tars():
    right, wrong = write_tree("right"), write_tree("wrong", 1)
    for name, kw in (("t.tar", {}), ("pax.tar", {"format": tarfile.PAX_FORMAT}),
                     ("t.tar.gz", {"mode": "w:gz"}), ("t.tar.xz", {"mode": "w:xz"})):
        equal_and_not("tar", write_tar(name, right, **dict(kw)),
                      write_tar("wrong-" + name, wrong, **dict(kw)), ["a", "d/large"])
    other = write_tree("modes")
    os.chmod(other + "/d", 0o700)
    os.utime(other + "/d/empty", (5, 5))
    row = instead(path("t.tar"), write_tar("modes.tar", other))
    why = {f["object"]: f["why"] for f in row["found"]}
    check("mode" in why["d"] and "time" in why["d/empty"], why)


@case
def zips():
    equal_and_not("zip", write_zip("right.zip"), write_zip("wrong.zip", 1),
                  ["two", "x/one"])


@case
def squashfs():
    equal_and_not("squashfs", write_squashfs("right.sqfs", write_tree("right")),
                  write_squashfs("wrong.sqfs", write_tree("wrong", 1)),
                  ["a", "d/large"])


@case
def stores():
    row = equal_and_not("zarr", write_zarr("right.zarr"), write_zarr("wrong.zarr", 1),
                        ["/b", "/deep/a"])
    check("(11, 7)" in row["found"][1]["why"], row["found"])


@case
def arrays():
    equal_and_not("numpy", write_npy("right.npy"), write_npy("wrong.npy", 1), ["data"])
    equal_and_not("numpy", write_npy("right.npz"), write_npy("wrong.npz", 1),
                  ["a.npy", "a/"])


@case
def damage_in_both():
    """What neither reads is no difference, and not good either."""
    with open(write_tar("whole.tar.gz", write_tree("right"), mode="w:gz"), "rb") as f:
        data = f.read()
    with open(path("cut.tar.gz"), "wb") as f:
        f.write(data[:len(data) * 2 // 3])
    p = exits(verify("--against=tar", path("cut.tar.gz")), 1, "a tar that is cut off")
    check("refused by both: " in p.stdout and "differs" not in p.stdout, p.stdout)
    exits(strangers(path("cut.tar.gz")), 0, "strangers")


# --- faults ---------------------------------------------------------------------------

def fault(name, *argv, **more):
    """The result of a source whose mount has a fault."""
    p = strangers("--json", "--tensorfs=" + wrapper(), *argv, write_zip("right.zip"),
                  **more)
    exits(p, 1, name)
    row = json.loads(p.stdout)
    equal(row["result"], name, p.stdout)
    return row


@case
def a_daemon_that_hangs():
    row = fault("hang", "--timeout=2", DO=str(int(signal.SIGSTOP)))
    if shutil.which("gdb"):
        check("#0" in row["stacks"], "no stacks: %s" % row)


@case
def a_daemon_that_is_killed():
    row = fault("crash", DO=str(int(signal.SIGKILL)))
    check("SIGKILL" in row["why"], row["why"])
    # Its mount, which is dead, is found also where TMPDIR is a link.
    os.symlink(places(), path("link"))
    fault("crash", DO=str(int(signal.SIGKILL)), TMPDIR=path("link"))


@case
def a_daemon_that_crashes():
    row = fault("crash", DO=str(int(signal.SIGABRT)))
    check("SIGABRT" in row["why"], row["why"])


@case
def too_much_memory():
    row = fault("memory", "--memory=3M")
    check("--memory" in row["why"] and row["memory"] > 3 << 20, row)


@case
def refused():
    source = write_zip("right.zip")
    p = strangers("--tensorfs=" + wrapper(), source, REFUSE="there are too many")
    exits(p, 0, "refused by tensorfs alone")
    check("\nrefused " in p.stdout and "there are too many" in p.stdout and
          "1 refused" in p.stdout, p.stdout)
    with open(path("noise.zip"), "wb") as f:
        f.write(b"PK no zip" * 9)
    p = exits(strangers(path("noise.zip")), 0, "no zip")
    check("\nrefused by both " in p.stdout, p.stdout)
    p = exits(verify("--against=zip", path("noise.zip")), 3, "verify")
    check("refused by both" in p.stderr, p.stderr)


@case
def shown_by_the_mount_alone():
    """What h5py refuses: a zip is mounted, and it is no HDF5 file."""
    p = exits(verify("--against=h5py", write_zip("right.zip")), 1, "a zip by h5py")
    check("reader refuses" in p.stderr, p.stderr)


@case
def nothing_is_equal():
    """Objects that no one can compare are not said to be equal."""
    with h5py.File(path("dangling.h5"), "w") as f:
        f["link"] = h5py.SoftLink("/nowhere")
    row = json.loads(exits(strangers("--json", path("dangling.h5")), 0, "one").stdout)
    equal((row["result"], row["equal"], row["counts"]),
          ("refused by both", 0, {"shown by neither": 1}), "a dangling link")
    exits(verify("--against=h5py", path("dangling.h5")), 1, "verify of it")
    with h5py.File(path("dangling.h5"), "a") as f:
        f.attrs["name"] = 1
    row = json.loads(exits(strangers("--json", path("dangling.h5")), 0, "two").stdout)
    equal((row["result"], row["equal"]), ("equal", 1), "and an attribute")


@case
def values_that_do_not_fit():
    """A type of the mount that would change values of the reader."""
    from against.columns import _array_of
    equal(_array_of([1.5, None], np.dtype("<f4")).tolist()[0], 1.5, "with a null")
    equal(_array_of([-1, 2 ** 62], np.dtype("<i8")).tolist(), [-1, 2 ** 62], "integers")
    for values, t in (([300], "u1"), ([-1], "<u4"), ([1.5], "<i4"), ([2 ** 40], "<i4"),
                      ([0.1], "<f4")):
        try:
            got = _array_of(values, np.dtype(t))
        except (ValueError, OverflowError):
            continue
        check(False, "%s became %s" % (values, got))


@case
def without_permission():
    """What an ordinary user extracts of directories that nobody may read."""
    from against import squashfs as reader
    top = tempfile.mkdtemp()    # where the user may go
    os.chmod(top, 0o777)
    pid = os.fork()
    if not pid:
        status = 1
        try:
            if os.geteuid() == 0:
                os.setresgid(65534, 65534, 65534)
                os.setresuid(65534, 65534, 65534)
            root = top + "/unsquashed"
            os.makedirs(root + "/shut/below")
            with open(root + "/shut/below/f", "w") as f:
                f.write("x")
            modes = {"shut/below/f": 0, "shut/below": 0o111, "shut": 0}
            for n, mode in modes.items():
                os.chmod(root + "/" + n, mode)
            os.chmod(root, 0)
            entries = reader._expected(None, root).entries
            equal({n: entries[n].mode for n in entries}, modes, "modes")
            contents = reader._contents(root, reader._expected(None, root), "")
            equal(next(contents)[1](9), b"x", "bytes")
            contents.close()
            for n, mode in modes.items():
                os.chmod(root + "/" + n, mode)
            reader._remove(root)
            equal(os.listdir(top), [], "what is left")
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    equal(os.waitpid(pid, 0)[1], 0, "how it ended")
    shutil.rmtree(top)


@case
def names_for_a_terminal():
    os.mkdir(path("odd"))
    for n in ("a\x1b[31m\r.npy", "\u00e9.npy", "\udcff.npy"):
        np.save(path("odd/" + n), np.arange(3))
    os.mkfifo(path("odd/pipe.npy"))
    p = exits(strangers(path("odd"), PYTHONIOENCODING="ascii"), 0, "odd names")
    check("3 equal" in p.stdout and "a\\x1b[31m\\r.npy" in p.stdout and
          "\\xe9.npy" in p.stdout, p.stdout)
    check("\x1b" not in p.stdout and "\r" not in p.stdout, "raw letters")
    p = exits(strangers(path("odd/pipe.npy")), 0, "a pipe")
    check("nothing to compare" in p.stdout, p.stdout)


@case
def interrupted():
    """Nothing is left, although the daemon does not answer."""
    source = write_zip("right.zip")
    for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        note = path("pid")
        if os.path.exists(note):
            os.unlink(note)
        p = subprocess.Popen(
            [PYTHON, STRANGERS, "--timeout=900", "--tensorfs=" + wrapper(), source],
            env=environment(DO=str(int(signal.SIGSTOP)), PID=note),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        check(lib.wait_until(lambda: os.path.exists(note), 60), "it was not mounted")
        p.send_signal(s)
        p.communicate()
        equal(p.returncode, -s, "how it ended")
        with open(note) as f:
            pid = f.read()
        check(not os.path.exists("/proc/" + pid), "the daemon is still there")
        nothing_left()


# --- readers, usage -------------------------------------------------------------------

@case
def without_the_reader():
    no = path("no/h5py")
    os.makedirs(no)
    with open(no + "/__init__.py", "w") as f:
        f.write("raise ImportError('not here')\n")
    source = write_hdf5("right.h5")
    p = verify("--against=h5py", source, PYTHONPATH=path("no"))
    exits(p, 1, "without h5py")
    check("no h5py here" in p.stderr and "install python3-h5py" in p.stderr, p.stderr)
    p = exits(strangers(source, PYTHONPATH=path("no")), 0, "strangers without h5py")
    check("\nno reader " in p.stdout and "not here" in p.stdout, p.stdout)
    p = verify("--against=h5py", source, TENSORFS_PYTHON="/nonexistent/python3")
    exits(p, 1, "without Python")
    check("needs Python 3" in p.stderr and "install python3" in p.stderr, p.stderr)


@case
def a_reader_that_dies():
    """It costs the object that it died of; the others are compared."""
    where = path("deadly/hdf5plugin")
    os.makedirs(where)
    with open(where + "/__init__.py", "w") as f:
        f.write("import h5py, os\n"
                "get = h5py.Dataset.__getitem__\n"
                "def deadly(d, *index):\n"
                "    if d.name in ('/chunks', '/scalar'):\n"
                "        os.kill(os.getpid(), 11)\n"
                "    return get(d, *index)\n"
                "h5py.Dataset.__getitem__ = deadly\n")
    source = write_hdf5("right.h5")
    whole = json.loads(strangers("--json", source).stdout)
    p = exits(strangers("--json", source, PYTHONPATH=path("deadly")), 0, "strangers")
    row = json.loads(p.stdout)
    equal(row["result"], "equal in part", p.stdout)
    equal({f["object"]: f["why"] for f in row["found"]
           if f["result"] == "reader refuses"},
          {n: "the reader was killed" for n in ("/chunks", "/scalar")},
          "what it died of")
    equal(row["equal"], whole["equal"] - 2, "objects that are equal")


@case
def usage():
    source = write_zip("right.zip")
    p = exits(verify("--against=excel", source), 2, "an unknown reader")
    listed = p.stderr.split("known are ")[1].splitlines()[0]
    names = [w.split()[0] for w in listed.split(", ")]
    known = exits(strangers("--readers"), 0, "--readers").stdout.split()
    equal(sorted(names), known, "readers that the sentence lists")
    for n in known:
        check(verify("--against=" + n, path("none")).returncode == 3, n)
    p = exits(verify("--against=zip", "--subdir=x", source), 2, "another option")
    check("--subdir cannot be combined with --against" in p.stderr, p.stderr)
    p = exits(verify("--against=zip", source + ":two"), 2, "a path")
    check("leave out ':two'" in p.stderr, p.stderr)
    for argv in ([], ["--memory=much", source], ["--only=excel", source],
                 ["--timeout=0", source], [path("none")], [""],
                 ["--tensorfs=/nonexistent/tensorfs", source],
                 ["--option=--nonsense", source]):
        p = exits(strangers(*argv), 2, "strangers %s" % argv)
        check("Traceback" not in p.stderr, p.stderr)


@case
def the_table():
    """Sources in order of their names, counts in the last line."""
    d = path("many")
    os.makedirs(d + "/below")
    for i in range(3):
        shutil.copy(write_zip("right.zip"), "%s/%d.zip" % (d, i))
    shutil.copy(write_npy("right.npy"), d + "/below/a.npy")
    shutil.copytree(write_zarr("right.zarr"), d + "/below/b.zarr")
    with open(d + "/words.txt", "w") as f:
        f.write("nothing to compare\n")
    p = exits(strangers("--jobs=2", d), 0, "strangers")
    rows = [x.split() for x in p.stdout.splitlines()]
    equal([r[-1] for r in rows[1:-1]], ["%s/%s" % (d, n) for n in (
        "0.zip", "1.zip", "2.zip", "below/a.npy", "below/b.zarr")], "rows")
    equal({r[0] for r in rows[1:-1]}, {"equal"}, p.stdout)
    check("5 sources" in p.stdout and "5 equal, 0 differs, 0 crash, 0 hang, 0 memory; "
          "1 files of other kinds left out" in p.stdout, p.stdout)
    p = exits(strangers("--list", "--only=zarr", "--only=npy", d), 0, "--list")
    equal([x.split()[0] for x in p.stdout.splitlines()], ["npy", "zarr"], "--list")
    p = exits(strangers("--json", "--only=zip", d), 0, "--json")
    equal([json.loads(x)["result"] for x in p.stdout.splitlines()], ["equal"] * 3,
          "--json")


if __name__ == "__main__":
    work = lib.setup()
    lib.main()
