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

// Packages whose files know each other both ways still, with the reason. Their functions
// call each other one way all the same.
var knotted = map[string]string{
	"rankfs/shuffle/pool": "the types of jobs, stages and maps are declared beside what uses them; what is a subject of its own leaves as a package",
}

// In each package files know each other one way only: what names something comes before what
// declares it, and that names nothing of those above it. Counted is what a package declares:
// functions, types, variables and constants, with methods and fields. The methods of an
// interface are not, as whoever has them may be anywhere.
func TestFilesKnowOneWay(t *testing.T) {
	all := findSources(t)
	for _, pkg := range slices.Sorted(maps.Keys(all.files)) {
		reason, excepted := knotted[pkg]
		if strings.HasPrefix(pkg, "rankfs/test") || len(all.files[pkg]) < 2 && !excepted {
			continue
		}
		c, err := all.check(pkg)
		if err != nil {
			t.Error(err)
			continue
		}
		found := circle(c.filesKnow(c.isDeclared))
		switch {
		case excepted && found == nil:
			t.Errorf("%s: its files know each other one way, so that it needs no exception (%s)", pkg, reason)
		case excepted:
			if found = circle(c.filesKnow(c.isFunction)); found != nil {
				t.Errorf("%s: files call each other: %s", pkg, found)
			}
		case found != nil:
			t.Errorf("%s: files know each other: %s", pkg, found)
		}
	}
	for pkg := range knotted {
		if all.files[pkg] == nil {
			t.Errorf("%s is excepted, and is no package", pkg)
		}
	}
}

// isFunction reports whether a name stands for a function or a method of the package.
func (c *checked) isFunction(named types.Object) bool {
	f, is := named.(*types.Func)
	return is && f.Pkg() == c.Package && interfaceOf(f) == nil
}

// isDeclared reports whether a name stands for something that the package declares, which is
// neither of one function nor of an interface.
func (c *checked) isDeclared(named types.Object) bool {
	if v, is := named.(*types.Var); is && v.IsField() {
		return v.Pkg() == c.Package
	}
	return c.isFunction(named) || named.Pkg() == c.Package && named.Parent() == c.Scope()
}

// filesKnow says for each file of a package which others declare something that counts and
// that it names, and one such name.
func (c *checked) filesKnow(counts func(types.Object) bool) map[string]map[string]string {
	knows := make(map[string]map[string]string)
	for _, f := range c.files {
		from := c.fileOf(f.Pos())
		knows[from] = make(map[string]string)
		ast.Inspect(f, func(n ast.Node) bool {
			name, is := n.(*ast.Ident)
			if named := c.uses[name]; is && named != nil && counts(named) {
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
