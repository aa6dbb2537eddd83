package test

import (
	"os"
	"os/exec"
	"regexp"
	"testing"
)

// Every test that a document names is there.
func TestDocumentsNameTests(t *testing.T) {
	out, err := exec.Command("grep", "-rhoE", "^func (Test|Fuzz)[A-Za-z0-9]+", "--include=*_test.go", "..").Output()
	if err != nil {
		t.Fatal(err)
	}
	there := make(map[string]bool)
	for _, name := range regexp.MustCompile(`(Test|Fuzz)\w+`).FindAllString(string(out), -1) {
		there[name] = true
	}
	for _, document := range []string{"../SEMANTICS.md", "../ARCHITECTURE.md"} {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile(`\b(Test|Fuzz)[A-Z]\w+`).FindAllString(string(text), -1)
		if len(names) == 0 {
			t.Errorf("%s names no test", document)
		}
		for _, name := range names {
			if !there[name] {
				t.Errorf("%s names %s, which is not there", document, name)
			}
		}
	}
}
