package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseHostfile(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want string // host*ranks
	}{
		"Open MPI":              {"# a job\nnode1 slots=4\n\nnode2 slots=2 max_slots=8 # half\n", "node1*4 node2*2"},
		"a host again":          {"node1 slots=1\nnode2 slots=2\nnode1 slots=3", "node1*4 node2*2"},
		"a host in a row":       {"node1\nnode1\nnode2\n", "node1*2 node2*1"},
		"by node":               {"node1\nnode2\nnode1\nnode2\n", "node1*1 node2*1 node1*1 node2*1"},
		"MPICH":                 {"node1:4\r\nnode2:4\r\n", "node1*4 node2*4"},
		"some count":            {"node1\nnode2 slots=2\nnode1\n", "node1*2 node2*2"},
		"a user":                {"alice@node1 max-slots=9", "node1*1"},
		"an address":            {"fe80::1 slots=2", "fe80::1*2"},
		"as many as can be":     {"node1 slots=1048576", "node1*1048576"},
		"blanks before, behind": {"\t node1\tslots=2 ", "node1*2"},
	} {
		t.Run(name, func(t *testing.T) {
			seats, err := parseHostfile(strings.NewReader(tt.text))
			var got []string
			for _, s := range seats {
				got = append(got, fmt.Sprint(s.Host, "*", s.Ranks))
			}
			if err != nil || strings.Join(got, " ") != tt.want {
				t.Errorf("got %v, %v, want %s", got, err, tt.want)
			}
		})
	}
}

func TestBadHostfiles(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "names no host",
		"# nothing\n\n":                "names no host",
		"node1 slots=x":                `line 1: "x" is not a number of ranks`,
		"node1\nnode2 slots=0":         `line 2: "0" is not a number of ranks`,
		"node1 slots=1048577":          "is not a number of ranks",
		"node1 slots":                  `"slots" is not slots=N`,
		"node1 sockets=2":              `"sockets=2" is not slots=N`,
		"node1 2":                      `"2" is not slots=N`,
		"node1:":                       `"" is not a number of ranks`,
		":4":                           `":4" names no host`,
		"alice@":                       `"alice@" names no host`,
		"a slots=1048576\na slots=1":   "line 2: more than 1048576 ranks",
		strings.Repeat("x", 100_000):   "token too long",
		strings.Repeat("a\n", 1<<20+1): "more than 1048576 ranks",
	} {
		if got, err := parseHostfile(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %.40v, %v, want %q", text, got, err, want)
		}
	}
}

// Whatever a file has in it: no rank is where the file has no host, and no host
// follows itself.
func FuzzParseHostfile(f *testing.F) {
	for _, text := range []string{"node1 slots=4\nnode2:2\n", "a\nb\na\n", "u@h max_slots=3 # x", ":1", "a:b:c", "@@", "\xff slots=18446744073709551616"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		seats, err := parseHostfile(strings.NewReader(text))
		if err != nil {
			return
		}
		for i, s := range seats {
			if s.Host == "" || s.Ranks < 1 || strings.ContainsAny(s.Host, " \t#@") || i > 0 && seats[i-1].Host == s.Host {
				t.Fatalf("%q: seat %d of %v", text, i, seats)
			}
		}
	})
}
