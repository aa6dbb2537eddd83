package namenode

import (
	"time"

	"google.golang.org/protobuf/proto"
)

// A Status is a namenode's metadata of one path.
type Status struct {
	Name        string // the last element; empty for the path that was asked about
	Dir         bool
	Size        int64
	ModTime     time.Time
	FileID      uint64
	Encrypted   bool    // in an encryption zone
	ErasureCode string  // the name of the policy; empty if blocks are replicated
	Link        string  // of a symbolic link
	Blocks      *Blocks // nil unless asked for, and for directories
}

// Blocks says where the bytes of a file are, as far as they were asked for.
// The blocks follow each other without a gap.
type Blocks struct {
	Size   int64 // of the whole file; without the block that is being written
	Open   bool  // a client is writing to it
	Blocks []Block
}

// A Block is a run of bytes of a file that is on the same datanodes.
type Block struct {
	Off, Size int64
	Pool      string
	ID        uint64
	Stamp     uint64 // generation stamp: changes when the block does

	// Replicas are the ones that the namenode takes for sound. Locate has the
	// nearest to this host first, List has them in no order.
	Replicas []Replica

	// Message is the LocatedBlockProto itself, for hdfs/v2. From Locate it
	// has the token that a datanode of a secure cluster demands; from List by RPC
	// it has none.
	Message proto.Message
}

// A Replica is one datanode's copy of a block.
type Replica struct {
	Host string // as the datanode calls itself
	Addr string // IP:PORT of its data transfer, HOST:PORT with UseHostname
	ID   string // of the datanode
	Rack string // network location, such as /default-rack
}
