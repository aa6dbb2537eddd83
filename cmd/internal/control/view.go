package control

// A ViewName names a view, in every answer.
type ViewName struct {
	View string `json:"view"`      // the shortest name that it has
	Full string `json:"full_view"` // with all options
}

// NameOf names a view by the shortest name that it has, and with all options.
func NameOf(short, full string) ViewName { return ViewName{View: short, Full: full} }
