package fair

import "math"

// memory is for how many seconds an account remembers: long enough for what an
// epoch's parts have in common, short enough that who had to wait once is not owed
// for ever.
const memory = 10

// An Account says of a job what it waits, and what it would wait with 1/n of
// memory, source and workers for itself. That is reckoned from counts: nobody keeps
// what such a memory would hold, only what share of the opens it would serve. All
// is in seconds, and what is long ago counts less and less.
type Account struct {
	at       float64 // up to here all has faded
	passed   float64 // from one open of a rank to its next, of all ranks
	foreseen float64 // opens that would have been made ready ahead
	sudden   float64 // opens that nobody could foresee; both of what a 1/n of memory lacks
	opens    float64
	want     float64 // bytes that it reads over and over
	waited   float64
	queued   float64 // part of it, for a worker
	fill     float64 // that one fill takes
	late     float64 // the share of fills that somebody waited for
	fills    int
}

// A Share is what a job would have for itself.
type Share struct {
	Jobs    int // n
	Workers int // of all
	Ranks   int // of the job
}

func (a *Account) fade(now float64) {
	if now <= a.at {
		return
	}
	left := math.Exp((a.at - now) / memory)
	a.passed, a.waited, a.queued, a.opens = a.passed*left, a.waited*left, a.queued*left, a.opens*left
	a.foreseen, a.sudden = a.foreseen*left, a.sudden*left
	a.at = now
}

// Open notes an open, so long after the rank's last one, of one of so many bytes
// that the job reads over and over, or +Inf, of which its 1/n of memory has room for
// so many. It would keep the same of them all the time, alone.
func (a *Account) Open(now, passed, want, room float64, foreseen bool) {
	a.fade(now)
	a.passed += passed
	a.opens++
	a.want = want
	lacks := max(0, 1-room/want)
	if foreseen {
		a.foreseen += lacks
	} else {
		a.sudden += lacks
	}
}

// Wait notes for how long an open waited.
func (a *Account) Wait(now, seconds float64) {
	a.fade(now)
	a.waited += seconds
}

// Queue notes for how long an open waited until a worker was free.
func (a *Account) Queue(now, seconds float64) {
	a.fade(now)
	a.queued += seconds
}

// Queues reports whether that is much of what the job waits.
func (a *Account) Queues() bool { return a.queued > 0.05*a.waited }

const (
	// meanFills is over how many fills their means go.
	meanFills = 32

	// lateShare of a job's fills have somebody wait: then it waits for what it
	// lacks. It is more than the begin of an epoch or a slow moment make.
	lateShare = 0.25
)

// Fill notes what a fill took, and whether somebody waited for it.
func (a *Account) Fill(took float64, waited bool) {
	a.fills = min(a.fills+1, meanFills)
	late := 0.0
	if waited {
		late = 1
	}
	a.fill += (took - a.fill) / float64(a.fills)
	a.late += (late - a.late) / float64(a.fills)
}

// Gain is how much less the job waits in a second with a byte more, if it is late.
func (a *Account) Gain(ranks int) float64 {
	if a.passed <= 0 {
		return 0
	}
	return a.opens / a.passed * float64(ranks) * a.fill / a.want
}

// Late reports whether the job waits for what it lacks.
func (a *Account) Late() bool { return a.late > lateShare }

// Owed reports whether the job waits more than it would alone.
func (a *Account) Owed(s Share) bool {
	return s.Jobs > 1 && a.waited > a.Alone(s)+trifle*a.passed
}

// trifle is the share of its time that a job may wait and not be said to wait.
const trifle = 0.002

// Alone is what the job would wait with its share for itself, at least. What nobody
// can foresee is waited for while it is made. What can be is ready in time, unless
// the workers need longer for it than the ranks for what they do with it.
func (a *Account) Alone(s Share) float64 {
	slower := float64(s.Jobs) / float64(s.Workers)
	sudden := a.sudden * a.fill * max(1, slower)
	work := (a.foreseen + a.sudden) * a.fill * slower
	return max(sudden, work*float64(s.Ranks)-(a.passed-a.waited))
}
