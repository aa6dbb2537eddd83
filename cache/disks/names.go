package disks

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// found is a slab of an earlier daemon that no index told of.
type found struct {
	label
	real int64
	when time.Time
}

// seeNames is list for a directory that is in use meanwhile.
func (d *directory) seeNames(p *place) {
	if err := d.list(p); err != nil && !d.closing.Load() {
		d.fail(err, true)
	}
}

// list reads all names: slabs missing from the index are added, slabs in the index
// without a file are forgotten, unfinished files of an earlier daemon are removed,
// and foreign files are left alone. Then slabs may be written.
func (d *directory) list(p *place) error {
	all, err := watch(d, func(j *job) ([]found, error) { return d.names(j, p) }, nil)
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	d.disown(p)
	slices.SortStableFunc(all, func(a, b found) int { return a.when.Compare(b.when) })
	for _, f := range all {
		d.adopt(p, f)
	}
	close(p.listed)
	_ = d.trim(nil) // the oldest go; what cannot go now has to before anything is written
	return nil
}

func (d *directory) names(j *job, p *place) (all []found, err error) {
	dir, err := p.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(1024)
		for _, name := range names {
			if f, ok := d.see(p, name); ok {
				all = append(all, f)
			}
		}
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if !j.alive() || d.closing.Load() {
			return nil, errStuck
		}
	}
}

// see looks at a name, and returns the slab if it is unknown.
func (d *directory) see(p *place, name string) (f found, ok bool) {
	if strings.HasPrefix(name, partPrefix) && !strings.HasPrefix(name, p.parts) {
		_ = p.root.Remove(name)
		return f, false
	}
	l, ok := parseName(name)
	if !ok || d.known(l) {
		return f, false
	}
	info, err := p.root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return f, false
	}
	if info.Size() != l.size { // cut short: it counts as damaged
		d.mu.Lock()
		d.mu.count.damaged++
		d.mu.Unlock()
		_ = p.root.Remove(name)
		return f, false
	}
	return found{l, realOf(info), info.ModTime()}, true
}

// known notes that a slab's name was seen.
func (d *directory) known(l label) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := d.mu.slabs.Find(l.key)
	if id == 0 || d.mu.slabs.label(id) != l {
		return false
	}
	d.mu.slabs.mark(id, seen)
	return true
}

// disown forgets the slabs that the index told of and that are not there.
func (d *directory) disown(p *place) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.place != p {
		return
	}
	for id := range d.mu.slabs.listed() {
		if !d.mu.slabs.is(id, seen) {
			d.lose(id)
		}
	}
}

// adopt takes a slab of an earlier daemon on. Of two for one key the first is
// kept: that which was there, or the older one.
func (d *directory) adopt(p *place, f found) {
	d.mu.Lock()
	taken := d.mu.slabs.Find(f.key) != 0
	if d.mu.place != p {
		d.mu.Unlock()
		return
	}
	if !taken {
		d.insert(f.label, f.real, true)
		d.mu.change++
	}
	d.mu.Unlock()
	if taken {
		_ = d.do(func(*job) error { return p.root.Remove(f.name()) })
	}
}

// insert enters a slab of an earlier daemon as the one used last. mu is held.
func (d *directory) insert(l label, real int64, known bool) {
	id := d.mu.slabs.insert(l, real)
	if id == 0 {
		return
	}
	if known {
		d.mu.slabs.mark(id, seen)
	}
	d.mu.slabs.list(id)
	d.mu.used += real
}
