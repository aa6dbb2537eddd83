package main

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/failure"
	"rankfs/meta"
)

// Of many nodes some are shown, and it is said how many are not.
func TestManyPeers(t *testing.T) {
	var text bytes.Buffer
	writePeers(&text, &control.Peers{Nodes: slices.Repeat([]control.Peer{{Host: "node7"}}, maxPeers+3)})
	if lines := strings.Count(text.String(), "node7"); lines != maxPeers || !strings.HasSuffix(text.String(), "  and 3 others; see: rankfs status --json\n") {
		t.Errorf("%d of %d nodes: %s", lines, maxPeers+3, text.String())
	}
}

// A terminal is told what to type next; a pipe gets the token alone.
func TestTokenOnATerminal(t *testing.T) {
	master, terminal := openTerminal(t)
	const join = "node1.example.com:7420"
	for uses, who := range map[int]string{1: "one node", 3: "3 nodes"} {
		token := control.Token{Token: "secret", Expires: epoch.Add(90 * time.Minute), Uses: uses, Join: join}
		writeToken(terminal, token, epoch)
		var got string
		for buf := make([]byte, 4096); !strings.HasSuffix(got, "the others.\r\n"); {
			n, err := master.Read(buf)
			if err != nil {
				t.Fatalf("%q, then %v", got, err)
			}
			got += string(buf[:n])
		}
		want := "secret\n\nIt lets in " + who + ", for 1h 30m. There, put it into a FILE that only root can\nread, and:\n\n" +
			"  rankfs mount DIR --listen HOST:PORT --join " + join + " --token-file FILE\n\n" +
			"HOST:PORT is where that node is reached by the others.\n"
		if got := strings.ReplaceAll(got, "\r\n", "\n"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestIsLoopback(t *testing.T) {
	for host, want := range map[string]bool{"127.0.0.1": true, "127.1.2.3": true, "::1": true, "localhost": true, "node1": false, "10.0.0.1": false, "": false} {
		if got := isLoopback(host); got != want {
			t.Errorf("isLoopback(%q) = %v", host, got)
		}
	}
}

func TestSourceURI(t *testing.T) {
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ source, as, db, want string }{
		{"lmdb:/a", "", "", "lmdb:/a"},
		{"lmdb:a/../b", "", "", "lmdb:" + here + "/b"},
		{"lmdb:/a", "", "x", "lmdb:/a?db=x"},
		{"lmdb:/a", "", "x&y z?/=+", "lmdb:/a?db=x%26y%20z%3F%2F%3D%2B"},
		{"file:/a b%20", "fixed:64", "", "file:/a b%20?as=fixed:64"},
		{"file:/a?x=1", "lines", "", "file:/a?x=1&as=lines"},
		{"file:/why??", "", "", "file:/why??"},
		{"file:/why??", "files", "", "file:/why??as=files"},
		{"file:///a", "", "", "file:///a"},
		{"hdfs://host/a?b", "", "", "hdfs://host/a?b"},
		{"dataset:d?records=0-9", "", "", "dataset:d?records=0-9"},
		{"dataset:d", "lines", "", ""},
		{"dataset:a/b", "", "", ""},
		{"/a:b", "", "", ""},
		{"a", "", "", ""},
		{"file:", "", "", ""},
		{"file:?as=lines", "", "", ""},
		{"lmdb:/a", "lines", "", ""},
		{"hdfs://a", "", "x", ""},
		{"lmdb:/a?db=y", "", "x", ""},
	}
	for _, test := range tests {
		got, err := sourceURI(test.source, test.as, test.db)
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%q --as %q --db %q: got %q, %v, want %q", test.source, test.as, test.db, got, err, test.want)
		}
	}
}

func TestReportIsOneLineAndAHint(t *testing.T) {
	var out bytes.Buffer
	p := &program{err: &out}
	if code := p.report(failure.Hint(meta.Worded(meta.ErrBusy, "x"), "a\nb")); code != 4 || out.String() != "rankfs: x\n  a\n  b\n" {
		t.Errorf("got %d, %q", code, out.String())
	}
}
