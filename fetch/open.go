package fetch

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"rankfs/fetch/hdfs"
	"rankfs/fetch/lmdb"
	"rankfs/fetch/local"
	"rankfs/meta"
)

// Open opens the source that a URI names:
//
//	lmdb:PATH[?db=NAME]                   a data file or the directory it is in
//	file:PATH[?as=lines|fixed:N|files]    the default is lines for a file, files for a directory
//	hdfs://[HOST:PORT]/PATH[?as=FORM]     a file, a directory or a pattern; see fetch/hdfs
//	hdfs://[HOST:PORT]/PATH?as=lmdb[&db=NAME]  an LMDB that is copied here; see fetch/hdfs
//
// Paths are absolute and taken as they are. Options follow the last question
// mark, with percent signs decoded; a path that has one needs another at its
// end.
func Open(uri string, env *Env) (Source, error) {
	src, err := open(uri, env)
	if err != nil {
		return nil, fmt.Errorf("open source %q: %w", uri, err)
	}
	return src, nil
}

// An Env is what all sources of a process share. Without one, an LMDB database
// is stale as soon as anybody writes to it, and HDFS cannot be reached.
type Env struct {
	Pins *lmdb.Pins
	HDFS *hdfs.Clusters
}

// IsRemote reports whether bytes of a source are dear to ask for and cheap once
// they flow, so that chunks are better fetched whole. Those of an LMDB in HDFS
// are not: they come from a local copy.
func IsRemote(uri string) bool {
	as, ok := inHDFS(uri)
	return ok && as != "lmdb"
}

// IsCopied reports whether a source is brought to a local disk as a whole before
// anything of it is read.
func IsCopied(uri string) bool {
	as, ok := inHDFS(uri)
	return ok && as == "lmdb"
}

// inHDFS says what form a source in HDFS has, if it is one.
func inHDFS(uri string) (as string, ok bool) {
	rest, ok := strings.CutPrefix(uri, "hdfs:")
	_, _, options, err := splitHDFS(rest)
	return options["as"], ok && err == nil
}

func open(uri string, env *Env) (Source, error) {
	scheme, rest, ok := strings.Cut(uri, ":")
	if !ok {
		return nil, fmt.Errorf("it %w: use file:PATH, lmdb:PATH or hdfs://HOST:PORT/PATH", meta.ErrInvalid)
	}
	if env == nil {
		env = new(Env)
	}
	switch scheme {
	case "file":
		return openLocal(rest)
	case "lmdb":
		return openLMDB(rest, env)
	case "hdfs":
		return openHDFS(rest, env)
	}
	return nil, fmt.Errorf("scheme %q %w: there are file, lmdb and hdfs", scheme, meta.ErrInvalid)
}

func openHDFS(rest string, env *Env) (Source, error) {
	if env.HDFS == nil {
		return nil, fmt.Errorf("hdfs %w: no cluster is configured", meta.ErrInvalid)
	}
	authority, path, options, err := splitHDFS(rest)
	if err != nil {
		return nil, err
	}
	db, named := options["db"]
	switch {
	case options["as"] == "lmdb":
		return source(env.HDFS.OpenLMDB(authority, path, db))
	case named:
		return nil, fmt.Errorf("db=%s %w: it is a database of an LMDB; add as=lmdb", db, meta.ErrInvalid)
	}
	return source(env.HDFS.Open(authority, path, options["as"]))
}

func splitHDFS(rest string) (authority, path string, options map[string]string, err error) {
	rest, ok := strings.CutPrefix(rest, "//")
	authority, path, _ = strings.Cut(rest, "/")
	if !ok {
		return "", "", nil, fmt.Errorf("hdfs:%s %w: use hdfs://HOST:PORT/PATH, or hdfs:///PATH for the default of the configuration", rest, meta.ErrInvalid)
	}
	path, options, err = splitOptions("/"+path, "as", "db")
	return authority, path, options, err
}

func openLMDB(rest string, env *Env) (Source, error) {
	path, options, err := splitOptions(rest, "db")
	if err != nil {
		return nil, err
	}
	return source(lmdb.Open(path, options["db"], env.Pins))
}

func openLocal(rest string) (Source, error) {
	path, options, err := splitOptions(rest, "as")
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	as, given := options["as"]
	switch {
	case !given && info.IsDir():
		as = "files"
	case !given:
		as = "lines"
	}
	number, isFixed := strings.CutPrefix(as, "fixed:")
	switch {
	case as == "files" && info.IsDir():
		return source(local.OpenTree(path))
	case as == "files":
		return source(local.OpenWhole(path))
	case as == "lines":
		return source(local.OpenLines(path))
	case isFixed:
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("as=%s %w: use a number of bytes, as fixed:4096", as, meta.ErrInvalid)
		}
		return source(local.OpenFixed(path, n))
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

// splitOptions divides the part of a URI after the scheme into the path and
// the options, which must be among those known.
func splitOptions(rest string, known ...string) (path string, options map[string]string, err error) {
	path, query := rest, ""
	if i := strings.LastIndexByte(rest, '?'); i >= 0 {
		path, query = rest[:i], rest[i+1:]
	}
	if strings.HasPrefix(path, "//") && !strings.HasPrefix(path, "///") {
		return "", nil, fmt.Errorf("path %q %w: it begins with the name of a host; use one slash, or three", path, meta.ErrInvalid)
	}
	if !filepath.IsAbs(path) {
		return "", nil, fmt.Errorf("path %q %w: use an absolute path", path, meta.ErrInvalid)
	}
	options, err = parseOptions(query, known)
	return "/" + strings.TrimLeft(path, "/"), options, err
}

func parseOptions(query string, known []string) (map[string]string, error) {
	options := make(map[string]string)
	if query == "" {
		return options, nil
	}
	for option := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(option, "=")
		if _, twice := options[key]; twice || !slices.Contains(known, key) {
			return nil, fmt.Errorf("option %q %w: use %s, once; a path with a '?' needs another at its end",
				option, meta.ErrInvalid, strings.Join(known, ", "))
		}
		value, err := url.PathUnescape(value)
		if err != nil {
			return nil, fmt.Errorf("option %q %w: %v", option, meta.ErrInvalid, err)
		}
		options[key] = value
	}
	return options, nil
}
