package test

import (
	"os"
	"strings"
	"testing"
)

// A word has one meaning: it is in one row of the two tables of words, and once in that.
func TestWordsHaveOneMeaning(t *testing.T) {
	in := make(map[string]string)
	for _, document := range []string{"../ARCHITECTURE.md", "../docs/words.md"} {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		_, table, _ := strings.Cut(string(text), "| word | meaning |\n|---|---|\n")
		table, _, _ = strings.Cut(table, "\n\n")
		for row := range strings.Lines(table) {
			word := strings.TrimSpace(strings.Split(row, "|")[1])
			if in[word] != "" {
				t.Errorf("%s has a row in %s, and one in %s", word, in[word], document)
			}
			in[word] = document
		}
	}
	if len(in) < 30 {
		t.Errorf("%d words were found", len(in))
	}
}
