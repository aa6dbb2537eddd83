package namenode

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"rankfs/meta"
)

// maxAlternatives bounds the patterns that a pattern expands to if {a,b} has slashes
// inside.
const maxAlternatives = 1024

// expand writes out the alternatives {a,b} that have slashes in them, and the
// alternatives that enclose these, so that every result can be cut at its slashes.
func expand(pattern string) ([]string, error) {
	if !strings.HasPrefix(pattern, "/") || len(pattern) > maxPath || !utf8.ValidString(pattern) || strings.ContainsRune(pattern, 0) {
		return nil, fmt.Errorf("%w: give an absolute path of at most %d bytes", meta.ErrInvalid, maxPath)
	}
	done, todo := []string(nil), []string{pattern}
	for len(todo) > 0 {
		p := todo[0]
		todo = todo[1:]
		from, to, err := slashed(p)
		if err != nil {
			return nil, err
		}
		if from < 0 {
			done = append(done, p)
		} else {
			var in []string
			for _, a := range alternatives(p[from+1 : to]) {
				in = append(in, p[:from]+a+p[to+1:])
			}
			todo = append(in, todo...)
		}
		if len(done)+len(todo) > maxAlternatives {
			return nil, fmt.Errorf("%w: its braces multiply to more than %d paths", meta.ErrInvalid, maxAlternatives)
		}
	}
	return distinct(done), nil
}

// An element matches one name of a path.
type element struct {
	text  string // the name itself, if plain
	plain bool
	match *regexp.Regexp
}

func (e element) matches(name string) bool {
	if e.plain {
		return e.text == name
	}
	return e.match.MatchString(name)
}

func distinct(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// slashed finds the first outermost braces with a slash between them; from is
// negative if there are none.
func slashed(p string) (from, to int, err error) {
	depth, open, slash := 0, 0, false
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case '{':
			if depth == 0 {
				open, slash = i, false
			}
			depth++
		case '/':
			slash = true
		case '}':
			if depth == 0 {
				continue // means itself
			}
			if depth--; depth == 0 && slash {
				return open, i, nil
			}
		}
	}
	if depth > 0 {
		return 0, 0, fmt.Errorf("%w: a brace is not closed", meta.ErrInvalid)
	}
	return -1, 0, nil
}

// alternatives cuts the text between two braces at its commas, but not at those of
// inner braces.
func alternatives(s string) []string {
	var out []string
	depth, begin := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '{':
			depth++
		case '}':
			depth--
		case ',':
			if depth == 0 {
				out, begin = append(out, s[begin:i]), i+1
			}
		}
	}
	return append(out, s[begin:])
}

// parseElement turns an element of a pattern into a regular expression, which
// Go matches in linear time.
func parseElement(e string) (element, error) {
	if e == "" || e == "." || e == ".." {
		return element{}, fmt.Errorf("%w: element %q of it is no name", meta.ErrInvalid, e)
	}
	p := translation{in: []rune(e)}
	if err := p.all(); err != nil {
		return element{}, err
	}
	if !p.special {
		return element{text: p.text.String(), plain: true}, nil
	}
	re, err := regexp.Compile(`(?s)\A(?:` + p.out.String() + `)\z`)
	if err != nil {
		return element{}, fmt.Errorf("%w: element %q: %v", meta.ErrInvalid, e, err)
	}
	return element{match: re}, nil
}

// A translation makes a regular expression of one element of Hadoop's patterns.
type translation struct {
	in      []rune
	out     strings.Builder // the expression
	text    strings.Builder // the name that the pattern stands for, if it is plain
	depth   int             // of braces
	special bool
}

func (t *translation) all() error {
	for len(t.in) > 0 {
		r := t.in[0]
		t.in = t.in[1:]
		if err := t.one(r); err != nil {
			return err
		}
	}
	if t.depth > 0 {
		return fmt.Errorf("%w: a brace is not closed", meta.ErrInvalid)
	}
	return nil
}

func (t *translation) one(r rune) error {
	switch {
	case r == '\\':
		if len(t.in) == 0 {
			return fmt.Errorf("%w: nothing behind the last \\", meta.ErrInvalid)
		}
		t.plain(t.in[0])
		t.in = t.in[1:]
	case r == '*':
		t.put(".*")
	case r == '?':
		t.put(".")
	case r == '[':
		return t.set()
	case r == '{':
		t.depth++
		t.put("(?:")
	case r == '}' && t.depth > 0:
		t.depth--
		t.put(")")
	case r == ',' && t.depth > 0:
		t.put("|")
	default:
		t.plain(r)
	}
	return nil
}

func (t *translation) put(expression string) {
	t.special = true
	t.out.WriteString(expression)
}

func (t *translation) plain(r rune) {
	t.text.WriteRune(r)
	t.out.WriteString(regexp.QuoteMeta(string(r)))
}

// set translates the characters after a [, up to its ].
func (t *translation) set() error {
	t.put("[")
	if len(t.in) > 0 && (t.in[0] == '^' || t.in[0] == '!') {
		t.put("^")
		t.in = t.in[1:]
	}
	for n := 0; len(t.in) > 0; n++ {
		r := t.in[0]
		t.in = t.in[1:]
		switch {
		case r == ']' && n > 0:
			t.put("]")
			return nil
		case r == '-':
			t.put("-")
		case r == '\\' && len(t.in) > 0:
			t.put(`\x{` + fmt.Sprintf("%x", t.in[0]) + `}`)
			t.in = t.in[1:]
		default:
			t.put(`\x{` + fmt.Sprintf("%x", r) + `}`)
		}
	}
	return fmt.Errorf("%w: a [ is not closed", meta.ErrInvalid)
}
