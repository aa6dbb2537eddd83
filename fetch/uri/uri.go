// Package uri parses the URIs that name sources.
//
// It is the only place where a URI is taken apart; all code that depends on the kind
// of a source asks a URI's methods. It does no I/O.
package uri

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"rankfs/meta"
)

// A URI names a source:
//
//	lmdb:PATH[?db=NAME]                        a data file or the directory it is in
//	file:PATH[?as=lines|fixed:N|files]         the default is lines for a file, files for a directory
//	hdfs://[HOST:PORT]/PATH[?as=FORM]          a file, a directory or a pattern; see fetch/hdfs
//	hdfs://[HOST:PORT]/PATH?as=lmdb[&db=NAME]  an LMDB that is copied here; see fetch/hdfs
//	dataset:NAME[?records=FIRST-[LAST]]        records of another dataset, in its order
//	shuffle:JOB/STAGE                          the parts of a sealed stage of the shuffle pool
//
// Paths are absolute and taken as they are. Options follow the last question mark,
// with percent signs decoded; a path that has one needs another at its end.
type URI struct {
	Scheme    string
	Authority string // of HDFS; empty: the default of the configuration
	Path      string
	As        string // the form of the records; empty: the default
	DB        string // of an LMDB; empty: the one without a name
	Base      string // the dataset that this one is made of; empty: none
	Job       string // of the shuffle pool, with its stage; empty: none
	Stage     string
	From, To  uint64 // the records of it, without the last; To is the largest number if all from From on are meant
}

// The schemes.
const (
	File    = "file"
	LMDB    = "lmdb"
	HDFS    = "hdfs"
	Dataset = "dataset"
	Shuffle = "shuffle"
)

// Local reports whether the source is a file or a directory at a path of this host.
func (u URI) Local() bool { return u.Scheme == File || u.Scheme == LMDB }

// Derived reports whether the source is made of another dataset, which Base names.
func (u URI) Derived() bool { return u.Scheme == Dataset }

// InHDFS reports whether the source is a path in the cluster of HDFS that its authority
// names.
func (u URI) InHDFS() bool { return u.Scheme == HDFS }

// InPool reports whether the source is a stage of the shuffle pool.
func (u URI) InPool() bool { return u.Scheme == Shuffle }

// Remote reports whether the source is on hosts that the index names, where a request
// costs much and a further byte little, so that chunks are better fetched whole. An
// LMDB in HDFS is not remote: it is read from a local copy.
func (u URI) Remote() bool { return u.InHDFS() && !u.Copied() || u.InPool() }

// Named reports whether the source is known by a name and not by a path.
func (u URI) Named() bool { return u.Derived() || u.InPool() }

// Copied reports whether the whole source is copied to a local disk before any of it
// is read.
func (u URI) Copied() bool { return u.InHDFS() && u.As == "lmdb" }

// Whole reports whether to read some of a chunk costs about as much as all of it.
func (u URI) Whole() bool { return u.InPool() }

// IsLMDB reports whether the records are those of an LMDB database.
func (u URI) IsLMDB() bool { return u.Scheme == LMDB || u.Copied() }

// HasForms reports whether there is more than one way to divide the source into
// records.
func (u URI) HasForms() bool { return u.Scheme == File || u.InHDFS() }

// FormIsFound reports whether it is not said how the source is divided into records: that
// depends on what is found at its path on this host.
func (u URI) FormIsFound() bool { return u.Scheme == File && u.As == "" }

// Cut divides a URI into its parts, whatever they are: the path as it is written,
// with the authority before it, and the query after the last question mark.
func Cut(text string) (scheme, path, query string, ok bool) {
	scheme, path, ok = strings.Cut(text, ":")
	if i := strings.LastIndexByte(path, '?'); i >= 0 {
		path, query = path[:i], path[i+1:]
	}
	return scheme, path, query, ok
}

// Parse reads a URI.
func Parse(text string) (u URI, err error) {
	scheme, path, query, ok := Cut(text)
	if !ok {
		return URI{}, fmt.Errorf("it %w: use file:PATH, lmdb:PATH, hdfs://HOST:PORT/PATH, dataset:NAME or shuffle:JOB/STAGE", meta.ErrInvalid)
	}
	u.Scheme = scheme
	known := []string{"as", "db"}
	switch scheme {
	case File:
		known = known[:1]
	case LMDB:
		known = known[1:]
	case Dataset:
		return parseDataset(path, query)
	case Shuffle:
		return parseStage(path, query)
	case HDFS:
		if u.Authority, path, ok = cutAuthority(path); !ok {
			return URI{}, fmt.Errorf("hdfs:%s %w: use hdfs://HOST:PORT/PATH, or hdfs:///PATH for the default of the configuration", path, meta.ErrInvalid)
		}
	default:
		return URI{}, fmt.Errorf("scheme %q %w: there are file, lmdb, hdfs, dataset and shuffle", scheme, meta.ErrInvalid)
	}
	if u.Path, err = clean(path); err != nil {
		return URI{}, err
	}
	options, err := parseOptions(query, known)
	if err != nil {
		return URI{}, err
	}
	u.As, u.DB = options["as"], options["db"]
	if _, named := options["db"]; named && !u.IsLMDB() {
		return URI{}, fmt.Errorf("db=%s %w: it is a database of an LMDB; add as=lmdb", u.DB, meta.ErrInvalid)
	}
	return u, nil
}

func parseDataset(name, query string) (URI, error) {
	if err := meta.CheckName(name); err != nil {
		return URI{}, err
	}
	options, err := parseOptions(query, []string{"records"})
	if err != nil {
		return URI{}, err
	}
	u := URI{Scheme: Dataset, Base: name, To: math.MaxUint64}
	text, some := options["records"]
	if !some {
		return u, nil
	}
	first, last, _ := strings.Cut(text, "-")
	if u.From, err = strconv.ParseUint(first, 10, 63); err == nil && last != "" {
		u.To, err = strconv.ParseUint(last, 10, 63)
		u.To++
	}
	if err != nil || !strings.Contains(text, "-") || u.From >= u.To {
		wrong := ""
		if err == nil && u.From >= u.To {
			wrong = "LAST is before FIRST; "
		}
		return URI{}, fmt.Errorf("records=%s %w: %suse FIRST-LAST, both counted from 0, or FIRST- for all from there on", text, meta.ErrInvalid, wrong)
	}
	return u, nil
}

func parseStage(path, query string) (URI, error) {
	job, stage, ok := strings.Cut(path, "/")
	if !ok || query != "" {
		return URI{}, fmt.Errorf("stage %q of the shuffle pool %w: use shuffle:JOB/STAGE, without options; what a record is the spec of the stage says", path, meta.ErrInvalid)
	}
	if err := cmp.Or(meta.CheckName(job), meta.CheckName(stage)); err != nil {
		return URI{}, err
	}
	return URI{Scheme: Shuffle, Job: job, Stage: stage}, nil
}

// cutAuthority divides what follows hdfs: into the authority and the path.
func cutAuthority(rest string) (authority, path string, ok bool) {
	rest, ok = strings.CutPrefix(rest, "//")
	if !ok {
		return "", rest, false
	}
	authority, path, _ = strings.Cut(rest, "/")
	return authority, "/" + path, true
}

// clean is a path that begins with one slash.
func clean(path string) (string, error) {
	if strings.HasPrefix(path, "//") && !strings.HasPrefix(path, "///") {
		return "", fmt.Errorf("path %q %w: it begins with the name of a host; use one slash, or three", path, meta.ErrInvalid)
	}
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("path %q %w: use an absolute path", path, meta.ErrInvalid)
	}
	return "/" + strings.TrimLeft(path, "/"), nil
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
