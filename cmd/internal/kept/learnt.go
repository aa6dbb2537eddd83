package kept

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"rankfs/cache/trace"
	"rankfs/meta"
	"rankfs/meta/durable"
)

// LearntTraces are the traces that are kept for datasets, in this node's state directory,
// a file for each. Other nodes have their own: readers differ from node to node.
type learntTraces struct {
	dir                 string
	damaged             []error // why files were set aside by open
	*table[learntTrace]         // by dataset
}

// A learntTrace is the trace that is kept for a dataset.
type learntTrace struct {
	trace trace.Trace
	graph *trace.Graph
	when  time.Time
}

// maxLearnt bounds the files, and maxLearntFile each of them.
const (
	maxLearnt     = 256
	maxLearntFile = 1 << 20
	learntSuffix  = ".trace"
)

// open reads the traces that an earlier daemon kept. A damaged file is set aside.
func (l *learntTraces) open(state string) error {
	l.dir = filepath.Join(state, "traces")
	of := make(map[string]learntTrace)
	l.table = newTable(of)
	files, err := os.ReadDir(l.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("what was learnt: %w", err)
	}
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), learntSuffix)
		if !ok || meta.CheckName(name) != nil || len(of) == maxLearnt {
			continue
		}
		if err := l.read(name, of); err != nil {
			return fmt.Errorf("what was learnt: %w", err)
		}
	}
	return nil
}

func (l *learntTraces) path(dataset string) string { return filepath.Join(l.dir, dataset+learntSuffix) }

func (l *learntTraces) read(dataset string, into map[string]learntTrace) error {
	path := l.path(dataset)
	text, err := readBounded(path, maxLearntFile)
	if err != nil {
		return err
	}
	t, err := decodeLearnt(string(text))
	if err == nil {
		info, err := os.Stat(path)
		if err == nil {
			into[dataset] = learntTrace{t, t.Graph(), info.ModTime()}
		}
		return err
	}
	aside := strings.TrimSuffix(path, learntSuffix) + ".damaged"
	l.damaged = append(l.damaged, fmt.Errorf("what was learnt for %s is not known any more: %s %w: %w; learn it again with: rankfs trace learn",
		dataset, aside, meta.ErrCorrupt, err))
	return os.Rename(path, aside)
}

func encodeLearnt(t *trace.Trace) string {
	text := t.Text(false)
	return fmt.Sprintf("%ssum %016x\n", text, xxhash.Sum64String(text))
}

// decodeLearnt refuses what encodeLearnt would not write, or of which nothing can
// be learnt.
func decodeLearnt(text string) (t trace.Trace, err error) {
	body := text[:max(0, len(text)-len("sum 0123456789abcdef\n"))]
	if t, err = trace.Parse(body); err != nil {
		return t, err
	}
	switch {
	case encodeLearnt(&t) != text:
		return t, errors.New("it does not match its checksum")
	case t.Graph() == nil:
		return t, errors.New("nothing is in it")
	}
	return t, nil
}

func (l *learntTraces) keep(dataset string, t trace.Trace) error {
	return l.change(func(of map[string]learntTrace) error {
		if _, again := of[dataset]; !again && len(of) >= maxLearnt {
			return meta.Worded(meta.ErrNoSpace, "learn for %s: something is kept for %d datasets already; see: rankfs trace ls", dataset, maxLearnt)
		}
		if err := os.MkdirAll(l.dir, 0o700); err != nil {
			return fmt.Errorf("learn for %s: %w", dataset, err)
		}
		if err := l.write(l.path(dataset), []byte(encodeLearnt(&t)), 0o600); err != nil {
			return fmt.Errorf("learn for %s: %w", dataset, err)
		}
		of[dataset] = learntTrace{t, t.Graph(), time.Now()}
		return nil
	})
}

func (l *learntTraces) remove(dataset string) error {
	err := l.change(func(of map[string]learntTrace) error {
		if _, ok := of[dataset]; !ok {
			return fmt.Errorf("trace for %s %w; see: rankfs trace ls", dataset, meta.ErrNotExist)
		}
		if err := os.Remove(l.path(dataset)); err != nil {
			return fmt.Errorf("forget the trace for %s: %w", dataset, err)
		}
		delete(of, dataset)
		return nil
	})
	if err != nil {
		return err
	}
	return durable.SyncDir(l.dir)
}

// warnings are why traces were lost, if any were.
func (l *learntTraces) warnings() (all []string) {
	for _, err := range l.damaged {
		all = append(all, meta.Plain(err))
	}
	return all
}
