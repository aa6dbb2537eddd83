package pool

import (
	"context"
	"slices"

	"rankfs/meta/state"
	"rankfs/shuffle/gathering"
	"rankfs/shuffle/mapfiles"
	"rankfs/shuffle/merging"
	"rankfs/shuffle/pieces"
)

// The columns are those of this node: whom they ask for pieces, and what becomes of these.
type columns struct {
	*gathering.Columns
	copies *copies
	peers  peers
	merges *merging.Merges
}

// A clusterAsked is the cluster as package gathering asks it.
type clusterAsked struct{ *agreed }

// Self implements gathering.Cluster.
func (c clusterAsked) Self() string { return c.config.Cluster.Self() }

// Up implements gathering.Cluster.
func (c clusterAsked) Up() map[string]bool { return up(c.config.Nodes()) }

// Commit implements gathering.Cluster.
func (c clusterAsked) Commit(stage, number uint64) (state.Commit, bool) {
	return c.config.State.Commit(stage, number)
}

// A column is one as package merging knows it: it knows of the files of its job on this node, too,
// which are nil if it keeps nothing.
type column struct {
	*gathering.Column
	all   *columns
	files *files
}

// column has a column ask nodes.
func (cs *columns) column(f *files, c *gathering.Column) column {
	c.All, c.Nodes = cs.Columns, nodesAsked{cs.copies, cs.peers, f}
	if f == nil {
		c.NotOwn = errKeepsNothing
	}
	return column{c, cs, f}
}

// with is a column of other pieces of the same stage.
func (p column) with(is merging.Pieces) column {
	return p.all.column(p.files, &gathering.Column{Terms: p.Terms, Pieces: is})
}

// slice is a column that has one of the pieces of some maps of the stage, and is measured.
func (p column) slice(ctx context.Context, piece uint64, maps state.Maps) (merging.Column, error) {
	one := p.with(merging.Pieces{Number: piece, Maps: maps})
	return one, one.Measure(ctx)
}

// Lend implements merging.Column.
func (p column) Lend() (here [][]byte, give func()) {
	here = make([][]byte, len(p.Each))
	if len(here) > mapfiles.MaxLent || p.files == nil {
		return here, func() {}
	}
	loan, of := p.files.maps.Lend(), mapfiles.Part{Stage: p.Stage, Number: p.Number, Whole: p.Whole}
	for i := range here {
		if c := p.At(i); slices.ContainsFunc(c.Nodes, p.Own) {
			here[i] = loan.Piece(of, c, p.Each[i])
		}
	}
	return here, loan.Give
}

// nodesAsked are the nodes as package gathering asks them: this one by its copies, others over the
// network.
type nodesAsked struct {
	copies *copies
	peers  peers
	files  *files // of the job, on this node
}

func (a nodesAsked) own(node string) bool { return node == a.copies.config.Cluster.Self() }

// Measure implements gathering.Nodes.
func (a nodesAsked) Measure(ctx context.Context, node string, r gathering.Request, parts int) ([][]pieces.Piece, error) {
	if a.own(node) {
		return a.copies.measureSome(ctx, a.files, r, parts)
	}
	one, err := a.peers.measureAt(ctx, node, r)
	return [][]pieces.Piece{one}, err
}

// Fetch implements gathering.Nodes.
func (a nodesAsked) Fetch(ctx context.Context, node string, r gathering.Request, is []pieces.Piece, dst []byte) error {
	if a.own(node) {
		return a.copies.read(ctx, a.files, r, is, dst)
	}
	return a.peers.fetch(ctx, node, r, is, dst)
}

// Portion implements gathering.Nodes.
func (a nodesAsked) Portion(ctx context.Context, node string, r gathering.Request, is pieces.Piece, off int64, dst []byte) error {
	if a.own(node) {
		return a.copies.readPortion(ctx, a.files, r, is, off, dst)
	}
	return a.peers.fetchPortion(ctx, node, r, off, dst)
}

// Look implements gathering.Nodes.
func (a nodesAsked) Look(ctx context.Context, node string, r gathering.Request) error {
	if a.own(node) {
		return a.copies.look(ctx, a.files, r)
	}
	return a.peers.lookAt(ctx, node, r)
}
