package views

import "rankfs/meta"

// Called is the shortest name of a view, and the one that it has if its dataset is
// gone.
func (vs *Views) Called(view string) string {
	if v, d, err := vs.Resolve(view); err == nil {
		return v.Short(d.Default)
	}
	return view
}

// JobName is the name of a view in the account of waits, whatever its epoch. It is a name
// of the view.
func JobName(v, own meta.View) string {
	v.Epoch, own.Epoch = 0, 0
	return v.Short(own)
}
