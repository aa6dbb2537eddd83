package state

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"rankfs/meta"
)

const (
	MaxRankCounts    = 256     // numbers of ranks with claims, of one dataset
	MaxAllRankCounts = 1 << 16 // of all
	MaxClaimed       = 1 << 22 // ranks of all these: 64 MiB
)

// claims is the table of claims: for a dataset and a number of ranks, which node each rank
// was opened on.
type claims struct {
	table[claimsKey, *rankClaims]
	claimed uint64 // ranks of all
}

func (s *state) claims() *claims { return sectionOf[*claims](s) }

func (*claims) commands() []command {
	return []command{{kind: 12, blank: blank[Claim], by: owns}}
}

func (t *claims) share() sharer { return &claims{table: t.table.share()} }

func (t *claims) over() bool { return t.len() > MaxAllRankCounts || t.claimed > MaxClaimed }

type claimsFrame struct {
	Dataset  string
	Ranks    uint64
	Sequence uint64
}

func (t *claims) write(f *frameWriter) {
	keys := slices.SortedFunc(maps.Keys(t.m), func(a, b claimsKey) int {
		return cmp.Or(cmp.Compare(a.dataset, b.dataset), cmp.Compare(a.ranks, b.ranks))
	})
	for _, k := range keys {
		rc := t.m[k]
		f.json('j', claimsFrame{k.dataset, k.ranks, rc.sequence})
		packed := make([]byte, 0, 16*k.ranks)
		for i := range rc.node {
			packed = binary.LittleEndian.AppendUint64(packed, rc.node[i])
			packed = binary.LittleEndian.AppendUint64(packed, rc.last[i])
		}
		f.frame('c', packed)
	}
}

// A claimsRestorer restores claims: for each number of ranks of a dataset a frame, and one of
// the nodes.
type claimsRestorer struct {
	*restorer
	head *claimsFrame // its nodes come next
}

func (*claims) restore(in *restorer) frames {
	r := &claimsRestorer{restorer: in}
	return frames{'j': each(r.readHead), 'c': r.readNodes}
}

func (in *claimsRestorer) readHead(rc claimsFrame) error {
	in.head, in.due = &rc, 'c'
	_, twice := in.s.claims().get(claimsKey{rc.Dataset, rc.Ranks})
	_, known := in.s.datasets().get(rc.Dataset)
	return first(in.sequence(rc.Sequence), must(!twice, errTwice), must(known && rc.Ranks > 0 && rc.Ranks <= meta.MaxRanks, errWrong))
}

func (in *claimsRestorer) readNodes(payload []byte) error {
	frame := in.head
	in.head = nil
	if frame == nil || uint64(len(payload)) != 16*frame.Ranks {
		return errWrong
	}
	rc := &rankClaims{sequence: frame.Sequence, node: make([]uint64, frame.Ranks), last: make([]uint64, frame.Ranks)}
	for i := range rc.node {
		rc.node[i] = binary.LittleEndian.Uint64(payload[16*i:])
		rc.last[i] = binary.LittleEndian.Uint64(payload[16*i+8:])
	}
	in.s.claims().add(claimsKey{frame.Dataset, frame.Ranks}, rc)
	return nil
}

// A claimsKey names the claims of the ranks that read a dataset when they are so many.
type claimsKey struct {
	dataset string
	ranks   uint64
}

// RankClaims have the node that claims each rank, and the node that did before. Zero is no
// node.
type rankClaims struct {
	era        uint64
	sequence   uint64
	node, last []uint64
}

// Claim says that a rank was opened on a node. The latest claim counts for
// plans that are made from then on. Its result is the node that held the rank before
// this one, also when the same claim is repeated.
type Claim struct {
	Entry
	Dataset    string
	Generation uint64
	Ranks      uint64
	Rank       uint64
	Node       string
}

func (c *Claim) about(*state) string { return c.Node }

func (c *Claim) check() error {
	if c.Ranks < 1 || c.Ranks > meta.MaxRanks || c.Rank >= c.Ranks {
		return fmt.Errorf("rank %d of %d %w: there are up to %d", c.Rank, c.Ranks, meta.ErrInvalid, meta.MaxRanks)
	}
	return first(meta.CheckName(c.Dataset), checkID(c.Node))
}

// claimResult is what a Claim came to.
type claimResult struct{ Before string }

// Before is the node that held the rank before, of Claim; empty if none did.
func (r Result) Before() string { return came[claimResult](r).Before }

func (c *Claim) apply(s *state) (Result, error) {
	if _, err := s.datasets().at(c.Dataset, c.Generation); err != nil {
		return Result{}, err
	}
	if _, err := s.nodes().member(c.Node); err != nil {
		return Result{}, err
	}
	key, id := claimsKey{c.Dataset, c.Ranks}, idNumber(c.Node)
	rc := s.claims().toChange(s, key)
	if rc.node[c.Rank] != id {
		rc.node[c.Rank], rc.last[c.Rank] = id, rc.node[c.Rank]
		s.changed.cluster = true
	}
	if last := rc.last[c.Rank]; last != 0 {
		return Result{claimResult{idString(last)}}, nil
	}
	return Result{}, nil
}

// toChange is the claims of a key, made if need be.
func (t *claims) toChange(s *state, key claimsKey) *rankClaims {
	rc, ok := t.get(key)
	if !ok {
		t.makeRoom(key)
		rc = &rankClaims{era: s.era, sequence: s.next(), node: make([]uint64, key.ranks), last: make([]uint64, key.ranks)}
		t.add(key, rc)
	}
	if rc.era != s.era {
		rc = &rankClaims{era: s.era, sequence: rc.sequence, node: slices.Clone(rc.node), last: slices.Clone(rc.last)}
		t.set(key, rc)
	}
	return rc
}

func (t *claims) add(key claimsKey, rc *rankClaims) {
	t.set(key, rc)
	t.claimed += key.ranks
}

func (t *claims) remove(key claimsKey) {
	t.drop(key)
	t.claimed -= key.ranks
}

// makeRoom drops the oldest claims, those of the dataset if it has too many numbers of ranks,
// and of all while these or their ranks are too many.
func (t *claims) makeRoom(key claimsKey) {
	for t.count(key.dataset) >= MaxRankCounts {
		t.remove(t.oldest(func(k claimsKey) bool { return k.dataset == key.dataset }))
	}
	for t.len() >= MaxAllRankCounts || t.claimed+key.ranks > MaxClaimed {
		t.remove(t.oldest(func(claimsKey) bool { return true }))
	}
}

func (t *claims) count(dataset string) (n int) {
	for k := range t.m {
		if k.dataset == dataset {
			n++
		}
	}
	return n
}

func (t *claims) oldest(among func(claimsKey) bool) (oldest claimsKey) {
	var sequence uint64
	for k, rc := range t.m {
		if among(k) && (sequence == 0 || rc.sequence < sequence) {
			oldest, sequence = k, rc.sequence
		}
	}
	return oldest
}

func (t *claims) datasetGone(_ *state, d *Dataset) {
	for k := range t.m {
		if k.dataset == d.Name {
			t.remove(k)
		}
	}
}

// runs are the claims as nodes of ranks.
func (rc *rankClaims) runs() Runs {
	var r Runs
	for i := 0; i < len(rc.node); {
		n := 1
		for i+n < len(rc.node) && rc.node[i+n] == rc.node[i] {
			n++
		}
		run := Run{Count: uint64(n)}
		if rc.node[i] != 0 {
			run.Node = idString(rc.node[i])
		}
		r = append(r, run)
		i += n
	}
	return r
}

// Claims says which node claims each of so many ranks of a dataset: nil if no
// rank was ever claimed.
func (m *Machine) Claims(dataset string, ranks uint64) Runs {
	s, done := m.read()
	defer done()
	if rc, ok := s.claims().get(claimsKey{dataset, ranks}); ok {
		return rc.runs()
	}
	return nil
}
