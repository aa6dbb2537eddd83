package catalog

import (
	"sync"

	"rankfs/meta"
)

// Racks are those of hosts, as the sources of datasets say. The lock, which comes before that
// of the catalog, is held while they are found.
type racks struct {
	mu struct {
		sync.Mutex
		of *meta.Hosts[string] // nil until one is asked for
	}
}

// find is the rack of a host; empty if none is known, or several are.
func (r *racks) find(host string, in func() []*Dataset) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.of == nil {
		r.mu.of = racksOf(in())
	}
	if found := r.mu.of.Find(host); len(found) == 1 {
		return found[0]
	}
	return "" // a short name that several hosts have is none
}

// racksOf finds the rack of a host by any of its names.
func racksOf(all []*Dataset) *meta.Hosts[string] {
	racks, known := new(meta.Hosts[string]), make(map[string]bool)
	for _, d := range all {
		for host, rack := range d.Version.Index.Racks() {
			if !known[host] {
				known[host] = true
				racks.Add(host, rack)
			}
		}
	}
	return racks
}

// changed has them found anew, as there are other datasets.
func (r *racks) changed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.of = nil
}
