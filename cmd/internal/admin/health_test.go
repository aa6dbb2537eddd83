package admin

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// Each thing is wrong since it was first seen so, whatever is said of it, until it was
// right once; where several are of one kind, each for itself.
func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, begun := newHealth(time.Now), time.Now()
		after := func(wait time.Duration, want string, all ...fault) {
			t.Helper()
			time.Sleep(wait)
			h.note(all)
			if got := string(h.text()); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		at := func(seconds int) string {
			return begun.Add(time.Duration(seconds) * time.Second).UTC().Format(time.RFC3339)
		}
		a, b, leader := fault{"disk", "/a", "1 slab"}, fault{"disk", "/b", "1 slab"}, fault{"leader", "", "no\n leader"}
		more := fault{"disk", "/a", "2 slabs"}
		after(0, "ok\n")
		after(5*time.Second, at(5)+" disk 1 slab\n", a)
		after(5*time.Second, fmt.Sprintf("%s disk 2 slabs\n%s disk 1 slab\n%[2]s leader no leader\n", at(5), at(10)), more, b, leader)
		after(5*time.Second, at(10)+" disk 1 slab\n", b)
		after(5*time.Second, fmt.Sprintf("%s disk 1 slab\n%s disk 1 slab\n", at(20), at(10)), a, b)
		after(5*time.Second, "ok\n")
	})
}

// A daemon that does not come to look at itself says so, and what it saw last.
func TestHealthIsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHealth(time.Now)
		h.note([]fault{{"leader", "", "no leader"}})
		at := time.Now().UTC().Format(time.RFC3339)
		time.Sleep(lateTime + time.Second)
		want := at + " daemon it has not looked at itself since then; see its log\n" + at + " leader no leader\n"
		if got := string(h.text()); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
