package system_test

import (
	"encoding/json"
	"testing"
)

// What small batches take says how long a fetch waits for its first bytes, and nothing of
// the rate of a source: that is assumed until batches of other sizes were read, and then
// measured.
func TestSmallBatchesAreNoRate(t *testing.T) {
	n := start(t, "--ram", "64MiB")
	n.create("d", newFixed(t, 64<<10, 64), "--batch", "8192")
	facts := func() map[string]string {
		var said struct{ Facts []struct{ Name, From string } }
		must(t, json.Unmarshal([]byte(n.ok("simulate", "d", "--json").out), &said))
		from := map[string]string{}
		for _, f := range said.Facts {
			from[f.Name] = f.From
		}
		return from
	}
	r := newRank(t)
	for step := range 40 {
		r.batch(n.batch("d@batch=4", 0, step))
	}
	if f := facts(); f["source"] != "assumed" || f["latency"] != "measured" {
		t.Errorf("after batches of 256 bytes: the source's rate is %s, its latency %s", f["source"], f["latency"])
	}
	for step := range 8 {
		r.batch(n.batch("d", 0, step))
		r.batch(n.batch("d@batch=4", 0, 100+step))
	}
	if f := facts(); f["source"] != "measured" {
		t.Errorf("after batches of 256 bytes and of 512 KiB: the source's rate is %s", f["source"])
	}
}
