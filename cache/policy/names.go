package policy

import (
	"fmt"
	"strings"

	"rankfs/meta"
)

// policies are all, the default first.
var policies = []struct {
	name  string
	fresh func() Policy
}{
	{"mckp", func() Policy { return &mckp{} }},
	{"interval", func() Policy { return &interval{} }},
	{"dp25", func() Policy { return &dp25{} }},
	{"lru", func() Policy { return &ranked{by: byLast, at: RAM} }},
	{"lrc", func() Policy { return &ranked{by: byCount, at: RAM} }},
	{"mrd", func() Policy { return &ranked{by: byNext, at: RAM} }},
	{"all-ram", func() Policy { return &ranked{by: byLast, at: RAM} }},
	{"all-packed", func() Policy { return &ranked{by: byLast, at: Packed} }},
	{"all-disk", func() Policy { return &ranked{by: byLast, at: Disk} }},
}

// Names lists the policies, the default first.
func Names() (names []string) {
	for _, p := range policies {
		names = append(names, p.name)
	}
	return names
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
