/* SPDX-License-Identifier: BSD-2-Clause */
/* Recognise files that are not sources by their first bytes: what they are, and what to
 * do instead. */
/*
 * Magic numbers are those of the formats' own descriptions, and of file(1).  Only kinds
 * of files are listed that users have beside mountable data: a sentence that names the
 * kind saves a search.
 */
#include "formats/registry/strangers.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"

#define DIRECTORY_OF_FILES                                               \
	"one such file is one sample: mount or pack the directory that " \
	"it is in"
#define TO_HDF5(how) "write it as HDF5 first (" how ")"

struct magic {
	unsigned short at, n;
	const char *bytes;
	struct stranger is;
};
#define MAGIC(at, bytes) at, sizeof(bytes) - 1, bytes

static const struct magic magics[] = {
	/* images, sound, film */
	{MAGIC(0, "\x89PNG\r\n\x1a\n"), {"a PNG image", DIRECTORY_OF_FILES}},
	{MAGIC(0, "\xff\xd8\xff"), {"a JPEG image", DIRECTORY_OF_FILES}},
	{MAGIC(0, "GIF8"), {"a GIF image", DIRECTORY_OF_FILES}},
	{MAGIC(8, "WEBP"), {"a WebP image", DIRECTORY_OF_FILES}},
	{MAGIC(8, "WAVE"), {"a WAV recording", DIRECTORY_OF_FILES}},
	{MAGIC(0, "fLaC"), {"a FLAC recording", DIRECTORY_OF_FILES}},
	{MAGIC(0, "OggS"), {"an Ogg recording", DIRECTORY_OF_FILES}},
	{MAGIC(4, "ftyp"), {"an MP4 film or HEIF image", DIRECTORY_OF_FILES}},
	{MAGIC(0, "\x1a\x45\xdf\xa3"), {"a Matroska film", DIRECTORY_OF_FILES}},
	{MAGIC(0, "%PDF-"), {"a PDF document", DIRECTORY_OF_FILES}},
	{MAGIC(0, "II*\0"),
	 {"a TIFF file",
	  TO_HDF5("tifffile and h5py") ", if it is a "
				       "stack; " DIRECTORY_OF_FILES}},
	{MAGIC(0, "MM\0*"),
	 {"a TIFF file",
	  TO_HDF5("tifffile and h5py") ", if it is a "
				       "stack; " DIRECTORY_OF_FILES}},
	{MAGIC(0, "II+\0"), {"a BigTIFF file", TO_HDF5("tifffile and h5py")}},
	{MAGIC(0, "MM\0+"), {"a BigTIFF file", TO_HDF5("tifffile and h5py")}},
	/* archives and compression that tensorfs does not read */
	{MAGIC(0, "7z\xbc\xaf\x27\x1c"),
	 {"a 7-Zip archive", "unpack it, and pack it again: tensorfs pack"}},
	{MAGIC(0, "Rar!\x1a\x07"),
	 {"a RAR archive", "unpack it, and pack it again: tensorfs pack"}},
	{MAGIC(0, "070701"),
	 {"a cpio archive", "unpack it, and pack it again: tensorfs pack"}},
	{MAGIC(0, "070707"),
	 {"a cpio archive", "unpack it, and pack it again: tensorfs pack"}},
	{MAGIC(0, "!<arch>\n"), {"an ar archive", "unpack it with ar"}},
	{MAGIC(0, "DWARFS"), {"a DwarFS image", "mount it with dwarfs"}},
	{MAGIC(0x438, "\x53\xef"),
	 {"an ext2, ext3 or ext4 image",
	  "mount it with fuse2fs, or pack its files as squashfs"}},
	{MAGIC(0, "\x1f\x9d"),
	 {"a file of compress(1)", "unpack it with gzip -d"}},
	{MAGIC(0, "\x89LZO\0\r\n\x1a\n"),
	 {"a file of lzop (.lzo)",
	  "compress it in another way: lzop -dc FILE | zstd >FILE.zst"}},
	{MAGIC(0, "LZIP"),
	 {"an lzip file", "unpack it, and use zstd or xz instead"}},
	/* arrays and tables */
	{MAGIC(0, "MATLAB 5.0 MAT-file"),
	 {"a MAT-file of version 5 to 7",
	  "save it with -v7.3, which is HDF5, or with scipy.io and h5py"}},
	{MAGIC(0, "\x0e\x03\x13\x01"),
	 {"an HDF4 file", "make it HDF5: h4toh5"}},
	{MAGIC(0, "SIMPLE  ="), {"a FITS file", TO_HDF5("astropy and h5py")}},
	{MAGIC(0, "root\0"), {"a ROOT file", TO_HDF5("uproot and h5py")}},
	{MAGIC(128, "DICM"), {"a DICOM file", DIRECTORY_OF_FILES}},
	{MAGIC(344, "n+1\0"), {"a NIfTI file", TO_HDF5("nibabel and h5py")}},
	{MAGIC(0, "NRRD000"), {"an NRRD file", TO_HDF5("pynrrd and h5py")}},
	{MAGIC(208, "MAP "), {"an MRC file", TO_HDF5("mrcfile and h5py")}},
	{MAGIC(0, "\0\0\0\x03\0\0\0"),
	 {"a Digital Micrograph file (.dm3)",
	  TO_HDF5("rosettasciio: hs.load, save as .hspy")}},
	{MAGIC(0, "\0\0\0\x04\0\0\0"),
	 {"a Digital Micrograph file (.dm4)",
	  TO_HDF5("rosettasciio: hs.load, save as .hspy")}},
	{MAGIC(0, "II\x97\x01"),
	 {"a TIA file (.ser)",
	  TO_HDF5("rosettasciio: hs.load, save as .hspy")}},
	{MAGIC(0, "SQLite format 3\0"), {"an SQLite database", NULL}},
	{MAGIC(16, "\xde\xc0\xef\xbe"),
	 {"an LMDB database", "write its values to files, and pack these"}},
	{MAGIC(0, "\x0a\x23\xd7\xce"),
	 {"an MXNet RecordIO file",
	  "write its records to files, and pack these"}},
	{MAGIC(0, "ORC"), {"an ORC file", "write it as Parquet"}},
	{MAGIC(0, "Obj\x01"), {"an Avro file", "write it as Parquet"}},
	{MAGIC(0, "GGUF"), {"a GGUF model", "use its safetensors"}},
	/* files that were named by mistake */
	{MAGIC(0, "tfsidx\r\n"),
	 {"an index file of tensorfs", "name its archive instead"}},
	{MAGIC(0, "\x7f"
		  "ELF"),
	 {"a program", NULL}},
	{MAGIC(0, "#!"), {"a script", NULL}},
	{MAGIC(0, "<!DOCTYPE"),
	 {"a web page",
	  "the download got this page instead of the data; read what it says"}},
	{MAGIC(0, "<html"),
	 {"a web page",
	  "the download got this page instead of the data; read what it says"}},
	{MAGIC(0, "version https://git-lfs"),
	 {"a Git LFS pointer",
	  "fetch the file that it stands for: git lfs pull"}},
};

/* Kinds of files that their first bytes do not tell. */
static const struct {
	const char *suffix;
	struct stranger is;
} suffixes[] = {
	{".csv", {"a table as text", TO_HDF5("pandas and h5py")}},
	{".tsv", {"a table as text", TO_HDF5("pandas and h5py")}},
	{".json", {"a JSON text", NULL}},
	{".jsonl", {"JSON texts", NULL}},
	{".tfrecord",
	 {"a TFRecord file", "write its records to files, and pack these"}},
	{".bin",
	 {"bytes without a header",
	  "if they are an array, describe it with --raw"}},
	{".raw",
	 {"bytes without a header",
	  "if they are an array, describe it with --raw"}},
	{".dat",
	 {"bytes without a header",
	  "if they are an array, describe it with --raw"}},
};

/* Suffixes of files that can be mounted if their bytes are valid. */
static const char *const ours[] = {
	".h5",     ".hdf5",     ".he5",         ".hspy", ".nxs",     ".nc",
	".npy",    ".npz",      ".zarr",        ".zspy", ".parquet", ".arrow",
	".arrows", ".feather",  ".safetensors", ".tar",  ".tgz",     ".zip",
	".sqfs",   ".squashfs", ".gz",          ".bz2",  ".xz",      ".zst",
	".lz4",    ".blo",      ".tvips",       ".mib",  ".seq",
};

static bool ends_with(const char *path, const char *suffix)
{
	size_t n = strlen(path), m = strlen(suffix);

	return n > m && !strcasecmp(path + n - m, suffix);
}

/* The old format of LZMA has no magic number.  It begins with a byte of properties (0x5d
 * by default), the size of the dictionary, the length, which may be unknown, and a first
 * byte of data that is 0 (lzma-file-format.txt of XZ Utils, LZMA specification). */
static bool is_lzma(const unsigned char *head, size_t n, const char *path)
{
	uint64_t length = n > 13 ? load_le64(head + 5) : 0;

	return n > 13 && head[13] == 0 && head[0] < 9 * 5 * 5 &&
	       load_le32(head + 1) >= 4096 &&
	       (length == UINT64_MAX || length < UINT64_C(1) << 40) &&
	       ((head[0] == 0x5d && !load_le16(head + 1)) ||
		ends_with(path, ".lzma") || ends_with(path, ".tlz"));
}

/* RFC 1950, section 2.2: deflate with a window of 32 KiB, no preset dictionary, and a
 * correct header check. */
static bool is_zlib(const unsigned char *head, size_t n)
{
	return n > 2 && head[0] == 0x78 && !(head[1] & 0x20) &&
	       load_be16(head) % 31 == 0;
}

/* The opcode PROTO with protocols 2 to 5; see Python's pickletools. */
static bool is_pickle(const unsigned char *head, size_t n)
{
	return n > 1 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5;
}

static bool has_source_suffix(const char *path)
{
	for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
		if (ends_with(path, ours[i]))
			return true;
	return false;
}

/* Return true for text of any encoding that has ASCII's control characters. */
static bool is_words(const unsigned char *head, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((head[i] < ' ' && !strchr("\t\n\v\f\r", head[i])) ||
		    head[i] == 0x7f || !head[i])
			return false;
	return true;
}

const struct stranger *stranger_of(const unsigned char *head, size_t n,
				   const char *path)
{
	static const struct stranger pickle = {
		"a Python pickle, which tensorfs does not read",
		"only the program that wrote it can read it"};
	static const struct stranger lzma = {
		"an LZMA file of the old format (.lzma)",
		"make it xz: xz -dc --format=lzma FILE | xz -T0 "
		"--block-size=16MiB >FILE.xz"};
	static const struct stranger zlib = {
		"a bare zlib stream (.zz)",
		"make it gzip: pigz -dc <FILE | gzip >FILE.gz"};
	static const struct stranger empty = {"empty", NULL};
	static const struct stranger words = {"a text", DIRECTORY_OF_FILES};
	static const struct stranger misnamed = {
		"not what its name says",
		"is its beginning damaged, or was it copied incompletely?  If "
		"an archive begins later in the file, give offset=N, the "
		"number of bytes before it"};

	if (n == 0)
		return &empty;
	for (size_t i = 0; i < sizeof magics / sizeof *magics; i++) {
		const struct magic *m = &magics[i];

		if (m->at + m->n <= n && !memcmp(head + m->at, m->bytes, m->n))
			return &m->is;
	}
	if (is_pickle(head, n))
		return &pickle;
	if (is_lzma(head, n, path))
		return &lzma;
	if (is_zlib(head, n) && !is_words(head, n))
		return &zlib;
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
		if (ends_with(path, suffixes[i].suffix))
			return &suffixes[i].is;
	if (has_source_suffix(path))
		return &misnamed;
	return is_words(head, n) ? &words : NULL;
}
