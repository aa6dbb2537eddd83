package lmdb

import (
	"context"
	"errors"
	"fmt"

	"rankfs/meta"
)

// maxNames is how many named databases an error lists.
const maxNames = 16

var errEnough = errors.New("enough")

// database returns the tree of the named database, or of the main one.
func (w *walker) database(ctx context.Context, name string) (tree, error) {
	t := w.head.main
	if name != "" {
		var err error
		if t, err = w.named(ctx, name); err != nil {
			return tree{}, err
		}
	}
	if t.flags&treeDups != 0 {
		return tree{}, meta.Worded(meta.ErrInvalid, "%s: %s cannot be a source, it has several values to a key (DUPSORT); copy it to a plain one", w.name, label(name))
	}
	return t, nil
}

func label(name string) string {
	if name == "" {
		return "the main database"
	}
	return fmt.Sprintf("the database %q", name)
}

// named looks for a database by going through the main one, which holds
// nothing else where names are used. The order of its keys is thus no matter.
func (w *walker) named(ctx context.Context, name string) (found tree, err error) {
	var names []string
	err = w.walk(ctx, w.head.main, func(p page) error {
		for i := range p.nodes() {
			n := p.node(i)
			if !n.isTree() {
				continue
			}
			key := string(p[n.key:n.value])
			if key == name {
				found = decodeTree(p[n.value:])
				return errEnough
			}
			if len(names) <= maxNames {
				names = append(names, key)
			}
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return found, nil
	}
	if err != nil {
		return tree{}, err
	}
	return tree{}, fmt.Errorf("%s: %s %w; there are %s", w.name, label(name), meta.ErrNotExist, list(names))
}

// isTree reports whether a node of the main database is a named database.
func (n node) isTree() bool {
	return n.flags&(nodeBig|nodeTree|nodeDups) == nodeTree && n.size == treeSize
}

// list is for people: at most maxNames names, and of each no more than fits
// a line.
func list(names []string) string {
	if len(names) == 0 {
		return "no named databases"
	}
	more := ""
	if len(names) > maxNames {
		names, more = names[:maxNames], " and more"
	}
	return fmt.Sprintf("the databases %.64q%s", names, more)
}

// refuse explains why a node that is more than a value cannot be a record.
func (w *walker) refuse(ctx context.Context, number uint64, n node) error {
	if !n.isTree() {
		return w.errorf(number, "a key with several values in a database without them: it %w", meta.ErrCorrupt)
	}
	var names []string
	err := w.walk(ctx, w.head.main, func(p page) error {
		for i := range p.nodes() {
			if n := p.node(i); n.isTree() {
				names = append(names, string(p[n.key:n.value]))
			}
			if len(names) > maxNames {
				return errEnough
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	return meta.Worded(meta.ErrInvalid, "%s: the main database cannot be a source, it holds %s; add ?db=NAME", w.name, list(names))
}

// A span is where a value stands in the file.
type span struct{ off, length int64 }

// records calls emit with the values of each leaf of t, in the order of the
// keys. The slice is emit's until it returns.
func (w *walker) records(ctx context.Context, t tree, emit func([]span) error) error {
	var n uint64
	var odd node
	var oddPage uint64
	var spans []span
	err := w.walk(ctx, t, func(p page) error {
		n += uint64(p.nodes())
		if n > t.entries {
			return w.errorf(p.number(), "more than the %d records that are counted: it %w", t.entries, meta.ErrCorrupt)
		}
		spans = spans[:0]
		for i := range p.nodes() {
			if v := p.node(i); v.flags&(nodeTree|nodeDups) != 0 {
				odd, oddPage = v, p.number()
				return errEnough
			}
			s, err := w.span(p, i)
			if err != nil {
				return err
			}
			spans = append(spans, s)
		}
		return emit(spans)
	})
	if errors.Is(err, errEnough) {
		return w.refuse(ctx, oddPage, odd)
	}
	if err == nil && n != t.entries {
		err = w.errorf(t.root, "%d records, %d are counted: it %w", n, t.entries, meta.ErrCorrupt)
	}
	return err
}

// span finds the value of node i.
func (w *walker) span(p page, i int) (span, error) {
	n := p.node(i)
	if n.flags&nodeBig == 0 {
		return span{int64(p.number())*w.head.page + int64(n.value), int64(n.size)}, nil
	}
	number := little.Uint64(p[n.value:])
	run := uint64((pageHeader + int64(n.size) + w.head.page - 1) / w.head.page)
	if number < 2 || number >= w.pages() || run > w.pages()-number {
		return span{}, w.errorf(p.number(), "a value of %d bytes on page %d of %d: it %w", n.size, number, w.pages(), meta.ErrCorrupt)
	}
	return span{int64(number)*w.head.page + pageHeader, int64(n.size)}, nil
}
