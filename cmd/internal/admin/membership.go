package admin

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"rankfs/cmd/internal/control"
	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/pool"
)

// membership reports the nodes of the cluster, lets others in and takes them out.
type membership struct {
	addr     string // of this node, as others know it
	state    *state.Machine
	members  Members
	commands Commands
	tokens   Tokens
	rights   rights
	log      *slog.Logger
}

// Cluster lists the nodes, as this one knows them.
func (n *membership) Cluster() control.Cluster {
	s := n.members.Status()
	c := control.Cluster{
		ID: s.Cluster, Self: n.members.Self(), Leader: s.Leader, Removed: s.Removed, Term: s.Term, Applied: s.Applied,
		Plans: n.state.Summary().Plans,
		Nodes: []control.Member{},
	}
	silent := n.members.Silent()
	for _, m := range s.Members {
		state := "up"
		switch {
		case s.Removed && m.ID == c.Self:
			state = "removed"
		case m.ID != c.Self && (!m.Up || slices.Contains(silent, m.ID)): // this node answers
			state = "down"
		case m.Drained:
			state = "draining"
		}
		c.Nodes = append(c.Nodes, control.Member{
			ID: m.ID, Host: m.Host, Called: m.Called, Addr: m.Addr, State: state, Voter: m.Voter && state != "removed", Lag: m.Lag,
			Role: string(m.Role), Entered: time.Unix(0, m.Admitted).UTC(), Leaving: n.leaving(m.Node),
		})
	}
	return c
}

// leaving counts what a drained node has of the shuffle pool, and others have not.
func (n *membership) leaving(of state.Node) *control.Leaving {
	if !of.Drained {
		return nil
	}
	nodes := n.state.Nodes()
	maps, bytes, fits := pool.Leaving(n.state, nodes, of.ID)
	switch {
	case maps == 0:
		return nil
	case pool.Hosts(nodes) == 0:
		return &control.Leaving{Maps: maps, Bytes: bytes, Stuck: "no other node has a pool: mount one with --pool-ram"}
	case !fits:
		return &control.Leaving{Maps: maps, Bytes: bytes, Stuck: "no other node has room for any of it: give one a larger --pool-ram or --pool-nvme, or remove jobs"}
	}
	return &control.Leaving{Maps: maps, Bytes: bytes}
}

// Bounds of a token's life. A token lives as long as it takes to
// start nodes, not as long as they run.
const (
	tokenLife    = time.Hour
	maxTokenLife = 7 * 24 * time.Hour
)

// CreateToken makes a token.
func (n *membership) CreateToken(ctx context.Context, r control.TokenRequest) (control.Token, error) {
	life, uses := r.Life, r.Uses
	if life == 0 {
		life = tokenLife
	}
	if uses == 0 {
		uses = 1
	}
	if life < time.Second || life > maxTokenLife {
		return control.Token{}, fmt.Errorf("life of %s of a token %w: use up to %s", meta.FormatTime(life), meta.ErrInvalid, meta.FormatTime(maxTokenLife))
	}
	role := cmp.Or(state.Role(r.Role), state.Member)
	if role != state.Member && role != state.Operator {
		return control.Token{}, fmt.Errorf("role %q of a token %w: use %s or %s", r.Role, meta.ErrInvalid, state.Member, state.Operator)
	}
	t, err := n.tokens.MakeToken(ctx, life, uses, role)
	if err != nil {
		return control.Token{}, err
	}
	hash := t.Hash()
	return control.Token{
		Token: t.Reveal(), ID: tokenID(hex.EncodeToString(hash[:])), Role: string(role),
		Expires: time.Now().Add(life).UTC(), Uses: uses, Join: n.addr,
	}, nil
}

// tokenID is the name of a token, of which the cluster keeps only the hash.
func tokenID(hash string) string { return hash[:12] }

// Tokens lists the tokens that still let nodes in.
func (n *membership) Tokens() []control.TokenInfo {
	all := []control.TokenInfo{}
	for _, t := range n.state.Tokens() {
		all = append(all, control.TokenInfo{
			ID: tokenID(t.Hash), Role: string(t.Role), Uses: t.Uses, Used: t.Used,
			Host: n.state.HostOf(t.By), Expires: time.Unix(0, t.Expires).UTC(),
		})
	}
	slices.SortFunc(all, func(a, b control.TokenInfo) int { return a.Expires.Compare(b.Expires) })
	return all
}

// DropToken has a token let no more nodes in. It is named by its id, or by the
// beginning of that.
func (n *membership) DropToken(ctx context.Context, id string) error {
	if err := n.tokens.Ready(ctx); err != nil {
		return err
	}
	var found []string
	for _, t := range n.state.Tokens() {
		if id != "" && strings.HasPrefix(t.Hash, id) {
			found = append(found, t.Hash)
		}
	}
	switch len(found) {
	case 0:
		return n.rights.orDenied(&state.DropToken{}, meta.Worded(meta.ErrNotExist, "token %q does not exist, or is used up, or has expired; see: rankfs token ls", id))
	case 1:
		return n.tokens.DropToken(ctx, found[0])
	}
	return fmt.Errorf("token %q %w: %d begin so; name more of it; see: rankfs token ls", id, meta.ErrInvalid, len(found))
}

// DrainNode says whether a node gets new work.
func (n *membership) DrainNode(ctx context.Context, r control.DrainRequest) error {
	id, err := findNode(n.state, r.Node)
	if err != nil {
		return n.rights.orDenied(&state.Drain{}, err)
	}
	_, err = n.commands.Do(ctx, &state.Drain{ID: id, Drained: r.Drain})
	return err
}

// RemoveNode takes a node out of the cluster for good.
func (n *membership) RemoveNode(ctx context.Context, name string) error {
	id, err := findNode(n.state, name)
	if err != nil {
		return n.rights.orDenied(&state.Remove{}, err)
	}
	if id == n.members.Self() {
		return n.rights.orDenied(&state.Remove{ID: id}, meta.Worded(meta.ErrDenied, "node %s is not allowed to remove itself: %s", id, n.whoMayRemove(id)))
	}
	_, err = n.commands.Do(ctx, &state.Remove{ID: id})
	return err
}

// whoMayRemove says how a node is removed that cannot do that itself.
func (n *membership) whoMayRemove(id string) string {
	all := n.state.Nodes()
	for _, other := range all {
		if other.ID != id && other.Up && other.Role != state.Member {
			return fmt.Sprintf("do it on another operator, as %s (%s)", other.Host, other.ID)
		}
	}
	if len(all) == 1 {
		return "it is the only node of its cluster, so unmount it"
	}
	return "no other operator is up; start one, or make one, and do it there: rankfs node promote NODE"
}

// PromoteNode makes a node an operator, if this node is one. Otherwise it notes that its
// root wants it so, and it is so when most of the voters have said it.
func (n *membership) PromoteNode(ctx context.Context, name string) (control.Promotion, error) {
	id, err := findNode(n.state, name)
	if err != nil {
		return control.Promotion{}, n.rights.orDenied(&state.Promote{Voters: state.Voters{Voters: n.voters()}}, err)
	}
	if n.state.Version() < state.Signed {
		return control.Promotion{}, meta.Worded(meta.ErrInvalid, "node %s cannot be made an operator before all nodes are of this release: until then every node may do what operators may", id)
	}
	if _, err := n.commands.Do(ctx, &state.Promote{ID: id}); err != nil {
		return control.Promotion{}, err
	}
	p := n.promotion(id)
	n.log.Info("it was said here that a node is to be an operator", "node", id, "host", p.Host, "role", p.Role, "said on", p.Said)
	return p, nil
}

// promotion says how far it is that a node becomes an operator.
func (n *membership) promotion(id string) control.Promotion {
	node, _ := n.state.Node(id)
	p := control.Promotion{ID: id, Host: node.Host, Role: string(node.Role)}
	if node.Role == state.Operator {
		return p
	}
	voters := n.voters()
	said := n.state.Wishing(id, voters)
	for _, v := range voters {
		if slices.Contains(said, v) {
			p.Said = append(p.Said, n.state.HostOf(v))
		} else {
			p.Silent = append(p.Silent, n.state.HostOf(v))
		}
	}
	p.Needed = len(voters)/2 + 1
	return p
}

// voters are the nodes that vote now.
func (n *membership) voters() (ids []string) {
	for _, m := range n.members.Status().Members {
		if m.Voter {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// leaderless says what works while no node leads, and which nodes do not answer.
func (n *membership) leaderless() string {
	text := "the cluster has no leader: what is planned is served, but nothing new can be registered or planned until a majority of its voters is up"
	if missing := n.members.Missing(); len(missing) > 0 {
		text += "; not answering: " + strings.Join(missing, ", ")
	}
	return text
}

// nodes are those of the cluster, by whatever they are called.
type nodes interface {
	Nodes() []state.Node
	Node(id string) (state.Node, bool)
	OnHost(name string) []state.Node
}

// findNode is the id of the node with this name: its id, or its host if that has only
// one node, by whatever name of it.
func findNode(m nodes, name string) (id string, err error) {
	var byHost meta.Hosts[string]
	for _, n := range m.Nodes() {
		if n.ID == name {
			return n.ID, nil
		}
		byHost.Add(n.Host, n.ID)
	}
	found := byHost.Find(name)
	if len(found) == 0 {
		for _, n := range m.OnHost(name) {
			found = append(found, n.ID)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("node %q %w; see: rankfs node ls", name, meta.ErrNotExist)
	case 1:
		return found[0], nil
	default:
		return "", fmt.Errorf("node %q %w: host %s has several; name one by its id", name, meta.ErrInvalid, name)
	}
}
