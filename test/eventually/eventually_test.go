package eventually_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/test/eventually"
)

// To find something out takes a tenth of the time; what takes long is asked again after three
// seconds.
func TestLooksTakeATenthOfTheTime(t *testing.T) {
	for _, tt := range []struct {
		name      string
		each      time.Duration
		few, many int // in a minute
	}{
		{"at once", 0, 1000, 1300},
		{"a tenth of a second", 100 * time.Millisecond, 59, 61},
		{"a second", time.Second, 15, 16},
		{"a quarter of a minute", 15 * time.Second, 3, 4},
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
