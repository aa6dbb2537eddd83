package control_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rankfs/cmd/internal/control"
)

func TestDisconnectCancels(t *testing.T) {
	begun, ended := make(chan bool), make(chan error, 1)
	n := &fake{work: func(ctx context.Context, progress func(control.Progress)) error {
		close(begun)
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	}}
	c := control.Dial(start(t, n))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	if _, err := c.Verify(ctx, "x", func(control.Progress) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("client: %v", err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("node: %v", err)
	}
}

// A command that is stopped while a daemon does not answer says so, and of a change that it
// may have been made.
func TestStoppedWhileItWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path) // which accepts, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := control.Dial(path)
	ask := func() error { _, err := c.Datasets(stopping(t)); return err }
	change := func() error { return c.Remove(stopping(t), "d") }
	says := "ask daemon at " + path + ": stopped by a signal before it answered"
	for want, err := range map[string]error{says: ask(), says + "; look whether it was done all the same": change()} {
		if !errors.Is(err, context.Canceled) || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// stopping is a command's context, which a signal ends soon.
func stopping(t *testing.T) context.Context {
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGUSR1)
	t.Cleanup(stop)
	time.AfterFunc(10*time.Millisecond, func() { _ = syscall.Kill(os.Getpid(), syscall.SIGUSR1) })
	return ctx
}

// A request may take longer than the time to send it.
func TestLongOperationOutlivesRequestTimeout(t *testing.T) {
	const d = 2 * time.Second // by then the request has been read, on a busy machine too
	n := &fake{work: func(ctx context.Context, progress func(control.Progress)) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * d):
			return nil
		}
	}}
	c := control.Dial(startWith(t, func(ctx context.Context, l net.Listener) error {
		return control.ServeImpatient(ctx, l, n, d)
	}))
	if _, err := c.Verify(t.Context(), "x", func(control.Progress) {}); err != nil {
		t.Error(err)
	}
}

func TestClientThatDoesNotReadEndsItsOperation(t *testing.T) {
	const d = 2 * time.Second // by then the request has been read, on a busy machine too
	ended := make(chan bool)
	n := &fake{work: func(ctx context.Context, progress func(control.Progress)) error {
		for ctx.Err() == nil {
			progress(control.Progress{Doing: strings.Repeat("x", 1000)})
		}
		close(ended)
		return ctx.Err()
	}}
	socket := startWith(t, func(ctx context.Context, l net.Listener) error {
		return control.ServeImpatient(ctx, l, n, d)
	})
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/verify HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
	<-ended
}

func TestServeWaitsForWhatIsUnderWay(t *testing.T) {
	begun, over := make(chan bool), false
	n := &fake{work: func(ctx context.Context, progress func(control.Progress)) error {
		close(begun)
		<-ctx.Done()
		over = true // read after Serve returned: the race detector objects if it did not wait
		return fmt.Errorf("verify x: %w", ctx.Err())
	}}
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	answer := make(chan error)
	go func() {
		_, err := control.Dial(socket).Verify(context.WithoutCancel(ctx), "x", func(control.Progress) {})
		answer <- err
	}()
	if err := control.Serve(ctx, l, n, control.Admin{}, slog.New(slog.DiscardHandler)); err != nil {
		t.Errorf("Serve() = %v", err)
	}
	if !over {
		t.Error("the operation goes on")
	}
	if err := <-answer; !errors.Is(err, context.Canceled) {
		t.Errorf("the client was told %v", err)
	}
	if _, err := net.Dial("unix", socket); err == nil {
		t.Error("the socket is still there")
	}
}
