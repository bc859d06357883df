#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""write, killed: a row that is flagged OK is right, every other one is not flagged.

Eight processes take blocks from a list and write them, several times each and the same
ones at once, and are killed at random moments; what was killed is written again by
somebody.  Data depends on the round, so that old rows are not taken for new ones.
"""
import os
import random
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import numpy as np

import lib
from checks import check, equal
from lib import TENSORFS, exits, tensorfs

BLOCKS, ROWS, WIDTH, WRITERS = 200, 40, 100, 8
ROUNDS = 100


def block_of(k, n):
    """What block k has in round n: compressible, and different each time."""
    a = np.random.default_rng((n, k)).integers(0, 4, (ROWS, WIDTH))
    return a.astype("<i4") + 10 * n


class Round:
    def __init__(self, d, main, n, kills):
        self.d, self.main, self.n, self.kills = d, main, n, kills
        self.todo = random.Random(n).sample(range(BLOCKS), kills * 2)
        self.lock = threading.Lock()
        self.bad = []

    def start(self, k):
        p = subprocess.Popen(
            [TENSORFS, "write", self.main if k % 2 else self.part(k), "-",
             "--block=%d" % k if k % 2 else "--rows=0:%d" % ROWS,
             "--flag=OK%d" % self.n],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, start_new_session=True)
        threading.Thread(target=self.feed, args=(p, k), daemon=True).start()
        return p

    def feed(self, p, k):
        try:
            p.stdin.write(block_of(k, self.n).tobytes())
            p.stdin.close()
        except OSError:
            pass

    def part(self, k):
        return os.path.join(self.d, "r_%05d-%05d.h5" % (k * ROWS,
                                                          (k + 1) * ROWS))

    def wait(self, p, k, r):
        """Some are killed anywhere, most where it matters: in the few milliseconds
        from the copy's beginning to its end."""
        # These sleeps choose the moment at random.  A writer that has come further, or
        # has ended, is as good: what is there must be right whenever it is killed.
        if r.random() < 0.3:
            time.sleep(r.random() * 0.06)
            return
        copy = os.path.join(self.d, "." + os.path.basename(self.part(k)) +
                            ".tensorfs-write")
        lib.wait_until(lambda: os.path.exists(copy) or lib.zombie(p.pid), 60,
                       0.0002)
        # Chosen at random, as above.
        time.sleep(r.random() ** 2 * 0.004)

    def writer(self, seed):
        r = random.Random(seed)
        while True:
            with self.lock:
                if not self.todo:
                    return
                k = self.todo.pop()
                kill = self.kills > 0 and r.random() < 0.5
                self.kills -= kill
            p = self.start(k)
            if kill:
                self.wait(p, k, r)
                os.killpg(p.pid, signal.SIGKILL)
                with self.lock:  # somebody else, perhaps at once
                    self.todo.append(k)
            err = p.stderr.read().decode()
            p.stderr.close()
            if p.wait() != 0 and not kill:
                self.bad.append("block %d: exit %d: %s" % (k, p.returncode,
                                                           err))

    def run(self):
        threads = [threading.Thread(target=self.writer,
                                    args=(self.n * 100 + i,))
                   for i in range(WRITERS)]
        for t in threads:
            t.start()
        return threads


def look(d, rounds):
    """Every part, while it is written or afterwards: how many rows have which flag."""
    found = {}
    for k in range(BLOCKS):
        path = os.path.join(d, "r_%05d-%05d.h5" % (k * ROWS, (k + 1) * ROWS))
        with h5py.File(path, "r") as f:
            data, flags = f["data"][...], {x.decode() for x in f["flags"][...]}
        equal(len(flags), 1, "flags of block %d" % k)
        flag = flags.pop()
        found[k] = flag
        if flag == "initialized":
            check(not data.any(), "block %d: data without a flag" % k)
            continue
        n = int(flag[2:])
        check(0 < n <= rounds, "block %d: flag %s" % (k, flag))
        check((data == block_of(k, n)).all(),
              "block %d is flagged %s, and is not right" % (k, flag))
    return found


def killed():
    d = os.path.join(work, "killed")
    os.mkdir(d)
    main = os.path.join(d, "r_ALL.h5")
    exits(tensorfs("create", d + "/r_{}.h5", "--dtype=<i4",
                   "--shape=%d,%d" % (BLOCKS * ROWS, WIDTH),
                   "--block=%d" % ROWS, "--chunk=1,%d" % WIDTH,
                   "--comp=none"), 0, "create")
    rounds = 12 if os.environ.get("TENSORFS_SANITIZED") else lib.rounds(ROUNDS)
    each = 3
    for n in range(1, rounds + 1):
        r = Round(d, main, n, each)
        want = set(r.todo)
        threads = r.run()
        if n % 20 == 0:
            look(d, n)  # meanwhile
        for t in threads:
            t.join()
        equal(r.bad, [], "round %d" % n)
        if n % 10 == 0 or n == rounds:
            found = look(d, n)
            for k in want:
                equal(found[k], "OK%d" % n, "block %d" % k)
    # What the dead have left is gone when the last writer is.
    exits(tensorfs("write", main, "--rows=0", "--flag=OK%d" % rounds), 0, "")
    exits(tensorfs("write", main, "--rows=0:%d" % ROWS, "-",
                   input=block_of(0, rounds).tobytes()), 0, "the last writer")
    left = [x for x in os.listdir(d) if not x.startswith("r_")]
    equal(left, [], "left behind")
    exits(tensorfs("verify", main), 0, "verify")


def one_part():
    """All write the same rows at once: they are those of one of them."""
    d = os.path.join(work, "one")
    os.mkdir(d)
    exits(tensorfs("create", d + "/r_{}.h5", "--dtype=<i4", "--shape=64,500",
                   "--block=64", "--chunk=16,500"), 0, "create")
    part = d + "/r_000-064.h5"
    ps = []
    for i in range(12):
        np.save(work + "/w%d.npy" % i, np.full((40, 500), i + 1, "<i4"))
        ps.append(subprocess.Popen([
            TENSORFS, "write", part, work + "/w%d.npy" % i, "--flag=w%d" % i,
            "--rows=%d:%d" % ((0, 40) if i % 2 else (24, 64))]))
    equal([p.wait(120) for p in ps], [0] * 12, "statuses")
    with h5py.File(part, "r") as f:
        data, flags = f["data"][...], [x.decode() for x in f["flags"][...]]
    check("initialized" not in flags, "rows that nobody wrote")
    for r, word in enumerate(flags):
        check((data[r] == int(word[1:]) + 1).all(), "row %d is not %s" % (
            r, word))
    equal(sorted(os.listdir(d)), ["r_000-064.h5", "r_ALL.h5"], "left behind")


if __name__ == "__main__":
    work = lib.setup(fuse=False)
    lib.run_case("one_part", one_part)
    lib.run_case("killed", killed)
    lib.main()
