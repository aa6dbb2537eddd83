package stall

import "time"

// NewClock is a clock whose bytes no table adds up.
func NewClock(now func() time.Time, c Cause) *Clock { return newClock(now, nil, c) }

// Share is the part of the ranks' time that was waiting.
func (t Totals) Share() float64 {
	if t.Time <= 0 {
		return 0
	}
	return float64(t.Stalled) / float64(t.Time)
}

// Rate is the bytes of a second in which anything flowed.
func (f Flow) Rate() float64 {
	if f.Busy <= 0 {
		return 0
	}
	return float64(f.Bytes) / f.Busy.Seconds()
}
