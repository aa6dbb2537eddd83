package batch

import (
	"errors"
	"testing"

	"rankfs/meta"
	"rankfs/shuffle/plan"
)

// Records that come to more or less than there is room for are no batch: neither
// bytes that were there before nor room behind it are taken for theirs.
func TestRecordsAreAsLongAsTheirRoom(t *testing.T) {
	v := chunked(t, &plan.Owners{Self: "node-a"}, 2, 8)
	data, err := v.Source.Data(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	x := v.Index
	size := int(x.ChunkBytes(1))
	for _, room := range []int{0, 1, size - 1, size, size + 1, 2 * size} {
		err := read(t.Context(), data, chunkExtents(x, x.Chunk(1)), make([]byte, room))
		if wrong := room != size; wrong != errors.Is(err, meta.ErrCorrupt) || !wrong && err != nil {
			t.Errorf("%d bytes into room for %d: %v", size, room, err)
		}
	}
}
