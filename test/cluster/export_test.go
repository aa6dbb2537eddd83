package cluster

// Keeper is the process that holds the cluster.
func (c *Cluster) Keeper() int { return c.site.Pid }

// Dir is what the cluster has on disk.
func (c *Cluster) Disk() string { return c.site.Dir }
