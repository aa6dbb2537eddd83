package hdfs_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"rankfs/test/cluster"
)

// Where lines are not counted, what follows each boundary of blocks is all that
// is read before the first batch. Counting them reads everything.
func TestOnlyBoundariesAreRead(t *testing.T) {
	c := cluster.Shared(t)
	const size, blocks = 2 << 20, 8
	line := strings.Repeat("x", 99) + "\n"
	content := bytes.Repeat([]byte(line), blocks*size/len(line)+1)[:blocks*size]
	path := c.Dir(t) + "/f"
	c.Host("data1").Put(t, path, content, 2, size)
	received := func(as string) int {
		k := clusters(t, c, nil)
		if err := register(t.Context(), k, "hdfs://rankfs"+path+"?as="+as, filepath.Join(t.TempDir(), "index")); err != nil {
			t.Fatal(err)
		}
		return int(k.Stats().Bytes)
	}
	// A datanode has sent some packets when the reader has what it wants.
	if n := received("chunks"); n == 0 || n > (blocks-1)*(256<<10) {
		t.Errorf("%d bytes are read of %d, with %d boundaries", n, len(content), blocks-1)
	}
	if n := received("lines"); n < len(content) {
		t.Errorf("%d bytes are read of %d to count lines", n, len(content))
	}
}
