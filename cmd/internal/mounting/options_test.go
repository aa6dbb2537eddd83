package mounting

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestEscapePath(t *testing.T) {
	seen := make(map[string]string)
	for path, want := range map[string]string{
		"/": "-", "/mnt/rankfs": "mnt-rankfs", "/mnt-rankfs": `mnt\x2drankfs`, "/.hidden": `\x2ehidden`,
		"/a b": `a\x20b`, "/a/../b": "a-..-b", "/\xff": `\xff`,
	} {
		got := escapePath(path)
		if got != want || seen[got] != "" {
			t.Errorf("escapePath(%q) = %q, want %q; the same as of %q", path, got, want, seen[got])
		}
		seen[got] = path
	}
	if got := escapePath("/" + strings.Repeat("-", 100)); len(got) != 64 {
		t.Errorf("a long path makes a name of %d bytes", len(got))
	}
}

func TestDefaultRAM(t *testing.T) {
	const gib = 1 << 30
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	memory := file("MemTotal:       16777216 kB\nMemFree: 1 kB\n")
	tests := []struct {
		name string
		root fstest.MapFS
		want int64
	}{
		{"a machine", fstest.MapFS{"proc/meminfo": memory}, 4 * gib},
		{"no /proc", fstest.MapFS{}, 64 << 20},
		{"no limit", fstest.MapFS{
			"proc/meminfo": memory, "proc/self/cgroup": file("0::/job\n"),
			"sys/fs/cgroup/job/memory.max": file("max\n"),
		}, 4 * gib},
		{"a limit further up", fstest.MapFS{
			"proc/meminfo": memory, "proc/self/cgroup": file("0::/slurm/job/step\n"),
			"sys/fs/cgroup/slurm/job/memory.max":      file("8589934592\n"),
			"sys/fs/cgroup/slurm/job/step/memory.max": file("max\n"),
		}, 2 * gib},
		{"version 1", fstest.MapFS{
			"proc/meminfo": memory, "proc/self/cgroup": file("5:cpu:/x\n4:memory:/job\n"),
			"sys/fs/cgroup/memory/job/memory.limit_in_bytes": file("4294967296\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes":     file("9223372036854771712\n"),
		}, gib},
		{"a path that leads out", fstest.MapFS{"proc/meminfo": memory, "proc/self/cgroup": file("0::/../../x\nodd")}, 4 * gib},
		{"whole pages", fstest.MapFS{"proc/meminfo": file("MemTotal: 1000001 kB\n")}, 122 * 2 << 20},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := defaultRAM(test.root); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}
