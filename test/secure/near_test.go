package secure_test

import (
	"bytes"
	"maps"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rankfs/fetch"
	"rankfs/test/daemon"
	"rankfs/test/eventually"
	"rankfs/test/secure"
	"rankfs/test/sourcetest"
)

const socketPath = "dfs.domain.socket.path"

// Sockets are settings by which datanodes pass the files of their blocks, and clients
// want them.
type sockets struct{ secure.Settings }

func socketsFor(t *testing.T) sockets {
	t.Helper()
	// The folders above a datanode's socket may not be writable for all users, as /tmp is.
	dir, err := os.MkdirTemp("/run", "rankfs-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return sockets{secure.Settings{"dfs.client.read.shortcircuit": "true", socketPath: dir + "/_PORT"}}
}

// and is these settings and more.
func (s sockets) and(more secure.Settings) secure.Settings {
	all := maps.Clone(s.Settings)
	maps.Copy(all, more)
	return all
}

// near opens /data as a client with the configuration sees it. What it returns reads all of
// that, by file.
func (h hdfsWith) near(t *testing.T, conf string) (read func(*testing.T)) {
	t.Helper()
	env := &fetch.Env{HDFS: h.clusters(t, conf, nil)}
	d := sourcetest.Attach(t, sourcetest.Fixture{
		Open: func() (fetch.Source, error) { return fetch.Open("hdfs://"+h.Address()+"/data?as=files", env) },
	})
	return func(t *testing.T) {
		if err := h.read(t, d); err != nil {
			t.Error(err)
		}
		if s := env.HDFS.Stats(); s.Files == 0 || s.Files != s.Bytes {
			t.Errorf("%d of %d bytes came by file: %s", s.Files, s.Bytes, s.LocalBlocks)
		}
	}
}

// pause is between two rounds of readers, unless the test waits for one, and between two
// changes of what they read: both go on for minutes, beside other tests.
const pause = 4 * time.Second

// Readers are processes that read a mount over and over, by the files of the blocks of
// its host's datanode, each a view of its own.
type readers struct {
	*daemon.Place
	t      *testing.T
	want   string
	views  []string
	rounds []atomic.Int64 // of each, all of them right
	more   chan struct{}  // has one that rests begin its next round
	stop   atomic.Bool
	work   sync.WaitGroup
	open   map[string]int // descriptors of the daemon before they began
}

// readNear begins to read /data as a client with the configuration sees it.
func (h hdfsWith) readNear(t *testing.T, conf string) *readers {
	t.Helper()
	r := &readers{
		Place: daemon.New(t, daemon.Program(t), nil, "--ram", "64MiB", "--hdfs-keytab", h.Path("alice.keytab"), "--hdfs-principal", "alice",
			"--krb5-conf", h.Path("krb5.conf"), "--hadoop-conf", conf),
		t: t, want: string(bytes.Join(h.records, nil)), views: []string{"d@epoch=0", "d@epoch=1"},
	}
	r.rounds, r.more = make([]atomic.Int64, len(r.views)), make(chan struct{})
	r.Start()
	r.Do("dataset", "create", "d", "--source", "hdfs://"+h.Address()+"/data", "--as", "files", "--ranks", "1", "--batch", "1")
	for i := range r.views {
		r.read(i)
	}
	r.open = r.Descriptors()
	for i := range r.views {
		r.work.Go(func() {
			for !r.stop.Load() && !t.Failed() {
				r.read(i)
				r.rest()
			}
		})
	}
	t.Cleanup(func() {
		r.stop.Store(true)
		r.work.Wait()
	})
	return r
}

func (r *readers) rest() {
	select {
	case <-r.more:
	case <-time.After(pause):
	}
}

// hurry has those that rest begin their next round.
func (r *readers) hurry() {
	for range r.views {
		select {
		case r.more <- struct{}{}:
		default:
		}
	}
}

// read reads a view anew.
func (r *readers) read(i int) {
	if _, err := r.Rankfs("cache", "evict", r.views[i]); err != nil {
		r.t.Errorf("evict %s: %v", r.views[i], err)
		return
	}
	got, err := cat(r.Place, r.views[i])
	if err != nil || got != r.want {
		r.t.Errorf("%s has %d bytes, want %d: %v", r.views[i], len(got), len(r.want), err)
		return
	}
	r.rounds[i].Add(1)
}

// byFile waits until each has read all once more, and all of it by file.
func (r *readers) byFile(when string) {
	r.t.Helper()
	type status struct {
		HDFS struct {
			Bytes, Files uint64
			LocalBlocks  string `json:"local_blocks"`
		}
	}
	var to status
	eventually.Within(r.t, mountedTime, when+": blocks are read by file", func() bool {
		var from status
		r.Status(&from)
		for i := range r.rounds {
			begun := r.rounds[i].Load()
			eventually.Within(r.t, mountedTime, when+": the readers go on", func() bool {
				r.hurry()
				return r.rounds[i].Load() > begun+1 || r.t.Failed()
			})
		}
		r.Status(&to)
		n := to.HDFS.Bytes - from.HDFS.Bytes
		return r.t.Failed() || n > 0 && to.HDFS.Files-from.HDFS.Files == n && to.HDFS.LocalBlocks == "short-circuit"
	})
}

// end ends them. The daemon has no more open than before.
func (r *readers) end() {
	r.t.Helper()
	r.stop.Store(true)
	r.work.Wait()
	if !r.t.Failed() {
		r.AwaitDescriptors(r.open)
	}
}

// touchUntil has the files of all blocks change now and then, so that the datanode is
// asked for them anew, with whatever token there is.
func (h hdfsWith) touchUntil(t *testing.T, end time.Time) {
	t.Helper()
	for time.Now().Before(end) {
		h.touchBlocks(t)
		time.Sleep(pause)
	}
}
