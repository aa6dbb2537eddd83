package catalog

import "rankfs/meta"

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
