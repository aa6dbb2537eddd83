package secure_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rankfs/fetch/hdfs/datanode"
	"rankfs/fetch/hdfs/namenode"
	"rankfs/fetch/hdfs/shortcircuit"
	"rankfs/test/secure"
	"rankfs/test/sourcetest"
)

// Where data is encrypted, a client goes by what the namenode says, and asks
// again for what has ended or is known no more.
func TestEncryption(t *testing.T) {
	sockets := socketsFor(t)
	settings := sockets.and(secure.Settings{
		encrypts: "true", suites: aes,
		"dfs.block.access.token.lifetime":      "1", // minutes
		"dfs.block.access.key.update.interval": "1",
	})
	r := secure.New(t)
	r.Configure(settings)
	stopName, stopData := r.NameNode(), r.DataNode()
	h := fill(r)
	rows := []struct {
		name string
		conf secure.Settings
	}{
		{"as the namenode says", nil},
		{"as configured", secure.Settings{encrypts: "true"}},
		{"whatever else is configured", secure.Settings{protects: "authentication"}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if err := h.read(t, h.dataset(t, h.Conf("client", row.conf))); err != nil {
				t.Error(err)
			}
		})
	}

	nearConf := h.Conf("near", sockets.Settings)
	byFile := func(t *testing.T) { h.near(t, nearConf)(t) }
	t.Run("by file", byFile)

	conf := h.Conf("client", nil)
	d := h.dataset(t, conf)
	old := h.connect(t, conf)
	again := func(t *testing.T) { h.again(t, d, old) }
	if err := old.read(t); err != nil || h.read(t, d) != nil {
		t.Fatal(err)
	}
	stopName()
	stopData()
	r.Configure(settings)
	r.NameNode()
	stopData = r.DataNode()
	r.AwaitBlocks("/data/01")
	t.Run("started anew", again)
	t.Run("by file, started anew", byFile)

	d, old = h.dataset(t, conf), h.connect(t, conf)
	readNear := h.near(t, nearConf)
	readNear(t)
	if err := h.read(t, d); err != nil {
		t.Fatal(err)
	}
	_, until, err := old.names.EncryptionKey(t.Context())
	if err != nil || time.Until(until) > 2*time.Minute {
		t.Fatalf("the key ends at %v: %v", until, err)
	}
	ranks := h.readNear(t, nearConf)
	ranks.byFile("with the first tokens")
	if last := time.Now().Add(time.Minute); until.Before(last) {
		until = last
	}
	h.touchUntil(t, until.Add(time.Second))
	ranks.byFile("when those have ended")
	ranks.end()
	t.Run("ended", again)
	t.Run("by file, ended", func(t *testing.T) {
		h.touchBlocks(t)
		files := shortcircuit.New(shortcircuit.Config{Path: sockets.Settings[socketPath]})
		defer files.Close()
		if err := old.readBy(t, files); !errors.Is(err, datanode.ErrNoReplica) {
			t.Errorf("with an old token: %v", err)
		}
		if s := files.Snapshot(); s.Files != 0 || s.Cause != "" {
			t.Errorf("an old token leaves %d blocks open, and says of the socket: %s", s.Files, s.Cause)
		}
		readNear(t)
	})

	stopData()
	delete(settings, suites)
	r.Configure(settings)
	r.DataNode()
	r.AwaitBlocks("/data/01")
	t.Run("without AES", func(t *testing.T) {
		if err := h.read(t, h.dataset(t, conf)); err != nil {
			t.Error(err)
		}
	})
}

// again reads with what was good before, which d knows to replace, and a bare
// reader of blocks does not.
func (h hdfsWith) again(t *testing.T, d sourcetest.Dataset, old held) {
	if err := old.read(t); !errors.Is(err, datanode.ErrNoReplica) {
		t.Errorf("with an old token: %v", err)
	}
	if err := h.read(t, d); err != nil {
		t.Error(err)
	}
}

// touchBlocks has the files of all blocks be other than they were when they were
// passed.
func (h hdfsWith) touchBlocks(t *testing.T) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(h.Path("tmp"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(e.Name(), "blk_") {
			n++
			err = os.Chmod(path, 0o644)
		}
		return err
	})
	if err != nil || n == 0 {
		t.Fatalf("%d files of blocks: %v", n, err)
	}
}

// A held block is what was located a while ago, with its token.
type held struct {
	names *namenode.Client
	block namenode.Block
}

func (h hdfsWith) connect(t *testing.T, conf string) held {
	t.Helper()
	config, err := namenode.FromConf(conf, h.Address())
	if err != nil {
		t.Fatal(err)
	}
	config.Kerberos.Keytab, config.Kerberos.Principal, config.Kerberos.Conf = h.Path("alice.keytab"), "alice", h.Path("krb5.conf")
	names, err := namenode.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { names.Close() })
	located, err := names.Locate(t.Context(), "/data/05", 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	return held{names, located.Blocks[0]}
}

// read reads the block with a new key but with its old token.
func (o held) read(t *testing.T) error { return o.readBy(t, nil) }

// readBy does so by the block's files, if it is given them.
func (o held) readBy(t *testing.T, files *shortcircuit.Client) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := datanode.New(datanode.Config{
		Host: "localhost", Files: files,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Guard: func(ctx context.Context) (datanode.Guard, error) {
			key, _, err := o.names.EncryptionKey(ctx)
			return datanode.Guard{Allowed: []string{"privacy"}, Key: key}, err
		},
	})
	s := c.Open(ctx, o.block, 0, o.block.Size)
	defer s.Close()
	_, err := io.Copy(io.Discard, s)
	return err
}
