package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"rankfs/test/cluster/internal/control"
	"rankfs/test/cluster/internal/site"
	"rankfs/test/hadoop"
)

// A Cluster runs at least until it is closed. Its methods may be called
// concurrently, but only a test that has the cluster alone may cause faults.
type Cluster struct {
	namenodes
	holding *site.Lock
}

// A layout says which hosts there are, and how they are reached.
type layout struct {
	site  *site.Site
	hosts map[string]*Host
}

// The namenodes are asked by their own protocols, as a program of Hadoop's would take seconds
// to begin.
type namenodes struct{ layout }

// Open starts the cluster of that name or joins its users. It does not wait for
// tests that are breaking something; tests take Shared, which does.
func Open(ctx context.Context, name string) (*Cluster, error) {
	if err := NeedRoot(); err != nil {
		return nil, err
	}
	home, err := hadoop.Prepare(ctx)
	if err != nil {
		return nil, err
	}
	want, err := site.New(name, home)
	if err != nil {
		return nil, err
	}
	holding, err := want.WaitLock(ctx, site.Holding, false)
	if err != nil {
		return nil, err
	}
	found, err := join(ctx, want)
	if err != nil {
		holding.Close()
		return nil, err
	}
	return newCluster(found, holding), nil
}

func newCluster(s *site.Site, holding *site.Lock) *Cluster {
	c := &Cluster{namenodes{layout{s, make(map[string]*Host)}}, holding}
	for _, h := range s.Hosts {
		c.hosts[h.Name] = &Host{Host: h, cluster: c}
	}
	return c
}

// Close lets the cluster end once no other process uses it.
func (c *Cluster) Close() error { return c.holding.Close() }

// Host is the host of that name; to ask for one that does not exist is a bug.
func (c *layout) Host(name string) *Host {
	h := c.hosts[name]
	if h == nil {
		panic(fmt.Sprintf("cluster %s has no host %q", c.site.Name, name))
	}
	return h
}

// Hosts are all hosts, in the order of their addresses.
func (c *layout) Hosts() []*Host { return c.pick(c.site.Hosts) }

// DataNodes are the hosts that keep blocks.
func (c *layout) DataNodes() []*Host { return c.pick(c.site.With(site.DataNode)) }

// NameNodes are the hosts that know which; the first is active unless a test
// failed over.
func (c *layout) NameNodes() []*Host { return c.pick(c.site.With(site.NameNode)) }

func (c *layout) pick(of []site.Host) []*Host {
	var hosts []*Host
	for _, h := range of {
		hosts = append(hosts, c.hosts[h.Name])
	}
	return hosts
}

// Nameservice is the name of all namenodes together in a URL: hdfs://rankfs/path.
func (c *layout) Nameservice() string { return site.Nameservice }

// Addresses are those of the namenodes, HOST:PORT.
func (c *layout) Addresses() []string { return c.addresses(site.NameRPC) }

// WebAddresses are where the namenodes serve HTTP, HOST:PORT.
func (c *layout) WebAddresses() []string { return c.addresses(site.NameHTTP) }

func (c *layout) addresses(port int) []string {
	var all []string
	for _, h := range c.site.With(site.NameNode) {
		all = append(all, fmt.Sprintf("%s:%d", h.Name, port))
	}
	return all
}

// Conf is a folder for HADOOP_CONF_DIR, the same for all hosts.
func (c *layout) Conf() string { return c.site.Conf() }

// ConfByFile is such a folder of clients that take blocks of their host's
// datanode by file (short-circuit reads), which those of Conf take over TCP.
func (c *layout) ConfByFile() string { return c.site.ByFile() }

// Log is where a daemon writes what it does.
func (h *Host) Log(daemon string) string {
	return filepath.Join(h.cluster.site.HostDir(h.Name), "log", daemon)
}

// order has the keeper do something.
func (c *layout) order(o control.Order) (control.Answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	return control.Send(ctx, c.site.Control(), o)
}

// Pin has the cluster stay without users, until it is taken down.
func (c *Cluster) Pin() error { return os.WriteFile(c.site.Pinned(), nil, 0o644) }
