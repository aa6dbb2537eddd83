package test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// unnamed are words for a subject that is not named.
var unnamed = regexp.MustCompile(`(?i)(no|some|any|every)body|(some|any|every)one\b|\bno[\s/]+one\b|whoever|\bwho[\s/]+asks\b|what[\s/]+there[\s/]+is|who(is|asks|cannot|left)`)

// Sentences have real subjects, as a reader, a rank, a node, a user or the kernel, in comments,
// in names and in what a test prints when it fails.
func TestSentencesHaveSubjects(t *testing.T) {
	for text, found := range map[string]bool{
		"// It waits until somebody": true, "\"nobody waits\"": true, "func TestNobodyWaits": true, "func TestWhoIsLateWaits": true, "// Of what\n\t// there is": true, "// No\n// one asks": true,
		"// A body, who is asked what there was": false, "// none is": false, "func TestWhoMayAsk": false, "// each one of them": false,
	} {
		if unnamed.MatchString(text) != found {
			t.Errorf("%q: want %v", text, found)
		}
	}
	files := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == ".git" {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || path == "../test/subjects_test.go" {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, at := range unnamed.FindAllIndex(text, -1) {
			t.Errorf("%s:%d: %q is no subject: say which reader, rank, node, user ... it is", path, 1+bytes.Count(text[:at[0]], []byte("\n")), text[at[0]:at[1]])
		}
		files++
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 1000 {
		t.Errorf("%d files were read; there are more", files)
	}
}
