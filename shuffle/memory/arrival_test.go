package memory

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"rankfs/meta"
)

// What has not come yet of all that was admitted counts as if it were there, and so does what
// came last, which may not be written yet.
func TestArrivals(t *testing.T) {
	b := New(10, nil, slog.New(slog.DiscardHandler))
	first, err := b.Admit(6, strings.NewReader("abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Admit(5, nil); !errors.Is(err, meta.ErrNoSpace) {
		t.Errorf("5 bytes beside 6 of 10: %v", err)
	}
	second, err := b.Admit(4, nil)
	if err != nil || b.Free() != 0 {
		t.Fatalf("%d bytes are free beside all 10: %v", b.Free(), err)
	}
	second.End()
	for i, free := range []int64{4, 6, 8} {
		if _, err := io.ReadFull(first, make([]byte, 2)); err != nil {
			t.Fatal(err)
		}
		if b.Free() != free {
			t.Errorf("after %d bytes %d are free, not %d", 2*i+2, b.Free(), free)
		}
	}
	first.End()
	if b.Free() != 10 {
		t.Errorf("%d bytes are free at the end", b.Free())
	}
}
