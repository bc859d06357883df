# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2016,SC2154
# A Slurm cluster that lives in namespaces of one machine.  Sourced by rehearse.
#
# Everything is in a PID namespace: when its first process ends, so does all of
# it, mounts included, whatever state it is in.  A node is a network, mount,
# cgroup and UTS namespace with a /tmp and a /dev/shm of its own and a slurmd; the
# head (slurmctld, munged, sbatch) is the namespace around them.  Daemons have
# their own key, ports, directories and user database; a Slurm that is installed
# on the machine is not touched.

slurm_user=rehearsal
slurm_uid=54321

# The controllers of cgroup v1 that nodes have of their own, where there are any.
cgroups=
for part in freezer memory; do
	[ ! -d "/sys/fs/cgroup/$part/" ] || cgroups="$cgroups $part"
done

# memory_is_limited: jobs are killed when they take more than their --mem.
memory_is_limited()
{
	[[ $proctrack == cgroup && $cgroups == *memory* ]]
}

# cluster_files DIR NODES PROCTRACK: configuration for all daemons.
cluster_files()
{
	local dir=$1 n=$2 i limit=no task=none
	! memory_is_limited || limit=yes task=cgroup
	mkdir -p "$dir"/{state,spool,log,munge,home,share}
	chmod 755 "$dir" "$dir/share"
	chown "$slurm_uid:$slurm_uid" "$dir/home" "$dir/share"
	dd if=/dev/urandom of="$dir/munge/key" bs=128 count=1 status=none
	chmod 400 "$dir/munge/key"
	chmod 755 "$dir/munge"
	{
		grep -v "^$slurm_user:" /etc/passwd
		echo "$slurm_user:x:$slurm_uid:$slurm_uid::$dir/home:/bin/bash"
	} >"$dir/passwd"
	{
		grep -v "^$slurm_user:" /etc/group
		echo "$slurm_user:x:$slurm_uid:"
	} >"$dir/group"
	{
		echo "127.0.0.1 localhost"
		echo "10.77.0.1 head"
		for ((i = 1; i <= n; i++)); do
			echo "10.77.0.$((i + 1)) node$i"
		done
	} >"$dir/hosts"
	cat >"$dir/slurm.conf" <<-END
		ClusterName=rehearsal
		SlurmctldHost=head(10.77.0.1)
		SlurmUser=root
		SlurmctldPort=16817
		SlurmdPort=16818
		AuthType=auth/munge
		AuthInfo=socket=$dir/munge/socket
		CredType=cred/munge
		StateSaveLocation=$dir/state
		SlurmdSpoolDir=$dir/spool/%n
		SlurmctldLogFile=$dir/log/slurmctld
		SlurmdLogFile=$dir/log/%n
		SlurmctldPidFile=$dir/log/slurmctld.pid
		SlurmdPidFile=$dir/log/%n.pid
		ProctrackType=proctrack/$3
		TaskPlugin=task/$task
		MpiDefault=none
		SwitchType=switch/none
		SchedulerType=sched/backfill
		SchedulerParameters=batch_sched_delay=0,sched_interval=2
		SelectType=select/cons_tres
		SelectTypeParameters=CR_CPU_Memory
		JobAcctGatherType=jobacct_gather/none
		ReturnToService=2
		SlurmdParameters=config_overrides
		KillWait=5
		MessageTimeout=30
		SlurmdTimeout=60
		Prolog=$dir/prolog
		Epilog=$dir/epilog
		PrologFlags=Alloc
		NodeName=node[1-$n] CPUs=4 RealMemory=1000 State=UNKNOWN
		PartitionName=all Nodes=ALL Default=YES MaxTime=120 State=UP OverSubscribe=FORCE:4
	END
	[ "$n" -gt 1 ] || sed -i 's/node\[1-1\]/node1/' "$dir/slurm.conf"
	cat >"$dir/cgroup.conf" <<-END
		CgroupPlugin=cgroup/v1
		CgroupAutomount=no
		IgnoreSystemd=yes
		ConstrainCores=no
		ConstrainRAMSpace=$limit
	END
}

# cluster_head DIR: make this namespace the head, with a bridge to the nodes.
cluster_head()
{
	local dir=$1 file
	hostname head
	umount --all --lazy --types fuse.tensorfs # of the machine; copies here
	ip link set lo up
	ip link add cluster type bridge
	ip addr add 10.77.0.1/24 dev cluster
	ip link set cluster up
	for file in passwd group hosts; do
		mount --bind "$dir/$file" "/etc/$file"
	done
	mknod "$dir/fuse" c 10 229
	chmod 666 "$dir/fuse"
	mount --bind "$dir/fuse" /dev/fuse
	export SLURM_CONF=$dir/slurm.conf
	munged --force --foreground --key-file="$dir/munge/key" \
		--socket="$dir/munge/socket" --pid-file="$dir/munge/pid" \
		--log-file="$dir/munge/log" --seed-file="$dir/munge/seed" \
		>/dev/null 2>&1 &
	wait_for 10 test -S "$dir/munge/socket" || die "munged did not start"
	slurmctld -D -c >"$dir/log/head.out" 2>&1 &
}

# cluster_node DIR I: start a node; its first process sleeps for ever and holds
# the namespaces, slurmd runs beside it.
cluster_node()
{
	local dir=$1 i=$2 pid cg
	(
		for cg in $cgroups; do
			cg=/sys/fs/cgroup/$cg/${dir##*/}-$i
			mkdir -p "$cg" && echo 0 >"$cg/cgroup.procs"
		done
		exec unshare --mount --net --uts --cgroup --propagation private \
			sleep infinity
	) &
	pid=$!
	echo "$pid" >"$dir/node$i.pid"
	wait_for 10 grep -qx sleep "/proc/$pid/comm" || die "node$i: no namespace"
	ip link add "to$i" type veth peer name eth0 netns "$pid"
	ip link set "to$i" master cluster up
	on_node "$dir" "$i" bash -ec '
		hostname "node$2"
		ip link set lo up
		ip addr add "10.77.0.$(($2 + 1))/24" dev eth0
		ip link set eth0 up
		for cg in $3; do
			umount "/sys/fs/cgroup/$cg"
			mount -t cgroup -o "$cg" "$cg" "/sys/fs/cgroup/$cg"
		done
		mkdir -p "$1/spool/node$2"
		mount -t tmpfs -o mode=1777,size=256m tmp /tmp
		mount -t tmpfs -o mode=1777,size=256m shm /dev/shm' \
		node "$dir" "$i" "$cgroups" || die "node$i could not be set up"
	on_node "$dir" "$i" slurmd -D -N "node$i" >"$dir/log/node$i.out" 2>&1 &
}

# on_node DIR I COMMAND...: in the namespaces of a node, as root.
on_node()
{
	local pid
	pid=$(cat "$1/node$2.pid")
	SLURM_CONF=$1/slurm.conf nsenter -t "$pid" -m -n -u -C -- "${@:3}"
}

# as_user COMMAND...: as the ordinary user of the cluster.
as_user()
{
	setpriv --reuid="$slurm_uid" --regid="$slurm_uid" --clear-groups \
		env -u TMPDIR HOME="$scratch/home" USER="$slurm_user" \
		LOGNAME="$slurm_user" "$@"
}

# wait_for SECONDS COMMAND...: until it succeeds.
wait_for()
{
	local end=$((SECONDS + $1))
	until "${@:2}" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.1
	done
}

# cluster_forget: the cgroups of the nodes, when all their processes have ended.
cluster_forget()
{
	local dir
	for dir in /sys/fs/cgroup/*/"${scratch##*/}"-*; do
		[ -d "$dir" ] && find "$dir" -depth -type d -exec rmdir {} \;
	done
	return 0
}
