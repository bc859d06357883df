/* SPDX-License-Identifier: BSD-2-Clause */
/* Recognises file systems that several nodes share, by their type names and magic
 * numbers. */

/*
 * A FUSE mount belongs to the node that made it.  On a directory that all nodes
 * see, the other nodes find it empty; so the user is told before that happens.
 *
 * The kernel's table of mounts has the name of the type, which alone tells a FUSE
 * file system of a server (sshfs) from a local one.  The row is found by the id of the
 * mount, because paths in the table may be covered by later mounts.  Where the table
 * lacks the mount (a chroot, a detached tree) the magic number of statfs(2) is
 * used.  An unknown type counts as local: refusing an unknown scratch disk would cost
 * more than a mount that other nodes do not see.
 *
 * Left out: virtiofs, vboxsf and the like, a virtual machine's view of its host,
 * because it is not known whether other machines share it; and overlays, whose
 * directories are the node's own whatever lies below.
 */
#include "app/netfs.h"

#include <string.h>
#include <sys/vfs.h>

struct network_type {
	const char *type; /* without "fuse." */
	const char *name;
	uint32_t magic; /* 0 if it has none of its own */
};

static const struct network_type network_types[] = {
	{"nfs", "NFS", 0x6969},
	{"nfs4", "NFS", 0x6969},
	{"cifs", "SMB", 0xff534d42},
	{"smb3", "SMB", 0xfe534d42},
	{"smbfs", "SMB", 0x517b},
	{"lustre", "Lustre", 0x0bd00bd0},
	{"lustre_lite", "Lustre", 0x0bd00bd0},
	{"gpfs", "GPFS", 0x47504653},
	{"mmfs", "GPFS", 0x47504653},
	{"beegfs", "BeeGFS", 0x19830326},
	{"fhgfs", "BeeGFS", 0x19830326},
	{"ceph", "CephFS", 0x00c36400},
	{"ceph-fuse", "CephFS", 0},
	{"glusterfs", "GlusterFS", 0},
	{"pvfs2", "OrangeFS", 0x20030528},
	{"orangefs", "OrangeFS", 0x20030528},
	{"wekafs", "WekaFS", 0},
	{"panfs", "PanFS", 0xaad7aaea},
	{"daos", "DAOS", 0},
	{"dfuse", "DAOS", 0},
	{"dvs", "Cray DVS", 0},
	{"quobyte", "Quobyte", 0},
	{"mfs", "MooseFS", 0},
	{"lizardfs", "LizardFS", 0},
	{"seaweedfs", "SeaweedFS", 0},
	{"afs", "AFS", 0x5346414f},
	{"kafs", "AFS", 0x6b414653},
	{"auristorfs", "AFS", 0},
	{"coda", "Coda", 0x73757245},
	{"ncpfs", "NCP", 0x564c},
	{"9p", "9p", 0x01021997},
	{"gfs2", "GFS2", 0x01161970},
	{"ocfs2", "OCFS2", 0x7461636f},
	{"ibrix", "Ibrix", 0x013111a8},
	{"snfs", "StorNext", 0xbeefdead},
	{"cvfs", "StorNext", 0},
	{"sshfs", "sshfs", 0},
	{"davfs", "WebDAV", 0},
	{"davfs2", "WebDAV", 0},
	{"http", "WebDAV", 0},
	{"https", "WebDAV", 0},
	{"curlftpfs", "curlftpfs", 0},
	{"rclone", "rclone", 0},
	{"s3fs", "s3fs", 0},
	{"mountpoint-s3", "Mountpoint for S3", 0},
	{"goofys", "goofys", 0},
	{"geesefs", "GeeseFS", 0},
	{"gcsfuse", "gcsfuse", 0},
	{"blobfuse", "blobfuse", 0},
	{"blobfuse2", "blobfuse", 0},
	{"juicefs", "JuiceFS", 0},
	{"alluxio-fuse", "Alluxio", 0},
	{"cvmfs2", "CernVM-FS", 0},
	{"hf3fs", "3FS", 0},
	{"hdfs", "HDFS", 0},
	{"fuse_dfs", "HDFS", 0},
	{"irodsfs", "iRODS", 0},
	{"eosxd", "EOS", 0},
};

static const char *network_fs_of_name(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof network_types / sizeof *network_types;
	     i++)
		if (!strncmp(network_types[i].type, name, len) &&
		    !network_types[i].type[len])
			return network_types[i].name;
	return NULL;
}

/* Some FUSE file systems have no type of their own, but give their name in place of the
 * device ("mountpoint-s3", "https://..."). */
const char *network_fs_of_type(const char *type, const char *source)
{
	if (!strncmp(type, "fuse.", 5))
		type += 5;
	if (strcmp(type, "fuse"))
		return network_fs_of_name(type, strlen(type));
	return network_fs_of_name(source, strcspn(source, ":#"));
}

const char *network_fs_of_magic(uint32_t magic)
{
	for (size_t i = 0; i < sizeof network_types / sizeof *network_types;
	     i++)
		if (network_types[i].magic && network_types[i].magic == magic)
			return network_types[i].name;
	return NULL;
}

const char *network_fs(const char *path)
{
	const struct mount_entry *m;
	struct mount_list mounts;
	const char *name = NULL;
	struct statfs fs;

	if (mounts_read(&mounts, NULL, NULL) == 0) {
		m = mounts_holding(&mounts, path);
		if (m)
			name = network_fs_of_type(m->type, m->source);
		mounts_free(&mounts);
	}
	if (!name && statfs(path, &fs) == 0)
		name = network_fs_of_magic((uint32_t)fs.f_type);
	return name;
}
