package system_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"rankfs/test/eventually"
)

// Ranks that hold more together than there is memory for: that is said when the
// dataset is made and shown, by plan and explain, by simulate, which predicts nothing,
// and by the log, status and stall as soon as an open finds no room beside the others.
// That open waits for them, as it cannot be known that they do not close.
func TestRanksNeedMoreThanMemory(t *testing.T) {
	t.Parallel()
	const ranks, records = 8, 1024 // 4 MiB a batch
	n, s := start(t, "--ram", "16MiB"), newFixed(t, ranks*records, recordSize)
	made := n.ok("dataset", "create", "d", "--source", s.uri, "--ranks", fmt.Sprint(ranks), "--batch", fmt.Sprint(records))
	for _, said := range []string{made.out, n.ok("dataset", "show", "d").out, n.ok("plan", "d").out, n.ok("explain", "d").out} {
		said = strings.Join(strings.Fields(said), " ")
		if !strings.Contains(said, "8 ranks on a node, each with a batch of 4MiB, need 32MiB together, and there are 16MiB") || !strings.Contains(said, "--ram 32MiB") {
			t.Errorf("it is not said that the ranks do not fit:\n%s", said)
		}
	}
	if r := n.cli("simulate", "d"); r.code == 0 || !strings.Contains(r.err, "need 32 MiB together") {
		t.Errorf("simulate predicts what cannot be: %v", r)
	}
	if said := n.ok("plan", "d@ranks=4,batch=1024").out; strings.Contains(said, "together") {
		t.Errorf("4 ranks do fit:\n%s", said)
	}
	all := make([]*rank, ranks)
	for i := range all {
		all[i] = newRank(t)
	}
	for i := range 4 {
		all[i].open("b", n.batch("d", i, 0))
	}
	fifth := make(chan answer, 1)
	go func() { fifth <- all[4].try(order{Do: "open", Name: "b", Path: n.batch("d", 4, 0)}) }()
	const held = "ranks hold or map 16777216 bytes of memory, in 4 open batches, and another of 4194304 bytes does not fit beside them"
	eventually.True(t, "the log says how much memory there should be", func() bool {
		return n.logged(held, "or mount with --ram 32MiB or more, add --nvme") > 0
	})
	for by, says := range map[string]func() string{
		"status": func() string { return n.ok("status").out }, "stall": func() string { return n.ok("stall", "d").out },
		"explain": func() string { return n.ok("explain", "d").out }, "health": func() string { return sh(t, `cat "$1/.rankfs/health"`, n.mount) },
	} {
		var said string
		eventually.True(t, by+" says what the open waits for", func() bool { // it is looked at once a second, or later
			said = strings.Join(strings.Fields(says()), " ")
			return strings.Contains(said, held)
		})
		for _, advice := range regexp.MustCompile(`--ram \w+`).FindAllString(said, -1) {
			if advice != "--ram 32MiB" {
				t.Errorf("%s is advised, all ranks need 32MiB:\n%s", advice, said)
			}
		}
	}
	all[0].well(order{Do: "close", Name: "b"})
	if a := <-fifth; a.Errno != "" {
		t.Fatalf("open of the fifth rank: %+v", a)
	}
	if got, want := all[4].do("read", "b").Sum, sumOf(s.all(4*records, 5*records)); got != want {
		t.Errorf("the fifth rank reads %s, want %s", got, want)
	}
}

// The memory that is advised is enough, whichever command says it, also where batches end within
// a page and where one step is larger than the others.
func TestRanksHaveTheMemoryThatIsAdvised(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name           string
		ranks, batch   int
		source         func() string
		small, advised string
	}{
		{"pages", 7, 3, func() string { return newFixed(t, 21, 1000003).uri }, "20508KiB", "20524KiB"},
		{"one large step", 4, 4, func() string {
			tree := t.TempDir()
			for i := range 160 {
				size := 64 << 10
				if i < 16 {
					size = 4 << 20
				}
				must(t, os.WriteFile(fmt.Sprintf("%s/%03d", tree, i), make([]byte, size), 0o644))
			}
			return "file:" + tree + "?as=files"
		}, "32MiB", "64MiB"},
	} {
		t.Run(test.name, func(t *testing.T) {
			uri := test.source()
			create := []string{"dataset", "create", "d", "--source", uri, "--ranks", fmt.Sprint(test.ranks), "--batch", fmt.Sprint(test.batch)}
			n := start(t, "--ram", test.small)
			made, simulated := n.ok(create...), n.cli("simulate", "d")
			readers := make([]*rank, test.ranks)
			for i := range readers {
				readers[i] = newRank(t)
			}
			for i, r := range readers {
				r.send(order{Do: "open", Name: "b", Path: n.batch("d", i, 0)})
			}
			eventually.True(t, "an open finds no room", func() bool { return n.logged("an open waits for room") > 0 })
			if n.logged("an open waits for room", "dataset=d ") == 0 || n.logged("an open waits for room", "ino=") > 0 {
				t.Errorf("the log does not name the dataset:\n%s", n.Log())
			}
			health := func() string { return sh(t, `cat "$1/.rankfs/health"`, n.mount) }
			eventually.True(t, "health says so", func() bool { return strings.Contains(health(), "--ram") })
			advice := regexp.MustCompile(`--ram (\w+)`)
			for i, says := range []func() string{
				func() string { return made.out }, func() string { return n.ok("plan", "d").out }, func() string { return simulated.err },
				func() string { return n.ok("explain", "d").out }, func() string { return n.ok("stall", "d").out }, health, n.Log,
			} {
				var said string
				var all [][]string
				eventually.True(t, fmt.Sprint(i, " advises something"), func() bool { // it is looked at once a second, or later
					said = says()
					all = advice.FindAllStringSubmatch(said, -1)
					return len(all) > 0
				})
				for _, a := range all {
					if a[1] != test.advised {
						t.Errorf("%d advises %s, not %s:\n%s", i, a[1], test.advised, said)
					}
				}
			}
			for _, r := range readers {
				r.kill()
			}
			n.ok("simulate", "d", "--ram", test.advised)

			n = start(t, "--ram", test.advised)
			n.ok(create...)
			for i := range test.ranks {
				newRank(t).open("b", n.batch("d", i, 0))
			}
		})
	}
}

// A batch that does not fit at all is a case of it: all commands say the same, before an
// open and after one, and the memory that they advise is enough.
func TestBatchLargerThanMemory(t *testing.T) {
	t.Parallel()
	const records = 8192 // 32 MiB a batch
	for _, test := range []struct {
		ranks         int
		said, advised string
	}{
		{1, "a rank, with a batch of 32MiB, needs 32MiB, and there are 16MiB: mount with --ram 32MiB or more", "32MiB"},
		{2, "2 ranks on a node, each with a batch of 32MiB, need 64MiB together, and there are 16MiB: mount with --ram 64MiB or more", "64MiB"},
	} {
		t.Run(fmt.Sprint(test.ranks), func(t *testing.T) {
			n, s := start(t, "--ram", "16MiB"), newFixed(t, 4*records, recordSize)
			create := []string{"dataset", "create", "d", "--source", s.uri, "--ranks", fmt.Sprint(test.ranks), "--batch", fmt.Sprint(records)}
			made, simulated := n.ok(create...), n.cli("simulate", "d")
			if simulated.code != 1 || !strings.Contains(simulated.err, "--ram "+test.advised+" or more") {
				t.Errorf("simulate says %v", simulated)
			}
			if a := newRank(t).try(order{Do: "open", Name: "b", Path: n.batch("d", 0, 0)}); a.Errno != "ENOSPC" {
				t.Errorf("open: %+v", a)
			}
			for i, said := range []string{
				made.out, n.ok("dataset", "show", "d").out, n.ok("plan", "d").out, n.ok("explain", "d").out,
				n.ok("status").out, sh(t, `cat "$1/.rankfs/health"`, n.mount), n.ok("stall", "d").out, n.Log(),
			} {
				said = strings.Join(strings.Fields(said), " ")
				if !strings.Contains(said, test.said) {
					t.Errorf("%d does not say it:\n%s", i, said)
				}
				for _, advice := range regexp.MustCompile(`--ram \w+`).FindAllString(said, -1) {
					if advice != "--ram "+test.advised {
						t.Errorf("%d advises %s:\n%s", i, advice, said)
					}
				}
			}
			n = start(t, "--ram", test.advised)
			n.ok(create...)
			for i := range test.ranks {
				newRank(t).open("b", n.batch("d", i, 0))
			}
		})
	}
}

// Ranks that open the next batch while they have the last one open, where there is
// room for one each: the first that cannot go on is refused, as all wait for each
// other, and then the others go on.
func TestRanksThatWaitForEachOther(t *testing.T) {
	t.Parallel()
	const ranks, records = 4, 1024 // 4 MiB a batch
	n, s := start(t, "--ram", "16MiB"), newFixed(t, 2*ranks*records, recordSize)
	said := n.ok("dataset", "create", "d", "--source", s.uri, "--ranks", fmt.Sprint(ranks), "--batch", fmt.Sprint(records)).out
	if said = strings.Join(strings.Fields(said), " "); !strings.Contains(said, "not where each opens the next batch before it lets go of the last") || !strings.Contains(said, "--ram 32MiB") {
		t.Errorf("it is not said that there is no room for two batches each:\n%s", said)
	}
	// Each has its first batch before any opens its second: they wait for a line.
	shells, lines := make([]*exec.Cmd, ranks), make([]io.WriteCloser, ranks)
	errs := make([]bytes.Buffer, ranks)
	for i := range ranks {
		shells[i] = exec.CommandContext(t.Context(), "sh", "-c", `exec 3<"$1"; echo; read -r line; exec 4<"$2"`, "sh", n.batch("d", i, 0), n.batch("d", i, 1))
		shells[i].Stderr = &errs[i]
		var err error
		if lines[i], err = shells[i].StdinPipe(); err != nil {
			t.Fatal(err)
		}
		out, err := shells[i].StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := shells[i].Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Fatalf("rank %d: %v: %s", i, err, &errs[i])
		}
	}
	for _, l := range lines {
		if _, err := l.Write([]byte("go on\n")); err != nil {
			t.Fatal(err)
		}
	}
	refused := 0
	for i, shell := range shells {
		if err := shell.Wait(); err != nil {
			refused++
			if !strings.Contains(errs[i].String(), "No space left on device") {
				t.Errorf("rank %d: %v: %s", i, err, &errs[i])
			}
		}
	}
	if refused == 0 || n.logged("those who hold them wait in opens themselves", "close and unmap a batch before the next is opened") == 0 {
		t.Errorf("%d of %d ranks were refused:\n%s", refused, ranks, n.Log())
	}
}
