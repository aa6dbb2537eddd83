package system_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What include/dli.h says of a table is held to what this file says of it.

// A dliChunk is a line of the table.
type dliChunk struct {
	offset, bytes, first, records uint64
	hosts                         string
}

// dliProcesses and dliOffsets are what each table is asked for.
var (
	dliProcesses = []string{"data1", "data2.example.com", "-", "nowhere"} // - is this host
	dliOffsets   = []uint64{0, 1, 99, 100, 1 << 26, 1<<64 - 1}
)

// dliTable writes a table as rankfs does.
func dliTable(chunks []dliChunk) []byte {
	b := fmt.Appendf(nil, "chunk of %6d  %20s  %20s  %20s  %20s  %-40s\n", len(chunks), "offset", "bytes", "first", "records", "hosts")
	for i, c := range chunks {
		b = fmt.Appendf(b, "%15d  %20d  %20d  %20d  %20d  %-40s\n", i, c.offset, c.bytes, c.first, c.records, c.hosts)
	}
	return b
}

// follow lets the chunks follow one another.
func follow(chunks []dliChunk) []dliChunk {
	for i := range chunks[min(1, len(chunks)):] {
		chunks[i+1].offset, chunks[i+1].first = chunks[i].offset+chunks[i].bytes, chunks[i].first+chunks[i].records
	}
	return chunks
}

var (
	dliTitle = regexp.MustCompile(`^chunk of +([0-9]+) [^\n]*\n`)
	dliLine  = regexp.MustCompile(`^ *([0-9]+) +([0-9]+) +([0-9]+) +([0-9]+) +([0-9]+) +([!-~]+) *\n$`)
)

// readTable is the other reader of tables: false if one is damaged.
func readTable(text []byte) (chunks []dliChunk, ok bool) {
	title := dliTitle.FindSubmatch(text[:min(len(text), 64<<10)])
	if title == nil {
		return nil, false
	}
	width := len(title[0])
	n, err := strconv.ParseUint(string(title[1]), 10, 64)
	if err != nil || len(text)%width != 0 || uint64(len(text)/width-1) != n {
		return nil, false
	}
	var offset, first uint64
	for i := range n {
		line := dliLine.FindSubmatch(text[(i+1)*uint64(width) : (i+2)*uint64(width)])
		if line == nil {
			return nil, false
		}
		var v [5]uint64
		for k := range v {
			if v[k], err = strconv.ParseUint(string(line[k+1]), 10, 64); err != nil {
				return nil, false
			}
		}
		if v[0] != i || v[1] != offset || v[3] != first || offset+v[2] < offset || first+v[4] < first {
			return nil, false
		}
		offset, first = offset+v[2], first+v[4]
		chunks = append(chunks, dliChunk{v[1], v[2], v[3], v[4], string(line[6])})
	}
	return chunks, true
}

// isOn is by exact names: of a table that is none of a mount nothing else is known.
func (c dliChunk) isOn(process string) bool {
	for h := range strings.SplitSeq(c.hosts, ",") {
		if h != "" && c.hosts != "-" && h == process {
			return true
		}
	}
	return false
}

// dliList is what dli_calls prints of the chunks that are local to a process.
func dliList(chunks []dliChunk, process string) (text string, bytes, n uint64) {
	for i, c := range chunks {
		if c.isOn(process) {
			text += fmt.Sprintf(" %d:%d+%d:%d+%d", i, c.offset, c.bytes, c.first, c.records)
			bytes, n = bytes+c.bytes, n+1
		}
	}
	return text, bytes, n
}

func dliMap(name string, chunks []dliChunk) string {
	var end dliChunk
	if len(chunks) > 0 {
		end = chunks[len(chunks)-1]
	}
	text := fmt.Sprintf(" %s %d,%d,%d {", name, len(chunks), end.offset+end.bytes, end.first+end.records)
	for _, p := range dliProcesses {
		list, _, _ := dliList(chunks, p)
		text += " (" + list + " )"
	}
	return text + " }"
}

// dliAnswers is all that dli_calls prints of a dataset.
func dliAnswers(t testing.TB, path string, chunks []dliChunk) string {
	here, err := os.Hostname()
	must(t, err)
	text := path + ":"
	percent := func(part, whole uint64) float64 {
		if whole == 0 {
			return 0
		}
		return 100 * float64(part) / float64(whole)
	}
	var end uint64
	for _, c := range chunks {
		end += c.bytes
	}
	for _, p := range dliProcesses {
		if p == "-" {
			p = here
		}
		list, bytes, n := dliList(chunks, p)
		text += fmt.Sprintf(" list%s percent %.3f %.3f;", list, percent(bytes, end), percent(n, uint64(len(chunks))))
	}
	for _, at := range dliOffsets {
		i := slices.IndexFunc(chunks, func(c dliChunk) bool { return c.offset <= at && at-c.offset < c.bytes })
		switch {
		case i < 0:
			text += " at error 6;" // ENXIO
		case chunks[i].isOn(here):
			text += " at here;"
		default:
			text += " at elsewhere;"
		}
	}
	return text + " map" + dliMap(filepath.Base(path), chunks) + "\n"
}

// dliErrors is what it prints of what is no dataset.
func dliErrors(path string, errno unix.Errno) string {
	text := path + ":"
	for range dliProcesses {
		text += fmt.Sprintf(" list error %d total error %d percent error %d;", errno, errno, errno)
	}
	for range dliOffsets {
		text += fmt.Sprintf(" at error %d;", errno)
	}
	return text + fmt.Sprintf(" map error %d\n", errno)
}

var dliAt = regexp.MustCompile(` at \w+( \d+)?;`)

// holdDLI asks for all there is to say of some paths: as C, as C++, and under
// sanitizers. A byte is looked up without reading all of the table, so its place
// may be found in one that is damaged elsewhere.
func holdDLI(t *testing.T, paths []string, want string) {
	t.Helper()
	offsets := strings.Trim(strings.ReplaceAll(fmt.Sprint(dliOffsets), " ", ","), "[]")
	for _, bin := range []string{"dli_calls_san", "dli_calls", "dli_calls_cxx"} {
		got := program(t, append([]string{programs + "bin/" + bin, strings.Join(dliProcesses, ","), offsets}, paths...)...)
		wants := strings.SplitAfter(want, "\n")
		for i, line := range strings.SplitAfter(got, "\n") {
			if i < len(wants) && strings.Contains(wants[i], "map error 71") {
				line, wants[i] = dliAt.ReplaceAllString(line, ""), dliAt.ReplaceAllString(wants[i], "")
			}
			if i >= len(wants) || line != wants[i] {
				t.Fatalf("%s, line %d:\n got %swant %s", bin, i, line, wants[min(i, len(wants)-1)])
			}
		}
	}
}

// newTable puts a table where a dataset's would be.
func newTable(t testing.TB, dir, name string, table []byte) (path string) {
	t.Helper()
	path = filepath.Join(dir, name)
	must(t, os.MkdirAll(path, 0o755))
	must(t, os.WriteFile(filepath.Join(path, "chunks"), table, 0o644))
	return path
}

func someTables(t testing.TB) map[string][]dliChunk {
	here, err := os.Hostname()
	must(t, err)
	var many []dliChunk
	for i := range 1500 { // more than are read at once
		many = append(many, dliChunk{bytes: uint64(i % 7), records: 1, hosts: fmt.Sprintf("data%d,%s,data3", i%5, here)})
	}
	return map[string][]dliChunk{
		"none":  {},
		"one":   {{bytes: 100, records: 1, hosts: "data1"}},
		"empty": {{bytes: 0, records: 5, hosts: "data1"}},
		"hosts": {
			{bytes: 50, records: 3, hosts: "data1,data2"},
			{bytes: 0, records: 1, hosts: "data1"},
			{bytes: 50, records: 3, hosts: "data2.example.com," + here},
			{bytes: 7, records: 0, hosts: "data1.example.com"},
			{bytes: 1 << 27, records: 9, hosts: "-"},
			{bytes: 1, records: 9, hosts: ",,data11,data,ata1,"},
		},
		"many": many,
		"last": {{bytes: 1<<64 - 2, records: 1<<64 - 2, hosts: here}, {bytes: 1, records: 1, hosts: "data2"}},
	}
}

func TestDLIAnswers(t *testing.T) {
	t.Parallel()
	dir, want := t.TempDir(), ""
	var paths []string
	for name, chunks := range someTables(t) {
		follow(chunks)
		path := newTable(t, dir, name, dliTable(chunks))
		paths, want = append(paths, path), want+dliAnswers(t, path, chunks)
	}
	holdDLI(t, paths, want)
}

// A directory is every dataset in it, and nothing else that is there.
func TestDLIDirectory(t *testing.T) {
	t.Parallel()
	dir, tables := t.TempDir(), someTables(t)
	for name, chunks := range tables {
		newTable(t, dir, name, dliTable(follow(chunks)))
	}
	newTable(t, dir, ".hidden", []byte("no table"))
	must(t, os.WriteFile(filepath.Join(dir, "chunks"), []byte("no dataset"), 0o644))
	must(t, os.Mkdir(filepath.Join(dir, "empty directory"), 0o755))
	want := dir + "/:"
	for _, name := range list(t, dir) {
		if chunks, ok := tables[name]; ok {
			want += dliMap(name, chunks)
		}
	}
	holdDLI(t, []string{dir + "/"}, want+"\n")
	newTable(t, dir, "damaged", []byte("no table"))
	holdDLI(t, []string{dir + "/", dir + "/empty directory/", dir + "/nowhere/"},
		fmt.Sprintf("%s/: error 71\n%[1]s/empty directory/:\n%[1]s/nowhere/: error 2\n", dir))
}

func TestDLIRefusesHostileTables(t *testing.T) {
	t.Parallel()
	good := dliTable(follow(slices.Clone(someTables(t)["hosts"])))
	width := bytes.IndexByte(good, '\n') + 1
	change := func(old, new string) []byte {
		b := bytes.Replace(good, []byte(old), []byte(new), 1)
		if bytes.Equal(b, good) {
			t.Fatalf("there is no %q", old)
		}
		return b
	}
	row := func(text string) []byte { // a table of one such line
		return fmt.Appendf(nil, "chunk of 1  %-*s\n%s\n", len(text)-12, "", text)
	}
	dir, want := t.TempDir(), ""
	var paths []string
	for name, table := range map[string][]byte{
		"nothing":                  {},
		"no line":                  good[:width-1],
		"cut in a line":            good[:len(good)-10],
		"cut before a newline":     good[:len(good)-1],
		"cut after a line":         good[:len(good)-width],
		"cut to its title":         good[:width],
		"a line too many":          append(slices.Clone(good), good[len(good)-width:]...),
		"a byte too many":          append(slices.Clone(good), '\n'),
		"no title":                 good[width:],
		"a title without a number": change("of      6", "of       "),
		"another number":           change("of      6", "of      7"),
		"a number that overflows":  []byte("chunk of 18446744073709551616 \n"),
		"as many as there can be":  []byte("chunk of 18446744073709551615 \n"),
		"one less":                 []byte("chunk of 18446744073709551614 \n"),
		"a negative number":        []byte("chunk of -1 \n"),
		"a number at the end":      []byte("chunk of 0\n"),
		"the beginning of a title": []byte("chunk of\n"),
		"a title of blanks":        []byte("chunk of          \n"),
		"a line that is too long":  []byte("chunk of 0 " + strings.Repeat(" ", 64<<10) + "\n"),
		"zeros":                    make([]byte, 1<<17),
		"newlines":                 bytes.Repeat([]byte("\n"), 1<<17),
		"CRLF":                     bytes.ReplaceAll(good, []byte(" \n"), []byte("\r\n")),
		"a zero byte":              change("data1", "dat\x001"),
		"a byte past ASCII":        change("data1", "dat\xff1"),
		"words after the hosts":    change("data1,", "data1 "),
		"lines of two lengths":     change("data1 ", "data1"),
		"a newline in a line":      change("data1 ", "data1\n"),
		"chunks in another order":  append(append(slices.Clone(good[:width]), good[2*width:3*width]...), good[width:2*width]...),
		"no hosts":                 row("0  0  1  0  1            "),
		"no records":               row("0  0  1  0               "),
		"a gap":                    row("0  1  1  0  1  host      "),
		"a gap of records":         row("0  0  1  1  1  host      "),
		"not the first":            row("1  0  1  0  1  host      "),
		"a hex number":             row("0  0  0x1  0  1  host    "),
		"a sign":                   row("0  +0  1  0  1  host     "),
		"a fraction":               row("0  0  1.5  0  1  host    "),
		"tabs":                     row("0\t0\t1\t0\t1\thost          "),
		"bytes that overflow":      row("0  0  18446744073709551616  0  1  host"),
		"more bytes than count":    append(change("of      6", "of      1")[:width], fmt.Appendf(nil, "%-*s\n", width-1, "0 1 18446744073709551615 0 1 host")...),
		"long numbers":             row("0  0  " + strings.Repeat("9", 1000) + "  0  1  host"),
	} {
		if _, ok := readTable(table); ok {
			t.Errorf("%s: is a table", name)
		}
		path := newTable(t, dir, name, table)
		paths, want = append(paths, path), want+dliErrors(path, unix.EPROTO)
	}
	// What is no file, or longer than any disk.
	for name, make := range map[string]func(path string) error{
		"pipe":      func(p string) error { return unix.Mkfifo(p, 0o600) },
		"directory": func(p string) error { return os.Mkdir(p, 0o700) },
		"device":    func(p string) error { return os.Symlink("/dev/zero", p) },
		"sparse":    func(p string) error { return os.Truncate(p, 1<<43) },
	} {
		path := newTable(t, dir, name, nil)
		chunks := filepath.Join(path, "chunks")
		if name != "sparse" {
			must(t, os.Remove(chunks))
		}
		must(t, make(chunks))
		paths, want = append(paths, path), want+dliErrors(path, unix.EPROTO)
	}
	loop := newTable(t, dir, "loop", nil)
	must(t, os.Remove(loop+"/chunks"))
	must(t, os.Symlink("chunks", loop+"/chunks"))
	paths = append(paths, loop, dir+"/not there", dir+"/nothing/chunks")
	want += dliErrors(loop, unix.ELOOP) + dliErrors(dir+"/not there", unix.ENOENT) + dliErrors(dir+"/nothing/chunks", unix.ENOTDIR)
	holdDLI(t, paths, want)
}

// Tables with a few bytes changed: what this file can read, dli.h reads alike,
// and it refuses the rest.
func TestDLIRandomTables(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	tables := someTables(t)
	delete(tables, "many")
	names := []string{"none", "one", "empty", "hosts", "last"}
	dir, want, good := t.TempDir(), "", 0
	var paths []string
	for i := range 400 {
		table := dliTable(follow(slices.Clone(tables[names[rnd.IntN(len(names))]])))
		for range rnd.IntN(3) {
			table = mutate(rnd, table)
		}
		path := newTable(t, dir, fmt.Sprint(i), table)
		paths = append(paths, path)
		if chunks, ok := readTable(table); ok {
			want += dliAnswers(t, path, chunks)
			good++
		} else {
			want += dliErrors(path, unix.EPROTO)
		}
	}
	if good < 50 || good > 350 {
		t.Errorf("%d of 400 tables are good: that says little", good)
	}
	holdDLI(t, paths, want)
}

// mutate does to a table what a broken disk or a clever enemy may do.
func mutate(rnd *rand.Rand, b []byte) []byte {
	b = slices.Clone(b)
	if len(b) == 0 {
		return b
	}
	at := rnd.IntN(len(b))
	switch rnd.IntN(6) {
	case 0:
		b[at] = byte(rnd.Uint32())
	case 1, 2: // within what may be there
		b[at] = " 0123456789abc,.-\n"[rnd.IntN(18)]
	case 3:
		b = slices.Delete(b, at, min(len(b), at+1+rnd.IntN(100)))
	case 4:
		b = slices.Insert(b, at, b[rnd.IntN(at+1):at]...)
	case 5:
		if width := bytes.IndexByte(b, '\n') + 1; width > 0 { // a line less or more
			at -= at % width
			if end := min(len(b), at+width); rnd.IntN(2) == 0 {
				b = slices.Delete(b, at, end)
			} else {
				b = slices.Insert(b, at, slices.Clone(b[at:end])...)
			}
		}
	}
	return b
}
