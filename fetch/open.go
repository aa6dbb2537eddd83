package fetch

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"rankfs/fetch/lmdb"
	"rankfs/fetch/local"
	"rankfs/fetch/splits"
	"rankfs/fetch/stage"
	"rankfs/fetch/uri"
	"rankfs/meta"
)

// Open opens the source that a URI names; package uri says how.
func Open(text string, env *Env) (Source, error) {
	src, err := open(text, env)
	if err != nil {
		return nil, fmt.Errorf("open source %q: %w", text, err)
	}
	return src, nil
}

func open(text string, env *Env) (Source, error) {
	u, err := uri.Parse(text)
	if err != nil {
		return nil, err
	}
	if env == nil {
		env = new(Env)
	}
	if u.Local() && env.Mount != "" {
		own, err := ownMountAt(env.Mount)
		if err == nil {
			err = own.refuse(u)
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case u.Derived():
		return source(openDerived(u, env, Open))
	case u.Local() && u.IsLMDB():
		return source(lmdb.Open(u.Path, u.DB, env.Holds))
	case u.Local():
		return openLocal(u)
	case u.InPool() && env.Pool == nil:
		return nil, fmt.Errorf("shuffle pool %w: there is none here", meta.ErrInvalid)
	case u.InPool():
		return source(stage.Open(env.Pool, u.Job, u.Stage))
	case env.HDFS == nil:
		return nil, fmt.Errorf("hdfs %w: no cluster is configured", meta.ErrInvalid)
	case u.Copied():
		return source(env.HDFS.OpenLMDB(u.Authority, u.Path, u.DB))
	}
	return source(env.HDFS.Open(u.Authority, u.Path, u.As))
}

// Looks has what looks through splits for other nodes of sources that several nodes can
// index together, by their schemes.
func (e *Env) Looks() map[string]splits.Look {
	return map[string]splits.Look{
		uri.HDFS: e.HDFS.Find,
	}
}

func openLocal(u uri.URI) (Source, error) {
	info, err := os.Stat(u.Path)
	if err != nil {
		return nil, meta.AtPath(u.Path, err)
	}
	as := u.As
	if as == "" && info.IsDir() {
		as = "files"
	}
	number, isFixed := strings.CutPrefix(as, "fixed:")
	switch {
	case as == "files" && info.IsDir():
		return source(local.OpenTree(u.Path))
	case as == "files":
		return source(local.OpenWhole(u.Path))
	case as == "lines" || as == "":
		return source(local.OpenLines(u.Path))
	case isFixed:
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("as=%s %w: use a number of bytes, as fixed:4096", as, meta.ErrInvalid)
		}
		return source(local.OpenFixed(u.Path, n))
	}
	return nil, fmt.Errorf("as=%s %w: use lines, fixed:N or files", as, meta.ErrInvalid)
}

// source is s as an interface, which is nil if there is none.
func source[S Source](s S, err error) (Source, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}
