package kept

import (
	"cmp"
	"fmt"
	"strings"

	"rankfs/cache"
	"rankfs/cache/trace"
)

// tracesText lists the batches that the latest readers opened, the latest reader first,
// for as many as have room.
func tracesText(all []cache.Traced, view func(series [16]byte) string) []byte {
	if len(all) == 0 {
		return []byte("# no batch was opened since the mount\n")
	}
	var b strings.Builder
	opens := uint64(0)
	for i, t := range all {
		t.View = cmp.Or(view(t.Series), fmt.Sprintf("unknown-%x", t.Series[:4]))
		opens += t.Opens()
		text := t.Text(opens <= trace.MaxLearnt) // any user may read it, again and again
		if b.Len()+len(text) > trace.MaxText {
			fmt.Fprintf(&b, "\n# readers left out for their number: %d\n", len(all)-i)
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(text)
	}
	return []byte(b.String())
}
