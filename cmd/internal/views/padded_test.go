package views

import (
	"errors"
	"testing"

	"rankfs/cmd/internal/catalog/catalogtest"
	"rankfs/meta"
)

// A view repeats records to fill a step, but none is so large that to look at it, which all
// users may, takes minutes. What the dataset was made with is for its maker to say.
func TestPaddedViews(t *testing.T) {
	vs := viewsOf(t, catalogtest.New(t, 1), "ranks=2,batch=8", 64, []string{"a"})
	large := viewsOf(t, catalogtest.New(t, 1), "ranks=2,batch=4000000,tail=pad", 64, []string{"a"})
	for _, test := range []struct {
		vs   *Views
		name string
		ok   bool
	}{
		{vs, "d@tail=pad", true},
		{vs, "d@tail=pad,batch=1000", true},
		{vs, "d@tail=pad,step=4194304,ranks=16", true},
		{vs, "d@tail=pad,step=4194305,ranks=16", false},
		{vs, "d@tail=pad,batch=999999999", false},
		{vs, "d@tail=pad,batch=512GiB", false},
		{vs, "d@batch=999999999", true},
		{large, "d@epoch=3", true},
		{large, "d@batch=4000001", false},
	} {
		if _, err := test.vs.Open(test.name); errors.Is(err, meta.ErrInvalid) == test.ok {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
