// Package mountinfo reads the kernel's table of mounts, which touches none of them: one may
// be served by this process, or by a daemon that is stopped.
package mountinfo

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// FSType is the file system type of our mounts.
const FSType = "fuse.rankfs"

// A Mount is a line of the table.
type Mount struct {
	ID      int
	Device  string // major:minor, in decimal
	Root    string // what of the file system is mounted
	Point   string
	Type    string
	Source  string // as its daemon, or who mounted it, says
	Options string // of the file system
}

// Read returns the mounts that this process sees, the later above the
// earlier where they share a mount point.
func Read() ([]Mount, error) { return read("/proc/self/mountinfo") }

// Of is Read as another process sees it.
func Of(pid int) ([]Mount, error) { return read(fmt.Sprintf("/proc/%d/mountinfo", pid)) }

func read(file string) ([]Mount, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read mount table: %w", err)
	}
	return Parse(data)
}

// Parse reads the format of proc_pid_mountinfo(5), as far as it is that:
// ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [FIELD...] - TYPE SOURCE OPTIONS
func Parse(data []byte) (table []Mount, err error) {
	for line := range bytes.Lines(data) {
		head, tail, ok := strings.Cut(string(line), " - ")
		f, kind := strings.Fields(head), strings.Fields(tail)
		if !ok || len(f) < 6 || len(kind) < 1 {
			return table, fmt.Errorf("read mount table: odd line %q", line)
		}
		id, err := strconv.Atoi(f[0])
		if err != nil {
			return table, fmt.Errorf("read mount table: odd line %q", line)
		}
		m := Mount{ID: id, Device: f[2], Root: unescape(f[3]), Point: unescape(f[4]), Type: kind[0], Options: kind[len(kind)-1]}
		if len(kind) > 2 {
			m.Source = unescape(kind[1])
		}
		table = append(table, m)
	}
	return table, nil
}

// unescape undoes the kernel's \ooo for blanks and backslashes.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// At returns the topmost mount on point.
func At(table []Mount, point string) (Mount, bool) {
	for i := len(table) - 1; i >= 0; i-- {
		if table[i].Point == point {
			return table[i], true
		}
	}
	return Mount{}, false
}

// IsBelow reports whether path is point or below it.
func IsBelow(path, point string) bool {
	return path == point || strings.HasPrefix(path, strings.TrimSuffix(point, "/")+"/")
}
