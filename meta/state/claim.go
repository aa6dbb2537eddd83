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

func (s *state) jobs() *jobs { return part[*jobs](s) }

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
	in.s.addJob(jobKey{frame.Dataset, frame.Ranks}, j)
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
	if _, err := s.current(c.Dataset, c.Generation); err != nil {
		return Result{}, err
	}
	if _, err := s.member(c.Node); err != nil {
		return Result{}, err
	}
	key, id := jobKey{c.Dataset, c.Ranks}, idNumber(c.Node)
	j := s.jobToChange(key)
	if j.node[c.Rank] != id {
		j.node[c.Rank], j.last[c.Rank] = id, j.node[c.Rank]
		s.changed.cluster = true
	}
	if last := j.last[c.Rank]; last != 0 {
		return Result{Before: idString(last)}, nil
	}
	return Result{}, nil
}

// jobToChange is the job of that key, made if need be.
func (s *state) jobToChange(key jobKey) *job {
	j, ok := s.jobs().get(key)
	if !ok {
		s.roomForJob(key)
		j = &job{era: s.era, sequence: s.next(), node: make([]uint64, key.ranks), last: make([]uint64, key.ranks)}
		s.addJob(key, j)
	}
	if j.era != s.era {
		j = &job{era: s.era, sequence: j.sequence, node: slices.Clone(j.node), last: slices.Clone(j.last)}
		s.jobs().set(key, j)
	}
	return j
}

func (s *state) addJob(key jobKey, j *job) {
	s.jobs().set(key, j)
	s.jobs().claimed += key.ranks
}

func (s *state) dropJob(key jobKey) {
	s.jobs().drop(key)
	s.jobs().claimed -= key.ranks
}

// roomForJob drops the oldest jobs, of the dataset if it has too many, and of
// all while they or their ranks are too many.
func (s *state) roomForJob(key jobKey) {
	for s.jobsOf(key.dataset) >= MaxJobs {
		s.dropJob(s.oldestJob(func(k jobKey) bool { return k.dataset == key.dataset }))
	}
	for s.jobs().len() >= MaxAllJobs || s.jobs().claimed+key.ranks > MaxClaimed {
		s.dropJob(s.oldestJob(func(jobKey) bool { return true }))
	}
}

func (s *state) jobsOf(dataset string) (n int) {
	for k := range s.jobs().m {
		if k.dataset == dataset {
			n++
		}
	}
	return n
}

func (s *state) oldestJob(among func(jobKey) bool) (oldest jobKey) {
	var sequence uint64
	for k, j := range s.jobs().m {
		if among(k) && (sequence == 0 || j.sequence < sequence) {
			oldest, sequence = k, j.sequence
		}
	}
	return oldest
}

func (s *state) dropJobs(dataset string) {
	for k := range s.jobs().m {
		if k.dataset == dataset {
			s.dropJob(k)
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
