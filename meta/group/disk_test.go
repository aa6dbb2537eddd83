package group

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/test/eventually"
)

// big writes settings that take room.
func big(n *node, i int, within time.Duration) error {
	ctx, cancel := context.WithTimeout(n.t.Context(), within)
	defer cancel()
	_, err := n.group.Do(ctx, &state.Setting{Key: fmt.Sprintf("k%d", i%8), Value: strings.Repeat(fmt.Sprint(i%10), state.MaxSettingValue)})
	return err
}

// bigs writes so many, sixteen at a time, which the log takes together.
func bigs(n *node, many int) {
	n.t.Helper()
	var writers sync.WaitGroup
	for w := range 16 {
		writers.Go(func() {
			for i := w; i < many && !n.t.Failed(); i += 16 {
				if err := big(n, i, enough); err != nil {
					n.t.Errorf("write %d: %v", i, err)
				}
			}
		})
	}
	writers.Wait()
}

// small puts a node's log on a disk of its own.
func small(n *node) {
	n.t.Helper()
	raft := filepath.Join(n.dir, "raft")
	if err := os.Mkdir(raft, 0o700); err != nil {
		n.t.Fatal(err)
	}
	if err := syscall.Mount("none", raft, "tmpfs", 0, "size=12m"); err != nil {
		n.t.Fatalf("this test mounts, as root: %v", err)
	}
	n.t.Cleanup(func() { syscall.Unmount(raft, syscall.MNT_DETACH) })
}

// fill fills that disk, as another process would; removing the file makes room again.
func fill(n *node) (filler string) {
	filler = filepath.Join(n.dir, "raft", "filler")
	if err := os.WriteFile(filler, make([]byte, 7<<20), 0o600); err != nil {
		n.t.Logf("filled: %v", err)
	}
	return filler
}

// A disk that is full refuses writes and nothing else; with room on it again
// they go on, also after a new start.
func TestAFullDisk(t *testing.T) {
	n := newNode(t, 0)
	small(n)
	n.found()
	if err := set(n, "before", enough); err != nil {
		t.Fatal(err)
	}
	filler := fill(n)
	for i := 0; ; i++ {
		err := big(n, i, 2*time.Second)
		if errors.Is(err, meta.ErrNoSpace) {
			break
		}
		if err != nil && !errors.Is(err, meta.ErrUnavailable) || i > 2*room/state.MaxSettingValue {
			t.Fatalf("on a full disk, write %d: %v", i, err)
		}
	}
	if v := n.machine.Setting("k"); v != "before" {
		t.Errorf("reads are disturbed: %q", v)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := set(n, "after", enough); err != nil {
		t.Errorf("with room again: %v", err)
	}
	n.stop()
	n.start(false)
	if err := set(n, "again", enough); err != nil {
		t.Errorf("after a new start: %v", err)
	}
}

// A leader whose disk is full leaves the lead to another node, and commands that are sent by
// the others go on. It has what they wrote once there is room.
func TestALeaderWithAFullDisk(t *testing.T) {
	nodes := clusterWith(t, 3, small)
	eventually.True(t, "all votes are given", func() bool { return vote(nodes, 3) })
	n, rest := leading(t, nodes)
	filler := fill(n)
	for i := range 9 * segmentBytes / state.MaxSettingValue / 10 {
		if err := big(n, i, enough); err != nil {
			t.Fatal(err)
		}
	}
	var writers sync.WaitGroup
	for w := range 16 { // together they write more at a time than is left at last
		writers.Go(func() {
			for i := 0; !n.group.store.log.failing.Load() && !t.Failed(); i++ {
				if err := big(rest[w%2], i, enough); err != nil {
					t.Errorf("write %d: %v", i, err)
				}
			}
		})
	}
	writers.Wait()
	for i := range 20 {
		if err := set(rest[i%2], fmt.Sprint(i), enough); err != nil {
			t.Errorf("write %d beside it: %v", i, err)
		}
	}
	eventually.True(t, "it does not lead", func() bool { return !n.group.Leads() })
	if err := set(n, "by the others", 2*time.Second); err == nil {
		t.Error("it has executed what it cannot have written")
	}
	stands := func(n *node) time.Duration { return n.group.raft.ReloadableConfig().HeartbeatTimeout }
	eventually.True(t, "it lets others stand first", func() bool { return stands(n) > 2*stands(rest[0]) && stands(n) > 2*stands(rest[1]) })
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	agree(t, nodes, "by the others")
	eventually.True(t, "it stands as others do", func() bool { return stands(n) <= stands(rest[0]) })
	if err := set(n, "after", enough); err != nil {
		t.Error(err)
	}
	agree(t, nodes, "after")
}

// A disk that cannot be written for a while ends neither a leader nor a node that
// follows the next one, whose term is to be noted: others go on, and it has what they wrote
// when its disk is well. So does one that is ended meanwhile, or is killed and loses
// what it has not synced.
func TestADiskThatCannotBeWritten(t *testing.T) {
	nodes := clusterWith(t, 3, func(n *node) { n.fragile = true })
	eventually.True(t, "all votes are given", func() bool { return vote(nodes, 3) })
	for i, fault := range []error{syscall.EIO, syscall.EROFS, syscall.ENOSPC} {
		n, rest := leading(t, nodes)
		n.disk.fail(fault, false)
		value := fault.Error()
		for _, other := range rest {
			setInTime(other, value)
		}
		agree(t, rest, value)
		eventually.True(t, "it says that its log is not written", func() bool { return n.group.store.log.failing.Load() })
		switch i {
		case 0:
			n.disk.fail(nil, false)
		case 1:
			n.kill(true)
			n.start(false)
		case 2:
			n.stop()
			n.start(false)
		}
		agree(t, nodes, value)
		setInTime(n, "after")
		eventually.True(t, "all votes count", func() bool { return vote(nodes, 3) })
	}
}

// A change of the configuration that no majority can write is waited for no longer than its caller
// does, as by a leader that ends.
func TestAChangeOfVotersIsNotWritten(t *testing.T) {
	nodes := clusterWith(t, 3, func(n *node) { n.fragile = true })
	eventually.True(t, "all votes are given", func() bool { return vote(nodes, 3) })
	n, rest := leading(t, nodes)
	for _, other := range rest {
		other.disk.fail(syscall.ENOSPC, false)
	}
	written := n.group.raft.LastIndex()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answer := make(chan error, 1)
	go func() { answer <- n.group.reconfigure(ctx, change{do: demote, id: rest[0].id}, state.Node{}) }()
	eventually.True(t, "it is begun", func() bool { return n.group.raft.LastIndex() > written })
	cancel()
	eventually.True(t, "it is given up", func() bool { return len(answer) > 0 })
	if err := <-answer; !errors.Is(err, context.Canceled) {
		t.Errorf("it is %v", err)
	}
}

// What was acknowledged is on the disks of a majority: all nodes lose their power at
// once, and with it what they had not synced.
func TestAPowerFailure(t *testing.T) {
	nodes := clusterWith(t, 3, func(n *node) { n.fragile = true })
	eventually.True(t, "all votes are given", func() bool { return vote(nodes, 3) })
	for _, value := range []string{"a", "b"} {
		for i := range 10 {
			setInTime(nodes[i%3], fmt.Sprint(value, i))
		}
		for _, n := range nodes {
			n.kill(true)
		}
		for _, n := range nodes {
			n.start(false)
		}
		agree(t, nodes, value+"9")
	}
}

// snapshot has a node keep so many entries of its log beside a new snapshot.
func (n *node) snapshot(trailing uint64) {
	n.t.Helper()
	c := n.group.raft.ReloadableConfig()
	c.TrailingLogs = trailing
	if err := n.group.raft.ReloadConfig(c); err != nil {
		n.t.Fatal(err)
	}
	// Not before Raft's own entries are executed.
	eventually.Done(n.t, enough, "a snapshot", func() error { return n.group.raft.Snapshot().Error() })
}

// A node that was away while the log went on, and was cut, gets a snapshot. The
// log gives out what was cut from it until that is a whole segment.
func TestANodeThatWasAwayForLong(t *testing.T) {
	nodes, _ := voting(t, 3)
	leader, rest := leading(t, nodes)
	rest[0].stop()
	bigs(leader, 2*segmentBytes/state.MaxSettingValue)
	for _, n := range []*node{leader, rest[1]} {
		n.snapshot(5)
	}
	if err := set(leader, "last", enough); err != nil {
		t.Fatal(err)
	}
	if first, err := leader.group.store.log.FirstIndex(); err != nil || first < 100 {
		t.Fatalf("the leader has its log from %d on (%v)", first, err)
	}
	rest[0].start(false)
	agree(t, nodes, "last")
	if first, err := rest[0].group.store.log.FirstIndex(); err != nil || first < 100 {
		t.Errorf("it got the log from %d on, and no snapshot (%v)", first, err)
	}
}

// spoil damages the state in a node's snapshots, the newest first, so many.
func (n *node) spoil(many int) {
	n.t.Helper()
	all, err := filepath.Glob(filepath.Join(n.dir, "raft", "snapshots", "*", "state.bin"))
	if err != nil || len(all) < many {
		n.t.Fatal(all, err)
	}
	for _, path := range all[len(all)-many:] {
		text, err := os.ReadFile(path)
		if err != nil {
			n.t.Fatal(err)
		}
		text[len(text)/2] ^= 1
		if err := os.WriteFile(path, text, 0o600); err != nil {
			n.t.Fatal(err)
		}
	}
}

func TestDamagedSnapshots(t *testing.T) {
	for _, tt := range []struct {
		name     string
		trailing uint64 // entries of the log that are kept
		spoilt   int
		says     string
	}{
		{"the last, and the log reaches back", 1000, 1, ""},
		{"the last, and the log does not reach back", 1, 1, "the log goes on"},
		{"all", 1, 2, "none of the 2 snapshots"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t, 0).found()
			for i, name := range []string{"a", "b", "c"} {
				for range 10 {
					if err := put(n, fmt.Sprint(name, rand.Uint32())); err != nil {
						t.Fatal(err)
					}
				}
				if err := set(n, name, enough); err != nil {
					t.Fatal(err)
				}
				if i < 2 {
					n.snapshot(tt.trailing)
				}
			}
			c := n.group.raft.ReloadableConfig()
			c.TrailingLogs = tt.trailing
			if err := n.group.raft.ReloadConfig(c); err != nil {
				t.Fatal(err)
			}
			n.stop() // makes the third, of which the last two are kept
			n.spoil(tt.spoilt)
			err := n.try(false)
			if tt.says == "" && err != nil || tt.says != "" && (!errors.Is(err, meta.ErrCorrupt) || !strings.Contains(err.Error(), tt.says)) {
				t.Fatalf("got %v", err)
			}
			if err != nil {
				t.Log(err)
				n.group = nil
				return
			}
			if err := n.group.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			if v := n.machine.Setting("k"); v != "c" {
				t.Errorf("it knows %q", v)
			}
		})
	}
}
