package group

import (
	"math/bits"

	"github.com/anishathalye/porcupine"

	"rankfs/meta/state"
)

// The model of each key is small and by itself.
var model = porcupine.Model{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		byKey := make(map[string][]porcupine.Operation)
		for _, o := range history {
			a := o.Input.(asked)
			kind := map[string]string{"claims": "claim", "drop": "token", "redeem": "token", "leave": "step", "begin": "step", "death": "step", "lose": "commit", "committed": "commit"}[a.kind]
			if kind == "" {
				kind = a.kind
			}
			byKey[kind+a.key] = append(byKey[kind+a.key], o)
		}
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any {
		var s thing
		for i := range s.held {
			s.held[i] = -1
		}
		return s
	},
	Step: func(s, in, out any) (bool, any) {
		next, answer := s.(thing).do(in.(asked))
		got := out.(seen)
		return got.unknown || got == answer, next
	},
}

// A thing is what one key is about: a claim and the one before, a plan, a token, a
// map, or a queue. Comparable, as porcupine likes it.
type thing struct {
	now, last string
	dropped   bool
	redeemed  [workers * guests]bool
	done      [units]bool
	held      [slots]int64
	left      [slots]bool
	back      [units]uint32 // the workers that gave it back, a bit each
}

func (s thing) do(a asked) (thing, seen) {
	switch a.kind {
	case "claim":
		if s.now != a.value {
			s.now, s.last = a.value, s.now
		}
		return s, seen{value: s.last}
	case "claims":
		return s, seen{value: s.now}
	case "settle":
		if s.now == "" {
			s.now = a.value
		}
		return s, seen{value: s.now}
	case "token":
		if s.now == "" {
			s.now = a.value
		}
		return s, yes(s.now == a.value)
	case "drop":
		s.dropped = s.now != ""
		return s, yes(s.dropped)
	case "redeem":
		return s.redeem(a.worker)
	case "commit":
		return s.commit(a.value)
	case "lose":
		s.dropped = s.dropped || s.now == a.value
		return s, seen{}
	case "committed":
		if s.dropped {
			return s, seen{value: "lost"}
		}
		return s, seen{value: s.now}
	case "leave":
		s.giveBack(a.worker)
		s.left[a.worker] = true
		return s, seen{}
	case "begin", "death":
		for slot := a.worker; slot < slots; slot += int(a.take) {
			s.giveBack(slot)
		}
		return s, seen{}
	}
	return s.step(a)
}

// redeem lets a guest in who is not in yet, as often as the token says.
func (s thing) redeem(guest int) (thing, seen) {
	left := 0
	if s.now != "" && !s.dropped {
		left = int(s.now[0] - '0')
	}
	for _, used := range s.redeemed {
		if used {
			left--
		}
	}
	if s.redeemed[guest] || left > 0 {
		s.redeemed[guest] = true
	}
	return s, yes(s.redeemed[guest])
}

// commit enters the first attempt of a map. One that was lost is healed by the same bytes
// alone.
func (s thing) commit(sum string) (thing, seen) {
	switch {
	case s.now == "":
		s.now = sum
	case s.dropped && s.now != sum:
		return s, seen{value: "unequal"}
	}
	s.dropped = false
	return s, seen{value: s.now}
}

func yes(is bool) seen {
	if is {
		return seen{value: "yes"}
	}
	return seen{value: "no"}
}

// giveBack takes from a worker what it holds. A unit that too many give back goes to no worker any more.
func (s *thing) giveBack(slot int) {
	unit := s.held[slot]
	s.held[slot] = -1
	if unit >= 0 && !s.done[unit] && !s.aside(unit) {
		s.back[unit] |= 1 << slot
	}
}

func (s *thing) aside(unit int64) bool { return bits.OnesCount32(s.back[unit]) >= state.MaxReturns }

func (s thing) step(a asked) (thing, seen) {
	if s.left[a.worker] {
		return s, seen{value: "left"}
	}
	r := state.TakenUnit{Unit: -1, Finished: -1}
	if a.finish {
		r.Finished, r.Finish = s.held[a.worker], state.Finished
		switch {
		case r.Finished < 0:
			r.Finish = state.Returned
		case s.done[r.Finished]:
			r.Finish = state.Lost
		default:
			s.done[r.Finished], s.back[r.Finished] = true, 0
		}
		s.held[a.worker] = -1
	}
	holders := 0
	for _, unit := range s.held {
		if unit == a.take {
			holders++
		}
	}
	switch {
	case a.take < 0:
	case s.done[a.take]:
		r.Refused = state.RefusedDone
	case holders >= 2:
		r.Refused = state.RefusedHeld
	case s.aside(a.take):
		r.Refused = state.RefusedAside
	default:
		r.Unit, s.held[a.worker] = a.take, a.take
	}
	return s, seen{step: r}
}
