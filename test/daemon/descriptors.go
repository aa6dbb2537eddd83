package daemon

import (
	"fmt"
	"os"
	"strings"

	"rankfs/test/eventually"
)

// Descriptors counts those that the daemon has open, by what they are of, without those
// of slabs in memory, which it keeps for its next fills.
func (p *Place) Descriptors() map[string]int {
	p.t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", p.PID())
	all, err := os.ReadDir(dir)
	if err != nil {
		p.t.Fatal(err)
	}
	open := make(map[string]int)
	for _, e := range all {
		if of, err := os.Readlink(dir + "/" + e.Name()); err == nil && !strings.HasPrefix(of, slab) {
			open[kind(of)]++
		}
	}
	return open
}

// slab begins what a file in memory is called that holds one: it never had a name.
const slab = "/#"

// kind is what an open file is called, without its number.
func kind(of string) string {
	switch name, _, _ := strings.Cut(of, ":["); {
	case strings.Contains(name, "/blk_") && strings.HasSuffix(name, "(deleted)"):
		return "a deleted block"
	case strings.Contains(name, "/blk_"):
		return "a block"
	default:
		return strings.TrimRight(name, "0123456789")
	}
}

// AwaitDescriptors waits until the daemon has no more open, of anything, than it had.
func (p *Place) AwaitDescriptors(before map[string]int) {
	p.t.Helper()
	eventually.Done(p.t, waitTime, "no descriptor is left", func() error {
		now := p.Descriptors()
		for of, n := range now {
			if n > before[of] {
				return fmt.Errorf("there are %v, and %v before", now, before)
			}
		}
		return nil
	})
}
