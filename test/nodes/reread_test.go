package nodes_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rankfs/test/daemon"
	"rankfs/test/eventually"
)

// A rereader reads one epoch after the other, of a dataset on one node's
// disks, which has no plans, until it is told to end. No read may fail. It rests in
// between: the nodes need the processors, too.
type rereader struct {
	t   *testing.T
	dir string
	cmd *exec.Cmd
}

const rereading = `set -o pipefail
	for ((epoch = 0; ; epoch++)); do
		cat "$0@epoch=$epoch,order=full"/rank-*/batch-*[0-9] | sort -n | sha256sum >> "$1/sums" || exit
		[ ! -e "$1/end" ] || exit 0
		sleep 0.5
	done`

func newRereader(t *testing.T, n *daemon.Place, dataset string) *rereader {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	r := &rereader{t: t, dir: t.TempDir()}
	r.cmd = n.Command(ctx, "bash", "-c", rereading, n.Mount()+"/datasets/"+dataset, r.dir)
	r.cmd.Stderr = os.Stderr
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return r
}

// sums are those of the epochs so far.
func (r *rereader) sums() []string {
	text, _ := os.ReadFile(filepath.Join(r.dir, "sums"))
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// progress waits until each reader has begun and ended an epoch.
func (m *team) progress(readers []*rereader) {
	m.t.Helper()
	for _, r := range readers {
		before := len(r.sums())
		eventually.Within(m.t, patience, "a reader goes on", func() bool { return len(r.sums()) > before+1 })
	}
}

// finish has it end, and checks what it has read.
func (r *rereader) finish() {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, "end"), nil, 0o600); err != nil {
		r.t.Fatal(err)
	}
	if err := r.cmd.Wait(); err != nil {
		r.t.Errorf("a reader: %v", err)
	}
	all := r.sums()
	for epoch, sum := range all {
		if sum != oneToTenThousand+"  -" {
			r.t.Errorf("epoch %d is %q", epoch, sum)
		}
	}
	r.t.Logf("%d epochs were read", len(all))
}

// oneToTenThousand is the checksum of the lines of (*team).source.
const oneToTenThousand = "8060aa0ac20a3e5db2b67325c98a0122f2d09a612574458225dcb9a086f87cc3"
