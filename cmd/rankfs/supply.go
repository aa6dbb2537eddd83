package main

import (
	"github.com/spf13/cobra"

	"rankfs/cmd/internal/supply"
)

// supplyCommand finds the mount as every other command does.
func (p *program) supplyCommand() *cobra.Command {
	c := supply.Command(func(mount string) (string, error) {
		p.mount = mount
		e, err := p.find()
		return e.Mount, err
	}, p.print)
	c.Args = wants()
	return c
}
