// Package readme takes recipes out of README and out of documents, so that tests can
// type them.
package readme

import (
	"os"
	"strings"
	"testing"
)

// Block is the indented block that follows the line of README that begins so, as it
// stands there, without its indent. The tests that ask for it are two folders down.
func Block(t testing.TB, after string) string {
	t.Helper()
	return BlockOf(t, "README.md", after)
}

// BlockOf is Block for any document, by its path from the root. A block goes on after an
// empty line, if what follows is indented.
func BlockOf(t testing.TB, document, after string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + document)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut("\n"+string(text), "\n"+after)
	_, rest, indented := strings.Cut(rest, "\n\n    ")
	if !ok || !indented {
		t.Fatalf("%s has no block below %q", document, after)
	}
	var block strings.Builder
	for line := range strings.Lines("    " + rest) {
		code, in := strings.CutPrefix(line, "    ")
		if !in && line != "\n" {
			break
		}
		block.WriteString(code)
	}
	return strings.TrimRight(block.String(), "\n") + "\n"
}

// Lines are the lines of a block that a user types: without the remarks beside them,
// and joined where a backslash ends one.
func Lines(t testing.TB, after string) (lines []string) {
	t.Helper()
	block := strings.ReplaceAll(Block(t, after), "\\\n", "")
	for line := range strings.Lines(block) {
		line, _, _ = strings.Cut(line, "    #")
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}
