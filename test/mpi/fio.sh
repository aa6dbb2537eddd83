#!/bin/sh
# fio.sh [-j JOBS] [-t SECONDS] DIR | FILE...
#
# Reads batch files (of a directory, all that it has, 500 at most) with fio,
# through mappings and by pread, in order and at random. Nothing is written.
# JOBS (default 1) read at once, each pattern over and over for up to SECONDS
# (default 3). A line for each pattern:
#
#   fio engine= pattern= bs= jobs= bytes= MB/s= iops= p50_us= p99_us=
set -eu
jobs=1 seconds=3
while getopts j:t: option; do
	case $option in
	j) jobs=$OPTARG ;;
	t) seconds=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -ge 1 ] || { echo "use fio.sh [-j JOBS] [-t SECONDS] DIR | FILE..." >&2; exit 2; }

state=$(mktemp -d "${TMPDIR:-/tmp}/fio.XXXXXX")
trap 'rm -rf "$state"' EXIT

# fio separates names by colons, and takes 4,096 bytes of them: give it links.
find "$@" -name 'batch-*' ! -name '*.idx' -size +0 | sort | head -n 500 | while read -r batch; do
	n=$((${n-0} + 1))
	ln -s "$(realpath "$batch")" "$state/$n"
done
files=$(ls "$state" | sort -n | paste -sd: -)
[ -n "$files" ] || { echo "fio.sh: no batches in $*" >&2; exit 1; }

# A file smaller than a block would not be read at all.
smallest=$(cd "$state" && stat -L -c %s -- * | sort -n | head -n 1)
block() {
	bs=$1
	while [ "$bs" -gt "$smallest" ]; do bs=$((bs / 2)); done
	echo "$bs"
}

# io_size: the mmap engine leaves behind a mapping each time it comes to the end
# of a file, and a process may have 65,530.
measure() {
	if ! (cd "$state" && fio --readonly --allow_file_create=0 --invalidate=0 --group_reporting \
		--io_size="$((20000 * smallest))" --runtime="$seconds" --numjobs="$jobs" --name=rankfs \
		--ioengine="$1" --rw="$2" --bs="$3" --filename="$files" \
		--output-format=terse --terse-version=3) >"$state/out" 2>&1; then
		cat "$state/out" >&2
		exit 1
	fi
	# Of the terse fields 6 is KiB read, 7 KiB/s, 8 IOPS; 18 to 37 are p%=us.
	awk -F';' -v engine="$1" -v pattern="$2" -v bs="$3" -v jobs="$jobs" '/^3;/ {
		for (i = 18; i <= 37; i++) { split($i, p, "="); us[int(p[1])] = p[2] }
		printf "fio engine=%s pattern=%s bs=%s jobs=%d bytes=%.0f MB/s=%.0f iops=%d p50_us=%s p99_us=%s\n",
			engine, pattern, bs, jobs, $6 * 1024, $7 * 1.024 / 1000, $8, us[50], us[99]
	}' "$state/out"
}

for engine in mmap psync; do
	measure $engine read "$(block 1048576)"
	measure $engine randread "$(block 4096)"
done
