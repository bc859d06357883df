# SPDX-License-Identifier: BSD-2-Clause
"""Directories of small files as training sets have them, and archives of these."""
import os
import subprocess

import numpy as np

CLASSES = 100
SMALLEST, LARGEST = 1 << 10, 150 << 10
TYPICAL, SPREAD = 9.4 * 1024, 0.65  # median and sigma: 11.6 KiB on average

# What is made of a directory: suffix, and the commands that make it of `dir`.
STORED = ["-noI", "-noD", "-noF", "-noX"]
KINDS = {
    "tar": [],
    "tar.gz": ["gzip", "-6", "-n"],
    "tar.zst": ["zstd", "-q", "-3"],
    "tar.xz": ["xz", "-1", "-T0"],
    "sqfs-zstd": ["-comp", "zstd", "-Xcompression-level", "3"],
    "sqfs-lz4": ["-comp", "lz4"],
    "sqfs-none": STORED,
}


def file_sizes(n, rng):
    sizes = rng.lognormal(np.log(TYPICAL), SPREAD, n)
    return np.clip(sizes, SMALLEST, LARGEST).astype(int)


def photo_sizes(n, rng):
    """114 KB on average, as ImageNet's files are."""
    sizes = rng.lognormal(np.log(92e3), SPREAD, n)
    return np.clip(sizes, SMALLEST, 10 * LARGEST).astype(int)


def volume_sizes(n, _):
    """Cases of a tomograph."""
    return np.full(n, 146000000)


def noise(rng):
    """Bytes that nothing compresses, as in JPEG files."""
    return rng.bytes


def text(rng):
    """Lines of words, some much commoner than others: about 3:1 with zstd -3."""
    words = [rng.choice(list(b"abcdefghijklmnopqrstuvwxyz"), 2 + n % 9)
             .astype("u1").tobytes() + b" " for n in range(4000)]
    common = 1 / np.arange(2, len(words) + 2)
    common /= common.sum()
    # A pool to cut files from: drawing every word of every file takes minutes.
    pool = b"".join(words[n] for n in rng.choice(len(words), 6 << 20, p=common))

    def cut(size):
        start = int(rng.integers(len(pool) - size))
        return pool[start:start + size]
    return cut


def write_tree(where, n, content, seed=11, sizes=file_sizes):
    """`n` files in CLASSES directories; how many bytes they have."""
    rng = np.random.default_rng(seed)
    sizes = sizes(n, rng)
    make = content(rng)
    for c in range(CLASSES):
        os.makedirs(os.path.join(where, "n%08d" % (c * 7919)))
    for i, size in enumerate(sizes):
        name = "n%08d/img_%06d.JPEG" % (i % CLASSES * 7919, i)
        with open(os.path.join(where, name), "wb") as f:
            f.write(make(int(size)))
    return int(sizes.sum())


def write_archive(tree, path, kind):
    """Of the directory `tree`; names in order, as `tar cf x.tar DIR` of a fresh
    copy has them."""
    if kind.startswith("sqfs"):
        subprocess.run(["mksquashfs", tree, path, "-quiet", "-no-progress",
                        "-noappend", *KINDS[kind]], check=True)
        return
    tar = ["tar", "--sort=name", "--owner=0", "--group=0", "-C", tree, "-cf"]
    if not KINDS[kind]:
        subprocess.run([*tar, path, "."], check=True)
        return
    with open(path, "wb") as out:
        p = subprocess.Popen([*tar, "-", "."], stdout=subprocess.PIPE)
        subprocess.run(KINDS[kind], stdin=p.stdout, stdout=out, check=True)
        if p.wait():
            raise OSError("tar failed")


def write_many(path, n):
    """A tar of `n` members of 100 bytes each in directories of 1000;
    how many bytes a name takes."""
    head = bytearray(512)
    head[100:108] = b"0000644\0"
    head[108:116] = head[116:124] = b"0000000\0"
    head[124:136] = b"00000000144\0"
    head[136:148] = b"14000000000\0"
    head[148:156] = b" " * 8
    head[156:157] = b"0"
    head[257:265] = b"ustar\00000"
    with open(path, "wb", buffering=1 << 20) as f:
        for i in range(n):
            name = b"n%08d/%08d.jpg" % (i // 1000, i)
            head[0:len(name)] = name
            head[148:156] = b" " * 8
            head[148:156] = b"%06o\0 " % sum(head)
            f.write(head)
            f.write(name.ljust(100, b".").ljust(512, b"\0"))
        f.write(bytes(10240))
    return len("00000000.jpg") + 1


def write_big(path, size):
    """One file of text of `size` bytes."""
    cut = text(np.random.default_rng(5))
    with open(path, "wb") as f:
        while size:
            part = min(size, 4 << 20)
            f.write(cut(part))
            size -= part
