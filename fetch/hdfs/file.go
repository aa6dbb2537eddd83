package hdfs

import (
	"fmt"

	"rankfs/fetch/hdfs/namenode"
	"rankfs/meta"
)

// A file is one file of a source as it was listed.
type file struct {
	path string
	namenode.Status
}

// stamp identifies the content: a file that is written anew has another id, one
// that is appended to another length and time.
func (f file) stamp() string {
	return fmt.Sprintf("id=%d,size=%d,mtime=%d", f.FileID, f.Size, f.ModTime.UnixMilli())
}

// sizeIn returns the size of the file that a stamp is of.
func sizeIn(stamp string) (size int64, err error) {
	if _, err = fmt.Sscanf(stamp, "id=%d,size=%d", new(uint64), &size); err != nil {
		err = fmt.Errorf("index %w: stamp %q", meta.ErrCorrupt, stamp)
	}
	return size, err
}

// refuse says why a file cannot be served, if it cannot.
func (f file) refuse() error {
	switch {
	case f.ErasureCode != "":
		return fmt.Errorf("file %q %w: it is erasure-coded (%s), which the HDFS library cannot read; copy it to a directory with replication",
			f.path, meta.ErrInvalid, f.ErasureCode)
	case f.Encrypted:
		return fmt.Errorf("file %q %w: it is in an encryption zone, whose keys rankfs does not ask for; copy it out of the zone", f.path, meta.ErrInvalid)
	case f.Blocks != nil && f.Blocks.Open:
		return fmt.Errorf("file %q %w: a program is writing to it; try again when it is closed", f.path, meta.ErrBusy)
	}
	return nil
}

// stale is the error of a file that is no longer the indexed one.
func stale(path, why string) error {
	return fmt.Errorf("%q: %w: %s", path, meta.ErrStale, why)
}
