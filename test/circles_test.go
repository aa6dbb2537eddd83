package test

import (
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"
)

// In each package files know each other one way only: what names something comes before what
// declares it, and that names nothing of those above it. Counted is what a package declares:
// functions, types, variables and constants, with methods and fields. The methods of an
// interface are not, as the type that has them may be anywhere.
func TestFilesKnowOneWay(t *testing.T) {
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
		if found := circle(c.filesKnow()); found != nil {
			t.Errorf("%s: files know each other: %s", pkg, found)
		}
	}
}

// isDeclared reports whether a name stands for something that the package declares, which is
// neither of one function nor of an interface.
func (c *checked) isDeclared(named types.Object) bool {
	switch named := named.(type) {
	case *types.Func:
		return named.Pkg() == c.Package && interfaceOf(named) == nil
	case *types.Var:
		if named.IsField() {
			return named.Pkg() == c.Package
		}
	}
	return named.Pkg() == c.Package && named.Parent() == c.Scope()
}

// filesKnow says for each file of a package which others declare something that it names, and
// one such name.
func (c *checked) filesKnow() map[string]map[string]string {
	knows := make(map[string]map[string]string)
	for _, f := range c.files {
		from := c.fileOf(f.Pos())
		knows[from] = make(map[string]string)
		ast.Inspect(f, func(n ast.Node) bool {
			name, is := n.(*ast.Ident)
			if named := c.uses[name]; is && named != nil && c.isDeclared(named) {
				if to := c.fileOf(named.Pos()); to != from {
					knows[from][to] = named.Name()
				}
			}
			return true
		})
	}
	return knows
}

// A way is one from a file back to itself, by names of what the next declares.
type way []string

func (w way) String() string { return strings.Join(w, ", ") }

// circle is a way from a file back to itself, the shortest of those of the first file that
// has one; nil if none has.
func circle(knows map[string]map[string]string) way {
	for _, first := range slices.Sorted(maps.Keys(knows)) {
		before := map[string]string{}
		for todo := []string{first}; len(todo) > 0; todo = todo[1:] {
			for _, next := range slices.Sorted(maps.Keys(knows[todo[0]])) {
				if next == first {
					found := way{}
					for from, to := todo[0], first; ; from, to = before[from], from {
						found = append(found, fmt.Sprintf("%s names %s of %s", from, knows[from][to], to))
						if from == first {
							slices.Reverse(found)
							return found
						}
					}
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
