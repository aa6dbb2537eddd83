package pooltree

import (
	"maps"
	"sync"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// attributesStay is how long the kernel may believe the attributes of a directory of the pool, at
// which it looks for every name on a path, or of a blob.
const attributesStay = time.Hour

// knownNames are the names of jobs and stages that the kernel may know, and need not ask for as
// long as they stand for what they stood for. When one stands for nothing any more, by
// whichever node's doing, the kernel is told.
//
// It takes the lock of a directory to be told, which it holds while a name there is looked up,
// made or removed. So a name that is told of is gone also from what was answered a moment
// before; and nothing that answers a request may tell. The lock guards the table, and is not
// held while the kernel is told; telling is.
type knownNames struct {
	tell    func(in *fusefs.Inode, name string) // the kernel
	telling chan struct{}
	tasks   sync.WaitGroup // goroutines that tell

	mu struct {
		sync.Mutex
		known map[knownName]keptName
	}
}

// A knownName is one in a directory of this number. The kernel may forget the directory and
// look it up again: then it has another inode and the same number.
type knownName struct {
	in   uint64
	name string
}

// A keptName is the job or stage that a name stood for when it was last looked up, and the inode.
type keptName struct {
	Named
	in *fusefs.Inode
}

func (p *knownNames) init(tell func(in *fusefs.Inode, name string)) {
	p.tell, p.telling = tell, make(chan struct{}, 1)
	p.mu.known = make(map[knownName]keptName)
}

// keep has the kernel keep a name, unless it stands for nothing by now. The name is in the
// table before that is looked at: what comes after is told.
func (p *knownNames) keep(in *fusefs.Inode, name string, is Named, out *fuse.EntryOut) {
	p.add(knownName{in.StableAttr().Ino, name}, keptName{is, in})
	if is.Stands() {
		out.SetEntryTimeout(attributesStay)
	}
}

func (p *knownNames) add(n knownName, is keptName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.known[n] = is
}

// remove removes what has a name, at the kernel's request. That forgets the name by itself;
// to be told later could be to be told of what has the name then. One that could not be
// removed stays in the table, and may be gone by now.
func (p *knownNames) remove(in *fusefs.Inode, name string, remove func() error) error {
	n := knownName{in.StableAttr().Ino, name}
	is, ok := p.take(n)
	err := remove()
	if err != nil && ok {
		if p.add(n, is); !is.Stands() {
			p.tasks.Go(p.forget)
		}
	}
	return err
}

// take takes a name out of the table, if it is there.
func (p *knownNames) take(n knownName) (is keptName, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	is, ok = p.mu.known[n]
	delete(p.mu.known, n)
	return is, ok
}

// forget tells the kernel of all names that stand for nothing any more, and returns once it
// knows.
func (p *knownNames) forget() {
	p.telling <- struct{}{}
	defer func() { <-p.telling }()
	p.mu.Lock()
	all := maps.Clone(p.mu.known)
	p.mu.Unlock()
	for n, was := range all {
		if was.Stands() || !p.stillIs(n, was) {
			continue
		}
		p.tell(was.in, n.name)
		p.drop(n, was)
	}
}

func (p *knownNames) stillIs(n knownName, was keptName) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	is, ok := p.mu.known[n]
	return ok && is.Number() == was.Number()
}

func (p *knownNames) drop(n knownName, was keptName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if is, ok := p.mu.known[n]; ok && is.Number() == was.Number() {
		delete(p.mu.known, n)
	}
}
