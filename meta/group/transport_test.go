package group

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// A wall is a transport that nothing passes while it stands.
type wall struct {
	raft.Transport
	stands bool
}

var errWall = errors.New("no node there")

func (w *wall) AppendEntries(raft.ServerID, raft.ServerAddress, *raft.AppendEntriesRequest, *raft.AppendEntriesResponse) error {
	if w.stands {
		return errWall
	}
	return nil
}

func (w *wall) InstallSnapshot(raft.ServerID, raft.ServerAddress, *raft.InstallSnapshotRequest, *raft.InstallSnapshotResponse, io.Reader) error {
	return errWall
}

// transportBy is a transport by way of any other.
func transportBy(t raft.Transport, stays func(raft.ServerID) bool) *transport {
	c := newTransport(nil, new(logEnds), stays)
	c.Transport = t
	return c
}

// Raft is not told that sending the log has failed before it makes sense to send
// it again: it would wait for longer and longer. Heartbeats are its own business.
func TestTheTransportKeepsFailuresToItself(t *testing.T) {
	heartbeat := &raft.AppendEntriesRequest{Term: 1}
	for _, tt := range []struct {
		name string
		ends func(c *transport, w *wall, gone *bool)
	}{
		{"it answers a heartbeat", func(c *transport, w *wall, _ *bool) {
			w.stands = false
			c.AppendEntries("a", "", heartbeat, new(raft.AppendEntriesResponse))
		}},
		{"it calls", func(c *transport, _ *wall, _ *bool) { c.called("a") }},
		{"this node leads no more", func(c *transport, _ *wall, _ *bool) { c.giveUp() }},
		{"it is taken out", func(c *transport, _ *wall, gone *bool) { *gone = true; c.called("a") }},
		{"this node ends", func(c *transport, _ *wall, _ *bool) { c.end() }},
		{"it is silent for long", func(*transport, *wall, *bool) { time.Sleep(silence) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, gone := &wall{stands: true}, false
				c := transportBy(w, func(raft.ServerID) bool { return !gone })
				sent, installed := make(chan error, 1), make(chan error, 1)
				go func() { sent <- c.AppendEntries("a", "", &raft.AppendEntriesRequest{PrevLogEntry: 7}, nil) }()
				go func() { installed <- c.InstallSnapshot("a", "", nil, nil, nil) }()
				time.Sleep(silence / 2)
				c.AppendEntries("a", "", heartbeat, nil) // fails
				c.called("b")
				synctest.Wait()
				if len(sent)+len(installed) != 0 {
					t.Fatal("told too early")
				}
				tt.ends(c, w, &gone)
				synctest.Wait()
				if len(sent) != 1 || len(installed) != 1 || <-sent != errWall || <-installed != errWall {
					t.Error("not told, or something else")
				}
			})
		})
	}
}

// Raft does not wait for a node that is not in its configuration, nor for any once all has ended.
func TestTheTransportDoesNotWaitForStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := transportBy(&wall{stands: true}, func(id raft.ServerID) bool { return id == "a" })
		begun := time.Now()
		c.InstallSnapshot("b", "", nil, nil, nil)
		c.end()
		c.InstallSnapshot("a", "", nil, nil, nil)
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("waited for %v", waited)
		}
	})
}

// A node that calls hears nothing: connections to it, and those being made, are
// of no use.
func TestALineIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := transportBy(nil, func(raft.ServerID) bool { return true })
		made, other := net.Pipe()
		old, err := c.hang(t.Context(), "a", func(context.Context) (net.Conn, error) { return made, nil })
		if err != nil {
			t.Fatal(err)
		}
		failed := make(chan error, 1)
		go func() {
			_, err := c.hang(t.Context(), "a", func(ctx context.Context) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			})
			failed <- err
		}()
		synctest.Wait()
		c.called("b")
		synctest.Wait()
		if len(failed) != 0 {
			t.Fatal("cut by the call of another")
		}
		c.called("a")
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("dialling: %v", err)
		}
		if _, err := other.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the connection: %v", err)
		}
		old.Close()
		made, other = net.Pipe()
		if _, err := c.hang(t.Context(), "a", func(context.Context) (net.Conn, error) { return made, nil }); err != nil {
			t.Fatal(err)
		}
		go other.Write([]byte{1})
		if _, err := made.Read(make([]byte, 1)); err != nil {
			t.Errorf("a connection that was made since: %v", err)
		}
		made.Close()
	})
}

// A followed is a transport to a follower that takes all, or nothing.
type followed struct {
	raft.Transport
	takes bool
}

func (f followed) AppendEntries(_ raft.ServerID, _ raft.ServerAddress, _ *raft.AppendEntriesRequest, response *raft.AppendEntriesResponse) error {
	response.Success = f.takes
	return nil
}

// Raft asks the transport again as soon as it has answered. So a follower is told that an entry is
// agreed on when it is, and while there is nothing to tell it, it is left alone.
func TestTheTransportRestsUntilThereIsMore(t *testing.T) {
	all := &raft.AppendEntriesRequest{Term: 1, PrevLogEntry: 7, PrevLogTerm: 1, LeaderCommitIndex: 6}
	for _, tt := range []struct {
		name    string
		request *raft.AppendEntriesRequest
		takes   bool
		then    func(c *transport) // after 10 ms
		rests   time.Duration
	}{
		{"nothing", all, true, func(*transport) {}, idle},
		{"an entry is agreed on", all, true, func(c *transport) { c.logEnds.executes(7) }, 10 * time.Millisecond},
		{"an entry is written", all, true, func(c *transport) { c.logEnds.stores(8) }, 10 * time.Millisecond},
		{"the follower says that it hears nothing", all, true, func(c *transport) { c.called("a") }, 10 * time.Millisecond},
		{"another may lead", all, true, func(c *transport) {
			c.AppendEntries("a", "", &raft.AppendEntriesRequest{Term: 1}, &raft.AppendEntriesResponse{Term: 2})
		}, 10 * time.Millisecond},
		{"a heartbeat is answered", all, true, func(c *transport) {
			c.AppendEntries("a", "", &raft.AppendEntriesRequest{Term: 1}, &raft.AppendEntriesResponse{Term: 1})
		}, idle},
		{"another leads", all, true, func(c *transport) { c.giveUp() }, 10 * time.Millisecond},
		{"this node ends", all, true, func(c *transport) { c.end() }, 10 * time.Millisecond},
		{"it was agreed on before", &raft.AppendEntriesRequest{Term: 1, PrevLogEntry: 7, PrevLogTerm: 1, LeaderCommitIndex: 5}, true, nil, 0},
		{"it was written before", &raft.AppendEntriesRequest{Term: 1, PrevLogEntry: 6, PrevLogTerm: 1, LeaderCommitIndex: 6}, true, nil, 0},
		{"the follower has another log", all, false, nil, 0},
		{"entries", &raft.AppendEntriesRequest{Term: 1, PrevLogEntry: 6, PrevLogTerm: 1, LeaderCommitIndex: 6, Entries: make([]*raft.Log, 1)}, true, nil, 0},
		{"a heartbeat", &raft.AppendEntriesRequest{Term: 1}, true, nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := transportBy(followed{takes: tt.takes}, func(raft.ServerID) bool { return true })
				c.logEnds.stores(7)
				c.logEnds.executes(6)
				if tt.then != nil {
					time.AfterFunc(10*time.Millisecond, func() { tt.then(c) })
				}
				begun := time.Now()
				if err := c.AppendEntries("a", "", tt.request, new(raft.AppendEntriesResponse)); err != nil {
					t.Fatal(err)
				}
				if rests := time.Since(begun); rests != tt.rests {
					t.Errorf("it rests for %v, not %v", rests, tt.rests)
				}
			})
		})
	}
}
