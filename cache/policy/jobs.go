package policy

import (
	"cmp"
	"maps"
	"slices"
)

// divide gives every job that wants it an equal share of the budgets, and each
// its plan. Items of no job get the room that no job wants.
func (m *mckp) divide() {
	runs := m.draft.byJob()
	if len(runs) == 1 {
		m.dear = m.solve(m.draft.lots, m.draft.left, m.dear)
		m.jobs = nil
		return
	}
	m.jobs = m.share(runs)
}

func (m *mckp) share(runs [][]lot) map[int32]price {
	found := make(map[int32]price, len(runs))
	nobody := [][]lot(nil)
	if runs[0][0].job < 0 {
		nobody, runs = runs[:1], runs[1:]
	}
	want := make([]int64, len(runs))
	for i, lots := range runs {
		want[i] = wanted(lots)
	}
	mem := maxMin(want, m.draft.left.mem)
	for i, lots := range runs {
		used, _ := m.tally.fill(lots, 0, mem[i], 0)
		want[i] = used
	}
	disk := maxMin(want, m.draft.left.disk)
	for i, lots := range runs {
		found[lots[0].job] = m.solve(lots, room{mem[i], disk[i]}, m.price(lots[0].job))
	}
	for _, lots := range nobody {
		found[lots[0].job] = m.solve(lots, m.draft.left, m.price(lots[0].job))
	}
	return found
}

// wanted is the memory in which a job gains most.
func wanted(lots []lot) int64 {
	sum := int64(0)
	for i := range lots {
		l := &lots[i]
		best := l.base
		for at := l.base + 1; at < Levels; at++ {
			if l.can(at) && l.gain[at] > l.gain[best] {
				best = at
			}
		}
		sum += max(0, l.takes(best).mem-l.takes(l.base).mem)
	}
	return sum
}

// maxMin divides an amount fairly: no job could get more without a job that has less
// losing some.
func maxMin(want []int64, there int64) []int64 {
	order := make([]int, len(want))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(want[a], want[b]) })
	share := make([]int64, len(want))
	for k, i := range order {
		share[i] = min(want[i], there/int64(len(order)-k))
		there -= share[i]
	}
	return share
}

// byJob groups the lots by job, those of no job first.
func (d *draft) byJob() [][]lot {
	count, several := map[int32]int{}, false
	for i := range d.lots {
		several = several || d.lots[i].job != d.lots[0].job
	}
	if !several {
		return [][]lot{d.lots}
	}
	for i := range d.lots {
		count[d.lots[i].job]++
	}
	jobs := slices.Sorted(maps.Keys(count))
	at := make(map[int32]*[]lot, len(jobs))
	d.spare = resize(d.spare, len(d.lots))
	runs, start := make([][]lot, len(jobs)), 0
	for k, job := range jobs {
		runs[k] = d.spare[start : start : start+count[job]]
		at[job] = &runs[k]
		start += count[job]
	}
	for i := range d.lots {
		run := at[d.lots[i].job]
		*run = append(*run, d.lots[i])
	}
	d.lots, d.spare = d.spare, d.lots
	d.of = nil // no longer true, and no longer asked
	return runs
}
