package pooltree

import (
	"strconv"
	"strings"
)

// The kernel creates and renames one file at a time in a directory, and waits for the daemon
// meanwhile: of a stage one map at a time would be committed on a node. So each stage has
// directories that are the stage once more, with the same files. They are not listed, and
// programs that commit many maps at a time do so in several of them.
const (
	lanePrefix = ".lane-"
	lanes      = 64 // more than a node has that write at a time, as a rule
	laneBits   = 52 // of the number of a stage; that of its lane stands above it
)

// parseLane reads the name of such a directory: its number has two digits.
func parseLane(name string) (number uint64, ok bool) {
	digits, ok := strings.CutPrefix(name, lanePrefix)
	number, err := strconv.ParseUint(digits, 10, 8)
	return number, ok && err == nil && len(digits) == 2 && number < lanes
}
