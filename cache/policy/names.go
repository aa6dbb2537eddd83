package policy

import (
	"fmt"
	"slices"
	"strings"

	"rankfs/meta"
)

// Names lists the policies, the default first.
func Names() []string {
	return []string{"mckp", "interval", "dp25", "lru", "lrc", "mrd", "all-ram", "all-packed", "all-disk"}
}

// New gives the policy of a name.
func New(name string) (Policy, error) {
	switch name {
	case "mckp":
		return &mckp{}, nil
	case "interval":
		return &interval{}, nil
	case "dp25":
		return &dp25{}, nil
	case "lru":
		return &ranked{by: byLast, at: RAM}, nil
	case "lrc":
		return &ranked{by: byCount, at: RAM}, nil
	case "mrd":
		return &ranked{by: byNext, at: RAM}, nil
	case "all-ram":
		return &ranked{by: byLast, at: RAM}, nil
	case "all-packed":
		return &ranked{by: byLast, at: Packed}, nil
	case "all-disk":
		return &ranked{by: byLast, at: Disk}, nil
	}
	return nil, fmt.Errorf("policy %q %w: choose one of %s", name, meta.ErrInvalid, strings.Join(slices.Clip(Names()), ", "))
}
