package test

import (
	"go/ast"
	"go/types"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ARCHITECTURE.md follows an open, a miss and a `dataset create` through functions that are
// there, and each of which calls one that is named after it: a table of them has "in" and
// "functions" at its head, a package in the first cell of a row and functions, or
// Type.Method, in the second. A call by an interface counts if the type has all that the
// interface wants. A function with a remark *in italics* before it is come to in another
// way, as the remark says. On the way of an open that is ready are a dozen at most, and none of
// them calls back up, nor does what it calls in its package.
func TestWaysAreCalls(t *testing.T) {
	text, err := os.ReadFile("../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	tables := tablesOfFunctions(string(text))
	if len(tables) != 3 {
		t.Fatalf("ARCHITECTURE.md has %d tables of functions, want 3: of an open, of a miss, of dataset create", len(tables))
	}
	if n := len(tables[0]); n > 12 {
		t.Errorf("an open of a batch that is ready goes through %d functions, want a dozen at most", n)
	}
	all := findSources(t)
	there := make(map[string]*functions) // by package
	for _, way := range tables {
		for i, next := range way {
			f := there[next.pkg]
			if f == nil {
				if f, err = all.functions("rankfs/" + next.pkg); err != nil {
					t.Fatal(err)
				}
				there[next.pkg] = f
			}
			switch {
			case f.bodies[next.name] == nil:
				t.Errorf("ARCHITECTURE.md:%d: there is no function %s in %s", next.line, next.name, next.pkg)
			case i > 0 && next.remark == "" && !slices.ContainsFunc(way[:i], func(before step) bool {
				return there[before.pkg].calls(before.name, f, next.name)
			}):
				t.Errorf("ARCHITECTURE.md:%d: none before %s in %s calls it", next.line, next.name, next.pkg)
			}
		}
	}
	ends := make(map[string]bool) // where an open leaves the way of one that is ready
	for _, at := range tables[1] {
		ends[at.pkg+" "+at.name] = true
	}
	for i, at := range tables[0] {
		if f := there[at.pkg]; f != nil && f.bodies[at.name] != nil {
			for _, back := range climbs(tables[0], i, there, ends) {
				t.Errorf("ARCHITECTURE.md:%d: %s in %s calls back up: %s", at.line, at.name, at.pkg, back)
			}
		}
	}
}

// climbs are what a function on a way calls of a package through which the way came before its own:
// by itself or by others of its package, but for those where the way ends and what other
// goroutines do; as methods of an interface, or as functions that a field has.
func climbs(way []step, i int, there map[string]*functions, ends map[string]bool) (all []string) {
	own := there[way[i].pkg]
	var above []*functions
	for _, before := range way[:i] {
		f := there[before.pkg]
		if f == own {
			break
		}
		if !slices.Contains(above, f) {
			above = append(above, f)
		}
	}
	seen, next := map[string]bool{}, []string{way[i].name}
	for len(next) > 0 {
		name := next[0]
		next = next[1:]
		if seen[name] || own.bodies[name] == nil {
			continue
		}
		seen[name] = true
		own.calledBy(own.bodies[name], func(called types.Object) {
			for _, f := range above {
				if f.answers(called) && !asksForOwner(called) {
					all = append(all, called.Name()+" of "+strings.TrimPrefix(f.Path(), "rankfs/")+", in "+name)
				}
			}
			for _, its := range own.named(called) {
				if !ends[way[i].pkg+" "+its] {
					next = append(next, its)
				}
			}
		})
	}
	return all
}

// asksForOwner reports whether what is called says if this node owns an input of a fill: series that
// ranks read have no such function.
func asksForOwner(called types.Object) bool {
	return called.Name() == "Own" && called.Pkg().Path() == "rankfs/cache"
}

// A step is a function on a way.
type step struct {
	line      int
	pkg, name string
	remark    string // on how it is come to, unless one before calls it
}

var (
	inBackquotes = regexp.MustCompile("`([^`]+)`")
	ofAWay       = regexp.MustCompile("\\*([^*]+)\\*|`([^`]+)`")
)

// tablesOfFunctions has the steps of each table.
func tablesOfFunctions(text string) (tables [][]step) {
	within := false
	for i, line := range strings.Split(text, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			within = false
			continue
		}
		if strings.TrimSpace(cells[1]) == "in" {
			tables, within = append(tables, nil), true
			continue
		}
		pkg := inBackquotes.FindStringSubmatch(cells[1])
		if !within || pkg == nil {
			continue
		}
		way, remark := &tables[len(tables)-1], ""
		for _, found := range ofAWay.FindAllStringSubmatch(cells[2], -1) {
			if found[1] != "" {
				remark = found[1]
				continue
			}
			*way = append(*way, step{i + 1, pkg[1], found[2], remark})
			remark = ""
		}
	}
	return tables
}

// Functions are those of a package, methods with their types before them.
type functions struct {
	*checked
	bodies map[string]*ast.FuncDecl
}

func (s *sources) functions(pkg string) (*functions, error) {
	c, err := s.check(pkg)
	if err != nil {
		return nil, err
	}
	f := &functions{c, make(map[string]*ast.FuncDecl)}
	for _, file := range c.files {
		for _, d := range file.Decls {
			if d, ok := d.(*ast.FuncDecl); ok {
				f.bodies[receiver(d)+d.Name.Name] = d
			}
		}
	}
	return f, nil
}

// calls reports whether a function names the one of that name in other, or a method of an
// interface by which that is called.
func (f *functions) calls(name string, other *functions, target string) (found bool) {
	body := f.bodies[name]
	if body == nil {
		return false // there is none of that name
	}
	of, method, isMethod := strings.Cut(target, ".")
	f.functionsIn(body, func(named *types.Func) {
		switch wanted := interfaceOf(named); {
		case wanted == nil:
			found = found || named.Pkg() != nil && named.Pkg().Path() == other.Path() && nameOf(named) == target
		case isMethod && named.Name() == method:
			found = found || other.implements(other.methods(of, method), wanted)
		}
	})
	return found
}

// calledBy calls g with each function that a declaration names, and each field that has one, but
// for what it has another goroutine do.
func (f *functions) calledBy(d ast.Node, g func(types.Object)) {
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			return false
		case *ast.CallExpr:
			if of, is := n.Fun.(*ast.SelectorExpr); is && of.Sel.Name == "Go" {
				return false
			}
		case *ast.Ident:
			switch o := f.uses[n].(type) {
			case *types.Func:
				g(o.Origin())
			case *types.Var:
				if _, is := o.Type().Underlying().(*types.Signature); is && o.IsField() {
					g(o)
				}
			}
		}
		return true
	})
}

// answers reports whether what is called somewhere may be a function of this package: by its name,
// by an interface of which a type here has all methods, or by a field in which this package has
// a function of its own.
func (f *functions) answers(called types.Object) bool {
	if called.Pkg() == nil || !strings.HasPrefix(called.Pkg().Path(), "rankfs/") {
		return false
	}
	function, is := called.(*types.Func)
	if !is {
		return f.sets(called)
	}
	if wanted := interfaceOf(function); wanted != nil {
		return f.implements(f.methods("", called.Name()), wanted)
	}
	return called.Pkg().Path() == f.Path()
}

// sets reports whether the package has a function of its own in a field of that name.
func (f *functions) sets(field types.Object) (found bool) {
	own := func(name, value ast.Expr) {
		if of, is := name.(*ast.SelectorExpr); is {
			name = of.Sel
		}
		id, is := name.(*ast.Ident)
		if !is {
			return
		}
		set, is := f.uses[id].(*types.Var)
		if !is || !set.IsField() || set.Name() != field.Name() || set.Pkg().Path() != field.Pkg().Path() {
			return
		}
		if of, is := value.(*ast.SelectorExpr); is {
			value = of.Sel
		}
		if id, is := value.(*ast.Ident); is {
			if is, ok := f.uses[id].(*types.Func); ok && is.Pkg() != f.Package {
				return
			}
		}
		found = true
	}
	for _, file := range f.files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.KeyValueExpr:
				own(n.Key, n.Value)
			case *ast.AssignStmt:
				for i := range min(len(n.Lhs), len(n.Rhs)) {
					own(n.Lhs[i], n.Rhs[i])
				}
			}
			return !found
		})
	}
	return found
}

// named are the functions of the package that a call may come to.
func (f *functions) named(called types.Object) (all []string) {
	function, is := called.(*types.Func)
	if !is || called.Pkg() == nil || called.Pkg().Path() != f.Path() {
		return nil
	}
	wanted := interfaceOf(function)
	if wanted == nil {
		return []string{nameOf(function)}
	}
	for _, has := range f.methods("", called.Name()) {
		if f.implements([]*types.MethodSet{has}, wanted) {
			all = append(all, nameOf(has.Lookup(f.Package, called.Name()).Obj().(*types.Func)))
		}
	}
	return all
}

// methods are those of each type that has this method of a type, which may be embedded; or, if that
// has no name, of any type that has a body for it here.
func (f *functions) methods(of, method string) (all []*types.MethodSet) {
	for _, name := range f.Scope().Names() {
		if _, is := f.Scope().Lookup(name).(*types.TypeName); !is {
			continue
		}
		has := types.NewMethodSet(types.NewPointer(f.Scope().Lookup(name).Type()))
		if m := has.Lookup(f.Package, method); m != nil && (of == "" && m.Obj().Pkg() == f.Package || nameOf(m.Obj().(*types.Func)) == of+"."+method) {
			all = append(all, has)
		}
	}
	return all
}

// implements reports whether one of some types has methods of all names that an interface has.
func (f *functions) implements(some []*types.MethodSet, wanted *types.Interface) bool {
	return slices.ContainsFunc(some, func(has *types.MethodSet) bool {
		for m := range wanted.Methods() {
			if has.Lookup(f.Package, m.Name()) == nil {
				return false
			}
		}
		return true
	})
}

// nameOf is the name of a function, with its type before it if it is a method.
func nameOf(f *types.Func) string {
	r := f.Signature().Recv()
	if r == nil {
		return f.Name()
	}
	of := r.Type()
	if pointer, ok := of.(*types.Pointer); ok {
		of = pointer.Elem()
	}
	if named, ok := of.(*types.Named); ok {
		return named.Obj().Name() + "." + f.Name()
	}
	return f.Name()
}

// receiver is the type of a method, with a dot behind it.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	of := f.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name + "."
	}
	return "" // of a type with parameters
}
