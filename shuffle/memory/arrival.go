package memory

import (
	"io"

	"rankfs/meta"
)

// ErrNoRoom is for a copy that memory has no room for. The next node is asked for it.
var ErrNoRoom = meta.Worded(meta.ErrNoSpace, "memory of the shuffle pool has no room for it: give --pool-ram a larger SIZE, or remove jobs")

// An Arrival is a copy that comes into memory. What has not come yet of all of them counts as
// if it were there, so that none begins that would find no room in the end.
type Arrival struct {
	from   io.Reader
	budget *Budget
	left   int64
	read   int // at last, which is not written yet
}

// Admit is the arrival of so many bytes, which from has, if memory has room for them. Its end is
// called when what was read is written, or nothing more of it is wanted.
func (b *Budget) Admit(bytes int64, from io.Reader) (*Arrival, error) {
	free := b.bytes - b.Used()
	for {
		all := b.arriving.Load()
		if bytes > free-all {
			return nil, ErrNoRoom
		}
		if b.arriving.CompareAndSwap(all, all+bytes) {
			return &Arrival{from: from, budget: b, left: bytes}, nil
		}
	}
}

// Free is the number of bytes of copies that memory has room for.
func (b *Budget) Free() int64 { return max(0, b.bytes-b.Used()-b.arriving.Load()) }

// Read implements io.Reader.
func (a *Arrival) Read(p []byte) (n int, err error) {
	a.came(int64(a.read))
	a.read, err = a.from.Read(p)
	return a.read, err
}

// came says that so much more is written, where the kernel counts it, or does not come.
func (a *Arrival) came(bytes int64) {
	bytes = min(bytes, a.left)
	a.left -= bytes
	a.budget.arriving.Add(-bytes)
}

// End says that nothing more of it comes, or is to be written.
func (a *Arrival) End() { a.came(a.left) }
