package fs

// A listing is the state of one open directory. Entries are made as the kernel
// reads them: a rank's directory may have millions.
type listing struct {
	ino    uint64
	parent uint64
	length uint64
	entry  func(i uint64, name []byte) (ino uint64, isDir bool, appended []byte)
	name   []byte // reused from entry to entry
}

func static(parent uint64, isDir bool, names []string, inos []uint64) *listing {
	return &listing{parent: parent, length: uint64(len(names)),
		entry: func(i uint64, b []byte) (uint64, bool, []byte) {
			return inos[i], isDir, append(b, names[i]...)
		}}
}

func listView(d *viewDir) *listing {
	const texts = uint64(kindRank - kindDescription)
	return &listing{parent: inoDatasets, length: texts + d.Ranks,
		entry: func(i uint64, b []byte) (uint64, bool, []byte) {
			n := node{dir: d, kind: kindDescription + kind(min(i, texts))}
			if i >= texts {
				n.rank = i - texts
			}
			return n.ino(), n.isDir(), n.appendName(b)
		}}
}

func listRank(rank node) *listing {
	return &listing{parent: rank.dir.base, length: 2 * rank.dir.Steps,
		entry: func(i uint64, b []byte) (uint64, bool, []byte) {
			n := rank
			n.kind, n.step = kindBatch+kind(i%2), i/2
			return n.ino(), false, n.appendName(b)
		}}
}
