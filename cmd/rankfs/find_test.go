package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"testing"

	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/failure"
	"rankfs/cmd/internal/mounts"
	"rankfs/meta"
)

func TestStoppedDaemonIsNamed(t *testing.T) {
	var out bytes.Buffer
	p := &program{err: &out, finder: finder{asked: mounts.Entry{PID: 42, Mount: "/mnt/x"}}}
	code := p.report(p.noAnswer(fmt.Errorf("ask daemon at /run/s: %w", control.ErrNoAnswer)))
	want := "rankfs: ask daemon of /mnt/x: it does not answer\n" +
		"  if it is stopped (ps -o stat -p 42), continue it with: kill -CONT 42\n"
	if out.String() != want || code != failure.ExitCode(meta.ErrUnavailable) {
		t.Errorf("got %d, %q", code, out.String())
	}
}

// A daemon that went away while it was asked is looked for again: that it is gone is said as
// the next command would say it.
func TestDaemonThatWentAwayIsLookedFor(t *testing.T) {
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	run, dir := t.TempDir(), t.TempDir()
	var out bytes.Buffer
	says := func(code int, want string) {
		t.Helper()
		out.Reset()
		p := &program{err: &out, finder: finder{run, "", func() []string { return []string{dir} }, mounts.Entry{PID: ended.Process.Pid, Mount: dir}}}
		if got := p.report(p.noAnswer(fmt.Errorf("ask daemon at /run/s: %w", control.ErrGone))); got != code || out.String() != want {
			t.Errorf("got %d, %q, want %d, %q", got, out.String(), code, want)
		}
	}
	says(3, "rankfs: find mount: the daemon of "+dir+" is gone\n  clean up with: rankfs umount "+dir+"\n")

	r, err := mounts.Register(run, dir, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	says(6, "rankfs: ask daemon at /run/s: it went away before it answered\n  another serves the mount now; ask again\n")
}
