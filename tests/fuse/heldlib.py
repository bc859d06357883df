# SPDX-License-Identifier: BSD-2-Clause
"""Files whose pages the kernel may not drop for a while."""
import contextlib
import ctypes
import mmap
import os


@contextlib.contextmanager
def kept(path):
    """The kernel keeps the pages of this file meanwhile."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    size = os.stat(path).st_size
    with open(path, "rb") as f:
        at = libc.mmap(None, ctypes.c_size_t(size), mmap.PROT_READ, mmap.MAP_SHARED,
                       f.fileno(), ctypes.c_long(0))
    at = ctypes.c_void_p(at)
    try:
        if libc.mlock(at, ctypes.c_size_t(size)):
            raise OSError(ctypes.get_errno(), "mlock of " + path)
        yield
    finally:
        libc.munmap(at, ctypes.c_size_t(size))
