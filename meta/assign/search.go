package assign

// search is the memory of Dinic's algorithm over a graph.
type search struct {
	groupLevel, groupNext []int32 // level: distance from a group with positions left, or -1
	targetLevel           []int32 // next: the first arc that may still lead on
	targetNext, rackNext  []int32
	queue                 []int32 // groups, and ^t for targets t
	found                 int32   // the level of the nearest nodes with room

	// Results of raise, for the second phase.
	groupHigh, targetHigh []bool
}

func (s *search) reset(groups, targets int) {
	s.groupLevel, s.groupNext = sized(s.groupLevel, groups), sized(s.groupNext, groups)
	s.targetLevel, s.targetNext = sized(s.targetLevel, targets), sized(s.targetNext, targets)
	s.rackNext = sized(s.rackNext, targets)
	s.groupHigh, s.targetHigh = sized(s.groupHigh, groups), sized(s.targetHigh, targets)
	clear(s.groupHigh)
	clear(s.targetHigh)
}
