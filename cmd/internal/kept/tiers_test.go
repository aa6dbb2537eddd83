package kept

import (
	"errors"
	"testing"

	"rankfs/cache"
	"rankfs/cache/disks"
	"rankfs/cache/pressure"
)

// Of memory it is said that it is short where that, and not a pool beside it, leaves the cache
// less than its budget.
func TestTierOfMemory(t *testing.T) {
	seen := pressure.Sample{Group: pressure.Group{Name: "job", Limit: 512 << 20, Used: 500 << 20}}
	for name, tt := range map[string]struct {
		budget, allowed int64 // MiB, of the tier with the pool, and by what was seen
		fault           error
		want            string
	}{
		"all of it":                      {64, 64, nil, "ok"},
		"memory is short":                {48, 48, nil, "48 MiB allowed: memory is short: " + seen.String()},
		"jobs of the pool have it":       {40, 48, nil, "ok"},
		"nothing is known of memory":     {64, 64, errors.New("no such file"), "not watched: no such file"},
		"nothing is known since a while": {48, 48, errors.New("no such file"), "not watched: no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ramTier(64<<20, cache.TierStats{Budget: tt.budget << 20, Used: 7}, pressure.Allowance{Bytes: tt.allowed << 20}, seen, tt.fault)
			if got.State != tt.want || got.Budget != 64<<20 || got.Used != 7 {
				t.Errorf("got %+v, want that it is %q", got, tt.want)
			}
		})
	}
}

func TestEmptyDisk(t *testing.T) {
	const unworthy = "the policy mckp found no batch worth writing: what left memory is not read again, or its source is as fast; see --nvme in man rankfs"
	for name, tt := range map[string]struct {
		disk    disks.Stats
		evicted uint64
		want    string
	}{
		"nothing left memory": {want: "no batch has left memory yet"},
		"nothing was written": {evicted: 595, want: unworthy},
		"copies alone":        {disk: disks.Stats{Used: 4096, Others: 4096}, evicted: 1, want: unworthy},
		"not empty":           {disk: disks.Stats{Slabs: 1}, evicted: 1},
		"a suspended one":     {disk: disks.Stats{Fault: errors.New("no space left on device")}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := nvmeTier(tt.disk, emptyDisk(tt.disk, tt.evicted, "mckp")).Empty; got != tt.want {
				t.Errorf("empty since %q, want %q", got, tt.want)
			}
		})
	}
}
