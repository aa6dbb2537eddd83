package main

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"iter"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// What a thing is called in JSON, by what it could be called too: keys, and words
// that keys are made of.
var (
	oneKey = map[string]string{
		"waited": "opens_waited", "ready_opens": "opens_ready", "errors": "open_errors", "stalled": "stall",
		"ram_batches": "batches in ram", "packed_batches": "batches in packed", "nvme_batches": "batches in nvme",
		"view_name": "view", "full_name": "full_view", "node_id": "id",
		"aside": "set_aside", "pin": "settle", "unpin": "unsettle", "turned": "turned_away", "rests": "back_off_seconds", "plans": "cache_plans",
	}
	oneWord = map[string]string{
		"disk": "nvme", "ssd": "nvme", "memory": "ram", "compressed": "packed", "filled": "fill", "ahead": "prefetched",
		"eviction": "evicted", "evictions": "evicted", "hostname": "host", "address": "addr", "megabytes": "bytes", "ms": "seconds",
	}
)

// Each thing has one name in all JSON that commands write. The types of which it is
// made are read from the source, so none is left out.
func TestOneNameInJSON(t *testing.T) {
	for _, dir := range []string{".", "../internal/control", "../internal/forecast", "../internal/mounting", "../internal/supply"} {
		for name, list := range structs(t, dir) {
			for _, key := range list {
				names := []string{oneKey[key]}
				for word := range strings.SplitSeq(key, "_") {
					names = append(names, oneWord[word])
				}
				if name := cmp.Or(names...); name != "" {
					t.Errorf("%s: %q is called %s", dir, key, name)
				}
			}
			if slices.Contains(list, "view") && slices.Contains(list, "name") {
				t.Errorf("%s: in %q both name and view are a view", dir, list)
			}
			if slices.Contains(list, "view") && !slices.Contains(list, "full_view") && !strings.HasSuffix(name, "Request") {
				t.Errorf("%s: %s names a view, and not as control.ViewName does", dir, name)
			}
		}
	}
}

// structs are the keys of each struct in the source of a package, with the type that it is,
// or is in.
func structs(t *testing.T, dir string) iter.Seq2[string, []string] {
	files, err := filepath.Glob(dir + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(string, []string) bool) {
		for _, file := range files {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			name, more := "", true
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.TypeSpec:
					name = n.Name.Name
				case *ast.StructType:
					more = more && yield(name, keys(n))
				}
				return more
			})
			if !more {
				return
			}
		}
	}
}

// keys are those of the JSON object that a struct is.
func keys(s *ast.StructType) (list []string) {
	for _, field := range s.Fields.List {
		if field.Tag == nil {
			continue
		}
		key, _, _ := strings.Cut(reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json"), ",")
		if key != "" && key != "-" {
			list = append(list, key)
		}
	}
	return list
}
