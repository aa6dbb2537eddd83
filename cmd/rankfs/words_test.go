package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/spf13/pflag"

	"rankfs/cmd/internal/control"
	"rankfs/meta"
)

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 10 << 10: "10 KiB", 1 << 20: "1.0 MiB",
		1<<20 - 1: "1.0 MiB", 5 << 29: "2.5 GiB", 1 << 62: "4.0 EiB", -1: "-1 B",
	} {
		if got := size(n); got != want {
			t.Errorf("size(%d) = %s, want %s", n, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := count(n); got != want {
			t.Errorf("count(%d) = %s, want %s", n, got, want)
		}
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 59 * time.Second: "59s", 61 * time.Second: "1m 01s", 3600 * time.Second: "1h 00m", 49 * time.Hour: "2d 01h",
	} {
		if got := span(d); got != want {
			t.Errorf("span(%v) = %s, want %s", d, got, want)
		}
	}
}

// Of many nodes some are shown, and it is said how many are not.
func TestManyPeers(t *testing.T) {
	var text bytes.Buffer
	writePeers(&text, &control.Peers{Nodes: slices.Repeat([]control.Peer{{Host: "node7"}}, maxPeers+3)})
	if lines := strings.Count(text.String(), "node7"); lines != maxPeers || !strings.HasSuffix(text.String(), "  and 3 others; see: rankfs status --json\n") {
		t.Errorf("%d of %d nodes: %s", lines, maxPeers+3, text.String())
	}
}

func TestWrap(t *testing.T) {
	if got := wrap("one two  three\nfour", 9, "  "); got != "one two\n  three\n  four" {
		t.Errorf("got %q", got)
	}
	if got := wrap("averylongword x", 3, ""); got != "averylongword\nx" {
		t.Errorf("got %q", got)
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

func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{0: "0.0%", 0.5: "50.0%", 0.99999: "99.9%", 1: "100%"} {
		if got := percent(share); got != want {
			t.Errorf("percent(%v) = %s, want %s", share, got, want)
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

func TestExitCodes(t *testing.T) {
	for kind, want := range map[error]int{
		nil: 0, errors.New("x"): 1, meta.ErrNoSpace: 1, errUsage: 2, meta.ErrInvalid: 2, meta.ErrNotExist: 3,
		meta.ErrExist: 4, meta.ErrBusy: 4, meta.ErrStale: 5, meta.ErrCorrupt: 5, context.Canceled: 130,
	} {
		err := kind
		if kind != nil {
			err = hint(fmt.Errorf("open x: %w", kind), "do y")
		}
		if got := exitCode(err); got != want {
			t.Errorf("%v: exit code %d, want %d", err, got, want)
		}
	}
	// What a background child reports is what its parent ends with.
	if got := exitCode(hinted{toldError{outcome{Code: 4}}, "x"}); got != 4 {
		t.Errorf("told: exit code %d", got)
	}
}

func TestReportIsOneLineAndAHint(t *testing.T) {
	var out bytes.Buffer
	p := &program{err: &out}
	if code := p.report(hint(failf(meta.ErrBusy, "x"), "a\nb")); code != 4 || out.String() != "rankfs: x\n  a\n  b\n" {
		t.Errorf("got %d, %q", code, out.String())
	}
}

func TestParseHelper(t *testing.T) {
	base := defaultMountOptions()
	with := func(change func(*mountOptions)) mountOptions { o := base; change(&o); return o }
	tests := []struct {
		name string
		args string
		want helperCall
		bad  string
	}{
		{name: "least", args: "none /m", want: helperCall{dir: "/m", options: base}},
		{name: "as mount(8) calls it", args: "none /m -o rw", want: helperCall{dir: "/m", options: base}},
		{name: "flags together", args: "none /m -sfnv", want: helperCall{dir: "/m", fake: true, sloppy: true, verbose: true, options: base}},
		{name: "flags first", args: "-v -t fuse.rankfs none /m", want: helperCall{dir: "/m", verbose: true, options: base}},
		{name: "value beside its flag", args: "none /m -nostate=/s", want: helperCall{dir: "/m", options: with(func(o *mountOptions) { o.state = "/s" })}},
		{name: "all of ours", args: "none /m -o state=/s,nvme=/n:1TiB,nvme=/m:2TiB,nvme-floor=9%,ram=1GiB,allow_other,private,admin-group=7,uid=1,gid=2,umask=077,log-level=warn",
			want: helperCall{dir: "/m", options: mountOptions{state: "/s", nvme: []string{"/n:1TiB", "/m:2TiB"}, nvmeFloor: "9%", ram: "1GiB", private: true, adminGroup: "7", uid: 1, gid: 2, umask: "077", logLevel: "warn"}}},
		{name: "all of theirs", args: "none /m -o defaults,ro,_netdev,nofail,noauto,user,nosuid,nodev,noexec,noatime,x-systemd.requires=/a,comment=x",
			want: helperCall{dir: "/m", options: base}},
		{name: "quoted", args: `none /m -o state="/a,b",ro`, want: helperCall{dir: "/m", options: with(func(o *mountOptions) { o.state = "/a,b" })}},
		{name: "twice", args: `none /m -o ro -o uid=3`, want: helperCall{dir: "/m", options: with(func(o *mountOptions) { o.uid = 3 })}},
		{name: "sloppy", args: `none /m -s -o colour=blue,,,`, want: helperCall{dir: "/m", sloppy: true, options: base}},
		{name: "no directory", args: "none", bad: "want SPEC and DIR"},
		{name: "three names", args: "a b c", bad: "want SPEC and DIR"},
		{name: "unknown option", args: "none /m -o colour=blue", bad: `option "colour=blue": there is no such option`},
		{name: "unknown flag", args: "none /m -z", bad: "no such option: -z"},
		{name: "flag without value", args: "none /m -o", bad: "-o needs a value"},
		{name: "namespace", args: "none /m -N /proc/1/ns/mnt", bad: "-N is not supported"},
		{name: "remount", args: "none /m -o remount", bad: `option "remount"`},
		{name: "value missing", args: "none /m -o state", bad: `option "state"`},
		{name: "value too many", args: "none /m -o allow_other=1", bad: `option "allow_other=1"`},
		{name: "relative", args: "none /m -o state=s", bad: "starts with /"},
		{name: "negative", args: "none /m -o uid=-1", bad: "use a number"},
		{name: "huge", args: "none /m -o gid=4294967296", bad: "use a number"},
		{name: "open quote", args: `none /m -o state="/a`, bad: "a quote is not closed"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := parseHelper(strings.Fields(test.args))
			switch {
			case test.bad == "" && (err != nil || !reflect.DeepEqual(got, test.want)):
				t.Errorf("got %+v, %v, want %+v", got, err, test.want)
			case test.bad != "" && (err == nil || !strings.Contains(err.Error(), test.bad)):
				t.Errorf("got %v, want %q", err, test.bad)
			case test.bad != "" && exitCode(err) != exitUsage:
				t.Errorf("exit code %d", exitCode(err))
			}
		})
	}
}

// What the helper accepts, its child must understand as the same.
func FuzzParseHelper(f *testing.F) {
	for _, s := range []string{"rw", "state=/a,nvme=/b:1TiB", `state="/a,b",uid=3,gid=4,umask=0`, "ram=1GiB,allow_other", "private,admin-group=7", "nvme=/a:b:2B,nvme=/c:1GiB,nvme-floor=7.5%,log-level=error", "nvme-floor=1GiB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, options string) {
		call, err := parseHelper([]string{"none", "/mnt", "-o", options})
		if err != nil {
			if exitCode(err) != exitUsage {
				t.Fatalf("%q: %v has exit code %d", options, err, exitCode(err))
			}
			return
		}
		o, dir, err := call.options.complete(call.dir)
		if err != nil {
			return
		}
		want, err := o.config(dir)
		if err != nil {
			t.Fatalf("%q: complete options are not valid: %v", options, err)
		}
		child, args := defaultMountOptions(), o.args(dir)
		flags := pflag.NewFlagSet("mount", pflag.ContinueOnError)
		flags.Int("ready-fd", -1, "")
		child.flags(flags)
		if err := flags.Parse(args[1:]); err != nil || flags.NArg() != 1 {
			t.Fatalf("%q: the child refuses %q: %v", options, args, err)
		}
		if got, err := child.config(flags.Arg(0)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: the child of %q has %+v, %v, want %+v", options, args, got, err, want)
		}
	})
}
