package system_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"rankfs/test/eventually"
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
	epoch := 0 // more than one where a busy machine takes as long for the small ones
	eventually.True(t, "after batches of 256 bytes and of 512 KiB the source's rate is measured", func() bool {
		for step := range 8 {
			r.batch(n.batch(fmt.Sprintf("d@epoch=%d", epoch), 0, step))
			r.batch(n.batch("d@batch=4", 0, 100+8*epoch+step))
		}
		epoch++
		return facts()["source"] == "measured"
	})
}
