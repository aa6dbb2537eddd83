package fetch

import (
	"testing"
	"time"
)

// A slowToClose source knows where a chunk is.
type slowToClose struct {
	Source
	closing, end chan struct{}
}

func (s *slowToClose) Hosts(int) []string { return []string{"a"} }

func (s *slowToClose) Close() error {
	close(s.closing)
	<-s.end
	return nil
}

// Where chunks are is known while the source of the base is closed.
func TestHostsWhileTheBaseIsClosed(t *testing.T) {
	slow := &slowToClose{closing: make(chan struct{}), end: make(chan struct{})}
	d, of := new(derived), Source(slow)
	d.of.Store(&of)
	closed := make(chan error, 1)
	go func() { closed <- d.Close() }()
	<-slow.closing
	hosts := make(chan []string, 1)
	go func() { hosts <- d.Hosts(0) }()
	select {
	case got := <-hosts:
		if len(got) != 1 || got[0] != "a" {
			t.Errorf("they are %q", got)
		}
	case <-time.After(2 * time.Minute):
		t.Error("they are waited for")
	}
	close(slow.end)
	if err := <-closed; err != nil {
		t.Error(err)
	}
}
