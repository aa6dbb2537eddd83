package mapfiles

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"rankfs/meta/state"
)

const (
	mapsDir = "maps"

	// Idx ends the name of a map's table, and of the offsets of an attempt.
	Idx = ".idx"

	incoming = ".incoming" // ends the name of what is not whole yet
)

// StageDir is the directory of a stage.
func StageDir(stage uint64) string { return strconv.FormatUint(stage, 10) }

// Dir is the directory of a stage's maps.
func Dir(stage uint64) string { return path.Join(StageDir(stage), mapsDir) }

// Path is where a committed attempt is, on its writer's node and where there are copies of it.
func Path(stage uint64, c state.Commit) string {
	b := append(strconv.AppendUint(make([]byte, 0, 80), stage, 10), "/"+mapsDir+"/"...)
	b = appendPadded(b, c.Map, 10, 6)
	b = append(strconv.AppendUint(append(b, '.'), c.Attempt, 10), '.')
	b = append(append(b, c.Writer...), '.')
	return string(appendPadded(b, c.Sum, 16, 16))
}

// appendPadded appends a number with zeros before it. A part has a path of each map, which
// package fmt takes longer for than what is read there.
func appendPadded(b []byte, n uint64, base, width int) []byte {
	var digits [64]byte
	d := strconv.AppendUint(digits[:0], n, base)
	for range width - len(d) {
		b = append(b, '0')
	}
	return append(b, d...)
}

// NumberOf is the number of the map of which a name in the directory of maps is, if it is of one.
func NumberOf(name string) (number uint64, ok bool) {
	digits, _, _ := strings.Cut(name, ".")
	number, err := strconv.ParseUint(digits, 10, 64)
	return number, err == nil
}

// mapOf is the map of which a name in its directory is: of its bytes, its table, or one of
// them that is not whole.
func mapOf(name string) string {
	fields := strings.SplitN(name, ".", 5)
	return strings.Join(fields[:min(4, len(fields))], ".")
}

func mapFile(stage uint64, name string) string { return path.Join(Dir(stage), mapOf(name)) }

// A TailName tells what comes of an attempt before it is committed from all else.
type TailName struct {
	Map, Attempt uint64
	Writer       string
	Nonce        uint64
}

// file is the name of the file in which it comes.
func (n TailName) file(stage uint64) string {
	return path.Join(Dir(stage), fmt.Sprintf("%06d.%d.%s.tail.%016x%s", n.Map, n.Attempt, n.Writer, n.Nonce, incoming))
}
