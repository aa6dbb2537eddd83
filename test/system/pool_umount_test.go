package system_test

import "testing"

// TestUmountTakesThePool unmounts as people and scripts do. The kernel has two mounts, one
// below the other; they come and go as one, whether the daemon lives or was killed.
func TestUmountTakesThePool(t *testing.T) {
	t.Parallel()
	p := newNode(t)
	sh(t, `
		alone sh -euc '
			top=$1 rankfs=$2
			mkdir $top/sbin
			for helper in mount.rankfs umount.fuse.rankfs; do ln -s $rankfs $top/sbin/$helper; done
			mount --bind $top/sbin $(readlink -f /sbin)
			mount -t tmpfs rankfs-test /run
			mount -t tmpfs rankfs-test /var/lib
			trap "umount -l $top/mnt 2>/dev/null || :" EXIT

			mounts() { grep -c " $top/mnt" /proc/self/mounts || :; }
			begin() {
				mount -t rankfs none $top/mnt -o ram=64MiB,pool-ram=16MiB
				pid=$($rankfs --json status | sed -n "s/.*\"pid\": *\([0-9]*\).*/\1/p")
				[ $(mounts) = 2 ] && mkdir $top/mnt/shuffle/job
			}
			ended() { # and nothing is mounted
				while kill -0 $pid 2>/dev/null; do sleep 0.05; done
				[ $(mounts) = 0 ] || { grep " $top/mnt" /proc/self/mounts; exit 3; }
				! grep " TARGET=$top/mnt " /run/mount/utab
			}

			for how in "umount" "umount -R" "umount -l" "umount -f" "$rankfs umount"; do
				begin
				rmdir $top/mnt/shuffle/job
				$how $top/mnt >/dev/null
				ended
			done

			begin
			for use in $top/mnt/.rankfs/health $top/mnt/shuffle/job/hold; do # one in use keeps both
				exec 3<$use
				if umount $top/mnt 2>$top/said; then exit 4; fi
				grep -q "open file" $top/said && grep -q "is busy" $top/said
				exec 3<&-
				[ $(mounts) = 2 ]
			done
			umount $top/mnt/shuffle # alone it comes again
			until mountpoint -q $top/mnt/shuffle; do sleep 0.05; done
			[ -e $top/mnt/shuffle/job/hold ]

			# Of a daemon that was killed both stay, however often they are looked at.
			kill -9 $pid
			while kill -0 $pid 2>/dev/null; do sleep 0.05; done
			for i in 1 2; do
				for path in $top/mnt/shuffle/job $top/mnt/shuffle $top/mnt; do ! stat $path 2>/dev/null; done
				[ $(mounts) = 2 ] || { grep " $top/mnt" /proc/self/mounts; exit 5; }
				sleep 1.1
			done
			umount $top/mnt
			[ $(mounts) = 0 ]
			! grep " TARGET=$top/mnt " /run/mount/utab

			mount -t rankfs none $top/mnt -o ram=64MiB,pool-ram=16MiB
			pid=$($rankfs --json status | sed -n "s/.*\"pid\": *\([0-9]*\).*/\1/p")
			kill -9 $pid
			while kill -0 $pid 2>/dev/null; do sleep 0.05; done
			mount -t rankfs none $top/mnt -o ram=64MiB,pool-ram=16MiB # in place of it
			[ $(mounts) = 2 ] && rm -r $top/mnt/shuffle/job
			pid=$($rankfs --json status | sed -n "s/.*\"pid\": *\([0-9]*\).*/\1/p")
			umount $top/mnt
			ended
		' sh "$1" "$2"`, p.dir, rankfs)
}

// A process that has a file of the pool open uses the mount, as one that reads a batch does: the
// daemon of a mount that was detached ends with the last of them.
func TestDetachedPool(t *testing.T) {
	t.Parallel()
	n, stage := pool(t, "maps=2")
	got := sh(t, `
		echo words >"$1/.map-000000.0"; mv "$1/.map-000000.0" "$1/map-000000"
		exec 3<"$1/map-000000" 4>"$1/.map-000001.0"
		"$2" --run "$4" umount --lazy "$3" >/dev/null
		sleep 1    # for a daemon that does not wait
		cat <&3    # which asks for its size
		echo more >&4; stat -Lc %s /dev/fd/4`, stage, rankfs, n.mount, n.run)
	if want := "words\n5\n"; got != want {
		t.Errorf("through a detached pool comes %q, want %q", got, want)
	}
	n.clean(n.AwaitEnd())
	n.start("--pool-ram", "64MiB")
	sh(t, `rm -r "$1"`, n.mount+"/shuffle/job")
}
