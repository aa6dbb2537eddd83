package merging

import (
	"testing"
	"testing/synctest"
)

// What the records of a merge take that are longer than its portions counts, too: the next one
// waits until it is given back.
func TestLongRecordsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &merger{Column: feeds{}, on: New(4<<20, nil)}
		var is portion
		if err := is.reserve(p, 0, 2<<20); err != nil {
			t.Fatal(err)
		}
		held := make(chan func())
		go func() {
			give, err := p.hold(t.Context(), 1)
			if err != nil {
				t.Error(err)
			}
			held <- give
		}()
		synctest.Wait()
		select {
		case <-held:
			t.Error("there was room beside a record of 2 MiB, and there is 1 MiB in all")
		default:
		}
		is.close()
		(<-held)()
		all, err := p.hold(t.Context(), 1<<20) // waits for ever if some is still taken
		if err != nil {
			t.Fatal(err)
		}
		all()
	})
}

// feeds is a column of no pieces.
type feeds struct{ Column }

func (feeds) Is() *Pieces { return new(Pieces) }
