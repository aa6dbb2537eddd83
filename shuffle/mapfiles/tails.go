package mapfiles

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"rankfs/meta"
	"rankfs/shuffle/disk"
	"rankfs/shuffle/pieces"
)

// maxTailed bounds the attempts of one job that are written on other nodes, and are kept here.
const maxTailed = 256

// TailTime is how long each of them is kept after something came.
const TailTime = 30 * time.Second

// Tails are the files of what came of attempts. The lock guards the table, and taken of each;
// a file is written by the goroutine that has taken it, without the lock.
type Tails struct {
	in *places

	mu struct {
		sync.Mutex
		of    map[string]*Tail // by their paths
		ended bool
	}
}

// A Tail is the beginning of an attempt of another node, as far as it has come.
type Tail struct {
	*unfinished
	all   *Tails
	taken bool
	late  *time.Timer // gives it up
}

// At is the file of the beginning of an attempt, if that ends there; of an attempt of which nothing
// has come it is made, where its copy will be. The caller has it until Take returns.
func (all *Tails) At(stage uint64, of TailName, at int64) (t *Tail, err error) {
	name := of.file(stage)
	if at > 0 {
		t = all.acquire(name)
		if t != nil && t.has != at {
			all.giveUp(t)
			t = nil
		}
		if t == nil {
			return nil, fmt.Errorf("what came of map %d before byte %d %w", of.Map, at, meta.ErrNotExist)
		}
		return t, nil
	}
	in := all.in.memory
	if all.in.disk != nil {
		in = *all.in.disk
	}
	if err := in.makeDirOf(nil, name); err != nil {
		return nil, err
	}
	u, err := in.begin(nil, name, 0)
	if err != nil {
		return nil, err
	}
	t = &Tail{unfinished: u, all: all, taken: true}
	if err := all.add(t); err != nil {
		return nil, errors.Join(err, t.discard(nil))
	}
	return t, nil
}

// Take appends n bytes. If it fails, what came is given up.
func (t *Tail) Take(n int64, r io.Reader) error {
	if err := t.add(nil, n, r); err != nil {
		t.all.giveUp(t)
		return err
	}
	t.all.give(t)
	return nil
}

// add has one more, which is taken.
func (all *Tails) add(t *Tail) error {
	all.mu.Lock()
	defer all.mu.Unlock()
	switch {
	case all.mu.ended:
		return fmt.Errorf("this node %w: it ends", meta.ErrUnavailable)
	case len(all.mu.of) >= maxTailed:
		return fmt.Errorf("this node %w: it keeps %d attempts of others already", meta.ErrBusy, maxTailed)
	}
	if all.mu.of == nil {
		all.mu.of = make(map[string]*Tail)
	}
	all.mu.of[t.Unfinished] = t
	return nil
}

// acquire takes one, until it is given back or given up; nil if there is none that is free.
func (all *Tails) acquire(name string) *Tail {
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
func (all *Tails) give(t *Tail) {
	all.mu.Lock()
	ended := all.mu.ended
	if !ended {
		t.taken = false
		t.late = time.AfterFunc(TailTime, func() { all.forget(t.Unfinished) })
	}
	all.mu.Unlock()
	if ended {
		all.giveUp(t)
	}
}

// giveUp forgets one that is taken.
func (all *Tails) giveUp(t *Tail) {
	all.mu.Lock()
	delete(all.mu.of, t.Unfinished)
	all.mu.Unlock()
	_ = t.discard(nil) // what is left of it is swept
}

// GiveUp gives up what came of an attempt, unless more of it comes now.
func (all *Tails) GiveUp(stage uint64, of TailName) { all.forget(of.file(stage)) }

// forget gives one up that is free, if there is one of that name.
func (all *Tails) forget(name string) {
	if t := all.acquire(name); t != nil {
		all.giveUp(t)
	}
}

// GiveUpBelow gives up what is free of names that begin so.
func (all *Tails) GiveUpBelow(prefix string) {
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
func (all *Tails) end() {
	all.mu.Lock()
	all.mu.ended = true
	all.mu.Unlock()
	all.GiveUpBelow("")
}

// errTail is for a copy of which this node has not what was sent before.
var errTail = meta.Worded(meta.ErrOvertaken, "what was sent of the map before is not here any more")

// Complete keeps a map of the stage by its name. So many of its bytes came before it was committed,
// and r has the others.
func (all *Tails) Complete(lasting bool, stage uint64, name string, t pieces.Table, before TailName, has int64, r io.Reader) error {
	came := all.acquire(before.file(stage))
	if came == nil {
		return errTail
	}
	defer all.giveUp(came)
	switch {
	case came.has < has, lasting && came.in.disk == nil:
		return errTail
	}
	if err := came.cut(has); err != nil {
		return err
	}
	came.Name, came.Durable = name, lasting
	table, err := came.in.written(nil, name+Idx, int64(len(t)), bytes.NewReader(t), lasting)
	if err != nil {
		return err
	}
	defer table.discard(nil)
	whole := t.Check(io.MultiReader(io.NewSectionReader(came.Bytes, 0, has), r), 0)
	if _, err := pieces.Copy(io.Discard, io.LimitReader(whole, has)); err != nil {
		return err
	}
	if err := came.add(nil, t.Size()-has, whole); err != nil {
		return err
	}
	return came.in.seal(nil, table, came.unfinished)
}

// cut gives up what came beyond so many bytes.
func (t *Tail) cut(has int64) error {
	if t.has == has {
		return nil
	}
	if err := t.Bytes.Truncate(has); err != nil {
		return err
	}
	t.Count(disk.Blocks(has))
	t.has = has
	return nil
}
