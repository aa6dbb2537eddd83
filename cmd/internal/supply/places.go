package supply

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"rankfs/meta"
)

// A place is where one rank meets its client.
type place struct {
	rank      int
	mapped    string
	pipe      string
	directory string // of the rank's batches
}

// places pairs the lines of the two lists with the ranks that are served.
func (c Config) places(ctx context.Context) ([]place, error) {
	maps, err := readList(c.Maps)
	if err != nil {
		return nil, err
	}
	pipes, err := readList(c.Pipes)
	if err != nil {
		return nil, err
	}
	ranks, err := within(ctx, c.Timeout, func() (int, error) { return countRanks(c.Batches) })
	if err != nil {
		return nil, fmt.Errorf("count ranks of %s: %w", c.Batches, err)
	}
	served, err := c.served(ranks)
	if err != nil {
		return nil, err
	}
	own := len(maps) == len(served) && len(pipes) == len(served)
	if n := min(len(maps), len(pipes)); !own && n < ranks {
		return nil, meta.Worded(meta.ErrInvalid, "the lines of %s (%d) and of %s (%d) are too few for the %d ranks of %s: "+
			"give a line for each, or name the ranks whose lines these are with --ranks, as --ranks 4-7",
			c.Maps, len(maps), c.Pipes, len(pipes), ranks, c.Batches)
	}
	if n := max(len(maps), len(pipes)); !own && n > ranks {
		c.Log.Warn("more lines than ranks: the last ones are not served", "lines", n, "ranks", ranks)
	}
	all := make([]place, len(served))
	for i, rank := range served {
		line := rank
		if own {
			line = i
		}
		all[i] = place{rank, maps[line], pipes[line], filepath.Join(c.Batches, "rank-"+strconv.Itoa(rank))}
	}
	return all, nil
}

// served are the ranks that are asked for, of so many.
func (c Config) served(ranks int) ([]int, error) {
	if c.Ranks != "" {
		return parseRanks(c.Ranks, ranks)
	}
	all := make([]int, ranks)
	for i := range all {
		all[i] = i
	}
	return all, nil
}

// parseRanks reads a list as 0,4-7: numbers below a bound that rise.
func parseRanks(list string, bound int) (ranks []int, err error) {
	for part := range strings.SplitSeq(list, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		first, err := strconv.ParseUint(low, 10, 31)
		last, lastErr := strconv.ParseUint(high, 10, 31)
		if err != nil || lastErr != nil || last < first || len(ranks) > 0 && int(first) <= ranks[len(ranks)-1] {
			return nil, meta.Worded(meta.ErrInvalid, "ranks %q: give numbers that rise, and ranges of them, as 0,4-7", list)
		}
		if last >= uint64(bound) {
			return nil, meta.Worded(meta.ErrInvalid, "ranks %q: there is no rank %d, the last one is %d; name other ranks, or a view of more with --view ranks=N", list, last, bound-1)
		}
		for rank := int(first); rank <= int(last); rank++ {
			ranks = append(ranks, rank)
		}
	}
	return ranks, nil
}

// countRanks counts rank-0, rank-1 ... in a directory.
func countRanks(directory string) (int, error) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return 0, err
	}
	found := map[string]bool{}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "rank-") {
			found[e.Name()] = true
		}
	}
	n := 0
	for found["rank-"+strconv.Itoa(n)] {
		n++
	}
	if n == 0 {
		return 0, errors.New("no rank-0 there: name a dataset of a mounted rankfs")
	}
	return n, nil
}
