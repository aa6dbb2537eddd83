package pool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"rankfs/meta"
	"rankfs/shuffle/disk"
	"rankfs/shuffle/pieces"
)

// What a node keeps of attempts that are written on other nodes, of one job: so many, and each
// for so long after something came.
const (
	mostTailed = 256
	tailedTime = 30 * time.Second
)

// tailed are the files of what came of attempts. The lock guards the table, and taken of each;
// a file is written by the goroutine that has taken it, without the lock.
type tailed struct {
	mu struct {
		sync.Mutex
		of    map[string]*tailedMap // by their paths
		ended bool
	}
}

// A tailedMap is the beginning of an attempt of another node, as far as it has come.
type tailedMap struct {
	in   store
	name string // of its file
	file *os.File
	has  int64
	done func() // nothing uses the file any more

	isMap bool // the file has the name of a map
	taken bool
	late  *time.Timer // gives it up
}

// file is the name of the file in which it comes.
func (n tailName) file(stage uint64) string {
	return path.Join(stageDir(stage), mapsDir, fmt.Sprintf("%06d.%d.%s.tail.%016x%s", n.Map, n.Attempt, n.Writer, n.Nonce, incoming))
}

// tailTo is the file of the beginning of an attempt, if that ends where the request goes on; of an
// attempt of which nothing has come it is made, where its copy will be.
func (f *files) tailTo(r tailRequest) (t *tailedMap, err error) {
	name := r.tailName.file(r.Stage)
	if r.At > 0 {
		t = f.tailed.acquire(name)
		if t != nil && t.has != r.At {
			f.tailed.giveUp(t)
			t = nil
		}
		if t == nil {
			return nil, fmt.Errorf("what came of map %d before byte %d %w", r.Map, r.At, meta.ErrNotExist)
		}
		return t, nil
	}
	t = &tailedMap{in: f.store(), name: name, taken: true}
	if f.disk != nil {
		t.in = *f.disk
	}
	if err := t.in.MkdirAll(path.Dir(name), 0o700); err != nil {
		return nil, err
	}
	if t.done, err = f.Use(name); err != nil {
		return nil, err
	}
	if t.file, err = t.in.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o400); err != nil {
		t.done()
		return nil, err
	}
	if err := f.tailed.add(t); err != nil {
		return nil, errors.Join(err, t.remove())
	}
	return t, nil
}

// take appends n bytes.
func (t *tailedMap) take(n int64, r io.Reader) error {
	if d := t.in.disk; d == nil {
		in, err := t.in.ram.Admit(n, r)
		if err != nil {
			return err
		}
		defer in.End()
		r = in
	} else if !d.Take(disk.Blocks(t.has+n) - disk.Blocks(t.has)) {
		return disk.ErrFull
	}
	t.has += n
	got, err := pieces.Copy(io.NewOffsetWriter(t.file, t.has-n), r)
	if err == nil && got != n {
		err = io.ErrUnexpectedEOF
	}
	if err != nil && t.in.disk != nil {
		t.in.disk.Failed(err)
	}
	return err
}

// remove removes the file, unless that has become a map, and closes it.
func (t *tailedMap) remove() error {
	defer t.done()
	if t.isMap {
		return t.file.Close()
	}
	if t.in.disk != nil {
		t.in.disk.Give(disk.Blocks(t.has))
	}
	return errors.Join(t.in.Remove(t.name), t.file.Close())
}

// add has one more, which is taken.
func (all *tailed) add(t *tailedMap) error {
	all.mu.Lock()
	defer all.mu.Unlock()
	switch {
	case all.mu.ended:
		return fmt.Errorf("this node %w: it ends", meta.ErrUnavailable)
	case len(all.mu.of) >= mostTailed:
		return fmt.Errorf("this node %w: it keeps %d attempts of others already", meta.ErrBusy, mostTailed)
	}
	if all.mu.of == nil {
		all.mu.of = make(map[string]*tailedMap)
	}
	all.mu.of[t.name] = t
	return nil
}

// acquire takes one, until it is given back or given up; nil if there is none that is free.
func (all *tailed) acquire(name string) *tailedMap {
	all.mu.Lock()
	defer all.mu.Unlock()
	t := all.mu.of[name]
	if t == nil || t.taken {
		return nil
	}
	t.late.Stop()
	t.taken = true
	return t
}

// give gives one back, which is given up if nothing comes for long.
func (all *tailed) give(t *tailedMap) {
	all.mu.Lock()
	ended := all.mu.ended
	if !ended {
		t.taken = false
		t.late = time.AfterFunc(tailedTime, func() { all.forget(t.name) })
	}
	all.mu.Unlock()
	if ended {
		all.giveUp(t)
	}
}

// giveUp forgets one that is taken.
func (all *tailed) giveUp(t *tailedMap) {
	all.mu.Lock()
	delete(all.mu.of, t.name)
	all.mu.Unlock()
	_ = t.remove() // what is left of it is swept
}

// forget gives one up that is free, if there is one of that name.
func (all *tailed) forget(name string) {
	if t := all.acquire(name); t != nil {
		all.giveUp(t)
	}
}

// below gives up what is free of names that begin so.
func (all *tailed) below(prefix string) {
	all.mu.Lock()
	var names []string
	for name := range all.mu.of {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	all.mu.Unlock()
	for _, name := range names {
		all.forget(name)
	}
}

// end gives up all, and keeps none from then on.
func (all *tailed) end() {
	all.mu.Lock()
	all.mu.ended = true
	all.mu.Unlock()
	all.below("")
}

// errTail is for a copy of which this node has not what was sent before.
var errTail = meta.Worded(meta.ErrOvertaken, "what was sent of the map before is not here any more")

// complete keeps a map of whose bytes so many came before it was committed, and r has the others.
func (f *files) complete(lasting bool, name string, t pieces.Table, before string, has int64, r io.Reader) error {
	came := f.tailed.acquire(before)
	if came == nil {
		return errTail
	}
	defer func() { f.tailed.giveUp(came) }()
	switch {
	case came.has < has, lasting && came.in.disk == nil:
		return errTail
	}
	if err := came.cut(has); err != nil {
		return err
	}
	all := t.Check(io.MultiReader(io.NewSectionReader(came.file, 0, has), r), 0)
	if _, err := pieces.Copy(io.Discard, io.LimitReader(all, has)); err != nil {
		return err
	}
	if err := came.take(t.Size()-has, all); err != nil {
		return err
	}
	in := came.in
	err := beside(lasting, func() error { return in.place(nil, name+idx, int64(len(t)), bytes.NewReader(t), lasting, nil) }, func(func() error) error {
		if !lasting {
			return nil
		}
		return came.file.Sync()
	})
	if err != nil {
		return err
	}
	if err := in.rename(came.name, name); err != nil {
		return err
	}
	came.isMap = true
	f.open.Forget(name) // what had the name before
	if lasting {
		return in.sync(path.Dir(name))
	}
	return nil
}

// cut gives up what came beyond so many bytes.
func (t *tailedMap) cut(has int64) error {
	if t.has == has {
		return nil
	}
	if err := t.file.Truncate(has); err != nil {
		return err
	}
	if t.in.disk != nil {
		t.in.disk.Give(disk.Blocks(t.has) - disk.Blocks(has))
	}
	t.has = has
	return nil
}
