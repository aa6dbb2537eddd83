package admin

import (
	"bytes"
	"fmt"
	"text/tabwriter"
	"time"
)

// maxLines bounds a table below /.rankfs, which is made anew for each open. A
// cluster may have many more plans; the latest are what people look for.
const maxLines = 1000

// columns writes lines whose columns are apart by two blanks at least.
func columns(write func(line func(cells ...any))) []byte {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	write(func(cells ...any) {
		for i, c := range cells {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, c)
		}
		fmt.Fprintln(w)
	})
	w.Flush()
	return b.Bytes()
}

// stamp writes a time of the cluster in one word.
func stamp(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339) }
