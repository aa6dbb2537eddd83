package fs

import (
	"context"
	"strconv"
	"strings"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
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

// lane is the stage once more. The name goes with the stage.
func (n *stageDir) lane(ctx context.Context, number uint64, out *fuse.EntryOut) *fusefs.Inode {
	d := &stageDir{ofStage: n.ofStage, isLane: true}
	d.attributes(&out.Attr)
	out.SetAttrTimeout(attributesStay)
	out.SetEntryTimeout(attributesStay)
	return n.NewInode(ctx, d, fusefs.StableAttr{Mode: syscall.S_IFDIR, Ino: inoStage | (number+1)<<laneBits | n.stage.Number()})
}

// Rmdir implements fusefs.NodeRmdirer: a lane goes with its stage.
func (n *stageDir) Rmdir(context.Context, string) syscall.Errno { return syscall.EPERM }
