# SPDX-License-Identifier: BSD-2-Clause
"""Files as real programs write them: HyperSpy, PyTables, netCDF4-python, h5py
with the plugins of hdf5plugin, Octave; and two that are written here in the
form of programs that we cannot run, MATLAB 7.3 and a Dectris detector.

Each function writes files into a directory and returns {path: axes of
samples/ where these are not 1}, or raises Missing.  VERSIONS says what ran.
"""
import os
import shutil
import subprocess

import h5py
import numpy as np

VERSIONS = {"h5py": "%s (HDF5 %s)" % (h5py.version.version,
                                      h5py.version.hdf5_version)}


class Missing(Exception):
    """The program is not installed here."""


def need(module):
    try:
        m = __import__(module, fromlist=["x"])
    except ImportError as e:
        raise Missing("%s: %s" % (module, e))
    top = __import__(module.split(".")[0])
    VERSIONS[top.__name__] = str(getattr(top, "__version__", "") or
                                 getattr(top, "version", "?"))
    return m


def ramp(shape, dtype="u2", seed=0):
    n = int(np.prod(shape, dtype=np.int64))
    a = (np.arange(n, dtype=np.int64) * 7 // 5 + seed) % 60000
    return a.astype(dtype).reshape(shape)


# --- HyperSpy ---------------------------------------------------------------

NOTE = "a note that nobody else writes"


def _axes(s):
    for k, (name, scale) in enumerate((("scan_row", 0.125), ("scan_col", 0.5),
                                       ("det_y", 1.75), ("det_x", 2.25))):
        if k < len(s.axes_manager._axes):
            ax = s.axes_manager._axes[k]
            ax.name, ax.scale, ax.offset, ax.units = name, scale, k - 3, "nm"


def hyperspy(d, shape, cls="Signal2D", compression="gzip", chunks=None):
    hs = need("hyperspy.api")
    s = getattr(hs.signals, cls)(ramp(shape))
    _axes(s)
    s.metadata.General.title = "frames of %s" % cls
    s.metadata.set_item("Sample.note", NOTE)
    s.metadata.set_item("Acquisition_instrument.TEM.beam_energy", 200.0)
    s.original_metadata.set_item("vendor.list", [1, 2, 3])
    kw = {"chunks": chunks} if chunks else {}
    path = os.path.join(d, "x.hspy")
    s.save(path, overwrite=True, compression=compression, **kw)
    data = "Experiments/frames of %s/data" % cls
    nav = len(shape) - {"Signal2D": 2, "Signal1D": 1, "BaseSignal": 1}[cls]
    return path, data, nav


def hyperspy_ragged(d):
    hs = need("hyperspy.api")
    data = np.empty(6, object)
    for i in range(6):
        data[i] = np.arange(i * 2 + (i != 2), dtype="f8") * 1.5 + i
    s = hs.signals.BaseSignal(data, ragged=True)
    s.metadata.General.title = "ragged"
    path = os.path.join(d, "ragged.hspy")
    s.save(path, overwrite=True)
    return path, "Experiments/ragged/data"


# --- PyTables ---------------------------------------------------------------

def pytables(path):
    """Returns the names that only a private filter can read."""
    tb = need("tables")
    VERSIONS["PyTables' HDF5"] = tb.hdf5_version
    private = []
    with tb.open_file(path, "w", title="zoo") as f:
        g = f.create_group("/", "arrays", "plain arrays")
        for dt in ("i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16", "?",
                   ">i4", "S5"):
            name = "a_" + np.dtype(dt).name + ("_be" if dt[0] == ">" else "")
            f.create_array(g, name, ramp((5, 3)).astype(dt), "title " + dt)
        f.create_array(g, "scalar", 17)
        f.create_array(g, "text", b"a byte string")
        f.create_array(g, "words", [b"one", b"three", b""])
        a = ramp((40, 30), "i4")
        for lib in ("zlib", "bzip2", "lzo", "blosc", "blosc:lz4",
                    "blosc:lz4hc", "blosc:zlib", "blosc:zstd",
                    "blosc:blosclz"):
            if not tb.which_lib_version(lib.split(":")[0]):
                continue
            name = "c_" + lib.replace(":", "_")
            for shuffle in (False, True):
                flt = tb.Filters(5, lib, shuffle=shuffle)
                f.create_carray("/carrays", name + "_shuffle" * shuffle,
                                obj=a, filters=flt, chunkshape=(16, 7),
                                createparents=True)
                if lib == "lzo":
                    private.append("carrays/" + name + "_shuffle" * shuffle)
        f.create_carray("/carrays", "c_bitshuffle", obj=a, chunkshape=(16, 7),
                        filters=tb.Filters(5, "blosc:lz4", bitshuffle=True,
                                           shuffle=False))
        f.create_carray("/carrays", "c_fletcher32", obj=a, chunkshape=(16, 7),
                        filters=tb.Filters(5, "zlib", fletcher32=True))
        f.create_carray("/carrays", "unwritten", tb.Int16Atom(dflt=-7),
                        (9, 9), chunkshape=(4, 4))
        e = f.create_earray("/", "earray", tb.Float32Atom((2,)), (0, 3),
                            filters=tb.Filters(1, "zlib"), expectedrows=100)
        for i in range(25):
            e.append(ramp((4, 3, 2), seed=i).astype("f4"))
        f.create_earray("/", "earray_empty", tb.Int32Atom(), (0, 3))
        v = f.create_vlarray("/", "vlarray", tb.Int32Atom())
        for i in range(20):
            v.append(np.arange((i * 3) % 11, dtype="i4") - i)
        v = f.create_vlarray("/", "vlstrings", tb.VLStringAtom())
        for i in range(6):
            v.append(b"string %d" % i)
        v = f.create_vlarray("/", "vlobjects", tb.ObjectAtom())
        v.append({"pickled": 1})

        class Inner(tb.IsDescription):
            x, y = tb.Float64Col(pos=0), tb.Int16Col(pos=1)

        class Row(tb.IsDescription):
            name = tb.StringCol(12, pos=0)
            energy = tb.Float32Col(pos=1)
            ok = tb.BoolCol(pos=2)
            grid = tb.UInt16Col((2, 3), pos=3)
            z = tb.ComplexCol(16, pos=4)
            inner = Inner()
        t = f.create_table("/", "table", Row, filters=tb.Filters(5, "blosc"),
                           chunkshape=16)
        r = t.row
        for i in range(50):
            r["name"], r["energy"], r["ok"] = b"row %d" % i, i / 4, i % 3 == 0
            r["grid"], r["z"] = ramp((2, 3), seed=i), complex(i, -i)
            r["inner/x"], r["inner/y"] = i * 1.5, -i
            r.append()
        t.attrs.units, t.attrs.pickled = "keV", {"a": [1]}
        f.create_table("/", "times", {"t": tb.Time64Col()}).append([(1.5,)])
        f.create_soft_link("/", "soft", "/arrays/a_int32")
        f.create_hard_link("/", "hard", "/arrays/a_int32")
    return private


# --- netCDF4-python ---------------------------------------------------------

def netcdf(path):
    nc = need("netCDF4")
    VERSIONS["netCDF C library"] = nc.getlibversion().split()[0]
    with nc.Dataset(path, "w") as f:
        f.title, f.numbers = "zoo", np.array([1.5, 2.5])
        f.createDimension("time", None)
        f.createDimension("member", None)
        f.createDimension("lat", 20)
        f.createDimension("lon", 36)
        f.createDimension("bare", 5)
        f.createVariable("lat", "f4", ("lat",))[:] = np.linspace(-90, 90, 20)
        f["lat"].units = "degrees_north"
        f.createVariable("lon", "f8", ("lon",))[:] = np.arange(36) * 10.0
        f.createVariable("time", "i4", ("time",))[:] = np.arange(12)
        data = ramp((12, 20, 36), "i2")
        for name, kw in (("none", {}), ("zlib", {"zlib": True}),
                         ("noshuffle", {"zlib": True, "shuffle": False}),
                         ("fletcher", {"zlib": True, "fletcher32": True}),
                         ("fletcher_only", {"fletcher32": True}),
                         ("packed", {"zlib": True, "fill_value": -9}),
                         ("big", {"zlib": True, "endian": "big"}),
                         ("chunked", {"zlib": True,
                                      "chunksizes": (5, 7, 11)})):
            v = f.createVariable("v_" + name, "i2", ("time", "lat", "lon"),
                                 **kw)
            v.set_auto_maskandscale(False)
            v[:] = data
            v.scale_factor, v.valid_range = 0.5, np.array([0, 100], "i2")
        f["v_packed"][3:5] = -9
        for dt in ("i1", "u1", "u2", "u4", "i8", "u8", "f4", "f8"):
            f.createVariable("t_" + dt, dt, ("lat",))[3:7] = np.arange(4)
        f.createVariable("unwritten", "f4", ("lat", "lon"))
        f.createVariable("two_unlimited", "f4", ("time", "member"),
                         zlib=True)[0:12, 0:9] = ramp((12, 9), "f4")
        f.createVariable("part", "f8", ("time", "lat"), zlib=True,
                         chunksizes=(3, 4))[7:9, 2:5] = 1.25
        f.createVariable("scalar", "f8", ())[...] = 2.5
        f.createVariable("crs", "S1", ())
        f.createVariable("letters", "S1", ("bare",))[:] = \
            np.array(list("abcde"), "S1")
        s = f.createVariable("words", str, ("bare",))
        s[:] = np.array(["eins", "zw\u00f6lf", "", "x", "long " * 20], object)
        point = f.createCompoundType(np.dtype([("x", "f8"), ("k", "i2")]),
                                     "point")
        v = f.createVariable("points", point, ("bare",))
        v[:] = np.array([(i * 0.5, -i) for i in range(5)], point.dtype)
        ragged = f.createVLType(np.int32, "ragged")
        v = f.createVariable("rows", ragged, ("bare",))
        for i in range(5):
            v[i] = np.arange(i * 2 + 1, dtype="i4")
        cloud = f.createEnumType(np.uint8, "cloud", {"clear": 0, "cumulus": 2,
                                                     "missing": 255})
        f.createVariable("clouds", cloud, ("bare",), fill_value=255)[:3] = \
            np.array([0, 2, 0], "u1")
        g = f.createGroup("forecast/run1")
        g.comment = "a group's attribute"
        g.createDimension("level", 4)
        g.createVariable("wind", "f4", ("time", "level", "lat"), zlib=True
                         )[:] = ramp((12, 4, 20), "f4")


# --- h5py with plugins ------------------------------------------------------

PLUGINS = {"bzip2": 307, "blosc": 32001, "lz4": 32004, "bitshuffle": 32008,
           "zfp": 32013, "zstd": 32015}
OURS = {"bzip2", "blosc", "lz4", "bitshuffle", "zstd"}


def hdf5plugin(path):
    """Returns ({dataset: filter id}, filters whose plugin is not here)."""
    hp = need("hdf5plugin")
    made, absent = {}, []
    kinds = {"bzip2": [("", {})], "zstd": [("", {})],
             "zfp": [("", {"reversible": True})],
             "lz4": [("", {}), ("_blocks", {"nbytes": 4096})],
             "blosc": [("_%s_%d" % (c, s), {"cname": c, "shuffle": s})
                       for c in ("blosclz", "lz4", "lz4hc", "zlib", "zstd")
                       for s in (0, 1, 2)],
             "bitshuffle": [("", {}), ("_plain", {"cname": "none"}),
                            ("_nelems", {"nelems": 64})]}
    cls = {"bzip2": "BZip2", "blosc": "Blosc", "lz4": "LZ4", "zfp": "Zfp",
           "bitshuffle": "Bitshuffle", "zstd": "Zstd"}
    with h5py.File(path, "w") as f:
        for name, fid in PLUGINS.items():
            if not h5py.h5z.filter_avail(fid):
                absent.append(name)
                continue
            for tail, args in kinds[name]:
                for dt in ("f4",) if name == "zfp" else ("u2", "i4", "f8"):
                    if not hasattr(hp, cls[name]):
                        continue
                    p = "%s%s_%s" % (name, tail, dt)
                    f.create_dataset(p, data=ramp((50, 33), dt),
                                     chunks=(16, 33),
                                     **getattr(hp, cls[name])(**args))
                    made[p] = fid
    return made, absent


# --- Octave, MATLAB ---------------------------------------------------------

OCTAVE = r"""
m = reshape(0:11, 3, 4) / 7; c = m + 2i * m; i8 = int8([-1 2; 3 -4]);
u64 = uint64(2)^60; b = m > 0.5; s = "a text"; two = ["ab"; "cd"];
r = 1:2:9; e = []; n = NaN; sg = single(m); cube = rand(2, 3, 4);
st.x = 1; st.name = "inner"; st.deep.y = [1 2 3]; cc = {1, "two", [3 4]};
sp = sparse([1 0; 0 2]); em = ""; f = @(x) x + 1;
save("-hdf5", ARG, "m", "c", "i8", "u64", "b", "s", "two", "r", "e", "n",
     "sg", "cube", "st", "cc", "sp", "em", "f");
printf("%s\n", version());
"""


def octave(path):
    exe = shutil.which("octave-cli") or shutil.which("octave")
    if not exe:
        raise Missing("octave: no such program")
    p = subprocess.run([exe, "--no-gui", "--norc", "--eval",
                        OCTAVE.replace("ARG", "'%s'" % path)],
                       stdin=subprocess.DEVNULL, capture_output=True)
    if p.returncode or not os.path.exists(path):
        raise Missing("octave -hdf5: " + p.stderr.decode()[-300:])
    VERSIONS["octave"] = p.stdout.decode().strip()


def octave_v73(path):
    exe = shutil.which("octave-cli") or shutil.which("octave")
    if not exe:
        raise Missing("octave: no such program")
    p = subprocess.run([exe, "--no-gui", "--norc", "--eval",
                        "x = [1 2; 3 4]; save('-v7.3', '%s', 'x')" % path],
                       stdin=subprocess.DEVNULL,
                       capture_output=True)
    return p.returncode == 0 and os.path.exists(path)


def matlab(path):
    """MATLAB 7.3: a user block, MATLAB_class, references into #refs#."""
    with h5py.File(path, "w", userblock_size=512) as f:
        def put(where, name, a, cls, **attrs):
            kw = {}
            if np.ndim(a) == 2 and np.size(a) > 100:
                kw = {"chunks": (8, 8), "compression": 3}
            d = where.create_dataset(name, data=a, **kw)
            d.attrs["MATLAB_class"] = np.bytes_(cls)
            for k, v in attrs.items():
                d.attrs[k] = v
            return d

        def chars(where, name, s):
            a = np.array([[ord(c)] for c in s], "u2")
            return put(where, name, a, "char", MATLAB_int_decode=np.int32(2))
        refs = f.create_group("#refs#")
        put(f, "x", ramp((30, 20), "f8"), "double")
        put(f, "i", ramp((3, 4), "i4"), "int32")
        put(f, "flag", np.array([[1, 0]], "u1"), "logical",
            MATLAB_int_decode=np.int32(1))
        z = np.zeros((3, 2), [("real", "f8"), ("imag", "f8")])
        z["real"], z["imag"] = ramp((3, 2), "f8"), -1
        put(f, "z", z, "double")
        chars(f, "text", "gr\u00fc\u00df")
        put(f, "empty", np.array([0, 0], "u8"), "double",
            MATLAB_empty=np.uint8(1))
        s = f.create_group("s")
        s.attrs["MATLAB_class"] = np.bytes_("struct")
        put(s, "a", np.array([[1.0]]), "double")
        chars(s, "b", "field")
        put(refs, "a", np.array([0, 0], "u8"), "canonical empty",
            MATLAB_empty=np.uint8(1))
        items = [put(refs, "b", ramp((2, 2), "f8"), "double"),
                 chars(refs, "c", "in a cell"),
                 put(refs, "d", np.array([[9]], "u1"), "uint8")]
        cell = f.create_dataset("cell", (3, 1), h5py.ref_dtype)
        cell.attrs["MATLAB_class"] = np.bytes_("cell")
        for i, d in enumerate(items):
            cell[i, 0] = d.ref
        sp = f.create_group("sparse")
        sp.attrs["MATLAB_class"] = np.bytes_("double")
        sp.attrs["MATLAB_sparse"] = np.uint64(2)
        sp["data"], sp["ir"] = np.array([1.0, 2.0]), np.array([0, 1], "u8")
        sp["jc"] = np.array([0, 1, 2], "u8")
    with open(path, "r+b") as f:
        head = b"MATLAB 7.3 MAT-file, Platform: GLNXA64, Created on: Mon"
        f.write(head.ljust(116) + bytes(8) + b"\x00\x02IM")


# --- NeXus, as a Dectris detector writes it ---------------------------------

def dectris(d, files=3, announced=4, frames=5, size=48):
    """Returns (master, {block: frames}, codec); block 4 does not exist."""
    codec = {"compression": 32008, "compression_opts": (0, 2)}
    if not h5py.h5z.filter_avail(32008):
        codec = {"compression": 1}
    blocks = {}
    for k in range(1, files + 1):
        a = ramp((frames, size, size), "u4", seed=k * 1000)
        with h5py.File(os.path.join(d, "run_data_%06d.h5" % k), "w") as f:
            v = f.create_dataset("entry/data/data", data=a,
                                 chunks=(1, size, size),
                                 maxshape=(None, size, size),
                                 fillvalue=0xFFFFFFFF, **codec)
            v.attrs["image_nr_low"] = np.uint64((k - 1) * frames + 1)
            v.attrs["image_nr_high"] = np.uint64(k * frames)
        blocks["data_%06d" % k] = a
    master = os.path.join(d, "run_master.h5")
    with h5py.File(master, "w") as f:
        f.attrs["default"] = "entry"
        e = f.create_group("entry")
        e.attrs["NX_class"], e.attrs["default"] = "NXentry", "data"
        g = e.create_group("data")
        g.attrs["NX_class"], g.attrs["signal"] = "NXdata", "data_000001"
        for k in range(1, announced + 1):
            g["data_%06d" % k] = h5py.ExternalLink(
                "run_data_%06d.h5" % k, "/entry/data/data")
        det = e.create_group("instrument/detector")
        det.attrs["NX_class"] = "NXdetector"
        det["description"] = np.bytes_("Dectris ARINA")
        det["count_time"] = np.float32(0.001)
        sp = det.create_group("detectorSpecific")
        sp["pixel_mask"] = ramp((size, size), "u4")
        sp["nimages"] = np.uint32(announced * frames)
        scan = det.create_dataset("scan", data=ramp((3, 4, 16, 12)),
                                  chunks=(1, 2, 16, 12), compression=4)
        scan.attrs["interpretation"] = "image"
        spec = det.create_dataset("spectra", data=ramp((3, 4, 50), "f4"))
        spec.attrs["interpretation"] = "spectrum"
        scan.attrs["target"] = "/entry/instrument/detector/scan"
        g["scan"] = scan                       # a hard link
        f["image"] = h5py.SoftLink("/entry/instrument/detector/scan")
    return master, blocks, "bitshuffle" if codec["compression"] == 32008 \
        else "gzip"
