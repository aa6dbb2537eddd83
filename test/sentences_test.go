package test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// An error that is wrapped ends a sentence, or what follows is one of its own. In the
// middle its words fit by chance at best: "steps of 5 records is not valid to count".
// And those of package meta, most of which say something of what stands before them, do
// not stand between two colons: "policy x: is not valid: choose one of". Their subject is
// one thing: "its checksums is corrupt" is no English.
var (
	wrapped = regexp.MustCompile(`%(\[\d+\])?w`)
	ending  = regexp.MustCompile(`%(\[\d+\])?w($|[:;)\n]| \()`)
	verb    = regexp.MustCompile(`%[-+# 0-9.]*[a-zA-Z]`)
	// before is what stands before an error in its clause, up to what belongs to its noun:
	// of "open %s: list of hosts %w" it is "list".
	before = regexp.MustCompile(`([^:;()]*?)(?: (?:of|for|that|in|on|from|with|to|over) [^:;()]*)? %(\[\d+\])?w`)
	// single are subjects that end as plurals do. An amount is one thing, too.
	single = regexp.MustCompile(`(ss|us|is|\bhdfs|\bkerberos)$|^what |^(more than )?%d `)
)

// TestSentences reads the formats of errors in all packages but those of tests.
func TestSentences(t *testing.T) {
	for sentence, ok := range map[string]bool{
		"steps of %d records %w to count": false, "%w, at most": false, "%w now: %[2]w": false, "%w%s": false,
		"open %s: %w": true, "%w: %w": true, "dataset %q %w; see": true, "it hung up (%w)": true, "%w (%w)": true,
	} {
		if endsWell(sentence) != ok {
			t.Errorf("%q: want %v", sentence, ok)
		}
	}
	for sentence, ok := range map[string]bool{
		"its checksums %w: they have %d bytes": false, "dataset %q: nodes of ranks %w": false, "two runs in a page %w": false,
		"list of hosts %w": true, "%d ranks %w": true, "node %s %w": true, "what it passes %w": true, "address %w": true, "hdfs %w": true, "of runs: %w": true,
	} {
		if single := !plural(sentence); single != ok {
			t.Errorf("%q: want %v", sentence, ok)
		}
	}
	files := token.NewFileSet()
	formats := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (path == "../test" || d.Name() == ".git") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			for i, arg := range call.Args {
				if format := literal(arg); strings.Contains(format, "%w") {
					formats++
					if !endsWell(format) {
						t.Errorf("%s: %q goes on after the error that it wraps; say it in its own words with meta.Worded", files.Position(call.Pos()), format)
					}
					if kind := alone(format, call.Args[i+1:]); kind != "" {
						t.Errorf("%s: in %q meta.%s says nothing of what stands before it", files.Position(call.Pos()), format, kind)
					}
					if plural(format) {
						t.Errorf("%s: %q has several things for its subject, and the error says that it \"is\"; take one, or meta.Worded", files.Position(call.Pos()), format)
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if formats < 500 {
		t.Errorf("%d formats were read; there are more", formats)
	}
}

func endsWell(format string) bool {
	return len(wrapped.FindAllString(format, -1)) == len(ending.FindAllString(format, -1))
}

// plural reports whether an error that is wrapped has a plural before it.
func plural(format string) bool {
	for _, found := range before.FindAllStringSubmatch(format, -1) {
		subject := strings.TrimSpace(found[1])
		if strings.HasSuffix(subject, "s") && !strings.HasSuffix(subject, "%s") && !single.MatchString(subject) {
			return true
		}
	}
	return false
}

// alone is the error of package meta that a format has between two colons.
func alone(format string, args []ast.Expr) string {
	for i, at := range verb.FindAllStringIndex(strings.ReplaceAll(format, "%%", "xx"), -1) {
		if !strings.HasSuffix(format[:at[0]], ": ") || !strings.HasPrefix(format[at[0]:], "%w: ") || i >= len(args) {
			continue
		}
		if kind, ok := args[i].(*ast.SelectorExpr); ok && fmt.Sprint(kind.X) == "meta" && kind.Sel.Name != "ErrStale" && kind.Sel.Name != "ErrNoSpace" {
			return kind.Sel.Name
		}
	}
	return ""
}

// literal is the text of a string, or of a sum of strings.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		return literal(e.X) + literal(e.Y)
	}
	return ""
}
