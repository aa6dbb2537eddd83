package hdfs

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"rankfs/fetch/hdfs/namenode"
	"rankfs/fetch/splits"
	"rankfs/meta"
)

// Find looks through a split of a file for the index that another node makes. It is a
// splits.Look.
//
// It reads what this node could read for a dataset that the other one registers, and no
// more: of an HDFS that this node's configuration names, or a dataset is in already, and
// only for a node that reads it as the same user.
func (c *Clusters) Find(ctx context.Context, what []byte, w *splits.Findings) error {
	var q request
	if err := json.Unmarshal(what, &q); err != nil {
		return fmt.Errorf("split %w: %w", meta.ErrInvalid, err)
	}
	size, err := sizeIn(q.Stamp)
	if err != nil || q.From < 0 || q.From >= q.To || q.To > size || q.To-q.From > maxSplit || !strings.HasPrefix(q.Path, "/") {
		return fmt.Errorf("split %d to %d of %q, %q, %w", q.From, q.To, q.Path, q.Stamp, meta.ErrInvalid)
	}
	f, err := formOf(q.Form)
	if err != nil || f.find == nil {
		return fmt.Errorf("split %w: there is nothing to find in files of the form %q", meta.ErrInvalid, q.Form)
	}
	k, err := c.configured(q.Authority)
	if err != nil {
		return err
	}
	if k.user == "" || k.user != q.As {
		return meta.Worded(meta.ErrDenied, "this node reads HDFS as %q, and the one that asks as %q: it may not see the same files", k.user, q.As)
	}
	s := &scan{source: &Source{clusters: c, cluster: k, path: q.Path, form: f}, files: []file{{q.Path, namenode.Status{Size: size}}}}
	if err := f.find(ctx, s, split{from: q.From, to: q.To}, w); err != nil {
		return err
	}
	return s.source.is(ctx, q.Stamp)
}

// is reports whether the file of the source's path is of that version now. What was read
// of it before is of that version then: no other has the same stamp later.
func (s *Source) is(ctx context.Context, stamp string) error {
	st, err := s.cluster.names.Stat(ctx, s.path)
	if err != nil {
		return s.gone(err)
	}
	if now := (file{s.path, st}).stamp(); st.Dir || now != stamp {
		return stale(s.path, "it is "+now+" and was "+stamp)
	}
	return nil
}
