package system_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What a person does with a directory of files.
func TestShellTools(t *testing.T) {
	t.Parallel()
	n, s := start(t), newLines(t, 250)
	n.create("d", s, "--ranks", "2", "--batch", "10")
	d, out := n.path("d"), t.TempDir()
	flat := out + "/flat"
	// 13 steps of 2 ranks, the last one short; 5 records fall to it each.
	must(t, os.WriteFile(flat, s.all(0, len(s.records)), 0o600))
	for _, tt := range []struct{ script, want string }{
		{`ls "$1"`, "chunks\ndataset.json\nlocality\nrank-0\nrank-1\n"},
		{`ls "$1/rank-1" | wc -l`, "26\n"},
		{`ls -f "$1/rank-1" | grep -vc '^\.'`, "26\n"},
		{`ls -l "$1/rank-0" | grep -c '^-r--r--r-- 1 root root '`, "26\n"},
		{`find "$1" -type f | wc -l`, "55\n"},
		{`find "$1" -type d | wc -l`, "3\n"},
		{`find "$1" -name 'batch-??????' -size +0 | wc -l`, "26\n"},
		{`for k in $(seq -f %06.0f 0 12); do cat "$1/rank-0/batch-$k" "$1/rank-1/batch-$k"; done | cmp - "$3" && echo same`, "same\n"},
		{`du -sb "$1/rank-0" | cut -f1`, fmt.Sprintln(dirBytes(t, d+"/rank-0"))},
		{`head -c 8 "$1/rank-0/batch-000000"`, "record 0"},
		{`tail -c 10 "$1/rank-1/batch-000012" | wc -c`, "10\n"},
		{`cp -r "$1" "$2/copy" && diff -r "$1" "$2/copy" && echo same`, "same\n"},
		{`(cd "$1" && sha256sum rank-*/batch-*) >"$2/sums" && (cd "$2/copy" && sha256sum --quiet -c "$2/sums") && echo same`, "same\n"},
		{`grep -rl --include='batch-??????' 'record 30[^0-9]' "$1" | sed 's,.*/d/,,'`, "rank-1/batch-000001\n"},
		{`getfattr --absolute-names -n user.rankfs.records --only-values "$1/rank-0/batch-000012"`, "5"},
		{`getfattr --absolute-names -d "$1/rank-0/batch-000000" | grep -c '^user\.rankfs\.\(records\|repeats\|epoch\|view\|plan\|tier\|hosts\|local\)='`, "8\n"},
		{`wc -c <"$1/rank-0/batch-000000"`, fmt.Sprintln(len(s.all(0, 10)))},
		{`od -An -t u8 -w8 "$1/rank-0/batch-000000.idx" | tail -1 | tr -d ' '`, fmt.Sprintln(len(s.all(0, 10)))},
		{`dd if="$1/rank-0/batch-000001" bs=7 skip=1 count=1 status=none`, string(s.all(20, 30)[7:14])},
		{`tar cf - -C "$1" rank-1 | tar tf - | wc -l`, "27\n"},
		{`grep -o '"records": [0-9]*' "$1/dataset.json"`, "\"records\": 250\n"},
		{`wc -l <"$1/locality"`, "27\n"},
		{`awk 'NR > 1 { n += $4 } END { print n }' "$1/locality"`, fmt.Sprintln(len(s.all(0, 250)))},
		{`wc -l <"$1/chunks"`, "2\n"},
		{`dd if="$1/chunks" bs=7 skip=1 count=1 status=none`, "f 1  of"},
		{`awk 'NR > 1 { print $1, $2, $3, $4, $5 }' "$1/chunks"`, fmt.Sprintln(0, 0, len(s.all(0, 250)), 0, 250)},
		{`awk 'NR > 1 { print $6 }' "$1/chunks"; hostname`, func() string { h := sh(t, "hostname"); return h + h }()},
		{`getfattr --absolute-names -d "$1" | grep ^user`, fmt.Sprintf("user.rankfs.bytes=\"%d\"\nuser.rankfs.chunks=\"1\"\nuser.rankfs.records=\"250\"\n", len(s.all(0, 250)))},
		{`stat -f -c %T "$1" >/dev/null && df "$1" >/dev/null && echo ok`, "ok\n"},
		{`cd "$1/rank-0" && pwd -P`, d + "/rank-0\n"},
		{`test -s "$1/../../.rankfs/status.json" && echo ok`, "ok\n"},
	} {
		if got := sh(t, tt.script, d, out, flat); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.script, got, tt.want)
		}
	}
}

func dirBytes(t testing.TB, dir string) (size int64) {
	for _, name := range list(t, dir) {
		info, err := os.Stat(filepath.Join(dir, name))
		must(t, err)
		size += info.Size()
	}
	return size
}

// A million batches, in short a tenth, are listed, searched and measured without one of them
// being made; and a listing can be left and taken up anywhere.
func TestListingFetchesNothing(t *testing.T) {
	t.Parallel()
	batches := rounds(1_000_000, 100_000)
	path := filepath.Join(t.TempDir(), "million")
	must(t, os.WriteFile(path, make([]byte, batches), 0o600))
	n := start(t)
	n.create("d", source{uri: "file:" + path + "?as=fixed:1"}, "--batch", "1")
	dir := n.path("d", "rank-0")

	f, err := os.Open(dir)
	must(t, err)
	defer f.Close()
	want := make([]byte, 0, 32)
	i := 0
	for {
		names, err := f.Readdirnames(8192)
		for _, name := range names {
			want = fmt.Appendf(want[:0], "batch-%06d", i/2)
			if i%2 == 1 {
				want = append(want, ".idx"...)
			}
			if name != string(want) {
				t.Fatalf("entry %d is %q, want %q", i, name, want)
			}
			i++
		}
		if err != nil {
			break
		}
	}
	if i != 2*batches {
		t.Errorf("%d entries, want %d", i, 2*batches)
	}
	if got := sh(t, `find "$1" -type f -name 'batch-07777?' | wc -l; ls -l "$1/batch-$2"* | wc -l`, dir, fmt.Sprintf("%06d", batches-1)); got != "10\n2\n" {
		t.Errorf("find and ls -l saw %q", got)
	}
	holdToSeeks(t, f, batches)
	if c := n.status().Counters; c.Fills != 0 || c.Opens != 0 || c.BatchReads != 0 {
		t.Errorf("a listing made batches: %+v", c)
	}
	if kib := n.resident(); !race && kib > 300<<10 {
		t.Errorf("the daemon has %d KiB resident after a listing", kib)
	}
}

// holdToSeeks goes to places that getdents reported, in any order.
func holdToSeeks(t *testing.T, d *os.File, batches int) {
	fd := int(d.Fd())
	for range 50 {
		at := rand.IntN(2 * batches) // of the entries but . and ..
		if _, err := unix.Seek(fd, int64(at)+2, 0); err != nil {
			t.Fatal(err)
		}
		name, next := dirent(t, fd)
		want := fmt.Sprintf("batch-%06d", at/2)
		if at%2 == 1 {
			want += ".idx"
		}
		if name != want || next != int64(at)+3 {
			t.Fatalf("after a seek to %d stands %q (next %d), want %q", at+2, name, next, want)
		}
	}
	_, err := unix.Seek(fd, int64(2*batches)+2, 0)
	must(t, err)
	if name, _ := dirent(t, fd); name != "" {
		t.Errorf("after the end stands %q", name)
	}
}

// dirent is the next entry of a directory and the place after it.
func dirent(t *testing.T, fd int) (name string, next int64) {
	buf := make([]byte, 1024)
	n, err := unix.Getdents(fd, buf)
	must(t, err)
	if n == 0 {
		return "", 0
	}
	for _, b := range slices.Backward(buf[8:16]) {
		next = next<<8 | int64(b)
	}
	length := int(buf[16]) | int(buf[17])<<8
	name, _, _ = strings.Cut(string(buf[19:length]), "\x00")
	return name, next
}

// resident is the memory of the daemon in KiB, without what it shares.
func (n *node) resident() (kib int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.PID()))
	must(n.t, err)
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			fmt.Sscan(rest, &kib)
		}
	}
	return kib
}

// Names that mean nothing are told from names that could never mean anything,
// and neither is ever EIO or a wait.
func TestOddNames(t *testing.T) {
	t.Parallel()
	n, s := start(t), newLines(t, 100)
	n.create("d", s, "--ranks", "2", "--batch", "10")
	long := strings.Repeat("a", 255)
	r := newRank(t)
	for errno, names := range map[string][]string{
		"": {
			"d/..", "d/.", "d/../d", "d/rank-0/../rank-1", "d//rank-0", "d/rank-0/", "d@epoch=18446744073709551615",
			"d@ranks=1048576", "d@batch=1099511627776,ranks=1", "d@order=full,seed=1", "d@order=window:2", "d@batch=chunk",
			"d@batch=1MiB", "d@tail=pad", "d@step=7",
		},
		"ENOENT": {
			"@", "@@", "@epoch=1", "nope", "nope@epoch=1", "D", "d ", " d", "d\n", "\xff\xfe", "\x01", "...", "-", "*", "d%",
			"d\u0301", long, "d@epoch=1/nope", "d/rank-2", "d/rank-00", "d/rank-01", "d/rank--1", "d/rank-+1", "d/rank-", "d/rank",
			"d/rank-0x0", "d/rank-18446744073709551616", "d/rank-\xff", "d/Rank-0", "d/" + long, "d/dataset.json ", "d/@",
			"d/rank-0/batch-0", "d/rank-0/batch-0000000", "d/rank-0/batch-00000", "d/rank-0/batch-000005", "d/rank-0/batch-99999999999999999999",
			"d/rank-0/batch--00001", "d/rank-0/batch-00000 ", "d/rank-0/batch-000000.idx.idx", "d/rank-0/batch-000000.id",
			"d/rank-0/batch-000000\n", "d/rank-0/batch-00000a", "d/rank-0/batch-", "d/rank-0/" + long, "d/rank-0/queue.idx", "d/queue",
		},
		"EINVAL": {
			"d@", "d@@", "d@epoch", "d@epoch=", "d@epoch=-1", "d@epoch=+1", "d@epoch=01", "d@epoch= 1", "d@epoch=1.5", "d@epoch=1e3",
			"d@epoch=18446744073709551616", "d@epoch=0x1", "d@epoch=\uff11", "d@epoch=1,", "d@,epoch=1", "d@epoch=1,epoch=1",
			"d@Epoch=1", "d@epoch=1@epoch=2", "d@wheels=4", "d@ranks=0", "d@ranks=1048577", "d@ranks=99999999999999999999",
			"d@batch=0", "d@batch=-1", "d@batch=1099511627777", "d@batch=1099511627776,ranks=2", "d@batch=0KiB", "d@batch=9999999TiB", "d@batch=64mib",
			"d@batch=5,step=5", "d@step=chunks", "d@order=window:1", "d@order=window:", "d@order=window:-1", "d@order=sideways", "d@order=FULL",
			"d@tail=wag", "d@seed=-1", "d@" + long[:253], "d@\xff=\xff", "d@epoch=\n",
		},
		"ENOTDIR":      {"d/dataset.json/", "d/dataset.json/x", "d/rank-0/batch-000000/x", "d/rank-0/batch-000000.idx/.."},
		"ENAMETOOLONG": {long + "a", "d@" + long, "d/" + long + "a", "d/rank-0/" + long + "a", strings.Repeat("d/../", 1000)},
	} {
		for _, name := range names {
			path := n.mount + "/datasets/" + name // not cleaned
			if got := r.errno("stat", path); got != errno {
				t.Errorf("stat %q: %q, want %q", name, got, errno)
			}
			if got := r.errno("open", path); got != errno {
				t.Errorf("open %q: %q, want %q", name, got, errno)
			}
		}
	}
	if c := n.status().Counters; c.Fills != 0 {
		t.Errorf("%d batches were made for names that do not exist", c.Fills)
	}
}

// Random operations on random paths, right and wrong, against a plain map of
// the files that should be there.
func TestRandomOperations(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	n, s := start(t), newLines(t, 130)
	n.create("d", s, "--ranks", "3", "--batch", "7")
	model := modelOf(n, s, map[string]int{"d": 3, "d@ranks=2": 2, "d@epoch=5,ranks=1": 1}, 21)
	paths := make([]string, 0, len(model))
	for p := range model {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	for range rounds(6000, 600) {
		path := paths[rnd.IntN(len(paths))]
		if rnd.IntN(4) == 0 {
			path = spoil(rnd, path)
		}
		if err := model.hold(rnd, path); err != nil {
			t.Fatalf("seed %d: %q: %v", seed, path, err)
		}
	}
}

// A model is all that the mount should show: the content of files, the names
// in directories.
type model map[string]any

func modelOf(n *node, s source, views map[string]int, global int) model {
	m := model{}
	for view, ranks := range views {
		dir := []string{"dataset.json", "locality", "chunks"}
		for rank := range ranks {
			name := fmt.Sprintf("rank-%d", rank)
			dir = append(dir, name)
			var names []string
			for k := 0; k*global < len(s.records); k++ {
				from, size := k*global, min(global, len(s.records)-k*global)
				low, high := from+size*rank/ranks, from+size*(rank+1)/ranks
				m[n.batch(view, rank, k)] = s.all(low, high)
				m[n.batch(view, rank, k)+".idx"] = offsets(s.records[low:high])
				base := filepath.Base(n.batch(view, rank, k))
				names = append(names, base, base+".idx")
			}
			m[n.path(view, name)] = names
		}
		m[n.path(view)] = dir
	}
	return m
}

func offsets(records [][]byte) []byte {
	table, at := make([]byte, 8), uint64(0)
	for _, r := range records {
		at += uint64(len(r))
		for shift := 0; shift < 64; shift += 8 {
			table = append(table, byte(at>>shift))
		}
	}
	return table
}

// spoil makes a path that does not exist out of one that does.
func spoil(rnd *rand.Rand, path string) string {
	switch rnd.IntN(4) {
	case 0:
		return path + string(rune('0'+rnd.IntN(10)))
	case 1:
		return path[:len(path)-1] + "\x80"
	case 2:
		return path + "/" + filepath.Base(path)
	}
	return filepath.Dir(path) + "/x" + filepath.Base(path)
}

// hold does one operation and compares. A path that the model does not have
// must not exist, unless it is another view's.
func (m model) hold(rnd *rand.Rand, path string) error {
	want, ok := m[path]
	if !ok {
		_, err := os.Lstat(path)
		_, parentIsFile := m[filepath.Dir(path)].([]byte)
		switch {
		case strings.Contains(filepath.Base(path), "@"), parentIsFile:
			if err == nil && parentIsFile {
				return fmt.Errorf("it exists below a file")
			}
		case !os.IsNotExist(err):
			return fmt.Errorf("it should not exist: %v", err)
		}
		return nil
	}
	names, isDir := want.([]string)
	info, err := os.Lstat(path)
	if err != nil || info.IsDir() != isDir {
		return fmt.Errorf("stat: %v, %v", info, err)
	}
	if isDir {
		d, err := os.Open(path)
		if err != nil {
			return err
		}
		defer d.Close()
		got, err := d.Readdirnames(-1)
		if !slices.Equal(got, names) {
			return fmt.Errorf("it lists %q (%v), want %q", got, err, names)
		}
		return nil
	}
	return holdFile(rnd, path, info.Size(), want.([]byte))
}

func holdFile(rnd *rand.Rand, path string, size int64, want []byte) error {
	if size != int64(len(want)) {
		return fmt.Errorf("st_size is %d, want %d", size, len(want))
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	from, to := rnd.IntN(len(want)+20), rnd.IntN(len(want)+20)
	from, to = min(from, to), max(from, to)
	buf := make([]byte, to-from)
	n, err := f.ReadAt(buf, int64(from))
	if part := want[min(from, len(want)):min(to, len(want))]; !bytes.Equal(buf[:n], part) {
		return fmt.Errorf("bytes %d to %d: %q (%v), want %q", from, to, buf[:n], err, part)
	}
	if len(want) == 0 || rnd.IntN(2) == 0 {
		return nil
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, len(want), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map: %w", err)
	}
	defer unix.Munmap(mem)
	if !bytes.Equal(mem, want) {
		return fmt.Errorf("it maps %q, want %q", mem, want)
	}
	return nil
}

// Nothing can be written, made, renamed or removed.
func TestWritesAreRefused(t *testing.T) {
	t.Parallel()
	n, s := start(t), newLines(t, 100)
	n.create("d", s, "--batch", "10")
	b := n.batch("d", 0, 0)
	dir := filepath.Dir(b)
	for what, f := range map[string]func() error{
		"open to write":  func() error { return openWith(b, unix.O_WRONLY) },
		"open to both":   func() error { return openWith(b, unix.O_RDWR) },
		"truncate":       func() error { return unix.Truncate(b, 0) },
		"create":         func() error { return openWith(dir+"/new", unix.O_CREAT|unix.O_WRONLY) },
		"mkdir":          func() error { return unix.Mkdir(n.path("new"), 0o755) },
		"unlink":         func() error { return unix.Unlink(b) },
		"rmdir":          func() error { return unix.Rmdir(dir) },
		"rename":         func() error { return unix.Rename(b, b+"x") },
		"rename dataset": func() error { return unix.Rename(n.path("d"), n.path("e")) },
		"link":           func() error { return unix.Link(b, dir+"/new") },
		"symlink":        func() error { return unix.Symlink("x", dir+"/new") },
		"mknod":          func() error { return unix.Mknod(dir+"/new", unix.S_IFIFO, 0) },
		"chmod":          func() error { return unix.Chmod(b, 0o777) },
		"chown":          func() error { return unix.Chown(b, 1, 1) },
		"setxattr":       func() error { return unix.Setxattr(b, "user.rankfs.records", []byte("1"), 0) },
		"removexattr":    func() error { return unix.Removexattr(b, "user.rankfs.records") },
		"utimes":         func() error { return unix.Utimes(b, make([]unix.Timeval, 2)) },
	} {
		if err := f(); err != unix.EROFS {
			t.Errorf("%s: %v, want EROFS", what, err)
		}
	}
	f, err := os.Open(b)
	must(t, err)
	defer f.Close()
	if _, err := unix.Mmap(int(f.Fd()), 0, 10, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != unix.EACCES {
		t.Errorf("map to write: %v, want EACCES", err)
	}
	// By way of /proc the file cannot be opened to write either.
	if err := openWith(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), unix.O_RDWR); err != unix.EROFS {
		t.Errorf("open /proc/self/fd to write: %v, want EROFS", err)
	}
	if r := newRank(t); r.batch(b) != sumOf(s.all(0, 10)) {
		t.Error("the batch has changed")
	}
}

func openWith(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o644)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// Looking a view up makes it. Thousands of lookups by another process cost the
// daemon next to nothing, and a rank that reads does not notice them.
func TestStrangersLookups(t *testing.T) {
	t.Parallel()
	lookups := rounds(5000, 1500)
	n, s := start(t), newFixed(t, 400, recordSize)
	n.create("d", s, "--batch", "4")
	r := newRank(t)
	r.open("mine", n.batch("d", 0, 0))
	r.do("map", "mine")
	cwd, err := os.Open(n.path("d", "rank-0")) // a listing half read
	must(t, err)
	defer cwd.Close()
	_, err = cwd.Readdirnames(10)
	must(t, err)
	before := n.resident()
	for i := range lookups {
		view := fmt.Sprintf("d@seed=%d,order=full,ranks=%d", i, 1+i%1000*1000)
		if _, err := os.Lstat(n.path(view, "rank-0")); err != nil {
			t.Fatal(err)
		}
		if k := i / 50; i%50 == 0 && r.batch(n.batch("d", 0, k)) != sumOf(s.all(4*k, 4*k+4)) {
			t.Fatalf("batch %d has other bytes after %d lookups", k, i)
		}
	}
	c := n.status().Counters
	if c.Views > 1024 {
		t.Errorf("%d views are remembered", c.Views)
	}
	if grown := n.resident() - before; !race && grown > 64<<10 {
		t.Errorf("%d lookups took %d KiB", lookups, grown)
	}
	if r.do("sum", "mine").Sum != sumOf(s.all(0, 4)) {
		t.Error("a mapped batch has other bytes")
	}
	if rest, err := cwd.Readdirnames(-1); err != nil || len(rest) != 200-10 {
		t.Errorf("the listing goes on with %d names: %v", len(rest), err)
	}
	// What was forgotten is found again by its name.
	if _, err := os.Lstat(n.path("d@seed=0,order=full,ranks=1", "rank-0", "batch-000000")); err != nil {
		t.Error(err)
	}
}
