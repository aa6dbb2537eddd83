package peers

import (
	"fmt"

	"rankfs/meta"
	"rankfs/meta/wire"
)

// The numbers of the calls.
const (
	callRecords uint8 = 1
	callFile    uint8 = 2
	callFind    uint8 = 3 // in HDFS
	callFindIn  uint8 = 4 // in sources of the scheme that its first line says
)

// An ID is the SHA-256 of an index file, and so names the dataset it is of.
type ID = [32]byte

// A Run is N records of a dataset, from First on.
type Run = wire.Run

var errNoRuns = fmt.Errorf("request for no records %w: ask for 1 to %d runs", meta.ErrInvalid, wire.MaxRuns)
