package secure_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rankfs/test/daemon"
	"rankfs/test/readme"
	"rankfs/test/secure"
)

// A terminal is where README's lines are typed: those with sudo by root, all
// others by a user who has no ticket. The paths of README are paths of the test.
type terminal struct {
	*daemon.Place
	t     *testing.T
	bin   string
	paths *strings.Replacer
}

func (h hdfsWith) terminal(t *testing.T, conf string) terminal {
	t.Helper()
	program := daemon.Program(t)
	p := daemon.New(t, program, nil)
	dir := p.Dir
	bin := filepath.Join(dir, "bin")
	for _, err := range []error{os.Chmod(filepath.Dir(dir), 0o755), os.Mkdir(bin, 0o755), os.Chmod(filepath.Dir(program), 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	script := fmt.Sprintf(`#!/bin/sh
case $1 in mount) set -- "$@" --state %[1]s/state --ram 64MiB --krb5-conf %[2]s;; esac
exec %[3]s --run %[1]s/run "$@"
`, dir, h.Path("krb5.conf"), program)
	if err := os.WriteFile(filepath.Join(bin, "rankfs"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	paths := strings.NewReplacer("/mnt/rankfs", dir+"/mnt", "/etc/hadoop/conf", conf, "/etc/rankfs.keytab", h.Path("alice.keytab"),
		"--hdfs-principal rankfs", "--hdfs-principal alice", "hdfs:///logs", "hdfs:///data")
	return terminal{p, t, bin, paths}
}

// types runs one line and returns what it prints.
func (r terminal) types(line string) string {
	r.t.Helper()
	text, root := strings.CutPrefix(r.paths.Replace(line), "sudo ")
	c := r.Command(context.Background(), "sh", "-euc", "export PATH="+r.bin+":$PATH; "+text)
	c.Dir, c.Env = "/", append(c.Env, "HADOOP_CONF_DIR=", "KRB5CCNAME=FILE:/nonexistent")
	if !root {
		c.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	out, err := c.CombinedOutput()
	if err != nil {
		r.t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return string(out)
}

// readme types README's lines for an HDFS with a keytab.
func (h hdfsWith) readme(t *testing.T, conf string) {
	r := h.terminal(t, conf)
	t.Cleanup(func() { r.Rankfs("umount", r.Mount()) })
	size := 0
	for _, record := range h.records {
		size += len(record)
	}
	begin, all := h.tickets(t), ""
	for _, line := range readme.Lines(t, "HDFS with a keytab:") {
		all += r.types(line)
	}
	for _, want := range []string{"alice@" + secure.Name, "mounted ", fmt.Sprintf("\n%d\n", size), "hdfs: ", "unmounted "} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in what README's lines print:\n%s", want, all)
		}
	}
	if h.tickets(t) == begin {
		t.Error("the KDC gave no ticket")
	}
}
