# SPDX-License-Identifier: BSD-2-Clause
"""Compressed files: gzip, bzip2, xz by Python, zstd and lz4 by their own programs."""
import bz2
import gzip
import lzma
import os
import shutil
import subprocess

from against import found, trees

MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz",
         b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4",
         b"\x50\x2a\x4d\x18": "zstd"}
MODULES = {"gzip": gzip, "bzip2": bz2, "xz": lzma}


def compression_of(head):
    """The name of what compressed a file that begins so; None: nothing known."""
    return next((v for k, v in MAGIC.items() if head.startswith(k)), None)


class Piped:
    """What a program writes, as a file; how the program ended is an error of the last
    read."""

    def __init__(self, argv):
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.argv = argv

    def read(self, n=-1):
        data = self.process.stdout.read(n)
        if not data and n:
            said = self.process.stderr.read().decode("utf-8", "replace")
            if self.process.wait():
                raise OSError("%s: %s" % (self.argv[0], " ".join(said.split())))
        return data

    def close(self):
        self.process.stdout.close()
        self.process.stderr.close()
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


def open_stream(path, how):
    """The decompressed bytes of a file, as a file."""
    if how is None:
        return open(path, "rb")
    if how in MODULES:
        return MODULES[how].open(path, "rb")
    program = shutil.which(how)
    if not program:
        raise found.NoReader("there is no program %s" % how)
    return Piped([program, "-dc", path])


def head_of(path):
    with open(path, "rb") as f:
        return f.read(512)


def load():
    return "Python's gzip, bz2, lzma"


def compare_single(c, how):
    """A compressed file that holds no archive: it is the only file of the mount."""
    names = c.look(os.listdir, c.mount)
    if len(names) != 1:
        c.result(found.DIFFERS, "/", "%d files, not the one that was compressed" %
                 len(names))
        return
    path = os.path.join(c.mount, names[0])
    with c.ask(names[0], open_stream, c.source, how) as f:
        c.judge(names[0], lambda: trees.compare_bytes(c, names[0], path, f.read))
