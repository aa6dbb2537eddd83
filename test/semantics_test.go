package test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every test that a document names is there, and in the package that it names:
// the last one in backquotes before it, in the same cell of the same line.
func TestDocumentsNameTests(t *testing.T) {
	there := testsByPackage(t)
	documents, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	must := []string{"../SEMANTICS.md", "../ARCHITECTURE.md", "../CONTRIBUTING.md"}
	for _, document := range append(documents, must...) {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for i, line := range strings.Split(string(text), "\n") {
			for cell := range strings.SplitSeq(line, "|") {
				for _, c := range citations(cell) {
					found++
					if in := there[c.test]; !slices.Contains(in, c.pkg) && (c.pkg != "" || in == nil) {
						t.Errorf("%s:%d names %s of %q, which is in %q", document, i+1, c.test, c.pkg, in)
					}
				}
			}
		}
		if found == 0 && slices.Contains(must, document) {
			t.Errorf("%s names no test", document)
		}
	}
}

// testsByPackage has for each test the packages that have one of that name, by
// their paths as documents write them.
func testsByPackage(t *testing.T) map[string][]string {
	t.Helper()
	out, err := exec.Command("grep", "-rnoE", "^func (Test|Fuzz)[A-Za-z0-9]+", "--include=*_test.go", "..").Output()
	if err != nil {
		t.Fatal(err)
	}
	there := make(map[string][]string)
	for line := range strings.Lines(string(out)) {
		file, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		_, name, _ := strings.Cut(rest, "func ")
		there[name] = append(there[name], named(strings.TrimPrefix(path.Dir(file), "../")))
	}
	return there
}

// named is how documents write the path of a package: that of the whole-system
// tests is short.
func named(pkg string) string {
	if pkg == "test/system" {
		return "system"
	}
	return pkg
}

type citation struct{ pkg, test string }

var inCell = regexp.MustCompile("`([a-z][a-z0-9/_]*)`|\\b((?:Test|Fuzz)[A-Z][A-Za-z0-9]+)")

// citations are the tests that a cell names, with their packages.
func citations(cell string) (all []citation) {
	pkg := ""
	for _, m := range inCell.FindAllStringSubmatch(cell, -1) {
		if m[1] != "" {
			pkg = named(m[1])
			continue
		}
		all = append(all, citation{pkg, m[2]})
	}
	return all
}

func TestCitations(t *testing.T) {
	got := citations("as `lmdb` says; `cache` TestOne, FuzzTwo; `test/system` TestThree, and `system` TestFour")
	want := []citation{{"cache", "TestOne"}, {"cache", "FuzzTwo"}, {"system", "TestThree"}, {"system", "TestFour"}}
	if !slices.Equal(got, want) {
		t.Errorf("citations %v, want %v", got, want)
	}
}
