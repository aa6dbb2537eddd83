package access

import (
	"testing"
	"testing/synctest"
	"time"
)

// While a disk does not answer to one that gives up a copy, other copies are expected, and files of
// the job are written; a call that is to expect that copy waits until it is gone.
func TestACopyIsGivenUpOnASilentDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, answer := new(Names), make(chan struct{})
		f.Init(time.Minute)
		no := func(Held) bool { return false }
		go f.GiveUp("copy", no, func() { <-answer })
		synctest.Wait()
		f.Expect("other")()
		done, err := f.Use("attempt")
		if err != nil {
			t.Fatal(err)
		}
		done()
		expected := make(chan struct{})
		go func() {
			defer close(expected)
			f.Expect("copy")()
		}()
		synctest.Wait()
		select {
		case <-expected:
			t.Error("a copy is expected that goes")
		default:
		}
		close(answer)
		<-expected
		again := func(h Held) bool { return h.Expected("copy") && !h.Used("copy") }
		if !f.Look(again) {
			t.Error("a copy that has come is not expected")
		}
		f.GiveUp("copy", again, func() { t.Error("a copy that is expected is given up") })
		time.Sleep(2 * time.Minute)
		if f.Look(again) {
			t.Error("a copy is expected for ever")
		}
	})
}
