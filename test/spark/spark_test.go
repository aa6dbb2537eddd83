//go:build spark

package spark_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rankfs/test/daemon"
	"rankfs/test/spark"
)

// runTime bounds an application of some 300 s of processor time.
const runTime = 40 * time.Minute

// A result is what came of one job of Jobs.java.
type result struct {
	Job           string
	Hash          string
	Maps          int // tasks of maps that ran; of killed, after that
	Speculative   int // those of them that Spark started beside others
	Failed        int // tasks
	FailedFetches int
}

// An application has the same results with its shuffle files in the pool and without,
// be an executor killed, a map committed twice, or one lost.
func TestSpark(t *testing.T) {
	p, home := mounted(t)
	const master = "local-cluster[2,1,512]"
	jobs := []string{"sort", "sql", "graph", "twice", "lost", "mixed", "differs", "killed"}
	plain := run(t, home, master, nil, jobs)
	pool := run(t, home, master, home.InPool(jobOf(p)), jobs)
	for _, job := range jobs {
		if plain[job].Hash == "" || pool[job].Hash != plain[job].Hash {
			t.Errorf("%s: the hash is %q in the pool, and %q without", job, pool[job].Hash, plain[job].Hash)
		}
	}
	for _, same := range []string{"twice", "lost", "killed"} { // each sorts the same records
		if pool[same].Hash != pool["sort"].Hash {
			t.Errorf("%s: the hash is %q, and that of sort %q", same, pool[same].Hash, pool["sort"].Hash)
		}
	}
	if n := pool["killed"].Maps; n != 0 {
		t.Errorf("%d maps ran again once an executor was killed", n)
	}
	if plain["killed"].Maps == 0 {
		t.Error("no map ran again without the pool: nothing was lost with the executor")
	}
	if n := pool["twice"].Failed; n != 0 {
		t.Errorf("%d tasks failed, as theirs was the second attempt of a map", n)
	}
	if pool["differs"].Hash != "1" {
		t.Errorf("there are records of %s runs of a stage", pool["differs"].Hash)
	}
	for _, job := range []string{"lost", "mixed", "differs"} {
		if pool[job].FailedFetches == 0 {
			t.Errorf("%s: no fetch failed", job)
		}
	}
	nothingIsLeft(t, p)
}

// While a task takes long, Spark starts another one for the same map, which is committed.
func TestSpeculation(t *testing.T) {
	p, home := mounted(t)
	options := append(home.InPool(jobOf(p)), "--conf", "spark.speculation=true",
		"--conf", "spark.speculation.quantile=0.5", "--conf", "spark.speculation.minTaskRuntime=10s")
	pool := run(t, home, standalone(t, home), options, []string{"sort", "slow"})
	if pool["slow"].Hash != pool["sort"].Hash {
		t.Errorf("the hash is %q, and %q of what ran once", pool["slow"].Hash, pool["sort"].Hash)
	}
	if pool["slow"].Speculative == 0 {
		t.Error("no map ran twice")
	}
	nothingIsLeft(t, p)
}

// An application that could not have its shuffles in a pool does not start, and says what to do.
func TestApplicationsThatDoNotStart(t *testing.T) {
	home, err := spark.Prepare(t.Context(), ".")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, c := range []struct {
		job, copies, says string
	}{
		{"job", "2", "it has no hold: mount rankfs with --pool-ram there"},
		{"shuffle/job", "2", "is not there: mount rankfs with --pool-ram there"},
		{"job", "9", "spark.rankfs.copies=9: write a number from 1 to 8"},
	} {
		t.Run(c.job+" "+c.copies, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), runTime)
			defer cancel()
			job := filepath.Join(dir, c.job)
			line := append([]string{"--master", "local[1]", "--class", "Jobs", "--conf", "spark.ui.enabled=false", "--conf", "spark.rankfs.copies=" + c.copies}, home.InPool(job)...)
			out, err := home.Submit(ctx, t.TempDir(), append(line, home.Jobs(), "sort")...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), c.says) {
				t.Errorf("%v: %s", err, out)
			}
			if _, err := os.Stat(job); !os.IsNotExist(err) {
				t.Errorf("%s is left: %v", job, err)
			}
		})
	}
}

// mounted is a daemon with a pool; what runs on Spark is made ready.
func mounted(t *testing.T) (*daemon.Place, spark.Home) {
	t.Helper()
	home, err := spark.Prepare(t.Context(), ".")
	if err != nil {
		t.Fatal(err)
	}
	p := daemon.New(t, daemon.Program(t), nil, "--ram", "2GiB", "--pool-ram", "1GiB")
	p.Start()
	return p, home
}

// jobOf is the job of the application.
func jobOf(p *daemon.Place) string { return p.Mount() + "/shuffle/job" }

// nothingIsLeft looks for the job, which goes with its application.
func nothingIsLeft(t *testing.T, p *daemon.Place) {
	t.Helper()
	if left := p.Must("ls", p.Mount()+"/shuffle"); left != "" {
		t.Errorf("the application leaves %q", left)
	}
}

// run runs an application, with options of spark-submit.
func run(t *testing.T, home spark.Home, master string, options, jobs []string) map[string]result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runTime)
	defer cancel()
	dir := t.TempDir()
	const java = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
	line := []string{"--master", master, "--class", "Jobs", "--driver-memory", "512m", "--driver-java-options", java}
	for _, conf := range []string{
		"spark.executor.memory=512m",
		"spark.executor.extraJavaOptions=" + java,
		"spark.ui.enabled=false",
		"spark.local.dir=" + dir,
		// Small, so that small parts are read together, and large ones by some of their maps.
		"spark.sql.shuffle.partitions=40",
		"spark.sql.autoBroadcastJoinThreshold=-1",
		"spark.sql.adaptive.advisoryPartitionSizeInBytes=64k",
		"spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes=64k",
		"spark.sql.adaptive.skewJoin.skewedPartitionFactor=2",
	} {
		line = append(line, "--conf", conf)
	}
	line = append(line, options...)
	line = append(append(line, home.Jobs()), jobs...)
	cmd := home.Submit(ctx, dir, line...)
	var words strings.Builder
	cmd.Stderr = &words
	out, err := cmd.Output()
	if err := home.Clean(); err != nil {
		t.Error(err)
	}
	if err != nil {
		text := words.String()
		t.Fatalf("%v: %v: %s", jobs, err, text[max(0, len(text)-20_000):])
	}
	results := make(map[string]result)
	for line := range strings.Lines(string(out)) {
		var r result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		t.Logf("%+v", r)
		results[r.Job] = r
	}
	return results
}
