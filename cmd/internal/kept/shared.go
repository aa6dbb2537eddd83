package kept

import (
	"log/slog"

	"rankfs/cache"
	"rankfs/cmd/internal/catalog"
	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/views"
)

// A Config says whose cache it is.
type Config struct {
	Dir     string // of the daemon's state
	HasNVMe bool
	Catalog *catalog.Catalog
	Views   *views.Views
	Owners  interface{ Count() int } // nodes
	Log     *slog.Logger
}

// Shared is what all parts of a Kept have. Cache and memory are set by Start.
type shared struct {
	Config
	registered registrations
	cache      *cache.Cache
	memory     func(cache.TierStats) control.Tier
}
