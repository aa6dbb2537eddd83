package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// script runs one of sh to its end, by which bytes are what counts, not a language's letters.
func (b *bench) script(text string, args ...string) {
	quietly(b.shell(exec.Command("sh", append([]string{"-euc", text}, args...)...)))
}

// parallel runs one for each of some names, which is $0.
func (b *bench) parallel(names []string, text string, args ...string) {
	line := append([]string{"-P", fmt.Sprint(cores()), "-I", "@", "sh", "-euc", text, "@"}, args...)
	cmd := exec.Command("xargs", line...)
	cmd.Stdin = strings.NewReader(strings.Join(names, "\n"))
	quietly(b.shell(cmd))
}

func (b *bench) shell(cmd *exec.Cmd) *exec.Cmd {
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TMPDIR="+b.dir)
	return cmd
}
