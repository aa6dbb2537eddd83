package test

import (
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"
)

// In each package files call each other one way only: what calls comes before what is
// called, and nothing calls back up.
func TestFilesCallOneWay(t *testing.T) {
	all := findSources(t)
	for _, pkg := range slices.Sorted(maps.Keys(all.files)) {
		if strings.HasPrefix(pkg, "rankfs/test") || len(all.files[pkg]) < 2 {
			continue
		}
		c, err := all.check(pkg)
		if err != nil {
			t.Error(err)
			continue
		}
		if found := circle(c.filesCall()); found != nil {
			t.Errorf("%s: files call each other: %s", pkg, strings.Join(found, " calls "))
		}
	}
}

// filesCall says for each file of a package which others have functions that it names.
func (c *checked) filesCall() map[string]map[string]bool {
	calls := make(map[string]map[string]bool)
	for _, f := range c.files {
		from := c.fileOf(f.Pos())
		calls[from] = make(map[string]bool)
		for _, d := range f.Decls {
			c.functionsIn(d, func(named *types.Func) {
				if to := c.fileOf(named.Pos()); named.Pkg() == c.Package && interfaceOf(named) == nil && to != from {
					calls[from][to] = true
				}
			})
		}
	}
	return calls
}

// circle is a way from a file back to itself, the shortest of those of the first file that
// has one; nil if none has.
func circle(calls map[string]map[string]bool) []string {
	for _, first := range slices.Sorted(maps.Keys(calls)) {
		before := map[string]string{}
		for todo := []string{first}; len(todo) > 0; todo = todo[1:] {
			for _, next := range slices.Sorted(maps.Keys(calls[todo[0]])) {
				if next == first {
					way := []string{first}
					for at := todo[0]; at != first; at = before[at] {
						way = append(way, at)
					}
					slices.Reverse(way[1:])
					return append(way, first)
				}
				if _, seen := before[next]; !seen {
					before[next] = todo[0]
					todo = append(todo, next)
				}
			}
		}
	}
	return nil
}
