# SPDX-License-Identifier: BSD-2-Clause
"""What a file is, by its first bytes or its name, and what compares it."""
import os
import zipfile

from against import (columns, hdf5, numpy_files, squashfs, streams, tar, zarr_store,
                     zip)

# Kinds of files, as --only takes them and the table shows them.
KINDS = {"hdf5": hdf5, "tar": tar, "zip": zip, "squashfs": squashfs,
         "zarr": zarr_store, "npy": numpy_files, "npz": numpy_files,
         "parquet": columns, "arrow": columns}
# What `verify --against` takes, and the kinds that it is for; app/against.c has the
# same list.
READERS = {"auto": set(KINDS), "h5py": {"hdf5"}, "tar": {"tar"}, "zip": {"zip"},
           "squashfs": {"squashfs"}, "zarr": {"zarr"}, "numpy": {"npy", "npz"},
           "parquet": {"parquet"}, "arrow": {"arrow"}}

HDF5 = b"\x89HDF\r\n\x1a\n"
FIRST = {HDF5: "hdf5", b"hsqs": "squashfs", b"\x93NUMPY": "npy", b"PAR1": "parquet",
         b"PARE": "parquet", b"ARROW1": "arrow", b"FEA1": "arrow"}
# Files that are damaged at their beginning are known by their names.
ENDINGS = {".h5": "hdf5", ".hdf5": "hdf5", ".he5": "hdf5", ".hspy": "hdf5",
           ".nxs": "hdf5", ".nc4": "hdf5", ".tar": "tar", ".tgz": "tar", ".txz": "tar",
           ".tbz2": "tar", ".zip": "zip", ".npz": "npz", ".npy": "npy",
           ".sqfs": "squashfs", ".squashfs": "squashfs", ".sfs": "squashfs",
           ".parquet": "parquet", ".arrow": "arrow", ".arrows": "arrow",
           ".feather": "arrow", ".zarr": "zarr", ".zspy": "zarr"}


def kind_of_directory(path):
    """A Zarr store, or None: a directory of other things."""
    if any(os.path.exists(os.path.join(path, m)) for m in zarr_store.MARKS):
        return "zarr"
    return None


def kind_of(path):
    """The kind of a file; None: nothing that is compared."""
    if os.path.isdir(path):
        return kind_of_directory(path)
    if not os.path.isfile(path):
        return None     # opening a pipe would wait for its writer
    ending = os.path.splitext(path)[1].lower()
    with open(path, "rb") as f:
        head = f.read(512)
        for magic, kind in FIRST.items():
            if head.startswith(magic):
                return kind
        if streams.compression_of(head) or tar.is_tar(head):
            return "tar"
        size = f.seek(0, os.SEEK_END)
        at = 512
        while at < size:        # behind a user block
            f.seek(at)
            if f.read(8) == HDF5:
                return "hdf5"
            at *= 2
    if zipfile.is_zipfile(path):
        return _kind_of_zip(path, ending)
    return ENDINGS.get(ending)


def _kind_of_zip(path, ending):
    if ending == ".npz":
        return "npz"
    try:
        with zipfile.ZipFile(path) as z:
            store = zarr_store.root_of_zip(set(z.namelist()))
    except Exception:
        return "zip"    # damaged: its reader will say so
    return "zip" if store is None else "zarr"
