package group

import (
	"context"
	"slices"
	"time"

	"rankfs/meta/state"
)

// senders are the nodes that may speak Raft to this one: those that vote. Raft believes
// all that speak it. The log says in whose name a command is, and the leader is given the
// authority's key; a node without a vote must have neither.
//
// A node that was away may not know yet that another has a vote now. It asks the others
// who leads: that one has been elected. Those that vote, as far as this node knows, are
// believed, and else the most of those that answer.
type senders struct {
	config        *Config
	prober        *prober
	directory     *directory
	configuration *configuration
	begun         chan struct{}      // closed when Raft runs, or will not
	asking        chan struct{}      // one: the others are asked
	ended         context.Context    // when Raft is to run no more
	end           context.CancelFunc // ends it
}

func newSenders(c *Config, l *prober, d *directory) *senders {
	s := &senders{config: c, prober: l, directory: d, begun: make(chan struct{}), asking: make(chan struct{}, 1)}
	s.ended, s.end = context.WithCancel(context.Background())
	return s
}

// begin has senders know Raft's configuration from now on; nil if there is no Raft.
func (s *senders) begin(c *configuration) {
	s.configuration = c
	close(s.begun)
}

// admit reports whether a node may speak Raft to this one.
func (s *senders) admit(id string) bool {
	select {
	case <-s.begun:
	case <-s.ended.Done():
	}
	if s.ended.Err() != nil || s.configuration == nil {
		return false
	}
	servers := s.configuration.servers()
	if len(servers) == 0 || isVoter(servers[id]) || s.config.Machine.Version() < state.Signed {
		return true // of a cluster that it knows nothing of, it believes the first that calls
	}
	select {
	case s.asking <- struct{}{}:
	default:
		return false // it will try again
	}
	if s.leads(id) {
		<-s.asking
		return true
	}
	s.config.Log.Warn("a node that has no vote spoke Raft, and was not listened to: nor does it lead, as the others say", "node", id)
	time.AfterFunc(s.config.times.tick, func() { <-s.asking })
	return false
}

// leads asks the other nodes whether one leads.
func (s *senders) leads(id string) bool {
	ctx, cancel := context.WithTimeout(s.ended, s.config.times.look)
	defer cancel()
	voters, others := s.configuration.voters(), s.others(id)
	answers := make(chan string, len(others))
	for _, other := range others {
		go func() {
			p, err := s.prober.at(ctx, other)
			switch {
			case err != nil:
				answers <- "none"
			case p.Leader != id:
				answers <- "no"
			case slices.Contains(voters, other):
				answers <- "yes, and it votes"
			default:
				answers <- "yes"
			}
		}()
	}
	count := make(map[string]int)
	for range others {
		a := <-answers
		if a == "yes, and it votes" {
			return true
		}
		count[a]++
	}
	return count["yes"] > count["no"]
}

// others are the nodes that this one knows, but for one and itself.
func (s *senders) others(id string) (all []string) {
	for _, a := range s.directory.list() {
		all = append(all, a.ID)
	}
	for _, n := range s.config.Machine.Nodes() {
		all = append(all, n.ID)
	}
	slices.Sort(all)
	all = slices.DeleteFunc(slices.Compact(all), func(o string) bool { return o == id || o == s.config.Self.ID })
	return all[:min(len(all), maxLooks)]
}
