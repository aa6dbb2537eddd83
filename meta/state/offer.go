package state

import "rankfs/meta"

// OfferPool says what a node has for the shuffle pool, and whether it takes copies of
// others' maps for now. Until a node has said so it is given none.
type OfferPool struct {
	Entry
	ID    string
	Bytes int64 `json:",omitempty"` // zero: nothing of the pool is kept there
	Full  bool  `json:",omitempty"`
}

func (c *OfferPool) about(*state) string { return c.ID }

func (c *OfferPool) check() error { return first(checkID(c.ID), must(c.Bytes >= 0, meta.ErrInvalid)) }

func (c *OfferPool) apply(s *state) (Result, error) {
	return s.nodes().change(s, c.ID, func(n *Node) { n.Pool, n.PoolFull = c.Bytes, c.Full })
}
