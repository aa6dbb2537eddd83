package hdfs

import (
	"rankfs/fetch/hdfs/namenode"
	"rankfs/fetch/index"
)

func newScan(s *Source, files []file, version string, b *index.Builder, done func(bytes, total int64)) *scan {
	k := &scan{source: s, files: files, b: b, done: done, store: newStore(s.clusters.config.Scratch, s.path, version)}
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

// find has a split read, unless its findings are kept from an earlier scan.
func (s *scan) find(p split, read, check func(f *findings) error) (*findings, error) {
	found, err := s.store.get(p.number)
	if found == nil && err == nil {
		found, err = s.store.make(p.number, read, check)
	}
	return found, err
}
