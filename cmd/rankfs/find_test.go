package main

import (
	"bytes"
	"fmt"
	"testing"

	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/failure"
	"rankfs/cmd/internal/mounts"
	"rankfs/meta"
)

func TestStoppedDaemonIsNamed(t *testing.T) {
	var out bytes.Buffer
	p := &program{err: &out, asked: mounts.Entry{PID: 42, Mount: "/mnt/x"}}
	code := p.report(p.noAnswer(fmt.Errorf("ask daemon at /run/s: %w", control.ErrNoAnswer)))
	want := "rankfs: ask daemon of /mnt/x: it does not answer\n" +
		"  if it is stopped (ps -o stat -p 42), continue it with: kill -CONT 42\n"
	if out.String() != want || code != failure.ExitCode(meta.ErrUnavailable) {
		t.Errorf("got %d, %q", code, out.String())
	}
}
