package kept

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"rankfs/cache/policy"
	"rankfs/meta"
	"rankfs/meta/durable"
)

// CachePins are the views that are pinned in this node's cache, by their full names,
// in a file too. A view that was not opened since the mount is pinned when it is:
// until then it is not known which series name its batches.
//
// The lock is held for a whole change, the writing of the file included: changes are
// made by hand, one at a time.
type cachePins struct {
	path string
	pin  func(series [16]byte, at policy.Level)

	mu struct {
		sync.Mutex
		views   map[string]*cachePin
		applied map[[16]byte]policy.Level
		damaged error // why the file was set aside
	}
}

// A cachePin is one pinned view, and the series that name its slabs in the cache.
type cachePin struct {
	at     policy.Level
	series [][16]byte
}

// openCachePins reads the pins of an earlier daemon. A damaged file is set aside.
func openCachePins(dir string, pin func([16]byte, policy.Level)) (*cachePins, error) {
	s := &cachePins{path: filepath.Join(dir, "cached"), pin: pin}
	s.mu.views, s.mu.applied = make(map[string]*cachePin), make(map[[16]byte]policy.Level)
	text, err := readBounded(s.path, maxPinsFile)
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("what is pinned in the cache: %w", err)
	}
	levels, err := decodePins(text)
	if err != nil {
		return s, s.setAside(err)
	}
	for view, at := range levels {
		s.mu.views[view] = &cachePin{at: at}
	}
	return s, nil
}

func readBounded(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return []byte{}, nil // which is damaged
	}
	return os.ReadFile(path)
}

func (s *cachePins) setAside(cause error) error {
	aside := s.path + ".damaged"
	if err := os.Rename(s.path, aside); err != nil {
		return fmt.Errorf("what is pinned in the cache: %w: %w", cause, err)
	}
	s.mu.damaged = fmt.Errorf("what was pinned in the cache is not known any more: %s %w; pin it again with: rankfs cache pin", aside, cause)
	return nil
}

// names are the full names of the pinned views.
func (s *cachePins) names() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for view := range s.mu.views {
		names = append(names, view)
	}
	slices.Sort(names)
	return names
}

// find is a copy of the pin of a view; nil if it has none.
func (s *cachePins) find(view string) *cachePin {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.mu.views[view]; v != nil {
		found := *v
		return &found
	}
	return nil
}

// set pins a view at a level, or no longer; it returns where it was before.
func (s *cachePins) set(view string, at policy.Level, series [][16]byte) (was policy.Level, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	levels := make(map[string]policy.Level)
	for v, pin := range s.mu.views {
		levels[v] = pin.at
	}
	was = levels[view]
	levels[view] = at
	if at == policy.Source {
		delete(levels, view)
	}
	if len(levels) > maxCachePins {
		return was, meta.Worded(meta.ErrNoSpace, "pin %s: %d views are pinned already; see: rankfs cache ls", view, maxCachePins)
	}
	if err := durable.WriteFile(s.path, encodePins(levels), 0o600); err != nil {
		return was, fmt.Errorf("pin %s: %w", view, err)
	}
	delete(s.mu.views, view)
	if at != policy.Source {
		s.mu.views[view] = &cachePin{at, series}
	}
	s.apply()
	return was, nil
}

// forget pins no view of a dataset any longer.
func (s *cachePins) forget(dataset string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	left, levels := make(map[string]*cachePin), make(map[string]policy.Level)
	for view, pin := range s.mu.views {
		if of, _, _ := meta.SplitView(view); of != dataset {
			left[view], levels[view] = pin, pin.at
		}
	}
	if len(left) == len(s.mu.views) {
		return nil
	}
	if err := durable.WriteFile(s.path, encodePins(levels), 0o600); err != nil {
		return fmt.Errorf("unpin what was pinned of dataset %s: %w", dataset, err)
	}
	s.mu.views = left
	s.apply()
	return nil
}

// has reports whether a view of a dataset is pinned.
func (s *cachePins) has(dataset string) bool {
	return slices.ContainsFunc(s.names(), func(view string) bool {
		of, _, _ := meta.SplitView(view)
		return of == dataset
	})
}

// meet sets the series that name a view's slabs from now on.
func (s *cachePins) meet(view string, series [][16]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.mu.views[view]; v != nil && !slices.Equal(v.series, series) {
		v.series = series
		s.apply()
	}
}

// apply gives the cache the levels that have changed. Views can share series: the
// highest level counts. mu is held.
func (s *cachePins) apply() {
	now := make(map[[16]byte]policy.Level)
	for _, v := range s.mu.views {
		for _, series := range v.series {
			now[series] = max(now[series], v.at)
		}
	}
	for series := range s.mu.applied {
		if now[series] == policy.Source {
			s.pin(series, policy.Source)
		}
	}
	for series, at := range now {
		if s.mu.applied[series] != at {
			s.pin(series, at)
		}
	}
	s.mu.applied = now
}

// warning is why pins were lost, if they were.
func (s *cachePins) warning() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.damaged
}
