#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""pack when things go wrong: files that change, vanish or cannot be read, no room,
wrong places, deaths.  What was there is there, and nothing else."""
import os
import shutil
import signal
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import arc
import lib
import packlib
from checks import Failure, check, equal, note
from lib import TooFast, case, stop, tensorfs, wait_until
from packlib import MIB, SANITIZED, Running, Tmpfs, noise, pack, put, says, \
    snapshot
from user import as_user

work = None
FORMATS = ("tar", "tar.gz", "tar.zst", "squashfs")


def scratch(name):
    d = os.path.join(work, name)
    os.makedirs(d)
    return d


def unpacked(path):
    """{path: bytes} of the files in it, by a tool that nobody here wrote; it must
    find nothing wrong."""
    to = os.path.join(work, "unpacked")
    shutil.rmtree(to, ignore_errors=True)
    if path.endswith("squashfs"):
        arc.sh("unsquashfs", "-q", "-no-progress", "-d", to, path)
    else:
        os.mkdir(to)
        arc.sh("tar", "-x", "--force-local", "-f", path, "-C", to)
    out = {}
    for d, _, files in os.walk(to):
        for n in files:
            p = os.path.join(d, n)
            if os.path.isfile(p) and not os.path.islink(p):
                with open(p, "rb") as f:
                    out[os.path.relpath(p, to)] = f.read()
    return out


def same_files(path, want, but=()):
    got = unpacked(path)
    equal(sorted(got), sorted(want), "names in " + os.path.basename(path))
    for n in want:
        if n not in but:
            check(got[n] == want[n], "%s in %s has other bytes" % (n, path))
    return got


def tree(name, n=20, size=20000):
    top = scratch(name)
    files = {"d%d/%02d.bin" % (i % 3, i): noise(size + i, i) for i in range(n)}
    for rel, data in files.items():
        put(top, rel, data)
    return top, files


# --- the source changes -----------------------------------------------------------

def change_while_packed(suffix, change, mib):
    """Pack a tree of which `change`(top) makes another one while its first file, of
    so many MiB, is read."""
    name = "change-%s-%s" % (suffix, change.__name__)
    shutil.rmtree(os.path.join(work, name), ignore_errors=True)
    top, files = tree(name)
    big = noise(1 << 20, 99) * mib
    files["a-first.bin"] = big
    put(top, "a-first.bin", big)
    path = os.path.join(work, "changed-%s.%s" % (change.__name__, suffix))
    with Running("--jobs=1", "--threads=1", "--memory=64M", "--force", top,
                 path) as r:
        stopped_at(r, os.path.join(top, "a-first.bin"), os.path.join(top, LAST))
        try:
            named = change(top, files)
        finally:
            r.p.send_signal(signal.SIGCONT)
        p = r.end(0, 1)
    return p, path, files, named


def stopped_at(r, name, other):
    """Stop it when it has opened `name`, and before it has `other`; it may have read
    on."""
    def opened():
        try:
            return [os.readlink("/proc/%d/fd/%s" % (r.p.pid, fd))
                    for fd in os.listdir("/proc/%d/fd" % r.p.pid)]
        except OSError:
            return []
    while r.p.poll() is None:
        if name in opened():
            break
    # What is open then is rightly said to have changed while it was read.
    stop(r.p, lambda: other not in opened())


# What is done to the tree, and what the file may be in the archive: None, it is not in
# it and that is a problem; else one of these, and a problem if it was being read.

LAST = "d2/17.bin"


def vanish(top, old):
    os.unlink(os.path.join(top, LAST))
    return LAST, None


def become_a_link(top, old):
    p = os.path.join(top, LAST)
    os.unlink(p)
    os.symlink("/etc/passwd", p)
    return LAST, None


def grow(top, old):
    with open(os.path.join(top, LAST), "ab") as f:
        f.write(b"more" * 1000)
    return LAST, old[LAST] + b"more" * 1000


def shrink(top, old):
    os.truncate(os.path.join(top, LAST), 100)
    return LAST, old[LAST][:100]


def rewrite(top, old):
    """The same size, another file."""
    new = noise(20017, 5)
    os.rename(put(top, "new", new), os.path.join(top, LAST))
    return LAST, new


def shrink_large(top, old):
    os.truncate(os.path.join(top, "a-first.bin"), 3000)
    return "a-first.bin", None


def check_change(suffix, change):
    """Until it came in time: of larger and larger files."""
    for n in range(60):
        mib = (4 if SANITIZED else 16) << n // 15
        try:
            p, path, old, (rel, new) = change_while_packed(suffix, change, mib)
        except TooFast:
            continue
        got = unpacked(path)
        want = {n: b for n, b in old.items() if n != rel}
        equal({n: b for n, b in got.items() if n != rel}, want, "the others")
        equal(tensorfs("verify", "-q", path).returncode, 0, "verify")
        if p.returncode:
            says(p, rel)
        if change is shrink_large and p.returncode:
            equal(len(got[rel]), len(old[rel]), "size of what shrank")
            # A read sees a page while it is cut: not even that is at once.
            check(all(a in (b, 0) for a, b in zip(got[rel], old[rel])),
                  "it has what never was there")
            return
        if got.get(rel) == old[rel]:
            equal(p.returncode, 0, "exit of what did not change in time")
            continue
        equal(got.get(rel), new, "%s: what is in there" % change.__name__)
        equal(p.returncode, int(new is None), "exit: " + p.stderr)
        return
    raise Failure("%s: it never came in time" % change.__name__)


@case
def changes_tar():
    for change in (vanish, grow, shrink, become_a_link, rewrite, shrink_large):
        check_change("tar", change)


@case
def changes_squashfs():
    for change in (vanish, become_a_link, grow, shrink_large):
        check_change("squashfs", change)


@case
def changes_tar_zst():
    for change in (vanish, shrink, shrink_large):
        check_change("tar.zst", change)


@case
def written_all_the_time():
    """A file that somebody appends to: exit 1, or 0 when nobody noticed because it was
    not changed while it was read; the archive is good, and has a prefix of it."""
    top, files = tree("busy", 5)
    log = put(top, "busy.log", b"begin\n")
    stop = threading.Event()

    def writer():
        with open(log, "ab", buffering=0) as f:
            for _ in range(20000):      # 14 MB at most
                if stop.wait(0.0005):
                    break
                f.write(b"one more line\n" * 50)
    t = threading.Thread(target=writer)
    t.start()
    try:
        for i in range(3 if SANITIZED else 8):
            suffix = FORMATS[i % 4]
            path = os.path.join(work, "busy." + suffix)
            p = tensorfs("pack", "-q", "--force", top, path)
            check(p.returncode in (0, 1), "exit %d: %s" % (p.returncode,
                                                           p.stderr))
            if p.returncode:
                says(p, "busy.log")
            got = unpacked(path)
            equal(sorted(got), sorted([*files, "busy.log"]), "names")
            text = got["busy.log"].rstrip(b"\0")
            check((b"begin\n" + b"one more line\n" * (len(text) // 14 + 1))
                  .startswith(text), "busy.log has other bytes")
    finally:
        stop.set()
        t.join()


@case
def unreadable():
    top, files = tree("unreadable", 9)
    os.chmod(top + "/d1/04.bin", 0)
    os.chmod(top + "/d2", 0)
    out = scratch("unreadable-out")
    for d in (work, out):
        os.chmod(d, 0o777)
    want = {n: b for n, b in files.items()
            if not n.startswith("d2/") and n != "d1/04.bin"}
    try:
        for suffix in FORMATS:
            path = "%s/x.%s" % (out, suffix)
            p = tensorfs("pack", top, path, **as_user_kw())
            equal(p.returncode, 1, "exit: " + p.stderr)
            says(p, "d1/04.bin: Permission denied", "d2: Permission denied",
                 ": %d files," % len(want))
            same_files(path, want)
    finally:
        os.chmod(top + "/d2", 0o755)


def as_user_kw():
    return as_user(XDG_CACHE_HOME=work + "/cache")


# --- places -----------------------------------------------------------------------

@case
def no_room():
    top = scratch("no-room")
    for i in range(12):
        put(top, "%02d.bin" % i, noise(MIB, i))
    for suffix in FORMATS:
        with Tmpfs(work, 8 * MIB) as d:
            path = d + "/x." + suffix
            pack("-q", "--exclude=0[3-9]*", "--exclude=1*", top, path)
            before = snapshot(d)
            p = pack("-q", "--force", top, path, code=(1, 5))
            says(p, "No space left")
            packlib.nothing_new(d, before, suffix)
            p = pack("-q", top, d + "/new." + suffix, code=(1, 5))
            packlib.nothing_new(d, before, suffix)


@case
def output_in_the_directory():
    for suffix in FORMATS:
        top, files = tree("inside-" + suffix, 6)
        path = top + "/d1/out." + suffix
        for _ in range(2):              # the second replaces the first
            pack("-q", "--force", top, path)
            same_files(path, files)
        # Relative names, and a link that leads there.
        os.symlink(top, work + "/via-" + suffix)
        p = subprocess.run([lib.TENSORFS, "pack", "-q", "--force", ".",
                            work + "/via-%s/d1/out.%s" % (suffix, suffix)],
                           cwd=top, stderr=subprocess.PIPE)
        equal(p.returncode, 0, "exit: %r" % p.stderr)
        same_files(path, files)


@case
def wrong_places():
    top, _ = tree("places", 3)
    d = scratch("places-out")
    os.mkdir(d + "/dir.tar")
    put(d, "file", b"x")
    put(d, "there.tar", b"precious")
    os.mkfifo(d + "/fifo.tar")
    before = {n: b for n, b in snapshot_files(d).items()}
    for argv, code, word in (
            ([top, d + "/dir.tar"], 2, "directory"),
            (["--force", top, d + "/dir.tar"], 2, "directory"),
            ([top, d + "/there.tar"], 2, "--force"),
            ([top, d + "/none/x.tar"], (1, 3), "No such file"),
            ([top, d + "/file/x.tar"], (1, 3), "Not a directory"),
            ([top, d + "/x.zip"], 2, "no known format"),
            ([top, d + "/"], 2, ""),
            (["--force", top, d + "/fifo.tar"], 2, "not a regular file"),
            ([d + "/nothing", d + "/x.tar"], 3, "No such file"),
            ([d + "/file", d + "/x.tar"], 3, "Not a directory"),
            ([top], 2, ""), ([top, d + "/a.tar", d + "/b.tar"], 2, "")):
        p = pack(*argv, code=code)
        says(p, word)
        equal(snapshot_files(d), before, "after %s" % argv)
    pack("-q", "--force", top, d + "/there.tar")
    check(snapshot_files(d)["there.tar"] != b"precious", "it was not replaced")


def snapshot_files(d):
    out = {}
    for n in sorted(os.listdir(d)):
        p = os.path.join(d, n)
        if os.path.isfile(p):
            with open(p, "rb") as f:
                out[n] = f.read()
        else:
            out[n] = None
    return out


@case
def not_writable():
    top, _ = tree("readonly", 3)
    d = scratch("readonly-out")
    os.chmod(top, 0o755)
    os.chmod(work, 0o755)
    p = tensorfs("pack", top, d + "/x.tar", **as_user_kw()) if lib.ROOT else \
        tensorfs("pack", top, "/proc/x.tar")
    check(p.returncode in (1, 3), "exit %d" % p.returncode)
    check(p.stderr.strip(), "no sentence")
    equal(os.listdir(d), [], "left behind")


# --- lists ------------------------------------------------------------------------

@case
def bad_lists():
    top, files = tree("lists", 6)
    path = work + "/lists.tar"
    names = sorted(files)

    def packed(option, text, code):
        listed = put(work, "list", text)
        p = tensorfs("pack", "-q", "--force", *option,
                     os.fsdecode(listed), top, path)
        equal(p.returncode, code, "%s %r: %s" % (option, text, p.stderr))
        return p

    good = "\n".join(names[:2]).encode()
    for text, word in ((good + b"\nnothing\n", "nothing"),
                       (b"../lists/" + good, ".."),
                       (b"/etc/passwd\n" + good, "/etc/passwd")):
        p = packed(["--files-from"], text, 1)
        says(p, word)
    packed(["--files-from"], b"./" + good + b"\r\n\n", 0)
    same_files(path, {n: files[n] for n in names[:2]})
    packed(["--null", "--files-from"], good.replace(b"\n", b"\0"), 0)
    same_files(path, {n: files[n] for n in names[:2]})
    p = packed(["--order"], b"nothing\n" + good, 1)
    says(p, "nothing")
    same_files(path, files)
    p = packed(["--order"], good + b"\n" + good, 0)
    same_files(path, files)
    for option in ("--files-from", "--order"):
        p = tensorfs("pack", option, work + "/no-list", top, path)
        equal(p.returncode, 3, "exit without a list: " + p.stderr)
        says(p, "no-list")
        p = tensorfs("pack", option, work, top, path)
        check(p.returncode in (1, 3) and p.stderr, "a directory as a list")
    packed(["--files-from"], b"", 0)
    equal(unpacked(path), {}, "an empty list")


# --- deaths -----------------------------------------------------------------------

@case
def stopped():
    top = packlib.slow_tree(os.path.join(work, "slow"), 16 if SANITIZED else 64)
    for suffix, slow in (("tar.zst", ["--comp=zstd:12"]),
                         ("tar.gz", ["--comp=gzip:9"]),
                         ("squashfs", ["--comp=zstd:12"])):
        d = scratch("stopped-" + suffix)
        path = "%s/x.%s" % (d, suffix)
        put(d, "x." + suffix, b"what was there")
        hit = 0
        for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP,
                    signal.SIGKILL):
            hit += packlib.interrupted(
                ["--force", "--threads=1", *slow, top, path], d, sig)
        check(hit >= 3, "%s: only %d were stopped in the middle" % (suffix, hit))
        left = [n for n in os.listdir(d) if n != "x." + suffix]
        check(len(left) <= 1 and all(n.startswith(".") for n in left),
              "left by SIGKILL: %s" % left)
        if left:
            note("%s: left by SIGKILL: %s" % (suffix, left))


@case
def memory_is_bounded():
    """Large files, little memory: the same archive."""
    top = scratch("memory")
    for i in range(3):
        put(top, "%d.bin" % i, noise(MIB, i) * 24)
    for suffix, more in (("tar", []), ("tar.zst", []), ("squashfs", []),
                         ("tar.zst", ["--comp=zstd:9", "--threads=64"])):
        path = work + "/memory." + suffix
        used = packlib.peak(lib.TENSORFS, "pack", "-q", "--memory=64M",
                            "--no-index", *more, top, path)
        check(SANITIZED or used < 160 * MIB, "%s: %d MiB" % (suffix, used // MIB))
        equal(sorted(unpacked(path)), ["0.bin", "1.bin", "2.bin"], "files")
        os.unlink(path)


@case
def refused_before_it_looks():
    """What no directory can make good is said before one is listed."""
    d = scratch("before")
    put(d, "there-0.tar", b"old")
    for name, word, *more in (
            ("x.tar", "--comp=lz4", "--comp=lz4"),
            ("x.tar", "no blocks", "--block-size=1M"),
            ("x.tar.gz", "does not match", "--comp=zstd"),
            ("x.tar.zst", "--block-size", "--block-size=1K"),
            ("x.squashfs", "not support lzf", "--comp=lzf"),
            ("x.squashfs", "4K, 8K", "--block-size=2M"),
            ("x.tar", "no number", "--shards=2"),
            ("x-%d.squashfs", "shards are tar", "--shards=2"),
            ("x-%d.tar", "--comp=xz", "--shards=2", "--comp=xz"),
            ("there-%d.tar", "already exists", "--shards=2")):
        p = pack(*more, work + "/no-such-directory", d + "/" + name, code=2)
        says(p, word)
    equal(os.listdir(d), ["there-0.tar"], "files")


@case
def stopped_while_compared():
    """The output has its name then, and it is not said that there is none."""
    for name in ("compared", "compared-out"):
        shutil.rmtree(os.path.join(work, name), ignore_errors=True)
    top, d = scratch("compared"), scratch("compared-out")
    with open(put(top, "holes.bin"), "wb") as f:
        f.truncate(64 << 30)
    path = d + "/x.squashfs"
    p = subprocess.Popen([lib.TENSORFS, "pack", "-q", "--verify", top, path],
                         stderr=subprocess.PIPE, text=True)
    wait_until(lambda: p.poll() is not None or os.path.exists(path), 300, 0.005)
    stop(p)
    p.send_signal(signal.SIGTERM)
    p.send_signal(signal.SIGCONT)
    err = p.communicate()[1]
    equal(p.returncode, -signal.SIGTERM, "how it ended (%s)" % err)
    check("not all of it was verified" in err, err)
    arc.sh("unsquashfs", "-s", path)


def main():
    global work
    work = packlib.setup()
    lib.main()


if __name__ == "__main__":
    main()
