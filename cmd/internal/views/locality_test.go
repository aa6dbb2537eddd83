package views

import "testing"

// What a host holds is found by any of its names, and by none that is of two hosts.
func TestHoldersByName(t *testing.T) {
	h := Holders{"a.x": 1, "a.y": 2, "b.x": 4}
	for name, want := range map[string]int64{"a.x": 1, "a.y": 2, "a.z": 0, "b": 4, "c": 0} {
		if got := h.On(name); got != want {
			t.Errorf("%s holds %d bytes, want %d", name, got, want)
		}
	}
}
