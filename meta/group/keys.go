package group

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"rankfs/meta"
)

// keys see to it where the authority's key is. It is for voters, any of which may lead
// and sign. The leader distributes it: it sends the key to a node before that gets its
// vote, and to a voter that has lost it; it gets it from another voter if it has none
// itself. A node that has lost its vote to another keeps the key: it was away, and may be
// needed when others are. It forgets the key when it is drained and votes no more, and
// when it is removed.
//
// The lock changing is held while the key of this node changes, and with it a file: calls of
// two leaders may come at once. No other lock is taken meanwhile.
type keys struct {
	config   *Config
	seen     *liveness
	calls    *calls
	replica  *replica
	warnings *warnings
	changing sync.Mutex
}

// entrust gives a node the authority's key.
func (k *keys) entrust(ctx context.Context, id string) error {
	if id == k.config.Self.ID {
		return nil
	}
	key, err := k.config.Authority.Export()
	if err != nil {
		return err
	}
	defer clear(key)
	ctx, cancel := context.WithTimeout(ctx, k.config.times.look)
	defer cancel()
	err = k.calls.ask(ctx, id, callEntrust, key, nil)
	if errors.Is(err, meta.ErrUnavailable) {
		return fmt.Errorf("give node %s the authority's key: %w", id, err)
	}
	return err
}

// shareKey gets the key to the voters that lack it, this node included, and has nodes
// that are drained and have no vote forget it, as far as they answer.
func (k *keys) shareKey(ctx context.Context) {
	own := k.config.Authority.CanSign()
	for id, s := range k.replica.servers() {
		signs, known := k.seen.signs(id)
		switch {
		case id == k.config.Self.ID || !known || !k.seen.live(id) || k.seen.isLost(id):
		case isVoter(s) && signs && !own:
			own = k.warnings.told("the authority's key is not here", id, k.fetchKey(ctx, id))
		case isVoter(s) && !signs && own:
			k.warnings.told("a voter has not got the authority's key", id, k.entrust(ctx, id))
		case !isVoter(s) && signs && own && k.drained(id):
			k.warnings.told("a node that is drained has the authority's key", id, k.dispossess(ctx, id))
		}
	}
}

func (k *keys) drained(id string) bool {
	n, _ := k.config.Machine.Node(id)
	return n.Drained
}

func (k *keys) fetchKey(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, k.config.times.look)
	defer cancel()
	var key []byte
	if err := k.calls.ask(ctx, id, callKey, struct{}{}, &key); err != nil {
		return err
	}
	return k.importKey(key)
}

func (k *keys) dispossess(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, k.config.times.look)
	defer cancel()
	return k.calls.ask(ctx, id, callForget, struct{}{}, nil)
}

// ofLeader refuses a request that only the leader may make: the node that Raft has
// elected.
func (k *keys) ofLeader(from string) error {
	switch k.replica.Leader() {
	case from:
		return nil
	case "":
		return fmt.Errorf("this node %w: it does not know yet who leads", meta.ErrBusy)
	}
	return meta.Worded(meta.ErrDenied, "node %s is not allowed to handle the authority's key: it does not lead", from)
}

func (k *keys) serveEntrust(_ context.Context, from string, request json.RawMessage) (any, error) {
	if err := k.ofLeader(from); err != nil {
		return nil, err
	}
	key, err := decode[[]byte](request)
	clear(request)
	if err != nil {
		return nil, err
	}
	return struct{}{}, k.importKey(key)
}

// serveKey gives a leader the key that has none: its file was lost.
func (k *keys) serveKey(_ context.Context, from string, _ json.RawMessage) (any, error) {
	if err := k.ofLeader(from); err != nil {
		return nil, err
	}
	return k.config.Authority.Export()
}

// serveForget forgets the key, unless this node knows that it votes.
func (k *keys) serveForget(_ context.Context, from string, _ json.RawMessage) (any, error) {
	if err := k.ofLeader(from); err != nil {
		return nil, err
	}
	if isVoter(k.replica.servers()[k.config.Self.ID]) {
		return nil, fmt.Errorf("this node %w: it votes, as far as it knows", meta.ErrBusy)
	}
	return struct{}{}, k.forget()
}

func (k *keys) importKey(key []byte) error {
	k.changing.Lock()
	defer k.changing.Unlock()
	defer clear(key)
	return k.config.Authority.Import(key)
}

func (k *keys) forget() error {
	k.changing.Lock()
	defer k.changing.Unlock()
	if !k.config.Authority.CanSign() {
		return nil
	}
	k.config.Log.Info("this node is drained or removed, and forgets the authority's key")
	return k.config.Authority.Forget()
}
