package stall

import "time"

// An Open is one open of a batch, from its begin to its end. It is used by one
// goroutine. A nil one accounts for nothing.
type Open struct {
	table  *Table
	job    string
	rank   uint64
	Of     int64 // tells jobs of one name apart: when its dataset was registered, zero if that is not known
	Thread int32 // that opens; zero: not known
	begin  time.Time
	waited bool
	wait   time.Duration
	waiter *waiter
}

// Open begins an open. That costs a look at the clock.
func (t *Table) Open(job string, rank uint64) Open {
	return Open{table: t, job: job, rank: rank, begin: t.now()}
}

// By is the thread that opens, zero if that is not known.
func (o *Open) By() int32 {
	if o == nil {
		return 0
	}
	return o.Thread
}

// Wait says that the open waits from now on, until Resume.
func (o *Open) Wait(w Wait) {
	if o == nil {
		return
	}
	t := o.table
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	j := t.job(jobKey{o.job, o.Of}, now)
	r := t.rank(j, o.rank)
	j.reach(r, w.begin)
	o.waited, o.waiter = true, &waiter{wait: w, rank: r}
	j.insert(o.waiter)
	j.waiting++
	if r != nil {
		r.waiting++
	}
	j.sample(now)
}

// Resume ends the wait, and charges it to its causes, s.
func (o *Open) Resume(s ByCause) {
	if o == nil || o.waiter == nil {
		return
	}
	t := o.table
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	j := t.mu.jobs[jobKey{o.job, o.Of}] // a job that waits is not forgotten
	r := o.waiter.rank
	j.remove(o.waiter)
	o.waiter = nil
	o.wait += s.Sum()
	j.waiting--
	j.totals.Wait = j.totals.Wait.Add(s)
	if r != nil {
		j.reach(r, now)
		r.waiting--
		r.totals.Wait = r.totals.Wait.Add(s)
	}
	j.sample(now)
}

// For says that the open waits for one cause from now on, until End.
func (o *Open) For(c Cause) Wait {
	if o == nil {
		return Wait{}
	}
	w := o.table.Clock(c).Wait(o.table.now())
	o.Wait(w)
	return w
}

// End ends the wait that For began.
func (o *Open) End(w Wait) {
	if o != nil {
		o.Resume(w.ByCause())
	}
}

// Done ends the open, of a batch of so many bytes.
func (o *Open) Done(bytes int64, err error) {
	t, now := o.table, o.begin // one that was ready has taken no time
	if o.waited {
		now = t.now()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	j := t.job(jobKey{o.job, o.Of}, now)
	r := t.rank(j, o.rank)
	j.reach(r, now)
	if o.waited {
		j.spans.add(o.wait)
	}
	j.totals.count(o.waited, bytes, err)
	if r != nil {
		r.totals.count(o.waited, bytes, err)
	}
	j.sample(now)
}

// sample keeps the totals, if it is time to.
func (j *job) sample(now time.Time) {
	if j.samples.due(now) {
		j.samples.add(now, j.now(now))
	}
}
