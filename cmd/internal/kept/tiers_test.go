package kept

import (
	"errors"
	"testing"

	"rankfs/cache/disks"
)

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
