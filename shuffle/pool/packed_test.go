package pool_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"rankfs/meta"
	"rankfs/meta/wire"
	"rankfs/shuffle/record"
	"rankfs/test/eventually"
	"rankfs/test/wiretest"
)

// Records of 16 bytes, which end like lines: of text that can be packed, and random.
func textOf(n int, seed uint64) string {
	r, b := rand.New(rand.NewPCG(seed, 1)), make([]byte, 0, n+16)
	for len(b) < n {
		b = fmt.Appendf(b, "%07d\t%s\n", r.IntN(1<<20), []string{"chapter", "records", "streams"}[r.IntN(3)])
	}
	return string(b[:n])
}

func noiseOf(n int, seed uint64) string {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(seed)}).Read(b)
	return string(b)
}

// crossed is what all nodes have got and given so far, by what they have asked for.
func (s *site) crossed() (bytes int64) {
	for _, m := range s.members {
		n := m.wire.Stats()
		bytes += int64(n.BytesIn + n.BytesOut)
	}
	return bytes
}

// holdCopies holds the files that nodes have of a map against its bytes.
func (s *site) holdCopies(stage string, number uint64, want string) {
	s.t.Helper()
	for _, m := range s.members {
		if !slices.Contains(s.copies(stage, number), m.id) {
			continue
		}
		all, err := filepath.Glob(filepath.Join(filepath.Dir(m.attempts(stage)), "maps", fmt.Sprintf("%06d.*", number)))
		s.check(err)
		all = slices.DeleteFunc(all, func(name string) bool { return strings.HasSuffix(name, ".idx") })
		if len(all) != 1 {
			s.t.Fatalf("of map %d node %s has %v", number, m.id, all)
		}
		if got, err := os.ReadFile(all[0]); err != nil || string(got) != want {
			s.t.Errorf("the copy of map %d on node %s has other bytes, or %v", number, m.id, err)
		}
	}
}

// What goes between nodes.
var ways = []struct {
	name  string
	bytes int
	goes  func(s *site, spec string, content func(n int, seed uint64) string)
}{
	{"copies", 4 * 1 << 20, func(s *site, spec string, content func(int, uint64) string) {
		m := s.members[0]
		m.stage("s", "maps=4 parts=2 copies=2 "+spec)
		for i := range uint64(4) {
			b := content(1<<20, i)
			m.commit("s", i, 0, b[:16*i], b[16*i:])
			if on := s.copies("s", i); len(on) != 2 {
				s.t.Errorf("copies are on %v", on)
			}
			s.holdCopies("s", i, b)
		}
	}},
	{"what goes ahead", 9 << 20, func(s *site, spec string, content func(int, uint64) string) {
		m, a := s.members[0], meta.Attempt{}
		m.stage("s", "maps=1 copies=2 "+spec)
		done, err := m.of("s").Attempts().Write(a)
		s.check(err)
		file, err := os.Create(filepath.Join(m.attempts("s"), a.String()))
		s.check(err)
		b := content(9<<20, 1)
		_, err = file.WriteString(b[:8<<20])
		s.check(err)
		eventually.Within(s.t, time.Minute, "what is written is on another node", func() bool {
			for _, other := range s.members[1:] {
				all, err := filepath.Glob(filepath.Join(filepath.Dir(other.attempts("s")), "maps", "*.tail.*"))
				s.check(err)
				for _, name := range all {
					if info, err := os.Stat(name); err == nil && info.Size() == 8<<20 {
						return true
					}
				}
			}
			return false
		})
		_, err = file.WriteString(b[8<<20:])
		s.check(errors.Join(err, file.Close()))
		done()
		s.check(m.of("s").Attempts().Commit(s.ctx, a, false))
		s.holdCopies("s", 0, b)
	}},
	{"copies that are made again", 2 << 20, func(s *site, spec string, content func(int, uint64) string) {
		m := s.members[0]
		m.stage("s", "maps=1 copies=2 "+spec)
		b := content(1<<20, 1)
		m.commit("s", 0, 0, b)
		s.loseCopies("s", 0, s.copies("s", 0)[1])
		stop := m.follow()
		eventually.Within(s.t, time.Minute, "there is one more copy", func() bool { return len(s.copies("s", 0)) == 2 })
		stop()
		s.holdCopies("s", 0, b)
	}},
	{"parts", 2 << 20, func(s *site, spec string, content func(int, uint64) string) {
		s.members[0].stage("s", "maps=4 parts=2 copies=1 "+spec)
		var parts [2]string
		for i := range uint64(4) {
			b := content(1<<19, i)
			s.members[i%2].commit("s", i, 0, b[:1<<18], b[1<<18:])
			parts[0], parts[1] = parts[0]+b[:1<<18], parts[1]+b[1<<18:]
		}
		for i, want := range parts {
			if got, err := s.members[2].part("s", meta.Part{Number: uint64(i)}); err != nil || got != want {
				s.t.Errorf("part %d has other bytes, or %v", i, err)
			}
		}
	}},
	{"whole maps", 1 << 20, func(s *site, spec string, content func(int, uint64) string) {
		s.members[0].stage("s", "maps=1 parts=3 copies=1 "+spec)
		b := content(1<<20, 1)
		s.members[0].commit("s", 0, 0, b[:7], "", b[7:])
		if got, err := text(s.members[2].of("s").Maps().Open(s.ctx, 0)); err != nil || got != b {
			s.t.Errorf("the map has other bytes, or %v", err)
		}
	}},
	{"some bytes of parts", 2 << 20, func(s *site, spec string, content func(int, uint64) string) {
		s.members[0].stage("s", "maps=4 copies=1 "+spec)
		all := ""
		for i := range uint64(4) {
			b := content(1<<19, i)
			s.members[i%2].commit("s", i, 0, b)
			all += b
		}
		m := s.members[2]
		sealed, err := m.Sealed(s.ctx, "j", "s")
		s.check(err)
		p, err := sealed.Part(s.ctx, 0)
		s.check(err)
		var some record.Windows
		for off := int64(100); off < p.Size(); off += 1 << 19 {
			some = append(some, record.Window{Off: off, To: make([]byte, 200)})
		}
		s.check(p.Read(s.ctx, some))
		for _, w := range some {
			if string(w.To) != all[w.Off:w.Off+200] {
				s.t.Errorf("200 bytes from byte %d on are others", w.Off)
			}
		}
	}},
	{"ranges", 1 << 20, func(s *site, spec string, content func(int, uint64) string) {
		s.members[0].stage("s", "maps=4 parts=2 copies=1 record=fixed:16 key=1-7 by=range "+spec)
		var want []string
		for i := range uint64(4) {
			b := content(1<<18, i)
			s.check(s.members[i%2].commitText("s", i, b))
			for at := 0; at < len(b); at += 16 {
				want = append(want, b[at:at+16])
			}
		}
		slices.SortStableFunc(want, func(a, b string) int { return strings.Compare(a[:7], b[:7]) })
		got := ""
		for i := range uint64(2) {
			b, err := s.members[2].part("s", meta.Part{Number: i})
			s.check(err)
			got += b
		}
		if got != strings.Join(want, "") {
			s.t.Errorf("parts have %d other bytes", len(got))
		}
	}},
	{"portions", largeMaps * 1 << 18, func(s *site, spec string, content func(int, uint64) string) {
		s.members[0].stage("s", fmt.Sprintf("maps=%d copies=1 record=fixed:16 key=1-7 sort=key %s", largeMaps, spec))
		var want []string
		for i := range uint64(largeMaps) {
			b := content(1<<18, i)
			s.check(s.members[i%2].commitText("s", i, b))
			for at := 0; at < len(b); at += 16 {
				want = append(want, b[at:at+16])
			}
		}
		slices.SortStableFunc(want, func(a, b string) int { return strings.Compare(a[:7], b[:7]) })
		if got := s.members[2].holdLarge(0); !slices.Equal(got, want) {
			s.t.Errorf("the part has %d records, want %d in their order", len(got), len(want))
		}
	}},
}

// Whatever goes between nodes has less bytes there than in maps if it can be packed, and no more
// if not, and is the same in the end: of the stages that say so.
func TestPackedLinks(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			crossed := func(spec string, content func(int, uint64) string) int64 {
				ram := int64(64 << 20)
				if way.name == "portions" {
					ram = littleRAM
				}
				s := newSiteOf(t, 3, ram)
				way.goes(s, spec, content)
				for _, m := range s.members {
					m.stop()
				}
				return s.crossed()
			}
			for name, content := range map[string]func(int, uint64) string{"text": textOf, "noise": noiseOf} {
				plain := crossed("", content)
				if plain < int64(way.bytes) {
					t.Fatalf("%d bytes went between nodes, of %d", plain, way.bytes)
				}
				for _, by := range []string{"none", "lz4", "zstd"} {
					got := crossed("compress="+by, content)
					t.Logf("%s, %s: %.3f of %d bytes", name, by, float64(got)/float64(plain), plain)
					most, least := plain+plain/100, plain-plain/20 // samples can be packed
					if name == "text" && by != "none" {
						most, least = plain*2/3, 0
					}
					if got > most || got < least {
						t.Errorf("%s, packed by %s: %d bytes went between nodes, and %d as they are", name, by, got, plain)
					}
				}
			}
		})
	}
}

// Packed pieces may come as far ahead as others: no reader acknowledges each block.
func TestPackedCopiesComeAhead(t *testing.T) {
	heard := make(map[string]uint64)
	for _, by := range []string{"none", "lz4"} {
		s := newSiteOf(t, 2, 64<<20)
		m := s.members[0]
		m.stage("s", "maps=1 copies=2 compress="+by)
		m.commit("s", 0, 0, noiseOf(8<<20, 1))
		heard[by] = m.wire.Stats().BytesIn
	}
	if heard["lz4"] > heard["none"]+256 {
		t.Errorf("of one that takes a copy %d bytes are heard, and %d if nothing is packed", heard["lz4"], heard["none"])
	}
}

// A brokenConn flips a bit of what is written, once after so many bytes, or ends there.
type brokenConn struct {
	net.Conn
	after *atomic.Int64
	ends  func() // nil: it does not
}

func (c brokenConn) Write(b []byte) (int, error) {
	left := c.after.Add(-int64(len(b)))
	if left > 0 || left+int64(len(b)) <= 0 {
		return c.Conn.Write(b)
	}
	if c.ends != nil {
		c.ends()
		c.Close()
		return 0, io.ErrClosedPipe
	}
	b = bytes.Clone(b)
	b[len(b)/2] ^= 4
	return c.Conn.Write(b)
}

// A bit that is flipped on the way, or a node that dies then, does no more to what is packed than
// to what is not.
func TestPackedLinksThatBreak(t *testing.T) {
	const size = 1 << 20
	for _, by := range []string{"lz4", "zstd"} {
		for _, dies := range []bool{false, true} {
			t.Run(fmt.Sprint(by, " dies=", dies), func(t *testing.T) {
				s := newSite(t, 3)
				m, b := s.members[0], textOf(size, 1)
				m.stage("s", "maps=1 copies=2 compress="+by)
				after := new(atomic.Int64)
				after.Store(100 << 10)
				s.mu.Lock()
				s.mu.hooks.conn = func(node string, c net.Conn) net.Conn {
					broken := brokenConn{Conn: c, after: after}
					if dies {
						broken.ends = func() { s.fail(s.members[node[len(node)-1]-'1']) }
					}
					return broken
				}
				s.mu.Unlock()
				m.commit("s", 0, 0, b)
				if after.Load() > 0 {
					t.Fatal("nothing broke")
				}
				if on := s.copies("s", 0); len(on) != 2 {
					t.Errorf("copies are on %v", on)
				}
				s.holdCopies("s", 0, b)
				for _, one := range s.members {
					if got, err := one.part("s", meta.Part{}); err != nil || got != b {
						t.Errorf("on node %s the part has other bytes, or %v", one.id, err)
					}
				}
			})
		}
	}
}

// block is one that says it has so many bytes, and is packed to these.
func block(plain int, packed string) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(plain))
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(packed))), packed...)
}

// hostileBlocks are no 1,000 bytes, of which good is a block; less is one of 900.
func hostileBlocks(good, less []byte) map[string][]byte {
	return map[string][]byte{
		"nothing":            nil,
		"half of a head":     good[:4],
		"half of a block":    good[:len(good)-1],
		"less":               block(999, strings.Repeat("x", 999)),
		"more":               block(1001, strings.Repeat("x", 1001)),
		"twice as much":      slices.Concat(good, good),
		"trailing bytes":     append(bytes.Clone(good), 1, 2, 3),
		"an empty block":     slices.Concat(block(0, ""), good),
		"a block that grows": block(10, strings.Repeat("x", 1000)),
		"a huge block":       block(1<<31, "x"),
		"no block":           block(1000, strings.Repeat("\xff", 500)),
		"less than it says":  block(1000, string(less[8:])),
		"more than it says":  block(999, string(good[8:])),
		"more in a block":    slices.Concat(block(500, string(good[8:])), block(500, string(good[8:]))),
		"lz4 from before":    block(1000, "\x1fa\x05\x00\xff\xff\xff\x00"),
		"lz4 of more":        block(1000, "\x1fa\x01\x00\xff\xff\xff\xff\xff\x00"),
	}
}

// goodBlock is one of so many bytes.
func goodBlock(t *testing.T, by meta.Compression, n int) []byte {
	t.Helper()
	plain := bytes.Repeat([]byte("x"), n)
	if by == meta.LZ4 {
		packed := make([]byte, 1000)
		n, err := lz4.CompressBlock(plain, packed, nil)
		if err != nil || n == 0 {
			t.Fatal(n, err)
		}
		return block(len(plain), string(packed[:n]))
	}
	e, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return block(n, string(e.EncodeAll(plain, nil)))
}

// Of a node whose blocks are not what was asked for no byte is used, and the node that asked finds
// it corrupt; what is pushed so is refused, and nothing of it is kept.
func TestHostileBlocks(t *testing.T) {
	for _, by := range []meta.Compression{meta.LZ4, meta.Zstd} {
		good := goodBlock(t, by, 1000)
		all := hostileBlocks(good, goodBlock(t, by, 900))
		all["none of these"] = good
		for name, b := range all {
			t.Run(fmt.Sprint(by, " ", name), func(t *testing.T) {
				s := newSite(t, 2)
				m, other := s.members[0], s.members[1]
				hostile := name != "none of these"
				g := m.stage("s", "maps=1 copies=2 compress="+by.String())
				tail := map[string]any{"Stage": g.Number(), "Generation": g.Generation(), "Writer": m.id, "Nonce": 7, "Packed": by, "Plain": 1000}
				body, err := json.Marshal(tail)
				s.check(err)
				_, err = m.wire.Push(s.ctx, other.id, wire.Request{Call: 20, Body: body}, func(_ context.Context, emit func([]byte) error) error { return emit(b) })
				if hostile != errors.Is(err, meta.ErrCorrupt) || !hostile && err != nil {
					t.Errorf("what was pushed: %v", err)
				} else if left := s.came("s"); hostile != (len(left) == 0) {
					t.Errorf("%v is left", left)
				}
				other.commit("s", 0, 0, strings.Repeat("x", 1000))
				s.loseCopies("s", 0, m.id)
				calls, pushes := other.Calls()
				calls[17] = func(_ context.Context, _ wire.Request, a wire.Answer) error {
					a.AtMost(1 << 20)
					return a.Emit(b)
				}
				l, dial := wiretest.Pipe(t)
				wiretest.Serve(t, l, calls, pushes, wire.Limits{Log: slog.New(slog.DiscardHandler)})
				other.dial = dial
				m.wire.Keep(func(string) bool { return false })
				if got, err := m.part("s", meta.Part{}); hostile != errors.Is(err, meta.ErrCorrupt) || !hostile && err != nil {
					t.Errorf("what was asked for: %d bytes, %v", len(got), err)
				}
			})
		}
	}
}

// What says of itself what cannot be is refused before anything of it comes.
func TestPackedRequestsThatAreRefused(t *testing.T) {
	s := newSite(t, 2)
	m, other := s.members[0], s.members[1]
	g := m.stage("s", "maps=2 copies=2 compress=lz4")
	nothing := func(context.Context, func([]byte) error) error {
		t.Error("it was let come")
		return nil
	}
	for name, q := range map[string]struct {
		packed, plain, bytes uint64
	}{
		"no such codec": {9, 1000, 0}, "no bytes": {1, 0, 0}, "too many bytes": {1, 1 << 60, 0}, "two lengths": {1, 1000, 1000}, "more than a tail has": {2, 1 << 30, 0},
	} {
		body, err := json.Marshal(map[string]any{"Stage": g.Number(), "Generation": g.Generation(), "Map": 1, "Writer": m.id, "Packed": q.packed, "Plain": q.plain})
		s.check(err)
		for _, call := range []uint8{18, 20} {
			if _, err := m.wire.Push(s.ctx, other.id, wire.Request{Call: call, Body: body, Bytes: q.bytes}, nothing); !errors.Is(err, meta.ErrInvalid) {
				t.Errorf("%s, call %d: %v", name, call, err)
			}
		}
	}
	m.commit("s", 0, 0, "text")
	q := wire.Request{Call: 17, Runs: []wire.Run{{First: 0, N: 1}}, Bytes: 4}
	binary.LittleEndian.PutUint64(q.ID[:], g.Number())
	binary.LittleEndian.PutUint64(q.ID[8:], g.Generation())
	q.ID[24] = 3 << 1
	if err := m.wire.Pull(s.ctx, other.id, q, wire.NewScatter([][]byte{make([]byte, 4)})); !errors.Is(err, meta.ErrInvalid) {
		t.Errorf("pieces packed by an unknown codec: %v", err)
	}
}
