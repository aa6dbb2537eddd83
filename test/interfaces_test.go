package test

import (
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"
)

// An interface that fs, cache or a package below these declares has three methods at most, with
// those that it embeds: what asks for more has several users, or does several things.
func TestInterfacesAreSmall(t *testing.T) {
	all, seen := findSources(t), 0
	for _, pkg := range slices.Sorted(maps.Keys(all.files)) {
		if !strings.HasPrefix(pkg+"/", "rankfs/fs/") && !strings.HasPrefix(pkg+"/", "rankfs/cache/") {
			continue
		}
		c, err := all.check(pkg)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, name := range c.Scope().Names() {
			is, declared := c.Scope().Lookup(name).(*types.TypeName)
			if !declared || !types.IsInterface(is.Type()) {
				continue
			}
			seen++
			if n := is.Type().Underlying().(*types.Interface).NumMethods(); n > 3 {
				t.Errorf("%s: %s has %d methods, want three at most: divide it by its callers", pkg, name, n)
			}
		}
	}
	if seen < 30 {
		t.Errorf("%d interfaces were found", seen)
	}
}
