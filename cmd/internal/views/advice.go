package views

import (
	"fmt"

	"rankfs/fetch/batch"
	"rankfs/fetch/index"
	"rankfs/meta"
	"rankfs/shuffle/order"
)

// Warnings has the warnings of this node about a view of a dataset, by subject.
func (vs *Views) Warnings(v meta.View, of *batch.Version) map[string]string {
	all := make(map[string]string)
	if of.Index.Records() == 0 {
		all["empty"] = "the source has no records, so that ranks have no batches; once it has some, index it again with: rankfs dataset refresh " + v.Dataset
	}
	if short := vs.Memory.Warning(v, of); short != "" {
		all["memory"] = short
	}
	if of.Source.Remote && !v.ByChunk() {
		if s := scatter(v, of.Index, vs.maker.roomOfAll()); s != "" {
			all["order"] = s
		}
	}
	return all
}

// scatter warns of an order that takes the records of a chunk so far apart that the
// chunk does not stay in caches of that capacity meanwhile, so that each record is
// fetched by itself; and says which order would avoid it.
func scatter(v meta.View, x *index.Index, capacity int64) string {
	if x.Records() <= uint64(x.Chunks()) || staysCached(v, x, capacity) {
		return "" // a record is a chunk, or it stays
	}
	said := fmt.Sprintf("order=%v comes back to a chunk after more bytes than the %s that the caches of the cluster keep, so each record is fetched by itself: ",
		v.Order, meta.FormatRoom(capacity))
	for v.Order = (meta.Order{Kind: meta.OrderWindow, Window: 1 << 62}); v.Order.Window >= order.BlocksPerWindow; v.Order.Window /= 2 {
		if v.Order.Window < x.Records() && staysCached(v, x, capacity) {
			return said + fmt.Sprintf("with --order %v chunks are fetched whole, and once but where a run of %d records begins or ends", v.Order, v.Order.Window/order.BlocksPerWindow)
		}
	}
	return said + "give the nodes more --ram or --nvme"
}
