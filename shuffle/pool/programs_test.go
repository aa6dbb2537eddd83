package pool_test

// What programs do on a member of a site: they make stages, write attempts, commit them, and
// read parts.

import (
	"encoding/binary"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"rankfs/meta"
	"rankfs/shuffle/pool"
)

// stage makes a stage with a spec, in the job j.
func (m *member) stage(name, spec string) *pool.Stage {
	t := m.site.t
	t.Helper()
	j, err := m.Job(m.site.ctx, "j")
	if err != nil {
		j, err = m.MakeJob(m.site.ctx, "j", 7, 7, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	g, err := j.MakeStage(m.site.ctx, name)
	if err == nil {
		err = g.Specify(m.site.ctx, spec)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// of is a stage as the pool of a node has it.
func (m *member) of(name string) *pool.Stage {
	m.site.t.Helper()
	j, err := m.Job(m.site.ctx, "j")
	if err != nil {
		m.site.t.Fatal(err)
	}
	g, err := j.Stage(m.site.ctx, name)
	if err != nil {
		m.site.t.Fatal(err)
	}
	return g
}

// root has the files that a node has of the job j.
func (m *member) root() *os.Root {
	m.site.t.Helper()
	j, err := m.Job(m.site.ctx, "j")
	if err != nil {
		m.site.t.Fatal(err)
	}
	root, err := j.Files()
	if err != nil {
		m.site.t.Fatal(err)
	}
	return root
}

// attempts is where map tasks on a node write, on the disk of the test.
func (m *member) attempts(stage string) string {
	m.site.t.Helper()
	root := m.root()
	dir, err := m.of(stage).Attempts().Dir()
	if err != nil {
		m.site.t.Fatal(err)
	}
	return path.Join(root.Name(), dir)
}

// left are the files of attempts that a node has.
func (m *member) left(stage string) (names []string) {
	m.site.t.Helper()
	entries, err := os.ReadDir(m.attempts(stage))
	if err != nil {
		m.site.t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// offsetsOf are where pieces begin, and where the last ends.
func offsetsOf(pieces ...string) []byte {
	b, at := make([]byte, 8), 0
	for _, p := range pieces {
		at += len(p)
		b = binary.LittleEndian.AppendUint64(b, uint64(at))
	}
	return b
}

func (m *member) lay(stage, name string, b []byte) {
	m.site.t.Helper()
	dir := m.attempts(stage)
	j, err := m.Job(m.site.ctx, "j")
	if err != nil {
		m.site.t.Fatal(err)
	}
	defer j.Write()()
	if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
		m.site.t.Error(err)
	}
}

// write writes an attempt, in pieces.
func (m *member) write(stage string, a meta.Attempt, pieces ...string) {
	m.site.t.Helper()
	m.lay(stage, a.String(), []byte(strings.Join(pieces, "")))
	m.lay(stage, a.String()+".idx", offsetsOf(pieces...))
}

// commit writes an attempt and commits it.
func (m *member) commit(stage string, number, attempt uint64, pieces ...string) {
	m.site.t.Helper()
	a := meta.Attempt{Map: number, Number: attempt}
	m.write(stage, a, pieces...)
	if err := m.of(stage).Attempts().Commit(m.site.ctx, a, false); err != nil {
		m.site.t.Fatalf("commit %s on node %s: %v", a, m.id, err)
	}
}

// part is what a node reads of a part.
func (m *member) part(stage string, p meta.Part) (string, error) {
	f, err := m.of(stage).Parts().Open(m.site.ctx, 0, p, false)
	return text(f, err)
}

func text(f pool.File, err error) (string, error) {
	if err != nil {
		return "", err
	}
	defer f.Release()
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<40))
	return string(b), err
}
