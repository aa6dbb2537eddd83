package hadoop_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rankfs/test/hadoop"
)

// Programs take their classes from the archive, if one could be made.
func TestArchive(t *testing.T) {
	home, err := hadoop.Prepare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	made, err := filepath.Glob(filepath.Join(string(home), "*.jsa"))
	if err != nil || len(made) > 1 {
		t.Fatalf("archives are %q, %v", made, err)
	}
	options := append([]string{"-Xlog:class+load"}, hadoop.ToolOptions...)
	line := home.Line(t.TempDir(), options, "org.apache.hadoop.conf.Configuration") // prints one
	out, err := exec.CommandContext(t.Context(), line[0], line[1:]...).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, class := range []string{"org.apache.hadoop.conf.Configuration", "com.ctc.wstx.io.StreamBootstrapper"} {
		_, from, _ := strings.Cut(string(out), class+" source: ")
		from, _, _ = strings.Cut(from, "\n")
		if archived := strings.HasPrefix(from, "shared objects file"); archived != (len(made) == 1) {
			t.Errorf("%s is taken from %q; archives are %q", class, from, made)
		}
	}
}

// One that is damaged or gone hinders no program, and stdout is the program's own.
func TestNoArchive(t *testing.T) {
	built, err := hadoop.Prepare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(string(built), "..", "options"))
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	for _, name := range []string{"lib", "web", "programs.jar"} {
		if err := os.Symlink(filepath.Join(string(built), name), filepath.Join(home, name)); err != nil {
			t.Fatal(err)
		}
	}
	damaged := filepath.Join(home, "damaged")
	if err := os.WriteFile(damaged, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, archive := range []string{damaged, filepath.Join(home, "none")} {
		t.Run(filepath.Base(archive), func(t *testing.T) {
			options := string(text) + "-XX:SharedArchiveFile=" + archive + "\n"
			if err := os.WriteFile(filepath.Join(home, "options"), []byte(options), 0o600); err != nil {
				t.Fatal(err)
			}
			line := hadoop.Home(home).Line("", hadoop.ToolOptions, "Sequence")
			p, err := hadoop.StartCommand(exec.CommandContext(t.Context(), line[0], line[1:]...))
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			check(t, p, hadoop.SequenceOrder{Compression: "NONE", Value: "Text", Records: 10, Size: 50})
		})
	}
}
