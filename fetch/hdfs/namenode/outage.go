package namenode

// Outage is why no namenode answers, nil if one does as far as is known.
func (c *Client) Outage() error { return c.outage.cause() }

// NoTicket is why there was no Kerberos ticket when one was last needed, nil if there was, or
// none is.
func (c *Client) NoTicket() error {
	if c.user.tickets == nil {
		return nil
	}
	return c.user.tickets.none.cause()
}

// everywhere reports whether a method can be asked in every way, so that it says
// something of all of them that none answers.
func (c *Client) everywhere(method string) bool {
	return len(c.webs) == 0 || webCalls[method] != nil
}
