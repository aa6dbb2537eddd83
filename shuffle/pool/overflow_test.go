package pool_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// A reader of a sum that is beyond 64 bits learns with which record of which map it got there,
// by hashes and by ranges, and whether parts are merged at once or in portions.
func TestWhichRecordOverflows(t *testing.T) {
	for _, by := range []string{"by=hash", "by=range"} {
		for _, more := range []int{0, 8000} { // lines beside those of the sum
			s := newSiteOf(t, 2, littleRAM)
			m := s.members[0]
			m.stage("s", "maps=5 copies=1 record=line key=1 combine=sum "+by)
			var b strings.Builder
			for i := range more {
				fmt.Fprintf(&b, "z%06d\t1\n", i)
			}
			for i, text := range []string{"a\t9223372036854775806\n", "b\t1\n", "", "a\t2\n0\t1\n1\t1\n", "a\t1\n1\t1\n"} {
				if err := m.commitText("s", uint64(i), text+b.String()); err != nil {
					t.Fatal(err)
				}
			}
			for _, m := range s.members {
				for maps, want := range map[meta.Part]string{
					{}:                             `record 2 of what map 3 has of the part: the sum for key "a" is beyond the numbers of 64 bits`,
					{Ranged: true, From: 1, To: 4}: "",
				} {
					_, err := m.part("s", maps)
					if want == "" && err != nil || want != "" && (!errors.Is(err, unix.EOVERFLOW) || !strings.Contains(err.Error(), want)) {
						t.Errorf("%s, %d more lines, on node %s: %s: %v", by, more, m.id, maps, err)
					}
				}
			}
		}
	}
}
