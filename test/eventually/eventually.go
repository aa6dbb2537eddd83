// Package eventually answers, for a test, whether something comes to be true that
// the test itself does not bring about.
package eventually

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// True waits for three minutes at most. It turns a hang into a failure: nothing that is
// waited for should ever come near that, on a machine that is slow and busy either.
func True(t testing.TB, what string, is func() bool) {
	t.Helper()
	Within(t, 3*time.Minute, what, is)
}

// Within waits for so long at most.
func Within(t testing.TB, limit time.Duration, what string, is func() bool) {
	t.Helper()
	if !within(limit, is) {
		t.Fatalf("not within %v: %s", limit, what)
	}
}

// Done waits for so long at most until something is done without an error, and says
// what the last one was.
func Done(t testing.TB, limit time.Duration, what string, do func() error) {
	t.Helper()
	var err error
	if !within(limit, func() bool { err = do(); return err == nil }) {
		t.Fatalf("not within %v: %s: %v", limit, what, err)
	}
}

// Ends waits for two minutes at most until do returns, and says what its error is: it may wait
// for what must not hold it up.
func Ends(t testing.TB, what string, do func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	case <-time.After(2 * time.Minute):
		t.Fatalf("%s does not end", what)
	}
}

func within(limit time.Duration, is func() bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return nil == Until(ctx, func() error {
		if is() {
			return nil
		}
		return errNotYet
	})
}

var errNotYet = errors.New("not yet")

// Until waits until something is done without an error, or ctx is over: the error wraps
// why it is, and what the last one was. Looking takes a tenth of the time, or ends three
// seconds before it begins again: what is waited for needs the processors too, and many tests
// wait at a time.
func Until(ctx context.Context, do func() error) error {
	pause := 100 * time.Microsecond
	for {
		begun := time.Now()
		err := do()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w, waiting for: %w", context.Cause(ctx), err)
		case <-time.After(max(pause, min(9*time.Since(begun), 3*time.Second))):
		}
		pause = min(2*pause, 50*time.Millisecond)
	}
}
