# SPDX-License-Identifier: BSD-2-Clause
"""Files whose pages the kernel may not drop for a while."""
import contextlib
import ctypes
import mmap
import os
import stat


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
    if at.value == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "mmap of " + path)
    try:
        if libc.mlock(at, ctypes.c_size_t(size)):
            raise OSError(ctypes.get_errno(), "mlock of " + path)
        yield
    finally:
        libc.munmap(at, ctypes.c_size_t(size))


@contextlib.contextmanager
def all_kept(top):
    """The same of all files below, as far as memory may be locked."""
    with contextlib.ExitStack() as held:
        for d, _, files in os.walk(top):
            for path in (os.path.join(d, f) for f in files):
                st = os.lstat(path)
                if stat.S_ISREG(st.st_mode) and st.st_size:
                    with contextlib.suppress(OSError):
                        held.enter_context(kept(path))
        yield
