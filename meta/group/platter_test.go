package group

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	walfs "github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/types"
)

// A platter is the disk of a node's log. When its node is killed it has what was
// synced and nothing else. It fails when it is told to: writes then are done by half,
// and what a sync that fails was to write is lost, as the kernel has it.
//
// Its lock is held while something is written, so that a node dies between writes.
type platter struct {
	types.VFS
	mu struct {
		sync.Mutex
		gone  bool  // the node was killed: it writes nothing more
		fault error // of all that is written; nil if it is well
		once  bool  // and of no more than one write
		syncs int
		files map[string]*track
	}
}

var errGone = errors.New("this process was killed")

func newPlatter() *platter {
	p := &platter{VFS: walfs.New()}
	p.mu.files = make(map[string]*track)
	return p
}

func (p *platter) medium() medium {
	return medium{p, func() types.MetaStore { return &ledger{new(metadb.BoltMetaDB), p} }}
}

// fail has the disk fail, once or until it is told to be well again.
func (p *platter) fail(fault error, once bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.fault, p.mu.once = fault, once
}

// ill is why nothing can be written now. The lock is held.
func (p *platter) ill() error {
	if p.mu.gone {
		return errGone
	}
	fault := p.mu.fault
	if p.mu.once {
		p.mu.fault = nil
	}
	return fault
}

// syncs is how often a file was synced.
func (p *platter) syncs() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.syncs
}

// kill leaves the files as they were synced.
func (p *platter) kill() (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.gone = true
	for path, t := range p.mu.files {
		if !t.named {
			err = errors.Join(err, os.Remove(path))
			continue
		}
		size, end := int64(len(t.synced)), int64(0)
		if info, serr := os.Stat(path); serr == nil {
			end = max(size, info.Size())
		}
		// In another file: the old one is the dying process's to read.
		err = errors.Join(err, os.WriteFile(path+".left", t.synced, 0o644), os.Truncate(path+".left", end), os.Rename(path+".left", path))
	}
	return err
}

// Create implements types.VFS.
func (p *platter) Create(dir, name string, size uint64) (types.WritableFile, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.ill(); err != nil {
		return nil, err
	}
	f, err := p.VFS.Create(dir, name, size)
	if err != nil {
		return nil, err
	}
	return p.track(filepath.Join(dir, name), f, &track{platter: p}), nil
}

// OpenWriter implements types.VFS.
func (p *platter) OpenWriter(dir, name string) (types.WritableFile, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	path := filepath.Join(dir, name)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f, err := p.VFS.OpenWriter(dir, name)
	if err != nil {
		return nil, err
	}
	return p.track(path, f, &track{platter: p, named: true, synced: bytes.TrimRight(text, "\x00")}), nil
}

func (p *platter) track(path string, f types.WritableFile, t *track) *track {
	t.WritableFile = f
	p.mu.files[path] = t
	return t
}

// Delete implements types.VFS.
func (p *platter) Delete(dir, name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.ill(); err != nil {
		return err
	}
	delete(p.mu.files, filepath.Join(dir, name))
	return p.VFS.Delete(dir, name)
}

// A track is a file on a platter.
type track struct {
	types.WritableFile
	platter *platter
	named   bool   // its name is synced
	synced  []byte // without the zeros that follow
	written []chunk
}

type chunk struct {
	at   int64
	text []byte
}

// WriteAt implements types.WritableFile.
func (t *track) WriteAt(text []byte, at int64) (int, error) {
	p := t.platter
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.ill()
	if errors.Is(err, errGone) {
		return 0, err
	}
	if err != nil {
		text = text[:len(text)/2]
	}
	n, werr := t.WritableFile.WriteAt(text, at)
	t.written = append(t.written, chunk{at, bytes.Clone(text[:n])})
	return n, errors.Join(err, werr)
}

// Sync implements types.WritableFile.
func (t *track) Sync() error {
	p := t.platter
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.ill()
	p.mu.syncs++
	for _, c := range t.written {
		if end := int(c.at) + len(c.text); err == nil {
			t.synced = append(t.synced, make([]byte, max(0, end-len(t.synced)))...)
			copy(t.synced[c.at:], c.text)
		}
	}
	if !errors.Is(err, errGone) {
		t.written = nil
	}
	t.named = t.named || err == nil
	return err
}

// A ledger is what a log says of itself, on a platter: it is synced each time.
type ledger struct {
	types.MetaStore
	platter *platter
}

func (l *ledger) write(do func() error) error {
	l.platter.mu.Lock()
	defer l.platter.mu.Unlock()
	if err := l.platter.ill(); err != nil {
		return fmt.Errorf("write the ledger: %w", err)
	}
	return do()
}

// CommitState implements types.MetaStore.
func (l *ledger) CommitState(s types.PersistentState) error {
	return l.write(func() error { return l.MetaStore.CommitState(s) })
}

// SetStable implements types.MetaStore.
func (l *ledger) SetStable(key, value []byte) error {
	return l.write(func() error { return l.MetaStore.SetStable(key, value) })
}

// kill ends a node as kill -9 and a power failure do: what it has not synced is lost.
// Its goroutines end afterwards, and write nothing.
func (n *node) kill(forgets bool) {
	if err := n.disk.kill(); err != nil {
		n.t.Errorf("kill %s: %v", n.id, err)
	}
	n.group.endRaft() // so that it makes no snapshot, which its end would
	if err := errors.Join(n.port.Close(), n.group.Close()); err != nil {
		n.t.Logf("killed %s: %v", n.id, err)
	}
	if agreed := filepath.Join(n.dir, "raft", "log", "agreed"); forgets {
		if err := os.Remove(agreed); err != nil {
			n.t.Error(err)
		}
	}
	n.group = nil
}
