# SPDX-License-Identifier: BSD-2-Clause
"""Tests in sections: cases named SECTION:FILE:CASE, chosen by arguments.

`test_containers.py acme:moved netcdf` runs the cases of acme that have
"acme:moved" in their name, and all of netcdf.
"""
import os
import random
import re
import sys

import lib
import writers
from checks import check, note, same_bytes
from h5truth import npy, same_as
from lib import exits, run_case, tensorfs

rng = random.Random(5)


def wanted(name):
    """Does an argument ask for this case?"""
    return len(sys.argv) < 2 or any(a in name for a in sys.argv[1:])


def sub(name):
    """A prefix for cases: sub("acme:default")("case", f, arguments)."""
    def one(case, f, *args):
        full = name + ":" + case
        if wanted(full):
            run_case(full, f, *args)
    return one


def mounted(name, src, f, **kw):
    """Run f(sub, mount); a mount that fails is one failed case."""
    if len(sys.argv) > 1 and not any(a in name or a.startswith(name)
                                     for a in sys.argv[1:]):
        return
    lib.with_mount(name + ":mount", lambda m: f(sub(name), m), src, **kw)


def compared(name, src, truth, together=None, **kw):
    """Everything in src is as in `truth`, over the mount and over cat."""
    mounted(name, src, lambda s, m: same_as(s, m, truth, together), **kw)
    sub(name)("cat", by_cat, src, truth)


def by_cat(src, truth):
    """`tensorfs cat` gives the same, without a mount."""
    numbers = [p for p, i in truth.items() if i.kind == "number" and p and
               not i.value.dtype.names]
    for p in rng.sample(numbers, min(3, len(numbers))):
        c = exits(tensorfs("cat", "%s:%s/array.npy" % (src, p), text=False),
                  0, "cat " + p)
        same_bytes(c.stdout, npy(truth[p].value), "cat " + p)


def absent(section, why):
    """A real writer that is not here: a notice, but a failure in CI."""
    lib.absent(section + ":writer", why)


def refused(src, words):
    d = os.path.join(lib._base(), "refused")
    os.makedirs(d, exist_ok=True)
    p = exits(tensorfs("mount", src, d), 3, "mount " + src)
    check(re.search(words, p.stderr), "the sentence says nothing of %s: %s" % (
        words, p.stderr))


def _section(name, f, work):
    try:
        f(work)
    except writers.Missing as e:
        absent(name, str(e))


def run_sections(sections):
    """sections: ((name, f), ...); f(work) runs cases or raises Missing."""
    work = lib.setup()
    for name, f in sections:
        if len(sys.argv) < 2 or any(name == a.split(":")[0]
                                    for a in sys.argv[1:]):
            run_case(name, _section, name, f, work)
    note("writers: " + ", ".join("%s %s" % v for v in
                                 sorted(writers.VERSIONS.items())))
    lib.main()
