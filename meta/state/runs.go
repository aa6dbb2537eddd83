package state

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"rankfs/meta"
)

// A Run is so many ranks, one after the other, on the same node. An empty
// Node stands for none.
type Run struct {
	Node  string
	Count uint64
}

// Runs say where ranks are, from rank 0 on. In the log they read
// "0123456789abcdef*4 fedcba9876543210*4".
type Runs []Run

// Ranks is the number of ranks of all runs.
func (r Runs) Ranks() (sum uint64) {
	for _, run := range r {
		sum += run.Count
	}
	return sum
}

// Nodes has the node of each rank.
func (r Runs) Nodes() []string {
	nodes := make([]string, 0, r.Ranks())
	for _, run := range r {
		for range run.Count {
			nodes = append(nodes, run.Node)
		}
	}
	return nodes
}

// RunsOf is the inverse of Runs.Nodes.
func RunsOf(nodes []string) Runs {
	var r Runs
	for _, n := range nodes {
		r = r.add(n, 1)
	}
	return r
}

func (r Runs) add(node string, count uint64) Runs {
	if last := len(r) - 1; last >= 0 && r[last].Node == node {
		r[last].Count += count
		return r
	}
	return append(r, Run{node, count})
}

// check reports what cannot be the nodes of so many ranks.
func (r Runs) check(ranks uint64) error {
	var sum uint64
	for i, run := range r {
		if err := checkID(run.Node); err != nil {
			return err
		}
		if run.Count < 1 || run.Count > ranks-sum || i > 0 && r[i-1].Node == run.Node {
			return fmt.Errorf("list of nodes of %d ranks %w: run %d of %d", ranks, meta.ErrInvalid, i, run.Count)
		}
		sum += run.Count
	}
	if sum != ranks {
		return fmt.Errorf("list of nodes of %d ranks %w: the view has %d", sum, meta.ErrInvalid, ranks)
	}
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (r Runs) MarshalText() ([]byte, error) {
	var b []byte
	for i, run := range r {
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(b, run.Node...)
		b = append(b, '*')
		b = strconv.AppendUint(b, run.Count, 10)
	}
	return b, nil
}

// UnmarshalText implements encoding.TextUnmarshaler. It takes no more memory
// than three times the text.
func (r *Runs) UnmarshalText(text []byte) error {
	*r = nil
	if len(text) == 0 {
		return nil
	}
	n := 1 + bytes.Count(text, []byte{' '})
	if n > meta.MaxRanks {
		return fmt.Errorf("list of nodes of ranks %w: %d runs", meta.ErrInvalid, n)
	}
	runs := make(Runs, 0, n)
	names := make(map[string]string) // one string for each node, and none of the whole text
	for field := range strings.SplitSeq(string(text), " ") {
		node, count, _ := strings.Cut(field, "*")
		c, err := strconv.ParseUint(count, 10, 32)
		if err != nil || node != "" && checkID(node) != nil {
			return fmt.Errorf("list of nodes of ranks %w: %q", meta.ErrInvalid, shorten(field))
		}
		name, ok := names[node]
		if !ok {
			name = strings.Clone(node)
			names[name] = name
		}
		runs = append(runs, Run{name, c})
	}
	*r = runs
	return nil
}
