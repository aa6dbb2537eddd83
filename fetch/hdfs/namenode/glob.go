package namenode

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"rankfs/meta"
)

// Glob calls each once for every path that matches a pattern, with its status. In an
// element of the pattern, * stands for any characters, ? for one, [a-b] for one of a
// range, [^a] for one other than a, {a,b} for one of the texts, which may have
// slashes, and \ takes away the next character's meaning. It is no error if no path
// matches. If located is set the status has the blocks of a file.
func (c *Client) Glob(ctx context.Context, pattern string, located bool, each func(name string, st Status) error) error {
	alternatives, err := expand(pattern)
	if err != nil {
		return fmt.Errorf("HDFS pattern %q: %w", pattern, err)
	}
	var globs []glob
	for _, a := range alternatives {
		g, err := parseGlob(a)
		if err != nil {
			return fmt.Errorf("HDFS pattern %q: %w", pattern, err)
		}
		w := walk{client: c, glob: g, located: located, each: func(name string, st Status) error {
			if slices.ContainsFunc(globs, func(g glob) bool { return g.matches(name) }) {
				return nil // an earlier alternative had it
			}
			return each(name, st)
		}}
		if err := w.below(ctx, "/", 0); err != nil {
			return err
		}
		globs = append(globs, g)
	}
	return nil
}

// A walk goes down the tree along a glob.
type walk struct {
	client  *Client
	glob    glob
	located bool
	each    func(name string, st Status) error
}

// below looks in a directory for paths that match the elements of the glob from i on.
func (w walk) below(ctx context.Context, dir string, i int) error {
	for i < len(w.glob) && w.glob[i].plain {
		dir = path.Join(dir, w.glob[i].text)
		i++
	}
	if i == len(w.glob) {
		return w.exactly(ctx, dir)
	}
	last := i == len(w.glob)-1
	var inner error
	err := w.client.List(ctx, dir, w.located && last, func(st Status) error {
		switch {
		case st.Name == "" || !w.glob[i].matches(st.Name):
		case last:
			inner = w.each(path.Join(dir, st.Name), st)
		case st.Dir:
			inner = w.below(ctx, path.Join(dir, st.Name), i+1)
		}
		return inner
	})
	if inner != nil {
		return inner
	}
	return unlessGone(err)
}

// exactly tells of one path, if it is there.
func (w walk) exactly(ctx context.Context, name string) error {
	st, err := w.client.Stat(ctx, name)
	if err == nil && w.located && !st.Dir {
		st.Blocks, err = w.client.Locate(ctx, name, 0, st.Size)
	}
	if err != nil {
		return unlessGone(err)
	}
	st.Name = path.Base(name)
	return w.each(name, st)
}

// unlessGone returns err, or nil if err is that of a path that does not exist (any
// more).
func unlessGone(err error) error {
	if errors.Is(err, meta.ErrNotExist) {
		return nil
	}
	return err
}

// A glob is a pattern without alternatives that have slashes, by elements.
type glob []element

func (g glob) matches(name string) bool {
	names := strings.Split(strings.TrimPrefix(name, "/"), "/")
	if len(names) != len(g) {
		return false
	}
	for i, e := range g {
		if !e.matches(names[i]) {
			return false
		}
	}
	return true
}

func parseGlob(pattern string) (glob, error) {
	var g glob
	for _, e := range strings.Split(strings.TrimPrefix(pattern, "/"), "/") {
		x, err := parseElement(e)
		if err != nil {
			return nil, err
		}
		g = append(g, x)
	}
	return g, nil
}
