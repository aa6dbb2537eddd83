package secure_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"rankfs/test/daemon"
	"rankfs/test/eventually"
	"rankfs/test/secure"
)

// mountedTime bounds what is waited for.
const mountedTime = 4 * time.Minute

// cat reads all batches of the one rank, in another process.
func cat(p *daemon.Place, view string) (string, error) {
	return p.Tool("sh", "-c", `cat "$0"/rank-0/batch-*[0-9]`, p.Mount()+"/datasets/"+view)
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
	p := daemon.New(t, daemon.Program(t), nil, "--ram", "64MiB", "--hdfs-keytab", h.Path("alice.keytab"), "--hdfs-principal", "alice", "--krb5-conf", h.Path("krb5.conf"), "--hadoop-conf", conf)
	p.Start()
	p.Do("dataset", "create", "d", "--source", "hdfs://"+h.Address()+"/data", "--as", "files", "--ranks", "1", "--batch", "1")
	want := string(bytes.Join(h.records, nil))
	if got, err := cat(p, "d"); err != nil || got != want {
		t.Fatalf("%d bytes, want %d: %v", len(got), len(want), err)
	}
	first := h.tickets(t)
	if first == begin {
		t.Error("the KDC gave no ticket")
	}
	time.Sleep(life)
	restart() // not before: the daemon looks at its source, and connects with what is valid
	p.Do("cache", "evict", "d")
	var got string
	eventually.Done(t, mountedTime, "a read after the ticket's end", func() (err error) {
		if got, err = cat(p, "d"); err != nil {
			p.Do("cache", "evict", "d")
		}
		return err
	})
	if got != want {
		t.Errorf("after the ticket's end: %d bytes, want %d", len(got), len(want))
	}
	if h.tickets(t) == first {
		t.Error("it has no other ticket than before")
	}
}

// actsFor mounts with the tickets of a cache, for whom their user may act and for whom not:
// ranks read what is that one's alone, or it is said who has to allow it.
func (h hdfsWith) actsFor(t *testing.T, conf string) {
	h.File("hers/f", "carol's\n")
	h.Put(block, h.Path("hers"), "/hers")
	c := h.HDFS()
	if err := errors.Join(c.Chown("/hers", "carol", "carol"), c.Chmod("/hers", 0o700)); err != nil {
		t.Fatal(err)
	}
	h.Run("kinit", "-c", h.Path("tickets"), "-kt", h.Path("alice.keytab"), "alice")
	as := func(user string) (p *daemon.Place, out string, err error) {
		p = daemon.New(t, daemon.Program(t), nil, "--ram", "64MiB", "--hdfs-cache", "FILE:"+h.Path("tickets"), "--hdfs-act-for", user,
			"--krb5-conf", h.Path("krb5.conf"), "--hadoop-conf", conf)
		p.Start()
		out, err = p.Rankfs("dataset", "create", "d", "--source", "hdfs://"+h.Address()+"/hers", "--as", "files", "--ranks", "1", "--batch", "1")
		return p, out, err
	}
	p, _, err := as("carol")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := cat(p, "d"); err != nil || got != "carol's\n" {
		t.Errorf("for carol: %q, %v", got, err)
	}
	_, out, err := as("dave")
	if said := out + fmt.Sprint(err); err == nil || !strings.Contains(said, "not allowed to impersonate dave; act for another user") || !strings.Contains(said, "hadoop.proxyuser.") {
		t.Errorf("for dave: %s", said)
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
	t.Run("acting for another", func(t *testing.T) { h.actsFor(t, h.Conf("client", settings)) })
	h.mounts(t, h.Conf("client", settings), func() {
		stopName()
		stopName = r.NameNode()
		r.AwaitBlocks("/data/01")
	})
}
