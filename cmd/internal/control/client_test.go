package control_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rankfs/cmd/internal/control"
	"rankfs/meta"
)

// A daemon that has taken a change of the cluster on may wait for an election;
// one that never comes back from that does not hang its clients.
func TestChangesOfTheClusterTakeTheirTime(t *testing.T) {
	for name, do := range map[string]func(context.Context, *control.Client) error{
		"token": func(ctx context.Context, c *control.Client) error {
			_, err := c.CreateToken(ctx, control.TokenRequest{})
			return err
		},
		"drain":  func(ctx context.Context, c *control.Client) error { return c.DrainNode(ctx, control.DrainRequest{}) },
		"remove": func(ctx context.Context, c *control.Client) error { return c.RemoveNode(ctx, "x") },
		"plan": func(ctx context.Context, c *control.Client) error {
			_, err := c.Plan(ctx, control.PlanRequest{})
			return err
		},
		"reset": func(ctx context.Context, c *control.Client) error {
			_, err := c.ResetQueue(ctx, control.ResetRequest{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const answer = 2 * time.Second // by then the answer has begun, on a busy machine too
			n := &fake{work: func(ctx context.Context, _ func(control.Progress)) error {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(2 * answer):
					return fmt.Errorf("no leader: %w", meta.ErrUnavailable)
				}
			}}
			c := control.Dial(start(t, n))
			c.SetAnswer(answer)
			if err := do(t.Context(), c); !errors.Is(err, meta.ErrUnavailable) {
				t.Errorf("got %v, want the daemon's own answer", err)
			}
		})
	}
}

func TestChangeThatNeverEnds(t *testing.T) {
	begun, ended := make(chan bool, 100), make(chan bool, 100)
	n := &fake{work: func(ctx context.Context, _ func(control.Progress)) error {
		begun <- true
		<-ctx.Done()
		ended <- true
		return ctx.Err()
	}}
	c := control.Dial(start(t, n))
	// On a busy machine a daemon may not even have heard of what was given up so soon.
	for wait := 10 * time.Millisecond; len(begun) == 0; wait *= 2 {
		c.SetChange(wait)
		if err := c.RemoveNode(t.Context(), "x"); !errors.Is(err, control.ErrNoAnswer) {
			t.Fatalf("got %v", err)
		}
	}
	<-ended
}

func TestErrorsKeepTheirWordsAndKind(t *testing.T) {
	kinds := []error{meta.ErrNotExist, meta.ErrExist, meta.ErrInvalid, meta.ErrStale,
		meta.ErrCorrupt, meta.ErrNoSpace, meta.ErrBusy, meta.ErrUnavailable, meta.ErrDenied, context.Canceled}
	n := &fake{}
	c := control.Dial(start(t, n))
	for _, kind := range kinds {
		n.fail = fmt.Errorf("open x: %w", kind)
		_, err := c.Create(t.Context(), control.CreateRequest{}, func(control.Progress) {})
		if err == nil || err.Error() != n.fail.Error() {
			t.Errorf("%v: got %v", n.fail, err)
		}
		for _, other := range kinds {
			if errors.Is(err, other) != (other == kind) {
				t.Errorf("errors.Is(%v, %v) = %v", err, other, !errors.Is(err, other))
			}
		}
		if err := c.DrainNode(t.Context(), control.DrainRequest{}); !errors.Is(err, kind) || err.Error() != n.fail.Error() {
			t.Errorf("of a node: got %v, want %v", err, n.fail)
		}
	}
	n.fail = errors.New("something else")
	if err := c.Remove(t.Context(), "x"); err == nil || err.Error() != "something else" {
		t.Errorf("got %v", err)
	}
}

// answerWith serves each connection with fixed bytes.
func answerWith(t *testing.T, answer string) string {
	return startWith(t, func(ctx context.Context, l net.Listener) error {
		stop := context.AfterFunc(ctx, func() { l.Close() })
		defer stop()
		for {
			c, err := l.Accept()
			if err != nil {
				return nil
			}
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = io.WriteString(c, answer)
			}
			c.Close()
		}
	})
}

func TestClientOfOddDaemons(t *testing.T) {
	tests := []struct{ name, answer, want string }{
		{"gone at once", "", "went away"},
		{"cut short", "HTTP/1.1 200 OK\r\n\r\n{\"progress\":{}}\n", "went away"},
		{"cut in a line", "HTTP/1.1 200 OK\r\n\r\n{\"progress\":{", "went away"},
		{"no JSON", "HTTP/1.1 200 OK\r\n\r\nhello\n", "invalid character"},
		{"another version", "HTTP/1.1 404 Not Found\r\n\r\n", "another version"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := control.Dial(answerWith(t, test.answer))
			_, err := c.Verify(t.Context(), "x", func(control.Progress) {})
			away := test.want == "went away"
			if err == nil || !strings.Contains(err.Error(), test.want) || errors.Is(err, meta.ErrUnavailable) != away {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// A stopped daemon still has a socket to connect to.
func TestDaemonThatDoesNotAnswer(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := control.Dial(socket)
	c.SetAnswer(10 * time.Millisecond)
	if _, err := c.Status(t.Context()); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("got %v", err)
	}
}
