package views

import (
	"fmt"
	"math/bits"

	"rankfs/fetch/batch"
	"rankfs/fetch/index"
	"rankfs/meta"
)

// Warnings are what this node has to say of a view of a dataset, by subject.
func (vs *Views) Warnings(v meta.View, of *batch.Version) map[string]string {
	all := make(map[string]string)
	if short := vs.MemoryWarning(v, of); short != "" {
		all["memory"] = short
	}
	if of.Source.Remote && v.Step.Unit != meta.UnitChunk {
		if s := scatter(v, of.Index, vs.roomOfAll()); s != "" {
			all["order"] = s
		}
	}
	return all
}

// aFew are chunks: if the cluster's nodes keep no more of them than that, no order
// helps.
const aFew = 4

// scatter warns of an order that takes the records of a chunk so far apart that the
// chunk does not stay in caches of so many bytes meanwhile, so that each record is
// fetched by itself; and says which order would not.
func scatter(v meta.View, x *index.Index, capacity int64) string {
	if x.Records() <= uint64(x.Chunks()) || staysCached(v, x, capacity) {
		return "" // a record is a chunk, or it stays
	}
	largest := x.Bytes() / int64(max(1, x.Chunks()))
	said := fmt.Sprintf("order=%v comes back to a chunk after more bytes than the %s that the caches of the cluster keep, so each record is fetched by itself: ",
		v.Order, roughly(capacity))
	mean := float64(x.Bytes()) / float64(x.Records())
	window := uint64(float64(capacity-2*largest) / mean / (1 + 1.0/16)) // as many more may be in use
	if capacity < aFew*largest || window < 2 {
		return said + "give the nodes more --ram or --nvme"
	}
	return said + fmt.Sprintf("with --order window:%d or a smaller one each chunk is fetched once", uint64(1)<<(bits.Len64(window)-1))
}
