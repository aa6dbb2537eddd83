package forecast

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"rankfs/cache/policy"
	"rankfs/cache/simulate"
	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/terminal"
	"rankfs/meta"
)

// A Prediction has the results of simulations of a job, one for each policy.
type Prediction struct {
	control.ViewName
	Records  uint64     `json:"records"`
	Bytes    int64      `json:"bytes"`
	Steps    uint64     `json:"steps"`
	Nodes    int        `json:"nodes"`
	Ranks    uint64     `json:"ranks"`
	Scale    float64    `json:"scale"` // how much smaller the dataset was that was simulated
	Facts    []Fact     `json:"facts"`
	Policies []Prospect `json:"policies"`
	Best     string     `json:"best"`
	Remedies []Remedy   `json:"remedies"` // each alone would remove the stall of the best
	Warning  string     `json:"warning,omitempty"`

	epoch uint64
}

// A Prospect is the time that epochs take under one policy.
type Prospect struct {
	Policy string  `json:"policy"`
	Epochs []Epoch `json:"epochs"`
}

// An Epoch is one of its epochs.
type Epoch struct {
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

// A Remedy is an option of the command, and what it would have to be.
type Remedy struct {
	Option string `json:"option"`
	Bytes  int64  `json:"bytes"`
}

var levelNames = [policy.Levels]string{policy.Source: "source", policy.Disk: "nvme", policy.Packed: "packed", policy.RAM: "ram"}

// prospectOf is an outcome in the size of the job.
func prospectOf(name string, out simulate.Outcome, scale float64) Prospect {
	p := Prospect{Policy: name}
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
		p.Epochs = append(p.Epochs, Epoch{
			Seconds: e.Seconds * scale, Hits: hits, Stall: e.Stalled(), Waits: waits,
			Source: large(e.Fetched), Peers: large(e.Peers), Read: large(e.Read), Written: large(e.Written),
			Unpacked: large(e.Unpacked), Evicted: large(e.Evictions), Moves: large(e.Moves), Opens: large(e.Opens),
		})
	}
	return p
}

func (p *Prospect) last() *Epoch { return &p.Epochs[len(p.Epochs)-1] }

// Write writes it as text: the figures that were used, a line for each policy, and the
// options that would remove the stall.
func (p *Prediction) Write(w io.Writer) {
	view := strings.Replace(p.Full, fmt.Sprintf("@epoch=%d,", p.epoch), "@", 1) // all epochs are meant
	cells := []string{"view", view, "reads", fmt.Sprintf("%s in %s of %s on %s",
		terminal.Bytes(p.Bytes), terminal.Plural(p.Steps, "step"), terminal.Plural(p.Ranks, "rank"), terminal.Plural(p.Nodes, "node"))}
	for _, f := range p.Facts {
		if f.Name != "nodes" {
			cells = append(cells, f.Name, f.Text+", "+f.words())
		}
	}
	terminal.Pairs(w, "", cells...)
	fmt.Fprintln(w)
	p.writeTable(w)
	fmt.Fprintln(w)
	p.writeStall(w)
	if p.Scale > 1 {
		fmt.Fprintf(w, "%s\n", terminal.Wrap(fmt.Sprintf("simulated: one batch in %.0f, with budgets to match", p.Scale), 79, ""))
	}
}

// words say where a fact is from, and how to say otherwise.
func (f Fact) words() string {
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
func (p *Prediction) writeTable(w io.Writer) {
	titles, names := []string{"POLICY"}, []string(nil)
	for _, name := range []string{"ram", "packed", "nvme", "source"} {
		used := func(each Prospect) bool { return each.last().Hits[name] > 0 }
		if name == "ram" || name == "source" || slices.ContainsFunc(p.Policies, used) {
			titles, names = append(titles, " "+strings.ToUpper(name)), append(names, name)
		}
	}
	if n := len(p.Policies[0].Epochs); n > 1 {
		titles = append(titles, " EPOCH 1", " EPOCH "+terminal.Count(n), " STALL", " FROM SOURCE")
	} else {
		titles = append(titles, " EPOCH", " STALL", " FROM SOURCE")
	}
	t := terminal.NewTable("", titles...)
	for _, each := range p.Policies {
		e, cells := each.last(), []string{each.Policy}
		for _, name := range names {
			cells = append(cells, terminal.Percent(e.Hits[name]))
		}
		if len(each.Epochs) > 1 {
			cells = append(cells, terminal.Seconds(each.Epochs[0].Seconds))
		}
		t.Add(append(cells, terminal.Seconds(e.Seconds), terminal.Percent(e.Stall), terminal.Bytes(e.Source))...)
	}
	t.Write(w)
}

// writeStall says what ranks wait for under the best policy, and what would
// change that.
func (p *Prediction) writeStall(w io.Writer) {
	best := &p.Policies[slices.IndexFunc(p.Policies, func(each Prospect) bool { return each.Policy == p.Best })]
	e := best.last()
	if e.Stall <= simulate.Calm {
		fmt.Fprintf(w, "with %s ranks wait %s of their time: there is nothing to remove\n", p.Best, terminal.Percent(e.Stall))
		return
	}
	fmt.Fprintln(w, terminal.Wrap(fmt.Sprintf("with %s ranks wait for %s", p.Best, e.reasons()), 79, ""))
	if len(p.Remedies) == 0 {
		fmt.Fprintln(w, terminal.Wrap("nothing alone would remove that: more than one thing is short; try several options at once, or a longer --step", 79, ""))
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
	fmt.Fprintln(w, terminal.Wrap("any of these would remove that: "+strings.Join(each, ", "), 79, ""))
}

// reasons are the causes of stalls, the largest first.
func (e *Epoch) reasons() string {
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
