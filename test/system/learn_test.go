package system_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// Programs that go through their data again and again come to the result that one
// process comes to with the files themselves, whatever decides what is kept, where
// memory holds half of it and a disk a third.
func TestMPIProgramsThatIterate(t *testing.T) {
	t.Parallel()
	n := start(t, "--ram", "16MiB", "--nvme", filepath.Join(t.TempDir(), "nvme")+":10MiB")
	files := make(map[string]string)
	for i, set := range []string{"rawtest", "rawtrain", "test", "train"} {
		path, records := filepath.Join(t.TempDir(), set), 98304
		if strings.HasSuffix(set, "test") {
			records /= 8
		}
		program(t, "go", "run", "rankfs/test/makedata", "points", "-n", fmt.Sprint(records), "-seed", fmt.Sprint(i), "-o", path)
		n.ok("dataset", "create", set, "--source", "file:"+path, "--as", "fixed:256", "--ranks", "2", "--batch", "512")
		files[set] = path
	}
	for i, job := range []struct {
		name   string
		sets   []string
		policy string
	}{
		{"kmeans", []string{"train"}, "all-packed"},
		{"lda", []string{"train"}, "all-disk"},
		{"logreg", []string{"train", "test"}, "lru"},
		{"knn", []string{"rawtest", "rawtrain", "test", "train"}, "dp25"},
	} {
		learn := func(ranks int, path func(string) string) string {
			args := []string{"learn", "-e", "3", job.name}
			for _, set := range job.sets {
				args = append(args, path(set))
			}
			return mpirun(t, ranks, args...)
		}
		reference := learn(1, func(set string) string { return files[set] })
		var right float64
		if _, err := fmt.Sscan(cut(t, reference, " right="), &right); err != nil || right < 0.95 {
			t.Errorf("too little was classed well to say anything: %s", reference)
		}
		policies := []string{job.policy}
		if i < rounds(4, 1) {
			policies = append(policies, "mckp")
		}
		for _, policy := range policies {
			n.ok("cache", "policy", policy)
			out := learn(2, func(set string) string { return n.path(set) })
			if got, want := cut(t, out, " result="), cut(t, reference, " result="); got != want {
				t.Errorf("%s: %sthe reference: %s", policy, out, reference)
			}
		}
	}
	if n.status().Counters.Evicted == 0 {
		t.Error("memory held all of it")
	}
}
