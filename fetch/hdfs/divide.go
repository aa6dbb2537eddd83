package hdfs

import (
	"context"
	"encoding/json"

	"rankfs/fetch/hdfs/namenode"
	"rankfs/fetch/index"
	"rankfs/fetch/splits"
	"rankfs/fetch/uri"
)

// Divide has Scan ask other nodes to look through splits of files. The index that it
// makes is the same, whichever of them do, or none.
func (s *Source) Divide(among []splits.Helper) { s.helpers = among }

func newScan(s *Source, files []file, version string, b *index.Builder, done func(bytes, total int64)) *scan {
	k := &scan{source: s, files: files, b: b, done: done, kept: splits.NewStore(s.clusters.config.Scratch, s.path, version)}
	for i, f := range files {
		k.total += f.Size
		for _, block := range f.Blocks.Blocks {
			k.cut(i, block)
		}
	}
	return k
}

// cut makes splits of a block.
func (s *scan) cut(file int, b namenode.Block) {
	for from := b.Off; from < b.Off+b.Size; from += maxSplit {
		to := min(from+maxSplit, b.Off+b.Size)
		s.splits = append(s.splits, split{len(s.splits), file, from, to, hosts(b)})
	}
}

// addFile enters a file of the listing into the index's table.
func (s *scan) addFile(i int) uint32 {
	f := s.files[i]
	return s.b.AddFile(index.File{Path: f.path, Size: f.Size, Stamp: f.stamp()})
}

// each has all splits looked through, and calls merge with what was found in each, in order;
// with nil for splits that are known.
func (s *scan) each(ctx context.Context, merge func(p split, found *splits.Findings) error) error {
	all := splits.Scan{
		Source:  s,
		Scheme:  uri.HDFS,
		Known:   func(i int) bool { _, known := s.known[i]; return known },
		Here:    s.source.clusters.host,
		Helpers: s.source.helpers,
		Kept:    s.kept,
		Missed:  s.missed,
	}
	for _, p := range s.splits {
		all.Hosts = append(all.Hosts, p.hosts)
	}
	read := int64(0)
	return all.Each(ctx, func(i int, found *splits.Findings) error {
		p := s.splits[i]
		if err := merge(p, found); err != nil {
			return err
		}
		read += p.to - p.from
		s.done(read, s.total)
		return nil
	})
}

// Find implements splits.Source.
func (s *scan) Find(ctx context.Context, i int, w *splits.Findings) error {
	return s.source.form.find(ctx, s, s.splits[i], w)
}

// Check implements splits.Source.
func (s *scan) Check(i int, found *splits.Findings) error {
	p := s.splits[i]
	return s.source.form.check(p, s.files[p.file].Size, found)
}

// A request says what a node is to find for another. The result is a function of
// it alone: the same bytes of the same version of a file, looked through in the same way.
type request struct {
	Authority string `json:"authority"`
	As        string `json:"as"` // the user that the asking node reads as
	Form      string `json:"form"`
	Path      string `json:"path"`
	Stamp     string `json:"stamp"` // the version of the file
	From      int64  `json:"from"`
	To        int64  `json:"to"`
}

// Request implements splits.Source.
func (s *scan) Request(i int) ([]byte, error) {
	p := s.splits[i]
	f := s.files[p.file]
	return json.Marshal(request{
		Authority: s.source.authority, As: s.source.cluster.user, Form: s.source.form.name,
		Path: f.path, Stamp: f.stamp(), From: p.from, To: p.to,
	})
}

// missed tells of a split that another node did not look through.
func (s *scan) missed(i int, host string, slow bool, cause error) {
	p := s.splits[i]
	s.source.clusters.config.Log.Info("another node did not read a split of a file: it is read here",
		"host", host, "file", s.files[p.file].path, "split", p, "slow", slow, "cause", cause)
}
