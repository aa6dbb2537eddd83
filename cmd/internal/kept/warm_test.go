package kept

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"rankfs/cmd/internal/control"
	"rankfs/meta"
)

// warmUpOf is one of a view that ends when it is told to.
func warmUpOf(view string) (w *warmUp, ctx context.Context) {
	w = &warmUp{name: view, called: control.NameOf(view, view), share: share{kind: control.Batches}, of: 9, ended: make(chan struct{})}
	ctx, w.stop = context.WithCancelCause(context.Background())
	w.done.Store(3)
	return w, ctx
}

// A view is warmed up once at a time, and not very many are.
func TestWarmUpsAreBounded(t *testing.T) {
	var u warmUps
	first, ctx := warmUpOf("d@epoch=0")
	if err := u.begin(first); err != nil {
		t.Fatal(err)
	}
	again, _ := warmUpOf("d@epoch=0")
	if err := u.begin(again); !errors.Is(err, meta.ErrBusy) || !strings.Contains(err.Error(), "3 of 9 batches are done") {
		t.Errorf("a second of the same view: %v", err)
	}
	for i := 1; i < maxWarmUps; i++ {
		w, _ := warmUpOf(fmt.Sprint("d@epoch=", i))
		if err := u.begin(w); err != nil {
			t.Fatal(err)
		}
	}
	other, _ := warmUpOf("e@epoch=0")
	if err := u.begin(other); !errors.Is(err, meta.ErrBusy) {
		t.Errorf("one too many: %v", err)
	}
	go func() { <-ctx.Done(); u.end(first) }()
	u.cancel(t.Context(), func(w *warmUp) bool { return w == first }, errEvicted)
	if !errors.Is(context.Cause(ctx), errEvicted) {
		t.Errorf("it ended by %v", context.Cause(ctx))
	}
	if err := u.begin(other); err != nil {
		t.Errorf("in place of one that has ended: %v", err)
	}
}
