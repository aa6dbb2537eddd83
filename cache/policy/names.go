package policy

import (
	"fmt"
	"strings"

	"rankfs/meta"
)

// policies are all, the default first.
var policies = []struct {
	name    string
	divides bool // jobs have their due of memory under it (package fair)
	fresh   func() Policy
}{
	{"mckp", true, func() Policy { return &mckp{} }},
	{"interval", false, func() Policy { return &interval{} }},
	{"dp25", false, func() Policy { return &dp25{} }},
	{"lru", false, func() Policy { return &ranked{by: byLast, at: RAM} }},
	{"lrc", false, func() Policy { return &ranked{by: byCount, at: RAM} }},
	{"mrd", false, func() Policy { return &ranked{by: byNext, at: RAM} }},
	{"all-ram", false, func() Policy { return &ranked{by: byLast, at: RAM} }},
	{"all-packed", false, func() Policy { return &ranked{by: byLast, at: Packed} }},
	{"all-disk", false, func() Policy { return &ranked{by: byLast, at: Disk} }},
}

// Names lists the policies, the default first.
func Names() (names []string) {
	for _, p := range policies {
		names = append(names, p.name)
	}
	return names
}

// Divides reports whether jobs have their due of memory under the policy of a name. Those that
// the default is compared with know no jobs.
func Divides(name string) bool {
	for _, p := range policies {
		if p.name == name {
			return p.divides
		}
	}
	return false
}

// New gives the policy of a name.
func New(name string) (Policy, error) {
	for _, p := range policies {
		if p.name == name {
			return p.fresh(), nil
		}
	}
	return nil, fmt.Errorf("policy %q %w: choose one of %s", name, meta.ErrInvalid, strings.Join(Names(), ", "))
}
