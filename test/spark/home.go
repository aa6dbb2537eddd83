package spark

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// A Home has PySpark, the plug-in, and our applications.
type Home string

// Prepare makes the home of this folder, which is done once for each state of it.
func Prepare(ctx context.Context, folder string) (Home, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	prepare := filepath.Join(folder, "prepare")
	if out, err := exec.CommandContext(ctx, prepare).CombinedOutput(); err != nil {
		return "", fmt.Errorf("run %s: %w: %s", prepare, err, out)
	}
	return Home(filepath.Join(folder, "build")), nil
}

// Jobs is what Java's applications are in.
func (h Home) Jobs() string { return filepath.Join(string(h), "jobs.jar") }

// InPool are the options by which an application has its shuffle files in a job of the pool.
func (h Home) InPool(job string) []string {
	return []string{
		"--jars", filepath.Join(string(h), "rankfs-spark.jar"),
		"--conf", "spark.shuffle.manager=rankfs.spark.RankfsShuffleManager",
		"--conf", "spark.shuffle.sort.io.plugin.class=rankfs.spark.RankfsShuffleDataIO",
		"--conf", "spark.rankfs.dir=" + job,
	}
}

// Submit is spark-submit, in a directory of its own.
func (h Home) Submit(ctx context.Context, dir string, args ...string) *exec.Cmd {
	return h.in(dir, exec.CommandContext(ctx, h.spark("bin", "spark-submit"), args...))
}

// Daemon is a program of a cluster of Spark.
func (h Home) Daemon(dir, class string, args ...string) *exec.Cmd {
	line := append([]string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx192m", "-cp", h.spark("jars", "*"), class}, args...)
	return h.in(dir, exec.Command("java", line...))
}

// Clean removes what executors of clusters in one process have left.
func (h Home) Clean() error { return os.RemoveAll(h.spark("work")) }

func (h Home) spark(of ...string) string {
	return filepath.Join(append([]string{string(h), "spark"}, of...)...)
}

func (h Home) in(dir string, cmd *exec.Cmd) *exec.Cmd {
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "SPARK_HOME="+h.spark(), "SPARK_LOCAL_IP=127.0.0.1", "SPARK_LOCAL_HOSTNAME=localhost",
		"SPARK_SCALA_VERSION=2.13", "PYSPARK_PYTHON="+filepath.Join(string(h), "venv/bin/python"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}
