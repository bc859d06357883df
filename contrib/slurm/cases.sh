# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2016,SC2154
# What becomes of staged data, and of an epilog's neighbours.  Sourced by rehearse.

# Where the user's trees are staged on a node.
home=/dev/shm/tensorfs-$slurm_uid

# user_on I COMMAND...: as the user, on a node, in no job.
user_on()
{
	on_node "$scratch" "$1" setpriv --reuid="$slurm_uid" --regid="$slurm_uid" \
		--clear-groups env -u TMPDIR HOME="$scratch/home" "${@:2}"
}

# epilog_on I [NAME=VALUE...]: by hand, for job 1; sets $said.
epilog_on()
{
	local begin=$SECONDS
	said=$(on_node "$scratch" "$1" env -i SLURM_JOB_ID=1 \
		SLURM_JOB_UID="$slurm_uid" SLURMD_NODENAME="node$1" \
		SLURM_CONF="$scratch/slurm.conf" "${@:2}" bash "$here/epilog" 2>&1) ||
		wrong "the epilog failed: $said" || return
	[ $((SECONDS - begin)) -le 25 ] || wrong "the epilog is slow: $said"
}

# slow_data SIZE: an archive of two files of that size; of 24M they take seconds to stage.
slow_data()
{
	local file=$scratch/share/slow$1.tar.bz2 dir=$scratch/slow$1
	[ -s "$file" ] || {
		mkdir "$dir"
		head -c "$1" /dev/urandom | base64 -w 0 >"$dir/a"
		head -c "$1" /dev/urandom | base64 -w 0 >"$dir/b"
		tar -cjf "$file" -C "$dir" a b
		# With an index, files grow as long as staging takes; without, nothing is
		# written during a first pass, and the rest takes no time.
		"$program" info --index="$file.tfsidx" "$file" >/dev/null &&
			[ -s "$file.tfsidx" ]
	} || die "no archive"
	printf '%s\n' "$file"
}

# large_data: an archive of 258 MB that is decoded quickly.
large_data()
{
	local file=$scratch/share/large.tar.gz dir=$scratch/large
	[ -s "$file" ] || {
		mkdir "$dir"
		head -c 96M /dev/urandom | base64 -w 0 >"$dir/a"
		head -c 96M /dev/urandom | base64 -w 0 >"$dir/b"
		tar -c -C "$dir" a b | gzip -1 >"$file"
		"$program" info --index="$file.tfsidx" "$file" >/dev/null &&
			[ -s "$file.tfsidx" ]
	} || die "no archive"
	printf '%s\n' "$file"
}

# two_looks: a command that looks twice, the second time when it is told.
two_looks()
{
	cat >"$scratch/share/looks.sh" <<-END
		look() { /usr/bin/python3 $scratch/share/reader.py "\$1" 0; }
		look "\$1"
		echo "looks at \$1"
		until [ -e $scratch/share/again ]; do sleep 0.1; done
		look "\$1"
	END
	printf '%s\n' "$scratch/share/data.sqfs" sh "$scratch/share/looks.sh" {}
}

# look_again: were the bytes right both times?
look_again()
{
	touch "$scratch/share/again"
	wait_for 30 job_ended "$job" || wrong "it hangs" || return
	[ "$(grep -c "$sum" "$scratch/share/$job.out")" = 2 ] ||
		wrong "its data went away"
}

# ---- staging ------------------------------------------------------------------

stage_runs()
{
	local command i
	mapfile -t command < <(two_looks)
	touch "$scratch/share/again"
	TENSORFS_RUN_OPTIONS=--stage submit --wait --nodes="$nodes" \
		"$here/job-nodes.sbatch" "${command[@]}" ||
		wrong "the job failed" || return
	[ "$(grep -c "^looks at $home/data" "$scratch/share/$job.out")" = "$nodes" ] ||
		wrong "not staged" || return
	for ((i = 1; i <= nodes; i++)); do
		output_has "node$i uid $slurm_uid $sum" 5 ||
			wrong "node$i has other bytes" || return
	done
}

# stop_while_staging TEMPLATE NODES SCANCEL...: as soon as a file is written.
stop_while_staging()
{
	local file
	file=$(slow_data 24M)
	TENSORFS_RUN_OPTIONS=--stage submit --nodes="$2" "$here/$1" "$file" \
		echo started {} || return
	on_node "$scratch" "$2" timeout 60 bash -c \
		'until compgen -G "$1/.stages/*.tree/*"; do sleep 0.02; done' \
		look "$home" >/dev/null || wrong "it does not stage" || return
	"${@:3}" "$job"
	wait_for 20 job_ended "$job" || wrong "it goes on" || return
	! grep -q ^started "$scratch/share/$job.out" || wrong "too late, or it ran"
}

staging_is_cancelled()
{
	stop_while_staging job.sbatch 1 scancel
}

staging_is_killed()
{
	stop_while_staging job.sbatch 1 scancel --signal=KILL --full
}

# All processes at once, so that none can clean up after another.
kill_all()
{
	user_on 1 bash -c 'kill -9 -1'
}

staging_dies()
{
	stop_while_staging job.sbatch 1 kill_all
}

staging_on_nodes_is_cancelled()
{
	stop_while_staging job-nodes.sbatch "$nodes" scancel
}

staging_on_nodes_is_killed()
{
	stop_while_staging job-nodes.sbatch "$nodes" scancel --signal=KILL
}

staging_a_copy_is_cancelled()
{
	stop_while_staging sbcast-stage.sbatch "$nodes" scancel
}

# The copies are mounted by the index that was copied with them.
copied_index_is_used()
{
	local file
	file=$(slow_data 2M)
	TENSORFS_RUN_OPTIONS=--debug=archive submit --wait --nodes="$nodes" \
		"$here/sbcast-stage.sbatch" "$file" \
		sh -c 'echo started; cat "$1/a" >/dev/null' look {} \
		>/dev/null || wrong "the job failed" || return
	output_has ^started || wrong "it did not run" || return
	[ "$(grep -c ': index /' "$scratch/share/$job.out")" = "$nodes" ] ||
		wrong "a node made its own index"
}

# command_is_killed TEMPLATE NODES SCANCEL...: while it reads staged files.
command_is_killed()
{
	local command
	mapfile -t command < <(read_data 300)
	TENSORFS_RUN_OPTIONS=--stage submit --nodes="$2" "$here/$1" \
		"${command[@]}" || return
	output_has "node$2 .*$sum" || wrong "it did not start" || return
	"${@:3}" "$job"
}

job_gets_kill()
{
	command_is_killed job.sbatch 1 scancel --signal=KILL --full
}

job_nodes_get_kill()
{
	command_is_killed job-nodes.sbatch "$nodes" scancel --signal=KILL
}

sbcast_gets_kill()
{
	command_is_killed sbcast-stage.sbatch "$nodes" scancel --signal=KILL --full
}

# sbcast says that all is well, and a byte of the last node's copy is another one.
copy_is_corrupt()
{
	local bin=$scratch/share/bin status=0
	mkdir "$bin"
	cat >"$bin/sbcast" <<-END
		#!/bin/bash
		/usr/bin/sbcast "\$@" || exit
		srun --nodes=1 --ntasks=1 --nodelist=node$nodes sh -c \\
			'printf x | dd of="\$1" bs=1 seek=5000 conv=notrunc' sh "\${@: -1}"
	END
	chmod 755 "$bin/sbcast"
	PATH=$bin:$PATH submit --wait --nodes="$nodes" "$here/sbcast-stage.sbatch" \
		"$scratch/share/data.sqfs" echo started {} || status=$?
	[ "$status" != 0 ] || wrong "the job succeeded" || return
	output_has "node$nodes: the copy differs" 5 || wrong "it does not say" || return
	! grep -q ^started "$scratch/share/$job.out" || wrong "it ran"
}

# The kernel kills what takes most of the job's memory: the command.
out_of_memory()
{
	memory_is_limited || { say "# memory is not limited here"; return; }
	TENSORFS_RUN_OPTIONS=--stage submit --wait --mem=100M "$here/job.sbatch" \
		"$scratch/share/data.sqfs" /usr/bin/python3 -c \
		'import sys; print("started", sys.argv[1], flush=True); bytearray(300 << 20)' {}
	output_has "^started $home" 5 || wrong "it did not start" || return
	wait_for 15 job_ended "$job"
	scontrol show job "$job" | grep -q JobState=OUT_OF_MEMORY ||
		wrong "it was not killed"
}

# What is staged counts in --mem: known before a byte is written.
stage_does_not_fit()
{
	local file
	memory_is_limited || { say "# memory is not limited here"; return; }
	# A mount takes up to 64 MiB beside its cache, which gets half of what is left.
	file=$(large_data)
	TENSORFS_RUN_OPTIONS=--stage submit --wait --mem=192M "$here/job.sbatch" \
		"$file" echo started {}
	[ "$(sacct_status "$job")" = 5 ] || wrong "exit status" || return
	! grep -q ^started "$scratch/share/$job.out" || wrong "it ran" || return
	nothing_left || wrong "it began" || return
	TENSORFS_RUN_OPTIONS=--stage=fit submit --wait --mem=192M "$here/job.sbatch" \
		"$file" sh -c 'cmp "$1/a" "$2/a" && echo "equal in $1"' \
		sh {} "$scratch/large" || wrong "the second failed" || return
	output_has "equal in /tmp/tensorfs-" 5 || wrong "it was not mounted" ||
		return
	output_has "mounting instead" 5 || wrong "it does not say"
}

# ---- neighbours of an epilog --------------------------------------------------

# neighbour_goes_on OPTIONS: a job of the same user ends, and another has its data.
neighbour_goes_on()
{
	local command first
	rm -f "$scratch/share/again"
	mapfile -t command < <(two_looks)
	TENSORFS_RUN_OPTIONS=$1 submit --nodelist=node1 "$here/job.sbatch" \
		"${command[@]}" || return
	output_has "looks at" || wrong "it did not start" || return
	first=$job
	mapfile -t command < <(read_data 0)
	submit --wait --nodelist=node1 "$here/job.sbatch" "${command[@]}" ||
		wrong "its neighbour failed" || return
	wait_for 15 job_ended "$job" || wrong "its neighbour stays" || return
	mapfile -t command < <(read_data 300)
	submit --nodelist=node1 "$here/job.sbatch" "${command[@]}" || return
	output_has "$sum" || wrong "the other neighbour did not start" || return
	scancel --signal=KILL --full "$job"
	wait_for 15 job_ended "$job" || wrong "the other neighbour stays" || return
	job=$first
	look_again
}

staged_neighbour_goes_on()
{
	neighbour_goes_on --stage
}

mounted_neighbour_goes_on()
{
	neighbour_goes_on "-o shm-cache=8M"
}

# Four at a time, beginning and ending as they like, one epilog after the other.
many_neighbours()
{
	local command
	mapfile -t command < <(read_data 0)
	TENSORFS_RUN_OPTIONS="${TENSORFS_RUN_OPTIONS---stage}" submit --wait \
		--array=1-16 --nodelist=node1 --output="$scratch/share/many-%a.out" \
		"$here/job.sbatch" "${command[@]}"
	[ "$(cat "$scratch"/share/many-*.out | grep -c "$sum")" = 16 ] ||
		wrong "$(tail -n +1 "$scratch"/share/many-*.out)"
}

# A job that stages by itself: nobody holds the tree, and it is still needed; also
# when Slurm has cancelled it, and it saves its work.
keeping_neighbour_goes_on()
{
	local command first
	rm -f "$scratch/share/again"
	cat >"$scratch/share/keep.sh" <<-END
		#!/bin/bash
		d=\$(tensorfs stage -q $scratch/share/data.sqfs)
		look() { /usr/bin/python3 $scratch/share/reader.py "\$d" 0; }
		trap 'kill \$!; sleep 3; look; tensorfs unstage --all; exit' TERM
		look
		echo "looks at \$d"
		sleep 300 &
		wait
	END
	submit --nodelist=node1 "$scratch/share/keep.sh" || return
	output_has "looks at" || wrong "it did not start" || return
	first=$job
	mapfile -t command < <(read_data 2)
	submit --nodelist=node1 "$here/job.sbatch" "${command[@]}" || return
	output_has "$sum" || wrong "its neighbour did not start" || return
	scancel "$first" "$job"
	wait_for 15 job_ended "$job" || wrong "its neighbour stays" || return
	job=$first
	look_again
}

# Not every process of a user is in a job: what it holds stays, the rest does not.
what_is_held_stays()
{
	local command pid
	rm -f "$scratch/share/again"
	mapfile -t command < <(two_looks)
	job=held
	user_on 1 tensorfs run --stage "${command[0]}" -- "${command[@]:1}" \
		>"$scratch/share/held.out" 2>&1 &
	pid=$!
	output_has "looks at $home" || wrong "it did not start" || return
	user_on 1 tensorfs stage -q --name=kept "$scratch/share/data.sqfs:sub" \
		>/dev/null || wrong "nothing to leave" || return
	submit --wait --nodelist=node1 "$here/job.sbatch" "$scratch/share/data.sqfs" \
		true {} || wrong "the job failed" || return
	wait_for 15 job_ended "$job"
	left=$(on_node "$scratch" 1 ls "$home")
	job=held
	[ "$left" = data ] || wrong "in $home: $left" || return
	touch "$scratch/share/again"
	wait "$pid"
	[ "$(grep -c "$sum" "$scratch/share/held.out")" = 2 ] ||
		wrong "its data went away"
}

# ---- the epilog by hand -------------------------------------------------------

# A daemon that is stopped answers nobody.
epilog_of_a_hanging_mount()
{
	local pid
	user_on 1 mkdir /tmp/hangs /tmp/tensorfs-1-0-"$slurm_uid"-9{,/mnt} || return
	user_on 1 tensorfs mount "$scratch/share/data.sqfs" /tmp/hangs &&
		user_on 1 tensorfs mount "$scratch/share/data.sqfs" \
			/tmp/tensorfs-1-0-"$slurm_uid"-9/mnt ||
		wrong "no mount" || return
	pid=$(pgrep -u "$slurm_uid" -x tensorfs)
	# shellcheck disable=SC2086 # several
	kill -STOP $pid
	# First as if Slurm did not answer: then nothing that lives is touched.
	epilog_on 1 SLURM_CONF=/nowhere || return
	on_node "$scratch" 1 grep -q " /tmp/hangs " /proc/self/mountinfo ||
		wrong "it took a mount that another job might need" || return
	epilog_on 1 || return
	# shellcheck disable=SC2086
	kill -CONT $pid
	user_on 1 rmdir /tmp/hangs || wrong "it stayed mounted: $said"
}

epilog_without_tensorfs()
{
	local place=/tmp/tensorfs-1-0-$slurm_uid-9
	user_on 1 mkdir "$place" "$place/mnt" || return
	user_on 1 tensorfs stage -q "$scratch/share/data.sqfs" >/dev/null || return
	epilog_on 1 TENSORFS=/nowhere/tensorfs || return
	[[ $said == *"there is no /nowhere/tensorfs"* ]] || wrong "$said" || return
	on_node "$scratch" 1 test ! -e "$place" || wrong "it left $place" || return
	on_node "$scratch" 1 test -f "$home/data/f7" || wrong "it took data" || return
	epilog_on 1
}
