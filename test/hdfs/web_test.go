package hdfs_test

import (
	"bufio"
	"context"
	"strings"
	"testing"

	"rankfs/test/cluster"
	"rankfs/test/eventually"
)

// shut has a host refuse to send to the namenodes' RPC ports, until it is opened
// again, the test ends, or this process does.
func (p *place) shut() (open func()) {
	p.t.Helper()
	const rule = "ip rule $1 ipproto tcp dport 8020 prohibit"
	cmd := p.Host.Command(context.Background(), "sh", "-c",
		strings.Replace(rule, "$1", "add", 1)+" && echo && cat; "+strings.Replace(rule, "$1", "del", 1))
	in, err := cmd.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	ended := false
	open = func() {
		if ended {
			return
		}
		ended = true
		in.Close()
		if err := cmd.Wait(); err != nil {
			p.t.Errorf("open RPC again: %v", err)
		}
	}
	p.t.Cleanup(open)
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		p.t.Fatalf("shut RPC: %v", err)
	}
	return open
}

// A firewall begins to let HTTP alone pass to the namenodes, and later lets RPC
// pass again. Datasets are read and made all the time, and status says which way
// the namenodes are asked.
func TestRPCIsShut(t *testing.T) {
	c := cluster.MountsAlone(t)
	dir := c.Dir(t)
	content := strings.Repeat(lines(2000), 20)
	for _, name := range []string{"/early", "/late"} {
		c.Host("data2").Put(t, dir+name, []byte(content), 2, 1<<20)
		// It asks over HTTP: the first such call of a namenode may take minutes.
		if err := c.WaitReplicas(t.Context(), dir+name, 2); err != nil {
			t.Fatal(err)
		}
	}
	d := newPlace(t, c, "client", "--ram", "16MiB").start()
	warned := func() bool {
		for _, w := range d.status().Warnings {
			if strings.Contains(w, "no namenode of hdfs://rankfs/ answers by RPC: http://") {
				return true
			}
		}
		return false
	}
	read := func(name string) {
		t.Helper()
		if got, err := d.read(name); err != nil || got != content {
			t.Errorf("%s: other bytes, or %v", name, err)
		}
	}
	d.create("early", dir+"/early", "--batch", "2000")
	read("early")
	if warned() {
		t.Error("RPC is not shut yet")
	}
	open := d.shut()
	d.create("late", dir+"/late", "--batch", "2000")
	read("late")
	read("early")
	if !warned() {
		t.Errorf("status does not say that WebHDFS is asked: %q", d.status().Warnings)
	}
	if !strings.Contains(d.Log(), "no namenode answers by RPC; WebHDFS is asked instead") {
		t.Error("the log does not say it")
	}
	open()
	eventually.Within(t, toolTime, "RPC is asked again", func() bool { read("late"); return !warned() })
	read("early")
}
