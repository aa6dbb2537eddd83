package hdfs

import (
	"bytes"
	"context"
	"net"
	"sync"
	"sync/atomic"

	"rankfs/fetch/hdfs/namenode"
)

// CountLocates counts how often a cluster's namenode is asked where a file's
// blocks are, from now on.
func (c *Clusters) CountLocates(authority string) (*atomic.Int64, error) {
	k, err := c.cluster(authority)
	if err != nil {
		return nil, err
	}
	n, ask := new(atomic.Int64), k.locate
	k.locate = func(ctx context.Context, path string, off, size int64) (*namenode.Blocks, error) {
		n.Add(1)
		return ask(ctx, path, off, size)
	}
	return n, nil
}

// Calls are those that were put to a namenode without Kerberos, whose packets can be read.
type Calls struct {
	mu   sync.Mutex
	sent []byte
}

// CountCalls counts the calls to a cluster's namenodes from now on.
func (c *Clusters) CountCalls(authority string) (*Calls, error) {
	k, err := c.cluster(authority)
	if err != nil {
		return nil, err
	}
	conf, err := namenode.FromConf(c.config.Conf, authority)
	if err == nil {
		err = c.identify(&conf)
	}
	if err != nil {
		return nil, err
	}
	calls := &Calls{}
	conf.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, network, addr)
		return callsConn{nc, calls}, err
	}
	was := k.names
	if k.names, err = namenode.New(conf); err != nil {
		return nil, err
	}
	k.locate = k.names.Locate
	return calls, was.Close()
}

// Of counts the calls of a method.
func (c *Calls) Of(method string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Count(c.sent, []byte("\x0a"+string(rune(len(method)))+method)) // the first field of a call's header
}

type callsConn struct {
	net.Conn
	calls *Calls
}

func (c callsConn) Write(b []byte) (int, error) {
	c.calls.mu.Lock()
	c.calls.sent = append(c.calls.sent, b...)
	c.calls.mu.Unlock()
	return c.Conn.Write(b)
}

// Places are where blocks are, as the namenode has said.
type Places struct{ places }

func (p *Places) Put(path string, blocks ...namenode.Block)                 { p.put(path, blocks) }
func (p *Places) Find(path string, at int64) (b namenode.Block, known bool) { return p.find(path, at) }

// MaxPlaces are as many as are remembered.
const MaxPlaces = maxPlaces

// Refuse says why a file of that status is not served, if it is not.
func Refuse(path string, st namenode.Status) error { return file{path, st}.refuse() }

// Racks are those of the hosts of blocks.
func Racks(blocks ...namenode.Block) map[string]string {
	l := &listing{racks: make(map[string]string)}
	for _, b := range blocks {
		l.place(b)
	}
	return l.racks
}

func Before(name string) string { return before(name) }
func Listed(a, b string) int    { return listed(a, b) }
