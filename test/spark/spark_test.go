//go:build spark

package spark_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rankfs/test/daemon"
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
	p := mounted(t)
	const master = "local-cluster[2,1,512]"
	jobs := []string{"sort", "sql", "graph", "twice", "lost", "mixed", "differs", "killed"}
	plain := run(t, master, nil, jobs)
	pool := run(t, master, inPool(t, p), jobs)
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
	p := mounted(t)
	options := append(inPool(t, p), "--conf", "spark.speculation=true",
		"--conf", "spark.speculation.quantile=0.5", "--conf", "spark.speculation.minTaskRuntime=10s")
	pool := run(t, standalone(t), options, []string{"sort", "slow"})
	if pool["slow"].Hash != pool["sort"].Hash {
		t.Errorf("the hash is %q, and %q of what ran once", pool["slow"].Hash, pool["sort"].Hash)
	}
	if pool["slow"].Speculative == 0 {
		t.Error("no map ran twice")
	}
	nothingIsLeft(t, p)
}

// mounted is a daemon with a pool; what runs on Spark is made ready.
func mounted(t *testing.T) *daemon.Place {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "./prepare").CombinedOutput(); err != nil {
		t.Fatalf("prepare: %v: %s", err, out)
	}
	p := daemon.New(t, daemon.Program(t), nil, "--ram", "2GiB", "--pool-ram", "1GiB")
	p.Start()
	return p
}

// inPool are the options by which an application has its shuffle files in the pool.
func inPool(t *testing.T, p *daemon.Place) []string {
	t.Helper()
	return []string{
		"--jars", absolute(t, "build/rankfs-spark.jar"),
		"--conf", "spark.shuffle.manager=rankfs.spark.RankfsShuffleManager",
		"--conf", "spark.shuffle.sort.io.plugin.class=rankfs.spark.RankfsShuffleDataIO",
		"--conf", "spark.rankfs.dir=" + p.Mount() + "/shuffle/job",
	}
}

// nothingIsLeft looks for the job, which goes with its application.
func nothingIsLeft(t *testing.T, p *daemon.Place) {
	t.Helper()
	if left := p.Must("ls", p.Mount()+"/shuffle"); left != "" {
		t.Errorf("the application leaves %q", left)
	}
}

// run runs an application, with options of spark-submit.
func run(t *testing.T, master string, options, jobs []string) map[string]result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runTime)
	defer cancel()
	dir := t.TempDir()
	home := absolute(t, "build/spark")
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
	line = append(append(line, absolute(t, "build/jobs.jar")), jobs...)
	cmd := exec.CommandContext(ctx, home+"/bin/spark-submit", line...)
	cmd.Dir = dir
	cmd.Env = environment(home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var words strings.Builder
	cmd.Stderr = &words
	out, err := cmd.Output()
	os.RemoveAll(home + "/work") // of the executors
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

func environment(home string) []string {
	return append(os.Environ(), "SPARK_HOME="+home, "SPARK_LOCAL_IP=127.0.0.1", "SPARK_LOCAL_HOSTNAME=localhost", "SPARK_SCALA_VERSION=2.13")
}

func absolute(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
