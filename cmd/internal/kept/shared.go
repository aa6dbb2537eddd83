package kept

import (
	"log/slog"

	"rankfs/cache"
	"rankfs/cache/pressure"
	"rankfs/cmd/internal/catalog"
	"rankfs/cmd/internal/views"
)

// A Config says whose cache it is.
type Config struct {
	Dir     string // of the daemon's state
	RAM     int64  // the budget of its memory
	HasNVMe bool
	Catalog *catalog.Catalog
	Views   *views.Views
	Owners  interface{ Count() int } // nodes
	Log     *slog.Logger
}

// A Memory says how much the cache may have of its budget now, by what was seen of the host's
// memory last, and why that is not watched, if so.
type Memory interface {
	Allowance() (pressure.Allowance, pressure.Sample, error)
}

// Shared is what all parts of a Kept have. Cache and memory are set by Start.
type shared struct {
	Config
	registered registrations
	cache      *cache.Cache
	memory     Memory
}
