package trust_test

import (
	"path/filepath"
	"testing"
	"time"

	"rankfs/meta"
	"rankfs/meta/trust"
)

func TestIdentity(t *testing.T) {
	c := newCluster(t)
	dir := filepath.Join(t.TempDir(), "trust")
	own, err := trust.OpenIdentity(dir, id(1), "h")
	if err != nil {
		t.Fatal(err)
	}
	if !own.Due(c.clock.now()) || !own.Until().IsZero() {
		t.Errorf("new identity until %v", own.Until())
	}
	c.renew(t, own)
	again, err := trust.OpenIdentity(dir, id(1), "h")
	if err != nil {
		t.Fatal(err)
	}
	if want := c.clock.now().Add(trust.Life).Truncate(time.Second); !again.Until().Equal(want) || again.Due(c.clock.now()) {
		t.Errorf("until %v, want %v", again.Until(), want)
	}
	_, err = trust.OpenIdentity(dir, id(2), "h")
	wants(t, err, meta.ErrCorrupt)
	_, err = trust.OpenIdentity(t.TempDir(), "x", "h")
	wants(t, err, meta.ErrInvalid)
	_, err = trust.OpenIdentity(t.TempDir(), id(2), "")
	wants(t, err, meta.ErrInvalid)
}

func TestDue(t *testing.T) {
	c := newCluster(t)
	own := c.identity(t, id(1))
	rows := []struct {
		name string
		at   time.Duration
		due  bool
	}{
		{"at once", 0, false},
		{"half of its life", trust.Life / 2, false},
		{"just before two thirds", trust.Life*2/3 - 10*time.Minute, false},
		{"after two thirds", trust.Life * 2 / 3, true},
		{"expired", 2 * trust.Life, true},
		{"ten years later", 520 * trust.Life, true},
		{"the clock was set back a little", -5 * time.Minute, false},
		{"the clock was set back", -time.Hour, true},
		{"the clock was set back by ten years", -520 * trust.Life, true},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if due := own.Due(c.clock.now().Add(row.at)); due != row.due {
				t.Errorf("due: %v", due)
			}
		})
	}
}

func TestRenewRefuses(t *testing.T) {
	c, foreign := newCluster(t), newCluster(t)
	own, other := c.identity(t, id(1)), c.identity(t, id(2))
	twin := c.identity(t, id(1))
	before := own.Until()
	rows := []struct {
		name string
		text []byte
		is   error
	}{
		{"of another node", c.sign(t, other, trust.RoleNode), meta.ErrCorrupt},
		{"of another key", c.sign(t, twin, trust.RoleNode), meta.ErrCorrupt},
		{"of another cluster", foreign.sign(t, own, trust.RoleNode), meta.ErrDenied},
		{"of another role", c.sign(t, own, "reader"), meta.ErrDenied},
		{"of the authority", c.ca.Certificate(), meta.ErrCorrupt},
		{"garbage", []byte("x"), meta.ErrCorrupt},
		{"two of them", append(c.sign(t, own, trust.RoleNode), c.sign(t, own, trust.RoleNode)...), meta.ErrCorrupt},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			wants(t, own.Renew(row.text, c.ca, c.clock.now()), row.is)
		})
	}
	old := c.sign(t, own, trust.RoleNode)
	wants(t, own.Renew(old, c.ca, c.clock.now().Add(2*trust.Life)), meta.ErrDenied)
	if own.Until() != before {
		t.Error("it has another certificate")
	}
}
