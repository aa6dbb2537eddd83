package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"rankfs/cache/policy"
	"rankfs/cache/simulate"
	"rankfs/meta"
)

// A prediction is what came of simulations of a job, one for each policy.
type prediction struct {
	View     string     `json:"full_view"`
	Records  uint64     `json:"records"`
	Bytes    int64      `json:"bytes"`
	Steps    uint64     `json:"steps"`
	Nodes    int        `json:"nodes"`
	Ranks    uint64     `json:"ranks"`
	Scale    float64    `json:"scale"` // how much smaller the dataset was that was simulated
	Facts    []fact     `json:"facts"`
	Policies []prospect `json:"policies"`
	Best     string     `json:"best"`
	Remedies []remedy   `json:"remedies"` // each alone would remove the stall of the best

	epoch uint64
}

// A prospect is what a policy comes to.
type prospect struct {
	Policy string       `json:"policy"`
	Epochs []epochAhead `json:"epochs"`
}

// An epochAhead is one of its epochs.
type epochAhead struct {
	Seconds  float64            `json:"seconds"`
	Hits     map[string]float64 `json:"hits"`  // shares of the bytes read, by level
	Stall    float64            `json:"stall"` // share of the ranks' time
	Waits    map[string]float64 `json:"waits"` // seconds of all ranks, by cause
	Source   int64              `json:"source_bytes"`
	Peers    int64              `json:"peer_bytes"`
	Read     int64              `json:"nvme_read_bytes"`
	Written  int64              `json:"nvme_written_bytes"`
	Evicted  int64              `json:"evicted"`
	Moves    int64              `json:"moves"`
	Opens    int64              `json:"opens"`
	Unpacked int64              `json:"unpacked_bytes"`
}

// A remedy is an option of the command, and what it would have to be.
type remedy struct {
	Option string `json:"option"`
	Bytes  int64  `json:"bytes"`
}

var levelNames = [policy.Levels]string{policy.Source: "source", policy.Disk: "nvme", policy.Packed: "packed", policy.RAM: "ram"}

// prospectOf is an outcome in the size of the job.
func prospectOf(name string, out simulate.Outcome, scale float64) prospect {
	p := prospect{Policy: name}
	large := func(n int64) int64 { return int64(float64(n) * scale) }
	for i := range out.Epochs {
		e := &out.Epochs[i]
		hits, waits := make(map[string]float64), make(map[string]float64)
		for l, name := range levelNames {
			hits[name] = e.Hits(policy.Level(l))
		}
		for c := range simulate.Causes {
			waits[c.String()] = e.Stall[c] * scale
		}
		waits["ranks"] = e.Meet * scale
		p.Epochs = append(p.Epochs, epochAhead{
			Seconds: e.Seconds * scale, Hits: hits, Stall: e.Stalled(), Waits: waits,
			Source: large(e.Fetched), Peers: large(e.Peers), Read: large(e.Read), Written: large(e.Written),
			Unpacked: large(e.Unpacked), Evicted: large(e.Evictions), Moves: large(e.Moves), Opens: large(e.Opens),
		})
	}
	return p
}

func (p *prospect) last() *epochAhead { return &p.Epochs[len(p.Epochs)-1] }

func (p *prediction) write(w io.Writer) {
	view := strings.Replace(p.View, fmt.Sprintf("@epoch=%d,", p.epoch), "@", 1) // all epochs are meant
	cells := []string{"view", view, "reads", fmt.Sprintf("%s in %s of %s on %s",
		size(p.Bytes), plural(p.Steps, "step"), plural(p.Ranks, "rank"), plural(p.Nodes, "node"))}
	for _, f := range p.Facts {
		if f.Name != "nodes" {
			cells = append(cells, f.Name, f.Text+", "+f.words())
		}
	}
	pairs(w, "", cells...)
	fmt.Fprintln(w)
	p.writeTable(w)
	fmt.Fprintln(w)
	p.writeStall(w)
	if p.Scale > 1 {
		fmt.Fprintf(w, "%s\n", wrap(fmt.Sprintf("simulated: one batch in %.0f, with budgets to match", p.Scale), 79, ""))
	}
}

// words say where a fact is from, and how to say otherwise.
func (f fact) words() string {
	switch f.From {
	case "assumed":
		if f.Name == "unpacking" {
			return "assumed"
		}
		return "assumed; say with --" + map[bool]string{true: "bandwidth", false: f.Name}[f.Name == "source"]
	case "mounted":
		return "as mounted"
	}
	return f.From
}

// writeTable is a line for each policy. Levels that no policy uses are left out.
func (p *prediction) writeTable(w io.Writer) {
	titles, names := []string{"POLICY"}, []string(nil)
	for _, name := range []string{"ram", "packed", "nvme", "source"} {
		used := func(each prospect) bool { return each.last().Hits[name] > 0 }
		if name == "ram" || name == "source" || slices.ContainsFunc(p.Policies, used) {
			titles, names = append(titles, " "+strings.ToUpper(name)), append(names, name)
		}
	}
	if n := len(p.Policies[0].Epochs); n > 1 {
		titles = append(titles, " EPOCH 1", " EPOCH "+count(n), " STALL", " FROM SOURCE")
	} else {
		titles = append(titles, " EPOCH", " STALL", " FROM SOURCE")
	}
	t := newTable("", titles...)
	for _, each := range p.Policies {
		e, cells := each.last(), []string{each.Policy}
		for _, name := range names {
			cells = append(cells, percent(e.Hits[name]))
		}
		if len(each.Epochs) > 1 {
			cells = append(cells, seconds(each.Epochs[0].Seconds))
		}
		t.add(append(cells, seconds(e.Seconds), percent(e.Stall), size(e.Source))...)
	}
	t.write(w)
}

// writeStall says what ranks wait for under the best policy, and what would
// change that.
func (p *prediction) writeStall(w io.Writer) {
	best := &p.Policies[slices.IndexFunc(p.Policies, func(each prospect) bool { return each.Policy == p.Best })]
	e := best.last()
	if e.Stall <= simulate.Calm {
		fmt.Fprintf(w, "with %s ranks wait %s of their time: there is nothing to remove\n", p.Best, percent(e.Stall))
		return
	}
	fmt.Fprintln(w, wrap(fmt.Sprintf("with %s ranks wait for %s", p.Best, e.reasons()), 79, ""))
	if len(p.Remedies) == 0 {
		fmt.Fprintln(w, wrap("nothing alone would remove that: more than one thing is short; try several options at once, or a longer --step", 79, ""))
		return
	}
	var each []string
	for _, r := range p.Remedies {
		each = append(each, fmt.Sprintf("--%s %s", r.Option, meta.FormatBytes(uint64(r.Bytes))))
	}
	if len(each) == 1 {
		fmt.Fprintln(w, "this would remove that: "+each[0])
		return
	}
	fmt.Fprintln(w, wrap("any of these would remove that: "+strings.Join(each, ", "), 79, ""))
}

// reasons are the causes of stalls, the largest first.
func (e *epochAhead) reasons() string {
	sum := 0.0
	var causes []string
	for c, s := range e.Waits {
		if sum += s; s > 0 {
			causes = append(causes, c)
		}
	}
	slices.SortFunc(causes, func(a, b string) int {
		return cmp.Or(cmp.Compare(e.Waits[b], e.Waits[a]), cmp.Compare(a, b))
	})
	var words []string
	for _, c := range causes {
		if share := e.Waits[c] / sum; share >= 0.01 {
			words = append(words, fmt.Sprintf("%s %.0f%%", waitNames[c], 100*share))
		}
	}
	return strings.Join(words, ", ")
}

var waitNames = map[string]string{
	"source": "the source", "peer": "other nodes", "nvme": "the disk", "decode": "unpacking",
	"plan": "the plan", "admission": "a worker or memory", "ranks": "one another",
}

// seconds writes a time with three digits, or in its two largest units.
func seconds(s float64) string {
	switch {
	case s < 1:
		return fmt.Sprintf("%.3g ms", s*1000)
	case s < 100:
		return fmt.Sprintf("%.3g s", s)
	}
	return span(time.Duration(s * float64(time.Second)))
}
