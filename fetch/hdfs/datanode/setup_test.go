package datanode_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"rankfs/fetch/hdfs/datanode"
	"rankfs/fetch/hdfs/namenode"
	"rankfs/test/cluster"
	"rankfs/test/eventually"
)

// A bench is a client, and which datanodes it has connected to.
type bench struct {
	*datanode.Client
	t      testing.TB
	names  *namenode.Client
	config datanode.Config

	mu     sync.Mutex
	dialed []string // hosts, in order
}

// newBench reaches the cluster. Its client gives up a silent datanode after a
// second and asks it last for two.
func newBench(t testing.TB, c *cluster.Cluster) *bench {
	t.Helper()
	conf, err := namenode.FromConf(c.Conf(), c.Nameservice())
	if err != nil {
		t.Fatal(err)
	}
	conf.User = "root"
	b := &bench{t: t}
	if b.names, err = namenode.New(conf); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.names.Close() })
	hosts := make(map[string]string)
	for _, h := range c.Hosts() {
		hosts[h.IP] = h.Name
	}
	b.config = datanode.Config{
		User: "root", Timeout: 10 * time.Second, BackOff: 20 * time.Second, // more than what follows a failure takes
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			ip, _, _ := net.SplitHostPort(addr)
			b.mu.Lock()
			b.dialed = append(b.dialed, hosts[ip])
			b.mu.Unlock()
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
	}
	b.Client = datanode.New(b.config)
	return b
}

// with makes the client one of another configuration.
func (b *bench) with(change func(*datanode.Config)) {
	change(&b.config)
	b.Client = datanode.New(b.config)
}

// hosts returns whom the client has connected to since it was last asked.
func (b *bench) hosts() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer func() { b.dialed = nil }()
	return b.dialed
}

// block is the only block of a file, as soon as the namenode has heard of n
// replicas.
func (b *bench) block(name string, n int) namenode.Block {
	b.t.Helper()
	var blocks []namenode.Block
	eventually.Within(b.t, 2*time.Minute, fmt.Sprintf("%s is one block on %d datanodes", name, n), func() bool {
		located, err := b.names.Locate(b.t.Context(), name, 0, 1<<40)
		if err != nil {
			b.t.Fatal(err)
		}
		blocks = located.Blocks
		return len(blocks) == 1 && len(blocks[0].Replicas) == n
	})
	return blocks[0]
}

func random(n int) []byte {
	content := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(n), byte(n >> 8)})
	r.Read(content)
	return content
}

// patient is how long a read may take that passes over some datanodes.
func patient(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
