package test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// Each package says once what it is, at its head: in doc.go, a program in main.go, or in
// the one file that there is.
func TestPackagesSayWhatTheyAre(t *testing.T) {
	files, said := make(map[string]int), make(map[string][]string)
	err := filepath.WalkDir("..", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (e.Name() == "testdata" || path != ".." && strings.HasPrefix(e.Name(), ".")):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		dir, name := filepath.Split(path)
		files[dir]++
		if f.Doc == nil {
			return nil
		}
		said[dir] = append(said[dir], name)
		if of := f.Name.Name; of != "main" && !strings.HasPrefix(f.Doc.Text(), "Package "+of+" ") {
			t.Errorf("%s does not begin with what package %s is", path, of)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir, n := range files {
		in := strings.Join(said[dir], " and ")
		if in == "" || n > 1 && in != "doc.go" && in != "main.go" {
			t.Errorf("%s says what it is in %q, not in doc.go alone", dir, in)
		}
	}
	if len(files) < 60 {
		t.Errorf("%d packages were found", len(files))
	}
}
