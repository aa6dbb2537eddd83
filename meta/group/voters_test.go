package group

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// made is a cluster of n nodes of which the first are voters.
func made(n, voters int) []member {
	var all []member
	for i := range n {
		all = append(all, member{id: fmt.Sprintf("%02d", i), admit: true, server: true, voter: i < voters, live: true, heard: true, since: uint64(i)})
	}
	return all
}

func TestNext(t *testing.T) {
	change1 := func(id string, do action) change { return change{id, do} }
	tests := []struct {
		name string
		have []member
		with func(all []member)
		want change
	}{
		{"one alone", made(1, 1), func([]member) {}, change{}},
		{"two: one vote", made(2, 1), func([]member) {}, change{}},
		{"a third makes voters", made(3, 1), func([]member) {}, change1("01", promote)},
		{"three voters are enough for four", made(4, 3), func([]member) {}, change{}},
		{"five for five", made(5, 3), func([]member) {}, change1("03", promote)},
		{"five for a hundred", made(100, 5), func([]member) {}, change{}},
		{"one who was admitted", made(3, 3), func(all []member) { all[2].server, all[2].voter = false, false }, change1("02", add)},
		{"a dead voter is replaced before it goes", made(4, 3), func(all []member) { all[1].live = false }, change1("03", promote)},
		{"a dead voter that cannot be replaced keeps its vote", made(3, 3), func(all []member) { all[1].live = false }, change{}},
		{"nor does one that is drained replace it", made(4, 3), func(all []member) { all[1].live, all[3].idle = false, true }, change{}},
		{"two dead of five keep theirs", made(5, 5), func(all []member) { all[1].live, all[4].live = false, false }, change{}},
		{"five who were admitted make five voters, dead or not", made(5, 3), func(all []member) { all[3].live, all[4].live = false, false }, change1("03", promote)},
		{"and three make three", made(3, 2), func(all []member) { all[2].live = false }, change1("02", promote)},
		{"but not if the living were no majority", made(2, 1), func(all []member) { all[1].live = false }, change{}},
		{"nor with the last of them", made(3, 1), func(all []member) { all[1].live, all[2].live = false, false }, change{}},
		{"who was not heard yet waits for its vote", made(3, 1), func(all []member) { all[1].heard = false }, change1("02", promote)},
		{"of two who are left one loses its vote", made(3, 3), func(all []member) { all[2].admit, all[2].server, all[2].voter = false, false, false }, change1("01", demote)},
		{"a dead one without a vote stays", made(4, 3), func(all []member) { all[3].live = false }, change{}},
		{"one who was removed loses its vote", made(4, 3), func(all []member) { all[1].admit = false }, change1("03", promote)},
		{"and then its place", made(4, 3), func(all []member) { all[3].admit = false }, change1("03", remove)},
		{"one who is drained is replaced", made(4, 3), func(all []member) { all[1].idle = true }, change1("03", promote)},
		{"unless there is no other", made(3, 3), func(all []member) { all[1].idle = true }, change{}},
		{"a voter that has lost its log loses its vote", made(3, 3), func(all []member) { all[1].lost = true }, change1("01", demote)},
		{"then its place", made(3, 3), func(all []member) { all[1].lost, all[1].voter = true, false }, change1("01", remove)},
		{"of those who were removed the dead go first", made(4, 3), func(all []member) {
			all[1].admit, all[2].admit, all[2].live, all[3].live = false, false, false, false
		}, change1("02", demote)},
		{"one who was removed goes when all who could vote have lost their logs", made(5, 3), func(all []member) {
			all[1].admit, all[2].live = false, false
			all[3].lost, all[3].server, all[4].lost, all[4].server = true, false, true, false
		}, change1("01", demote)},
		{"and the others keep theirs", made(3, 3), func(all []member) { all[1].lost, all[1].voter, all[1].server = true, false, false }, change{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.with(tt.have)
			if got := next("00", tt.have); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// From any configuration the changes come to an end, and then it is what it
// should be; on the way there is always a live majority if there was one.
func TestChangesLeadToTheConfigurationThatShouldBe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := make([]member, rapid.IntRange(1, 12).Draw(t, "nodes"))
		for i := range all {
			all[i] = member{
				id: fmt.Sprintf("%02d", i), since: uint64(i),
				admit: i == 0 || rapid.IntRange(0, 5).Draw(t, "admitted") > 0, server: i == 0 || rapid.Bool().Draw(t, "server"),
				live: i == 0 || rapid.IntRange(0, 3).Draw(t, "live") > 0, idle: rapid.IntRange(0, 5).Draw(t, "idle") == 0,
			}
			all[i].voter = i == 0 || all[i].server && rapid.Bool().Draw(t, "voter")
			all[i].heard = i == 0 || all[i].live && rapid.IntRange(0, 5).Draw(t, "heard") > 0
			all[i].lost = i > 0 && rapid.IntRange(0, 5).Draw(t, "lost") == 0
		}
		majority, enough := quorate(all), votersOf(all) >= wanted(all)
		for steps := 0; ; steps++ {
			c := next("00", all)
			if c.do == nothing {
				break
			}
			if steps > 60 {
				t.Fatalf("no end: %+v", all)
			}
			for i := range all {
				if all[i].id == c.id {
					take(t, &all[i], c.do)
				}
			}
			if majority && !quorate(all) {
				t.Fatalf("%+v lost the majority: %+v", c, all)
			}
			majority = quorate(all)
			if enough && votersOf(all) < wanted(all) {
				t.Fatalf("%+v leaves too few voters: %+v", c, all)
			}
			enough = votersOf(all) >= wanted(all)
		}
		if majority {
			final(t, all)
		}
	})
}

// final checks what next leads to, where a majority of the voters is live.
func final(t *rapid.T, all []member) {
	want := wanted(all)
	var liveVoters, deadVoters, spare, idleVoters, able int
	for _, m := range all {
		if m.server != (m.admit && !m.lost) {
			t.Fatalf("%+v", m)
		}
		switch {
		case !m.server:
			continue
		case m.voter && m.live:
			liveVoters++
		case m.voter:
			deadVoters++
		case m.live && m.heard && !m.idle:
			spare++
		}
		if m.voter && m.idle && m.id != "00" {
			idleVoters++
		}
		if m.live && m.heard || m.voter {
			able++
		}
	}
	switch votes := liveVoters + deadVoters; {
	case votes > want, able >= want && votes != want:
		t.Fatalf("%d voters, want %d: %+v", votes, want, all)
	case deadVoters > 0 && spare > 0:
		t.Fatalf("dead nodes vote, and live ones do not: %+v", all)
	case idleVoters > 0 && spare > 0:
		t.Fatalf("%d voters are drained while others could vote: %+v", idleVoters, all)
	}
}

// wanted is how many should vote.
func wanted(all []member) int {
	admitted := count(all, func(m member) bool { return m.admit })
	return min(votersFor(admitted), count(all, func(m member) bool { return m.admit && !m.lost }))
}

// votersOf is how many vote who may.
func votersOf(all []member) int {
	return count(all, func(m member) bool { return m.admit && !m.lost && m.voter })
}

func take(t *rapid.T, m *member, do action) {
	switch do {
	case add:
		m.server = true
	case promote:
		if !m.server || m.lost {
			t.Fatalf("promoted %+v", *m)
		}
		m.voter = true
	case demote:
		m.voter = false
	case remove:
		if m.voter {
			t.Fatalf("removed a voter %+v", *m)
		}
		m.server = false
	}
}

func quorate(all []member) bool {
	voters := count(all, func(m member) bool { return m.voter })
	return 2*count(all, func(m member) bool { return m.voter && m.admit && m.live && !m.lost }) > voters
}

func count(all []member, f func(member) bool) (n int) {
	for _, m := range all {
		if f(m) {
			n++
		}
	}
	return n
}
