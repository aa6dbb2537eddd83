// Package peers fetches records, files and what is found for indexes from the daemons of other
// nodes: the requests and their answers, over the transport of package wire.
//
// A chunk of a dataset has an owner: the node that fetches it from the source,
// for the whole cluster. A batch is filled by asking each owner once for all the
// records that are needed of it; it gets one stream of exactly these bytes, which
// is read to where they belong in the batch. An owner that is slower than it
// mostly is gets a second way to the same bytes beside it, and the first that is
// done wins.
package peers
