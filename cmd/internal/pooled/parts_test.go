package pooled

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"rankfs/cache"
	"rankfs/meta"
)

// Of a part that has room nowhere it is said how there would be some; of one that waits for
// room nothing is.
func TestPartLargerThanAllRoom(t *testing.T) {
	for _, large := range []bool{true, false} {
		err := withNext(fmt.Errorf("open: %w", &cache.Shortage{Size: 32<<20 + 1, Memory: 16 << 20, TooLarge: large}))
		if !errors.Is(err, meta.ErrNoSpace) || strings.Contains(err.Error(), "mount with --ram 32772KiB or more") != large {
			t.Errorf("too large=%v: %v", large, err)
		}
	}
}
