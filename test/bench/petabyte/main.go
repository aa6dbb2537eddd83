// Petabyte gives a node that was founded, and whose daemon has ended, a dataset
// of a petabyte that does not exist.
//
// It is the index of 8,388,608 chunks of 128 MiB, each on three of a thousand hosts,
// registered in the node's log as the daemon would, with a job of 1,024 ranks and plans
// of its epochs.
//
//	petabyte STATE
//
// It says how long the state of the cluster takes to be written to a snapshot
// and to be read from it.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"rankfs/fetch/index"
	"rankfs/meta/group"
	"rankfs/meta/state"
	"rankfs/meta/trust"
)

const (
	chunks     = 8 << 20
	chunkBytes = 128 << 20
	perFile    = 512 // chunks
	hosts      = 1000
	ranks      = 1024
	epochs     = 256
	source     = "hdfs://127.0.0.1:1/petabyte?as=chunks"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: petabyte STATE")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "petabyte:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir string) (err error) {
	begin := time.Now()
	hash, size, err := makeIndex(filepath.Join(dir, "indexes"))
	if err != nil {
		return err
	}
	built := time.Since(begin)
	machine := state.Speaking(state.Version)
	g, leave, err := enter(ctx, dir, machine)
	if err != nil {
		return err
	}
	err = register(ctx, g, hash, size)
	if err := errors.Join(err, leave()); err != nil {
		return err
	}
	wrote, read, bytes, err := snapshot(machine, filepath.Join(dir, "petabyte.snapshot"))
	if err == nil {
		fmt.Printf("petabyte chunks=%d index_MiB=%d build=%.1f snapshot=%.4f restore=%.4f snapshot_KiB=%d\n",
			chunks, size>>20, built.Seconds(), wrote.Seconds(), read.Seconds(), bytes>>10)
	}
	return err
}

// makeIndex writes the index under its hash.
func makeIndex(dir string) (hash string, size int64, err error) {
	path := filepath.Join(dir, "petabyte")
	b, err := index.Create(path)
	if err != nil {
		return "", 0, err
	}
	var file uint32
	names := make([]string, hosts)
	for i := range names {
		names[i] = fmt.Sprintf("dn%04d.example.com", i)
	}
	for c := range uint64(chunks) {
		if c%perFile == 0 {
			file = b.AddFile(index.File{Path: fmt.Sprintf("part-%05d", c/perFile), Size: perFile * chunkBytes})
		}
		h := c * 0x9e3779b97f4a7c15
		b.BeginChunk(names[h%hosts], names[h>>20%hosts], names[h>>40%hosts])
		if err := b.AddStride(file, int64(c%perFile)*chunkBytes, chunkBytes, 1); err != nil {
			b.Abort()
			return "", 0, err
		}
	}
	if err := b.Commit("petabyte"); err != nil {
		return "", 0, err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	sum := sha256.New()
	if size, err = io.Copy(sum, f); err != nil {
		return "", 0, err
	}
	hash = hex.EncodeToString(sum.Sum(nil))
	return hash, size, os.Rename(path, filepath.Join(dir, hash))
}

// enter is what a daemon does to be its node.
func enter(ctx context.Context, dir string, machine *state.Machine) (g *group.Group, leave func() error, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "node"))
	if err != nil {
		return nil, nil, fmt.Errorf("%w: have a daemon found the node first", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, nil, err
	}
	id, keys, log := strings.TrimSpace(string(text)), filepath.Join(dir, "trust"), slog.New(slog.DiscardHandler)
	identity, err := trust.OpenIdentity(keys, id, host)
	if err != nil {
		return nil, nil, err
	}
	authority, err := trust.OpenAuthority(keys)
	if err != nil {
		return nil, nil, err
	}
	port, err := trust.Open(ctx, trust.Config{
		Authority: authority, Identity: identity, Log: log, Allowed: func(string, string) bool { return true },
	})
	if err != nil {
		return nil, nil, err
	}
	g, err = group.Open(ctx, group.Config{
		Dir: filepath.Join(dir, "raft"), Self: state.Node{ID: id, Host: host, Addr: port.Addr().String()},
		Machine: machine, Port: port, Authority: authority, Identity: identity, Now: time.Now, Log: log,
	}, false)
	if err != nil {
		return nil, nil, errors.Join(err, port.Close())
	}
	leave = func() error { return errors.Join(g.Close(), port.Close()) }
	if err := g.Ready(ctx); err != nil {
		return nil, nil, errors.Join(err, leave())
	}
	return g, leave, nil
}

// register registers the dataset, claims the ranks of a job and settles its plans.
func register(ctx context.Context, g *group.Group, hash string, size int64) error {
	registration, err := json.Marshal(map[string]any{
		"name": "petabyte", "source": source, "by_chunk": true, "origin": g.Self(),
		"view":    fmt.Sprintf("epoch=0,ranks=%d,seed=0,order=full,batch=chunk,tail=keep,assign=local", ranks),
		"created": time.Now().UTC(), "indexed": time.Now().UTC(),
	})
	if err != nil {
		return err
	}
	r, err := g.Do(ctx, &state.PutDataset{Name: "petabyte", Registration: registration, Index: hash, IndexBytes: size})
	if err != nil {
		return err
	}
	for rank := range uint64(ranks) {
		if _, err := g.Do(ctx, &state.Claim{Dataset: "petabyte", Generation: r.Generation(), Ranks: ranks, Rank: rank, Node: g.Self()}); err != nil {
			return err
		}
	}
	for epoch := range epochs {
		view := fmt.Sprintf("petabyte@epoch=%d,ranks=%d,seed=0,order=full,step=chunk,tail=keep,assign=local", epoch+1, ranks)
		if _, err := g.Do(ctx, &state.Settle{View: view, Generation: r.Generation(), Nodes: state.Runs{{Node: g.Self(), Count: ranks}}}); err != nil {
			return err
		}
	}
	return nil
}

// snapshot writes the machine to a file on the disk, and reads it back.
func snapshot(m *state.Machine, path string) (wrote, read time.Duration, bytes int64, err error) {
	begin := time.Now()
	s, err := m.Snapshot()
	if err != nil {
		return 0, 0, 0, err
	}
	f, err := os.Create(path)
	if err != nil {
		return 0, 0, 0, err
	}
	defer f.Close()
	if bytes, err = s.WriteTo(f); err == nil {
		err = f.Sync()
	}
	if err != nil {
		return 0, 0, 0, err
	}
	wrote, begin = time.Since(begin), time.Now()
	if _, err = f.Seek(0, io.SeekStart); err == nil {
		err = state.Speaking(state.Version).Restore(f)
	}
	return wrote, time.Since(begin), bytes, err
}
