package hdfs

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"rankfs/fetch/index"
	"rankfs/meta"
)

// Divide has Scan ask other nodes to look through splits of files. The index that it
// makes is the same, whichever of them do, or none.
func (s *Source) Divide(among []index.Helper) { s.helpers = among }

const (
	asked     = 2                // splits that a node is asked for at a time: half of the connections to it
	restTime  = 10 * time.Second // of a node that did not read a split
	maxFinder = 32 << 20         // bytes of findings that are kept for another node
)

// A request says what a node is to find for another. The result is a function of
// it alone: the same bytes of the same version of a file, looked through in the same way.
type request struct {
	Authority string `json:"authority"`
	As        string `json:"as"` // the user that the asking node reads as
	Form      string `json:"form"`
	Path      string `json:"path"`
	Stamp     string `json:"stamp"` // the version of the file
	From      int64  `json:"from"`
	To        int64  `json:"to"`
}

func (s *scan) request(p split) request {
	f := s.files[p.file]
	return request{
		Authority: s.source.authority, As: s.source.cluster.user, Form: s.source.form.name,
		Path: f.path, Stamp: f.stamp(), From: p.from, To: p.to,
	}
}

// haveRead has another node read splits, until ctx is done or it turns out that this node
// cannot. After a failure that may pass it is left alone for a while.
func (s *scan) haveRead(ctx context.Context, d *division, node index.Helper) {
	for {
		asked, p, ok := d.lend(ctx, node.Host)
		if !ok {
			return
		}
		what, err := json.Marshal(s.request(p))
		var found *findings
		if err == nil {
			found, err = s.find(p, func(w *findings) error { return node.Find(asked, what, w.out) },
				func(f *findings) error { return s.source.form.check(p, s.files[p.file].Size, f) })
		}
		if err == nil {
			d.put(p, result{found, nil})
			continue
		}
		slow := asked.Err() != nil
		d.giveBack(p)
		if ctx.Err() != nil {
			return
		}
		s.source.clusters.config.Log.Info("another node did not read a split of a file: it is read here",
			"host", node.Host, "file", s.files[p.file].path, "split", p, "slow", slow, "cause", err)
		if !slow && !errors.Is(err, meta.ErrBusy) && !errors.Is(err, meta.ErrUnavailable) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(restTime):
		}
	}
}
