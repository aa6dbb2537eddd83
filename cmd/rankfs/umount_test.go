package main

import (
	"testing"

	"rankfs/cmd/internal/mounts"
)

// An unmount that finds a mount busy names the processes that hold it, to be stopped; where none
// was found it names none, nor speaks of others beside them.
func TestHoldersAreTold(t *testing.T) {
	one := []mounts.Holder{{PID: 7, Name: "cat", Uses: []string{"open file", "mapped file"}}}
	for _, c := range []struct {
		holders []mounts.Holder
		more    bool
		want    string
	}{
		{one, false, "pid 7 (cat): open file, mapped file\nstop these processes, or detach it with: rankfs umount --lazy /mnt"},
		{one, true, "pid 7 (cat): open file, mapped file\nand others\nstop these processes, or detach it with: rankfs umount --lazy /mnt"},
		{nil, false, "no process was found that has it open; try again, or detach it with: rankfs umount --lazy /mnt"},
		{nil, true, "no process was found that has it open; try again, or detach it with: rankfs umount --lazy /mnt"},
	} {
		if got := holders(&mounts.BusyError{Mount: "/mnt", Holders: c.holders, More: c.more}); got != c.want {
			t.Errorf("%v, more %v: %q, want %q", c.holders, c.more, got, c.want)
		}
	}
}
