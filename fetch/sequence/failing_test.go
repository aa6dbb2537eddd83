package sequence_test

import (
	"errors"
	"testing"

	"rankfs/fetch/sequence"
	"rankfs/meta"
)

// errAway is why a file cannot be read.
var errAway = errors.New("the file is gone")

type away struct{}

func (away) ReadAt([]byte, int64) (int, error) { return 0, errAway }

// That a file cannot be read says nothing of its format.
func TestHeaderThatCannotBeRead(t *testing.T) {
	if _, err := sequence.ReadHeader(away{}, 1000); !errors.Is(err, errAway) || errors.Is(err, meta.ErrInvalid) {
		t.Errorf("got %v, want %v", err, errAway)
	}
}
