// Package views answers one question: what does a name below /datasets stand for, and
// where is each of its batches?
//
// Views implements fs.Catalog: a name is a dataset of the catalog and the options of a
// meta.View. A View is what an fs.View is made of: a maker gives the meta.View a plan
// (shuffle/plan) and the plan's batches the ways to their bytes (fetch/batch), and the cache
// makes slabs of them. It is also where the cluster settles, at the first open, where the ranks
// of a view are. Ranks says where they are, or would be, and Memory how much of it they need for
// their batches.
//
// What the cache knows of all this are two types: Batches, those of one view, and
// chunkSlabs, the chunks of a dataset of which batches are made.
package views
