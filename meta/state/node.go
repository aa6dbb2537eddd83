package state

import (
	"fmt"
	"strings"

	"rankfs/meta"
)

// nodes are those of the cluster, and those that were.
type nodes struct {
	table[string, Node]
	removed table[string, string] // hosts
}

func (s *state) nodes() *nodes { return part[*nodes](s) }

func (*nodes) commands() []command {
	return []command{
		{kind: 4, blank: blank[Admit], by: leaders},
		{kind: 5, blank: blank[Move], by: owns},
		{kind: 6, blank: blank[Drain], by: operators},
		{kind: 7, blank: blank[Remove], by: operators},
		{kind: 8, blank: blank[Health], by: owns},
		{kind: 9, blank: blank[Begin], by: owns},
	}
}

func (t *nodes) share() section { return &nodes{t.table.share(), t.removed.share()} }

func (t *nodes) over() bool { return t.len() > MaxNodes || t.removed.len() > MaxRemoved }

func (t *nodes) write(f *frameWriter) {
	for _, n := range sorted(&t.table) {
		f.json('n', n)
	}
	for id, host := range sorted(&t.removed) {
		f.frame('r', []byte(id+" "+host))
	}
}

func (*nodes) restore(in *restorer) frames { return frames{'n': each(in.node), 'r': in.removed} }

func (in *restorer) node(n Node) error {
	role := n.Role
	n.Role = ""
	if err := first(n.check(), checkRole(role, in.s.version()), in.newID(n.ID)); err != nil {
		return err
	}
	n.Role = role
	in.s.nodes().set(n.ID, n)
	return nil
}

func (in *restorer) removed(payload []byte) error {
	id, host, _ := strings.Cut(string(payload), " ")
	if err := first(checkID(id), checkText("host", host, maxText), in.newID(id), must(in.s.nodes().len() > 0, errWrong)); err != nil {
		return err
	}
	in.s.nodes().removed.set(id, host)
	return nil
}

func (in *restorer) newID(id string) error {
	_, member := in.s.nodes().get(id)
	_, removed := in.s.nodes().removed.get(id)
	return must(!member && !removed, errTwice)
}

// A Node is one daemon that belongs to the cluster.
type Node struct {
	ID   string
	Host string // as HDFS knows it
	Addr string // HOST:PORT
	Key  string // fingerprint of its public key

	// Set by the machine; what a command says is ignored.
	Up       bool   `json:",omitempty"` // as far as the leader has seen
	Drained  bool   `json:",omitempty"` // gets no new work
	Admitted int64  `json:",omitempty"` // time of the cluster
	Life     uint64 `json:",omitempty"` // of its daemon, as that drew it; zero before the first Begin
	Role     Role   `json:",omitempty"` // none before version 4 of commands
}

func (n *Node) check() error {
	if n.Role != "" {
		return fmt.Errorf("role of node %s %w: its token says it", shorten(n.ID), meta.ErrInvalid)
	}
	return first(
		checkID(n.ID),
		checkText("host", n.Host, maxText),
		checkText("address", n.Addr, maxText),
		checkText("fingerprint", n.Key, maxText))
}

// Admit enters a node, and redeems the token that lets it in. The first node
// of a cluster needs none. A node that is in already, with the same key, is
// told so and uses up nothing.
type Admit struct {
	Entry
	TokenHash string `json:",omitempty"`
	Node      Node
	Speaks    int `json:",omitempty"` // the newest version of commands that it understands
}

func (c *Admit) version() int {
	if c.Speaks != 0 {
		return max(Signed, c.Entry.version())
	}
	return c.Entry.version()
}

func (c *Admit) check() error {
	if c.TokenHash != "" {
		if err := checkTokenHash(c.TokenHash); err != nil {
			return err
		}
	}
	return c.Node.check()
}

func (c *Admit) apply(s *state) (Result, error) {
	n, ok := s.nodes().get(c.Node.ID)
	if ok {
		if n.Key != c.Node.Key {
			return Result{}, meta.Worded(meta.ErrExist, "node %s exists already with another key: join with a new state directory", n.ID)
		}
		return Result{Node: &n}, nil
	}
	role, err := s.mayEnter(c)
	if err != nil {
		return Result{}, fmt.Errorf("admit node %s: %w", c.Node.ID, err)
	}
	n = c.Node
	n.Up, n.Drained, n.Admitted, n.Life, n.Role = true, false, s.Now, 0, role
	s.setNode(n)
	return Result{Node: &n}, nil
}

// mayEnter says in which role a node enters, and redeems its token.
func (s *state) mayEnter(c *Admit) (Role, error) {
	_, removed := s.nodes().removed.get(c.Node.ID)
	switch {
	case s.Cluster == Cluster{}:
		return "", fmt.Errorf("%w: no cluster was founded; mount without --join to found one", meta.ErrDenied)
	case removed:
		return "", fmt.Errorf("%w: it was removed; join with a new state directory", meta.ErrDenied)
	case s.nodes().len() >= MaxNodes:
		return "", fmt.Errorf("%w: the cluster has %d nodes; remove one first", meta.ErrBusy, MaxNodes)
	case s.nodes().len()+s.nodes().removed.len() >= MaxRemoved:
		return "", fmt.Errorf("%w: the cluster has had %d nodes; found another", meta.ErrBusy, MaxRemoved)
	case s.version() >= Signed && c.Speaks < s.version():
		return "", fmt.Errorf("%w: its rankfs is older than the cluster's: install the release that the other nodes have", meta.ErrDenied)
	case s.nodes().len() == 0 && s.version() >= Signed:
		return Operator, nil
	case s.nodes().len() == 0:
		return "", nil
	}
	return s.redeem(c.TokenHash)
}

func (s *state) setNode(n Node) {
	s.nodes().set(n.ID, n)
	s.changed.cluster = true
}

// member is a node of the cluster.
func (s *state) member(id string) (Node, error) {
	if n, ok := s.nodes().get(id); ok {
		return n, nil
	}
	if _, ok := s.nodes().removed.get(id); ok {
		return Node{}, fmt.Errorf("node %s %w: it was removed from the cluster", id, meta.ErrDenied)
	}
	return Node{}, meta.Worded(meta.ErrNotExist, "node %s does not exist in this cluster", id)
}

// change replaces a node by what f makes of it.
func (s *state) change(id string, f func(*Node)) (Result, error) {
	n, err := s.member(id)
	if err != nil {
		return Result{}, err
	}
	old := n
	if f(&n); n != old {
		s.setNode(n)
	}
	return Result{}, nil
}

// Move says that a node is reached elsewhere. Its host stays the same: plans go
// by it.
type Move struct {
	Entry
	ID, Addr string
}

func (c *Move) about(*state) string { return c.ID }

func (c *Move) check() error {
	return first(checkID(c.ID), checkText("address", c.Addr, maxText))
}

func (c *Move) apply(s *state) (Result, error) {
	return s.change(c.ID, func(n *Node) { n.Addr = c.Addr })
}

// Drain says whether a node gets new work.
type Drain struct {
	Entry
	ID      string
	Drained bool
	Voters
}

func (c *Drain) version() int { return c.since(c.Entry.version()) }

func (c *Drain) check() error { return first(checkID(c.ID), c.Voters.check()) }

func (c *Drain) leaves() string { return c.ID }

func (c *Drain) apply(s *state) (Result, error) {
	if err := s.letsGo(c); err != nil {
		return Result{}, err
	}
	return s.change(c.ID, func(n *Node) { n.Drained = c.Drained })
}

// Health is what the leader saw of a node in one of its lives; of a life that is
// over it says nothing. What a node that is down held of queues is for others to
// take.
type Health struct {
	Entry
	ID   string
	Life uint64 `json:",omitempty"`
	Up   bool
}

func (c *Health) about(*state) string { return c.ID }

func (c *Health) check() error { return checkID(c.ID) }

func (c *Health) apply(s *state) (Result, error) {
	n, err := s.member(c.ID)
	if err != nil || n.Life != c.Life {
		return Result{}, err
	}
	if !c.Up {
		s.returnLeases(c.ID, Down)
	}
	return s.change(c.ID, func(n *Node) { n.Up = c.Up })
}

// Begin says that a node's daemon was started: it is up, it is reached at Addr,
// and of what it held of queues before it has nothing. Life is a number that the
// daemon has drawn. Sent again, it says where the node is and nothing else.
type Begin struct {
	Entry
	ID, Addr string
	Life     uint64
}

func (c *Begin) about(*state) string { return c.ID }

func (c *Begin) check() error {
	if c.Life == 0 {
		return fmt.Errorf("life 0 of node %s %w", shorten(c.ID), meta.ErrInvalid)
	}
	return first(checkID(c.ID), checkText("address", c.Addr, maxText))
}

func (c *Begin) apply(s *state) (Result, error) {
	n, err := s.member(c.ID)
	if err != nil {
		return Result{}, err
	}
	again := n.Life == c.Life
	if !again {
		s.returnLeases(c.ID, Down)
	}
	return s.change(c.ID, func(n *Node) {
		n.Addr, n.Life, n.Up = c.Addr, c.Life, n.Up || !again
	})
}

// Remove takes a node out of the cluster for ever. Its claims stay, and its host
// is remembered, so that plans that name it stay what they are; the last node
// cannot be removed.
type Remove struct {
	Entry
	ID string
	Voters
}

func (c *Remove) version() int { return c.since(c.Entry.version()) }

func (c *Remove) check() error { return first(checkID(c.ID), c.Voters.check()) }

func (c *Remove) leaves() string { return c.ID }

func (c *Remove) apply(s *state) (Result, error) {
	if _, ok := s.nodes().removed.get(c.ID); ok {
		return Result{}, nil
	}
	n, err := s.member(c.ID)
	if err != nil {
		return Result{}, err
	}
	if s.nodes().len() == 1 {
		return Result{}, meta.Worded(meta.ErrBusy, "node %s is busy now: it is the last of the cluster", c.ID)
	}
	if err := first(s.spares(n), s.letsGo(c)); err != nil {
		return Result{}, err
	}
	s.nodes().drop(c.ID)
	s.nodes().removed.set(c.ID, n.Host)
	s.returnLeases(c.ID, Removal)
	s.changed.cluster = true
	return Result{}, nil
}
