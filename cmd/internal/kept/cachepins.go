package kept

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"rankfs/cache/policy"
	"rankfs/meta"
)

// CachePins are the views that are pinned in this node's cache, by their full names,
// in a file too. A view that was not opened since the mount is pinned when it is:
// until then it is not known which series name its batches.
//
// A lookup takes the lock, which guards what the cache was told of the pins: it is not held
// while the file is written.
type cachePins struct {
	path    string
	pin     func(series [16]byte, at policy.Level)
	damaged error                // why the file was set aside
	levels  *table[policy.Level] // by view

	told struct { // before that of levels
		sync.Mutex
		series  map[string][][16]byte // of the views that are pinned and were met
		applied map[[16]byte]policy.Level
	}
}

// A cachePin is one pinned view, and the series that name its slabs in the cache.
type cachePin struct {
	at     policy.Level
	series [][16]byte
}

// openCachePins reads the pins of an earlier daemon. A damaged file is set aside.
func openCachePins(dir string, pin func([16]byte, policy.Level)) (*cachePins, error) {
	s := &cachePins{path: filepath.Join(dir, "cached"), pin: pin, levels: newTable(make(map[string]policy.Level))}
	s.told.series, s.told.applied = make(map[string][][16]byte), make(map[[16]byte]policy.Level)
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
	s.levels = newTable(levels)
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
	s.damaged = fmt.Errorf("what was pinned in the cache is not known any more: %s %w; pin it again with: rankfs cache pin", aside, cause)
	return nil
}

// names are the full names of the pinned views.
func (s *cachePins) names() []string { return slices.Sorted(maps.Keys(s.levels.all())) }

// find is the pin of a view, if it has one.
func (s *cachePins) find(view string) (pin cachePin, ok bool) {
	s.told.Lock()
	defer s.told.Unlock()
	at, ok := s.levels.find(view)
	return cachePin{at, s.told.series[view]}, ok
}

// set pins a view at a level, or no longer; it returns where it was before. One that was not
// pinned is when it is met.
func (s *cachePins) set(view string, at policy.Level) (was policy.Level, err error) {
	err = s.levels.change(func(levels map[string]policy.Level) error {
		was = levels[view]
		if levels[view] = at; at == policy.Source {
			delete(levels, view)
		}
		if len(levels) > maxCachePins {
			return meta.Worded(meta.ErrNoSpace, "pin %s: %d views are pinned already; see: rankfs cache ls", view, maxCachePins)
		}
		if err := s.levels.write(s.path, encodePins(levels), 0o600); err != nil {
			return fmt.Errorf("pin %s: %w", view, err)
		}
		return nil
	})
	s.tell()
	return was, err
}

// forget pins no view of a dataset any longer.
func (s *cachePins) forget(dataset string) error {
	err := s.levels.change(func(levels map[string]policy.Level) error {
		all := len(levels)
		maps.DeleteFunc(levels, func(view string, _ policy.Level) bool { return isOf(view, dataset) })
		if len(levels) == all {
			return nil
		}
		if err := s.levels.write(s.path, encodePins(levels), 0o600); err != nil {
			return fmt.Errorf("unpin what was pinned of dataset %s: %w", dataset, err)
		}
		return nil
	})
	s.tell()
	return err
}

// has reports whether a view of a dataset is pinned.
func (s *cachePins) has(dataset string) bool {
	return slices.ContainsFunc(s.names(), func(view string) bool { return isOf(view, dataset) })
}

func isOf(view, dataset string) bool {
	of, _, _ := meta.SplitView(view)
	return of == dataset
}

// meet sets the series that name a view's slabs from now on.
func (s *cachePins) meet(view string, series [][16]byte) {
	s.told.Lock()
	defer s.told.Unlock()
	if _, pinned := s.levels.find(view); pinned && !slices.Equal(s.told.series[view], series) {
		s.told.series[view] = series
		s.apply()
	}
}

// tell has the cache know of a change of the pins.
func (s *cachePins) tell() {
	s.told.Lock()
	defer s.told.Unlock()
	s.apply()
}

// apply gives the cache the levels that have changed. Views can share series: the
// highest level counts. The lock is held.
func (s *cachePins) apply() {
	levels, now := s.levels.all(), make(map[[16]byte]policy.Level)
	for view, all := range s.told.series {
		at := levels[view]
		if at == policy.Source {
			delete(s.told.series, view)
			continue
		}
		for _, series := range all {
			now[series] = max(now[series], at)
		}
	}
	for series := range s.told.applied {
		if now[series] == policy.Source {
			s.pin(series, policy.Source)
		}
	}
	for series, at := range now {
		if s.told.applied[series] != at {
			s.pin(series, at)
		}
	}
	s.told.applied = now
}

// warning is why pins were lost, if they were.
func (s *cachePins) warning() error { return s.damaged }
