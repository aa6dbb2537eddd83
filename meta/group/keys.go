package group

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"rankfs/meta"
)

// The authority's key is for voters, any of which may lead and sign. The leader
// distributes it: it sends the key to a node before that gets its vote, and to a voter
// that has lost it; it gets it from another voter if it has none itself. A node that has
// lost its vote to another keeps the key: it was away, and may be needed when others
// are. It forgets the key when it is drained and votes no more, and when it is removed.

// entrust gives a node the authority's key.
func (g *Group) entrust(ctx context.Context, id string) error {
	if id == g.config.Self.ID {
		return nil
	}
	key, err := g.config.Authority.Export()
	if err != nil {
		return err
	}
	defer clear(key)
	ctx, cancel := context.WithTimeout(ctx, g.times.look)
	defer cancel()
	err = g.calls.ask(ctx, id, callEntrust, key, nil)
	if errors.Is(err, meta.ErrUnavailable) {
		return fmt.Errorf("give node %s the authority's key: %w", id, err)
	}
	return err
}

// shareKey gets the key to the voters that lack it, this node included, and has nodes
// that are drained and have no vote forget it, as far as they answer.
func (g *Group) shareKey(ctx context.Context) {
	own, now := g.config.Authority.CanSign(), time.Now()
	for id, s := range g.servers() {
		signs, known := g.seen.signs(id)
		switch {
		case id == g.config.Self.ID || !known || !g.live(id, now) || g.seen.isLost(id):
		case isVoter(s) && signs && !own:
			own = g.told("the authority's key is not here", id, g.fetchKey(ctx, id))
		case isVoter(s) && !signs && own:
			g.told("a voter has not got the authority's key", id, g.entrust(ctx, id))
		case !isVoter(s) && signs && own && g.drained(id):
			g.told("a node that is drained has the authority's key", id, g.dispossess(ctx, id))
		}
	}
}

func (g *Group) drained(id string) bool {
	n, _ := g.config.Machine.Node(id)
	return n.Drained
}

// told says what has gone wrong, once, and reports whether all went well.
func (g *Group) told(what, id string, err error) bool {
	switch {
	case err == nil:
		delete(g.said, what+id)
		return true
	case errors.Is(err, context.Canceled) || errors.Is(err, meta.ErrBusy): // over soon
	case err.Error() != g.said[what+id]:
		g.said[what+id] = err.Error()
		g.config.Log.Warn(what+" yet", "node", id, "cause", err)
	}
	return false
}

func (g *Group) fetchKey(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, g.times.look)
	defer cancel()
	var key []byte
	if err := g.calls.ask(ctx, id, callKey, struct{}{}, &key); err != nil {
		return err
	}
	return g.importKey(key)
}

func (g *Group) dispossess(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, g.times.look)
	defer cancel()
	return g.calls.ask(ctx, id, callForget, struct{}{}, nil)
}

// ofLeader refuses a request that only the leader may make: the node that Raft has
// elected.
func (g *Group) ofLeader(from string) error {
	switch g.Leader() {
	case from:
		return nil
	case "":
		return fmt.Errorf("this node %w: it does not know yet who leads", meta.ErrBusy)
	}
	return meta.Worded(meta.ErrDenied, "node %s is not allowed to handle the authority's key: it does not lead", from)
}

func (g *Group) serveEntrust(_ context.Context, from string, request json.RawMessage) (any, error) {
	if err := g.ofLeader(from); err != nil {
		return nil, err
	}
	key, err := decode[[]byte](request)
	clear(request)
	if err != nil {
		return nil, err
	}
	return struct{}{}, g.importKey(key)
}

// serveKey gives a leader the key that has none: its file was lost.
func (g *Group) serveKey(_ context.Context, from string, _ json.RawMessage) (any, error) {
	if err := g.ofLeader(from); err != nil {
		return nil, err
	}
	return g.config.Authority.Export()
}

// serveForget forgets the key, unless this node knows that it votes.
func (g *Group) serveForget(_ context.Context, from string, _ json.RawMessage) (any, error) {
	if err := g.ofLeader(from); err != nil {
		return nil, err
	}
	if isVoter(g.servers()[g.config.Self.ID]) {
		return nil, fmt.Errorf("this node %w: it votes, as far as it knows", meta.ErrBusy)
	}
	return struct{}{}, g.forget()
}

func isVoter(s raft.Server) bool { return s.ID != "" && s.Suffrage == raft.Voter }

func (g *Group) importKey(key []byte) error {
	g.vault <- struct{}{}
	defer func() { <-g.vault }()
	defer clear(key)
	return g.config.Authority.Import(key)
}

func (g *Group) forget() error {
	g.vault <- struct{}{}
	defer func() { <-g.vault }()
	if !g.config.Authority.CanSign() {
		return nil
	}
	g.config.Log.Info("this node is drained or removed, and forgets the authority's key")
	return g.config.Authority.Forget()
}
