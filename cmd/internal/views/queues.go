package views

import (
	"log/slog"

	"rankfs/meta/dispatch"
)

// queues are what the queues of all views have in common.
type queues struct {
	mount   string
	readers *dispatch.Readers
	tasks   *tasks
	log     *slog.Logger
}
