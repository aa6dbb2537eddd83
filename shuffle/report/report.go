package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"rankfs/meta"
	"rankfs/meta/state"
)

// A Tally says which copies of maps are missing.
type Tally struct {
	Missing int      // copies that are wanted, and on no node that is up and not drained
	Away    []uint64 // maps whose copies are all on nodes that are down
	Lost    []uint64 // maps of which there is no copy
}

// TallyOf looks at the copies of maps that are committed: those on nodes that are up can be
// read, and those on active nodes count.
func TallyOf(wanted int, commits state.Maps, up, active map[string]bool) (t Tally) {
	for _, c := range commits.All() {
		live := c.CopiesOn(up)
		t.Missing += max(0, wanted-c.CopiesOn(active))
		switch {
		case len(c.Nodes) == 0:
			t.Lost = append(t.Lost, c.Map)
		case live == 0:
			t.Away = append(t.Away, c.Map)
		}
	}
	return t
}

// A Report is the state of a stage, for a person.
type Report struct {
	Job    state.PoolJob
	Stage  state.PoolStage
	Wanted int      // copies of each map
	Open   []uint64 // maps of the spec that are not committed
	Nodes  []Kept   // what nodes have of it, those with most first
	Tally
	Waits   []Wait   // on this node, the longest first
	Refused *Refusal // the last, on this node
	Parts   []int64  // bytes of each, if Weigh could find out
	About   bool     // so many

	Hosts     map[string]string // of nodes that use the job
	Names     map[uint64]string // of what is lost, and of blobs
	Unweighed error             // why there are no Parts
}

// A Kept counts the maps of a stage that a node has.
type Kept struct {
	Node  string
	Up    bool
	Maps  int
	Bytes int64
}

// KeptBy adds up what nodes have.
func KeptBy(commits state.Maps, up map[string]bool) (all []Kept) {
	of := make(map[string]*Kept)
	for _, c := range commits.All() {
		for _, id := range c.Nodes {
			if of[id] == nil {
				of[id] = &Kept{Node: id, Up: up[id]}
			}
			of[id].Maps++
			of[id].Bytes += c.Size
		}
	}
	for _, k := range of {
		all = append(all, *k)
	}
	slices.SortFunc(all, func(a, b Kept) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Node, b.Node)) })
	return all
}

// NotCommitted are the maps of a spec that are not committed; none if it does not say how many
// there are.
func NotCommitted(maps uint64, commits state.Maps) (numbers []uint64) {
	if maps == 0 {
		return nil
	}
	next := uint64(0)
	for _, c := range commits.All() {
		for ; next < c.Map; next++ {
			numbers = append(numbers, next)
		}
		next = c.Map + 1
	}
	for ; next < maps; next++ {
		numbers = append(numbers, next)
	}
	return numbers
}

// State is a word for how the stage is, and what that comes to.
func (r Report) State() (word, why string) {
	name := r.Job.Name + "/" + r.Stage.Name
	switch g := r.Stage; {
	case g.Blobs() && len(r.Lost) > 0:
		return "lost", fmt.Sprintf("no copy is left of %s; put them again", plural(len(r.Lost), "blob"))
	case g.Blobs():
		return "open", plural(int(g.Maps), "blob")
	case !g.Specified():
		return "open", "no spec yet; write one, as in: echo maps=16 parts=8 > spec"
	case len(r.Lost) > 0:
		return "lost", fmt.Sprintf("no copy is left of %s; commit the same bytes again, or begin anew: rankfs shuffle reset %s", plural(len(r.Lost), "map"), name)
	case g.Sealed:
		return "sealed", ""
	case g.Spec.Maps == 0:
		return "open", fmt.Sprintf("committed so far: %s; when it is all, say so: rankfs shuffle seal %s", plural(int(g.Maps), "map"), name)
	}
	return "open", fmt.Sprintf("%d of %d maps are committed; not yet %s", r.Stage.Maps, r.Stage.Spec.Maps, numbersOf(r.Open))
}

// String is the text of the file state.
func (r Report) String() string {
	var b strings.Builder
	line := func(key, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s "+format+"\n", append([]any{key}, args...)...)
	}
	word, why := r.State()
	if why != "" {
		word += ": " + why
	}
	line("state", "%s", word)
	if r.Stage.Specified() {
		line("spec", "%s", r.Stage.Spec)
	}
	line("maps", "%d", r.Stage.Maps)
	line("bytes", "%d", r.Stage.Bytes)
	switch {
	case r.Unweighed != nil:
		line("parts", "not known: %s", inALine(r.Unweighed))
	case len(r.Parts) > 0:
		about := ""
		if r.About {
			about = "about "
		}
		line("parts", "%s%s", about, weights(r.Parts))
	}
	line("missing", "%d copies", r.Missing)
	if r.Stage.Resets > 0 {
		line("resets", "%d", r.Stage.Resets)
	}
	if len(r.Away) > 0 {
		line("away", "maps %s: all their copies are on nodes that are down", numbersOf(r.Away))
	}
	for _, number := range r.Lost[:min(len(r.Lost), maxLines)] {
		line("lost", "%s", r.Names[number])
	}
	if more := len(r.Lost) - maxLines; more > 0 {
		line("lost", "and %d more", more)
	}
	if n := len(r.Waits); n > 0 {
		line("waiting", "%s of parts on this node", plural(n, "open"))
	}
	line("goes", "%s", goes(r.Job, r.Hosts, time.Now()))
	if r.Refused != nil {
		line("refused", "%s", r.Refused)
	}
	return b.String()
}

func plural(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// maxLines bounds the lines of one kind in a text.
const maxLines = 100

// goes says when a job goes, with names of hosts for nodes that are known.
func goes(j state.PoolJob, hosts map[string]string, now time.Time) string {
	after := time.Duration(j.Life)
	if j.Held {
		after = state.Grace
	}
	end, ends := j.End()
	if ends {
		return fmt.Sprintf("in %s, unless something of it is opened", meta.FormatTime(max(0, end.Sub(now).Round(time.Second))))
	}
	if len(j.Datasets) > 0 {
		return "not while a dataset is made of it: " + some(j.Datasets)
	}
	var on []string
	for id := range j.Users {
		on = append(on, cmp.Or(hosts[id], id))
	}
	slices.Sort(on)
	return fmt.Sprintf("%s after its last use; it is in use on %s", meta.FormatTime(after), some(on))
}

// some are a few names, and how many more.
func some(names []string) string {
	const maxNamed = 8
	if more := len(names) - maxNamed; more > 0 {
		names = append(slices.Clip(names[:maxNamed]), fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// numbersOf writes rising numbers for a person: 0, 3-7, 9 and 12 more.
func numbersOf(numbers []uint64) string {
	const maxNamed = 8
	var words []string
	left := len(numbers)
	for i := 0; i < len(numbers) && len(words) < maxNamed; {
		first, n := numbers[i], 1
		for i+n < len(numbers) && numbers[i+n] == first+uint64(n) {
			n++
		}
		word := strconv.FormatUint(first, 10)
		if n > 1 {
			word += "-" + strconv.FormatUint(first+uint64(n)-1, 10)
		}
		words = append(words, word)
		i, left = i+n, left-n
	}
	text := strings.Join(words, ", ")
	if left > 0 {
		text += fmt.Sprintf(" and %d more", left)
	}
	return text
}

// weights writes the bytes of parts in one line: of all if they are few, else of the
// largest, of one in the middle and of the smallest.
func weights(parts []int64) string {
	const maxNamed = 8
	number := func(i int) string { return fmt.Sprintf("%06d", i) }
	var words []string
	if len(parts) <= maxNamed {
		for i, n := range parts {
			words = append(words, fmt.Sprintf("%s %d", number(i), n))
		}
		return strings.Join(words, ", ")
	}
	order := make([]int, len(parts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(min(1, max(-1, parts[b]-parts[a]))) })
	last := order[len(order)-1]
	return fmt.Sprintf("the largest %s %d, %s %d; the middle one %d; the smallest %s %d",
		number(order[0]), parts[order[0]], number(order[1]), parts[order[1]], parts[order[len(order)/2]], number(last), parts[last])
}
