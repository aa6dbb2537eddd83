package kept

import (
	"cmp"
	"slices"

	"rankfs/cache"
	"rankfs/cache/policy"
	"rankfs/cmd/internal/control"
)

// Cached lists how much of each view is cached, and which views are pinned.
func (n *slabs) Cached() control.CacheList {
	n.nameDefaults()
	rows := make(map[seriesName]*control.Cached)
	row := func(t seriesName) *control.Cached {
		if rows[t] == nil {
			rows[t] = &control.Cached{ViewName: n.nameOfSeries(t), Kind: cmp.Or(t.kind, control.Batches)}
		}
		return rows[t]
	}
	for series, h := range n.cache.Holdings() {
		add(row(n.named(series)), h)
	}
	for _, view := range n.pins.names() {
		if s, ok := n.pins.find(view); ok {
			r := row(n.nameOf(view, s))
			if was, err := parseTier(r.Pinned); err != nil || was < s.at {
				r.Pinned = tierNames[s.at]
			}
		}
	}
	list := control.CacheList{Policy: n.cache.Policy(), Views: []control.Cached{}, Warming: n.warmUps.list()}
	for _, r := range rows {
		list.Views = append(list.Views, *r)
	}
	slices.SortFunc(list.Views, func(a, b control.Cached) int {
		return cmp.Or(cmp.Compare(a.View, b.View), cmp.Compare(a.Kind, b.Kind))
	})
	if v := list.Views; len(v) > 0 && v[0].View == "" { // what has no name comes last
		list.Views = append(v[1:], v[0])
	}
	return list
}

func add(r *control.Cached, h cache.Holding) {
	for at, to := range map[policy.Level]*control.Held{policy.RAM: &r.RAM, policy.Packed: &r.Packed, policy.Disk: &r.NVMe} {
		to.Batches += h.Batches[at]
		to.Bytes += h.Bytes[at]
	}
}

// nameDefaults sees to it that each dataset's own view has a name: what earlier
// daemons left on disks may be of it.
func (n *slabs) nameDefaults() {
	for _, d := range n.Catalog.List() {
		if !n.names.has(notedName{seriesName{d.Default.String(), control.Batches}, d.Created}) {
			n.Views.Open(d.Name) // what cannot be opened has none
		}
	}
}

// nameOf is the name of a pinned view.
func (n *slabs) nameOf(view string, s cachePin) seriesName {
	for _, series := range s.series {
		if t := n.named(series); t.name != "" {
			return t
		}
	}
	return seriesName{view, control.Batches}
}
