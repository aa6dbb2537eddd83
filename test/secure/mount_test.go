package secure_test

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rankfs/test/daemon"
	"rankfs/test/secure"
)

// A mounted is a daemon that logs in with alice's keytab. What it holds is only
// read by other processes.
type mounted struct {
	t            *testing.T
	program, dir string
}

const mountedTime = 2 * time.Minute // bounds one command, and one wait

func (m mounted) command(name string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), mountedTime)
	m.t.Cleanup(cancel)
	c := exec.CommandContext(ctx, name, args...)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	return c
}

func (m mounted) rankfs(args ...string) {
	m.t.Helper()
	if out, err := m.command(m.program, append([]string{"--run", m.dir + "/run"}, args...)...).CombinedOutput(); err != nil {
		m.t.Fatalf("rankfs %v: %v\n%s", args, err, out)
	}
}

// mount begins a daemon, which ends with the test.
func (h hdfsWith) mount(t *testing.T, options ...string) mounted {
	t.Helper()
	program, remove, err := daemon.Build()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove() })
	dir, err := os.MkdirTemp("", "rankfs-secure-") // short: it has a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	m := mounted{t, program, dir}
	for _, name := range []string{"mnt", "run"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command(program, append([]string{"--run", dir + "/run", "--json", "mount", dir + "/mnt", "--state", dir + "/state", "--ram", "64MiB"}, options...)...)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	var log bytes.Buffer
	c.Stderr = &log
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	guard := time.AfterFunc(10*time.Minute, func() { c.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	t.Cleanup(func() {
		defer guard.Stop()
		if err := m.command(program, "--run", dir+"/run", "umount", dir+"/mnt").Run(); err != nil {
			t.Errorf("umount: %v", err)
			c.Process.Signal(syscall.SIGTERM)
		}
		if err := c.Wait(); err != nil {
			t.Errorf("the daemon: %v", err)
		}
		if t.Failed() {
			t.Logf("log of the daemon:\n%s", log.String())
		}
	})
	if err != nil || !strings.Contains(line, dir) {
		t.Fatalf("the daemon is not ready: %q, %v", line, err)
	}
	return m
}

// cat reads all batches of the one rank.
func (m mounted) cat(view string) ([]byte, error) {
	return m.command("sh", "-c", `cat "$0"/rank-0/batch-*[0-9]`, m.dir+"/mnt/datasets/"+view).Output()
}

// tickets counts those that the KDC gave alice for the namenode.
func (h hdfsWith) tickets(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(h.Path("kdc.log"))
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "ISSUE") && strings.Contains(line, "alice@") && strings.Contains(line, "for nn/") {
			count++
		}
	}
	return count
}

// mounts reads through a mount that has a keytab, also when its ticket has ended
// and the namenode, which was away, wants another.
func (h hdfsWith) mounts(t *testing.T, conf string, restart func()) {
	const life = 20 * time.Second
	h.Run("kadmin.local", "-q", "modprinc -maxlife 20seconds alice")
	begin := h.tickets(t)
	m := h.mount(t, "--hdfs-keytab", h.Path("alice.keytab"), "--hdfs-principal", "alice", "--krb5-conf", h.Path("krb5.conf"), "--hadoop-conf", conf)
	m.rankfs("dataset", "create", "d", "--source", "hdfs://"+h.Address()+"/data", "--as", "files", "--ranks", "1", "--batch", "1")
	want := bytes.Join(h.records, nil)
	if got, err := m.cat("d"); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes, want %d: %v", len(got), len(want), err)
	}
	first := h.tickets(t)
	if first == begin {
		t.Error("the KDC gave nobody a ticket")
	}
	ended := time.Now().Add(life)
	for ; time.Now().Before(ended); time.Sleep(100 * time.Millisecond) {
	}
	restart() // not before: the daemon looks at its source, and connects with what is valid
	m.rankfs("cache", "evict", "d")
	var got []byte
	var err error
	for deadline := time.Now().Add(mountedTime); ; {
		if got, err = m.cat("d"); err == nil || time.Now().After(deadline) {
			break
		}
		m.rankfs("cache", "evict", "d")
	}
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("after the ticket's end: %d bytes, want %d: %v", len(got), len(want), err)
	}
	if h.tickets(t) == first {
		t.Error("it has no other ticket than before")
	}
}

// Ranks read through a mount what a keytab lets it read, for longer than a ticket
// lives.
func TestMount(t *testing.T) {
	r := secure.New(t)
	settings := secure.Settings{protects: "privacy"}
	r.Configure(settings)
	stopName, _ := r.NameNode(), r.DataNode()
	h := fill(r)
	t.Run("readme", func(t *testing.T) { h.readme(t, h.Conf("client", settings)) })
	h.mounts(t, h.Conf("client", settings), func() {
		stopName()
		stopName = r.NameNode()
		r.AwaitBlocks("/data/01")
	})
}
