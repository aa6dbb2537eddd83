package system_test

import (
	"strings"
	"testing"
)

// Who writes a spec that cannot be learns so from write(2), and why from the file state.
func TestSpecsThatAreRefused(t *testing.T) {
	_, stage := pool(t, "maps=1")
	for spec, why := range map[string]string{
		"compress=zstd":  "maps are kept and sent as they were written",
		"place=anywhere": "write place=writer or place=ring",
		"maps=0":         "write a number from 1 to 262144",
		"maps":           "write KEY=VALUE",
		"maps=1 maps=2":  "two values of maps",
		"colour=red":     "there are maps, parts, copies, ack, place, strict and ttl",
	} {
		r := command(t, "sh", "-c", `env printf "$2" > "$1/spec"`, "sh", stage, spec)
		state := sh(t, `cat "$1/state"`, stage)
		if r.code == 0 || !strings.Contains(r.err, "Invalid argument") || !strings.Contains(state, why) {
			t.Errorf("%s: %v, and state: %s", spec, r, state)
		}
	}
	got := sh(t, `echo 'maps=1 compress=none place=writer' > "$1/spec"; cat "$1/spec"; echo 'maps=1 place=ring' > "$1/spec"; cat "$1/spec"`, stage)
	if want := "maps=1 parts=1 copies=2\nmaps=1 parts=1 copies=2 place=ring\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
