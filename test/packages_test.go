package test

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Sources are our packages, to be read from source with what they import compiled.
type sources struct {
	files map[string][]string // by package, with their paths
	read  types.Importer
}

// findSources lists our packages, without tests.
func findSources(t *testing.T) *sources {
	t.Helper()
	list := func(args ...string) string {
		out, err := exec.Command("go", append([]string{"list"}, args...)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	exports := make(map[string]string)
	for line := range strings.Lines(list("-export", "-deps", "-f", `{{.ImportPath}} {{.Export}}`, "rankfs/...")) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[path] = file
	}
	s := &sources{files: make(map[string][]string)}
	s.read = importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for line := range strings.Lines(list("-f", `{{.ImportPath}} {{.Dir}} {{join .GoFiles " "}}`, "rankfs/...")) {
		f := strings.Fields(line)
		for _, name := range f[2:] {
			s.files[f[0]] = append(s.files[f[0]], filepath.Join(f[1], name))
		}
	}
	return s
}

// A checked package is one whose names are known for what they stand for.
type checked struct {
	*types.Package
	set   *token.FileSet
	files []*ast.File
	uses  map[*ast.Ident]types.Object
}

// check reads a package.
func (s *sources) check(pkg string) (*checked, error) {
	c := &checked{set: token.NewFileSet(), uses: make(map[*ast.Ident]types.Object)}
	for _, path := range s.files[pkg] {
		f, err := parser.ParseFile(c.set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		c.files = append(c.files, f)
	}
	var err error
	if c.Package, err = (&types.Config{Importer: s.read}).Check(pkg, c.set, c.files, &types.Info{Uses: c.uses}); err != nil {
		return nil, fmt.Errorf("%s: %w", pkg, err)
	}
	return c, nil
}

// fileOf is the name of the file that a place is in.
func (c *checked) fileOf(p token.Pos) string { return filepath.Base(c.set.Position(p).Filename) }

// functionsIn calls f with each function that a declaration names.
func (c *checked) functionsIn(d ast.Node, f func(*types.Func)) {
	ast.Inspect(d, func(n ast.Node) bool {
		if name, is := n.(*ast.Ident); is {
			if named, is := c.uses[name].(*types.Func); is {
				f(named.Origin())
			}
		}
		return true
	})
}

// interfaceOf is the interface that a method is of; nil if it has a body.
func interfaceOf(f *types.Func) *types.Interface {
	if f.Signature().Recv() == nil {
		return nil
	}
	i, _ := f.Signature().Recv().Type().Underlying().(*types.Interface)
	return i
}
