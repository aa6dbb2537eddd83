package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/terminal"
)

// minInterval keeps a slip of the pen from loading the daemon.
const minInterval = 10 * time.Millisecond

func (p *program) statsCommand() *cobra.Command {
	var once bool
	var interval time.Duration
	c := &cobra.Command{
		Use:   "stats",
		Short: "Watch how jobs are supplied, as top does processes",
		Long: `Watch the jobs that read on this node: how fast, how many of their opens found
the batch ready, how much of the ranks' time is waiting and what for; and how
full memory and disk are, and what comes from where. Of a cluster, each node
shows its own.

Figures are of the last ten seconds. On a terminal they are drawn over and over
until ^C; elsewhere each time is a few lines, or one JSON value.`,
		Args: wants(),
		RunE: func(c *cobra.Command, _ []string) error {
			if interval < minInterval {
				return usage(c, fmt.Errorf("interval %v is not a time from %v on", interval, minInterval))
			}
			d, err := p.daemon()
			if err != nil {
				return err
			}
			w := p.watch(d, interval)
			if once {
				return w.once(c.Context())
			}
			return w.follow(c.Context())
		},
	}
	p.mountFlag(c)
	c.Flags().DurationVar(&interval, "interval", time.Second, "look so often, as `TIME`")
	c.Flags().BoolVar(&once, "once", false, "look for one interval, and end")
	return c
}

// A loader says how jobs are supplied.
type loader interface {
	Load(ctx context.Context, r control.LoadRequest) (control.Load, error)
}

// A watch looks at a daemon again and again.
type watch struct {
	daemon   loader
	interval time.Duration
	history  history
	show     func(control.Load, rates) error
	picture  bool             // for a person
	screen   *terminal.Screen // nil: this is no terminal
	out      io.Writer
}

func (p *program) watch(d loader, interval time.Duration) *watch {
	w := &watch{daemon: d, interval: interval, out: p.out, picture: !p.json}
	if p.json {
		w.show = func(l control.Load, r rates) error { return p.print(sample{l, r}, nil) }
		return w
	}
	w.show = func(l control.Load, r rates) error { writeLines(p.out, l, r); return nil }
	w.screen = terminal.NewScreen(p.out)
	return w
}

// A sample is one look, for JSON.
type sample struct {
	control.Load
	Rates rates `json:"rates"`
}

func (w *watch) look(ctx context.Context) (control.Load, rates, error) {
	l, err := w.daemon.Load(ctx, control.LoadRequest{})
	if err != nil {
		return l, rates{}, err
	}
	w.history = w.history.add(l)
	return l, w.history.rates(), nil
}

// pause waits for an interval; false: the command is to end.
func (w *watch) pause(ctx context.Context) bool {
	timer := time.NewTimer(w.interval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// once shows one interval.
func (w *watch) once(ctx context.Context) error {
	if _, _, err := w.look(ctx); err != nil {
		return err
	}
	if !w.pause(ctx) {
		return ctx.Err()
	}
	l, r, err := w.look(ctx)
	if err != nil {
		return err
	}
	if w.picture {
		fmt.Fprintln(w.out, strings.Join(frame(l, r, math.MaxInt, math.MaxInt), "\n"))
		return nil
	}
	return w.show(l, r)
}

// follow shows each interval until the command is stopped, which is how it ends well.
func (w *watch) follow(ctx context.Context) error {
	if w.screen != nil {
		w.screen.Open()
		defer w.screen.Close()
		w.show = func(l control.Load, r rates) error {
			columns, rows := w.screen.Size()
			return w.screen.Draw(frame(l, r, columns, rows))
		}
	}
	for {
		l, r, err := w.look(ctx)
		if err == nil {
			err = w.show(l, r)
		}
		if ctx.Err() != nil || errors.Is(err, io.ErrClosedPipe) {
			return nil
		}
		if err != nil {
			return err
		}
		if !w.pause(ctx) {
			return nil
		}
	}
}
