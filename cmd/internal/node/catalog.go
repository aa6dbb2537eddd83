package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/fetch"
	"rankfs/meta"
)

// A catalog is the set of registered datasets, kept in a directory with one
// folder each:
//
//	NAME/dataset.json    what was registered
//	NAME/index           the record table of the source as it was then
//
// A folder appears and goes by a rename, so it is there whole or not at all.
type catalog struct {
	dir string
	log *slog.Logger
	env *fetch.Env

	mu struct {
		sync.Mutex
		byName map[string]*dataset
		making map[string]bool // names for which an index is being made
	}
}

// A record is what dataset.json in the state directory says.
type record struct {
	Name    string    `json:"name"`
	Source  string    `json:"source"`
	View    string    `json:"view"`               // the options of the default view, all of them
	ByChunk bool      `json:"by_chunk,omitempty"` // records need not be counted
	Created time.Time `json:"created"`
	Indexed time.Time `json:"indexed"`
}

const (
	recordFile = "dataset.json"
	indexFile  = "index"
	newPrefix  = ".new-"
	oldPrefix  = ".old-"
)

func openCatalog(dir string, env *fetch.Env, log *slog.Logger) (*catalog, error) {
	c := &catalog{dir: dir, env: env, log: log}
	c.mu.byName, c.mu.making = make(map[string]*dataset), make(map[string]bool)
	if err := os.MkdirAll(dir, 0700); err != nil {
		return nil, fmt.Errorf("catalog: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("catalog: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), newPrefix) || strings.HasPrefix(e.Name(), oldPrefix) {
			os.RemoveAll(path)
			continue
		}
		d, err := c.load(path)
		if err != nil {
			// One bad folder must not keep the others from being served.
			log.Error("dataset not loaded", "folder", path, "cause", err)
			continue
		}
		c.mu.byName[d.record.Name] = d
	}
	return c, nil
}

func (c *catalog) load(folder string) (*dataset, error) {
	text, err := os.ReadFile(filepath.Join(folder, recordFile))
	if err != nil {
		return nil, err
	}
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s %w: %w", recordFile, meta.ErrCorrupt, err)
	}
	if r.Name != filepath.Base(folder) {
		return nil, fmt.Errorf("%s %w: it names dataset %q", recordFile, meta.ErrCorrupt, r.Name)
	}
	return newDataset(folder, r, c.env)
}

func (c *catalog) get(name string) (*dataset, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.mu.byName[name]; d != nil {
		return d, nil
	}
	return nil, fmt.Errorf("dataset %q %w; see: rankfs dataset ls", name, meta.ErrNotExist)
}

func (c *catalog) list() []*dataset {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*dataset, 0, len(c.mu.byName))
	for _, d := range c.mu.byName {
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b *dataset) int { return cmp.Compare(a.record.Name, b.record.Name) })
	return all
}

// claim reserves a name while its index is made, which may take long.
func (c *catalog) claim(name string, exists bool) (release func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.mu.making[name]:
		return nil, fmt.Errorf("dataset %q %w: it is being indexed", name, meta.ErrBusy)
	case c.mu.byName[name] != nil && !exists:
		return nil, fmt.Errorf("dataset %q %w; remove it first with: rankfs dataset rm %s", name, meta.ErrExist, name)
	case c.mu.byName[name] == nil && exists:
		return nil, fmt.Errorf("dataset %q %w; see: rankfs dataset ls", name, meta.ErrNotExist)
	}
	c.mu.making[name] = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.mu.making, name)
	}, nil
}

// install makes and enters the dataset of r, in place of one of the same name.
// The name must be claimed.
func (c *catalog) install(ctx context.Context, r record, report reporter) (*dataset, error) {
	folder, err := os.MkdirTemp(c.dir, newPrefix)
	if err != nil {
		return nil, fmt.Errorf("create dataset %s: %w", r.Name, err)
	}
	defer os.RemoveAll(folder) // by then gone, or the one it replaced
	src, err := fetch.Open(r.Source, c.env)
	if err != nil {
		return nil, fmt.Errorf("create dataset %s: %w", r.Name, err)
	}
	defer src.Close() // after the dataset is in the catalog, so that what it has copied is wanted by then
	if err := makeIndex(ctx, r, src, filepath.Join(folder, indexFile), report); err != nil {
		return nil, fmt.Errorf("create dataset %s: %w", r.Name, err)
	}
	r.Indexed = time.Now().UTC()
	text, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, recordFile), append(text, '\n'), 0600)
	}
	if err != nil {
		return nil, fmt.Errorf("create dataset %s: %w", r.Name, err)
	}
	home := filepath.Join(c.dir, r.Name)
	if err := replace(folder, home); err != nil {
		return nil, fmt.Errorf("create dataset %s: %w", r.Name, err)
	}
	d, err := newDataset(home, r, c.env)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	old := c.mu.byName[r.Name]
	c.mu.byName[r.Name] = d
	c.mu.Unlock()
	if old != nil {
		err = old.content.held.remove()
	}
	c.retain()
	return d, err
}

// replace gives the folder a name, in exchange for the one that has it: at no
// moment is there none.
func replace(folder, home string) error {
	err := unix.Renameat2(unix.AT_FDCWD, folder, unix.AT_FDCWD, home, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.ENOENT) {
		err = os.Rename(folder, home)
	}
	return err
}

// remove takes a dataset out of the catalog, if it is there. Its name must be
// claimed.
func (c *catalog) remove(name string) error {
	c.mu.Lock()
	d := c.mu.byName[name]
	c.mu.Unlock()
	if d == nil {
		return nil
	}
	grave, err := os.MkdirTemp(c.dir, oldPrefix)
	if err == nil {
		err = os.Rename(d.folder, filepath.Join(grave, name))
	}
	if err != nil {
		return fmt.Errorf("remove dataset %s: %w", name, err)
	}
	c.mu.Lock()
	delete(c.mu.byName, name)
	c.mu.Unlock()
	err = d.content.held.remove()
	c.retain()
	return errors.Join(err, os.RemoveAll(grave))
}

// retain says which versions of sources there are datasets of.
func (c *catalog) retain() {
	c.mu.Lock()
	var fingerprints []string
	for _, d := range c.mu.byName {
		fingerprints = append(fingerprints, d.content.index.Fingerprint())
	}
	c.mu.Unlock()
	c.env.HDFS.Retain(fingerprints)
}

func (c *catalog) close() error {
	var errs []error
	for _, d := range c.list() {
		errs = append(errs, d.content.held.close())
	}
	return errors.Join(errs...)
}
