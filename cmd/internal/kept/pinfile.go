package kept

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"rankfs/cache/policy"
	"rankfs/meta"
)

// The file of what is pinned in the cache has a line that says so, a line for
// each view with its tier first, in the order of the views, and the sum of these.
const (
	pinsMagic   = "rankfs cached 1\n"
	maxPinsFile = 1 << 20
)

// maxCachePins bounds the file.
const maxCachePins = 1024

func encodePins(levels map[string]policy.Level) []byte {
	var b bytes.Buffer
	b.WriteString(pinsMagic)
	for _, view := range slices.Sorted(maps.Keys(levels)) {
		fmt.Fprintf(&b, "%s %s\n", tierNames[levels[view]], view)
	}
	fmt.Fprintf(&b, "%016x\n", xxhash.Sum64(b.Bytes()))
	return b.Bytes()
}

// decodePins refuses what encodePins would not write.
func decodePins(text []byte) (map[string]policy.Level, error) {
	lines := strings.Split(string(text), "\n")
	if len(lines) < 3 || len(lines) > maxCachePins+3 {
		return nil, fmt.Errorf("%w: it has %d lines", meta.ErrCorrupt, len(lines))
	}
	levels := make(map[string]policy.Level)
	for _, line := range lines[1 : len(lines)-2] {
		tier, view, _ := strings.Cut(line, " ")
		at, err := parseTier(tier)
		if dataset, _, _ := meta.SplitView(view); err != nil || meta.CheckName(dataset) != nil {
			return nil, fmt.Errorf("%w: it says %.80q", meta.ErrCorrupt, line)
		}
		levels[view] = at
	}
	if !bytes.Equal(encodePins(levels), text) {
		return nil, fmt.Errorf("%w: it does not match its checksum", meta.ErrCorrupt)
	}
	return levels, nil
}

// tierNames are the names of levels, in files and messages.
var tierNames = [policy.Levels]string{policy.Disk: "nvme", policy.Packed: "packed", policy.RAM: "ram"}

// parseTier is the level of a tier's name.
func parseTier(name string) (policy.Level, error) {
	for at := policy.RAM; at > policy.Source; at-- {
		if tierNames[at] == name {
			return at, nil
		}
	}
	return policy.Source, fmt.Errorf("tier %q %w: choose one of ram, packed, nvme", name, meta.ErrInvalid)
}
