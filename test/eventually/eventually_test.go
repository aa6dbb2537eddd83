package eventually_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/test/eventually"
)

// What takes long to find out is asked a third of the time, and no more.
func TestLooksAreAThirdOfTheTime(t *testing.T) {
	for _, tt := range []struct {
		name      string
		each      time.Duration
		few, many int // in a minute
	}{
		{"at once", 0, 1000, 1300},
		{"a second", time.Second, 20, 21},
		{"a quarter of a minute", 15 * time.Second, 1, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				not, looks := errors.New("not yet"), 0
				err := eventually.Until(ctx, func() error {
					looks++
					time.Sleep(tt.each)
					return not
				})
				if !errors.Is(err, not) || !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				if looks < tt.few || looks > tt.many {
					t.Errorf("%d looks", looks)
				}
			})
		})
	}
}
