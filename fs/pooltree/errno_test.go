package pooltree

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"

	"rankfs/fs/errnos"
	"rankfs/meta"
)

// What a program is told of an error of the pool is logged, with the errno, unless it is an
// answer that programs ask for. An error that says what it is goes before the errno in it.
func TestErrnosOfThePool(t *testing.T) {
	for _, row := range []struct {
		err    error
		errno  syscall.Errno
		logged bool
	}{
		{nil, 0, false},
		{syscall.ENOENT, syscall.ENOENT, false},
		{syscall.ENOTEMPTY, syscall.ENOTEMPTY, false},
		{syscall.EAGAIN, syscall.EAGAIN, false},
		{&os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, syscall.ENOSPC, true},
		{&os.PathError{Op: "open", Path: "x", Err: syscall.EMFILE}, syscall.EBUSY, true},
		{&os.PathError{Op: "read", Path: "x", Err: syscall.EIO}, syscall.EIO, true},
		{meta.Worded(meta.ErrUnavailable, "no copy: %w", syscall.ECONNREFUSED), syscall.EHOSTUNREACH, true},
		{fmt.Errorf("job %w", meta.ErrBusy), syscall.EBUSY, true},
	} {
		var log bytes.Buffer
		p := New(Config{Errnos: errnos.New(slog.New(slog.NewTextHandler(&log, nil)))})
		if got := p.errno("commit", "j/s/map-000000", row.err); got != row.errno {
			t.Errorf("%v is %v, want %v", row.err, got, row.errno)
		}
		lines := strings.Count(log.String(), "\n")
		if want := map[bool]int{true: 1}[row.logged]; lines != want || row.logged && !strings.Contains(log.String(), row.errno.Error()) {
			t.Errorf("%v is logged in %d lines: %s", row.err, lines, &log)
		}
	}
}
