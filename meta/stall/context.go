package stall

import "context"

type key struct{}

// With gives a fill its clock: the code that does a part of the fill, far below, names
// that part's cause by Enter.
func With(ctx context.Context, c *Clock) context.Context {
	return context.WithValue(ctx, key{}, &c.root)
}

// Of says what source the fill's bytes are of: they count in its flows too. It
// is called before anything is entered.
func Of(ctx context.Context, f *Flows) {
	if b, ok := ctx.Value(key{}).(*Branch); ok {
		b.clock.of = f
	}
}

// Fork is for another goroutine of the same fill. Until it enters a cause, and
// after it has left it, it does not count.
func Fork(ctx context.Context) context.Context {
	b, ok := ctx.Value(key{}).(*Branch)
	if !ok {
		return ctx
	}
	return context.WithValue(ctx, key{}, b.clock.fork())
}

// A Mark is a cause that a branch has entered.
type Mark struct {
	branch *Branch // nil: there is no clock
	cause  Cause
	was    Cause
}

// Enter says what the fill does until the mark is left. Marks may be nested:
// the inner one counts. Without a clock it does nothing.
func Enter(ctx context.Context, c Cause) Mark {
	b, ok := ctx.Value(key{}).(*Branch)
	if !ok {
		return Mark{}
	}
	was := b.clock.move(b, c)
	b.clock.flows.pass(was, c, 0)
	b.clock.of.pass(was, c, 0)
	return Mark{b, c, was}
}

// Leave ends what Enter began, which has moved so many bytes.
func (m Mark) Leave(bytes int64) {
	if m.branch != nil {
		m.branch.clock.move(m.branch, m.was)
		m.branch.clock.flows.pass(m.cause, m.was, bytes)
		m.branch.clock.of.pass(m.cause, m.was, bytes)
	}
}

// Idle says that a branch only waits for other branches, until the mark is left.
func Idle(ctx context.Context) Mark { return Enter(ctx, idle) }

// Follow says that the fill waits for another one, whatever that is doing,
// until stop is called.
func Follow(ctx context.Context, c *Clock) (stop func()) {
	b, ok := ctx.Value(key{}).(*Branch)
	if !ok {
		return func() {}
	}
	was := c.follow(b)
	return func() { c.unfollow(b, was) }
}
