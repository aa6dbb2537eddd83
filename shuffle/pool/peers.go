package pool

import (
	"context"

	"rankfs/meta"
	"rankfs/meta/wire"
	"rankfs/shuffle/packing"
	"rankfs/shuffle/turns"
)

// The peers are the other nodes, as this one asks them.
type peers struct {
	*agreed
	pulls, pushes *turns.Exchanges
	packing       *packing.Presses
}

func newPeers(a *agreed) peers {
	return peers{a, turns.NewExchanges(), turns.NewExchanges(), packing.New()}
}

// push gives a node what a feed has for a job, while it is up, in the way that the request says.
func (p peers) push(ctx context.Context, node string, by turns.Party, q wire.Request, is packing.Pushed, feed wire.Feed) error {
	q.Bytes = is.Plain
	return p.exchange(ctx, p.pushes, node, by, q, is.Packed, func(ctx context.Context) error {
		if is.Packed != meta.Uncompressed {
			q.Bytes = 0 // it is not known
		}
		_, err := p.config.Wire.Push(ctx, node, q, func(ctx context.Context, emit func([]byte) error) error {
			return p.packing.Pack(is.Packed, is.Plain, emit, func(emit func([]byte) error) error { return feed(ctx, emit) })
		})
		return err
	})
}

// pull has a node write what is asked for, for a job, into parts of memory, while it is up. It
// comes packed if the request says so.
func (p peers) pull(ctx context.Context, node string, by turns.Party, q wire.Request, packed meta.Compression, parts ...[]byte) error {
	return p.exchange(ctx, p.pulls, node, by, q, packed, func(ctx context.Context) error {
		to, end, err := p.packing.Sink(packed, q.Bytes, parts)
		if err != nil {
			return err
		}
		defer end()
		return p.config.Wire.Pull(ctx, node, q, to)
	})
}

// exchange does one with a node when it is the turn of that job, and where something is packed its
// turn for that.
func (p peers) exchange(ctx context.Context, in *turns.Exchanges, node string, by turns.Party, q wire.Request, packed meta.Compression, do func(context.Context) error) error {
	return p.config.Wire.WhileUp(ctx, node, func(ctx context.Context) error {
		return in.InTurn(ctx, node, by, q, func() error {
			if packed == meta.Uncompressed {
				return do(ctx)
			}
			give, err := p.packing.Turn(ctx, by, int64(q.Bytes))
			if err != nil {
				return err
			}
			defer give()
			return do(ctx)
		})
	})
}
