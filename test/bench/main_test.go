package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestChosen(t *testing.T) {
	seen := make(map[string]bool)
	for _, r := range rows() {
		if seen[r.name] {
			t.Errorf("two measures are called %q", r.name)
		}
		seen[r.name] = true
	}
	if n := len(measures) + len(figures) + len(studies); len(seen) != n {
		t.Errorf("%d rows of %d measures", len(seen), n)
	}
	some, err := chosen("hdfs")
	if err != nil || len(some) == 0 || len(some) == len(seen) {
		t.Errorf("%d of %d rows, %v", len(some), len(seen), err)
	}
	for _, r := range some {
		if !strings.Contains(r.name, "hdfs") {
			t.Errorf("%q is not what was asked for", r.name)
		}
	}
	if _, err := chosen("no such name"); err == nil {
		t.Error("to measure nothing is no error")
	}
}

// One measure that missed decides what bench ends with, wherever it stands; the
// others are taken nevertheless.
func TestAMissIsTheEnd(t *testing.T) {
	above, below := outcome{values: []float64{1, 3, 2}, target: 2}, outcome{values: []float64{1, 3, 2}, target: 1.9, atMost: true}
	taken := 0
	as := func(o outcome) row {
		return row{"r", func(*bench) int { taken++; return missed(o) }}
	}
	for _, c := range []struct {
		rows []row
		code int
	}{
		{[]row{as(above)}, 0},
		{[]row{as(below)}, 1},
		{[]row{as(below), as(above)}, 1},
		{[]row{as(above), as(below)}, 1},
	} {
		taken = 0
		if code := measureAll(&bench{ground: ground{dir: t.TempDir(), shm: t.TempDir()}}, c.rows); code != c.code || taken != len(c.rows) {
			t.Errorf("%d rows: bench ends with %d after %d of them, want %d", len(c.rows), code, taken, c.code)
		}
	}
}

// A defect of bench itself ends it as what it is: with nothing printed it would pass.
func TestADefectIsNoResult(t *testing.T) {
	was := *dir
	*dir = t.TempDir()
	defer func() {
		*dir = was
		if is := recover(); is != "a defect" {
			t.Errorf("bench goes on after a panic: %v", is)
		}
	}()
	run([]row{{"r", func(*bench) int { panic("a defect") }}})
}

// What a profile is asked for is there by its name: of a function that is called otherwise by now
// a row would say that it takes nothing.
func TestProfiledFunctions(t *testing.T) {
	files, err := filepath.Glob("../../cache/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files of the cache, %v", len(files), err)
	}
	var source strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(text)
	}
	wanted := regexp.MustCompile(focus(choosing))
	for _, f := range choosing {
		declared := regexp.MustCompile(`(?m)^func \(\w+ \*` + f.receiver + `\) (\w+)\(`)
		found := false
		for _, m := range declared.FindAllStringSubmatch(source.String(), -1) {
			if f.name == "" || m[1] == f.name {
				found = wanted.MatchString("rankfs/cache.(*" + f.receiver + ")." + m[1])
			}
			if found {
				break
			}
		}
		if !found {
			t.Errorf("the cache has no method %q of %s", f.name, f.receiver)
		}
	}
}
