#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""pack as those use it who know tar: lists, patterns, times, places of the output."""
import json
import os
import shutil
import signal
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import arc
import lib
import packlib
from checks import check, equal, note
from lib import case, tensorfs
from packlib import put, says
from user import as_user

work = None
FILES = ("a/f1", "a/f2", "b/f1", "b/sub/f3", "top")


def scratch(name):
    d = os.path.join(work, name)
    shutil.rmtree(d, ignore_errors=True)
    os.mkdir(d)
    return d


def tree(name="tree"):
    top = scratch(name)
    for n in FILES:
        put(top, n, n.encode())
    return top


def packed(*argv, code=0, out="x.tar", **kw):
    """The names of files in the tar, in its order; and what it said."""
    path = os.path.join(work, out)
    p = tensorfs("pack", "-q", "--force", "--no-index", *argv[:-1], argv[-1], path,
                 **kw)
    equal(p.returncode, code, "exit of %s: %s" % (argv, p.stderr))
    if code not in (0, 1):
        return None, p
    listed = arc.sh("tar", "tf", path).decode().split("\n")
    return [n for n in listed if n and not n.endswith("/")], p


@case
def lists():
    top = tree()
    zeros = b"a/f2\0top\0"
    for option in ("--files-from=-", "--order=-"):
        _, p = packed(option, top, code=2, input=zeros)
        says(p, "--null")
    got, _ = packed("--files-from=-", "--null", top, input=zeros)
    equal(got, ["a/f2", "top"], "names that end with NUL")
    _, p = packed("--files-from=-", "--order=-", top, code=2, input=b"top\n")
    says(p, "both")
    for option in ("--files-from", "--order"):
        _, p = packed(option, top, top, code=3)
        says(p, top, "Is a directory")


@case
def orders():
    top = tree()
    got, _ = packed("--order=-", top, input=b"./b//sub/f3\ntop\na/\n")
    equal(got, ["b/sub/f3", "top", "a/f1", "a/f2", "b/f1"], "order")


@case
def patterns():
    top = tree()
    for pattern, left in (("a", ["b/f1", "b/sub/f3", "top"]),
                          ("./a", ["b/f1", "b/sub/f3", "top"]),
                          ("sub/", ["a/f1", "a/f2", "b/f1", "top"]),
                          ("./b/sub//", ["a/f1", "a/f2", "b/f1", "top"]),
                          ("b/*", ["a/f1", "a/f2", "top"]),
                          ("f[12]", ["b/sub/f3", "top"])):
        got, _ = packed("--exclude", pattern, top)
        equal(sorted(got), left, "without " + pattern)
    _, p = packed("--exclude=/", top, code=2)
    says(p, "everything")


@case
def memory_is_for_all_sizes_together():
    """Buffers of large files are not kept beside those of small ones."""
    top = scratch("sizes")
    for i in range(2):
        put(top, "large/%d" % i, packlib.noise(packlib.MIB, i) * 40)
    for i in range(100):
        put(top, "small/%03d" % i, packlib.noise(packlib.MIB // 2, i))
    used = packlib.peak(lib.TENSORFS, "pack", "-q", "--memory=64M", "--jobs=16",
                        "--no-index", top, work + "/sizes.tar")
    check(packlib.SANITIZED or used < 64 * packlib.MIB,
          "%d MiB" % (used // packlib.MIB))


# --- the output ---------------------------------------------------------------------

NO_PROC = ["unshare", "--mount", "sh", "-c",
           "mount -t tmpfs none /proc && exec \"$@\"", "sh"]


def can_be_named():
    """Sanitizers want /proc, for their options and for leaks."""
    sanitized = os.environ.get("TENSORFS_SANITIZED")
    if sanitized:
        print("# left out under sanitizers: packing without /proc")
    return lib.ROOT and not sanitized


def named(*argv, **kw):
    """Pack where a file cannot be without a name while it is made, as on NFS."""
    return lib.run(*NO_PROC, lib.TENSORFS, "pack", "-q", "--no-xattrs", "--no-index",
                   *argv, **kw)


@case
def links_are_followed():
    top, d, far = tree(), scratch("near"), scratch("far")
    for suffix in ("tar", "sqfs", "tar.zst"):
        link, real = "%s/x.%s" % (d, suffix), "%s/y.%s" % (far, suffix)
        os.symlink("../far/y." + suffix, link)
        p = tensorfs("pack", "-q", "--no-index", "--force", top, link)
        equal(p.returncode, 2, "exit of a link to nothing: " + p.stderr)
        says(p, "symbolic link to a file that does not exist")
        put(far, "y." + suffix, b"old")
        p = tensorfs("pack", "-q", "--no-index", top, link)
        equal(p.returncode, 2, "exit without --force: " + p.stderr)
        packlib.pack("-q", "--no-index", "--force", "--verify", top, link)
        check(os.path.islink(link), "the link is gone")
        check(os.path.getsize(real) > 100, "its file was not replaced")
    equal(sorted(os.listdir(far)), ["y.sqfs", "y.tar", "y.tar.zst"], "files")


@case
def what_is_in_the_way_is_said_before_the_work():
    """Before the directory is listed: a missing one is not even noticed."""
    d = scratch("early")
    put(d, "there.tar", b"precious")
    os.mkfifo(d + "/fifo.tar")
    for out, word in (("there.tar", "--force"), ("fifo.tar", "not a regular file")):
        p = tensorfs("pack", d + "/nothing", "%s/%s" % (d, out))
        equal(p.returncode, 2, "exit: " + p.stderr)
        says(p, word)
    p = lib.run("env", "-C", d, lib.TENSORFS, "pack", "--format=tar", tree(), "-")
    equal(p.returncode, 2, "exit of standard output: " + p.stderr)
    says(p, "./-")
    equal(sorted(os.listdir(d)), ["fifo.tar", "there.tar"], "names")


@case
def leftovers_go():
    """Of one that was killed, also in the directory itself, and on all file systems."""
    for run in (named, lambda *a: tensorfs("pack", "-q", "--no-index", *a)):
        if run is named and not can_be_named():
            continue
        top = tree()
        put(top, ".x.tar.tensorfs-abcdef", b"unfinished")
        put(top, ".x.tar.tensorfs-other", b"somebody's own")
        p = run(top, top + "/x.tar")
        equal(p.returncode, 0, "exit: " + p.stderr)
        equal(sorted(n for n in os.listdir(top) if n[0] == "."),
              [".x.tar.tensorfs-other"], "hidden files")
        listed = arc.sh("tar", "tf", top + "/x.tar").decode()
        check("abcdef" not in listed, "what was left is in it: " + listed)


@case
def closed_descriptors():
    """What is said does not go into the output, whose descriptor would be 1 or 2."""
    top, d = tree(), scratch("closed")
    for name, close in (("a", ""), ("b", ">&- 2>&-"), ("c", "<&- 2>&-"),
                        ("d", "<&- >&- 2>&-"), ("e", "2>&-")):
        # Squashfs has no times before 1970: that is said when the file is there.
        lib.run("sh", "-c", 'exec "$@" ' + close, "sh", lib.TENSORFS, "pack",
                "--mtime=@-5", top, "%s/%s.sqfs" % (d, name))
    first = open(d + "/a.sqfs", "rb").read()
    for name in "bcde":
        check(open("%s/%s.sqfs" % (d, name), "rb").read() == first,
              "%s.sqfs is another" % name)


@case
def another_name_of_the_output_is_packed():
    """A copy of the old one, made by a link: it stays what it is."""
    top = tree()
    put(top, "x.tar", b"precious")
    os.link(top + "/x.tar", top + "/backup.tar")
    os.link(top + "/x.tar", top + "/a/x.tar")
    want = sorted([*FILES, "backup.tar", "a/x.tar"])
    for options, input in (((), None), (("--files-from=-",), b".\na/x.tar\nx.tar\n")):
        path = top + "/x.tar"
        p = tensorfs("pack", "-q", "--no-index", "--force", *options, top, path,
                     input=input)
        equal(p.returncode, 0, "exit: " + p.stderr)
        listed = arc.sh("tar", "tf", path).decode().split("\n")
        equal(sorted(n for n in listed if n and n[-1] != "/"), want, "names")
        equal(arc.sh("tar", "xOf", path, "a/x.tar"), b"precious", "the copy")
        os.unlink(path)
        os.link(top + "/backup.tar", path)


@case
def named_while_made():
    """Without a place for nameless files: the same, and nothing stays."""
    if not can_be_named():
        return
    top, d = tree(), scratch("named")
    put(d, "x.tar", b"old")
    os.chmod(d + "/x.tar", 0o640)
    p = named(top, d + "/x.tar")
    equal(p.returncode, 2, "exit: " + p.stderr)
    p = named("--force", top, d + "/x.tar")
    equal(p.returncode, 0, "exit: " + p.stderr)
    equal(os.stat(d + "/x.tar").st_mode & 0o777, 0o640, "mode of what was replaced")
    p = named(top, d + "/y.tar")
    equal(p.returncode, 0, "exit: " + p.stderr)
    equal(open(d + "/x.tar", "rb").read(), open(d + "/y.tar", "rb").read(), "bytes")
    equal(sorted(os.listdir(d)), ["x.tar", "y.tar"], "names")
    with packlib.Tmpfs(work, 1 << 20) as small:
        put(small, "x.tar", b"old")
        put(top, "big", packlib.noise(2 << 20))
        p = named("--force", top, small + "/x.tar")
        equal(p.returncode, 1, "exit of a full disk: " + p.stderr)
        says(p, "No space left")
        equal(os.listdir(small), ["x.tar"], "names on the full disk")
        equal(open(small + "/x.tar", "rb").read(), b"old", "old output")


@case
def what_was_left_out_is_said_once():
    """And is no difference."""
    top = tree()
    for n in ("a", "b", "."):
        os.chmod(os.path.join(top, n), 0o755)
    os.chmod(top + "/a/f2", 0)
    os.link(top + "/a/f2", top + "/b/same")
    out = scratch("unread")
    for d in (work, out):
        os.chmod(d, 0o777)
    for suffix in ("tar", "tar.gz", "sqfs"):
        p = tensorfs("pack", "--verify", "--no-index", "--json", top,
                     "%s/x.%s" % (out, suffix), **as_user())
        equal(p.returncode, 1, "exit: " + p.stderr)
        equal(p.stderr.count("a/f2: Permission denied"), 1, "said of it: " + p.stderr)
        equal(p.stderr.count("b/same: "), 1, "said of its other name: " + p.stderr)
        told = json.loads(p.stdout)
        equal((told["verified"], told["differences"], len(told["problems"])),
              (True, 0, 2), "summary")


# Before the file is read again its pages are given up: then the disk loses a bit.
BAD_DISK = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
int posix_fadvise(int fd, off_t at, off_t n, int advice)
{
	char path[64], byte;
	int other;

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	other = advice == POSIX_FADV_DONTNEED ? open(path, O_RDWR) : -1;
	if (other >= 0 && pread(other, &byte, 1, 3000) == 1) {
		byte ^= 1;
		pwrite(other, &byte, 1, 3000);
	}
	if (other >= 0)
		close(other);
	return syscall(SYS_fadvise64, fd, at, n, advice);
}
"""


@case
def a_bad_disk_replaces_nothing():
    if packlib.SANITIZED or not shutil.which("cc"):
        return
    d, top = scratch("disk"), scratch("disk-tree")
    for i in range(3):
        put(top, "%d.pgm" % i, b"P5\n100 50\n255\n" + packlib.noise(5000, i))
    library = work + "/bad-disk.so"
    source = put(work, "bad-disk.c", BAD_DISK.encode())
    arc.sh("cc", "-shared", "-fPIC", "-o", library, os.fsdecode(source))
    arc.sh(lib.TENSORFS, "pack", "-q", top, work + "/from.h5")
    for out in ("x.tar", "x.tar.gz", "x.sqfs", "x.h5"):
        put(d, out, b"precious")
    before = packlib.snapshot(d)
    for argv in [[top, d + "/" + n] for n in sorted(before)] + \
            [["--shards=1", top, d + "/s-%06d.tar"],
             [work + "/from.h5:data", d + "/x.h5"]]:
        p = lib.run("env", "LD_PRELOAD=" + library, lib.TENSORFS, "pack", "-q",
                    "--force", "--verify", *argv)
        equal(p.returncode, 1, "exit of %s: %s" % (argv, p.stderr))
        says(p, "other bytes")
        packlib.nothing_new(d, before, argv[-1])


@case
def interrupted_while_verifying():
    """What has its name stays, and it is not said that nothing was left."""
    top = scratch("verifying")
    packlib.put(top, "in/0", packlib.noise(1 << 26))
    for n in range(20):
        out = os.path.join(top, "%d.tar" % n)
        with packlib.Running("--verify", "--no-index", top + "/in", out) as r:
            while not os.path.exists(out) and r.p.poll() is None:
                pass
            r.p.send_signal(signal.SIGINT)
            p = r.end(0, -signal.SIGINT)
        if p.returncode:
            check("was made, but not all of it was verified" in p.stderr, p.stderr)
            break
    else:
        note("verifying was too fast")


def main():
    global work
    work = packlib.setup()
    lib.main()


if __name__ == "__main__":
    main()
