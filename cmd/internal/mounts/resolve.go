package mounts

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rankfs/meta"
	"rankfs/meta/mountinfo"
)

// around returns the rankfs mount in which path lies, at its root or below. The mount of
// a shuffle pool is part of the one in which it is.
func around(table []mountinfo.Mount, path string) (mountinfo.Mount, bool) {
	for i := len(table) - 1; i >= 0; i-- {
		m := table[i]
		if m.Type == mountinfo.FSType && mountinfo.IsBelow(path, m.Point) && !isPool(table, m) {
			return m, true
		}
	}
	return mountinfo.Mount{}, false
}

// isPool reports whether a mount is the shuffle pool of another.
func isPool(table []mountinfo.Mount, m mountinfo.Mount) bool {
	of, ok := strings.CutSuffix(m.Point, "/"+meta.PoolDir)
	return ok && slices.ContainsFunc(table, func(o mountinfo.Mount) bool { return o.Type == mountinfo.FSType && o.Point == of })
}

// poolOf is the mount of the shuffle pool of a mount, if it has one.
func poolOf(table []mountinfo.Mount, m mountinfo.Mount) (mountinfo.Mount, bool) {
	p, ok := mountinfo.At(table, filepath.Join(m.Point, meta.PoolDir))
	return p, ok && p.Type == mountinfo.FSType
}

// Resolve makes dir absolute and free of symbolic links as far as that goes
// without looking into a rankfs mount, whose daemon may be stopped.
func Resolve(dir string) (string, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("resolve %s: %w", dir, err)
	}
	table, err := mountinfo.Read()
	if err != nil {
		return "", err
	}
	return resolve(table, path)
}

func resolve(table []mountinfo.Mount, path string) (string, error) {
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
