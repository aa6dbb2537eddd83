package catalog

import "rankfs/meta"

// racks are where hosts stand, by any of their names.
type racks struct{ meta.Hosts[string] }

// Rack is the rack of a host, as the sources of datasets say; empty if none of them does.
// Where they disagree the dataset whose name is first is believed.
func (c *Catalog) Rack(host string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.racks == nil {
		c.mu.racks = racksOf(c.sorted())
	}
	if found := c.mu.racks.Find(host); len(found) == 1 {
		return found[0]
	}
	return "" // a short name that several hosts have is none
}

func racksOf(all []*Dataset) *racks {
	r, known := new(racks), make(map[string]bool)
	for _, d := range all {
		for host, rack := range d.Version.Index.Racks() {
			if !known[host] {
				known[host] = true
				r.Add(host, rack)
			}
		}
	}
	return r
}
