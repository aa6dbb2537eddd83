package group

import (
	"context"
	"encoding/json"

	"rankfs/meta/state"
)

// callSpeak has a test's leader execute a command for a sender of the test's
// choice, as it does for those who have shown that they are who they say.
const callSpeak = "/test/speak"

type spoken struct {
	By   state.Sender
	Data []byte
}

// speaker answers that call for a node that is being opened, and with others' answers if these
// are spoiled.
func (n *node) speaker() map[string]Handler {
	all := map[string]Handler{callSpeak: func(ctx context.Context, _ string, request json.RawMessage) (any, error) {
		g := n.opened.Load()
		if g == nil || !g.Leads() {
			return nil, errNoLeader
		}
		s, err := decode[spoken](request)
		if err != nil {
			return nil, err
		}
		c, err := g.config.Machine.Decode(s.Data)
		if err != nil {
			return nil, err
		}
		return g.executor.apply(ctx, s.By, c)
	}}
	if n.spoils != nil {
		all[callApply] = func(ctx context.Context, from string, request json.RawMessage) (any, error) {
			g := n.opened.Load()
			if g == nil {
				return nil, errNoLeader
			}
			a, err := g.commands.serveApply(ctx, from, request)
			if err != nil {
				return nil, err
			}
			return n.spoils(a.(applied)), nil
		}
	}
	return all
}

// speak has the leader execute a command as if a node had sent it, once.
func (g *Group) speak(ctx context.Context, node string, c state.Command) (a applied, err error) {
	return g.spoken(ctx, state.Sender{Node: node}, c, g.askOnce)
}

// command is Do for what only the leader does.
func (g *Group) command(ctx context.Context, c state.Command) (state.Result, error) {
	a, err := g.spoken(ctx, g.config.itself(), c, g.AskLeader)
	if err == nil {
		err = g.fsm.follow(ctx, a.Index)
	}
	return a.Result, err
}

func (g *Group) spoken(ctx context.Context, by state.Sender, c state.Command, ask func(context.Context, string, any, any) error) (a applied, err error) {
	g.config.sign(by, c)
	data, err := state.Encode(c)
	if err != nil {
		return a, g.early(err)
	}
	err = ask(ctx, callSpeak, spoken{by, data}, &a)
	return a, err
}

// forNode is Do for a command that another node sends.
func (g *Group) forNode(ctx context.Context, node string, c state.Command) (state.Result, error) {
	a, err := g.spoken(ctx, state.Sender{Node: node}, c, g.AskLeader)
	if err == nil {
		err = g.fsm.follow(ctx, a.Index)
	}
	return a.Result, err
}
