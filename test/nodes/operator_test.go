package nodes_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"rankfs/meta"
	"rankfs/meta/trust"
	"rankfs/test/cluster"
	"rankfs/test/daemon"
	"rankfs/test/eventually"
)

// The only operator of four nodes is lost, with its disk. No member can let a node in or
// take the lost one out, whatever one of them says; when most of the voters have said
// it, one of them can.
func TestTheOnlyOperatorIsLost(t *testing.T) {
	t.Parallel()
	c := cluster.Bare(t)
	m := gather(t, c, c.Hosts()[:4])
	lost, members := m.Nodes[0], m.Nodes[1:]
	lost.Start()
	token := strings.TrimSpace(lost.Do("token", "create", "--uses", "3"))
	for _, n := range members {
		m.Join(n, lost, token)
	}
	m.voting()
	m.dropsAToken(c.Hosts()[3], lost, members[0])
	id := m.Members(lost).Self
	lost.Kill()
	if err := os.RemoveAll(lost.Dir + "/state"); err != nil {
		t.Fatal(err)
	}
	next := members[0]
	eventually.Within(t, patience, "the members vote", func() bool {
		s := m.Members(next)
		votes := 0
		for _, n := range s.Nodes {
			if n.Voter && n.ID != id {
				votes++
			}
		}
		return s.Leader != "" && votes == 3
	})
	if _, err := next.Answer("token", "create"); err == nil || !strings.Contains(err.Error(), "rankfs node promote") {
		t.Errorf("a member makes a token, or is not told the way back: %v", err)
	}
	for range 2 {
		if _, err := next.Answer("node", "promote", next.Host.Name); err == nil || !strings.Contains(err.Error(), "is not an operator yet") {
			t.Errorf("one voter says it: %v", err)
		}
	}
	if _, err := next.Answer("node", "rm", id); err == nil {
		t.Error("a member takes a node out")
	}
	if out, err := members[1].Answer("node", "promote", next.Host.Name); err != nil || !strings.Contains(out, "is an operator") {
		t.Errorf("two of three voters say it: %s %v", out, err)
	}
	if _, err := next.Answer("node", "rm", id); err != nil {
		t.Fatal(err)
	}
	again := daemon.New(t, rankfs, lost.Host, "--listen", lost.Host.IP+daemon.Port, "--ram", "256MiB")
	m.Join(again, next, strings.TrimSpace(next.Do("token", "create", "--role", "operator")))
	if _, err := members[1].Answer("token", "create"); err == nil {
		t.Error("another member makes a token")
	}
	if _, err := again.Answer("token", "create"); err != nil {
		t.Errorf("an operator makes no token: %v", err)
	}
}

// dropsAToken has a member and an operator list tokens and drop one, which lets no node in
// then.
func (m *team) dropsAToken(from *cluster.Host, operator, member *daemon.Place) {
	m.t.Helper()
	var made struct{ Token, ID string }
	if err := json.Unmarshal([]byte(operator.Do("--json", "token", "create", "--uses", "2")), &made); err != nil {
		m.t.Fatal(err)
	}
	token, err := trust.ParseToken(made.Token)
	if err != nil {
		m.t.Fatal(err)
	}
	lists := func(want string) {
		m.t.Helper()
		for _, n := range []*daemon.Place{operator, member} {
			eventually.Done(m.t, patience, "a node lists the tokens", func() error {
				if out := strings.Join(strings.Fields(n.Do("token", "ls")), " "); !strings.HasPrefix(out, want) {
					return fmt.Errorf("%s says %q, want %q", n.Host.Name, out, want)
				}
				return nil
			})
		}
	}
	refused := func(n *daemon.Place, id, want string) {
		m.t.Helper()
		if out, err := n.Answer("token", "rm", id); err == nil || !strings.Contains(err.Error(), want) {
			m.t.Errorf("token rm %s on %s: %s%v", id, n.Host.Name, out, err)
		}
	}
	there := "TOKEN ROLE USED MADE ON EXPIRES " + made.ID + " member 0 of 2 " + operator.Host.Name + " "
	lists(there)
	refused(operator, "cafe", `token "cafe" does not exist`)
	refused(member, made.ID, "which is for operators: it is a member")
	refused(member, "cafe", "which is for operators: it is a member")
	lists(there)
	if out, err := operator.Answer("token", "rm", made.ID[:8]); err != nil || !strings.Contains(out, "lets no more nodes in") {
		m.t.Errorf("an operator drops a token: %s %v", out, err)
	}
	lists("no tokens; make one with: rankfs token create")
	refused(operator, made.ID, "does not exist")
	s := &stranger{m.t, from, operator}
	if err := s.joins(m.t.TempDir(), guest, token); !errors.Is(err, meta.ErrDenied) {
		m.t.Errorf("a token that was dropped lets a node in: %v", err)
	}
}

// A health is what a node says of itself, in the file and in status.
func health(t *testing.T, n *daemon.Place) (file string) {
	t.Helper()
	file = n.Must("cat", n.Mount()+"/.rankfs/health")
	var s struct {
		Faults []struct {
			Since      time.Time
			Kind, What string
		}
	}
	n.Status(&s)
	lines := "ok\n"
	for i, f := range s.Faults {
		if i == 0 {
			lines = ""
		}
		lines += f.Since.Format(time.RFC3339) + " " + f.Kind + " " + f.What + "\n"
	}
	if file != lines && file == n.Must("cat", n.Mount()+"/.rankfs/health") { // else it has just changed
		t.Errorf("the file says %q, and status %q", file, lines)
	}
	return file
}

// Of three nodes two are killed. The file says of the third what is wrong and since
// when, as long as that is so, and names who is missing; when one is back, all is well.
func TestHealthWithoutALeader(t *testing.T) {
	t.Parallel()
	c := cluster.Bare(t)
	m := newTeam(t, c, c.Hosts()[:3])
	m.voting()
	well := func(n *daemon.Place) {
		t.Helper()
		eventually.Within(t, patience, "all is well", func() bool { return health(t, n) == "ok\n" })
	}
	for _, n := range m.Nodes {
		well(n)
	}
	left := m.Nodes[2]
	begun := time.Now().Truncate(time.Second)
	m.Nodes[0].Kill()
	m.Nodes[1].Kill()
	ill := func(text string) bool {
		return strings.Count(text, "\n") == 1 && strings.Contains(text, " leader the cluster has no leader") &&
			strings.Contains(text, m.Nodes[0].Host.Name) && strings.Contains(text, m.Nodes[1].Host.Name)
	}
	var first string
	eventually.Within(t, patience, "it says that no node leads, and which are missing", func() bool {
		first = health(t, left)
		return ill(first)
	})
	since, err := time.Parse(time.RFC3339, strings.Fields(first)[0])
	if err != nil || since.Before(begun) || since.After(time.Now()) {
		t.Errorf("it is so since %v (%v): %s", since, err, first)
	}
	time.Sleep(3 * time.Second)
	if again := health(t, left); !ill(again) || strings.Fields(again)[0] != strings.Fields(first)[0] {
		t.Errorf("it said %q, and says %q", first, again)
	}
	m.Nodes[0].Start()
	well(left)
}

// Any node says how all are; of one that is gone it says that it does not answer.
func TestStatusOfAllNodes(t *testing.T) {
	t.Parallel()
	c := cluster.Bare(t)
	m := newTeam(t, c, c.Hosts()[:3])
	m.voting()
	type row struct {
		Host, State, Role, Version, Error string
		Plans                             *int `json:"settled_plans"`
		Term                              uint64
		Tiers                             []struct {
			Name   string
			Budget int64
		}
	}
	rows := func() (all []row) {
		t.Helper()
		text := m.Nodes[1].Do("--json", "status", "--all")
		if err := json.Unmarshal([]byte(text), &all); err != nil || len(all) != 3 {
			t.Fatalf("%v: %s", err, text)
		}
		return all
	}
	// A node is asked for a few seconds only, which on a busy machine may be too few.
	each := func(right func(row) error) {
		t.Helper()
		eventually.Done(t, patience, "all is said of each node", func() (err error) {
			for _, r := range rows() {
				err = errors.Join(err, right(r))
			}
			return err
		})
	}
	each(func(r row) error {
		if r.State != "up" || r.Role != "operator" || r.Version == "" || r.Plans == nil || r.Term == 0 || r.Error != "" || len(r.Tiers) == 0 || r.Tiers[0].Budget != 256<<20 {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	m.Nodes[2].Kill()
	each(func(r row) error {
		gone := r.Host == m.Nodes[2].Host.Name
		if gone != (r.Error != "") || gone != (r.Version == "") {
			return fmt.Errorf("after a kill: %+v", r)
		}
		return nil
	})
}
