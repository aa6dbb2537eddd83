package batch

import "rankfs/shuffle/plan"

// Chunks are the chunks of a source where a request costs much and a further byte
// little. Each is fetched whole, once, by the node that owns it, and stays in that
// node's cache for all batches, views and epochs that use it. They may be used
// concurrently.
type Chunks struct {
	Version *Version
	Readers *plan.Plan // by which ranks read the chunks; nil: not known
}

// Owner is the node that fetches a chunk: where it is read most, if that is up.
func (c *Chunks) Owner(number int) string {
	owners := c.Version.Source.owners
	if c.Readers != nil {
		if host, ok := c.Readers.OwnerHost(number); ok {
			if id, ok := owners.At(host); ok {
				return id
			}
		}
	}
	return owners.Of(c.Version.Source.seed, number, c.Version.Hosts(number))
}

// Own reports whether this node is the one that fetches a chunk.
func (c *Chunks) Own(number int) bool { return c.Owner(number) == c.Version.Source.owners.Self }
