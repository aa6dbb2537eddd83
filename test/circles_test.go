package test

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Packages of which some files call each other both ways, and why that is so.
var circles = map[string]string{
	"rankfs/cache/simulate": "what ends a fill begins the next",
	"rankfs/fetch":          "a source that is made of another dataset opens that dataset's source",
	"rankfs/fs":             "in the pool a directory makes those below it, and they take owner, times and errors from it; a directory of blobs is one of scratch, and a rename in scratch puts a blob",
	"rankfs/meta/state":     "the pool is written and restored with the blobs of its jobs, which change its stages",
}

// In all other packages files call each other one way only: what calls comes before what
// is called, and nothing calls back up.
func TestFilesCallOneWay(t *testing.T) {
	exports := make(map[string]string)
	out, err := exec.Command("go", "list", "-export", "-deps", "-f", `{{.ImportPath}} {{.Export}}`, "rankfs/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[path] = file
	}
	read := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	out, err = exec.Command("go", "list", "-f", `{{.ImportPath}} {{.Dir}} {{join .GoFiles " "}}`, "rankfs/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	left := maps.Clone(circles)
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if strings.HasPrefix(f[0], "rankfs/test") || len(f) < 4 {
			continue
		}
		calls, err := filesCall(f[0], f[1], f[2:], read)
		if err != nil {
			t.Error(err)
			continue
		}
		found := circle(calls)
		_, known := left[f[0]]
		delete(left, f[0])
		switch {
		case found != nil && !known:
			t.Errorf("%s: files call each other: %s", f[0], strings.Join(found, " calls "))
		case found == nil && known:
			t.Errorf("%s has no circle any more: take it out of the list", f[0])
		}
	}
	for pkg := range left {
		t.Errorf("%s is no package of ours", pkg)
	}
}

// filesCall says for each file of a package which others have functions that it names.
func filesCall(pkg, dir string, names []string, read types.Importer) (map[string]map[string]bool, error) {
	set, calls := token.NewFileSet(), make(map[string]map[string]bool)
	var files []*ast.File
	for _, name := range names {
		f, err := parser.ParseFile(set, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
		calls[name] = make(map[string]bool)
	}
	info := types.Info{Uses: make(map[*ast.Ident]types.Object)}
	checked, err := (&types.Config{Importer: read}).Check(pkg, set, files, &info)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", pkg, err)
	}
	file := func(p token.Pos) string { return filepath.Base(set.Position(p).Filename) }
	for _, f := range files {
		for _, d := range f.Decls {
			ast.Inspect(d, func(n ast.Node) bool {
				name, is := n.(*ast.Ident)
				if !is {
					return true
				}
				o := info.Uses[name]
				if o == nil || o.Pkg() != checked || !isFunction(o) {
					return true
				}
				if from, to := file(d.Pos()), file(o.Pos()); from != to {
					calls[from][to] = true
				}
				return true
			})
		}
	}
	return calls, nil
}

// isFunction reports whether a thing is a function, or a method with a body.
func isFunction(o types.Object) bool {
	f, is := o.(*types.Func)
	return is && (f.Signature().Recv() == nil || !types.IsInterface(f.Signature().Recv().Type()))
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
