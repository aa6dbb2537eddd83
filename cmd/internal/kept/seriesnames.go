package kept

import (
	"sync"
	"time"

	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/views"
	"rankfs/meta"
)

// A seriesName is the name of a series in the cache's keys: a view by its full name,
// or a dataset whose chunks it names.
type seriesName struct{ name, kind string }

// A notedName is a seriesName, and when the dataset of that name was registered.
type notedName struct {
	seriesName
	registered time.Time
}

// seriesNames are the names of the series that were made since the mount. A view that is
// settled, or whose dataset is refreshed, has another series by the same name. The lock
// guards both fields, which have the same series.
type seriesNames struct {
	mu struct {
		sync.Mutex
		of    map[[16]byte]notedName
		order [][16]byte // the first noted first
	}
}

// maxSeriesNames is far more than the views that are known at once.
const maxSeriesNames = 4096

func (n *seriesNames) note(series [16]byte, as notedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.of == nil {
		n.mu.of = make(map[[16]byte]notedName)
	}
	if _, known := n.mu.of[series]; !known {
		if len(n.mu.order) == maxSeriesNames {
			delete(n.mu.of, n.mu.order[0])
			n.mu.order = n.mu.order[1:]
		}
		n.mu.order = append(n.mu.order, series)
	}
	n.mu.of[series] = as
}

// find is the name of a series; none if it is not known.
func (n *seriesNames) find(series [16]byte) notedName {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.of[series]
}

// of has the series of a dataset that are known.
func (n *seriesNames) of(dataset string) (all [][16]byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id, as := range n.mu.of {
		if name, _, _ := meta.SplitView(as.name); name == dataset {
			all = append(all, id)
		}
	}
	return all
}

// has reports whether a series has a name.
func (n *seriesNames) has(as notedName) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, other := range n.mu.of {
		if other.seriesName == as.seriesName && other.registered.Equal(as.registered) {
			return true
		}
	}
	return false
}

// cachedAs has the series that name the slabs of batches in the cache, and their kind.
func cachedAs(b *views.Batches) (series [][16]byte, kind string) {
	series, chunks := b.CachedAs()
	if chunks {
		return series, control.Chunks
	}
	return series, control.Batches
}
