package main

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
)

// A fakeTB lets a benchmark use what was made for tests: it stands in for the test.
// To fail is to end the run, and what a test would have undone at its end
// is undone when the bench is reset.
type fakeTB struct {
	testing.TB // which only package testing can implement; what is missing below is not used
	name, dir  string

	mu struct {
		sync.Mutex
		undo   []func()
		failed bool
	}
}

// on has a study use what was made for tests.
func (b *bench) on(name string) *fakeTB {
	if b.tb == nil {
		b.tb = &fakeTB{dir: b.dir}
	}
	b.tb.name = name
	return b.tb
}

func (s *fakeTB) end() {
	for {
		s.mu.Lock()
		n := len(s.mu.undo)
		if n == 0 {
			s.mu.Unlock()
			return
		}
		last := s.mu.undo[n-1]
		s.mu.undo = slices.Delete(s.mu.undo, n-1, n)
		s.mu.Unlock()
		last()
	}
}

// Cleanup implements testing.TB, and so do those below.
func (s *fakeTB) Cleanup(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.undo = append(s.mu.undo, f)
}

func (s *fakeTB) TempDir() string {
	dir, err := os.MkdirTemp(s.dir, s.name+"-")
	check(err)
	s.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (s *fakeTB) Error(args ...any) {
	s.mu.Lock()
	s.mu.failed = true
	s.mu.Unlock()
	fmt.Fprintln(os.Stderr, args...)
}

func (s *fakeTB) Failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.failed
}

func (s *fakeTB) Helper()                           {}
func (s *fakeTB) Name() string                      { return s.name }
func (s *fakeTB) Errorf(format string, args ...any) { s.Error(fmt.Sprintf(format, args...)) }
func (s *fakeTB) Fatal(args ...any)                 { s.Fatalf("%s", fmt.Sprint(args...)) }
func (s *fakeTB) Log(args ...any)                   { fmt.Fprintln(os.Stderr, args...) }
func (s *fakeTB) Logf(format string, args ...any)   { s.Log(fmt.Sprintf(format, args...)) }

func (s *fakeTB) Fatalf(format string, args ...any) {
	s.mu.Lock()
	s.mu.failed = true
	s.mu.Unlock()
	check(fmt.Errorf(format, args...))
}
