package pool_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"rankfs/meta"
	"rankfs/test/eventually"
)

// What is written of an attempt is on the other node before it is committed, and is what that
// has of the map: the same file. Whatever becomes of the attempt, or of that node, after much of
// it has gone, the copy has the bytes that were committed; and nothing else is left there.
func TestTails(t *testing.T) {
	const mib = 1 << 20
	tests := []struct {
		name string
		then func(s *site, file *os.File) // after 8 MiB have gone
		same bool                         // what had gone is the copy
	}{
		{"it is as it was", func(*site, *os.File) {}, true},
		{"it has more", func(s *site, file *os.File) { s.write(file, 9*mib, mib+7) }, true},
		{"it is shorter than what has gone", func(s *site, file *os.File) { s.check(file.Truncate(3 * mib)) }, true},
		{"it is as long as what has gone", func(s *site, file *os.File) { s.check(file.Truncate(8 * mib)) }, true},
		{"its beginning is another", func(s *site, file *os.File) { s.write(file, 77, 1) }, false},
		{"the other node has a new daemon", func(s *site, _ *os.File) {
			s.members[1].stop()
			s.members[1].start()
		}, false},
		{"the other node has lost it", func(s *site, _ *os.File) { s.check(os.Truncate(s.came("s")[0], mib)) }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t, 2)
			m, other, a := s.members[0], s.members[1], meta.Attempt{}
			m.stage("s", "maps=1 copies=2")
			path := filepath.Join(m.attempts("s"), a.String())
			done, err := m.of("s").Attempts().Write(a)
			s.check(err)
			file, err := os.Create(path)
			s.check(err)
			inode := uint64(0)
			for mibs := range int64(2) {
				s.write(file, 4*mibs*mib, 4*mib)
				eventually.Within(t, time.Minute, "what is written is on the other node", func() bool {
					for _, name := range s.came("s") {
						if info, err := os.Stat(name); err == nil && info.Size() == 4*(mibs+1)*mib {
							inode = info.Sys().(*syscall.Stat_t).Ino
							return true
						}
					}
					return false
				})
			}
			s.write(file, 8*mib, mib)
			tt.then(s, file)
			want, err := os.ReadFile(path)
			s.check(err)
			s.check(file.Close())
			done()
			s.check(m.of("s").Attempts().Commit(s.ctx, a, false))
			if nodes := s.copies("s", 0); len(nodes) != 2 {
				t.Errorf("copies are on %v", nodes)
			}
			copied, err := filepath.Glob(filepath.Join(filepath.Dir(other.attempts("s")), "maps", "000000.0.*"))
			s.check(err)
			for _, name := range copied {
				switch info, err := os.Stat(name); {
				case err != nil:
					t.Error(err)
				case strings.HasSuffix(name, ".idx"):
				case strings.HasSuffix(name, ".incoming"):
					t.Errorf("%s is left", name)
				case (info.Sys().(*syscall.Stat_t).Ino == inode) != tt.same:
					t.Errorf("what had gone is the copy: %v, want %v", !tt.same, tt.same)
				default:
					if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
						t.Errorf("the copy has other bytes, or %v", err)
					}
				}
			}
			if len(copied) != 2 {
				t.Errorf("the other node has %v", copied)
			}
		})
	}
}

// write writes random bytes at an offset.
func (s *site) write(file *os.File, at int64, n int) {
	s.t.Helper()
	b := make([]byte, n)
	random := rand.NewChaCha8([32]byte{1})
	random.Read(b)
	_, err := file.WriteAt(b, at)
	s.check(err)
}

func (s *site) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// came are the files of what came of attempts to the second node.
func (s *site) came(stage string) []string {
	s.t.Helper()
	all, err := filepath.Glob(filepath.Join(filepath.Dir(s.members[1].attempts(stage)), "maps", "*.tail.*"))
	s.check(err)
	return all
}

// A tail ends when there is nothing that could be committed: no file was made, or it was
// removed, or the map has a winner, or the job is gone.
func TestTailsEnd(t *testing.T) {
	s := newSite(t, 2)
	m := s.members[0]
	m.stage("s", "maps=9 copies=2")
	m.commit("s", 3, 0, "first")
	for number, file := range map[uint64]bool{0: false, 1: true, 2: true, 3: true} {
		a := meta.Attempt{Map: number, Number: 1}
		done, err := m.of("s").Attempts().Write(a)
		s.check(err)
		if file {
			m.lay("s", a.String(), []byte("text"))
		}
		done()
		if number == 1 {
			s.check(m.of("s").Attempts().Remove(a, a.String()))
		}
	}
	following := func() int {
		stacks := make([]byte, 1<<20)
		return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "(*tails).follow(")
	}
	eventually.Within(t, time.Minute, "one tail goes on, of what can be committed", func() bool { return following() == 1 })
	j, err := m.Job(s.ctx, "j")
	s.check(err)
	s.check(j.Remove(s.ctx))
	eventually.Within(t, time.Minute, "no tail goes on", func() bool { return following() == 0 })
}
