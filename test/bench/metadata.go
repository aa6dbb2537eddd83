package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// petabyte measures a node that leads a cluster with a dataset of a petabyte.
func petabyte(b *bench) int {
	state := filepath.Join(b.dir, "state")
	b.mount("--ram", "64MiB") // founds the node
	b.umount()
	program := filepath.Join(b.dir, "petabyte")
	output("go", "build", "-o", program, "./test/bench/petabyte")
	made := output(program, state)
	dropCaches()
	begin := time.Now()
	b.mount("--ram", "64MiB")
	view := filepath.Join(b.mnt, "datasets/petabyte@epoch=7,order=full,batch=chunk,ranks=1024")
	for _, name := range []string{"rank-0/batch-000000", "rank-511/batch-004095", "rank-1023/batch-008191"} {
		info, err := os.Stat(filepath.Join(view, name))
		if err == nil && info.Size() != 128<<20 {
			err = fmt.Errorf("%s has %d bytes", name, info.Size())
		}
		check(err)
	}
	restart := time.Since(begin).Seconds()
	pid := b.pid()
	looked, files := ofProcess(pid, "VmRSS"), ofProcess(pid, "RssFile")
	walk(view)
	return missed(
		outcome{
			name: "memory of a leader with 1 PB in chunks of 128 MiB, a view looked up", values: []float64{looked}, unit: "MiB", target: 512, atMost: true,
			note: fmt.Sprintf("%.0f of it file pages", files),
		},
		outcome{
			name: "the same when all its tables were read, without file pages", values: []float64{ofProcess(pid, "VmRSS") - ofProcess(pid, "RssFile")},
			unit: "MiB", target: 512, atMost: true,
			note: fmt.Sprintf("and %.0f of pages that are the kernel's to reclaim, of the index of %.0f", ofProcess(pid, "RssFile"), value(made, "index_MiB")),
		},
		outcome{
			name: "snapshot of its cluster's state", values: []float64{value(made, "snapshot")}, unit: "s", target: 5, atMost: true,
			note: fmt.Sprintf("%.0f KiB, with 256 plans of 1,024 ranks", value(made, "snapshot_KiB")),
		},
		outcome{
			name: "from start of the daemon, cold, to the look-up of a view", values: []float64{restart}, unit: "s", target: 5, atMost: true,
			note: fmt.Sprintf("%.4f s of it the snapshot", value(made, "restore")),
		},
	)
}

// walk goes through the table of chunks and a rank's directory, which look at much of the
// index.
func walk(view string) {
	quiet("sh", "-c", `head -c 64m "$0"/chunks; tail -c 64m "$0"/chunks; ls -l "$0"/rank-17`, view)
}

// pid is the daemon's; unlike status this calls no source.
func (b *bench) pid() int {
	text, err := os.ReadFile(filepath.Join(b.mnt, ".rankfs/status.json"))
	check(err)
	var s status
	check(json.Unmarshal(text, &s))
	return s.PID
}
