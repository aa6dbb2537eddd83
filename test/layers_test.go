package test

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// ARCHITECTURE.md has each package in one layer. A layer imports the others that its row names,
// or any; all of them are below it. The last two, tools and vocabulary, are for all above them. A
// layer that is pure knows neither files, nor the net, nor a clock.
func TestLayers(t *testing.T) {
	text, err := os.ReadFile("../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	imports := ourImports(t)
	layers := layersIn(string(text))
	if len(layers) < 3 {
		t.Fatalf("ARCHITECTURE.md has %d layers", len(layers))
	}
	in := packagesIn(t, layers, imports)
	used := make(map[string][]string) // which layers each imports
	for pkg, all := range imports {
		i, has := in[pkg]
		if !has {
			t.Errorf("%s is in no layer of ARCHITECTURE.md", pkg)
			continue
		}
		for _, imported := range all {
			l := layers[i]
			if l.pure && isImpure(imported) {
				t.Errorf("%s imports %s, and its layer %s is pure", pkg, imported, l.name)
			}
			j, ours := in[imported]
			if !ours || i == j {
				continue
			}
			to := layers[j].name
			used[l.name] = append(used[l.name], to)
			switch {
			case j < i:
				t.Errorf("%s imports %s: the layer %s is above %s", pkg, imported, to, l.name)
			case !l.mayImport("any") && !l.mayImport(to) && j < len(layers)-2:
				t.Errorf("%s imports %s: the layer %s does not name %s", pkg, imported, l.name, to)
			}
		}
	}
	for _, l := range layers {
		for _, name := range l.imports {
			if name != "any" && name != "none" && !slices.Contains(used[l.name], name) {
				t.Errorf("the layer %s names %s, of which it imports nothing", l.name, name)
			}
		}
	}
}

// isImpure reports whether a package, or one above it, has files, the net or a clock.
func isImpure(pkg string) bool {
	return slices.ContainsFunc([]string{"net", "os", "syscall", "time", "golang.org/x/sys"}, func(of string) bool {
		return pkg == of || strings.HasPrefix(pkg, of+"/")
	})
}

// A layer is a row of the table in ARCHITECTURE.md that has "layer" at its head.
type layer struct {
	name     string
	packages []string // one that ends in /... has those below it, too
	pure     bool
	imports  []string // names of layers, "any" or "none"
}

func (l layer) mayImport(name string) bool { return slices.Contains(l.imports, name) }

func layersIn(text string) (layers []layer) {
	within := false
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case len(cells) != 6:
			within = false
			continue
		case cells[1] == "layer":
			within = true
			continue
		case !within || strings.HasPrefix(cells[1], "-"):
			continue
		}
		l := layer{name: cells[1], pure: strings.HasSuffix(cells[2], "Pure."), imports: strings.Split(cells[3], ", ")}
		for _, m := range inBackquotes.FindAllStringSubmatch(cells[4], -1) {
			l.packages = append(l.packages, "rankfs/"+m[1])
		}
		layers = append(layers, l)
	}
	return layers
}

// packagesIn says of each package in which layer it is.
func packagesIn(t *testing.T, layers []layer, packages map[string][]string) map[string]int {
	t.Helper()
	in := make(map[string]int)
	for i, l := range layers {
		for _, name := range l.packages {
			found := false
			top, below := strings.CutSuffix(name, "/...")
			for pkg := range packages {
				if pkg != top && !(below && strings.HasPrefix(pkg, top+"/")) {
					continue
				}
				if _, twice := in[pkg]; twice {
					t.Errorf("%s has a layer already, and is in %s", pkg, l.name)
				}
				in[pkg], found = i, true
			}
			if !found {
				t.Errorf("there is no package %s, which the layer %s has", name, l.name)
			}
		}
	}
	return in
}
