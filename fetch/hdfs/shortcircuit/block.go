package shortcircuit

import "google.golang.org/protobuf/proto"

// A Block identifies the block to ask a datanode for.
type Block struct {
	Pool  string
	ID    uint64
	Stamp uint64
	Size  int64  // as the namenode knows it; its files may have more, not less
	Addr  string // of the datanode's data transfer

	Header proto.Message // hdfs/v2's ExtendedBlockProto
	Token  proto.Message // that a datanode of a secure cluster wants to see; may be nil
}

type key struct {
	pool      string
	id, stamp uint64
	addr      string
}

func (b Block) key() key { return key{b.Pool, b.ID, b.Stamp, b.Addr} }
