package namenode

import "time"

// There are two ways to a namenode: RPC at each of Config.Addresses, and
// WebHDFS at each of Config.Web. A way is an index into the ones and then the
// others.

func (c *Client) ways() int { return len(c.config.Addresses) + len(c.config.Web) }

func (c *Client) address(way int) string {
	if n := len(c.config.Addresses); way >= n {
		return c.config.Web[way-n]
	}
	return c.config.Addresses[way]
}

// order is the order in which to try all ways: from the one that answered last on,
// and the ways of its kind before the others.
func (c *Client) order() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]int, 0, c.ways())
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
func (c *Client) answered(way int, tried attempts) {
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
		log.Warn("no namenode answers by RPC; WebHDFS is asked instead", "namenode", c.address(way), "cause", tried[:rpc].reasons())
	case was >= rpc && way < rpc:
		log.Info("a namenode answers by RPC again", "namenode", c.address(way))
	case was != way:
		log.Info("another namenode answers", "namenode", c.address(way), "before", c.address(was))
	}
}

// Web is the WebHDFS that answers in place of RPC, or empty.
func (c *Client) Web() string {
	if way := c.active(); way >= len(c.config.Addresses) {
		return c.address(way)
	}
	return ""
}

func (c *Client) active() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.active
}

// share is the part of a call's time that one way may take.
func (c *Client) share() time.Duration { return c.config.Timeout / time.Duration(c.ways()) }
