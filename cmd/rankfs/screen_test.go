package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/mounts"
	"rankfs/cmd/internal/node"
)

// openTerminal returns both ends of a terminal 80 columns wide.
func openTerminal(t *testing.T) (master, terminal *os.File) {
	t.Helper()
	open := func(name string) *os.File {
		f, err := os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	master = open("/dev/ptmx")
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	return master, open(fmt.Sprintf("/dev/pts/%d", n))
}

// On a terminal the bar and the result share a line, one after the other.
func TestResultComesAfterTheBarIsGone(t *testing.T) {
	t.Setenv("TERM", "xterm")
	run := t.TempDir()
	if err := os.Chmod(run, 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan bool), make(chan error)
	go func() {
		ended <- serveFake(ctx, node.Config{Mount: "/mnt", RunDir: run, Log: slog.New(slog.DiscardHandler)}, func() { close(ready) })
	}()
	defer func() { cancel(); <-ended }()
	<-ready

	master, terminal := openTerminal(t)
	p := &program{out: terminal, err: terminal, now: ticking(), finder: finder{run: run, stale: mounts.Stale}}
	create := func(d *control.Client, ctx context.Context, name string, show func(control.Progress)) (control.Dataset, error) {
		return d.Create(ctx, control.CreateRequest{Name: name, Source: "file:/x", Ranks: 1, Batch: "256"}, show)
	}
	if err := long(ctx, p, "x", create, notIndexed, writeIndexed); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(terminal, "THE END")
	var screen strings.Builder
	for buf := make([]byte, 4096); !strings.HasSuffix(screen.String(), "THE END"); {
		n, err := master.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		screen.Write(buf[:n])
	}
	last := strings.Split(screen.String(), "\r\x1b[K")
	if len(last) != 2 || !strings.Contains(last[0], "100%") || last[1] != "x: 200,000 records, 781 MiB in 782 steps of 256 records for 1 rank\r\nTHE END" {
		t.Errorf("got %q", screen.String())
	}
}
