/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's table of mounts, and which of them other nodes share. */
#include <fcntl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "app/netfs.h"
#include "test.h"

/* Lines as kernels, clusters and containers have them. */
static const char table[] =
	"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
	"30 22 0:45 / /home rw,relatime shared:8 master:3 - nfs4 "
	"fs:/export/home rw,vers=4.2\n"
	"31 22 0:46 / /lustre rw shared:9 - lustre "
	"10.1.1.1@o2ib:10.1.1.2@o2ib:/scratch rw,flock\n"
	"32 22 0:47 / /gpfs/data rw - gpfs data rw\n"
	"33 22 0:48 /ds /ceph rw - ceph 10.0.0.1:6789:/ rw\n"
	"34 22 0:49 / /home/u/a\\040b\\012c\\134d rw - fuse.sshfs u@h:/x "
	"rw,user_id=1000,group_id=1000\n"
	"35 22 0:50 / /tmp rw - tmpfs tmpfs rw\n"
	"not a line at all\n"
	"36 22 0:51 / /s3 rw - fuse mountpoint-s3 rw\n"
	"37 22 0:52 / /dav rw - fuse https://dav.example/x rw\n"
	"38 22 0:53 / /mnt/t ro - fuse.tensorfs /home/x\\040y.h5 "
	"ro,user_id=1000,group_id=7\n"
	"39 22 0:54 / /mnt/t ro - fuse.tensorfs second ro,user_id=0\n"
	"40 22 0:55 / /jc rw - fuse.juicefs JuiceFS:vol rw\n"
	"41 22 0:56 / /mnt/own rw - fuse own rw\n"
	"42 22 0:57 / /mnt/disk rw - fuseblk /dev/sdb1 rw\n";

static const struct {
	int id;
	const char *point, *name;
} expected[] = {
	{22, "/", NULL},           {30, "/home", "NFS"},
	{31, "/lustre", "Lustre"}, {32, "/gpfs/data", "GPFS"},
	{33, "/ceph", "CephFS"},   {34, "/home/u/a b\nc\\d", "sshfs"},
	{35, "/tmp", NULL},        {36, "/s3", "Mountpoint for S3"},
	{37, "/dav", "WebDAV"},    {38, "/mnt/t", NULL},
	{39, "/mnt/t", NULL},      {40, "/jc", "JuiceFS"},
	{41, "/mnt/own", NULL},    {42, "/mnt/disk", NULL},
};

static void read_table(struct mount_list *l)
{
	char name[] = "/tmp/tensorfs-netfs-XXXXXX";
	int fd = mkstemp(name);

	CHECK(fd >= 0);
	CHECK_EQ_I(write(fd, table, sizeof table - 1), (int)sizeof table - 1);
	close(fd);
	CHECK_EQ_I(mounts_read(l, name, NULL), 0);
	unlink(name);
}

TEST(a_table_is_read)
{
	struct mount_list l;

	read_table(&l);
	CHECK_EQ_U(l.n, sizeof expected / sizeof *expected);
	for (size_t i = 0; i < l.n; i++) {
		CHECK_EQ_I(l.at[i].id, expected[i].id);
		CHECK_STR(l.at[i].point, expected[i].point);
		CHECK_STR(network_fs_of_type(l.at[i].type, l.at[i].source),
			  expected[i].name);
	}
	CHECK(mount_is_ours(&l.at[9]) && !mount_is_ours(&l.at[5]));
	CHECK_STR(l.at[9].source, "/home/x y.h5");
	CHECK_EQ_I(mount_user(&l.at[9]), 1000);
	CHECK_EQ_I(mount_user(&l.at[10]), 0);
	CHECK_EQ_I(mount_user(&l.at[0]), -1);
	/* The later one is on top where there is no such directory to ask. */
	CHECK_EQ_I(mounts_find(&l, "/mnt/t")->id, 39);
	CHECK(!mounts_find(&l, "/mnt/tt"));
	mounts_free(&l);
}

TEST(types_are_whole_words)
{
	CHECK_STR(network_fs_of_type("nfs", "h:/"), "NFS");
	CHECK_STR(network_fs_of_type("fuse.glusterfs", "h:/v"), "GlusterFS");
	CHECK_STR(network_fs_of_type("9p", "host"), "9p");
	CHECK_STR(network_fs_of_type("fuse", "sshfs#u@h:/"), "sshfs");
	CHECK(!network_fs_of_type("nfsd", "nfsd"));
	CHECK(!network_fs_of_type("nf", "x"));
	CHECK(!network_fs_of_type("", ""));
	CHECK(!network_fs_of_type("fuse", ""));
	CHECK(!network_fs_of_type("fuse.", "nfs"));
	CHECK(!network_fs_of_type("overlay", "nfs"));
	/* What stands for a device is only asked of nameless FUSE. */
	CHECK(!network_fs_of_type("tmpfs", "nfs"));
}

/* The numbers of linux/magic.h and of coreutils. */
TEST(magic_numbers)
{
	CHECK_STR(network_fs_of_magic(0x6969), "NFS");
	CHECK_STR(network_fs_of_magic(0x517b), "SMB");
	CHECK_STR(network_fs_of_magic(0xff534d42), "SMB");
	CHECK_STR(network_fs_of_magic(0xfe534d42), "SMB");
	CHECK_STR(network_fs_of_magic(0x0bd00bd0), "Lustre");
	CHECK_STR(network_fs_of_magic(0x47504653), "GPFS");
	CHECK_STR(network_fs_of_magic(0x19830326), "BeeGFS");
	CHECK_STR(network_fs_of_magic(0xc36400), "CephFS");
	CHECK_STR(network_fs_of_magic(0x5346414f), "AFS");
	CHECK_STR(network_fs_of_magic(0x01021997), "9p");
	CHECK(!network_fs_of_magic(0));
	CHECK(!network_fs_of_magic(0x65735546)); /* FUSE */
	CHECK(!network_fs_of_magic(0x01021994)); /* tmpfs */
	CHECK(!network_fs_of_magic(0xef53));     /* ext4 */
}

/* Of this machine: the mount's row agrees with what statfs says. */
TEST(here)
{
	const struct mount_entry *m;
	struct mount_list l;
	struct statfs fs;

	CHECK_EQ_I(mounts_read(&l, NULL, NULL), 0);
	m = mounts_holding(&l, "/proc/self");
	CHECK(m);
	CHECK_STR(m->type, "proc");
	CHECK(mounts_find(&l, "/proc") == m);
	mounts_free(&l);
	CHECK(!network_fs("/proc"));
	CHECK(!network_fs("/no/such/directory"));
	CHECK_EQ_I(statfs("/", &fs), 0);
	if (network_fs_of_magic((uint32_t)fs.f_type))
		CHECK(network_fs("/"));
}

int main(void)
{
	RUN(a_table_is_read);
	RUN(types_are_whole_words);
	RUN(magic_numbers);
	RUN(here);
	return test_done();
}
