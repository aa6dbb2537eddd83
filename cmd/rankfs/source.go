package main

import (
	"cmp"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"rankfs/cmd/internal/failure"
	"rankfs/fetch/uri"
	"rankfs/meta"
)

// sourceURI spells a source as the daemon wants it: SCHEME:PATH?OPTIONS, the path
// absolute and otherwise as it is, what --as and --db say among the options.
func sourceURI(source, as, db string) (string, error) {
	scheme, path, query, ok := uri.Cut(source)
	if !ok || strings.ContainsAny(scheme, "/.") {
		return "", failure.Hint(fmt.Errorf("source %q does not say of what kind it is", source),
			"use lmdb:%[1]s for an LMDB, file:%[1]s with --as lines, fixed:N or files, hdfs://HOST:PORT/PATH, dataset:NAME, or shuffle:JOB/STAGE", source)
	}
	kind, _ := uri.Parse(source) // one with a relative path is none yet
	kind.Scheme, kind.As = scheme, cmp.Or(as, kind.As)
	switch {
	case kind.Named():
		return namedURI(source, as, db)
	case as != "" && !kind.HasForms():
		return "", fmt.Errorf("--as is for a file or HDFS, and this is %q", source)
	case db != "" && !kind.IsLMDB():
		return "", fmt.Errorf("--db is for an lmdb source, and this is %q", source)
	case path == "":
		return "", fmt.Errorf("source %q names no path", source)
	}
	if key, ok := emptyOption(query); ok {
		return "", meta.Worded(meta.ErrInvalid, "source %q has an option that says nothing: %s=; say what it is, or leave it out", source, key)
	}
	if !strings.HasPrefix(path, "//") { // the daemon has the words for those that do
		var err error
		if path, err = filepath.Abs(path); err != nil {
			return "", fmt.Errorf("source %q: %w", source, err)
		}
	}
	query, err := addOption(query, "as", as)
	if err != nil {
		return "", err
	}
	if query, err = addOption(query, "db", db); err != nil {
		return "", err
	}
	if query != "" || strings.Contains(path, "?") {
		path += "?" + query
	}
	return scheme + ":" + path, nil
}

// emptyOption is the first of a URI's options that has no value, as where the variable of
// a script was empty.
func emptyOption(options string) (key string, ok bool) {
	for option := range strings.SplitSeq(options, "&") {
		if key, value, _ := strings.Cut(option, "="); (key == "as" || key == "db") && value == "" {
			return key, true
		}
	}
	return "", false
}

// namedURI is the URI of what is named and has no path: records of another dataset, or a
// stage of the shuffle pool.
func namedURI(source, as, db string) (string, error) {
	_, err := uri.Parse(source)
	switch {
	case as != "" || db != "":
		return "", fmt.Errorf("--as and --db are for files, and this is %q", source)
	case err != nil:
		return "", fmt.Errorf("source %q: %w", source, err)
	}
	return source, nil
}

// addOption adds key=value to options that have no such key yet.
func addOption(options, key, value string) (string, error) {
	if value == "" {
		return options, nil
	}
	for option := range strings.SplitSeq(options, "&") {
		if strings.HasPrefix(option, key+"=") {
			return "", fmt.Errorf("the source says %s already: leave out --%s", option, key)
		}
	}
	if options != "" {
		options += "&"
	}
	// A blank as %20, not +, and the colon of fixed:N for people to read.
	value = strings.NewReplacer("+", "%20", "%3A", ":").Replace(url.QueryEscape(value))
	return options + key + "=" + value, nil
}
