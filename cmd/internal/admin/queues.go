package admin

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/views"
	"rankfs/meta"
	"rankfs/meta/dispatch"
	"rankfs/meta/queue"
	"rankfs/meta/state"
)

// queues says how far queues are, and begins them again or drops them.
type queues struct {
	state    *state.Machine
	views    *views.Views
	commands Commands
	rights   rights
	log      *slog.Logger
}

// Queues says how far each queue is, the latest last.
func (n *queues) Queues() []control.Queue {
	all := []control.Queue{}
	for _, q := range latest(n.state) {
		all = append(all, n.describeQueue(q))
	}
	return all
}

// queued are the queues that the cluster has.
type queued interface{ Queues() []state.Queue }

// latest is all queues, the latest last.
func latest(m queued) []state.Queue {
	queues := m.Queues()
	slices.SortFunc(queues, func(a, b state.Queue) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return queues
}

func (n *queues) describeQueue(q state.Queue) control.Queue {
	held, aside := uint64(q.Held), uint64(q.Aside)
	return control.Queue{
		ViewName: control.NameOf(n.views.Called(q.View)), Policy: q.Policy, Batches: q.Units, Done: q.Done, Leased: held, SetAside: aside,
		Waiting: q.Units - min(q.Units, q.Done+held+aside), // of the last units two readers may have one, or it is done
		Readers: q.Readers, Resets: q.Resets, Opened: time.Unix(0, q.Opened).UTC(), UID: q.UID,
	}
}

// findQueue is the queue of the view with this name, full or short.
func (n *queues) findQueue(name string) (state.Queue, error) {
	if q, ok := n.state.Queue(name); ok {
		return q, nil
	}
	v, _, err := n.views.Resolve(name)
	if err != nil {
		return state.Queue{}, err
	}
	q, ok := n.state.Queue(v.String())
	if !ok {
		return q, fmt.Errorf("queue of %s %w: no rank has read it yet", name, meta.ErrNotExist)
	}
	return q, nil
}

// Queue says how far a queue is, and which readers work on it.
func (n *queues) Queue(name string) (control.QueueDetail, error) {
	q, err := n.findQueue(name)
	if err != nil {
		return control.QueueDetail{}, err
	}
	all, ok := n.state.QueueState(q.View)
	if !ok {
		return control.QueueDetail{}, meta.Worded(meta.ErrNotExist, "queue of %s does not exist any more", name)
	}
	d := control.QueueDetail{
		Queue: n.describeQueue(all.Queue), Nodes: workOf(n.state, all.Readers),
		Leases: leasesOf(n.state, q.View, all.Readers), AsideBatches: []control.AsideBatch{},
	}
	for _, s := range all.Suspects {
		list := &d.Tried
		if s.Aside() {
			list = &d.AsideBatches
		}
		if len(*list) < control.MaxListed {
			*list = append(*list, control.AsideBatch{Batch: dispatch.BatchOf(q.View, s.Unit), By: givers(n.state, s)})
		}
	}
	return d, nil
}

// workOf adds up what readers do on each host.
func workOf(m hosts, readers []state.Reader) []control.QueueNode {
	nodes := []control.QueueNode{}
	index := make(map[string]int)
	for _, w := range readers {
		host := m.HostOf(w.Node)
		i, ok := index[host]
		if !ok {
			if host == "" {
				continue // it left before it began
			}
			i = len(nodes)
			index[host] = i
			nodes = append(nodes, control.QueueNode{Host: host})
		}
		k := &nodes[i]
		k.Read += w.Units
		k.Seconds += time.Duration(w.Busy).Seconds()
		if !w.Left {
			k.Readers++
		}
		if w.Unit >= 0 {
			k.Leased++
		}
	}
	slices.SortFunc(nodes, func(a, b control.QueueNode) int { return cmp.Compare(a.Host, b.Host) })
	return nodes
}

// leases has the ranks and batches that each node holds, most batches first.
func (n *queues) leases() []control.Leases {
	all := []control.Leases{}
	for id, h := range n.state.Holds() {
		l := control.Leases{ID: id, Host: n.state.HostOf(id), Ranks: h.Ranks, Batches: h.Units}
		if h.Units > 0 {
			since := time.Unix(0, h.Since).UTC()
			l.Since = &since
		}
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b control.Leases) int {
		return cmp.Or(cmp.Compare(b.Batches, a.Batches), cmp.Compare(b.Ranks, a.Ranks), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// leasesOf are the leases of readers, the oldest first.
func leasesOf(m hosts, view string, readers []state.Reader) []control.Lease {
	leases := []control.Lease{}
	held := slices.DeleteFunc(slices.Clone(readers), func(w state.Reader) bool { return w.Unit < 0 })
	slices.SortStableFunc(held, func(a, b state.Reader) int { return cmp.Compare(a.Since, b.Since) })
	for _, w := range held[:min(len(held), control.MaxListed)] {
		leases = append(leases, control.Lease{
			Batch: dispatch.BatchOf(view, w.Unit), Rank: w.Rank, Host: m.HostOf(w.Node), Since: time.Unix(0, w.Since).UTC(),
		})
	}
	return leases
}

func givers(m hosts, s state.Suspect) (all []control.Giver) {
	for _, r := range s.By {
		all = append(all, control.Giver{
			Rank: r.Rank, Host: m.HostOf(r.Node), At: time.Unix(0, r.At).UTC(), Cause: string(r.Cause),
		})
	}
	return all
}

// ResetQueue begins a queue again, or only its batches that were set aside.
func (n *queues) ResetQueue(ctx context.Context, r control.ResetRequest) (control.Queue, error) {
	q, err := n.findQueue(r.Name)
	if err != nil {
		return control.Queue{}, err
	}
	if r.SetAside && q.Aside == 0 {
		return control.Queue{}, fmt.Errorf("reset queue of %s %w: no batch of it is set aside", r.Name, meta.ErrInvalid)
	}
	result, err := n.commands.Do(ctx, &state.ResetQueue{View: q.View, Resets: q.Resets, Aside: r.SetAside})
	if err != nil {
		return control.Queue{}, err
	}
	q = *result.Queue()
	n.log.Info("queue begun again", "queue", q.View, "resets", q.Resets, "set_aside", r.SetAside)
	return n.describeQueue(q), nil
}

// DropQueue forgets a queue, which begins anew if it is read again.
func (n *queues) DropQueue(ctx context.Context, name string) error {
	q, err := n.findQueue(name)
	if err != nil {
		return n.rights.orDenied(&state.DropQueue{}, err)
	}
	_, err = n.commands.Do(ctx, &state.DropQueue{View: q.View})
	if err == nil {
		n.log.Info("queue dropped", "queue", q.View, "done", q.Done, "batches", q.Units)
	}
	return err
}

// QueuePolicy is the policy by which queues that begin from now on hand out batches,
// after a change if r names another. A queue that has begun keeps its own, which is
// part of the state with which a new leader goes on.
func (n *queues) QueuePolicy(ctx context.Context, r control.PolicyRequest) (control.Policy, error) {
	answer := control.Policy{Name: dispatch.Policy(n.state), Names: queue.Policies()}
	if r.Name == "" {
		return answer, nil
	}
	p, err := queue.ParsePolicy(r.Name)
	if err != nil {
		return control.Policy{}, err
	}
	if _, err := n.commands.Do(ctx, &state.Setting{Key: dispatch.PolicySetting, Value: p.String()}); err != nil {
		return control.Policy{}, fmt.Errorf("set the policy of queues: %w", err)
	}
	n.log.Info("queues begin with another policy", "policy", p.String(), "before", answer.Name)
	answer.Name = p.String()
	return answer, nil
}

// asideWarnings are about queues of which something is set aside, the latest
// first.
func (n *queues) asideWarnings() (warnings []fault) {
	m := n.state
	for _, q := range slices.Backward(latest(m)) {
		if q.Aside == 0 {
			continue
		}
		if len(warnings) == maxWarned {
			return append(warnings, fault{"queue", "", "batches of more queues are set aside; see: rankfs queue ls"})
		}
		name, _ := n.views.Called(q.View)
		warnings = append(warnings, fault{"queue", q.View,
			fmt.Sprintf("queue of %s: set aside was %s; see: rankfs queue show %[1]s", name, dispatch.FirstSetAside(m, q.View))})
	}
	return warnings
}
