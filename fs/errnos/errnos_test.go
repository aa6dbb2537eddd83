package errnos

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"rankfs/meta"
)

// The log has each error once a second, and not too many of them.
func TestLogIsBounded(t *testing.T) {
	var s said
	now := time.Now()
	lines := 0
	for i := range 1000 {
		if again, _ := s.again(fmt.Sprint(i), 64, now); !again {
			lines++
		}
	}
	if again, _ := s.again("0", 64, now); !again || lines != 64 {
		t.Errorf("%d lines of 1000, again: %v", lines, again)
	}
	if again, left := s.again("0", 64, now.Add(2*time.Second)); again || left != 1000-lines {
		t.Errorf("two seconds later: again %v, %d left out, want %d", again, left, 1000-lines)
	}
}

func TestErrno(t *testing.T) {
	for err, want := range map[error]syscall.Errno{
		fmt.Errorf("x: %w", meta.ErrStale):                              syscall.ESTALE,
		fmt.Errorf("x: %w", meta.ErrInvalid):                            syscall.EINVAL,
		fmt.Errorf("%w: %w", context.DeadlineExceeded, meta.ErrNoSpace): syscall.ETIMEDOUT,
		fmt.Errorf("%w: %w", meta.ErrUnavailable, meta.ErrBusy):         syscall.EBUSY,
		fmt.Errorf("an unknown cause"):                                  syscall.EIO,
		fmt.Errorf("x: %w", syscall.EMFILE):                             syscall.EBUSY,
		fmt.Errorf("%w: %w", context.Canceled, meta.ErrNoSpace):         syscall.EINTR,
	} {
		if got := syscall.Errno(Status(err)); got != want {
			t.Errorf("%v is %q, want %q", err, got, want)
		}
	}
}
