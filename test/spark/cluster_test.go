//go:build spark

package spark_test

import (
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"rankfs/test/eventually"
	"rankfs/test/spark"
)

// startTime bounds the start of a daemon of Spark.
const startTime = 5 * time.Minute

// standalone starts a cluster of two hosts, as far as Spark knows, and returns its master:
// Spark starts the second attempt of a task on another host than the first.
func standalone(t *testing.T, home spark.Home) (master string) {
	t.Helper()
	said := start(t, home, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
	address := regexp.MustCompile(`Starting Spark master at (spark://\S+)`)
	eventually.Within(t, startTime, "Spark has a master", func() bool {
		if found := address.FindStringSubmatch(said()); found != nil {
			master = found[1]
		}
		return master != ""
	})
	for _, host := range []string{"127.0.0.1", "127.0.0.2"} {
		said := start(t, home, "org.apache.spark.deploy.worker.Worker", "--host", host, "--cores", "1", "--memory", "512m",
			"--webui-port", "0", "--work-dir", t.TempDir(), master)
		eventually.Within(t, startTime, "Spark has a worker on "+host, func() bool {
			return strings.Contains(said(), "Successfully registered with master")
		})
	}
	return master
}

// start starts a daemon of Spark, and returns what it has said.
func start(t *testing.T, home spark.Home, class string, args ...string) (said func() string) {
	t.Helper()
	cmd := home.Daemon(t.TempDir(), class, args...)
	log, err := os.Create(cmd.Dir + "/log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said = func() string {
		text, err := os.ReadFile(log.Name())
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM) // a worker ends its executors
		cmd.Wait()
		if t.Failed() {
			t.Logf("%s: %s", class, said())
		}
	})
	return said
}
