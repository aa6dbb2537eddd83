package disks

import (
	"bytes"
	"os"
	"slices"
	"testing"
)

// What the release before has left in an index is read, and written the same.
func TestIndexOfTheReleaseBefore(t *testing.T) {
	text, err := os.ReadFile("testdata/release3.index")
	if err != nil {
		t.Fatal(err)
	}
	want := []item{
		{label{Key{Series: [16]byte{1, 2, 3}, Rank: 4, Step: 5}, 5000, 0x0123456789abcdef}, 8192},
		{label{Key{Series: [16]byte{9}, Rank: 1 << 40, Step: 7}, 0, 1}, 0},
	}
	var got []item
	err = scanIndex(bytes.NewReader(text), int64(len(text)), func(some []item) error {
		got = append(got, some...)
		return nil
	})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	var again bytes.Buffer
	left := want
	_, err = writeIndex(&again, func(to []item) ([]item, error) {
		to, left = append(to, left...), nil
		return to, nil
	})
	if err != nil || !bytes.Equal(again.Bytes(), text) {
		t.Errorf("written again it is %x, %v", again.Bytes(), err)
	}
}
