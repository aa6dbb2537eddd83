package main

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"rankfs/cmd/internal/node"
)

// A program is the command as it was called: where it writes, what it stands on,
// and the flags that all its subcommands share.
type program struct {
	out, err io.Writer
	now      func() time.Time
	serve    func(ctx context.Context, c node.Config, ready func()) error
	cores    int // of this machine
	json     bool

	finder
}

// print writes v as JSON if that was asked for, and as text otherwise.
func (p *program) print(v any, text func(io.Writer)) error {
	if !p.json {
		text(p.out)
		return nil
	}
	e := json.NewEncoder(p.out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
