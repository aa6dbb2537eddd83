package group

import (
	walfs "github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/types"
)

// A medium opens the files of a log. Tests have one that fails.
type medium struct {
	files types.VFS
	meta  func() types.MetaStore // one that is to be opened
}

// onDisk is the medium of a log in a directory.
func onDisk() medium {
	return medium{walfs.New(), func() types.MetaStore { return &metadb.BoltMetaDB{} }}
}
