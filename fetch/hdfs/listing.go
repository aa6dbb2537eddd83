package hdfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"rankfs/fetch/hdfs/namenode"
	"rankfs/meta"
)

// list finds the files of the source, with their blocks if asked for.
func (s *Source) list(ctx context.Context, blocks bool) (*listing, error) {
	l := &listing{ctx: ctx, names: s.cluster.names, blocks: blocks,
		held: make(map[string][]namenode.Replica), racks: make(map[string]string)}
	as := wholeFiles
	var err error
	if isPattern(s.path) {
		err = l.names.Glob(ctx, s.path, blocks, l.add)
	} else {
		var st namenode.Status
		if st, err = l.names.Stat(ctx, s.path); err == nil {
			err = l.add(s.path, st)
		}
		if !st.Dir {
			as = "lines"
		}
	}
	if err == nil && len(l.files) == 0 {
		err = fmt.Errorf("source %q %w: it has no files", s.path, meta.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	if s.form.name == "" {
		if s.form, err = formOf(as); err != nil {
			return nil, err
		}
	}
	l.form = s.form.name
	slices.SortFunc(l.files, func(a, b file) int { return strings.Compare(a.path, b.path) })
	return l, nil
}

// Fingerprint implements fetch.Source. It asks for the state of every file.
func (s *Source) Fingerprint(ctx context.Context) (string, error) {
	l, err := s.list(ctx, false)
	if err != nil {
		return "", s.gone(err)
	}
	return l.fingerprint(), nil
}

// isPattern reports whether a path is one of Hadoop's patterns.
func isPattern(path string) bool { return strings.ContainsAny(path, "*?[{") }

// A listing is the files of a source, in the bytewise order of their paths.
//
// In a directory, names that begin with a dot or an underscore are passed
// over, as all of Hadoop does: they are marks and work in progress. A name
// that the source's path spells out is always taken.
type listing struct {
	ctx    context.Context
	names  *namenode.Client
	blocks bool
	form   string
	files  []file
	passed int
	held   map[string][]namenode.Replica // by the names of the hosts
	racks  map[string]string             // of hosts, where they are known
}

// add adds a file, or all files below a directory.
func (l *listing) add(p string, st namenode.Status) error {
	switch {
	case st.Link != "":
		l.passed++
		return nil
	case st.Dir:
		return l.dir(p)
	}
	f := file{p, st}
	if l.blocks && f.Blocks == nil {
		blocks, err := l.names.Locate(l.ctx, p, 0, st.Size)
		if err != nil {
			return err
		}
		f.Blocks = blocks
	}
	if err := f.refuse(); err != nil {
		return err
	}
	l.files = append(l.files, l.spare(f))
	return nil
}

// spare is a file with only the fields that a scan uses: a namenode sends kilobytes
// about each file, and there may be millions.
func (l *listing) spare(f file) file {
	kept := namenode.Status{Size: f.Size, ModTime: f.ModTime, FileID: f.FileID}
	if f.Blocks != nil {
		kept.Blocks = &namenode.Blocks{Blocks: make([]namenode.Block, len(f.Blocks.Blocks))}
		for i, b := range f.Blocks.Blocks {
			l.place(b)
			kept.Blocks.Blocks[i] = namenode.Block{Off: b.Off, Size: b.Size, Replicas: l.holders(b)}
		}
	}
	return file{f.path, kept}
}

// holders are a block's replicas, as a slice that all blocks on the same hosts share.
func (l *listing) holders(b namenode.Block) []namenode.Replica {
	names := hosts(b)
	key := strings.Join(names, " ")
	held, known := l.held[key]
	if !known {
		for _, name := range names {
			held = append(held, namenode.Replica{Host: name})
		}
		l.held[key] = held
	}
	return held
}

// defaultRack is the rack of all hosts in a namenode without a configured topology.
const defaultRack = "/default-rack"

// Bounds of racks that an index takes.
const maxRacked, maxRackName = 1 << 16, 1 << 10

// place notes the racks of a block's hosts. It is a hint: where all are in the
// default rack, or that of a host is nothing that an index can keep, none is known.
func (l *listing) place(b namenode.Block) {
	for _, r := range b.Replicas {
		rack, known := l.racks[r.Host]
		odd := r.Host == "" || r.Rack == "" || max(len(r.Host), len(r.Rack)) > maxRackName || strings.Contains(r.Host+r.Rack, "\x00")
		if odd || r.Rack == defaultRack || known && rack <= r.Rack || !known && len(l.racks) == maxRacked {
			continue
		}
		l.racks[r.Host] = r.Rack
	}
}

func (l *listing) dir(p string) error {
	var dirs []string
	err := l.names.List(l.ctx, p, l.blocks, func(st namenode.Status) error {
		switch {
		case strings.HasPrefix(st.Name, ".") || strings.HasPrefix(st.Name, "_"):
			l.passed++
			return nil
		case st.Dir: // its listing is another call: not within this one
			dirs = append(dirs, path.Join(p, st.Name))
			return nil
		}
		return l.add(path.Join(p, st.Name), st)
	})
	for _, d := range dirs {
		err = errors.Join(err, l.dir(d))
	}
	return err
}

// fingerprint identifies the content of all files, read in one form.
func (l *listing) fingerprint() string {
	sum := sha256.New()
	for _, f := range l.files {
		fmt.Fprintf(sum, "%q %s\n", f.path, f.stamp())
	}
	return l.form + ",sha256=" + hex.EncodeToString(sum.Sum(nil))
}
