package test

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// docs/dependencies.md says what each module is for that go.mod requires for itself, or has a
// tool of, and has no others.
func TestDependenciesSayWhatTheyAreFor(t *testing.T) {
	out, err := exec.Command("go", "mod", "edit", "-json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
		Tool []struct{ Path string }
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, "|"); len(cells) == 4 {
			for _, m := range inBackquotes.FindAllStringSubmatch(cells[1], -1) {
				named = append(named, m[1])
			}
		}
	}
	var want []string
	for _, r := range mod.Require {
		ofATool := func(tool struct{ Path string }) bool { return strings.HasPrefix(tool.Path, r.Path+"/") }
		if !r.Indirect || slices.ContainsFunc(mod.Tool, ofATool) {
			want = append(want, strings.TrimPrefix(r.Path, "github.com/"))
		}
	}
	slices.Sort(named)
	slices.Sort(want)
	if len(want) == 0 || !slices.Equal(named, want) {
		t.Errorf("docs/dependencies.md has\n%q, go.mod\n%q", named, want)
	}
}
