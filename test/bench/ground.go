package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A ground is where data are, and programs without rankfs read them.
type ground struct {
	root string // of the checkout
	dir  string // on a disk
	shm  string // on a tmpfs with huge pages, as local programs would have it
}

// data makes test data once per run.
func (g *ground) data(name string, args ...string) string {
	path := filepath.Join(g.dir, name)
	if _, err := os.Stat(path); err != nil {
		args = append([]string{"run", "./test/makedata"}, args...)
		output("go", append(args, "-o", path)...)
	}
	return path
}

// tool runs a program of test/mpi.
func (g *ground) tool(name string, args ...string) string {
	return output(filepath.Join(g.root, "test/mpi/bin", name), args...)
}

// script runs one of sh to its end, by which bytes are what counts, not a language's letters.
func (g *ground) script(text string, args ...string) {
	quietly(g.shell(exec.Command("sh", append([]string{"-euc", text}, args...)...)))
}

// parallel runs one for each of some names, which is $0.
func (g *ground) parallel(names []string, text string, args ...string) {
	line := append([]string{"-P", fmt.Sprint(cores()), "-I", "@", "sh", "-euc", text, "@"}, args...)
	cmd := exec.Command("xargs", line...)
	cmd.Stdin = strings.NewReader(strings.Join(names, "\n"))
	quietly(g.shell(cmd))
}

func (g *ground) shell(cmd *exec.Cmd) *exec.Cmd {
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TMPDIR="+g.dir)
	return cmd
}
