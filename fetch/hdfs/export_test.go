package hdfs

import "rankfs/fetch/hdfs/namenode"

// Refuse says why a file of that status is not served, if it is not.
func Refuse(path string, st namenode.Status) error { return file{path, st}.refuse() }

// Racks are those of the hosts of blocks.
func Racks(blocks ...namenode.Block) map[string]string {
	l := &listing{racks: make(map[string]string)}
	for _, b := range blocks {
		l.place(b)
	}
	return l.racks
}

func Before(name string) string { return before(name) }
