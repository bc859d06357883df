# SPDX-License-Identifier: BSD-2-Clause
"""What tests of array.h5 and merged.h5 share: comparisons of what h5py reads."""
import os
import resource

import h5py
import numpy as np

from checks import check, equal
from expect import little
from lib import exits, run

PAGE = 4096
# The sum of all data, how many flags there are, the last one.
SUM = """
import sys, h5py
with h5py.File(sys.argv[1], "r") as f:
    print(f["data"][...].sum(), len(f["flags"]), f["flags"][-1].decode())
"""


def few_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))


def left_out(name):
    return os.getxattr(name, "user.tensorfs.left_out").decode()


def same(got, want, what):
    """The same values and names; order of bytes and padding aside."""
    got, want = np.asarray(got), np.asarray(want)
    equal(got.shape, want.shape, what + ": shape")
    equal(got.dtype.names, want.dtype.names, what + ": fields")
    for n in want.dtype.names or ():
        same(got[n], want[n], "%s, field %s" % (what, n))
    if want.dtype.names:
        return
    if want.dtype.kind == "O":
        equal([np.asarray(x).tolist() for x in got.ravel()],
              [np.asarray(x).tolist() for x in want.ravel()], what)
        return
    a, b = little(got), little(want)
    equal(a.dtype, b.dtype, what + ": dtype")
    if a.dtype.kind in "fc" and a.dtype.itemsize >= 16:  # padding of long double
        check(np.array_equal(a, b, equal_nan=True), what + ": other values")
    else:
        check(a.tobytes() == b.tobytes(), what + ": other values")


def same_attributes(got, want, what, without=()):
    names = sorted(n for n in want.attrs if n not in without)
    equal(sorted(got.attrs), names, what + ": attributes")
    for n in names:
        v = want.attrs[n]
        if isinstance(v, h5py.Empty):
            check(isinstance(got.attrs[n], h5py.Empty), what + ": " + n)
        else:
            same(got.attrs[n], v, "%s, attribute %s" % (what, n))


def h5dump(name):
    p = exits(run("h5dump", "-H", name), 0, "h5dump -H")
    check("unable" not in p.stdout + p.stderr, "h5dump: " + p.stderr)
    return p.stdout
