package mounts

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"rankfs/meta"
)

// FSType is the file system type of our mounts in the kernel's table.
const FSType = "fuse.rankfs"

// A Mount is a line of the kernel's mount table.
type Mount struct {
	ID     int
	Device string // major:minor, in decimal
	Point  string
	Type   string
}

// Table returns the mounts that this process sees, the later above the
// earlier where they share a mount point.
func Table() ([]Mount, error) { return readTable("/proc/self/mountinfo") }

func readTable(file string) ([]Mount, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read mount table: %w", err)
	}
	return parseTable(data)
}

// parseTable reads the format of proc_pid_mountinfo(5):
// ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [FIELD...] - TYPE SOURCE OPTIONS
func parseTable(data []byte) ([]Mount, error) {
	var table []Mount
	for line := range bytes.Lines(data) {
		head, tail, ok := strings.Cut(string(line), " - ")
		fields, kind := strings.Fields(head), strings.Fields(tail)
		if !ok || len(fields) < 6 || len(kind) < 1 {
			return nil, fmt.Errorf("read mount table: odd line %q", line)
		}
		number, err := strconv.Atoi(fields[0])
		if err != nil {
			return nil, fmt.Errorf("read mount table: odd line %q", line)
		}
		table = append(table, Mount{number, fields[2], unescape(fields[4]), kind[0]})
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

// around returns the rankfs mount in which path lies, at its root or below. The mount of
// a shuffle pool is part of the one in which it is.
func around(table []Mount, path string) (Mount, bool) {
	for i := len(table) - 1; i >= 0; i-- {
		m := table[i]
		if m.Type == FSType && IsBelow(path, m.Point) && !isPool(table, m) {
			return m, true
		}
	}
	return Mount{}, false
}

// IsBelow reports whether path is point or below it.
func IsBelow(path, point string) bool {
	return path == point || strings.HasPrefix(path, strings.TrimSuffix(point, "/")+"/")
}

// isPool reports whether a mount is the shuffle pool of another.
func isPool(table []Mount, m Mount) bool {
	of, ok := strings.CutSuffix(m.Point, "/"+meta.PoolDir)
	return ok && slices.ContainsFunc(table, func(o Mount) bool { return o.Type == FSType && o.Point == of })
}

// poolOf is the mount of the shuffle pool of a mount, if it has one.
func poolOf(table []Mount, m Mount) (Mount, bool) {
	p, ok := At(table, filepath.Join(m.Point, meta.PoolDir))
	return p, ok && p.Type == FSType
}

// Resolve makes dir absolute and free of symbolic links as far as that goes
// without looking into a rankfs mount, whose daemon may be stopped.
func Resolve(dir string) (string, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("resolve %s: %w", dir, err)
	}
	table, err := Table()
	if err != nil {
		return "", err
	}
	return resolve(table, path)
}

func resolve(table []Mount, path string) (string, error) {
	done, rest := "/", strings.Split(strings.Trim(path, "/"), "/")
	for links := 0; len(rest) > 0; {
		next := filepath.Join(done, rest[0])
		rest = rest[1:]
		if _, inside := around(table, next); inside {
			return filepath.Join(append([]string{next}, rest...)...), nil
		}
		target, err := os.Readlink(next)
		if err != nil { // no link, or nothing there
			done = next
			continue
		}
		if links++; links > 40 {
			return "", fmt.Errorf("resolve %s: too many symbolic links", path)
		}
		if filepath.IsAbs(target) {
			done = "/"
		}
		rest = append(strings.Split(strings.Trim(target, "/"), "/"), rest...)
	}
	return done, nil
}
