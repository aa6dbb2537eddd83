// Package catalog answers one question: which datasets are registered, and which
// version of each does this node serve?
//
// What is registered the cluster's state says (meta/state). A Catalog follows it, and
// brings or makes the index of each dataset; whatever is registered on whichever node
// becomes known here the same way, by Follow. So Create makes the index, has the
// cluster agree, and then waits for Follow like any other node.
package catalog
