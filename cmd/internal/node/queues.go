package node

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"rankfs/cmd/internal/control"
	"rankfs/meta"
	"rankfs/meta/dispatch"
	"rankfs/meta/queue"
	"rankfs/meta/state"
)

// Queues says how far each queue is, the latest last.
func (n *Node) Queues() []control.Queue {
	all := []control.Queue{}
	for _, q := range latest(n.member.machine) {
		all = append(all, n.describeQueue(q))
	}
	return all
}

// latest is all queues, the latest last.
func latest(m *state.Machine) []state.Queue {
	queues := m.Queues()
	slices.SortFunc(queues, func(a, b state.Queue) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return queues
}

func (n *Node) describeQueue(q state.Queue) control.Queue {
	held, aside := uint64(q.Held), uint64(q.Aside)
	return control.Queue{
		View: n.called(q.View), Full: q.View, Policy: q.Policy, Batches: q.Units, Done: q.Done, Leased: held, Aside: aside,
		Waiting: q.Units - min(q.Units, q.Done+held+aside), // of the last units two readers may have one, or it is done
		Readers: q.Workers, Run: q.Run, Opened: time.Unix(0, q.Opened).UTC(),
	}
}

// called is the shortest name of a view, and the one that it has if its dataset is
// gone.
func (n *Node) called(view string) string {
	if v, d, err := n.resolve(view); err == nil {
		return shortest(v, d.Default)
	}
	return view
}

// shortest is the shortest name of a view of a dataset: without the options that
// are the dataset's own.
func shortest(v, own meta.View) string {
	_, all, _ := meta.SplitView(v.String())
	_, usual, _ := meta.SplitView(own.String())
	given := strings.Split(usual, ",")
	others := slices.DeleteFunc(strings.Split(all, ","), func(option string) bool { return slices.Contains(given, option) })
	if len(others) == 0 {
		return v.Dataset
	}
	return v.Dataset + "@" + strings.Join(others, ",")
}

// findQueue is the queue of a view that a person named.
func (n *Node) findQueue(name string) (state.Queue, error) {
	if q, ok := n.member.machine.Queue(name); ok {
		return q, nil
	}
	v, _, err := n.resolve(name)
	if err != nil {
		return state.Queue{}, err
	}
	q, ok := n.member.machine.Queue(v.String())
	if !ok {
		return q, fmt.Errorf("queue of %s %w: nobody has read it yet", name, meta.ErrNotExist)
	}
	return q, nil
}

// Queue says how far a queue is, and who works on it.
func (n *Node) Queue(name string) (control.QueueDetail, error) {
	q, err := n.findQueue(name)
	if err != nil {
		return control.QueueDetail{}, err
	}
	all, ok := n.member.machine.QueueState(q.View)
	if !ok {
		return control.QueueDetail{}, meta.Worded(meta.ErrNotExist, "queue of %s does not exist any more", name)
	}
	d := control.QueueDetail{
		Queue: n.describeQueue(all.Queue), Nodes: n.member.workOf(all.Workers),
		Leases: n.member.leases(q.View, all.Workers), SetAside: []control.AsideBatch{},
	}
	for _, s := range all.Suspects {
		list := &d.Tried
		if s.Aside() {
			list = &d.SetAside
		}
		if len(*list) < control.MostListed {
			*list = append(*list, control.AsideBatch{Batch: dispatch.BatchOf(q.View, s.Unit), By: n.member.givers(s)})
		}
	}
	return d, nil
}

// workOf adds up what workers do on each host.
func (m *member) workOf(workers []state.Worker) []control.QueueNode {
	nodes := []control.QueueNode{}
	index := make(map[string]int)
	for _, w := range workers {
		host := m.machine.HostOf(w.Node)
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

// leases are what workers have, the oldest first.
func (m *member) leases(view string, workers []state.Worker) []control.Lease {
	leases := []control.Lease{}
	held := slices.DeleteFunc(slices.Clone(workers), func(w state.Worker) bool { return w.Unit < 0 })
	slices.SortStableFunc(held, func(a, b state.Worker) int { return cmp.Compare(a.Since, b.Since) })
	for _, w := range held[:min(len(held), control.MostListed)] {
		leases = append(leases, control.Lease{
			Batch: dispatch.BatchOf(view, w.Unit), Rank: w.Rank, Host: m.machine.HostOf(w.Node), Since: time.Unix(0, w.Since).UTC(),
		})
	}
	return leases
}

func (m *member) givers(s state.Suspect) (all []control.Giver) {
	for _, r := range s.By {
		all = append(all, control.Giver{
			Rank: r.Rank, Host: m.machine.HostOf(r.Node), At: time.Unix(0, r.At).UTC(), Cause: string(r.Cause),
		})
	}
	return all
}

// ResetQueue begins a queue again, or what was set aside of it.
func (n *Node) ResetQueue(ctx context.Context, r control.ResetRequest) (control.Queue, error) {
	q, err := n.findQueue(r.Name)
	if err != nil {
		return control.Queue{}, err
	}
	if r.Aside && q.Aside == 0 {
		return control.Queue{}, fmt.Errorf("reset queue of %s %w: no batch of it is set aside", r.Name, meta.ErrInvalid)
	}
	result, err := n.member.group.Do(ctx, &state.ResetQueue{View: q.View, Run: q.Run, Aside: r.Aside})
	if err != nil {
		return control.Queue{}, err
	}
	n.config.Log.Info("queue begun again", "queue", q.View, "run", result.Queue.Run, "aside", r.Aside)
	return n.describeQueue(*result.Queue), nil
}

// QueuePolicy says by what rule queues that begin from now on hand out batches,
// having it changed first if a rule is named. What has begun keeps its own: it is
// part of what a new leader goes on with.
func (n *Node) QueuePolicy(ctx context.Context, r control.PolicyRequest) (control.Policy, error) {
	answer := control.Policy{Name: dispatch.Policy(n.member.machine), Names: queue.Policies()}
	if r.Name == "" {
		return answer, nil
	}
	p, err := queue.ParsePolicy(r.Name)
	if err != nil {
		return control.Policy{}, err
	}
	if _, err := n.member.group.Do(ctx, &state.Setting{Key: dispatch.PolicySetting, Value: p.String()}); err != nil {
		return control.Policy{}, fmt.Errorf("set the policy of queues: %w", err)
	}
	n.config.Log.Info("queues begin with another policy", "policy", p.String(), "before", answer.Name)
	answer.Name = p.String()
	return answer, nil
}

// mostWarned bounds the queues that status warns of.
const mostWarned = 8

// asideWarnings are about queues of which something is set aside, the latest
// first.
func (n *Node) asideWarnings() (warnings []string) {
	m := n.member
	for _, q := range slices.Backward(latest(m.machine)) {
		if q.Aside == 0 {
			continue
		}
		if len(warnings) == mostWarned {
			return append(warnings, "batches of more queues are set aside; see: rankfs queue ls")
		}
		name := n.called(q.View)
		warnings = append(warnings, fmt.Sprintf("queue of %s: set aside was %s; see: rankfs queue show %[1]s", name, dispatch.FirstSetAside(m.machine, q.View)))
	}
	return warnings
}
