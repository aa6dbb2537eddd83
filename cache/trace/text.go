package trace

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"rankfs/meta"
)

// The text of a trace: what is known of it, a line each; the graph, for people;
// and its runs, of which all follows.
const magic = "rankfs trace 1"

// maxMoves bounds the kinds of edges that are written for people.
const maxMoves = 8

// MaxText bounds the text of one trace.
const MaxText = 1 << 20

// Text writes a trace, for people with when steps are opened again: to find that
// out takes a tenth of a second at most.
func (t *Trace) Text(again bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nview %s\nrank %d\nsteps %d\nforgotten %d\n", magic, t.View, t.Rank, t.Steps, t.Forgotten)
	t.describe(&b, again)
	for _, r := range t.Runs {
		fmt.Fprintf(&b, "run %d %+d %d\n", r.First, r.Stride, r.Count)
	}
	return b.String()
}

// describe writes the graph: edges to the next open, and to the next one of the
// same step, by their length.
func (t *Trace) describe(b *strings.Builder, again bool) {
	opens, moves := t.Opens(), t.Moves()
	fmt.Fprintf(b, "# %d opens in %d runs\n", opens, len(t.Runs))
	for _, m := range moves[:min(maxMoves, len(moves))] {
		fmt.Fprintf(b, "# next %+d: %d of %d\n", m.By, m.Times, opens-1)
	}
	if more := len(moves) - maxMoves; more > 0 {
		fmt.Fprintf(b, "# next otherwise: %d ways\n", more)
	}
	if !again {
		return
	}
	reuses := t.Graph().Reuses()
	for _, r := range reuses[:min(maxMoves, len(reuses))] {
		fmt.Fprintf(b, "# again %s: %d\n", r.words(), r.Times)
	}
}

// words say when a step is opened again.
func (r Reuse) words() string {
	if math.IsInf(r.After, 1) {
		return "never"
	}
	return fmt.Sprintf("after %.2f of the steps", r.After)
}

// Parse reads the first trace of a text.
func Parse(text string) (t Trace, err error) {
	lines := strings.Split(text, "\n")
	if strings.TrimSpace(lines[0]) != magic {
		return t, fmt.Errorf("trace %w: it does not begin with %q", meta.ErrInvalid, magic)
	}
	for i, line := range lines[1:] {
		if line == magic { // of another trace
			break
		}
		if line == "" || line[0] == '#' {
			continue
		}
		if err := t.parseLine(strings.Fields(line)); err != nil {
			return t, fmt.Errorf("trace, line %d, %.80q %w", i+2, line, err)
		}
	}
	return t, t.check()
}

func (t *Trace) parseLine(words []string) (err error) {
	numbers := map[string]*uint64{"rank": &t.Rank, "steps": &t.Steps, "forgotten": &t.Forgotten}
	switch {
	case len(words) == 2 && words[0] == "view":
		t.View = words[1]
	case len(words) == 2 && numbers[words[0]] != nil:
		*numbers[words[0]], err = strconv.ParseUint(words[1], 10, 63)
	case len(words) == 4 && words[0] == "run":
		var r Run
		if r.First, err = strconv.ParseUint(words[1], 10, 63); err != nil {
			break
		}
		if r.Stride, err = strconv.ParseInt(words[2], 10, 64); err != nil {
			break
		}
		r.Count, err = strconv.ParseUint(words[3], 10, 63)
		t.Runs = append(t.Runs, r)
	default:
		return fmt.Errorf("%w: no line of a trace", meta.ErrInvalid)
	}
	if err != nil {
		return fmt.Errorf("%w: a number is none", meta.ErrInvalid)
	}
	return nil
}

// maxSteps bounds what a run may come to.
const maxSteps = 1 << 31

// check reports what cannot be a trace.
func (t *Trace) check() error {
	switch {
	case len(t.Runs) == 0 || len(t.Runs) > MaxRuns:
		return fmt.Errorf("trace %w: it has %d runs; a trace has 1 to %d", meta.ErrInvalid, len(t.Runs), MaxRuns)
	case t.Steps == 0 || t.Steps > maxSteps:
		return fmt.Errorf("trace %w: it has %d steps; a trace has 1 to %d", meta.ErrInvalid, t.Steps, maxSteps)
	}
	opens := uint64(0)
	for _, r := range t.Runs {
		if opens += r.Count; r.Count == 0 || r.Count > maxOpens || opens > maxOpens {
			return fmt.Errorf("trace %w: a run of %d opens; a trace has 1 to %d", meta.ErrInvalid, r.Count, maxOpens)
		}
		far := r.Stride > maxSteps || r.Stride < -maxSteps
		if r.First >= t.Steps || far && r.Count > 1 || r.last() >= t.Steps {
			return fmt.Errorf("trace %w: run %d %+d %d leaves the %d steps", meta.ErrInvalid, r.First, r.Stride, r.Count, t.Steps)
		}
	}
	return nil
}
