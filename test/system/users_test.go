package system_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A person is a user other than root, with a directory of his own.
type person struct {
	t    testing.TB
	who  syscall.Credential
	home string
}

func newPerson(t testing.TB, uid, gid uint32, groups ...uint32) person {
	t.Helper()
	home := t.TempDir()
	must(t, os.Chmod(filepath.Dir(home), 0o755))
	must(t, os.Chmod(home, 0o700))
	must(t, os.Chown(home, int(uid), int(gid)))
	return person{t, syscall.Credential{Uid: uid, Gid: gid, Groups: groups}, home}
}

// does runs a command in the person's directory.
func (p person) does(args ...string) result {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), toolTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Dir = p.home
	cmd.Env = append(os.Environ(), "HOME="+p.home, "TMPDIR="+p.home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &p.who}
	cmd.WaitDelay = 5 * time.Second
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		p.t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// rankfs runs the rankfs command for a daemon.
func (p person) rankfs(n *node, args ...string) result {
	p.t.Helper()
	return p.does(append([]string{commands, "--run", n.run}, args...)...)
}

// What users other than root may do: all that looks, and nothing that changes.
var (
	looks = [][]string{
		{"status"}, {"stall", "d"}, {"stats", "--once"}, {"plan", "d"}, {"queue", "ls"}, {"queue", "show", "d"}, {"queue", "policy"},
		{"dataset", "ls"}, {"dataset", "show", "d"}, {"cache", "ls"}, {"cache", "policy"}, {"simulate", "d"}, {"node", "ls"},
	}
	changes = [][]string{
		{"dataset", "create", "e", "--source", "file:/etc/passwd", "--as", "lines"},
		{"dataset", "refresh", "d"}, {"dataset", "verify", "d"}, {"plan", "d", "--settle"}, {"plan", "d", "--unsettle"},
		{"queue", "reset", "d"}, {"queue", "rm", "d"}, {"queue", "policy", "probability"}, {"cache", "pin", "d"}, {"cache", "unpin", "d"}, {"cache", "evict", "d"},
		{"cache", "policy", "lru"}, {"warm", "d"}, {"token", "create"}, {"node", "drain", "x"}, {"node", "rm", "x"},
		{"dataset", "rm", "d"},
	}
)

func TestUsersLookAndDoNotChange(t *testing.T) {
	t.Parallel()
	n := start(t, "--admin-group", "4711")
	n.create("d", newLines(t, 40), "--batch", "5", "--ranks", "2")
	one := newPerson(t, 65534, 65534)
	if r := one.does("cat", n.path("d", "rank-1", "queue")); r.code != 0 {
		t.Errorf("cat queue: %v", r)
	}
	for _, line := range looks {
		if r := one.rankfs(n, line...); r.code != 0 {
			t.Errorf("%v: %v", line, r)
		}
	}
	for _, line := range changes {
		if r := one.rankfs(n, line...); r.code != 7 || !strings.Contains(r.err, ": this is not for all users of the mount; ask root, or a member of group 4711") {
			t.Errorf("%v: %v", line, r)
		}
	}
	if r := one.rankfs(n, "umount", n.mount); r.code != 7 || !strings.Contains(r.err, "only root can unmount it") {
		t.Errorf("umount: %v", r)
	}
	dir := filepath.Join(one.home, "mine")
	must(t, os.Mkdir(dir, 0o755))
	if r := one.does(rankfs, "--run", n.run, "mount", dir); r.code != 7 || !strings.Contains(r.err, "only root can mount") {
		t.Errorf("mount: %v", r)
	}
	if out := n.ok("dataset", "ls", "--json").out; !strings.Contains(out, `"name":"d"`) || strings.Contains(out, `"name":"e"`) {
		t.Errorf("after all that: %s", out)
	}
}

func TestAdminGroupMayChange(t *testing.T) {
	t.Parallel()
	n := start(t, "--admin-group", "4711")
	n.create("d", newLines(t, 40), "--batch", "5")
	one := newPerson(t, 1234, 1234, 4711)
	for _, line := range [][]string{
		{"cache", "policy", "lru"}, {"cache", "pin", "d"}, {"cache", "evict", "d"}, {"warm", "d"}, {"plan", "d", "--settle"},
		{"dataset", "verify", "d"}, {"dataset", "refresh", "d"}, {"token", "create"}, {"dataset", "rm", "d"},
	} {
		r := one.rankfs(n, line...)
		if denied := r.code == 7; denied || r.code != 0 && line[0] != "plan" { // a plan of one node is fixed
			t.Errorf("%v: %v", line, r)
		}
	}
}

// A user who may not use a mount is told so, also where the daemon of another user has died.
func TestPrivateMount(t *testing.T) {
	t.Parallel()
	n := start(t, "--private", "--admin-group", "4711")
	start(t).Kill()
	one := newPerson(t, 1234, 4711)
	if r := one.rankfs(n, "status"); r.code != 7 || !strings.Contains(r.err, "is not open to you") {
		t.Errorf("status: %v", r)
	}
	if r := one.rankfs(n, "status", "--mount", n.mount); r.code != 7 {
		t.Errorf("status: %v", r)
	}
	n.ok("status")
}

// What README says of a job: mpirun as an ordinary user, who verifies each byte.
func TestMPIAsAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	images, sums := corpus(t, "datum", 600)
	n := start(t)
	n.ok("dataset", "create", "images", "--source", "lmdb:"+images, "--ranks", "2", "--batch", "64", "--order", "full")
	one := newPerson(t, 65534, 65534)
	run, verify, known := filepath.Join(one.home, "run"), filepath.Join(one.home, "map_verify"), filepath.Join(one.home, "sums")
	for to, from := range map[string]string{run: programs + "run", verify: programs + "bin/map_verify", known: sums} {
		data, err := os.ReadFile(from)
		must(t, err)
		must(t, os.WriteFile(to, data, 0o755))
	}
	r := one.does(run, "2", verify, "-d", "-m", "-r", n.path("images"), known)
	if r.code != 0 || !strings.Contains(r.out, "OK ranks=2 ") || !strings.Contains(r.out, fmt.Sprintf(" records=%d ", 600)) {
		t.Errorf("mpirun: %v", r)
	}
}

// A user feeds a program of named pipes from a mount that is root's.
func TestSupplyAsAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.create("d", newLines(t, 40), "--batch", "5", "--ranks", "2")
	one := newPerson(t, 65534, 65534)
	client := filepath.Join(one.home, "seed_client")
	data, err := os.ReadFile(programs + "bin/seed_client")
	must(t, err)
	must(t, os.WriteFile(client, data, 0o755))
	r := one.does("sh", "-euc", `
		for i in 0 1; do echo "$PWD/map$i" >>maps; echo "$PWD/pipe$i" >>pipes; done
		"$1" --run "$2" supply --maps "$PWD/maps" --pipes "$PWD/pipes" --dataset d 2>log & supply=$!
		"$3" maps pipes 0 4 -i -p 2 || { cat log; exit 1; }
		kill $supply 2>/dev/null || :
		wait $supply || :`, "sh", rankfs, n.run, client)
	if r.code != 0 || !strings.Contains(r.out, "pairs=2 mode=") {
		t.Errorf("supply: %v", r)
	}
}
