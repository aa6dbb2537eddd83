package state

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"rankfs/meta"
)

// jobs is the table of jobs: for each, which node every rank runs on.
type jobs struct {
	table[jobKey, *job]
	claimed uint64 // ranks of all
}

func (s *state) jobs() *jobs { return sectionOf[*jobs](s) }

func (*jobs) commands() []command {
	return []command{{kind: 12, blank: blank[Claim], by: owns}}
}

func (t *jobs) share() section { return &jobs{table: t.table.share()} }

func (t *jobs) over() bool { return t.len() > MaxAllJobs || t.claimed > MaxClaimed }

type jobFrame struct {
	Dataset  string
	Ranks    uint64
	Sequence uint64
}

func (t *jobs) write(f *frameWriter) {
	keys := slices.SortedFunc(maps.Keys(t.m), func(a, b jobKey) int {
		return cmp.Or(cmp.Compare(a.dataset, b.dataset), cmp.Compare(a.ranks, b.ranks))
	})
	for _, k := range keys {
		j := t.m[k]
		f.json('j', jobFrame{k.dataset, k.ranks, j.sequence})
		claims := make([]byte, 0, 16*k.ranks)
		for i := range j.node {
			claims = binary.LittleEndian.AppendUint64(claims, j.node[i])
			claims = binary.LittleEndian.AppendUint64(claims, j.last[i])
		}
		f.frame('c', claims)
	}
}

// A jobReader restores jobs: the frame of each, and that of its claims.
type jobReader struct {
	*restorer
	job *jobFrame // its claims come next
}

func (*jobs) restore(in *restorer) frames {
	r := &jobReader{restorer: in}
	return frames{'j': each(r.readJob), 'c': r.claims}
}

func (in *jobReader) readJob(j jobFrame) error {
	in.job, in.due = &j, 'c'
	_, twice := in.s.jobs().get(jobKey{j.Dataset, j.Ranks})
	_, known := in.s.datasets().get(j.Dataset)
	return first(in.sequence(j.Sequence), must(!twice, errTwice), must(known && j.Ranks > 0 && j.Ranks <= meta.MaxRanks, errWrong))
}

func (in *jobReader) claims(payload []byte) error {
	frame := in.job
	in.job = nil
	if frame == nil || uint64(len(payload)) != 16*frame.Ranks {
		return errWrong
	}
	j := &job{sequence: frame.Sequence, node: make([]uint64, frame.Ranks), last: make([]uint64, frame.Ranks)}
	for i := range j.node {
		j.node[i] = binary.LittleEndian.Uint64(payload[16*i:])
		j.last[i] = binary.LittleEndian.Uint64(payload[16*i+8:])
	}
	in.s.jobs().add(jobKey{frame.Dataset, frame.Ranks}, j)
	return nil
}

// A jobKey names the job that reads a dataset with so many ranks.
type jobKey struct {
	dataset string
	ranks   uint64
}

// A job has the node that claims each rank, and the node that did before. Zero is no
// node.
type job struct {
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

func (c *Claim) apply(s *state) (Result, error) {
	if _, err := s.datasets().at(c.Dataset, c.Generation); err != nil {
		return Result{}, err
	}
	if _, err := s.nodes().member(c.Node); err != nil {
		return Result{}, err
	}
	key, id := jobKey{c.Dataset, c.Ranks}, idNumber(c.Node)
	j := s.jobs().toChange(s, key)
	if j.node[c.Rank] != id {
		j.node[c.Rank], j.last[c.Rank] = id, j.node[c.Rank]
		s.changed.cluster = true
	}
	if last := j.last[c.Rank]; last != 0 {
		return Result{Before: idString(last)}, nil
	}
	return Result{}, nil
}

// toChange is the job of that key, made if need be.
func (t *jobs) toChange(s *state, key jobKey) *job {
	j, ok := t.get(key)
	if !ok {
		t.makeRoom(key)
		j = &job{era: s.era, sequence: s.next(), node: make([]uint64, key.ranks), last: make([]uint64, key.ranks)}
		t.add(key, j)
	}
	if j.era != s.era {
		j = &job{era: s.era, sequence: j.sequence, node: slices.Clone(j.node), last: slices.Clone(j.last)}
		t.set(key, j)
	}
	return j
}

func (t *jobs) add(key jobKey, j *job) {
	t.set(key, j)
	t.claimed += key.ranks
}

func (t *jobs) remove(key jobKey) {
	t.drop(key)
	t.claimed -= key.ranks
}

// makeRoom drops the oldest jobs, of the dataset if it has too many, and of
// all while they or their ranks are too many.
func (t *jobs) makeRoom(key jobKey) {
	for t.count(key.dataset) >= MaxJobs {
		t.remove(t.oldest(func(k jobKey) bool { return k.dataset == key.dataset }))
	}
	for t.len() >= MaxAllJobs || t.claimed+key.ranks > MaxClaimed {
		t.remove(t.oldest(func(jobKey) bool { return true }))
	}
}

func (t *jobs) count(dataset string) (n int) {
	for k := range t.m {
		if k.dataset == dataset {
			n++
		}
	}
	return n
}

func (t *jobs) oldest(among func(jobKey) bool) (oldest jobKey) {
	var sequence uint64
	for k, j := range t.m {
		if among(k) && (sequence == 0 || j.sequence < sequence) {
			oldest, sequence = k, j.sequence
		}
	}
	return oldest
}

func (t *jobs) forget(dataset string) {
	for k := range t.m {
		if k.dataset == dataset {
			t.remove(k)
		}
	}
}

// runs is the job as nodes of ranks.
func (j *job) runs() Runs {
	var r Runs
	for i := 0; i < len(j.node); {
		n := 1
		for i+n < len(j.node) && j.node[i+n] == j.node[i] {
			n++
		}
		run := Run{Count: uint64(n)}
		if j.node[i] != 0 {
			run.Node = idString(j.node[i])
		}
		r = append(r, run)
		i += n
	}
	return r
}

// jobReads are what a machine says of jobs.
type jobReads struct{ *locked }

// Claims says which node claims each of so many ranks of a dataset: nil if no
// rank was ever claimed.
func (r jobReads) Claims(dataset string, ranks uint64) Runs {
	s, done := r.read()
	defer done()
	if j, ok := s.jobs().get(jobKey{dataset, ranks}); ok {
		return j.runs()
	}
	return nil
}
