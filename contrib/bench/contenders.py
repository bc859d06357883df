# SPDX-License-Identifier: BSD-2-Clause
"""Those that present archives as trees: each mounted the same way, timed."""
import os
import shutil
import subprocess
import tempfile
import time

from lib import note_memory, output, resident, say

PATIENCE = 900  # seconds until a mount is given up


class LeftOut(Exception):
    """This contender cannot take part; why."""


class Daemon:
    """A FUSE mount, served in the foreground; `seconds` until it answered."""

    def __init__(self, where, command, tensorfs=None, members=0):
        self.where, self.tensorfs, self.members = where, tensorfs, members
        outside = os.stat(where).st_dev
        self.log = tempfile.TemporaryFile()
        start = time.monotonic()
        self.process = subprocess.Popen(command, stdout=self.log,
                                        stderr=self.log)
        try:
            # The first stat of a FUSE mount waits for the daemon.
            while os.stat(where).st_dev == outside:
                if self.process.poll() is not None:
                    raise LeftOut(self.last_words())
                if time.monotonic() - start > PATIENCE:
                    raise LeftOut("no mount after %d s" % PATIENCE)
                time.sleep(0.0005)
        except OSError as e:
            self.stop()
            raise LeftOut("%s; %s" % (e, self.last_words())) from e
        except LeftOut:
            self.process.kill()
            self.process.wait()
            raise
        self.seconds = time.monotonic() - start

    def last_words(self):
        self.log.seek(0)
        text = self.log.read().decode(errors="replace").strip()
        return text.splitlines()[-1] if text else "it ended without a word"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.tensorfs:
            note_memory(self.tensorfs, self.where, self.process.pid,
                        self.members)
        self.stop()

    def stop(self):
        unmount(self.where)
        self.process.wait(60)
        self.log.close()

    def resident(self):
        """VmRSS, in bytes."""
        return resident(self.process.pid)[0]


class Loop:
    """A mount by the kernel, over a loop device."""

    def __init__(self, where, fstype, source):
        self.where = where
        start = time.monotonic()
        p = subprocess.run(["mount", "-t", fstype, "-o", "loop,ro", source,
                            where], stderr=subprocess.PIPE, text=True)
        self.seconds = time.monotonic() - start
        if p.returncode:
            raise LeftOut(p.stderr.strip() or "mount failed")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        unmount(self.where)

    def resident(self):
        return None


class Directory:
    """No mount at all."""
    seconds = None

    def __init__(self, where):
        self.where = where

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def resident(self):
        return None


def unmount(where):
    command = ["umount"] if os.getuid() == 0 else ["fusermount3", "-u"]
    for wait in (0.1, 0.5, 2):
        if not subprocess.run([*command, where],
                              stderr=subprocess.DEVNULL).returncode:
            return
        time.sleep(wait)
    # Somebody looks into it: out of sight, the daemon ends when they are done.
    subprocess.run([*command, *(["-l"] if command == ["umount"] else ["-z"]),
                    where], check=True)


class Contender:
    """Who mounts what; `source` is None for a directory."""

    def __init__(self, name, kind, source, mount, warm=1, limit=60,
                 index=None):
        self.name, self.kind, self.source = name, kind, source
        self.mount, self.warm, self.limit = mount, warm, limit
        self.index = index

    def ours(self):
        return self.index is not None

    def forget_index(self):
        if self.index and os.path.exists(self.index):
            os.unlink(self.index)


def tensorfs(a, where, source, kind, members=0, options=()):
    index = source + ".index"
    command = [a.tensorfs, "mount", "-f", "--index=" + index, *options, source,
               where]
    return Contender("tensorfs " + kind, kind, source,
                     lambda: Daemon(where, command, a.tensorfs, members),
                     warm=3, index=index)


def peer(program, where, source, kind, **more):
    """A FUSE program whose command line is PROGRAM -f SOURCE MOUNTPOINT."""
    def mount():
        if not shutil.which(program):
            raise LeftOut("%s is not installed" % program)
        return Daemon(where, [program, "-f", source, where])
    return Contender("%s %s" % (program, kind), kind, source, mount, **more)


def kernel(where, source, kind):
    def mount():
        if os.getuid():
            raise LeftOut("only root may mount a loop device")
        return Loop(where, "squashfs", source)
    return Contender("kernel " + kind, kind, source, mount)


def disk_name(path):
    return "disk (%s)" % output("findmnt", "-no", "FSTYPE", "-T", path).strip()


def everybody(a, where, tree, archives, members=0, copy=None):
    """All contenders for a directory `tree`, {kind: path} of archives of so many
    members, and a copy of the directory on a disk."""
    yield Contender("tmpfs", "directory", None, lambda: Directory(tree), warm=3)
    if copy:
        yield Contender(disk_name(copy), "directory", copy,
                        lambda: Directory(copy))
    for kind, source in archives.items():
        yield tensorfs(a, where, source, kind, members)
    for kind in ("sqfs-zstd", "sqfs-none"):
        if kind in archives:
            yield kernel(where, archives[kind], kind)
            yield peer("squashfuse_ll", where, archives[kind], kind)
    if "sqfs-zstd" in archives:
        yield peer("squashfuse", where, archives["sqfs-zstd"], "sqfs-zstd")
    if "tar" in archives:
        # Each open begins at the start of the archive: a few files will do.
        yield peer("archivemount", where, archives["tar"], "tar", limit=5)


def peers():
    """Which ones are installed, in words."""
    found = []
    for program in ("squashfuse_ll", "archivemount"):
        if shutil.which(program):
            p = subprocess.run([program, "--version"], text=True,
                               stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
            found.append(p.stdout.strip().splitlines()[0].split(" (")[0])
    return ", ".join(found) or "no peers installed"


# ---- caches ------------------------------------------------------------------

def files_below(path):
    """Of a directory, or the file itself, if it is there."""
    if not os.path.isdir(path):
        return [path] if os.path.exists(path) else []
    return [os.path.join(top, name) for top, _, names in os.walk(path)
            for name in names]


def evict(*paths):
    """Nothing of these files is in memory afterwards; for root, nothing of any
    file that is not in use."""
    for path in paths:
        for file in files_below(path):
            with open(file, "rb") as f:
                os.fsync(f.fileno())
                os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    drop_caches()


def drop_caches():
    if os.getuid() == 0:
        try:
            with open("/proc/sys/vm/drop_caches", "w") as f:
                f.write("3\n")
        except OSError as e:
            say("drop_caches: %s; only the sources are evicted" % e)


def warm_up(path):
    """Into the page cache."""
    with open(path, "rb", buffering=0) as f:
        buf = bytearray(1 << 20)
        while f.readinto(buf):
            pass


def programs_into_memory(a):
    """What a mount executes, after an eviction."""
    for program in (a.tensorfs, "squashfuse", "squashfuse_ll", "archivemount",
                    "mount", "umount"):
        if shutil.which(program):
            subprocess.run([program, "--version"], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
