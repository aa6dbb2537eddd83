package shortcircuit

// A list has the files that nobody uses, linked through them, longest unused
// first. The client's lock guards it.
type list struct {
	root File
	n    int
}

func (l *list) init() { l.root.next, l.root.prev = &l.root, &l.root }

func (l *list) push(f *File) {
	f.prev, f.next = l.root.prev, &l.root
	f.prev.next, f.next.prev = f, f
	l.n++
}

func (l *list) remove(f *File) {
	f.prev.next, f.next.prev = f.next, f.prev
	f.prev, f.next = nil, nil
	l.n--
}

func (l *list) first() *File { return l.after(&l.root) }

func (l *list) after(f *File) *File {
	if f.next == &l.root {
		return nil
	}
	return f.next
}
