package supply_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"rankfs/test/eventually"
)

// Wherever a client is killed, the next one is served.
func TestKilledClient(t *testing.T) {
	for _, at := range []struct {
		stage string
		log   string
	}{
		{"opened to ask", ""},
		{"half a request", "3 bytes, and not the 8"},
		{"asked", "did not come"},
		{"closed after asking", "did not come"},
		{"opened to read", "did not read"},
		{"half an answer", "did not read"},
		{"answered", ""},
	} {
		t.Run(at.stage, func(t *testing.T) {
			s := newStage(t, 1, 5)
			s.config.Timeout = soon
			if at.stage == "half a request" || strings.Contains(at.log, "read") {
				s.config.Timeout = never // death itself is the news
			}
			s.serve()
			for range 3 {
				p := start(t, "hold", s.pipe(0), at.stage)
				p.until("at " + at.stage)
				p.kill()
			}
			s.wantAll(0, s.reader(0).finish())
			if at.log != "" && s.log.count(at.log) == 0 {
				t.Errorf("no %q in the log:\n%s", at.log, s.log.all())
			}
		})
	}
}

// The newest request counts, also if the server comes late to look at those of
// clients that were killed.
func TestRequestsOfKilledClients(t *testing.T) {
	s := newStage(t, 1, 3)
	must(t, syscall.Mkfifo(s.pipe(0), 0o600))
	fd := come(t, s.pipe(0))
	for _, sequence := range []uint64{0, 2, 1} {
		must(t, request(s.pipe(0), sequence))
	}
	s.serve()
	wantAnswer(t, fd, 1)
	s.wantAll(0, s.reader(0).finish())
}

// Nor does it matter that one of them was killed in mid-request, and the next has
// asked before the server heard of that.
func TestRequestBehindPartOfAnother(t *testing.T) {
	for _, left := range []int{1, 3, 7} {
		t.Run(fmt.Sprint(left), func(t *testing.T) {
			s := newStage(t, 1, 3)
			must(t, syscall.Mkfifo(s.pipe(0), 0o600))
			fd := come(t, s.pipe(0))
			w, err := openBlocking(s.pipe(0), syscall.O_WRONLY)
			must(t, err)
			_, err = syscall.Write(w, make([]byte, left))
			must(t, err)
			must(t, syscall.Close(w))
			must(t, request(s.pipe(0), 2))
			s.serve()
			wantAnswer(t, fd, 2)
			s.wantAll(0, s.reader(0).finish())
		})
	}
}

// A client that asks before the server has turned from an earlier one, which was
// killed, is not given the answer to that one.
func TestAskedWhileAnotherIsServed(t *testing.T) {
	s := newStage(t, 1, 3)
	slow := filepath.Join(s.config.Batches, "rank-0", "batch-000001")
	must(t, os.Remove(slow))
	must(t, syscall.Mkfifo(slow, 0o600)) // to open it for reading waits for a writer
	s.serve()
	for range 3 {
		must(t, request(s.pipe(0), 1))
		awaitTurn(t, s.pipe(0))
		fd := come(t, s.pipe(0))
		must(t, request(s.pipe(0), 2))
		w, err := openBlocking(slow, syscall.O_WRONLY)
		must(t, err)
		must(t, syscall.Close(w))
		wantAnswer(t, fd, 2)
	}
	s.log.await("asked anew before an answer")
	must(t, os.Remove(slow))
	must(t, os.WriteFile(slow, content(0, 1), 0o644))
	s.wantAll(0, s.reader(0).finish())
}

// An answer of an earlier server that its client has not read is no request.
func TestUnreadAnswerOfAnEarlierServer(t *testing.T) {
	s := newStage(t, 1, 3)
	must(t, syscall.Mkfifo(s.pipe(0), 0o600))
	fd := come(t, s.pipe(0))
	w, err := openBlocking(s.pipe(0), syscall.O_WRONLY)
	must(t, err)
	old := make([]byte, notificationBytes)
	binary.LittleEndian.PutUint32(old[48:], 1) // its size is also the number of a batch
	_, err = syscall.Write(w, old)
	must(t, err)
	must(t, syscall.Close(w))
	s.serve()
	s.log.await("request refused")
	if got := answerAt(t, fd); got.status != 2 || got.sequence != math.MaxUint64 {
		t.Errorf("told %+v", got)
	}
	s.wantAll(0, s.reader(0).finish())
}

// awaitTurn returns once no process has a pipe open for reading.
func awaitTurn(t *testing.T, pipe string) {
	t.Helper()
	eventually.True(t, "no process reads the pipe", func() bool {
		w, err := openBlocking(pipe, syscall.O_WRONLY|syscall.O_NONBLOCK)
		if err == syscall.ENXIO {
			return true
		}
		must(t, err)
		must(t, syscall.Close(w))
		return false
	})
}

// come opens a pipe to read an answer, before that is there.
func come(t *testing.T, pipe string) int {
	t.Helper()
	fd, err := openBlocking(pipe, syscall.O_RDONLY|syscall.O_NONBLOCK)
	must(t, err)
	return fd
}

// answerAt reads it, once all of it is there and nothing else, and is done.
func answerAt(t *testing.T, fd int) note {
	t.Helper()
	eventually.True(t, "an answer is there, and nothing else", func() bool {
		n, err := unix.IoctlGetInt(fd, unix.TIOCINQ)
		must(t, err)
		return n == notificationBytes
	})
	got, err := readNote(fd)
	must(t, err)
	must(t, syscall.Close(fd))
	return got
}

func wantAnswer(t *testing.T, fd int, sequence uint64) {
	t.Helper()
	got := answerAt(t, fd)
	if size := uint64(sizeOf(0, int(sequence))); got.status != 0 || got.sequence != sequence || got.total != size {
		t.Fatalf("told %+v, want batch %d of %d bytes", got, sequence, size)
	}
}

// The deadline ends the cycle of a client that stops, alive, at a stage.
func TestStoppedClient(t *testing.T) {
	for _, at := range []struct {
		stage string
		log   string
	}{
		{"half a request", "3 bytes, and not the 8"},
		{"asked", "did not come"},
		{"closed after asking", "did not come"},
		{"opened to read", "did not read"},
		{"half an answer", "did not read"},
	} {
		t.Run(at.stage, func(t *testing.T) {
			s := newStage(t, 1, 5)
			s.config.Timeout = soon
			s.serve()
			p := start(t, "hold", s.pipe(0), at.stage)
			p.until("at " + at.stage)
			s.log.await(at.log)
			p.kill() // two living clients on one pipe would hear each other
			s.wantAll(0, s.reader(0).finish())
		})
	}
}

func TestKilledServer(t *testing.T) {
	s := newStage(t, 1, 400)
	serve := func() *process {
		p := start(t, "serve", s.config.Maps, s.config.Pipes, s.config.Batches, "5m")
		p.until("supplying")
		return p
	}
	server := serve()
	reader := s.reader(0)
	for k := 50; k < 300; k += 50 {
		reader.until(fmt.Sprintf("batch %d ", k))
		server.kill()
		server = serve()
	}
	s.wantAll(0, answered(reader.finish()))
	server.finish()
}
