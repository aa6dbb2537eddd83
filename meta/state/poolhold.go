package state

import (
	"fmt"
	"slices"
)

// What datasets are made of in the shuffle pool stays while they are there: jobs that are
// not used, too.

// madeOfStage are the datasets that are made of a stage of which of is true, in order.
func (t *datasets) madeOfStage(of func(number uint64) bool) (names []string) {
	for name, d := range t.m {
		if d.Stage > 0 && of(d.Stage) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// madeOfJob are the datasets that are made of a stage of a job, in order.
func (s *state) madeOfJob(job string) []string {
	return s.datasets().madeOfStage(func(number uint64) bool {
		name, ok := s.pool().names.get(number)
		return ok && name.Job == job
	})
}

// madeOfJobs are the datasets made of all jobs, by the names of these.
func (s *state) madeOfJobs() map[string][]string {
	all := make(map[string][]string)
	for _, dataset := range s.datasets().madeOfStage(func(uint64) bool { return true }) {
		d, _ := s.datasets().get(dataset)
		if name, ok := s.pool().names.get(d.Stage); ok {
			all[name.Job] = append(all[name.Job], dataset)
		}
	}
	return all
}

// stageInUse refuses to remove something of a stage of which datasets are made.
func (s *state) stageInUse(what string, g PoolStage) error {
	return inUse(what, s.datasets().madeOfStage(func(number uint64) bool { return number == g.Number }))
}

// datasetGone has the job of which a dataset was made live from now on as if it was used
// until now.
func (p *pool) datasetGone(s *state, d *Dataset) {
	name, ok := p.names.get(d.Stage)
	if !ok {
		return
	}
	if j, ok := p.jobs.get(name.Job); ok && len(j.Users) == 0 {
		j.Used = s.Now
		p.put(j)
	}
}

// whole refuses datasets that are made of a stage that is not there.
func (t *datasets) whole(s *state) error {
	made := t.madeOfStage(func(number uint64) bool {
		_, ok := s.pool().names.get(number)
		return !ok
	})
	if len(made) == 0 {
		return nil
	}
	return fmt.Errorf("dataset %q is made of a stage that is not there", shorten(made[0]))
}
