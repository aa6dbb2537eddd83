package pool_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"rankfs/fetch"
	"rankfs/fetch/index"
	"rankfs/meta"
	"rankfs/meta/wire"
	"rankfs/shuffle/placement"
	"rankfs/shuffle/pool"
	"rankfs/test/sourcetest"
	"rankfs/test/wiretest"
)

// lines are those of some texts, each with its newline.
func lines(texts ...string) (all [][]byte) {
	for _, text := range texts {
		for line := range strings.Lines(text) {
			all = append(all, []byte(strings.TrimSuffix(line, "\n")+"\n"))
		}
	}
	return all
}

func word(line []byte) []byte {
	key, _, _ := bytes.Cut(line, []byte("\t"))
	return bytes.TrimSuffix(key, []byte("\n"))
}

// byKey are lines in the order of their words.
func byKey(lines [][]byte) [][]byte {
	slices.SortStableFunc(lines, func(a, b []byte) int { return bytes.Compare(word(a), word(b)) })
	return lines
}

// parted are lines by the parts of their words, in the order of these there.
func parted(lines [][]byte, parts uint64) (all [][]byte) {
	byKey(lines)
	for part := range parts {
		for _, line := range lines {
			if xxhash.Sum64(word(line))%parts == part {
				all = append(all, line)
			}
		}
	}
	return all
}

// counted are lines in their order with how many there are of each word instead of what
// follows that.
func counted(lines [][]byte) (all [][]byte) {
	for len(lines) > 0 {
		n := 1
		for n < len(lines) && bytes.Equal(word(lines[n]), word(lines[0])) {
			n++
		}
		all = append(all, fmt.Appendf(nil, "%s\t%d\n", word(lines[0]), n))
		lines = lines[n:]
	}
	return all
}

// sizedRecords are the lines as records that have their size before them.
func sizedRecords(lines [][]byte) (all [][]byte) {
	for _, line := range lines {
		all = append(all, append(binary.LittleEndian.AppendUint32(nil, uint32(len(line))), line...))
	}
	return all
}

// Stages of each kind are sources like any other, read on the node that wrote them and on
// one that has none of their maps.
func TestStagesAreSources(t *testing.T) {
	texts := words(rand.New(rand.NewPCG(5, 5)))
	for i, text := range texts { // each record is read by itself
		texts[i] = strings.Join(slices.Collect(strings.Lines(text))[:min(50, strings.Count(text, "\n"))], "")
	}
	texts[5] = "w7\t1\nlast\t5"
	pieces := [][]string{{"aaaaaaaabbbbbbbb", "", "cccccccc"}, {"", "", ""}, {"dddddddd", "eeeeeeeeffffffff", "gggggggg"}}
	divided := func(m *member) {
		for i, one := range pieces {
			m.commit("s", uint64(i), 0, one...)
		}
	}
	written := func(texts ...string) func(*member) {
		return func(m *member) {
			for i, text := range texts {
				if err := m.commitText("s", uint64(i), text); err != nil {
					m.site.t.Fatal(err)
				}
			}
		}
	}
	sized := string(bytes.Join(sizedRecords(lines(texts[4])), nil))
	for _, test := range []struct {
		name, spec string
		write      func(m *member)
		records    [][]byte
		readers    []int // that have to pass for sources
	}{
		{"sorted", "maps=6 parts=3 record=line key=1 sort=key", written(texts...), parted(lines(texts...), 3), []int{0, 1}},
		{"combined", "maps=6 parts=3 record=line key=1 combine=count", written(texts...), counted(parted(lines(texts...), 3)), []int{1}},
		{"without records", "maps=3 parts=3", divided, [][]byte{
			[]byte("aaaaaaaabbbbbbbb"), {}, []byte("dddddddd"), {}, {}, []byte("eeeeeeeeffffffff"), []byte("cccccccc"), {}, []byte("gggggggg"),
		}, []int{1}},
		{"of fixed size", "maps=3 parts=3 record=fixed:8", divided, [][]byte{
			[]byte("aaaaaaaa"), []byte("bbbbbbbb"), []byte("dddddddd"),
			[]byte("eeeeeeee"), []byte("ffffffff"), []byte("cccccccc"), []byte("gggggggg"),
		}, nil},
		{"ranges", "maps=6 parts=3 record=line key=1 by=range", written(texts...), byKey(lines(texts...)), nil},
		{"with sizes", "maps=1 parts=1 record=sizes", written(sized), sizedRecords(lines(texts[4])), nil},
		{"empty", "maps=1 parts=2 record=line", written(""), nil, nil},
	} {
		made := func(t *testing.T, reader int) sourcetest.Fixture {
			s := newSite(t, 2)
			m, env := s.members[0], &fetch.Env{Pool: s.members[reader].Pool}
			make := func() {
				m.stage("s", test.spec+" copies=1")
				test.write(m)
			}
			remove := func() error {
				j, err := m.Job(s.ctx, "j")
				return errors.Join(err, j.Remove(s.ctx))
			}
			make()
			return sourcetest.Fixture{
				Open:    func() (fetch.Source, error) { return fetch.Open("shuffle:j/s", env) },
				Records: test.records,
				Changes: []sourcetest.Change{
					{Name: "a reset", Do: func() error { return m.of("s").Reset(s.ctx) }},
					{Name: "a reset, and the same again", Do: func() error {
						err := m.of("s").Reset(s.ctx)
						test.write(m)
						return err
					}},
					{Name: "removal", Do: remove},
					{Name: "removal, and the same again", Do: func() error {
						err := remove()
						make()
						return err
					}},
				},
			}
		}
		for _, reader := range test.readers {
			t.Run(fmt.Sprintf("%s/node %d", test.name, reader), func(t *testing.T) {
				sourcetest.Run(t, func(t *testing.T) sourcetest.Fixture { return made(t, reader) })
			})
		}
		t.Run(test.name, func(t *testing.T) {
			d := sourcetest.Attach(t, made(t, 1))
			if d.Records() != uint64(len(test.records)) {
				t.Fatalf("%d records, want %d", d.Records(), len(test.records))
			}
			for i, want := range test.records {
				got := make([]byte, d.Size(uint64(i)))
				if err := d.Read(t.Context(), d.Extents(uint64(i), 1), got); err != nil || !bytes.Equal(got, want) {
					t.Fatalf("record %d is %q, want %q: %v", i, got, want, err)
				}
			}
			all, got := bytes.Join(test.records, nil), make([]byte, d.Bytes())
			if err := d.Read(t.Context(), d.Extents(0, d.Records()), got); err != nil || !bytes.Equal(got, all) {
				t.Errorf("all records together are others: %v", err)
			}
		})
	}
}

// built is the index of a stage, as a node makes it.
func (m *member) built(t *testing.T, stage string) (*index.Index, error) {
	t.Helper()
	src, err := fetch.Open("shuffle:j/"+stage, &fetch.Env{Pool: m.Pool})
	if err != nil {
		return nil, err
	}
	defer src.Close()
	path := filepath.Join(t.TempDir(), "index")
	if err := fetch.Build(t.Context(), src, path, nil); err != nil {
		return nil, err
	}
	x, err := index.Open(path)
	if err == nil {
		t.Cleanup(func() { x.Close() })
	}
	return x, err
}

// What is no sealed stage with all its maps is refused, in words that say what to do.
func TestStagesThatAreNoSources(t *testing.T) {
	s := newSite(t, 2)
	m := s.members[0]
	m.stage("open", "maps=2 parts=1 record=line")
	m.stage("endless", "parts=1")
	m.stage("lost", "maps=1 parts=1 copies=1")
	m.stage("cut", "maps=1 parts=2 copies=1 record=fixed:8")
	m.commit("open", 0, 0, "a\n")
	m.commit("lost", 0, 0, "a\n")
	m.commit("cut", 0, 0, "aaaa", "bbbb")
	if err := m.of("lost").Maps().Remove(s.ctx, 0); err != nil {
		t.Fatal(err)
	}
	for stage, is := range map[string]struct {
		kind  error
		words string
	}{
		"open":    {meta.ErrBusy, "not sealed yet: 1 of 2 maps are committed; not yet 1"},
		"endless": {meta.ErrBusy, "when it is all, say so: rankfs shuffle seal j/endless"},
		"lost":    {meta.ErrLost, "commit the same bytes again, or begin the stage anew with: rankfs shuffle reset JOB/STAGE"},
		"cut":     {meta.ErrInvalid, "a record has 8"},
		"none":    {meta.ErrNotExist, "stage none of job j"},
		"blob":    {meta.ErrInvalid, "every job has something else of that name"},
	} {
		if _, err := m.built(t, stage); !errors.Is(err, is.kind) || !strings.Contains(fmt.Sprint(err), is.words) {
			t.Errorf("%s: %v, want %v and %q", stage, err, is.kind, is.words)
		}
	}
	if _, err := fetch.Open("shuffle:j/s", nil); !errors.Is(err, meta.ErrInvalid) {
		t.Errorf("without a pool: %v", err)
	}
}

// A node that has read nothing of a stage before it was reset finds it stale at once: what
// is committed later is another run, for which its readers are not to wait.
func TestStaleWhereNothingWasRead(t *testing.T) {
	s := newSite(t, 2)
	m := s.members[0]
	m.stage("s", "maps=1 parts=1 copies=1 record=line")
	m.commit("s", 0, 0, "a\n")
	x, err := m.built(t, "s")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.of("s").Reset(s.ctx); err != nil {
		t.Fatal(err)
	}
	src, err := fetch.Open("shuffle:j/s", &fetch.Env{Pool: s.members[1].Pool})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	err = src.Attach(s.ctx, x, "what it was")
	if !errors.Is(err, meta.ErrStale) || errors.Is(err, meta.ErrBusy) || !strings.Contains(err.Error(), "not sealed yet") {
		t.Errorf("after a reset: %v, want it stale, and nothing to wait for", err)
	}
}

// The chunks are the parts, and their hosts those that have most of them. A host that has
// little is none.
func TestHostsOfParts(t *testing.T) {
	s := newSite(t, 3)
	m := s.members[0]
	m.stage("s", "maps=3 parts=2 copies=1")
	much, little := strings.Repeat("m", 1000), "l"
	m.commit("s", 0, 0, much, little)
	s.members[1].commit("s", 1, 0, little, much)
	s.members[2].commit("s", 2, 0, little, much)
	x, err := s.members[1].built(t, "s")
	if err != nil {
		t.Fatal(err)
	}
	var hosts [][]string
	for i := range x.Chunks() {
		hosts = append(hosts, x.Chunk(i).Hosts)
	}
	if want := [][]string{{"host0"}, {"host1", "host2"}}; fmt.Sprint(hosts) != fmt.Sprint(want) {
		t.Errorf("hosts of chunks are %v, want %v", hosts, want)
	}
}

// A node that keeps nothing of the pool reads a stage from those that do, and says so if
// that cannot be.
func TestReadByANodeWithoutPool(t *testing.T) {
	s := newSite(t, 3)
	texts := words(rand.New(rand.NewPCG(6, 6)))
	s.members[0].stage("s", "maps=6 parts=2 copies=1 record=line key=1 sort=key")
	for i, text := range texts {
		if err := s.members[0].commitText("s", uint64(i), text); err != nil {
			t.Fatal(err)
		}
	}
	m := s.members[1]
	client := wire.New(s.connect, wire.Config{Log: slog.New(slog.DiscardHandler)})
	defer wiretest.Close(t, client)
	m.Pool = pool.New(pool.Config{
		State: s.machine, Cluster: m, Member: m, Wire: client, Log: slog.New(s.log),
		Nodes: func() []placement.Node { return s.up(m.id) },
	})
	d := sourcetest.Attach(t, sourcetest.Fixture{
		Open: func() (fetch.Source, error) { return fetch.Open("shuffle:j/s", &fetch.Env{Pool: m.Pool}) },
	})
	var want []byte
	for _, line := range parted(lines(texts...), 2) {
		want = append(want, line...)
	}
	got := make([]byte, len(want))
	if err := d.Read(t.Context(), d.Extents(0, d.Records()), got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("other bytes than were written: %v", err)
	}
	s.fail(s.members[0])
	s.members[0].stop()
	if err := d.Read(t.Context(), d.Extents(0, d.Records()), got); !errors.Is(err, meta.ErrUnavailable) {
		t.Errorf("when no node has them: %v", err)
	}
}
