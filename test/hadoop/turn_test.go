package hadoop_test

import (
	"context"
	"errors"
	"regexp"
	"testing"

	"golang.org/x/sys/unix"

	"rankfs/test/hadoop"
)

// While one HDFS starts no other does.
func TestTurn(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	done, err := hadoop.Turn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if next, err := hadoop.Turn(over); err == nil {
		t.Error("two have their turn")
		next()
	} else if !errors.Is(err, unix.EWOULDBLOCK) {
		t.Error(err)
	}
	if err := done(); err != nil {
		t.Fatal(err)
	}
	if next, err := hadoop.Turn(t.Context()); err != nil {
		t.Error(err)
	} else if err := next(); err != nil {
		t.Error(err)
	}
}

// A start that failed says what the machine was short of, in hundredths of the time.
func TestWatch(t *testing.T) {
	words := regexp.MustCompile(`^in these \d+s this machine was short of processors for (\d+) %, of disk for (\d+) %, of memory for (\d+) %$`)
	if said := hadoop.NewWatch().String(); !words.MatchString(said) {
		t.Errorf("it says %q", said)
	}
}
