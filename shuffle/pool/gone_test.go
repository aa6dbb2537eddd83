package pool_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/meta"
	"rankfs/shuffle/disk"
	"rankfs/shuffle/pool"
)

// A disk whose directory is gone takes no map that is to last, and says why; none that it has is
// taken for lost meanwhile. When it is back the same rename goes well, and all maps are there. So
// it is the second time.
func TestADirectoryThatIsGoneComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := newSite(t, 1), &heard{Handler: slog.DiscardHandler}
		m, dir := s.members[0], filepath.Join(t.TempDir(), "disk")
		m.stop()
		m.disk, s.log = pool.Disk{Dir: dir, Bytes: 1 << 20}, h
		m.start()
		m.stage("memory", "maps=2 parts=1 copies=1")
		m.stage("s", "maps=5 parts=1 copies=1 ack=durable")
		stop := m.follow()
		defer func() { stop() }()
		m.commit("s", 0, 0, "0")
		time.Sleep(time.Minute) // in which a commit could be on its way
		for round := range uint64(2) {
			s.check(os.Rename(dir, dir+"-away"))
			a := meta.Attempt{Map: 2*round + 1}
			m.write("s", a, fmt.Sprint(a.Map))
			for range 2 {
				if err := m.of("s").Attempts().Commit(s.ctx, a, false); !errors.Is(err, meta.ErrNoSpace) || !strings.Contains(err.Error(), "the directory is gone, or something else is mounted there; bring it back") {
					t.Errorf("it is gone, and a map that is to last is committed: %v", err)
				}
			}
			m.commit("memory", round, 0, "after which this node looks at what it has")
			time.Sleep(time.Minute)
			if _, err := m.of("s").Maps().Open(s.ctx, 2*round); !errors.Is(err, disk.ErrGone) {
				t.Errorf("it is gone, and a map there is read: %v", err)
			}
			s.check(os.Rename(dir+"-away", dir))
			time.Sleep(disk.SuspendTime)
			if err := m.of("s").Attempts().Commit(s.ctx, a, false); err != nil {
				t.Errorf("it is back, and takes no map: %v", err)
			}
			m.commit("s", a.Map+1, 0, fmt.Sprint(a.Map+1))
			time.Sleep(time.Minute)
			for number := range a.Map + 2 {
				if got := s.copies("s", number); !slices.Equal(got, []string{m.id}) {
					t.Errorf("it is back, and map %d is on %v", number, got)
				}
			}
		}
		if got, err := m.part("s", meta.Part{}); err != nil || got != "01234" {
			t.Errorf("in the end the part is %q: %v", got, err)
		}
		stop()
		if i := slices.IndexFunc(h.said, func(line string) bool { return strings.Contains(line, "lost") }); i >= 0 {
			t.Errorf("the log says %q", h.said[i])
		}
	})
}
