package namenode

import "time"

// order is the order in which to try all ways: from the one that answered last on,
// and the ways of its kind before the others.
func (c *Client) order() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]int, 0, c.config.ways())
	rpc, web := len(c.config.Addresses), len(c.config.Web)
	first := c.mu.active
	if first >= rpc {
		all = turned(turned(all, rpc, web, first-rpc), 0, rpc, 0)
	} else {
		all = turned(turned(all, 0, rpc, first), rpc, web, 0)
	}
	return all
}

// turned appends the n indexes from base on, beginning at base+first.
func turned(to []int, base, n, first int) []int {
	for k := range n {
		to = append(to, base+(first+k)%n)
	}
	return to
}

// answered notes which way leads to the active namenode, if this call found that
// the one before does not; else that was found meanwhile, by another. tried is why
// other ways did not; nil notes it in any case.
func (c *Client) answered(way int, tried tries) {
	c.mu.Lock()
	was, rpc := c.mu.active, len(c.config.Addresses)
	if tried != nil && tried[was].err == nil {
		way = was
	}
	c.mu.active = way
	if was < rpc && way >= rpc {
		c.mu.sought = time.Now()
	}
	c.mu.Unlock()
	switch log := c.config.Log; {
	case was < rpc && way >= rpc:
		log.Warn("no namenode answers by RPC; WebHDFS is asked instead", "namenode", c.config.address(way), "cause", tried[:rpc].reasons())
	case was >= rpc && way < rpc:
		log.Info("a namenode answers by RPC again", "namenode", c.config.address(way))
	case was != way:
		log.Info("another namenode answers", "namenode", c.config.address(way), "before", c.config.address(was))
	}
}

// Web is the WebHDFS that answers in place of RPC, or empty.
func (c *Client) Web() string {
	if way := c.active(); way >= len(c.config.Addresses) {
		return c.config.address(way)
	}
	return ""
}

func (c *Client) active() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.active
}
