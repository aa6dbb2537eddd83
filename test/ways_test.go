package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var inBackquotes = regexp.MustCompile("`([^`]+)`")

// The functions that ARCHITECTURE.md follows an open and a `dataset create` through are
// there, in the packages that it names: a table of them has "in" and "functions" at its
// head, a package in the first cell of a row and functions, or Type.Method, in the second.
// On the way of an open that is ready, the first table, are a dozen at most.
func TestDocumentsNameFunctions(t *testing.T) {
	text, err := os.ReadFile("../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	tables, within, ready := 0, false, 0
	for i, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			within = false
			continue
		}
		if strings.TrimSpace(cells[1]) == "in" {
			tables, within = tables+1, true
			continue
		}
		pkg := inBackquotes.FindStringSubmatch(cells[1])
		if !within || pkg == nil {
			continue
		}
		there := functionsOf(t, pkg[1])
		for _, name := range inBackquotes.FindAllStringSubmatch(cells[2], -1) {
			if tables == 1 {
				ready++
			}
			if !there[name[1]] {
				t.Errorf("ARCHITECTURE.md:%d: there is no function %s in %s", i+1, name[1], pkg[1])
			}
		}
	}
	if ready > 12 {
		t.Errorf("an open of a batch that is ready goes through %d functions, want a dozen at most", ready)
	}
	if tables != 3 {
		t.Errorf("ARCHITECTURE.md has %d tables of functions, want 3: of an open, of a miss, of dataset create", tables)
	}
}

// functionsOf has the functions of a package, methods with their types before them.
func functionsOf(t *testing.T, pkg string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", pkg, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	there := make(map[string]bool)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				there[receiver(f)+f.Name.Name] = true
			}
		}
	}
	return there
}

// receiver is the type of a method, with a dot behind it.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	of := f.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name + "."
	}
	return "" // of a type with parameters
}
