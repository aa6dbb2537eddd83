package system_test

import (
	"strings"
	"testing"

	"rankfs/test/eventually"
)

// Batches of a local source that leave memory go to a disk if they are pinned
// there or the policy has all there. Where a planner weighs the disk against the
// source, which depends on the machine, some are there, or status says why not.
func TestWhatADiskHas(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, policy string
		pin, weighed bool
	}{
		{name: "pinned", policy: "mckp", pin: true},
		{name: "pinned whatever the policy", policy: "lru", pin: true},
		{name: "all on disk", policy: "all-disk"},
		{name: "by the planner", policy: "mckp", weighed: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newNode(t)
			n, s := p.start("--ram", "16MiB", "--nvme", p.at+":256MiB", "--cache-policy", tt.policy), newFixed(t, 40*batchRecords, recordSize)
			n.create("d", s)
			if tt.pin {
				n.ok("cache", "pin", "d", "--tier", "nvme")
			}
			if disk := n.status().disk(p.at); disk.Slabs != 0 || disk.Empty != "no batch has left memory yet" {
				t.Errorf("at first %d slabs, %q", disk.Slabs, disk.Empty)
			}
			read := func() { sh(t, `cat "$1"/batch-*[0-9] >/dev/null`, n.path("d", "rank-0")) }
			read()
			read()
			if !tt.weighed {
				eventually.True(t, "some are on the disk", func() bool { read(); return n.status().disk(p.at).Slabs > 0 })
			}
			var disk tierStatus
			var text string
			eventually.True(t, "nothing goes to the disk between two looks", func() bool {
				before := n.status().disk(p.at)
				text = n.ok("status").out
				disk = n.status().disk(p.at)
				return disk.Slabs == before.Slabs
			})
			why := tt.policy + " found no batch worth writing"
			switch {
			case disk.Slabs > 0 && (disk.Empty != "" || strings.Contains(text, "is empty")):
				t.Errorf("%d slabs, and yet %q:\n%s", disk.Slabs, disk.Empty, text)
			case disk.Slabs == 0 && (!strings.Contains(disk.Empty, why) || !strings.Contains(text, "is empty: ")):
				t.Errorf("status does not say why:\n%s", text)
			}
		})
	}
}
