package system_test

import "testing"

// TestMountByFstab mounts with mount(8): by a line of an fstab with the options that
// the manual has, and as README does. It runs in a mount namespace of its own, in
// which /sbin has nothing but the helpers, and /run and /var/lib are empty.
func TestMountByFstab(t *testing.T) {
	t.Parallel()
	p, s := newNode(t), newLines(t, 40)
	sh(t, `
		alone sh -euc '
			top=$1 rankfs=$2 uri=$3
			mkdir $top/sbin $top/nvme && ln -s $rankfs $top/sbin/mount.rankfs && ln -s $rankfs $top/sbin/umount.fuse.rankfs && : >$top/token
			mount --bind $top/sbin $(readlink -f /sbin)
			mount -t tmpfs rankfs-test /run
			mount -t tmpfs rankfs-test /var/lib
			trap "mountpoint -q $top/mnt && umount -l $top/mnt || :" EXIT

			read_all() {
				$rankfs dataset create train --source $uri --batch 5 >/dev/null 2>&1
				cat $top/mnt/datasets/train/rank-0/batch-?????? >$top/read
				cmp $top/read $(echo "$uri" | sed "s/^file://; s/?.*//")
			}
			unmount() { # and the daemon ends
				pid=$($rankfs --json status | sed -n "s/.*\"pid\": *\([0-9]*\).*/\1/p")
				kill -0 $pid
				umount $top/mnt
				while kill -0 $pid 2>/dev/null; do sleep 0.05; done
			}

			echo "none $top/mnt rankfs state=$top/state,nvme=$top/nvme:1GiB,nvme-floor=1MiB,ram=64MiB,pool-ram=32MiB,cache-policy=lru,uid=65534,gid=65534,umask=027,log-level=debug,host=here.example.com,private,noauto,nofail,x-systemd.automount,_netdev 0 0" >$top/fstab
			mount -T $top/fstab $top/mnt
			read_all
			[ $(stat -c %u:%g:%a $top/mnt/datasets/train) = 65534:65534:550 ]
			mountpoint -q $top/mnt/shuffle
			grep " $top/mnt " /proc/self/mountinfo | grep " ro,nosuid,nodev" | grep -q " fuse.rankfs "
			$rankfs status | grep -q "$top/nvme"
			if mount -T $top/fstab $top/mnt 2>$top/twice; then exit 3; fi
			unmount

			if mount -t rankfs none $top/mnt -o ram=64MiB,colour=blue 2>$top/wrong; then exit 4; fi
			grep -q "there is no such option" $top/wrong
			mount -t rankfs none $top/mnt -o ram=64MiB
			read_all
			unmount
		' sh "$1" "$2" "$3"`, p.dir, rankfs, s.uri)
}
