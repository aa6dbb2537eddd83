package views

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rankfs/fs"
	"rankfs/fs/xattr"
	"rankfs/meta"
)

// maxHostsWidth bounds the column of a chunk's hosts. A block has three, with
// names of some twenty letters.
const maxHostsWidth = 4096

// Chunks implements fs.Tables: the dataset's chunks, the same in all its views. The
// first line says how many there are, so that a reader knows a table that is
// cut short, and shows by its own length how long each line is.
func (v *View) Chunks() fs.Table {
	a := v.now()
	x, n := a.Version.Index, a.Version.Index.Chunks()
	column := func(title string, most int64) string {
		return fmt.Sprintf("%*s  ", len(strconv.FormatInt(most, 10)), title)
	}
	titles := []string{
		fmt.Sprintf("chunk of %d  ", n), column("offset", x.Bytes()), column("bytes", x.Bytes()),
		column("first", int64(x.Records())), column("records", int64(x.Records())),
		fmt.Sprintf("%-*s\n", a.holdersWidth(), "hosts"),
	}
	return fs.Table{
		Lines: 1 + uint64(n),
		Width: len(strings.Join(titles, "")),
		Append: func(_ context.Context, dst []byte, i uint64) ([]byte, error) {
			if i == 0 {
				return append(dst, strings.Join(titles, "")...), nil
			}
			number := int(i - 1)
			c := x.Chunk(number)
			for i, n := range []int64{int64(number), x.ChunkOffset(number), c.Bytes, int64(c.First), int64(c.Records)} {
				dst = appendCell(dst, n, len(titles[i]))
			}
			return appendHosts(dst, a.chunkHosts(a.host, number), len(titles[5])), nil
		},
	}
}

// holdersWidth is the same for all hosts of a chunk. Where replicas moved since
// the index was made there may be more, or longer names; what does not fit is left out.
func (a *assignment) holdersWidth() int {
	if !a.Version.Source.Remote {
		return max(len("hosts"), len(a.Version.Source.Host(a.host)))
	}
	longest, most := a.Version.HostNames()
	return max(len("hosts"), min(maxHostsWidth, max(most, maxHolders)*(longest+1)-1))
}

// appendCell appends a number at the right of a column that two spaces end.
func appendCell(dst []byte, n int64, width int) []byte {
	var digits [20]byte
	d := strconv.AppendInt(digits[:0], n, 10)
	return append(append(appendBlanks(dst, width-2-len(d)), d...), "  "...)
}

func appendBlanks(dst []byte, n int) []byte {
	for ; n > 0; n-- {
		dst = append(dst, ' ')
	}
	return dst
}

// appendHosts appends the last column: as many whole names as fit, or a dash.
func appendHosts(dst []byte, hosts []string, width int) []byte {
	begin, end := len(dst), len(dst)+width-1
	for _, h := range hosts {
		if !isHost(h) || len(dst)+len(h) > end { // its comma goes, if it is the last
			continue
		}
		dst = append(append(dst, h...), ',')
	}
	if len(dst) > begin {
		dst = dst[:len(dst)-1]
	} else {
		dst = append(dst, '-')
	}
	return append(appendBlanks(dst, end-len(dst)), '\n')
}

// isHost reports whether a name can stand in a list of words. Names come from
// datanodes, which may call themselves anything.
func isHost(name string) bool {
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c >= 0x7f || c == ',' {
			return false
		}
	}
	return name != "" && name != "-"
}

// HostsCalled implements fs.Unlisted. A host that has got another name since its node was
// admitted has what stands there by either.
func (v *View) HostsCalled(name string) []string {
	a, names := v.now(), []string{name}
	for _, n := range v.state.OnHost(name) {
		names = append(names, n.Host)
	}
	found := a.Version.HostsCalled(names...)
	if !a.Version.Source.Remote {
		if h := a.Version.Source.Host(a.host); slices.ContainsFunc(names, func(name string) bool { return meta.SameHost(h, name) }) {
			found = append(found, h)
		}
	}
	found = slices.DeleteFunc(found, func(h string) bool { return !isHost(h) })
	slices.Sort(found)
	return slices.Compact(found)
}

// Totals implements fs.Attributed.
func (v *View) Totals() xattr.List {
	x := v.dataset.Version.Index
	return xattr.List{
		{Name: "chunks", Value: strconv.Itoa(x.Chunks())},
		{Name: "bytes", Value: strconv.FormatInt(x.Bytes(), 10)},
		{Name: "records", Value: strconv.FormatUint(x.Records(), 10)},
	}
}
