package kept

import (
	"fmt"

	"rankfs/cache"
	"rankfs/cache/disks"
	"rankfs/cache/pressure"
	"rankfs/cmd/internal/control"
	"rankfs/meta"
)

// tiers are where batches are, the fastest first.
func (n *slabs) tiers(c cache.Stats) []control.Tier {
	allowed, seen, fault := n.memory.Allowance()
	all := []control.Tier{ramTier(n.RAM, c.RAM, allowed, seen, fault)}
	if p := c.Packed; p.Slabs > 0 {
		all = append(all, control.Tier{
			Name: "packed", Where: "in ram, of its budget", Budget: c.RAM.Budget, Used: p.Used, Slabs: p.Slabs, State: "ok", Damaged: p.Damaged,
		})
	}
	for _, d := range c.NVMe {
		all = append(all, nvmeTier(d, emptyDisk(d, c.Evicted, n.cache.Policy())))
	}
	return all
}

// ramTier is the tier of memory: with its whole budget, and how much of that is allowed now, if
// it is less, and not only as jobs of the pool have the rest.
func ramTier(budget int64, is cache.TierStats, allowed pressure.Allowance, seen pressure.Sample, fault error) control.Tier {
	t := control.Tier{
		Name: "ram", Where: "private tmpfs", Budget: budget, Used: is.Used, Dying: is.Dying, Slabs: is.Slabs, State: "ok",
	}
	switch {
	case fault != nil:
		t.State = fmt.Sprintf("not watched: %v", fault)
	case allowed.Bytes < budget && allowed.Bytes <= is.Budget:
		t.State = fmt.Sprintf("%d MiB allowed: memory is short: %v", is.Budget>>20, seen)
	}
	return t
}

func nvmeTier(d disks.Stats, empty string) control.Tier {
	t := control.Tier{
		Name: "nvme", Where: d.Path, Budget: d.Budget, Used: d.Used, Dying: d.Dying, Copies: d.Others, Slabs: d.Slabs,
		State: "ok", Empty: empty, Damaged: d.Damaged, Lost: d.Lost, Failed: d.Failed,
	}
	if d.Fault != nil {
		t.State = meta.Plain(d.Fault)
	}
	return t
}

// emptyDisk is why a healthy disk has no batch: none has left memory, or the policy
// chose none to be written.
func emptyDisk(d disks.Stats, evicted uint64, by string) string {
	switch {
	case d.Slabs > 0 || d.Fault != nil:
		return ""
	case evicted == 0:
		return "no batch has left memory yet"
	}
	return fmt.Sprintf("the policy %s found no batch worth writing: what left memory is not read again, or its source is as fast; "+
		"see --nvme in man rankfs", by)
}
