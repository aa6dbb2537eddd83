package policy

import (
	"cmp"
	"maps"
	"slices"
)

// divide gives every job that wants it an equal share of the budgets, and each
// its choice. Items of no job get the room that no job wants.
func (m *mckp) divide() {
	runs := m.draft.byJob()
	if len(runs) == 1 {
		m.dear = m.solve(m.draft.bundles, m.draft.left, m.dear)
		m.jobs = nil
		return
	}
	m.jobs = m.share(runs)
}

func (m *mckp) share(runs [][]bundle) map[int32]price {
	found := make(map[int32]price, len(runs))
	jobless := [][]bundle(nil)
	if runs[0][0].job < 0 {
		jobless, runs = runs[:1], runs[1:]
	}
	want := make([]int64, len(runs))
	for i, bundles := range runs {
		want[i] = wanted(bundles)
	}
	mem := maxMin(want, m.draft.left.mem)
	for i, bundles := range runs {
		used, _ := m.slopes.fill(bundles, 0, mem[i], 0)
		want[i] = used
	}
	disk := maxMin(want, m.draft.left.disk)
	for i, bundles := range runs {
		found[bundles[0].job] = m.solve(bundles, room{mem[i], disk[i]}, m.price(bundles[0].job))
	}
	for _, bundles := range jobless {
		found[bundles[0].job] = m.solve(bundles, m.draft.left, m.price(bundles[0].job))
	}
	return found
}

// price is the last choice's price for a job.
func (m *mckp) price(job int32) price {
	if len(m.jobs) > 0 {
		if own, ok := m.jobs[job]; ok {
			return own
		}
	}
	return m.dear
}

// wanted is the memory in which a job gains most.
func wanted(bundles []bundle) int64 {
	sum := int64(0)
	for i := range bundles {
		b := &bundles[i]
		best := b.base
		for at := b.base + 1; at < Levels; at++ {
			if b.can(at) && b.gain[at] > b.gain[best] {
				best = at
			}
		}
		sum += max(0, b.takes(best).mem-b.takes(b.base).mem)
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

// byJob groups the bundles by job, those of no job first.
func (d *draft) byJob() [][]bundle {
	count, several := map[int32]int{}, false
	for i := range d.bundles {
		several = several || d.bundles[i].job != d.bundles[0].job
	}
	if !several {
		return [][]bundle{d.bundles}
	}
	for i := range d.bundles {
		count[d.bundles[i].job]++
	}
	jobs := slices.Sorted(maps.Keys(count))
	at := make(map[int32]*[]bundle, len(jobs))
	d.spare = resize(d.spare, len(d.bundles))
	runs, start := make([][]bundle, len(jobs)), 0
	for k, job := range jobs {
		runs[k] = d.spare[start : start : start+count[job]]
		at[job] = &runs[k]
		start += count[job]
	}
	for i := range d.bundles {
		run := at[d.bundles[i].job]
		*run = append(*run, d.bundles[i])
	}
	d.bundles, d.spare = d.spare, d.bundles
	d.of = nil // it names places in the old list, and nothing asks it any more
	return runs
}
