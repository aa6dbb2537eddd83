package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A type with a lock says where it begins what the lock guards, or while what it is held.
func TestLocksHaveWords(t *testing.T) {
	said, files := regexp.MustCompile(`(?i)\b(locks?|mu)\b`), regexp.MustCompile(`(?i)\block\s+files?\b`)
	seen := 0
	err := filepath.WalkDir("..", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (path == "../test" || path != ".." && strings.HasPrefix(e.Name(), ".")):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, s := range g.Specs {
				s := s.(*ast.TypeSpec)
				locked, words := false, g.Doc.Text()+s.Doc.Text()
				ast.Inspect(s.Type, func(n ast.Node) bool {
					if n, ok := n.(*ast.SelectorExpr); ok {
						of, _ := n.X.(*ast.Ident)
						locked = locked || of != nil && of.Name == "sync" && strings.HasSuffix(n.Sel.Name, "Mutex")
					}
					return true
				})
				if !locked {
					continue
				}
				seen++
				if !said.MatchString(files.ReplaceAllString(words, "")) {
					t.Errorf("%s: %s has a lock, and does not say where it begins what that is for", path, s.Name.Name)
				}
			}
		}
		return nil
	})
	if err != nil || seen < 80 {
		t.Errorf("%d types with locks, %v", seen, err)
	}
}
