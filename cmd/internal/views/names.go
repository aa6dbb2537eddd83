package views

import (
	"slices"
	"strings"

	"rankfs/meta"
)

// Called is the shortest name of a view, and the one that it has if its dataset is
// gone.
func (vs *Views) Called(view string) string {
	if v, d, err := vs.Resolve(view); err == nil {
		return Shortest(v, d.Default)
	}
	return view
}

// Shortest is the shortest name of a view of a dataset: without the options that are
// the dataset's own.
func Shortest(v, own meta.View) string {
	_, all, _ := meta.SplitView(v.String())
	_, usual, _ := meta.SplitView(own.String())
	given := strings.Split(usual, ",")
	others := slices.DeleteFunc(strings.Split(all, ","), func(option string) bool { return slices.Contains(given, option) })
	if len(others) == 0 {
		return v.Dataset
	}
	return v.Dataset + "@" + strings.Join(others, ",")
}

// JobName is the name of a view in the account of waits, whatever its epoch. It is a name
// of the view.
func JobName(v, own meta.View) string {
	v.Epoch, own.Epoch = 0, 0
	return Shortest(v, own)
}
