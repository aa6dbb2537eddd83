package supply_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rankfs/cmd/internal/supply"
)

func TestEveryPairReadsItsRank(t *testing.T) {
	for _, ranks := range []int{1, 12} {
		t.Run(fmt.Sprint(ranks), func(t *testing.T) {
			s := newStage(t, ranks, 20)
			readers := s.readers(ranks)
			s.serve()
			for r, p := range readers {
				s.wantAll(r, p.finish())
			}
			if err := <-s.done; err != nil { // every client closed its pair
				t.Error(err)
			}
			s.cancel = nil
		})
	}
}

// A client alternates faster than the server can follow only if one of the
// rules of the package comment is broken: it would read its own request.
func TestManyRoundTrips(t *testing.T) {
	s := newStage(t, 1, 1)
	n := 5000
	if testing.Short() {
		n = 500
	}
	want := content(0, 0)
	s.serve()
	var c client
	defer c.unmap()
	for range n {
		got, err := c.next(s.pipe(0), s.mapped(0), 0)
		must(t, err)
		if got.status != 0 || !bytes.Equal(c.data[:got.total], want) {
			t.Fatalf("told %+v", got)
		}
	}
}

func TestOneProcessor(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	s := newStage(t, 5, 10)
	readers := s.readers(5)
	s.serve()
	for r, p := range readers {
		s.wantAll(r, p.finish())
	}
}

// A client that has read its answer may compute, with the pipe open, for
// longer than any deadline.
func TestSlowClientIsNotDropped(t *testing.T) {
	s := newStage(t, 1, 2)
	s.config.Timeout = soon
	s.serve()
	fd, err := openBlocking(s.pipe(0), syscall.O_WRONLY)
	must(t, err)
	_, err = syscall.Write(fd, make([]byte, 8))
	must(t, err)
	must(t, syscall.Close(fd))
	fd, err = openBlocking(s.pipe(0), syscall.O_RDONLY)
	must(t, err)
	var b [56]byte
	if n, err := syscall.Read(fd, b[:]); n != len(b) {
		t.Fatal(n, err)
	}
	s.log.await("no request yet") // the deadline has passed
	must(t, syscall.Close(fd))
	s.wantAll(0, s.reader(0).finish())
	if s.log.count("WARN rank")+s.log.count("dropped") > 0 {
		t.Error(s.log.all())
	}
}

// The kernel does not tell a writer that a pipe which was never full has been
// emptied. A client that comes for its answer, reads it late, when the server
// sleeps, and reads on to the end of file still gets that end at once: the
// server's deadline is longer than this test may take.
func TestReadToTheEndOfFile(t *testing.T) {
	const cycles = 300
	s := newStage(t, 2, 1)
	s.serve()
	done := make(chan error, 2)
	for rank := range 2 {
		go func() {
			var err error
			for k := 0; k < cycles && err == nil; k++ {
				err = askAndReadToEnd(s.pipe(rank), time.Duration(k%4)*time.Millisecond)
			}
			done <- err
		}()
	}
	over := time.After(2 * time.Minute)
	for range 2 {
		select {
		case err := <-done:
			must(t, err)
		case <-over:
			t.Fatalf("%d cycles took two minutes: a client waits for the end of its answer", cycles)
		}
	}
	if s.log.count("WARN rank")+s.log.count("dropped") > 0 {
		t.Error(s.log.all())
	}
}

// askAndReadToEnd asks for the first batch and takes its time over the answer.
func askAndReadToEnd(pipe string, late time.Duration) error {
	if err := request(pipe, 0); err != nil {
		return err
	}
	fd, err := openBlocking(pipe, syscall.O_RDONLY)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	time.Sleep(late)
	note, err := readNote(fd)
	if err != nil {
		return err
	}
	if n, err := syscall.Read(fd, make([]byte, 1)); n != 0 || err != nil || note.status != 0 {
		return fmt.Errorf("told %+v, and then %d bytes, %v, instead of the end", note, n, err)
	}
	return nil
}

func TestGarbage(t *testing.T) {
	for _, g := range []struct {
		name, hex string
		status    string
		log       string
	}{
		{"a byte", "00", "status 2", "1 bytes, and not the 8 of a request: 00"},
		{"a number of four bytes", "01000000", "status 2", "4 bytes, and not the 8 of a request: 01 00 00 00"},
		{"text of four bytes", "4745540a", "status 2", `: 47 45 54 0a; as text it would be \"GET\\n\": send the number of a batch`},
		{"seven bytes", "00000000000000", "status 2", "7 bytes, and not the 8"},
		{"text of nine bytes", "6e65787420626174" + "63", "status 2", "as text it would be"},
		{"four requests", strings.Repeat("0000000000000000", 4), "status 2", "more than the 8 bytes"},
		{"pages", strings.Repeat("5a", 20_000), "status 2", "more than the 8 bytes"},
		{"the end", "0300000000000000", "status 1", ""},
		{"one too many", "0400000000000000", "status 2", "request 04 00 00 00 00 00 00 00 is number 4, and the rank has 3 batches"},
		{"out of range", "ffffff0000000000", "status 2", "is number 16777215, and the rank has 3 batches"},
		{"far out of range", "feffffffffffffff", "status 2", "is number 18446744073709551614, and the rank has 3 batches"},
		{"text", "726571756573740a", "status 2", "as text it would be"},
		{"short text in eight bytes", "4745540a00000000", "status 2", "as text it would be"},
		{"a digit, and zeros", "3800000000000000", "status 2", `is number 56, and the rank has 3 batches, from 0; as text it would be \"8\": send the number`},
		{"big-endian", "0000000000000001", "status 2", "in big-endian order it would be 1"},
		{"the end, big-endian", "0000000000000003", "status 2", "in big-endian order it would be 3"},
	} {
		t.Run(g.name, func(t *testing.T) {
			s := newStage(t, 1, 3)
			s.serve()
			if got := start(t, "send", s.pipe(0), g.hex, "answer").finish(); !reflect.DeepEqual(got, []string{g.status}) {
				t.Errorf("answered %q, want %q", got, g.status)
			}
			if (s.log.count("cause=") == 0) != (g.log == "") || !strings.Contains(s.log.all(), g.log) {
				t.Errorf("the log does not say %q:\n%s", g.log, s.log.all())
			}
			start(t, "send", s.pipe(0), g.hex, "no answer").finish()
			if n := len(g.hex) / 2; n >= 8 && n < 32 { // the answer to a request is waited for: help it
				_, err := hear(s.pipe(0))
				must(t, err)
			}
			s.wantAll(0, answered(s.reader(0).finish())) // the answer to what was sent may meet this reader
		})
	}
}

// SIGTERM ends a server that waits in any stage, and what it made is gone.
func TestCancel(t *testing.T) {
	for _, stage := range []string{"", "opened to ask", "half a request", "asked", "closed after asking", "opened to read", "half an answer", "answered"} {
		t.Run(stage, func(t *testing.T) {
			before := descriptors(t)
			s := newStage(t, 2, 3)
			must(t, syscall.Mkfifo(s.pipe(0), 0o600))
			must(t, os.WriteFile(s.mapped(0), nil, 0o600))
			s.serve()
			if stage != "" {
				p := start(t, "hold", s.pipe(0), stage)
				p.until("at " + stage)
				defer p.kill()
			}
			s.stop()
			for path, want := range map[string]bool{s.pipe(0): true, s.mapped(0): true, s.pipe(1): false, s.mapped(1): false} {
				if _, err := os.Lstat(path); (err == nil) != want {
					t.Errorf("%s: %v, want it to exist: %v", path, err, want)
				}
			}
			if stage == "" {
				goleak.VerifyNone(t)
				if after := descriptors(t); after > before {
					t.Errorf("%d descriptors, %d before", after, before)
				}
			}
		})
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(entries)
}

// After clients of every sort the server holds nothing but its maps.
func TestNoLeaks(t *testing.T) {
	s := newStage(t, 1, 2)
	s.config.Timeout = soon / 4
	s.serve()
	var c client
	cycle := func() {
		// On a busy machine even a live client may come later than that.
		_, err := c.next(s.pipe(0), s.mapped(0), 1)
		for tries := 0; err != nil && tries < 100; tries++ {
			_, err = c.next(s.pipe(0), s.mapped(0), 1)
		}
		must(t, err)
	}
	cycle()
	before := descriptors(t)
	for i := range 20 {
		must(t, request(s.pipe(0), 0))
		s.log.awaitCount("did not come", i+1)
		cycle()
	}
	c.unmap()
	if after := descriptors(t); after > before+1 {
		t.Errorf("%d descriptors, %d before", after, before)
	}
	s.stop()
	goleak.VerifyNone(t)
}

func TestMappedFileGrowsAndNeverShrinks(t *testing.T) {
	s := newStage(t, 1, 10)
	must(t, os.WriteFile(s.mapped(0), make([]byte, 1), 0o600))
	s.serve()
	largest := int64(0)
	var c client
	defer c.unmap()
	for k := range 10 {
		got, err := c.next(s.pipe(0), s.mapped(0), uint64(k))
		must(t, err)
		if !bytes.Equal(c.data[:got.total], content(0, k)) {
			t.Fatalf("batch %d differs", k)
		}
		st, err := os.Stat(s.mapped(0))
		must(t, err)
		if largest = max(largest, int64(got.total)); st.Size() < largest {
			t.Fatalf("mapped file has %d bytes after a batch of %d", st.Size(), largest)
		}
	}
	c.unmap()
	must(t, os.Truncate(s.mapped(0), 0)) // as another process may: it comes back
	got, err := c.next(s.pipe(0), s.mapped(0), 3)
	must(t, err)
	if !bytes.Equal(c.data[:got.total], content(0, 3)) {
		t.Error("batch 3 differs after the file was cut")
	}
}

func TestBatchThatCannotBeRead(t *testing.T) {
	s := newStage(t, 1, 3)
	must(t, os.Remove(filepath.Join(s.config.Batches, "rank-0", "batch-000001")))
	must(t, os.Mkdir(filepath.Join(s.config.Batches, "rank-0", "batch-000001"), 0o755))
	s.serve()
	var c client
	defer c.unmap()
	for k, want := range []uint32{0, 2, 0, 1} {
		got, err := c.next(s.pipe(0), s.mapped(0), uint64(k))
		must(t, err)
		if got.status != want {
			t.Errorf("batch %d: status %d, want %d", k, got.status, want)
		}
	}
	must(t, os.RemoveAll(filepath.Join(s.config.Batches, "rank-0")))
	if got, err := c.next(s.pipe(0), s.mapped(0), 0); err != nil || got.status != 2 {
		t.Errorf("a rank that vanished: status %d, %v, want 2", got.status, err)
	}
}

// A mount that hangs costs one request, not the pair, and not the server's end.
func TestHungMount(t *testing.T) {
	s := newStage(t, 1, 3)
	s.config.Timeout = soon
	hang := filepath.Join(s.config.Batches, "rank-0", "batch-000001")
	must(t, os.Remove(hang))
	must(t, syscall.Mkfifo(hang, 0o600)) // to open it for reading waits for a writer
	s.serve()
	var c client
	defer c.unmap()
	for _, want := range []struct {
		batch  uint64
		status uint32
	}{{0, 0}, {1, 2}, {0, 2}, {2, 2}} {
		got, err := c.next(s.pipe(0), s.mapped(0), want.batch)
		must(t, err)
		if got.status != want.status {
			t.Errorf("batch %d: status %d, want %d", want.batch, got.status, want.status)
		}
	}
	w, err := os.OpenFile(hang, os.O_WRONLY, 0)
	must(t, err)
	defer w.Close()
	for status := uint32(2); status != 0; {
		got, err := c.next(s.pipe(0), s.mapped(0), 0)
		must(t, err)
		status = got.status
	}
	if !bytes.Equal(c.data[:sizeOf(0, 0)], content(0, 0)) {
		t.Error("batch 0 differs")
	}
	w.Close()
	got, err := c.next(s.pipe(0), s.mapped(0), 1) // hangs again
	must(t, err)
	if got.status != 2 {
		t.Errorf("batch 1: status %d, want 2", got.status)
	}
	s.stop()
	w, err = os.OpenFile(hang, os.O_WRONLY, 0)
	must(t, err)
	w.Close()
	goleak.VerifyNone(t)
}

func TestPipeRemovedAndMadeAgain(t *testing.T) {
	s := newStage(t, 1, 3)
	s.config.Timeout = soon
	s.serve()
	var c client
	defer c.unmap()
	_, err := c.next(s.pipe(0), s.mapped(0), 0)
	must(t, err)
	must(t, os.Remove(s.pipe(0)))
	s.log.await("pipe is not usable")
	must(t, syscall.Mkfifo(s.pipe(0), 0o600))
	s.wantAll(0, s.reader(0).finish())
}

func TestRefusedAtStart(t *testing.T) {
	for _, row := range []struct {
		name  string
		spoil func(s *stage)
		want  string
	}{
		{"no list", func(s *stage) { os.Remove(s.config.Maps) }, "does not exist; write one"},
		{"too few lines", func(s *stage) { os.WriteFile(s.config.Pipes, []byte(s.pipe(0)+"\n"), 0o600) }, "pipes (1) are too few for the 2 ranks"},
		{"ranks and other lines", func(s *stage) { s.config.Ranks = "1"; os.WriteFile(s.config.Pipes, []byte(s.pipe(0)+"\n"), 0o600) }, "too few for the 2 ranks"},
		{"a rank beyond", func(s *stage) { s.config.Ranks = "0-2" }, "there is no rank 2, the last one is 1"},
		{"ranks that fall", func(s *stage) { s.config.Ranks = "1,0" }, "give numbers that rise"},
		{"ranks that are none", func(s *stage) { s.config.Ranks = "all" }, "give numbers that rise"},
		{"no dataset", func(s *stage) { s.config.Batches += "x" }, "no such file"},
		{"no ranks", func(s *stage) { s.config.Batches = s.dir }, "no rank-0"},
		{"pipe is a file", func(s *stage) { os.WriteFile(s.pipe(1), nil, 0o600) }, "not a named pipe"},
		{"pipe is a link", func(s *stage) { syscall.Mkfifo(s.pipe(1)+"x", 0o600); os.Symlink(s.pipe(1)+"x", s.pipe(1)) }, "not a named pipe"},
		{"map is a pipe", func(s *stage) { syscall.Mkfifo(s.mapped(1), 0o600) }, "not a regular file"},
		{"map is a directory", func(s *stage) { os.Mkdir(s.mapped(1), 0o700) }, "not a regular file"},
		{"map is a link", func(s *stage) { os.Symlink("/dev/zero", s.mapped(1)) }, "not a regular file"},
		{"map twice", func(s *stage) { os.WriteFile(s.config.Maps, []byte(s.mapped(0)+"\n"+s.mapped(0)), 0o600) }, "another supply, or another line"},
		{"pipe is the map", func(s *stage) { os.WriteFile(s.config.Pipes, []byte(s.pipe(0)+"\n"+s.mapped(1)), 0o600) }, "not a named pipe"},
		{"pipe is the map of another rank, by another name", func(s *stage) {
			must(t, os.Symlink(s.dir, s.dir+"/here"))
			os.WriteFile(s.config.Pipes, []byte(s.dir+"/here/./"+filepath.Base(s.mapped(1))+"\n"+s.pipe(1)), 0o600)
		}, "not a regular file"},
		{"pipe twice", func(s *stage) { os.WriteFile(s.config.Pipes, []byte(s.pipe(0)+"\n"+s.pipe(0)), 0o600) }, "are one pipe"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newStage(t, 2, 1)
			row.spoil(s)
			before, err := os.ReadDir(s.dir)
			must(t, err)
			if err := supply.Run(t.Context(), s.config); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("Run: %v, want %q", err, row.want)
			}
			findings, err := supply.Check(t.Context(), s.config)
			if err == nil {
				t.Errorf("Check finds nothing: %v", findings)
			}
			after, err := os.ReadDir(s.dir)
			must(t, err)
			if len(before) != len(after) {
				t.Errorf("left behind: %v, before %v", after, before)
			}
		})
	}
}

func TestSecondServerIsRefused(t *testing.T) {
	s := newStage(t, 1, 3)
	s.serve()
	if err := supply.Run(t.Context(), s.config); err == nil || !strings.Contains(err.Error(), "another supply") {
		t.Errorf("second server: %v", err)
	}
	s.wantAll(0, s.reader(0).finish())
}

func TestCheck(t *testing.T) {
	s := newStage(t, 2, 1)
	must(t, syscall.Mkfifo(s.pipe(0), 0o600))
	must(t, os.WriteFile(s.mapped(0), make([]byte, 100), 0o600))
	findings, err := supply.Check(t.Context(), s.config)
	must(t, err)
	got := strings.ReplaceAll(strings.ReplaceAll(fmt.Sprint(findings), s.dir, "D"), ", on a disk: use a tmpfs", "")
	want := "[rank 0  pipe D/pipe0 (ready)  map D/map0 (100 bytes) rank 1  pipe D/pipe1 (to be made)  map D/map1 (to be made)]"
	if got != want {
		t.Errorf("Check printed\n%swant\n%s", got, want)
	}
}

// What is wrong with a path is said in plain words.
func TestCheckSaysWhy(t *testing.T) {
	s := newStage(t, 1, 1)
	s.config.Pipes, s.config.Maps = s.dir+"/pipes", s.dir+"/maps"
	must(t, os.WriteFile(s.config.Pipes, []byte(s.dir+"/none/pipe\n"), 0o600))
	must(t, os.WriteFile(s.config.Maps, []byte(s.dir+"/none/map\n"), 0o600))
	findings, err := supply.Check(t.Context(), s.config)
	want := "cannot be made in " + s.dir + "/none: there is no such file or directory"
	if err == nil || len(findings) != 1 || findings[0].PipeState != want || findings[0].MapState != want {
		t.Errorf("Check printed %s, %v; want %q", findings, err, want)
	}
}

func TestCommand(t *testing.T) {
	s := newStage(t, 1, 1)
	must(t, os.MkdirAll(filepath.Join(s.dir, "datasets"), 0o755))
	must(t, os.Rename(s.config.Batches, filepath.Join(s.dir, "datasets", "pets@ranks=1")))
	for _, row := range []struct {
		name string
		args []string
		want string
	}{
		{"check", []string{"--maps", s.config.Maps, "--pipes", s.config.Pipes, "--dataset", "pets", "--view", "ranks=1", "--check"}, ""},
		{"no dataset", []string{"--maps", s.config.Maps, "--pipes", s.config.Pipes}, "dataset"},
		{"path for a name", []string{"--maps", s.config.Maps, "--pipes", s.config.Pipes, "--dataset", "../pets", "--check"}, "is not a name"},
		{"unknown", []string{"--maps", s.config.Maps, "--pipes", s.config.Pipes, "--dataset", "cats", "--check"}, "there is no dataset"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var out bytes.Buffer
			cmd := supply.Command(func(string) (string, error) { return s.dir, nil }, func(v any, text func(io.Writer)) error {
				if _, err := json.Marshal(v); err != nil {
					return err
				}
				text(&out)
				return nil
			})
			cmd.SetArgs(row.args)
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			err := cmd.ExecuteContext(t.Context())
			if row.want == "" && (err != nil || !strings.Contains(out.String(), "rank 0")) {
				t.Errorf("%v: %s", err, out.String())
			}
			if row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("error %v, want %q", err, row.want)
			}
		})
	}
}
