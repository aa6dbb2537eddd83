package test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
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

// The first thing that a package says is a sentence of 40 words at most: `go list` prints it,
// and ARCHITECTURE.md has no other list of what each is for.
func TestPackagesSayItInASentence(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", "{{if .GoFiles}}{{.ImportPath}}\t{{.Doc}}{{end}}", "rankfs/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	another := regexp.MustCompile(`[.?] [A-Z]`)
	for line := range strings.Lines(string(out)) {
		pkg, said, _ := strings.Cut(strings.TrimSpace(line), "\t")
		words, ended := len(strings.Fields(said)), strings.HasSuffix(said, ".") || strings.HasSuffix(said, "?")
		switch {
		case words == 0 || words > 40:
			t.Errorf("%s says what it is in %d words, of 40 at most: %s", pkg, words, said)
		case !ended || another.MatchString(said):
			t.Errorf("%s does not say what it is in one sentence, and then more in a paragraph of its own: %s", pkg, said)
		}
	}
}
