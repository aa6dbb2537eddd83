package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is set by the linker in a build that has a name.
var release string

// version is the release, or what the build knows of the commit.
func version() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

func (p *program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this command",
		Args:  wants(),
		RunE: func(*cobra.Command, []string) error {
			v := struct {
				Version string `json:"version"`
				Go      string `json:"go"`
				System  string `json:"system"`
			}{version(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
			return p.print(v, func(w io.Writer) { fmt.Fprintf(w, "rankfs %s (%s, %s)\n", v.Version, v.Go, v.System) })
		},
	}
}
