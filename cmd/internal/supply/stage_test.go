package supply_test

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rankfs/cmd/internal/supply"
)

const (
	never = 5 * time.Minute // a deadline that no test may need
	soon  = time.Second     // one that is to pass, and that no client which lives needs, on a busy machine either: it would wait for ever
)

// A stage is a directory that looks like a dataset, two lists, and a log.
type stage struct {
	t       *testing.T
	dir     string
	config  supply.Config
	log     lines
	batches int
	done    chan error
	cancel  context.CancelFunc
}

// sizeOf gives batches of one rank different sizes, an empty one among them.
func sizeOf(rank, k int) int { return (rank*7919 + k*k*40961) % 300_000 }

func newStage(t *testing.T, ranks, batches int) *stage {
	t.Helper()
	s := &stage{t: t, dir: t.TempDir(), batches: batches}
	var maps, pipes strings.Builder
	for r := range ranks {
		dir := filepath.Join(s.dir, "data", fmt.Sprint("rank-", r))
		must(t, os.MkdirAll(dir, 0o755))
		for k := range batches {
			must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("batch-%06d", k)), content(r, k), 0o644))
		}
		fmt.Fprintf(&maps, "%s\n# rank %d\n\n", s.mapped(r), r)
		fmt.Fprintf(&pipes, "  %s \n", s.pipe(r))
	}
	must(t, os.WriteFile(filepath.Join(s.dir, "maps"), []byte(maps.String()), 0o644))
	must(t, os.WriteFile(filepath.Join(s.dir, "pipes"), []byte(pipes.String()), 0o644))
	s.log.t = t
	s.config = supply.Config{
		Maps:    filepath.Join(s.dir, "maps"),
		Pipes:   filepath.Join(s.dir, "pipes"),
		Batches: filepath.Join(s.dir, "data"),
		Timeout: never,
		Log:     slog.New(slog.NewTextHandler(&s.log, nil)),
	}
	return s
}

func (s *stage) pipe(rank int) string   { return filepath.Join(s.dir, fmt.Sprint("pipe", rank)) }
func (s *stage) mapped(rank int) string { return filepath.Join(s.dir, fmt.Sprint("map", rank)) }

func content(rank, k int) []byte {
	b := make([]byte, sizeOf(rank, k))
	r := rand.NewChaCha8([32]byte{byte(rank), byte(k)})
	r.Read(b)
	return b
}

// serve runs the server inside the test. Its end is checked in any case.
func (s *stage) serve() {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.done = make(chan error, 1)
	go func() { s.done <- supply.Run(ctx, s.config) }()
	s.t.Cleanup(func() { s.stop() })
	s.log.await("supplying")
}

func (s *stage) stop() {
	if s.cancel == nil {
		return
	}
	s.cancel()
	s.cancel = nil
	if err := <-s.done; err != nil {
		s.t.Errorf("Run: %v", err)
	}
}

// wantAll checks what a reader of all batches of a rank printed.
func (s *stage) wantAll(rank int, printed []string) {
	s.t.Helper()
	var want []string
	for k := range s.batches {
		b := content(rank, k)
		want = append(want, fmt.Sprintf("batch %d %d %d", k, len(b), crc32.ChecksumIEEE(b)))
	}
	if want = append(want, "status 1"); !reflect.DeepEqual(printed, want) {
		s.t.Errorf("rank %d read\n%s\nwant\n%s\nlog:\n%s", rank, strings.Join(printed, "\n"), strings.Join(want, "\n"), s.log.all())
	}
}

// answered is what a reader printed but for the questions that it had to repeat.
func answered(printed []string) []string {
	return slices.DeleteFunc(printed, func(line string) bool { return strings.HasPrefix(line, "again") })
}

func (s *stage) reader(rank int) *process {
	return start(s.t, "read", s.pipe(rank), s.mapped(rank), "1000000")
}

// readers starts a reader for each rank, before the server of this process: a
// child holds copies of all descriptors between its fork and its exec, and a
// pipe's end must not have a second holder while others talk.
func (s *stage) readers(ranks int) []*process {
	s.t.Helper()
	all := make([]*process, ranks)
	for r := range all {
		must(s.t, syscall.Mkfifo(s.pipe(r), 0o600))
		all[r] = s.reader(r)
	}
	return all
}

// lines is a log that a test can wait for.
type lines struct {
	t       *testing.T
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
	return l.text.Write(b)
}

func (l *lines) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *lines) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}

// await returns once the log has the text.
func (l *lines) await(part string) {
	l.t.Helper()
	l.awaitCount(part, 1)
}

func (l *lines) awaitCount(part string, times int) {
	l.t.Helper()
	for {
		l.mu.Lock()
		found := strings.Count(l.text.String(), part) >= times
		if l.changed == nil {
			l.changed = make(chan struct{})
		}
		changed := l.changed
		l.mu.Unlock()
		if found {
			return
		}
		select {
		case <-changed:
		case <-time.After(3 * time.Minute):
			l.t.Fatalf("no %q in the log:\n%s", part, l.text.String())
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
