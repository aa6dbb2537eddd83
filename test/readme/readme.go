// Package readme takes recipes out of README, so that tests can type them.
package readme

import (
	"os"
	"strings"
	"testing"
)

// Block is the indented block that follows the line that begins so, as it stands
// there, without its indent. The tests that ask for it are two folders down.
func Block(t testing.TB, after string) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n"+after)
	_, rest, indented := strings.Cut(rest, "\n\n    ")
	if !ok || !indented {
		t.Fatalf("README has no block below %q", after)
	}
	block, _, _ := strings.Cut(rest, "\n\n")
	return strings.ReplaceAll(block, "\n    ", "\n") + "\n"
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
